"""Pictures of diagrams and curves: drawn on the given axes, and nothing else changes."""

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
from fastece.display.pictures import draw_model
from fastece.reliability.curve import ReliabilityCurve

# The error of the curve that the tests draw.
ERROR = "ECE 0.100 (kernel density)"
MEDIAN = "median of resamples"
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


def make_curve(n_resamples=0, setting="binary", low=0.0, n=1000, **changes):
    """A smooth curve on [low, 1], made by hand."""
    score = low + (1 - low) * (np.arange(200) + 0.5) / 200
    probability = score**1.5
    fields = {
        "score": score,
        "probability": probability,
        "lce": probability - score,
        "density": np.ones(200) / (1 - low),
        "supported": np.ones(200, bool),
        "low": None,
        "high": None,
        "median": None,
        "confidence_level": 0.95,
        "n_resamples": n_resamples,
        "value": 0.1,
        "bandwidth": 0.05,
        "score_range": (low, 1.0),
        "n": n,
        "key": None,
        "estimator": "KDE()",
        "setting": setting,
        "marks": score[::40],
    }
    if n_resamples:
        ends = {"low": probability * 0.9, "high": probability**0.9}
        fields |= {**ends, "median": probability * 0.98}
    fields |= changes
    rows = fields["n"] * fields["density"] * 2 * np.sqrt(np.pi) * fields["bandwidth"]
    return ReliabilityCurve(**{"rows": rows, **fields})


# --- parts of axes --------------------------------------------------------------------------


def points_of(ax):
    """The points of each diagram on axes: scores with frequencies, sizes and filled ones."""
    return [part for part in ax.collections if isinstance(part, collections.PathCollection)]


def segments_of(ax):
    """The ends of all intervals by their scores."""
    lines = [part for part in ax.collections if isinstance(part, collections.LineCollection)]
    return {x: (y0, y1) for part in lines for (x, y0), (_, y1) in part.get_segments()}


def models_of(ax):
    return [line for line in ax.get_lines() if is_model(line)]


