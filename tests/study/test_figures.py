"""Pictures of a study show what its tables hold, and leave the rest of matplotlib alone."""

from math import inf, nan

import matplotlib
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex

from fastece.display.marks import BLACK
from fastece.study import figures
from fastece.study.figures import MEASURES, curves_figure, save_figure
from helpers.study_cases import FIFTEEN, SIXTEEN

matplotlib.use("agg")

RELATIVE, ABSOLUTE, RATIO, BIAS = MEASURES
SETTINGS = ["confidence", "classwise"]
SIZES = [100, 200, 500, 1000, 2000]
OWN = [f"mine {i}" for i in range(21)]
NAMES = [FIFTEEN[-1], "zero", *OWN[:2], *FIFTEEN[:-1], "ece_bayes"]
OF_ZERO = {RELATIVE: 1.0, RATIO: inf, BIAS: -1.0}
LONG = "a name of one's own: long"


def summary_of(names=NAMES, measure=RELATIVE, settings=SETTINGS, sizes=SIZES, given=()):
    """Made-up values, except the `given` ones of all settings; sizes are not in order."""
    rng = np.random.default_rng(0)
    values_of = dict(given)
    rows = []
    for setting in settings:
        for name in names:
            for i in np.roll(np.arange(len(sizes))[::-1], 2).tolist():
                value = float(rng.uniform(-0.3, 0.3) if measure == BIAS else rng.uniform(0.1, 0.9))
                if name in values_of:
                    value = values_of[name][i]
                elif name == "zero":
                    value = OF_ZERO.get(measure, value)
                ends = sorted((value * rng.uniform((0.7, 1.1), (0.9, 1.3))).tolist())
                rows.append((setting, name, sizes[i], value, *ends))
    columns = ["setting", "estimator", "n", measure, f"{measure}_low", f"{measure}_high"]
    return table_of(columns, rows)


def table_of(columns, rows):
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])


def points(table, setting, name, column):
    """(n, value) of a curve, n ascending."""
    rows = [row for row in table.to_pylist() if row["setting"] == setting]
    return sorted((row["n"], row[column]) for row in rows if row["estimator"] == name)


def look(line):
    filled = to_hex(line.get_markerfacecolor()) == to_hex(line.get_color())
    return to_hex(line.get_color()), line.get_linestyle(), line.get_marker(), filled


def legend_of(figure):
    """Texts and marks of the legend, from top to bottom."""
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    return list(zip(texts, legend.legend_handles, strict=True))


def looks_of(figure):
    """Name -> look, as the legend has them below its titles."""
    return {text: look(mark) for text, mark in legend_of(figure) if mark.get_linestyle() != "None"}


def lines_of(figure, ax):
    """Lines by the names that the legend has for them, and the others."""
    names = {mark: name for name, mark in looks_of(figure).items()}
    pairs = [(names[look(line)], line) for line in ax.get_lines() if look(line) in names]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs), [line for line in ax.get_lines() if look(line) not in names]


def drawn(line):
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))


def shaded(ax):
    """(colour, corners) of shaded areas, in order."""
    areas = []
    for collection in ax.collections:
        color = collection.get_facecolor()[0]
        assert color[3] < 0.3
        outlines = [set(map(tuple, path.vertices.tolist())) for path in collection.get_paths()]
        areas += [(to_hex(color), sorted(outline)) for outline in outlines]
    return sorted(areas)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [RELATIVE, BIAS])
def test_curves_have_the_values_of_the_table(measure):
    names = [name for name in NAMES if name not in FIFTEEN[3:12]]
    table = summary_of(names, measure)
    figure = curves_figure(table, measure)
    assert [ax.get_title() for ax in figure.axes] == SETTINGS
    for ax in figure.axes:
        lines, _ = lines_of(figure, ax)
        assert set(lines) == {*names} - ({"zero"} if measure == BIAS else set())
        for name, line in lines.items():
            assert drawn(line) == points(table, ax.get_title(), name, measure)
        scales = ("log", "linear" if measure == BIAS else "log")
        assert (ax.get_xscale(), ax.get_yscale()) == scales
        assert ax.get_xlabel() == "rows in the evaluation set"
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_ylabel()) == (MEASURES[measure], "")
    assert left.get_ylim() == right.get_ylim()


