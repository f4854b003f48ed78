"""Validation of a risk model, against numbers of other libraries and loops."""

import numpy as np
import pytest
from scipy.optimize import minimize

import fastece
from fastece import NetBenefit, RiskStatistic, validate
from fastece.estimators import losses

# By statsmodels' GLM (offset, profile of the slope by brentq, freq_weights), scikit-learn's
# roc_auc_score and dcurves' dca on `data()`.
GOLDEN = {
    "intercept": -0.6636321476964954,
    "slope": 1.44025273816286,
    "slope_intercept": -0.1738975996800125,
    "slope_ends": [0.9612868955192907, 1.9694692411576653],
    "weighted_slope": 1.4369707330169565,
    "c": 0.7734898278560249,
    "weighted_c": 0.7788762563849069,
    "net_benefit": [0.03888888888888889, 0.006875000000000006, 0.003214285714285718],
}


def data():
    rng = np.random.default_rng(7)
    p = rng.beta(2, 8, 400).round(3).clip(0.001, 0.999)
    return (rng.random(400) < p**1.3).astype(int), p, 1 + np.arange(400) % 3


def test_quantities_are_those_of_other_libraries():
    y, p, w = data()
    found = validate(y, p, thresholds=[0.1, 0.2, 0.3], n_resamples=99)
    for name in ("intercept", "slope", "slope_intercept"):
        assert getattr(found, name).value == pytest.approx(GOLDEN[name], abs=1e-6)
    assert found.slope.confidence_interval == pytest.approx(GOLDEN["slope_ends"], abs=1e-6)
    assert found.c_statistic.value == pytest.approx(GOLDEN["c"], abs=1e-12)
    points = found.net_benefit
    assert [x.model for x in points] == pytest.approx(GOLDEN["net_benefit"], abs=1e-6)
    assert all(x.low <= x.model <= x.high for x in points)
    weighted = validate(y, p, sample_weight=w, n_resamples=0)
    assert weighted.slope.value == pytest.approx(GOLDEN["weighted_slope"], abs=1e-6)
    assert weighted.c_statistic.value == pytest.approx(GOLDEN["weighted_c"], abs=1e-12)


@pytest.mark.slow
def test_each_number_of_the_sentence_has_its_name():
    rng = np.random.default_rng(0)
    logit = rng.normal(-3.1, 1.2, 1000)
    p = 1 / (1 + np.exp(-logit))
    y = rng.random(1000) < 1 / (1 + np.exp(1 - 0.65 * logit))
    found = validate(y, p, event="readmission", n_resamples=0)
    # The rates hardly differ (p = 0.44 for O/E): the small p-value is that of another hypothesis.
    sentence = (
        "6.8 % predicted, 7.4 % observed (O/E 1.09, 95 % CI 0.88 to 1.35); "
        "slope 0.61 (95 % CI 0.39 to 0.82); "
        "joint test of intercept 0 and slope 1: p = 0.00063."
    )
    assert found.oe.p_value == pytest.approx(0.44, abs=0.005)
    assert found.to_dict()["sentence"] == found.sentence == sentence
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert sentence in " ".join(text.split())
    assert "score test of intercept 0 and slope 1 together" in found.methods_text()
    assert found.methods_text().endswith(f"computed with fastece {fastece.__version__}.")
    report = fastece.calibration_report(y, p, event="readmission", n_resamples=0)
    assert sentence in " ".join(str(report).split())
    assert report.to_dict()["validation"]["sentence"] == sentence


@pytest.mark.parametrize(
    ("y", "p", "sentence"),
    [
        # 0.1625 is 0.163 in the table, and no 16.2 % in the sentence.
        ([0], [0.1625], "16.3 % predicted, 0.0 % observed (O/E 0, 95 % CI 0 to 6.00)."),
        ([1], [0.5], "50.0 % predicted, 100.0 % observed (O/E 2.00)."),
        ([0, 1, 0], [0.0, 0.0, 0.0], "0.0 % predicted, 33.3 % observed."),
        (
            [0, 0, 1],
            [0.1, 0.2, 0.8],
            "36.7 % predicted, 33.3 % observed (O/E 0.91, 95 % CI 0.47 to 1.77); "
            "joint test of intercept 0 and slope 1: p = 0.75.",
        ),
    ],
)
def test_the_sentence_leaves_out_what_is_not_defined(y, p, sentence):
    assert validate(y, p, n_resamples=0).sentence == sentence


