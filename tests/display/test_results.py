"""Pictures are drawn on the axes that are given and change nothing else."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import fastece
from fastece.display.axes import axis_labels, error_text, title_of
from fastece.display.marks import PLAIN, is_model, logit_range
from fastece.display.pages import best_columns, plot_classes
from fastece.display.pictures import draw_model, plot_result
from fastece.reliability.curve import ReliabilityCurve

# Of the curve that tests draw.
ERROR = "ECE 0.100 (kernel density)"
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")
Figure = pytest.importorskip("matplotlib.figure").Figure
collections = pytest.importorskip("matplotlib.collections")
to_hex = pytest.importorskip("matplotlib.colors").to_hex


@pytest.fixture
def diagram():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    return fastece.reliability_diagram(rng.random(300) < p**1.5, p, n_bins=10)


@pytest.fixture
def axes():
    return Figure().subplots()


def points_of(ax):
    """The points of each diagram on axes: scores with frequencies, sizes and filled ones."""
    return [part for part in ax.collections if isinstance(part, collections.PathCollection)]


def segments_of(ax):
    """The ends of all intervals by their scores."""
    lines = [part for part in ax.collections if isinstance(part, collections.LineCollection)]
    return {x: (y0, y1) for part in lines for (x, y0), (_, y1) in part.get_segments()}


def models_of(ax):
    return [line for line in ax.get_lines() if is_model(line)]


def test_diagram_draws_what_it_holds_on_the_given_axes(diagram):
    before = dict(matplotlib.rcParams)
    left, right = Figure().subplots(1, 2)
    assert diagram.plot(ax=right) is right
    assert not left.has_data()
    (points,) = points_of(right)
    assert points.get_offsets().T.tolist() == [diagram.score.tolist(), diagram.frequency.tolist()]
    assert len(right.patches) == 10
    heights = [bar.get_height() for bar in right.patches]
    assert np.argmax(heights) == np.argmax(diagram.count)
    assert dict(matplotlib.rcParams) == before


def test_without_axes_a_figure_is_made(diagram):
    for result in (diagram, make_curve(low=0.5, setting="confidence")):
        ax = result.plot()
        assert len(ax.figure.axes) == 1
        assert (ax.get_xlabel(), ax.get_ylabel()) == axis_labels(result.setting)
        assert ax.get_title() == title_of(result.setting, result.estimator)
        assert error_text(result.estimator, result.value) in legend_of(ax.get_legend())
        assert ax.get_xlim() == ax.get_ylim() == (0, 1)


def test_points_have_the_intervals_of_their_bins(diagram, axes):
    diagram.plot(axes)
    low, high = diagram.interval()
    wanted = dict(zip(diagram.score, zip(low, high, strict=True), strict=True))
    assert segments_of(axes) == wanted
    assert "95 % CI" in legend_of(axes.get_legend())


def test_bins_of_few_rows_look_like_it(axes):
    p = np.repeat([0.1, 0.3, 0.5, 0.7], [19, 20, 100, 400])
    diagram = fastece.reliability_diagram(np.arange(p.size) % 2, p, n_bins=5)
    diagram.plot(axes)
    (points,) = points_of(axes)
    filled = [color[3] > 0 if len(color) else False for color in points.get_facecolors()]
    assert filled == [False, True, True, True]
    assert np.all(np.diff(points.get_sizes()) > 0)
    assert "fewer than 20 rows" in legend_of(axes.get_legend())
    (line,) = models_of(axes)
    assert np.isnan(line.get_ydata()).tolist() == [True, False, False, False]


def test_two_models_are_told_apart_and_named(diagram, axes):
    other = replace(diagram, frequency=diagram.score, value=0.0)
    diagram.plot(axes, label="net_1")
    title = axes.get_title()
    other.plot(axes, label="_forest $x")
    assert axes.get_title() == title
    first, second = models_of(axes)
    assert first.get_color() != second.get_color()
    assert first.get_marker() != second.get_marker()
    for line, points in zip((first, second), points_of(axes), strict=True):
        assert {*map(to_hex, points.get_edgecolors())} == {to_hex(line.get_color())}
    names = legend_of(axes.get_legend())
    assert [name for name in names if "ECE" in name] == [
        f"net_1, ECE {diagram.value:.3f}", "'_forest $x', ECE 0.000",
    ]  # fmt: skip
    assert len(names) == len(set(names))
    assert len(axes.patches) == 10 + 1  # the occupancy of the second is an outline
    axes.figure.draw_without_rendering()


def test_models_without_names_have_numbers_and_another_estimator_its_own(diagram, axes):
    for result in (diagram, diagram, make_curve()):
        result.plot(axes)
    error = f"ECE {diagram.value:.3f}"
    assert [name for name in legend_of(axes.get_legend()) if "ECE" in name] == [
        f"model 1, {error}", f"model 2, {error}", f"model 3, {ERROR}"
    ]  # fmt: skip


def test_colour_legend_band_and_title_are_the_callers(diagram, axes):
    axes.set_title("mine")
    diagram.plot(axes, color="red", legend=False, band=False)
    assert axes.get_title() == "mine"
    assert axes.get_legend() is None
    assert models_of(axes)[0].get_color() == "red"
    assert not segments_of(axes)
    with pytest.raises(TypeError, match="legend: must be True or False"):
        diagram.plot(axes, legend="best")


def test_colours_go_on_where_the_axes_are(diagram):
    with plt.rc_context({"axes.prop_cycle": matplotlib.cycler(color=["red", "lime"])}):
        ax = Figure().subplots()
        for _ in range(3):
            diagram.plot(ax)
    assert [line.get_color() for line in models_of(ax)] == ["red", "lime", "red"]


def parts_of(ax):
    """What a legend must not lie on, of axes: their inside, their labels and their title."""
    labels = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
    return [ax.patch, ax.title, *(label for label in labels if label.get_text())]


@pytest.mark.parametrize(
    ("shape", "models", "dpi"), [((1, 1), 1, 72), ((1, 2), 2, 300), ((2, 2), 1, 100)], ids=str
)
@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_legends_cover_nothing_at_the_size_of_a_paper(diagram, shape, models, dpi, layout):
    with plt.rc_context({"font.size": 7}):
        size = (5.5, 2.4 * shape[0])
        figure, grid = plt.subplots(*shape, figsize=size, layout=layout, dpi=dpi)
        axes = np.atleast_1d(grid).ravel()
        for ax in axes:
            for k in range(models):
                diagram.plot(ax, label=f"network {k}")
        for _ in range(2):
            figure.draw_without_rendering()
        for owner in axes:
            box = owner.get_legend().get_window_extent().padded(-dpi / 72)
            for ax in axes:
                for part in parts_of(ax):
                    name = getattr(part, "get_text", lambda: "axes")()
                    assert not box.overlaps(part.get_window_extent()), name
                assert ax is owner or not box.overlaps(ax.get_legend().get_window_extent())
            whole = figure.bbox
            assert box.x0 >= whole.x0
            assert box.y0 >= whole.y0
            assert box.x1 <= whole.x1
            assert owner.get_window_extent().width > 0.6 * dpi  # there is still a picture


def test_figures_can_be_kept_and_parts_of_figures_drawn_on(diagram):
    figure = Figure()
    left, right = figure.subfigures(1, 2)
    diagram.plot(left.subplots())
    diagram.plot(right.subplots().inset_axes([0.2, 0.2, 0.7, 0.7]))
    figure.draw_without_rendering()
    pickle.loads(pickle.dumps(figure)).draw_without_rendering()


@pytest.mark.parametrize(
    ("y", "p", "fields"),
    [
        ([1], [1.0], {}),
        ([0, 1], [0.0, 1.0], {}),
        ([0, 1], [1.0, 0.0], {}),
        ([0, 1], [0.2, 0.5], {"threshold": 0.5}),
        ([1, 0, 1], [0.2, 0.4, 0.9], {"sample_weight": [1e300, 1e300, 1e-300]}),
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (20, 1), (5, 5)])
def test_what_is_hardly_there_needs_scores_too(y, p, fields, size):
    diagram = fastece.reliability_diagram(y, p, n_bins=4, **fields)
    for span in (PLAIN, logit_range([diagram.drawing()])):
        figure = Figure(figsize=size)
        draw_model(diagram.drawing(), figure.subplots(), span=span)
        figure.draw_without_rendering()


@pytest.mark.parametrize(("near", "count"), [(0.45, 1), (0.55, 2)])
def test_heaped_scores_get_axes_of_log_odds_beside(near, count):
    n = 1000
    p = np.where(np.arange(n) < near * n, 0.97, 0.6)
    y = np.random.default_rng(0).random(n) < p
    diagram = fastece.reliability_diagram(y, p)
    curve = fastece.reliability_curve(y, p, estimator="ece_bayes")
    for result in (diagram, curve):
        ax = result.plot(label="net")
        axes = ax.figure.axes
        assert len(axes) == count
        assert axes[0] is ax
        assert ax.get_xscale() == "linear"
        assert [other.get_xscale() for other in axes[1:]] == ["logit"] * (count - 1)
        for other in axes[1:]:
            assert other.get_xlabel().endswith("(log odds)")
            assert not other.patches  # heights mean nothing there
            low, high = other.get_xlim()
            assert 0 < low < 0.6 < 0.97 < high < 1
        ax.figure.draw_without_rendering()


def test_rates_of_0_and_1_lie_at_the_ends_of_log_odds():
    p = np.repeat([0.001, 0.03, 0.97, 1.0], 50)
    diagram = fastece.reliability_diagram(p > 0.5, p, n_bins=50)
    span = logit_range([diagram.drawing()])
    ax = Figure().subplots()
    draw_model(diagram.drawing(), ax, span=span)
    (points,) = points_of(ax)
    assert points.get_offsets()[:, 1].tolist() == [span.low] * 2 + [span.high] * 2
    assert 1e-4 <= span.low < 0.001
    assert 0.97 < span.high <= 1 - 1e-4
    ax.figure.draw_without_rendering()


def test_band_is_a_bar_in_each_bin_that_holds_rows():
    rng = np.random.default_rng(0)
    p = rng.random(300) * 0.8
    y = rng.random(300) < p
    diagram = fastece.reliability_diagram(y, p, n_bins=10)
    band = fastece.calibration_test(
        y, p, n_bins=10, n_resamples=99, confidence_level=0.9, rng=0
    ).band
    text = str(diagram)
    ax = diagram.plot(band=band)
    bars = ax.patches[:8]
    assert len(ax.patches) == 8 + 10
    assert np.count_nonzero(diagram.count) == 8
    assert [bar.get_y() for bar in bars] == band.low[:8].tolist()
    tops = [bar.get_y() + bar.get_height() for bar in bars]
    assert tops == pytest.approx(band.high[:8].tolist())
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert {"90 % if calibrated", "90 % CI"} <= set(names)
    low, high = diagram.interval(0.9)
    assert segments_of(ax)[diagram.score[3]] == (low[3], high[3])
    assert str(diagram) == text


def test_band_of_other_bins_is_refused(diagram):
    p = np.linspace(0, 1, 50)
    for n_bins in (5, 60):
        band = fastece.calibration_test(p > 0.5, p, n_bins=n_bins, n_resamples=9, rng=0).band
        with pytest.raises(ValueError, match="band: must have the bins of the diagram: 10,"):
            diagram.plot(band=band)
    assert not plt.get_fignums()


def make_curve(n_resamples=0, setting="binary", low=0.0, n=1000, **changes):
    """A smooth curve on [low, 1], made by hand."""
    score = low + (1 - low) * (np.arange(200) + 0.5) / 200
    posterior = score**1.5
    band = {"low": None, "high": None, "median": None}
    if n_resamples:
        band = {"low": posterior * 0.9, "high": posterior**0.9, "median": posterior * 0.98}
    values = {
        "score": score, "probability": posterior, "lce": posterior - score,
        "density": np.ones(200) / (1 - low), "supported": np.ones(200, bool), **band,
        "confidence_level": 0.95, "n_resamples": n_resamples, "value": 0.1, "bandwidth": 0.05,
        "score_range": (low, 1.0), "n": n, "key": None, "estimator": "KDE()", "setting": setting,
        "marks": score[::40],
    }  # fmt: skip
    values |= changes
    rows = values["n"] * values["density"] * 2 * np.sqrt(np.pi) * values["bandwidth"]
    return ReliabilityCurve(**{"rows": rows, **values})


def legend_of(owner):
    return [text.get_text() for text in owner.get_texts()]


def lines_of(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_curve_draws_what_it_holds_on_the_given_axes(axes):
    before = dict(matplotlib.rcParams)
    curve = make_curve()
    assert plot_result(curve, axes) is axes
    line = lines_of(axes)[ERROR]
    assert line.get_xdata().tolist() == curve.score.tolist()
    assert line.get_ydata().tolist() == curve.probability.tolist()
    assert legend_of(axes.get_legend()) == [
        "calibrated",
        ERROR,
        "density (up to 1)",
    ]
    (density,) = axes.collections
    assert density.get_datalim(axes.transData).y1 == pytest.approx(0.25)  # the lowest quarter
    assert axes.get_title() == "Reliability curve"
    assert dict(matplotlib.rcParams) == before


def test_curve_with_resamples_has_a_median_and_a_band(axes):
    curve = make_curve(500)
    plot_result(curve, axes)
    assert legend_of(axes.get_legend())[1:] == [
        ERROR, "95 % CI (resamples)", "median of resamples", "density (up to 1)"
    ]  # fmt: skip
    lines = lines_of(axes)
    thick, thin = lines[ERROR], lines["median of resamples"]
    assert thick.get_ydata().tolist() == curve.probability.tolist()
    assert thin.get_ydata().tolist() == curve.median.tolist()
    assert thin.get_linewidth() < thick.get_linewidth()
    band = axes.collections[0].get_datalim(axes.transData)
    assert (band.y0, band.y1) == (curve.low.min(), curve.high.max())


@pytest.mark.parametrize("n_resamples", [0, 500])
def test_no_curve_needs_scores_where_there_are_too_few_scores(axes, n_resamples):
    supported = np.abs(np.arange(200) - 100) > 20
    plot_result(make_curve(n_resamples, supported=supported), axes)
    assert "too few scores" in legend_of(axes.get_legend())
    for name in (ERROR, "median of resamples")[: 1 + bool(n_resamples)]:
        assert np.isfinite(lines_of(axes)[name].get_ydata()).tolist() == supported.tolist()


def test_of_several_models_none_has_a_hatch_and_their_lines_come_together(axes):
    supported = np.abs(np.arange(200) - 100) > 20
    curves = [make_curve(500, supported=supported), make_curve(500, supported=~supported)]
    for name, curve in zip("ab", curves, strict=True):
        plot_result(curve, axes, label=name)
    assert not any(mark.get_hatch() for mark in axes.collections)
    assert legend_of(axes.get_legend()) == [
        "calibrated", f"a, {ERROR}", f"b, {ERROR}", "95 % CI (resamples)",
        "median of resamples", "density (up to 1)",
    ]  # fmt: skip


def test_a_kernel_that_reaches_fewer_rows_than_five_makes_no_curve(axes):
    density = np.where(np.arange(200) < 100, 0.2, 1.8)
    # 0.05 * 2 sqrt(pi) * density * n rows: 3.5 and 32
    plot_result(make_curve(n=100, density=density), axes)
    drawn = np.isfinite(lines_of(axes)[ERROR].get_ydata())
    assert drawn.tolist() == (density > 1).tolist()


@pytest.mark.parametrize("n", [1, 4, 5, 12, 100])
@pytest.mark.parametrize("kind", ["diagrams", "curves"])
def test_small_multiples_share_axes_and_a_legend(diagram, kind, n):
    figure = Figure(layout="constrained", figsize=(10, 8))
    results = [
        make_curve(500 * (k % 2), f"class {k}", value=k / n)
        if kind == "curves"
        else replace(diagram, setting=f"class {k}", value=k / n)
        for k in range(n)
    ]
    assert plot_classes(results, figure=figure) is figure
    panels = figure.axes
    assert len(panels) == min(n, 12)
    shown = [ax.get_title().partition(",")[0] for ax in panels]
    expected = range(n) if n <= 12 else range(99, 87, -1)
    assert shown == [f"class {k}" for k in expected]
    assert figure.get_suptitle() == (
        "" if n <= 12 else "the 12 of 100 classes with the largest errors"
    )
    (legend,) = figure.legends
    entries = legend_of(legend)
    assert len(entries) == len(set(entries))
    assert ("median of resamples" in entries) == (kind == "curves" and n > 1)
    assert all(ax.get_legend() is None for ax in panels)
    across = best_columns(len(panels))
    named = [bool(ax.get_xlabel()) for ax in panels]
    assert named == [k >= len(panels) - across for k in range(len(panels))]
    assert [bool(ax.get_ylabel()) for ax in panels] == [k % across == 0 for k in range(len(panels))]


def test_nothing_of_the_small_multiples_is_cut_off():
    for n in (3, 10):
        names = [f"class {k} ('{'very ' * k}long name')" for k in range(n)]
        figure = plot_classes([make_curve(500, name) for name in names])
        for _ in range(2):
            figure.draw_without_rendering()
        whole = figure.bbox
        for part in (*figure.axes, *figure.legends):
            box = part.get_tightbbox()
            assert box.x0 >= whole.x0 - 1
            assert box.x1 <= whole.x1 + 1
            assert box.y0 >= whole.y0 - 1
            assert box.y1 <= whole.y1 + 1
        titles = [ax.title.get_window_extent() for ax in figure.axes]
        for i, one in enumerate(titles):
            assert not any(one.overlaps(other) for other in titles[i + 1 :])


def test_panels_have_the_bands_of_their_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0] * 3, 300)
    y = rng.integers(0, 3, 300)
    diagrams = fastece.reliability_diagram(y, p, setting="classwise", n_bins=5)
    bands = fastece.calibration_test(
        y, p, setting="classwise", n_bins=5, n_resamples=99, rng=0
    ).band
    figure = plot_classes(diagrams, band=bands, figure=Figure())
    for ax, one, band in zip(figure.axes, diagrams, bands, strict=True):
        known = band.low[one.count > 0].tolist()
        assert [bar.get_y() for bar in ax.patches[: len(known)]] == known
    assert "95 % if calibrated" in legend_of(figure.legends[0])
    with pytest.raises(ValueError, match=r"results: must have the same .* got \[2, 3\]"):
        plot_classes(diagrams[:2], band=bands, figure=Figure())


def test_panels_of_two_models(diagram):
    other = replace(diagram, value=0.5)
    figure = plot_classes({"a$": [diagram] * 13, "b": [*[diagram] * 12, other]}, figure=Figure())
    assert all(len(models_of(ax)) == 2 for ax in figure.axes)
    assert figure.axes[0].get_title() == f"binary, {diagram.value:.4f}, 0.5000"
    assert [name for name in legend_of(figure.legends[0]) if name in ("a$", "b")] == ["a$", "b"]
    figure.draw_without_rendering()
    with pytest.raises(ValueError, match="results: must have the same classes"):
        plot_classes({"a": [diagram], "b": [diagram] * 2}, figure=Figure())


def test_columns_of_small_multiples(diagram):
    assert [best_columns(n) for n in range(1, 13)] == [1, 2, 3, 4, 5, 3, 4, 4, 3, 5, 4, 4]
    figure = plot_classes([diagram] * 3, columns=1)
    assert {ax.get_subplotspec().get_gridspec().ncols for ax in figure.axes} == {1}
    before = plt.get_fignums()
    with pytest.raises(ValueError, match="columns: must be"):
        plot_classes([diagram], columns=0)
    with pytest.raises(ValueError, match="results: must be diagrams or curves"):
        plot_classes([])
    assert plt.get_fignums() == before


def test_classes_without_a_value_come_last(diagram):
    values = [np.nan, *np.linspace(0.1, 0.2, 12)]
    results = [
        replace(diagram, value=value, setting=f"class {k}") for k, value in enumerate(values)
    ]
    figure = plot_classes(results, figure=Figure())
    assert [ax.get_title() for ax in figure.axes][:2] == ["class 12, 0.2000", "class 11, 0.1909"]
    assert not any("class 0," in ax.get_title() for ax in figure.axes)


DRAWN = (
    "from matplotlib.figure import Figure; from fastece.display import plot_classes;"
    "d = fastece.reliability_diagram([0, 1], [0.2, 0.7]);"
    "d.plot(Figure().subplots()); plot_classes([d, d], figure=Figure());"
)


@pytest.mark.parametrize(
    ("code", "unused"),
    [("fastece.display.plot_classes;", {"matplotlib", "numba"}), (DRAWN, {"matplotlib.pyplot"})],
)
def test_no_more_of_matplotlib_is_imported_than_is_used(code, unused):
    code = f"import sys, fastece; {code} print({unused!r}.isdisjoint(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("draw", [plot_result, lambda diagram: plot_classes([diagram])])
def test_without_matplotlib_it_says_what_to_install(diagram, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'fastece\[plot\]'"):
        draw(diagram)
