"""`reliability_plot` draws the numbers of `estimate`, `reliability_curve` and the diagram."""

import io

import numpy as np
import pytest

import fastece
from fastece import reliability_plot
from fastece.display.marks import is_model
from fastece.reliability.plot import consistency_band, isotonic_curve
from helpers.samples import sample_of

pytest.importorskip("matplotlib")
Figure = pytest.importorskip("matplotlib.figure").Figure
isotonic_regression = pytest.importorskip("scipy.optimize").isotonic_regression

RNG = np.random.default_rng(0)
P = RNG.beta(2, 1.5, 600)
Y = RNG.random(600) < P**1.5
Q = RNG.dirichlet([0.5] * 3, 300)
LABEL = np.array([RNG.choice(3, p=row) for row in Q])


@pytest.fixture
def ax():
    return Figure(figsize=(3.3, 4.1), layout="constrained").subplots()


def model_lines(ax):
    return [line for line in ax.get_lines() if is_model(line)]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.slow
def test_numbers_equal_those_of_other_functions(ax):
    assert reliability_plot(Y, P, ax=ax) is ax
    estimate = fastece.estimate(Y, P)
    curve = fastece.reliability_curve(Y, P)
    (line,) = model_lines(ax)
    assert line.get_xdata().tolist() == curve.score.tolist()
    assert line.get_ydata().tolist() == curve.probability.clip(0, 1).tolist()
    band = ax.collections[-1].get_paths()[0].vertices
    assert (band.min(), band.max()) == pytest.approx((0, 1), abs=0.02)
    diagram = fastece.reliability_diagram(Y, P, estimator="ece_a", n_bins=10)
    points = ax.collections[0].get_offsets().T
    assert points.tolist() == [diagram.score.tolist(), diagram.frequency.tolist()]
    low, high = estimate.confidence_interval
    error = f"Bayesian ECE {estimate.value:.3f}\n(95 % CI {low:.3f} to {high:.3f})"
    assert legend_of(ax) == ["calibrated", error, "95 % CI of the curve"]
    (below,) = ax.child_axes
    (bars,) = below.patches
    assert bars.get_data().values.sum() == pytest.approx(1)
    assert ax.get_title() == "Reliability diagram"
    assert (below.get_xlabel(), ax.get_ylabel()) == ("Predicted probability", "Observed frequency")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "options", "width"), [((LABEL, Q), {}, 5.5), ((Y, P), {"zoom": 0.5}, 3.3)]
)
def test_letters_have_7_points_and_nothing_is_cut(data, options, width):
    figure = Figure(figsize=(width, 1.2 * width), layout="constrained")
    ax = reliability_plot(*data, ax=figure.subplots(), **options)
    figure.savefig(io.BytesIO(), format="png")
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= width
    assert box.y1 <= 1.2 * width
    below = ax.child_axes[0]
    texts = [*ax.get_yticklabels(), *below.get_xticklabels(), *ax.get_legend().get_texts()]
    assert {text.get_fontsize() for text in texts} == {7.0}


@pytest.mark.slow
def test_top_labels_and_classes_have_their_words(ax):
    reliability_plot(LABEL, Q, ax=ax, curve="none")
    assert (ax.child_axes[0].get_xlabel(), ax.get_ylabel()) == ("Confidence", "Accuracy")
    assert len(legend_of(ax)) == 2
    ax.figure.clear()
    ax = reliability_plot(LABEL, Q, setting=2, ax=ax.figure.subplots())
    assert ax.get_title() == "Reliability diagram, class 2"


@pytest.mark.slow
def test_models_are_named_and_their_scores_have_one_scale(ax):
    reliability_plot(Y, {"before": P, "_after": P**1.5}, ax=ax)
    _, before, after, _ = legend_of(ax)
    assert after.splitlines()[1].startswith("(95 % CI ")
    assert before.startswith("before: Bayesian ECE ")
    assert after.startswith("'_after': Bayesian ECE ")
    first, second = ax.child_axes[0].patches
    for bars, p in ((first, P), (second, P**1.5)):
        share, edges, _ = bars.get_data()
        assert share.tolist() == (np.histogram(p, edges)[0] / P.size).tolist()
    assert len({line.get_linestyle() for line in model_lines(ax)}) == 2


@pytest.mark.slow
def test_rare_events_have_axes_that_end_where_the_scores_do(ax):
    p = P / 5
    reliability_plot(RNG.random(600) < p, p, ax=ax)
    assert ax.get_xlim() == ax.get_ylim() == (0, pytest.approx(1.1 * p.max()))
    curve = fastece.reliability_curve(RNG.random(600) < p, p)
    assert curve.plot(Figure().subplots(), zoom=0.7).get_xlim() == (0, 0.7)
    assert curve.plot(Figure().subplots()).get_xlim()[1] < 0.3