def lines_of(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def legend_of(owner):
    """The entries of the legend of axes or of a figure."""
    (legend,) = owner.legends if isinstance(owner, Figure) else [owner.get_legend()]
    return [text.get_text() for text in legend.get_texts()]


def errors_of(ax):
    """The entries of a legend that name an error."""
    return [name for name in legend_of(ax) if "ECE" in name]


# --- diagrams -------------------------------------------------------------------------------


def test_a_diagram_draws_its_bins_on_the_given_axes(diagram):
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


@pytest.mark.parametrize("kind", ["diagram", "curve"])
def test_without_axes_a_figure_is_made(diagram, kind):
    result = diagram if kind == "diagram" else make_curve(low=0.5, setting="confidence")
    ax = result.plot()
    assert len(ax.figure.axes) == 1
    assert (ax.get_xlabel(), ax.get_ylabel()) == axis_labels(result.setting)
    assert ax.get_title() == title_of(result.setting, result.estimator)
    assert error_text(result.estimator, result.value) in legend_of(ax)
    assert ax.get_xlim() == ax.get_ylim() == (0, 1)


def test_points_have_the_intervals_of_their_bins(diagram, axes):
    diagram.plot(axes)
    low, high = diagram.interval()
    intervals = zip(low, high, strict=True)
    assert segments_of(axes) == dict(zip(diagram.score, intervals, strict=True))
    assert "95 % CI" in legend_of(axes)


def test_points_of_few_rows_are_hollow_and_no_line_leads_to_them(axes):
    p = np.repeat([0.1, 0.3, 0.5, 0.7], [19, 20, 100, 400])
    fastece.reliability_diagram(np.arange(p.size) % 2, p, n_bins=5).plot(axes)
    (points,) = points_of(axes)
    is_filled = [color[3] > 0 if len(color) else False for color in points.get_facecolors()]
    assert is_filled == [False, True, True, True]
    assert np.all(np.diff(points.get_sizes()) > 0)
    assert "fewer than 20 rows" in legend_of(axes)
    (line,) = models_of(axes)
    assert np.isnan(line.get_ydata()).tolist() == [True, False, False, False]


def test_colour_legend_band_and_title_are_the_callers(diagram, axes):
    axes.set_title("mine")
    diagram.plot(axes, color="red", legend=False, band=False)
    assert axes.get_title() == "mine"
    assert axes.get_legend() is None
    assert models_of(axes)[0].get_color() == "red"
    assert not segments_of(axes)
    with pytest.raises(TypeError, match="legend: must be True or False"):
        diagram.plot(axes, legend="best")


def test_a_band_is_a_bar_in_each_bin_that_holds_rows():
    rng = np.random.default_rng(0)
    p = rng.random(300) * 0.8
    y = rng.random(300) < p
    diagram = fastece.reliability_diagram(y, p, n_bins=10)
    options = {"n_bins": 10, "n_resamples": 99, "confidence_level": 0.9, "rng": 0}
    band = fastece.calibration_test(y, p, **options).band
    text = str(diagram)
    ax = diagram.plot(band=band)
    bars = ax.patches[:8]
    assert len(ax.patches) == 8 + 10
    assert np.count_nonzero(diagram.count) == 8
    assert [bar.get_y() for bar in bars] == band.low[:8].tolist()
    tops = [bar.get_y() + bar.get_height() for bar in bars]
    assert tops == pytest.approx(band.high[:8].tolist())
    assert {"90 % if calibrated", "90 % CI"} <= set(legend_of(ax))
    low, high = diagram.interval(0.9)
    assert segments_of(ax)[diagram.score[3]] == (low[3], high[3])
    assert str(diagram) == text


def test_a_band_of_other_bins_is_refused(diagram):
    p = np.linspace(0, 1, 50)
    for n_bins in (5, 60):
        band = fastece.calibration_test(p > 0.5, p, n_bins=n_bins, n_resamples=9, rng=0).band
        with pytest.raises(ValueError, match="band: must have the bins of the diagram: 10,"):
            diagram.plot(band=band)
    assert not plt.get_fignums()


# --- several models -------------------------------------------------------------------------


def test_two_models_differ_in_style_and_name(diagram, axes):
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
    errors = [f"net_1, ECE {diagram.value:.3f}", "'_forest $x', ECE 0.000"]
    assert errors_of(axes) == errors
    assert len(legend_of(axes)) == len(set(legend_of(axes)))
    assert len(axes.patches) == 10 + 1  # the occupancy of the second is an outline
    axes.figure.draw_without_rendering()


def test_models_without_names_have_numbers_and_another_estimator_its_own(diagram, axes):
    for result in (diagram, diagram, make_curve()):
        result.plot(axes)
    error = f"ECE {diagram.value:.3f}"
    assert errors_of(axes) == [error, f"model 2, {error}", f"model 3, {ERROR}"]


def test_colours_go_on_where_the_axes_are(diagram):
    with plt.rc_context({"axes.prop_cycle": matplotlib.cycler(color=["red", "lime"])}):
        ax = Figure().subplots()
        for _ in range(3):
            diagram.plot(ax)
    assert [line.get_color() for line in models_of(ax)] == ["red", "lime", "red"]


def test_of_several_curves_none_has_a_hatch_and_their_lines_come_together(axes):
    supported = np.abs(np.arange(200) - 100) > 20
    curves = [make_curve(500, supported=supported), make_curve(500, supported=~supported)]
    for name, curve in zip("ab", curves, strict=True):
        curve.plot(axes, label=name)
    assert not any(mark.get_hatch() for mark in axes.collections)
    models = [f"a, {ERROR}", f"b, {ERROR}"]
    others = ["95 % CI (resamples)", MEDIAN, "density (up to 1)"]
    assert legend_of(axes) == ["calibrated", *models, *others]


# --- curves ---------------------------------------------------------------------------------


def test_a_curve_draws_its_values_on_the_given_axes(axes):
    before = dict(matplotlib.rcParams)
    curve = make_curve()
    assert curve.plot(axes) is axes
    line = lines_of(axes)[ERROR]
    assert line.get_xdata().tolist() == curve.score.tolist()
    assert line.get_ydata().tolist() == curve.probability.tolist()
    assert legend_of(axes) == ["calibrated", ERROR, "density (up to 1)"]
    (density,) = axes.collections
    assert density.get_datalim(axes.transData).y1 == pytest.approx(0.25)  # the lowest quarter
    assert axes.get_title() == "Reliability curve"
    assert dict(matplotlib.rcParams) == before


def test_a_curve_with_resamples_has_a_median_and_a_band(axes):
    curve = make_curve(500)
    curve.plot(axes)
    names = [ERROR, "95 % CI (resamples)", MEDIAN, "density (up to 1)"]
    assert legend_of(axes)[1:] == names
    line = lines_of(axes)[ERROR]
    median = lines_of(axes)[MEDIAN]
    assert line.get_ydata().tolist() == curve.probability.tolist()
    assert median.get_ydata().tolist() == curve.median.tolist()
    assert median.get_linewidth() < line.get_linewidth()
    band = axes.collections[0].get_datalim(axes.transData)
    assert (band.y0, band.y1) == (curve.low.min(), curve.high.max())


@pytest.mark.parametrize(("n_resamples", "names"), [(0, [ERROR]), (500, [ERROR, MEDIAN])])
def test_there_is_no_curve_where_scores_are_too_few(axes, n_resamples, names):
    supported = np.abs(np.arange(200) - 100) > 20
    make_curve(n_resamples, supported=supported).plot(axes)
    assert "too few scores" in legend_of(axes)
    for name in names:
        assert np.isfinite(lines_of(axes)[name].get_ydata()).tolist() == supported.tolist()


def test_there_is_no_curve_where_its_kernel_reaches_fewer_rows_than_five(axes):
    density = np.where(np.arange(200) < 100, 0.2, 1.8)
    # 0.05 * 2 sqrt(pi) * density * n rows: 3.5 and 32
    make_curve(n=100, density=density).plot(axes)
    is_drawn = np.isfinite(lines_of(axes)[ERROR].get_ydata())
    assert is_drawn.tolist() == (density > 1).tolist()


# --- axes -----------------------------------------------------------------------------------


def occupied_parts(ax):
    """The parts of axes that a legend must not lie on: area, labels and title."""
    labels = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
    return [ax.patch, ax.title, *(label for label in labels if label.get_text())]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "models", "dpi", "layout"),
    [((1, 2), 2, 300, "constrained"), ((2, 2), 1, 100, "tight")],
    ids=str,
)
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
                for part in occupied_parts(ax):
                    name = getattr(part, "get_text", lambda: "axes")()
                    assert not box.overlaps(part.get_window_extent()), name
                assert ax is owner or not box.overlaps(ax.get_legend().get_window_extent())
            assert box.x0 >= figure.bbox.x0
            assert box.y0 >= figure.bbox.y0
            assert box.x1 <= figure.bbox.x1
            assert owner.get_window_extent().width > 0.6 * dpi  # there is still a picture


