"""The estimators of the literature: their definitions, the authors' packages, laws, extremes."""

import tracemalloc
from math import erfc, exp, inf, pi, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import fastece
from fastece import MMCE, Binned, CumulativeError, SmoothECE, Sweep
from fastece.kernels.quantiles import sweep_bins
from helpers import strategies as cases

# What hypothesis tries, with how close two equal values are: an integral's scale is found to 1e-12,
# and of a debiased square noise may be taken off but for rounding, whose root is larger.
ESTIMATORS = {
    "ece_debiased": (Binned(debias=True), 1e-12),
    "debiased quantiles": (Binned(debias=True, edges="quantile", n_bins=5), 1e-12),
    "debiased square": (Binned(debias=True, norm=2), 1e-7),
    "ece_sweep": (Sweep(), 1e-12),
    "sweep, norm 2": (Sweep(norm=2), 1e-12),
    "smooth_ece": (SmoothECE(), 1e-9),
    "smooth, fixed": (SmoothECE(scale=0.1), 1e-12),
    "mmce": (MMCE(), 1e-12),
    "ecce_r": (CumulativeError(), 1e-12),
    "ecce_mad": (CumulativeError("max"), 1e-12),
}
REFERENCE = {
    "ece_debiased": lambda *rows: reference.debiased_error(*rows),
    "debiased quantiles": lambda *rows: reference.debiased_error(*rows, edges="quantile", n_bins=5),
    "debiased square": lambda *rows: reference.debiased_error(*rows, norm=2),
    "ece_sweep": reference.sweep_error,
    "sweep, norm 2": lambda *rows: reference.sweep_error(*rows, norm=2),
    "mmce": reference.mmce,
    "ecce_r": reference.cumulative_error,
    "ecce_mad": lambda *rows: reference.cumulative_error(*rows, statistic="max"),
}


def near(value, slack=1e-12):
    return pytest.approx(value, abs=slack)


def value_of(name, y, s, weight=None):
    return fastece.ece(y, s, estimator=ESTIMATORS[name][0], sample_weight=weight)


def problem_of(y, s):
    """As the reference takes it."""
    return [float(x) for x in s], [int(x) for x in y], 0.0, 1.0