def test_sums_are_those_of_a_formula():
    y, p, w = data()
    found = validate(y, p, sample_weight=w, n_resamples=0)
    theta = (w @ y) / (w @ p)
    reach = 1.959963984540054 * np.sqrt(np.sum((w * (y - theta * p)) ** 2)) / (w @ y)
    ends = theta * np.exp([-reach, reach])
    assert found.oe.confidence_interval == pytest.approx(ends)
    z = np.sum(w * (y - p) * (1 - 2 * p)) / np.sqrt(np.sum((w * (1 - 2 * p)) ** 2 * p * (1 - p)))
    assert found.spiegelhalter.value == pytest.approx(z)
    rate = np.average(y, weights=w)
    brier = np.average((y - p) ** 2, weights=w)
    assert found.scaled_brier.value == pytest.approx(1 - brier / (rate * (1 - rate)))


def test_the_c_statistic_has_the_interval_of_delong():
    y, p, _ = data()
    found = validate(y, p, n_resamples=0).c_statistic
    wins = (p[y == 1][:, None] > p[y == 0]) + (p[y == 1][:, None] == p[y == 0]) / 2
    events, others = wins.mean(1), wins.mean(0)
    variance = events.var(ddof=1) / events.size + others.var(ddof=1) / others.size
    c = wins.mean()
    middle, reach = np.log(c / (1 - c)), 1.959963984540054 * np.sqrt(variance) / (c * (1 - c))
    ends = 1 / (1 + np.exp([reach - middle, -reach - middle]))
    assert found.confidence_interval == pytest.approx(ends)


def test_groups_of_one_row_are_rows_and_copies_are_not():
    y, p, _ = data()
    plain = validate(y, p, n_resamples=0)
    alone = validate(y, p, n_resamples=0, groups=np.arange(y.size))
    assert alone.slope.to_dict() == plain.slope.to_dict()
    copies = validate(
        np.tile(y, 3), np.tile(p, 3), n_resamples=0, groups=np.tile(np.arange(y.size), 3)
    )
    for name in ("oe", "intercept", "slope", "c_statistic", "brier"):
        one, three = getattr(plain, name), getattr(copies, name)
        assert three.value == pytest.approx(one.value, abs=1e-6)
        width = np.ptp(three.confidence_interval) / np.ptp(one.confidence_interval)
        assert 0.8 < width < 1.25


@pytest.mark.parametrize(
    ("y", "p", "slope", "note"),
    [
        ([0, 0, 0], [0.1, 0.2, 0.3], np.nan, "All outcomes"),
        ([1, 1], [0.1, 1.0], np.nan, "All outcomes"),
        ([0, 1], [0.3, 0.3], np.nan, "All predictions"),
        ([0, 0, 1], [0.1, 0.2, 0.8], np.inf, "A threshold"),
        ([1, 1, 0], [0.1, 0.2, 0.8], -np.inf, "A threshold"),
        ([1], [0.5], np.nan, "All outcomes"),
        ([0, 1, 0], [0.0, 0.0, 0.0], np.nan, "All predictions"),
        ([0, 1], [0.0, 1.0], np.inf, "A threshold"),
        (
            [0, 1, 0, 1],
            [0.1, 0.0, 0.3, 0.0],
            -np.inf,
            "The outcome had the predicted probability 0 in row 1 and 1",
        ),
    ],
)
def test_degenerate_rows_have_clear_results(y, p, slope, note):
    found = validate(y, p, n_resamples=9)
    assert found.slope.value == pytest.approx(slope, nan_ok=True)
    assert any(x.startswith(note) for x in found.notes)
    assert note in str(found).replace("\n", " ")
    assert found.methods_text()
    found.to_dict()