@pytest.mark.slow
def test_the_isotonic_curve_equals_scipy(ax):
    p = P.round(2)
    reliability_plot(Y, p, curve="isotonic", ax=ax)
    assert legend_of(ax)[2] == "95 % of calibrated models"
    score, place, count = np.unique(p, return_inverse=True, return_counts=True)
    expected = isotonic_regression(np.bincount(place, Y) / count, weights=count).x
    (line,) = model_lines(ax)
    assert np.interp(score, *line.get_data()) == pytest.approx(expected)


@pytest.mark.slow
def test_the_consistency_band_holds_fits_of_calibrated_models():
    # 100 samples: 95 % is known to 2.2 points, so that 88 is off by 3.2 of these.
    held = np.zeros(3)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        s = np.sort(rng.integers(1, 20, 200) / 20)
        ordered = sample_of(s, rng.random(200) < s)
        band = consistency_band(ordered, 0.95, seed)
        fit = np.interp(band.score, *isotonic_curve(ordered))
        is_inside = (fit >= band.low - 1e-12) & (fit <= band.high + 1e-12)
        held += is_inside[np.searchsorted(band.score, [0.25, 0.5, 0.75])]
    assert (held / 100 > 0.88).all()
    assert held.mean() / 100 < 0.995


@pytest.mark.slow
def test_a_band_depends_on_its_seed_alone_and_weights_count():
    s = np.sort(P)
    one, again, other = (consistency_band(sample_of(s, Y), 0.9, k) for k in (1, 1, 2))
    assert np.array_equal(one.low, again.low)
    assert np.array_equal(one.high, again.high)
    assert not np.array_equal(one.low, other.low)
    weight = np.where(np.arange(600) % 3, 1e-9, 1.0)
    of_few_rows = consistency_band(sample_of(s, Y, weight), 0.9, 1)
    assert np.mean(of_few_rows.high - of_few_rows.low) > 1.2 * np.mean(one.high - one.low)