@pytest.mark.parametrize("measure", [RELATIVE, ABSOLUTE, RATIO, BIAS])
def test_the_baseline_is_a_black_line_where_it_has_a_place(measure):
    table = summary_of(["x", "zero"], measure)
    figure = curves_figure(table, measure)
    is_drawn = measure in (RELATIVE, ABSOLUTE)
    for ax in figure.axes:
        lines, _ = lines_of(figure, ax)
        assert list(lines) == (["x", "zero"] if is_drawn else ["x"])
        if is_drawn:
            assert drawn(lines["zero"]) == points(table, ax.get_title(), "zero", measure)
            assert look(lines["zero"])[0] == to_hex(BLACK)
    assert ("not measuring" in dict(legend_of(figure))) == is_drawn


def test_the_line_of_no_bias_is_drawn():
    figure = curves_figure(summary_of(["x"], BIAS), BIAS)
    for ax in figure.axes:
        (line,) = lines_of(figure, ax)[1]
        assert set(line.get_ydata()) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("measure", [RELATIVE, BIAS])
def test_intervals_are_shaded_in_the_colour_of_their_curve(measure):
    table = summary_of([*FIFTEEN[::6], "x", "zero"], measure)  # no two of a colour
    ends = [f"{measure}_low", f"{measure}_high"]
    figure = curves_figure(table, measure)
    for ax in figure.axes:
        want = []
        for name, (color, *_) in looks_of(figure).items():
            corners = [points(table, ax.get_title(), name, end) for end in ends]
            want.append((color, sorted(sum(corners[1:], corners[0]))))
        assert shaded(ax) == sorted(want)
    for columns in (ends[:1], ends[1:], ends):
        figure = curves_figure(table.drop_columns(columns), measure)
        assert [shaded(ax) for ax in figure.axes] == [[], []]


@pytest.mark.parametrize(
    ("measure", "hole"), [(RELATIVE, nan), (BIAS, None), (RELATIVE, inf), (BIAS, -inf)]
)
def test_values_that_are_not_finite_are_gaps(measure, hole):
    rows = summary_of(["x"], measure, settings=["a"]).to_pylist()
    for row in rows:
        if row["n"] == 500:
            row |= {measure: hole, f"{measure}_low": hole}
    figure = curves_figure(pa.Table.from_pylist(rows), measure)
    for ax in figure.axes:
        line = lines_of(figure, ax)[0]["x"]
        assert line.get_xdata().tolist() == SIZES
        assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False, False]
        sizes = [sorted({n for n, _ in corners}) for _, corners in shaded(ax)]
        assert sizes == [SIZES[:2], SIZES[3:]]


@pytest.mark.slow
def test_where_nothing_can_be_drawn_axes_are_empty():
    table = summary_of(["x"], settings=["a"], given={"x": [nan] * 5})
    curves_figure(table).draw_without_rendering()


@pytest.mark.slow
def test_ticks_are_round_numbers():
    figure = curves_figure(summary_of(["x"], settings=["a"]))
    figure.draw_without_rendering()
    (ax,) = figure.axes
    low, high = ax.get_xlim()
    labels = [label for tick, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
              if low <= tick <= high]  # fmt: skip
    assert [label.get_text() for label in labels] == ["100", "200", "500", "1000", "2000"]
    assert not ax.get_xticks(minor=True).size