def test_no_event_has_the_exact_upper_end_of_its_ratio():
    p = np.linspace(0.01, 0.05, 100)
    y = np.zeros(100)
    expected = 100 * (1 - 0.025**0.01) / p.sum()  # Clopper and Pearson
    ratio = validate(y, p, n_resamples=0).oe
    assert (ratio.value, ratio.confidence_interval.low) == (0, 0)
    assert ratio.confidence_interval.high == pytest.approx(expected, rel=1e-12)
    for options in ({"sample_weight": np.full(100, 7.0)}, {"groups": np.arange(100)}):
        other = validate(y, p, n_resamples=0, **options).oe
        assert other.confidence_interval.high == pytest.approx(expected, rel=1e-12)
    counted = validate(y, p, n_resamples=0, counts=np.full(100, 10**6)).oe
    poisson = -np.log(0.025) / (1e6 * p.sum())
    assert counted.confidence_interval.high == pytest.approx(poisson, rel=1e-6)
    groups = validate(y, p, n_resamples=0, groups=np.arange(100) // 10).oe
    ten = 100 * (1 - 0.025**0.1) / p.sum()
    assert groups.confidence_interval.high == pytest.approx(ten, rel=1e-12)


def test_weighted_rows_without_an_event_may_have_no_larger_risks():
    rng = np.random.default_rng(0)
    weight = rng.gamma(1.0, 1.0, 30)
    p = np.full(30, 0.1)
    ratio = validate(np.zeros(30), p, sample_weight=weight, n_resamples=0).oe
    # The largest mean of risks for which no event has the probability 0.025.
    largest = minimize(
        lambda shares: -weight @ (1 - 0.025**shares), np.full(30, 1 / 30), method="SLSQP",
        bounds=[(0, 1)] * 30, constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
        options={"maxiter": 1000, "ftol": 1e-12},
    )  # fmt: skip
    assert ratio.confidence_interval.high == pytest.approx(-largest.fun / (p @ weight), rel=1e-5)


def test_statistics_are_those_of_the_validation():
    y, p, w = data()
    found = validate(y, p, sample_weight=w, n_resamples=0)
    names = {"calibration_intercept": "intercept", "calibration_slope": "slope"}
    for name in fastece.estimators.risk.QUANTITIES:
        value = fastece.ece(y, p, estimator=name, sample_weight=w)
        assert value == pytest.approx(getattr(found, names.get(name, name)).value)
    drawn = fastece.bootstrap(y, p, estimator=["calibration_slope", "oe"], n_resamples=49)
    assert drawn["calibration_slope"].confidence_interval.low < found.slope.value + 1
    other = fastece.compare(y, p, p**2, estimator=[NetBenefit(0.2), "c_statistic"], n_resamples=49)
    assert other["c_statistic"].value == 0


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="thresholds: must be greater than 0"):
        validate([0, 1], [0.2, 0.4], thresholds=[0.1, 1.0])
    with pytest.raises(TypeError, match="thresholds: must be a list"):
        validate([0, 1], [0.2, 0.4], thresholds=0.1)
    with pytest.raises(TypeError, match="event: must be a name"):
        validate([0, 1], [0.2, 0.4], event=1)
    with pytest.raises(ValueError, match="setting: must be binary or a class"):
        validate([0, 1], [[0.2, 0.8], [0.4, 0.6]])
    with pytest.raises(ValueError, match="quantity"):
        RiskStatistic("slope")
    with pytest.raises(ValueError, match="threshold: must be greater"):
        NetBenefit(1.0)


def test_the_picture_has_the_curve_the_statistics_and_every_row():
    y, p, _ = data()
    found = validate(y, p, event="readmission", n_resamples=0)
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    ax = found.plot(figure.subplots())
    (below,) = ax.child_axes
    heights = [patch.get_data().values for patch in below.patches]
    assert [np.sign(one).sum() for one in heights] == [
        -np.count_nonzero(heights[0]),
        np.count_nonzero(heights[1]),
    ]
    assert found._risks.sum(axis=1).tolist() == [np.sum(y == 0), np.sum(y == 1)]
    (text,) = ax.texts
    assert [line.split()[0] for line in text.get_text().splitlines()] == [
        "O/E",
        "intercept",
        "slope",
        "C",
        "ICI",
    ]
    assert f"{found.oe.value:.2f}" in text.get_text()
    line = next(line for line in ax.get_lines() if line.get_label() == "Bayesian curve")
    curve = fastece.reliability_curve(y, p)
    at = slice(None, None, 50)
    assert line.get_ydata()[at] == pytest.approx(curve(line.get_xdata()[at]), abs=0.02)
    assert below.get_xlabel() == "predicted probability of readmission"


@pytest.mark.slow
def test_reports_of_one_event_have_the_validation():
    y, p, _ = data()
    found = fastece.calibration_report(y, p, n_resamples=19, estimator=["ece"])
    alone = validate(y, p, n_resamples=19)
    assert found.to_dict()["validation"] == alone.to_dict()
    assert "Validation of the predicted probability of the event" in str(found)
    vectors = np.column_stack([1 - p, p])
    named = fastece.calibration_report(y, p, n_resamples=19, estimator=["ece"], event="default")
    assert (named.event, named.validation.event) == ("default", "default")
    with pytest.raises(TypeError, match=r"^event: must be a name"):
        fastece.calibration_report(y, p, event=1)
    for setting in ("confidence", "classwise"):
        options = {"n_resamples": 19, "estimator": ["ece"], "setting": setting}
        assert fastece.calibration_report(y, vectors, **options).validation is None
    pytest.importorskip("matplotlib")
    assert ': validation" src=' in found.to_html()