@pytest.mark.slow
def test_streams_groups_and_weights_can_be_drawn(ax):
    reliability_plot(fastece.Accumulator().update(Y, P), ax=ax)
    for options in ({"groups": np.arange(600) // 3}, {"sample_weight": P + 0.1}):
        ax.figure.clear()
        ax = reliability_plot(Y, P, ax=ax.figure.subplots(), **options)
        assert len(model_lines(ax)) == 1


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ((Y, {}), {}, "y_prob: must have at least one model"),
        ((LABEL, Q), {"setting": "classwise"}, "setting: must be that of one problem"),
        ((Y, P), {"curve": "loess"}, "curve: must be a known name"),
        ((Y, P), {"zoom": 2.0}, "zoom: must be a number from 1e-06 to 1"),
        ((Y, P), {"bins": 0}, "n_bins: "),
        ((Y, P), {"curve": "isotonic", "groups": np.arange(600) // 3}, "curve: goes without"),
    ],
)  # fmt: skip
def test_bad_input(data, options, message, ax):
    with pytest.raises(ValueError, match=message):
        reliability_plot(*data, ax=ax, **options)


# --- groups of rows -----------------------------------------------------------------------------


def draw_sexes(n=400):
    """Draw outcomes and risks of two groups of rows, of which one has higher risks."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["women", "men"], n)
    prob = np.where(sex == "men", rng.beta(2, 5, n), rng.beta(5, 2, n))
    return (rng.random(n) < prob).astype(int), prob, sex


@pytest.mark.slow
def test_groups_of_rows_have_the_curves_of_their_rows():
    y, p, sex = draw_sexes()
    ax = reliability_plot(y, p, by=sex, ax=Figure().subplots())
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    lines = {line.get_label(): line for line in ax.get_lines()}
    for group in ("men", "women"):
        rows = sex == group
        alone = reliability_plot(y[rows], {group: p[rows]}, ax=Figure().subplots())
        (name,) = [x.get_text() for x in alone.get_legend().get_texts() if group in x.get_text()]
        assert name in names
        (line,) = [x for x in alone.get_lines() if x.get_label() == name]
        np.testing.assert_array_equal(lines[name].get_ydata(), line.get_ydata())


@pytest.mark.slow
def test_groups_of_dependent_rows_keep_their_groups():
    y, p, sex = draw_sexes()
    patients = np.arange(y.size) // 4
    ax = reliability_plot(y, p, by=sex, groups=patients, ax=Figure().subplots())
    rows = sex == "men"
    alone = reliability_plot(y[rows], p[rows], groups=patients[rows], ax=Figure().subplots())
    text = alone.get_legend().get_texts()[1].get_text()
    assert f"men: {text}" in [x.get_text() for x in ax.get_legend().get_texts()]


def test_a_second_picture_shares_the_scores_below():
    y, p, sex = draw_sexes()
    ax = Figure().subplots()
    for group in ("men", "women"):
        reliability_plot(y[sex == group], {group: p[sex == group]}, ax=ax)
    (below,) = ax.child_axes
    heights = [patch.get_data().values.max() for patch in below.patches]
    assert len(heights) == 2
    assert below.get_ylim()[1] >= max(heights)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sum("men: " in label for label in labels) == 2


def test_the_error_is_that_of_the_curve():
    with pytest.raises(TypeError, match="estimator: is fixed in reliability_plot"):
        reliability_plot(Y, P, estimator="ece")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": np.arange(400) % 5}, "by: must have at most 4 groups, got 5"),
        ({"by": np.arange(3)}, "by: must have shape"),
        ({"by": np.arange(400) % 2, "y_prob": {"a": np.full(400, 0.5)}}, "by: goes with one model"),
    ],
)
def test_bad_groups_are_refused(change, message):
    y, p, _ = draw_sexes()
    with pytest.raises(ValueError, match=message):
        reliability_plot(y, **{"y_prob": p, **change})


def test_errors_and_results_print_no_data():
    y, p, _ = draw_sexes()
    with pytest.raises(TypeError, match=r"y_true: must be an array, no dict, got a dict of 'a'$"):
        reliability_plot({"a": y}, p)
    band = fastece.calibration_test(y, p, estimator="ece", n_resamples=49).band
    assert repr(band) == "ConsistencyBand(confidence_level=0.95)"


# --- attributes diagram -------------------------------------------------------------------------


def test_attributes_are_lines_through_the_base_rate():
    diagram = fastece.reliability_diagram(Y, P, n_bins=10)
    ax = diagram.plot(Figure().subplots(), attributes=True)
    lines = {line.get_label(): line for line in ax.get_lines()}
    base_rate = Y.mean()
    assert lines["no resolution"].get_ydata() == pytest.approx([base_rate, base_rate])
    no_skill = lines["no skill"]
    assert no_skill.get_ydata() == pytest.approx((no_skill.get_xdata() + base_rate) / 2)
    assert "adds to the Brier skill" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert ax.get_xlim() == (0, 1)


def test_points_in_the_shaded_area_add_to_the_brier_skill():
    diagram = fastece.reliability_diagram(Y, P, n_bins=10)
    ax = diagram.plot(Figure().subplots(), attributes=True)
    base_rate = Y.mean()
    areas = [x.get_paths()[0] for x in ax.collections if x.get_zorder() == 0]
    assert len(areas) == 2
    for score, frequency in np.random.default_rng(0).random((200, 2)):
        is_shaded = any(area.contains_point((score, frequency)) for area in areas)
        adds = (frequency - base_rate) ** 2 > (frequency - score) ** 2
        assert is_shaded == adds


def test_a_plot_has_attributes_only_if_asked():
    diagram = fastece.reliability_diagram(Y, P, n_bins=10)
    plain = [line.get_label() for line in diagram.plot(Figure().subplots()).get_lines()]
    assert "no skill" not in plain
    with pytest.raises(TypeError, match="attributes: must be True or False"):
        diagram.plot(Figure().subplots(), attributes=1)
    ax = diagram.plot(Figure().subplots(), attributes=True, legend=False)
    assert ax.get_legend() is None


def test_a_curve_is_drawn_across_gaps_without_rows_that_are_narrow():
    y = np.arange(200) % 2
    for width, has_gap in ((0.06, False), (0.2, True)):
        s = np.append(np.linspace(0.3, 0.4, 100), np.linspace(0.4 + width, 0.6 + width, 100))
        ax = reliability_plot(y, s, ax=Figure().subplots())
        (band,) = [x for x in ax.collections if "curve" in str(x.get_label())]
        assert (len(band.get_paths()) > 1) == has_gap
        curve = next(x for x in ax.get_lines() if "Bayesian ECE" in str(x.get_label()))
        is_inside = (curve.get_xdata() > 0.3) & (curve.get_xdata() < 0.6)
        assert np.isnan(curve.get_ydata()[is_inside]).any() == has_gap


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: reliability_plot(Y, P, ax=ax),
        lambda ax: fastece.cumulative_plot(Y, P, ax=ax),
        lambda ax: fastece.reliability_diagram(Y, P).plot(ax),
        lambda ax: fastece.reliability_curve(Y, P).plot(ax),
        lambda ax: fastece.slices(Y, P, by=Y).plot(ax),
        lambda ax: fastece.validate(Y, P, n_resamples=0).plot(ax),
        lambda ax: fastece.Monitor().update(Y, P).plot(ax),
        lambda ax: fastece.decisions.risk_coverage(Y, P).plot(ax),
    ],
)
def test_axes_that_are_none_of_matplotlib_are_refused(draw):
    with pytest.raises(TypeError, match="ax: must be Axes of matplotlib, got 3"):
        draw(3)
