"""Functions that take an accumulator in place of two arrays: their answers and refusals."""

import numpy as np
import pytest

import fastece
from fastece import Accumulator
from helpers.stream_cases import binary_data, class_data, state_of, weights_of

RNG = np.random.default_rng(0)
P = RNG.random(3000)
Y = (RNG.random(3000) < P**1.3).astype(int)
PLAIN = Accumulator().update(Y, P)
VECTORS = Accumulator(3).update(*class_data(500, 3))
CLASSES = Accumulator(3, setting="classwise").update(*class_data(500, 3))


def near(got, expected, slack):
    close = pytest.approx(np.asarray(expected), rel=slack, abs=min(slack, 1e-4), nan_ok=True)
    assert np.asarray(got) == close


def of(function, *names, **options):
    """A call that gives the result, or its attributes of these names."""

    def call(*data, **weights):
        result = function(*data, **weights, **options)
        return [getattr(result, name) for name in names] if names else result

    return call


def curve(*data, **options):
    """A curve on a grid away from its ends."""
    return fastece.reliability_curve(*data, **options)(np.linspace(0.2, 0.8, 31))


# The relative error that each answer may have; the absolute error is at most 1e-4. A draw of a
# curve in pieces jumps from state to state, so its quantiles differ by as much as their own noise.
PIECES = 6e-2
ANSWERS = {
    "ece": (of(fastece.ece), 1e-12),
    "mce": (of(fastece.mce), 1e-11),
    "brier_score": (of(fastece.brier_score), 1e-12),
    "ranked_probability_score": (of(fastece.ranked_probability_score), 1e-12),
    "sharpness": (of(fastece.sharpness), 1e-12),
    "accuracy": (of(fastece.accuracy), 1e-12),
    "entropy": (of(fastece.entropy), 1e-4),
    "ece_bayes": (of(fastece.ece, estimator="ece_bayes"), 5e-3),
    "ece_debiased": (of(fastece.ece, estimator="ece_debiased"), 1e-7),
    "smooth_ece": (of(fastece.ece, estimator="smooth_ece"), 1e-3),
    "mmce": (of(fastece.ece, estimator="mmce"), 1e-3),
    "ecce_r": (of(fastece.ece, estimator="ecce_r"), 1e-2),
    "closed p": (of(fastece.CumulativeError("max").asymptotic_p_value), 2e-2),
    "estimate": (of(fastece.estimate, "confidence_interval"), PIECES),
    "80 %": (of(fastece.estimate, "confidence_interval", confidence_level=0.8), PIECES),
    "gap": (of(fastece.direction, "mean_gap_interval", n_resamples=0), 1e-7),
    "over": (of(fastece.direction, "over", n_resamples=0), 1e-12),
    "density": (of(fastece.direction, "under", estimator="ece_kde", n_resamples=0), 2e-3),
    "curve parts": (of(fastece.direction, "over_interval", estimator="ece_bayes"), PIECES),
    "diagram": (of(fastece.reliability_diagram, "frequency", "score"), 1e-10),
    "curve": (of(curve), 1e-2),
    "density curve": (of(curve, estimator="ece_kde", bandwidth=0.05), 1e-2),
    "band": (lambda *data, **w: fastece.reliability_curve(*data, **w).interval(0.6), 3e-2),
    "value of a curve": (of(fastece.reliability_curve, "value", "n"), 5e-3),
    "decomposition": (of(fastece.brier_decomposition, "score", "reliability", "within_variance",
                         "within_covariance"), 1e-12),
    "corp": (of(fastece.score_decomposition, "miscalibration"), 1e-3),
    "bandwidths": (of(fastece.KDE().bandwidth_sweep, bandwidths=[0.05, 0.1]), 2e-3),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_an_accumulator_are_near_the_rows(name):
    function, slack = ANSWERS[name]
    number = list(ANSWERS).index(name) % 3
    y, p = binary_data(("spread", "sharp", "bimodal")[number], 2000)
    weight = weights_of("random", 2000) if number == 2 else None
    near(function(state_of(y, p, weight)), function(y, p, sample_weight=weight), slack)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "weighted"), [("sharp", False), ("bimodal", True)])