@pytest.mark.slow
def test_a_figure_without_a_layout_has_its_legend_on_the_axes(diagram, axes):
    diagram.plot(axes)
    axes.figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    assert axes.get_window_extent().containsx(legend.x0)
    assert axes.get_window_extent().containsy(legend.y0)


@pytest.mark.slow
def test_figures_can_be_pickled_and_parts_of_figures_drawn_on(diagram):
    figure = Figure()
    left, right = figure.subfigures(1, 2)
    diagram.plot(left.subplots())
    diagram.plot(right.subplots().inset_axes([0.2, 0.2, 0.7, 0.7]))
    figure.draw_without_rendering()
    pickle.loads(pickle.dumps(figure)).draw_without_rendering()


@pytest.mark.parametrize(
    ("y", "p", "options", "size"),
    [
        ([1], [1.0], {}, (1, 1)),
        ([0, 1], [1.0, 0.0], {}, (20, 1)),
        ([0, 1], [0.2, 0.5], {"threshold": 0.5}, (5, 5)),
        ([1, 0, 1], [0.2, 0.4, 0.9], {"sample_weight": [1e300, 1e300, 1e-300]}, (5, 5)),
    ],
)
def test_few_rows_and_figures_of_any_shape_are_drawn(y, p, options, size):
    diagram = fastece.reliability_diagram(y, p, n_bins=4, **options)
    for span in (PLAIN, logit_range([diagram.drawing()])):
        figure = Figure(figsize=size)
        draw_model(diagram.drawing(), figure.subplots(), span=span)
        figure.draw_without_rendering()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "count", "kind"), [(0.45, 1, "curve"), (0.55, 2, "curve"), (0.55, 2, "diagram")]
)
def test_crowded_scores_get_axes_of_log_odds_beside(share, count, kind):
    n = 1000
    p = np.where(np.arange(n) < share * n, 0.97, 0.6)
    y = np.random.default_rng(0).random(n) < p
    if kind == "diagram":
        ax = fastece.reliability_diagram(y, p).plot(label="net")
    else:
        ax = fastece.reliability_curve(y, p, estimator="ece_bayes").plot(label="net")
    first, *others = ax.figure.axes
    assert first is ax
    assert ax.get_xscale() == "linear"
    assert [other.get_xscale() for other in others] == ["logit"] * (count - 1)
    for other in others:
        assert other.get_xlabel().endswith("(log odds)")
        assert not other.patches  # heights mean nothing there
        low, high = other.get_xlim()
        assert 0 < low < 0.6 < 0.97 < high < 1
    ax.figure.draw_without_rendering()


def test_rates_of_0_and_1_lie_at_the_ends_of_log_odds(axes):
    p = np.repeat([0.001, 0.03, 0.97, 1.0], 50)
    diagram = fastece.reliability_diagram(p > 0.5, p, n_bins=50)
    span = logit_range([diagram.drawing()])
    draw_model(diagram.drawing(), axes, span=span)
    (points,) = points_of(axes)
    assert points.get_offsets()[:, 1].tolist() == [span.low] * 2 + [span.high] * 2
    assert 1e-4 <= span.low < 0.001
    assert 0.97 < span.high <= 1 - 1e-4
    axes.figure.draw_without_rendering()