def draw_logits(n=400):
    """Draw outcomes and logits of which the sigmoid makes many equal scores, next to 1 and at 0."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=n)
    z = rng.choice([40.0, -760.0], n) + 9 * noise
    return (rng.random(n) < 1 / (1 + np.exp(-noise))).astype(int), z


def share_of_pairs(y, z):
    """Compute the area under the ROC curve by all pairs."""
    difference = z[y == 1][:, None] - z[y == 0]
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


@pytest.mark.filterwarnings("ignore:.*do the rows belong together")
@pytest.mark.parametrize("columns", ["one", "two", "class 2 of 3"])
def test_c_from_logits_ranks_rows_by_their_logits(columns):
    y, z = draw_logits()
    zeros = np.zeros(z.size)
    vectors = {
        "one": (z, "binary"),
        "two": (np.column_stack([zeros, z]), 1),
        "class 2 of 3": (np.column_stack([zeros, zeros - np.inf, z]), 2),
    }
    logits, setting = vectors[columns]
    labels = 2 * y if setting == 2 else y
    options = {"setting": setting, "from_logits": True}
    expected = share_of_pairs(y, z)
    scores = 1 / (1 + np.exp(-np.maximum(z, -700)))
    assert abs(share_of_pairs(y, scores) - expected) > 1e-3
    value = fastece.ece(labels, logits, estimator="c_statistic", **options)
    assert value == pytest.approx(expected, abs=1e-12)
    validation = fastece.validate(labels, logits, n_resamples=0, **options)
    assert validation.c_statistic.value == pytest.approx(expected, abs=1e-12)
    drawn = fastece.bootstrap(labels, logits, estimator="c_statistic", n_resamples=9, **options)
    assert np.all(drawn.bootstrap_distribution != 0.5)
    flipped = fastece.ece(y, z, estimator="c_statistic", setting=0, from_logits=True)
    assert flipped == pytest.approx(expected, abs=1e-12)


def test_areas_from_logits_rank_rows_by_their_logits():
    y, z = draw_logits()
    _, rank = np.unique(z, return_inverse=True)
    for area in ("aurc", "e_aurc", "augrc"):
        expected = fastece.ece(y, rank / z.size, estimator=area)
        value = fastece.ece(y, z, estimator=area, from_logits=True)
        assert value == pytest.approx(expected, abs=1e-12)
        margins = np.abs(z)
        right = (z > 0) == (y == 1)
        _, rank_of_margin = np.unique(margins, return_inverse=True)
        expected = fastece.ece(right, rank_of_margin / z.size, estimator=area)
        options = {"setting": "confidence", "from_logits": True}
        assert fastece.ece(y, z, estimator=area, **options) == pytest.approx(expected, abs=1e-12)


def test_net_benefits_in_parts_equal_those_of_rows_with_weights_of_one():
    rng = np.random.default_rng(5)
    p = rng.random(2 * losses.ROWS_OF_SUM + 77)
    y = rng.random(p.size) < p
    options = {"estimator": fastece.NetBenefit(0.3), "n_resamples": 40, "rng": 0}
    plain = fastece.bootstrap(y, p, **options)
    weighted = fastece.bootstrap(y, p, sample_weight=np.ones(p.size), **options)
    expected = weighted.bootstrap_distribution
    assert np.allclose(plain.bootstrap_distribution, expected, rtol=0, atol=1e-12)
    drawn = {**options, "size": 1000}
    plain = fastece.bootstrap(y, p, **drawn)
    weighted = fastece.bootstrap(y, p, sample_weight=np.ones(p.size), **drawn)
    expected = weighted.bootstrap_distribution
    assert np.allclose(plain.bootstrap_distribution, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [3, 30, 300, 2000])
@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_distances_from_the_curve_agree_with_each_other(n, exponent):
    """A mean is at most the sum of its quantiles with their shares."""
    rng = np.random.default_rng(n)
    p = rng.beta(2, 5, n)
    found = validate(rng.random(n) < p**exponent, p, n_resamples=0)
    distances = found.ici, found.e50, found.e90, found.emax
    ici, e50, e90, emax = (distance.value for distance in distances)
    assert e50 <= e90 <= emax
    assert ici <= 0.5 * e50 + 0.4 * e90 + 0.1 * emax + 1e-12
    lows = {distance.confidence_interval.low > 0 for distance in distances}
    assert len(lows) == 1  # one answer to whether the model is calibrated
    for distance in distances:
        low, high = distance.confidence_interval
        assert 0 <= low <= distance.value <= high <= 1