def test_p_values_and_intervals_of_a_stream_are_near_the_rows(kind, weighted):
    y, p = binary_data(kind, 2000)
    weight = weights_of("random", 2000) if weighted else None
    state = state_of(y, p, weight)
    of_stream = fastece.calibration_test(state).components
    of_rows = fastece.calibration_test(y, p, sample_weight=weight).components
    near([x.statistic for x in of_stream], [x.statistic for x in of_rows], 2e-2)
    # With 1999 draws a p-value has a standard error of 0.011, and one in a thousand is 0.06 off.
    np.testing.assert_allclose(
        [x.p_value for x in of_stream], [x.p_value for x in of_rows], atol=0.06
    )
    for estimator in ("ece", "ece_ac", "ece_c"):
        interval = fastece.estimate(state, estimator=estimator).confidence_interval
        result = fastece.estimate(y, p, estimator=estimator, sample_weight=weight)
        expected = result.confidence_interval
        np.testing.assert_allclose(interval, expected, atol=0.1 * (expected.high - expected.low))


@pytest.mark.slow
def test_classes_of_a_stream_are_tested_one_by_one():
    y, p = class_data(500, 3)
    result = fastece.calibration_test(CLASSES, average=None)
    expected = fastece.calibration_test(y, p, setting="classwise", average=None)
    np.testing.assert_allclose(result.p_value, expected.p_value, atol=0.06)


def test_a_sweep_is_near_the_rows_on_a_grid_coarser_than_the_cells():
    y, p = binary_data("sharp", 2000)
    p = p.round(3)
    near(
        fastece.ece(state_of(y, p), estimator="ece_sweep"),
        fastece.ece(y, p, estimator="ece_sweep"),
        2e-3,
    )