# --- small multiples ------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "kind"), [(1, "curves"), (5, "diagrams"), (100, "curves")])
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
    classes = [ax.get_title().partition(",")[0] for ax in panels]
    assert classes == [f"class {k}" for k in (range(n) if n <= 12 else range(99, 87, -1))]
    title = "" if n <= 12 else "the 12 of 100 classes with the largest errors"
    assert figure.get_suptitle() == title
    entries = legend_of(figure)
    assert len(entries) == len(set(entries))
    assert (MEDIAN in entries) == (kind == "curves" and n > 1)
    assert all(ax.get_legend() is None for ax in panels)
    columns = best_columns(len(panels))
    have_xlabel = [bool(ax.get_xlabel()) for ax in panels]
    assert have_xlabel == [k >= len(panels) - columns for k in range(len(panels))]
    have_ylabel = [bool(ax.get_ylabel()) for ax in panels]
    assert have_ylabel == [k % columns == 0 for k in range(len(panels))]


@pytest.mark.slow
def test_nothing_of_the_small_multiples_is_cut_off():
    n = 6
    names = [f"class {k} ('{'very ' * k}long name')" for k in range(n)]
    figure = plot_classes([make_curve(500, name) for name in names])
    for _ in range(2):
        figure.draw_without_rendering()
    for part in (*figure.axes, *figure.legends):
        box = part.get_tightbbox()
        assert box.x0 >= figure.bbox.x0 - 1
        assert box.x1 <= figure.bbox.x1 + 1
        assert box.y0 >= figure.bbox.y0 - 1
        assert box.y1 <= figure.bbox.y1 + 1
    titles = [ax.title.get_window_extent() for ax in figure.axes]
    for i, title in enumerate(titles):
        assert not any(title.overlaps(other) for other in titles[i + 1 :])


def test_panels_have_the_bands_of_their_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0] * 3, 300)
    y = rng.integers(0, 3, 300)
    options = {"setting": "classwise", "n_bins": 5}
    diagrams = fastece.reliability_diagram(y, p, **options)
    bands = fastece.calibration_test(y, p, n_resamples=99, rng=0, **options).band
    figure = plot_classes(diagrams, band=bands, figure=Figure())
    for ax, diagram, band in zip(figure.axes, diagrams, bands, strict=True):
        lows = band.low[diagram.count > 0].tolist()
        assert [bar.get_y() for bar in ax.patches[: len(lows)]] == lows
    assert "95 % if calibrated" in legend_of(figure)
    with pytest.raises(ValueError, match=r"results: must have the same .* got \[2, 3\]"):
        plot_classes(diagrams[:2], band=bands, figure=Figure())


@pytest.mark.slow
def test_panels_of_two_models(diagram):
    other = replace(diagram, value=0.5)
    figure = plot_classes({"a$": [diagram] * 13, "b": [*[diagram] * 12, other]}, figure=Figure())
    assert all(len(models_of(ax)) == 2 for ax in figure.axes)
    assert figure.axes[0].get_title() == f"binary, {diagram.value:.4f}, 0.5000"
    assert [name for name in legend_of(figure) if name in ("a$", "b")] == ["a$", "b"]
    with pytest.raises(ValueError, match="results: must have the same classes"):
        plot_classes({"a": [diagram], "b": [diagram] * 2}, figure=Figure())


@pytest.mark.slow
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


@pytest.mark.slow
def test_classes_without_a_value_come_last(diagram):
    values = [np.nan, *np.linspace(0.1, 0.2, 12)]
    results = [replace(diagram, value=x, setting=f"class {k}") for k, x in enumerate(values)]
    figure = plot_classes(results, figure=Figure())
    assert [ax.get_title() for ax in figure.axes][:2] == ["class 12, 0.2000", "class 11, 0.1909"]
    assert not any("class 0," in ax.get_title() for ax in figure.axes)


# --- matplotlib -----------------------------------------------------------------------------

DRAWN = (
    "from matplotlib.figure import Figure; from fastece.display import plot_classes;"
    "d = fastece.reliability_diagram([0, 1], [0.2, 0.7]);"
    "d.plot(Figure().subplots()); plot_classes([d, d], figure=Figure());"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "unused"),
    [("fastece.display.plot_classes;", {"matplotlib", "numba"}), (DRAWN, {"matplotlib.pyplot"})],
)
def test_no_more_of_matplotlib_is_imported_than_is_used(code, unused):
    code = f"import sys, fastece; {code} print({unused!r}.isdisjoint(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    "draw", [lambda diagram: diagram.plot(), lambda diagram: plot_classes([diagram])]
)
def test_without_matplotlib_the_error_names_what_to_install(diagram, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'fastece\[plot\]'"):
        draw(diagram)