@pytest.mark.slow
def test_every_estimator_is_told_apart_in_grey_too():
    figure = curves_figure(summary_of([*SIXTEEN, *OWN], settings=["a"], sizes=[100, 200]))
    looks = looks_of(figure)
    assert set(lines_of(figure, figure.axes[0])[0]) == set(looks) == {*SIXTEEN, *OWN}
    assert len({mark[1:] for mark in looks.values()}) == 37
    families = [*(FIFTEEN[i : i + 3] for i in range(0, 15, 3)), SIXTEEN[15:], OWN]
    colors = [{looks[name][0] for name in family} for family in families]
    assert [len(of_family) for of_family in colors] == [1] * 7
    # One's own stands out; without one, families have colours.
    assert len(set.union(*colors)) == 2
    assert colors[-1] not in colors[:-1]
    without = looks_of(curves_figure(summary_of(SIXTEEN, settings=["a"], sizes=[100, 200])))
    assert len({mark[0] for mark in without.values()}) == 6
    for name in FIFTEEN[::4]:
        alone = curves_figure(summary_of([name], settings=["a"], sizes=[10]))
        assert looks_of(alone) == {name: without[name]}


@pytest.mark.slow
def test_legend_has_every_name_once_below_the_title_of_its_family():
    names = [name for name in [*NAMES, LONG] if name not in FIFTEEN[3:5]]
    figure = curves_figure(summary_of(names, sizes=[100, 200]))
    for _ in range(2):
        figure.draw_without_rendering()
    want = [
        ["equal width", *FIFTEEN[:3]], ["equal mass", FIFTEEN[5]],
        ["equal width, convex", *FIFTEEN[6:9]], ["equal mass, convex", *FIFTEEN[9:12]],
        ["kernel density", *FIFTEEN[12:]], ["Bayesian curve", "ece_bayes"],
        ["own", *OWN[:2], LONG], ["not measuring", "zero"],
    ]  # fmt: skip
    assert [text for text, _ in legend_of(figure)] == [text for column in want for text in column]
    (legend,) = figure.legends
    *panels, box = (part.get_tightbbox() for part in (*figure.axes, legend))
    assert not any(box.overlaps(panel) for panel in panels)
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_a_name_that_begins_with_an_underscore_is_quoted():
    assert list(looks_of(curves_figure(summary_of(["_Mine"], settings=["a"])))) == ["'_Mine'"]


def test_tables_that_cannot_be_drawn_are_refused():
    table = summary_of()
    for measure in ("sd", "", None):
        with pytest.raises(ValueError, match="measure"):
            curves_figure(table, measure)
    with pytest.raises(ValueError, match="no rows"):
        curves_figure(table[:0])
    for name in ("setting", "estimator", "n", RELATIVE):
        with pytest.raises(ValueError, match=f"no column {name}; its columns: .*{RELATIVE}_low"):
            curves_figure(table.drop_columns([name]))
    with pytest.raises(ValueError, match=f"no column {BIAS};"):
        curves_figure(table, BIAS)


def small_figure(value):
    """A figure with a line in clipped axes, in a tenth of the time of a picture of a study."""
    figure = figures.new_figure((1, 1))
    figure.add_subplot().plot([0, value])
    return figure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "begins"), [(".svg", b"<?xml"), (".PNG", b"\x89PNG\r\n"), (".pdf", b"%PDF")]
)
def test_the_same_figure_is_the_same_file(tmp_path, monkeypatch, ending, begins):
    from matplotlib import pyplot as plt

    monkeypatch.setattr(figures, "DPI", 40)
    path = tmp_path / f"picture{ending}"
    before = dict(matplotlib.rcParams)
    windows = plt.get_fignums()
    # matplotlib takes the time from this variable; a path may be a string.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    save_figure(small_figure(1), path)
    first = path.read_bytes()
    assert first.startswith(begins)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    save_figure(small_figure(1), str(path))
    assert path.read_bytes() == first
    save_figure(small_figure(2), path)
    assert path.read_bytes() != first
    assert list(tmp_path.iterdir()) == [path]
    assert (dict(matplotlib.rcParams), plt.get_fignums()) == (before, windows)


@pytest.mark.parametrize("name", ["picture.jpg", "picture", "picture.png.gz", ".svg"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"path: must end in \.png, \.svg or \.pdf, got"):
        save_figure(small_figure(1), tmp_path / name)
    assert not list(tmp_path.iterdir())