def test_the_setting_of_the_accumulator_holds():
    y, p = class_data(500, 3)
    assert fastece.ece(CLASSES, setting="classwise") == fastece.ece(CLASSES)
    near(fastece.ece(CLASSES, average=None), fastece.sce(y, p, average=None), 1e-12)
    near(fastece.sce(CLASSES), fastece.sce(y, p), 1e-12)
    near(fastece.brier_score(VECTORS), fastece.brier_score(y, p), 1e-12)
    for function in (fastece.sce, fastece.ace):
        with pytest.raises(ValueError, match=r"setting: must be 'auto'.*got 'classwise'"):
            function(VECTORS)
    for setting in ("binary", 1, None):
        with pytest.raises(ValueError, match="setting: must be 'classwise'"):
            fastece.ece(CLASSES, setting=setting)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_prob": P}, "y_prob: goes with arrays"),
        ({"labels": ["a", "b"]}, "labels: goes with arrays"),
        ({"sample_weight": np.ones(3000)}, "sample_weight: goes with arrays"),
        ({"from_logits": True}, "from_logits: goes with arrays"),
        ({"pos_label": 1}, "pos_label: goes with arrays"),
        ({"counts": np.ones(3000, int)}, "counts: goes with arrays"),
        ({"soft": True}, "soft: goes with arrays"),
        ({"votes": np.ones(3000, int)}, "votes: goes with arrays"),
        ({"percent": True}, "percent: goes with arrays"),
        ({"class_axis": 1}, "class_axis: goes with arrays"),
    ],
)
def test_options_of_arrays_are_refused_by_name(options, message):
    for function in (fastece.ece, fastece.reliability_diagram, fastece.reliability_curve,
                     fastece.estimate, fastece.brier_decomposition):  # fmt: skip
        with pytest.raises(TypeError, match=message):
            function(PLAIN, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fastece.log_loss(PLAIN), "estimator: LogLoss.* needs every row by itself"),
        (lambda: fastece.ece(PLAIN, closed="left"), "closed='left'.* needs every row by itself"),
        (lambda: fastece.canonical_error(VECTORS), "DirichletKDE.* needs every row by itself"),
        (lambda: fastece.entropy(VECTORS), r"Entropy\(\) needs whole class vectors"),
        (lambda: fastece.brier_decomposition(VECTORS), "needs whole class vectors"),
        (lambda: fastece.score_decomposition(PLAIN, score="log"), "LogLoss.* needs every row"),
        (lambda: fastece.estimate(PLAIN, estimator="ece_kde"), "the interval of KDE.* needs every"),
        (lambda: fastece.estimate(CLASSES), "average: the interval of a mean over classes"),
        (lambda: fastece.direction(PLAIN, estimator="ece_kde"), "n_resamples: the interval of KDE"),
        (lambda: fastece.calibration_test(PLAIN, estimator="mmce"), "calibration_test needs every"),
        (lambda: fastece.calibration_test(CLASSES), "average: the test of a mean over classes"),
        (lambda: fastece.compare(PLAIN, None, None), "compare needs every row by itself"),
        (lambda: fastece.slices(PLAIN, None, by=Y), "needs every row by itself"),
        (lambda: fastece.bootstrap(PLAIN), "n_replicates: there are none"),
        (lambda: fastece.bootstrap(PLAIN, rng=0), "rng: goes with arrays"),
        (lambda: fastece.bootstrap(PLAIN, n_resamples=99), "n_resamples: goes with arrays"),
        (lambda: fastece.bootstrap(PLAIN, groups=Y), "groups: goes with arrays"),
        (lambda: fastece.reliability_curve(PLAIN, estimator="ece_kde", n_resamples=9),
         "n_resamples: a band of resamples needs every row"),
        (lambda: fastece.ece(Accumulator()), "has no rows"),
        (lambda: fastece.mce(PLAIN, closed="left"), "closed='left'.* needs every row by itself"),
        (
            lambda: fastece.reliability_curve(PLAIN, estimator="ece"),
            "estimator: a reliability curve needs",
        ),
        (
            lambda: fastece.reliability_diagram(PLAIN, estimator="ece_kde"),
            "estimator: a reliability diagram needs",
        ),
        (lambda: fastece.ece(PLAIN, n_bin=3), "n_bin: is "),
        (lambda: fastece.mce(PLAIN, norm=2), "norm: is inf in mce, got 2"),
    ],
)  # fmt: skip
def test_calls_that_need_rows_are_refused_with_the_reason(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_replicates_of_several_estimators_are_one_call():
    state = Accumulator(n_replicates=40, seed=1).update(Y, P)
    results = fastece.bootstrap(state, estimator=["ece", "ece_kde"])
    for name in ("ece", "ece_kde"):
        alone = fastece.bootstrap(state, estimator=name)
        assert np.array_equal(results[name].bootstrap_distribution, alone.bootstrap_distribution)


def test_samples_equal_themselves_alone():
    sample = PLAIN.table().sample(0)
    assert sample == sample
    assert sample != sample.where(slice(None))
    assert len({sample, sample}) == 1


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("n_classes", [None, 3])
def test_counts_add_the_sums_of_the_repeated_rows(n_classes, has_weights):
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 300, 50)
    y = rng.integers(0, n_classes or 2, 50)
    p = rng.random(50) if n_classes is None else rng.dirichlet(np.ones(n_classes), 50)
    weight = rng.random(50) + 0.1 if has_weights else None
    repeated = None if weight is None else np.repeat(weight, counts)
    table = Accumulator(n_classes).update(y, p, weight, counts=counts)
    rows = Accumulator(n_classes).update(
        np.repeat(y, counts), np.repeat(p, counts, axis=0), repeated
    )
    assert table == rows
    assert table.update(y, p) == rows.update(y, p)


def test_replicates_of_a_stream_refuse_counts_with_the_remedy():
    with pytest.raises(ValueError, match=r"^counts: must be left out with n_replicates=.*repeat"):
        Accumulator(n_replicates=10, seed=0).update([0, 1], [0.2, 0.7], counts=[2, 3])