def random_problem(seed, most=60, inside=False):
    """(labels, scores) of two to `most` rows: spread, tied or heaped at the ends."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    s = [rng.random(n), rng.random(n).round(1), rng.beta(0.2, 0.1, n)][seed % 3]
    s = s.clip(0.02, 0.98) if inside else s
    return (rng.random(n) < s ** [1, 1.5, 0.5][seed // 3 % 3]).astype(int), s


@pytest.mark.slow
@given(st.sampled_from(list(REFERENCE)), cases.binary(max_size=25), st.data())
def test_values_are_those_of_the_reference(name, data, draw):
    y, s = data
    weight = draw.draw(st.none() | cases.integer_weights(len(s), smallest=1))
    expected = REFERENCE[name](problem_of(y, s), None if weight is None else weight.tolist())
    assert value_of(name, y, s, weight) == near(expected, ESTIMATORS[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.004, 0.05, 0.3, 2.0])
def test_smooth_errors_are_the_integral(h):
    for seed in range(2):
        y, s = random_problem(seed, most=8)
        weight = None if seed % 2 else np.random.default_rng(seed).random(len(s)) + 0.1
        expected = reference.smooth_error(
            problem_of(y, s), None if weight is None else weight.tolist(), h, points=1500
        )
        got = fastece.ece(y, s, estimator="smooth_ece", scale=h, sample_weight=weight)
        assert got == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_the_own_scale_of_a_smooth_error_is_its_value():
    for seed in range(30):
        y, s = random_problem(seed, most=300)
        value = fastece.ece(y, s, estimator="smooth_ece")
        fixed = fastece.ece(y, s, estimator="smooth_ece", scale=value)
        assert fixed == pytest.approx(value, rel=1e-3, abs=1e-5)


def integral_near_the_ends(gap_of, h):
    """`reference.smooth_error` of gaps by their scores, which are all within 0.01 of 0 or 1: on
    points near the ends only, the midpoint rule."""
    width = 0.01 + 10 * h
    count = int(16 * width / h) + 1
    total = 0.0
    for low in (0.0, 1.0 - width):
        t = low + (np.arange(count) + 0.5) * width / count
        parts = np.zeros(count)
        for s, gap in gap_of.items():
            for image in (s, -s, 2 - s):
                parts += gap * np.exp(-(((t - image) / h) ** 2) / 2)
        total += np.abs(parts).sum() * width / count
    return total / h / sqrt(2 * pi)


@pytest.mark.slow
@pytest.mark.parametrize("farthest", [5e-3, 1e-4])
def test_small_smooth_errors_of_sharp_scores_are_the_integral_at_their_own_scale(farthest):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        is_high, off = np.arange(60) % 2, farthest * rng.random(60) ** 3
        y, s = np.copy(is_high), np.where(is_high == 1, 1 - off, off)
        weight = np.ones(60)
        y[:2], weight[:2] = 1 - y[:2], farthest * rng.random(2)  # gaps of the other sign
        gap_of = dict(zip(s.tolist(), (weight * (y - s) / weight.sum()).tolist(), strict=True))
        low, high = 5e-6, 0.01
        for _ in range(16):
            middle = sqrt(low * high)
            is_wide = integral_near_the_ends(gap_of, middle) > middle
            low, high = (middle, high) if is_wide else (low, middle)
        value = fastece.ece(y, s, estimator="smooth_ece", sample_weight=weight)
        assert value == pytest.approx(low, rel=1e-3, abs=1e-5)
        assert low < 2e-3


@pytest.mark.slow
def test_replicates_of_near_perfect_scores_take_little_memory():
    s = 1 - np.random.default_rng(0).random(1000) * 1e-4
    fastece.bootstrap([0, 1], [0.2, 0.9], estimator="smooth_ece", n_resamples=2, rng=0)
    tracemalloc.start()
    try:
        result = fastece.bootstrap(
            np.ones(1000), s, estimator="smooth_ece", n_resamples=32, rng=0, n_jobs=1
        )
        assert tracemalloc.get_traced_memory()[1] < 4e8
    finally:
        tracemalloc.stop()
    # No gap is of the other sign: the values are the mean gaps.
    assert result.value == pytest.approx(np.mean(1 - s), rel=1e-3)
    assert result.bias == pytest.approx(0, abs=1e-6)
    assert np.ptp(result.bootstrap_distribution) > 0


def test_equal_rates_do_not_decrease_whatever_their_weights_round_to():
    n = 3000
    s = np.arange(n) / n
    y, weight = np.arange(n) % 2, np.full(n, 0.1)
    y = y.astype(np.uint8)
    assert sweep_bins(s, y, weight, n, 1e-12)[1] == sweep_bins(s, y, weight * 10, n, 0.0)[1]


def test_debiased_errors_are_those_of_their_authors():
    calibration = pytest.importorskip("calibration")
    for seed in range(100):
        y, s = random_problem(seed)
        theirs = [[(a, b) for a, b in zip(s, y, strict=True) if 0.1 * k < a <= 0.1 * (k + 1) - 1e-9]
                  for k in range(10)]  # fmt: skip
        theirs = [cell for cell in theirs if len(cell) > 1]
        rows = [row for cell in theirs for row in cell]
        if not rows:
            continue
        s, y = (np.array(column) for column in zip(*rows, strict=True))
        value = fastece.ece(y, s, estimator="ece_debiased", n_bins=10, norm=2)
        square = calibration.utils.unbiased_l2_ce(theirs)
        assert value**2 == near(square**2, 1e-10)


def test_smooth_errors_are_those_of_their_authors(monkeypatch):
    relplot = pytest.importorskip("relplot")
    # With 200 points their integral is right to 0.01. They count scores of 0 and 1 half, where the
    # reflected kernel of their text counts them whole, and cut kernels off at a distance of 1/2.
    monkeypatch.setattr(relplot.config, "smECE_mesh_pts", 5000)
    for seed in range(20):
        y, s = random_problem(seed, inside=True)
        for h in (0.02, 0.07, 0.12):
            theirs = relplot.metrics.smECE_sigma(s, y, h)
            value = fastece.ece(y, s, estimator="smooth_ece", scale=h)
            # Of 500 problems theirs is off by up to 1.6e-3, where ours is the integral to 1e-5.
            assert value == pytest.approx(theirs, rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_extreme_data_have_finite_values(name):
    ends = np.array([0.0, 1.0, 1.0, 0.0])
    sets = [
        ([1], [0.5]), ([0, 1], [0.2, 0.9]), ([1, 1, 1], [0.3, 0.5, 0.5]), ([0, 0], [0.0, 0.0]),
        ([0, 1, 0, 1], ends), ([1, 0, 0, 1], ends), ([0, 1, 1], [0.4, 0.4, 0.4]),
        (np.arange(50) > 25, np.linspace(0, 1, 50)),
    ]  # fmt: skip
    for y, s in sets:
        for weight in (None, np.arange(1.0, len(s) + 1)):
            value = value_of(name, np.array(y, dtype=int), np.array(s), weight)
            assert -1 <= value <= 1
    for y, s in (([0, 0], [0.0, 0.0]), ([0, 1, 1, 0], ends)):  # always right, and sure
        assert value_of(name, np.array(y), np.array(s)) == 0


def test_values_that_can_be_worked_out():
    t = sqrt(0.25 / 4)  # one bin: 4 rows, half of them hits, a gap of 0.1
    z = 0.1 / t / sqrt(2)
    folded = t * sqrt(2 / pi) * exp(-z * z) + 0.1 * (1 - erfc(z))
    y, s = [0, 1, 0, 1], [0.6] * 4
    assert fastece.ece(y, s, estimator="ece_debiased") == near(0.2 - folded)
    assert fastece.ece(y, s, estimator="ece_debiased", norm=2) == 0.0
    assert fastece.ece([1] * 4, s, estimator="ece_debiased", norm=2) == near(0.4)
    assert fastece.ece(y, s, estimator="mmce") == near(0.1)
    assert fastece.ece(y, s, estimator="ece_sweep") == near(0.1)
    assert fastece.ece([1, 1], [0.0, 0.0], estimator="smooth_ece") == near(1.0)
    assert fastece.ece([0, 1], [0.5, 0.5], estimator="smooth_ece") == 0.0
    # Next to nothing: the smallest scale that is looked at.
    assert fastece.ece([0, 1], [1e-7, 1 - 1e-7], estimator="smooth_ece") < 1e-6


def test_classes_that_scores_keep_apart_have_as_many_bins_as_rows():
    n = 20_000
    s = (np.arange(n) + 0.5) / n
    y = s > 0.5
    assert fastece.ece(y, s, estimator="ece_sweep") == near(np.abs(y - s).mean(), 1e-9)
    y[n // 2 - 1 : n // 2 + 1] ^= True  # nearly so: half as many are looked at in no time
    assert 0.2 < fastece.ece(y, s, estimator="ece_sweep") < 0.3


def test_a_diagram_of_debiased_bins_has_their_value():
    y, s = random_problem(4)
    options = {"estimator": "ece_debiased", "sample_weight": s + 0.1}
    assert fastece.reliability_diagram(y, s, **options).value == near(fastece.ece(y, s, **options))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Binned(debias=True, mapping="convex"), "debias: goes with mapping='hard' only"),
        (lambda: Binned(debias=True, norm=3), r"debias: goes with norm=1 and norm=2 only, got 3"),
        (lambda: Binned(debias=True, norm=inf), "debias: goes with norm=1 and norm=2 only"),
        (lambda: Binned(debias=2), "debias: "),
        (lambda: Sweep(norm=0.5), "norm: "),
        (lambda: MMCE(width=0), "width: must be positive and finite"),
        (lambda: MMCE(width=inf), "width: must be positive and finite"),
        (lambda: CumulativeError("mean"), "statistic: must be"),
        (lambda: SmoothECE(scale=-1), "scale: "),
        (lambda: SmoothECE(scale="own"), "scale: must be positive and finite, or 'auto'"),
        (lambda: SmoothECE(scale=1e-7), "scale: needs a grid of more than .*, got 1e-07"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
