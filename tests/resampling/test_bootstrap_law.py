"""Laws of the draws, of the replicates and of the intervals, against enumeration, numpy and scipy.

Seeds are fixed, so what passes once passes always; the false-alarm rates that the comments state
are those over all seeds, for whoever changes the draws.
"""

import numpy as np
import pytest
from chance import ALPHA, chi_square_p, multinomial_law
from probes import Code, HitCode, Mean, Spy
from scipy import stats

import fastece
from fastece import Binned
from fastece.estimators import ESTIMATORS


def data(n, seed=0):
    """(y_true, y_prob) of a classifier that is a little too sure of itself."""
    rng = np.random.default_rng(seed)
    prob = rng.random(n)
    return (rng.random(n) < 0.1 + 0.7 * prob).astype(np.int64), prob


def replicates(n, estimator, n_resamples, size=None, rng=0, **options):
    result = fastece.bootstrap(
        *data(n), estimator=estimator, n_resamples=n_resamples, size=size, rng=rng, **options
    )
    return result.bootstrap_distribution


# -- the draws -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "size"),
    [
        *((n, n) for n in range(1, 7)),
        (2, 1),
        (3, 5),
        (4, 2),
        (5, 1),
        (5, 3),
        (6, 2),
        (6, 4),
        (2, 9),
    ],
)
def test_multiplicities_follow_the_multinomial_law(n, size):
    # False-alarm rate 1e-4 for each of 14.
    count, code = 40_000, Code(10)
    law = multinomial_law(n, size)
    drawn = code.counts(replicates(n, code, count, size, rng=100 * n + size), n)
    found, times = np.unique(drawn, axis=0, return_counts=True)
    seen = {tuple(c): t for c, t in zip(found.tolist(), times, strict=True)}
    assert set(seen) <= set(law)
    expected = count * np.array(list(law.values()))
    assert expected.sum() == pytest.approx(count)
    assert chi_square_p([seen.get(c, 0) for c in law], expected) > ALPHA


def test_replicates_are_independent_of_their_neighbours():
    # A contingency table of the 10 draws of three rows, as pairs; false-alarm rate 1e-4 each.
    count, code = 60_000, Code(4)
    values = replicates(3, code, count, rng=1).astype(np.int64)
    _, kind = np.unique(values, return_inverse=True)
    kinds = kind.max() + 1
    share = np.bincount(kind, minlength=kinds) / count
    for lag in (1, 2, 4, 8, 16, 31, 32, 64):
        pairs = np.bincount(kind[:-lag] * kinds + kind[lag:], minlength=kinds**2)
        expected = (count - lag) * np.outer(share, share).ravel()
        assert chi_square_p(pairs, expected) > ALPHA, lag


@pytest.mark.parametrize("size", [None, 40, 333, pytest.param(3, id="m of n, few")])
def test_rows_are_drawn_equally_often_and_independently(size):
    # Counts of rows are multinomial with variance size (1 - 1/n) / n, and their totals over all
    # replicates are multinomial too: too even is as suspicious as too uneven. False-alarm rate
    # 2e-4 for the totals, 1e-4 for each of the two others.
    n, count = 100, 4000
    m, spy = size or n, Spy()
    values = replicates(n, spy, count, size, rng=2)
    c = np.array([np.bincount(rows, minlength=n) for rows in spy.rows(values)])
    total = c.sum(axis=0)
    mean = count * m / n
    assert ALPHA < stats.chi2.sf(np.sum((total - mean) ** 2) / mean, n - 1) < 1 - ALPHA
    # Pearson's statistic of one replicate has mean n - 1 and variance 2 (n - 1) (1 - 1/m).
    pearson = np.sum((c - m / n) ** 2, axis=1) * n / m
    sd = np.sqrt(2 * (n - 1) * (1 - 1 / m) / count) if m > 1 else 1.0
    assert abs(pearson.mean() - (n - 1)) < stats.norm.isf(ALPHA / 2) * sd
    # Neighbouring rows have correlation -1 / (n - 1); the mean over n - 1 pairs of all replicates.
    z = (c - m / n) / np.sqrt(m * (1 - 1 / n) / n)
    products = np.mean(z[:, :-1] * z[:, 1:], axis=1)
    error = products.std(ddof=1) / np.sqrt(count)
    assert abs(products.mean() + 1 / (n - 1)) < stats.norm.isf(ALPHA / 2) * error


def test_rows_are_drawn_equally_often_whatever_their_weights():
    # False-alarm rate 1e-4.
    n, count, spy = 50, 4000, Spy()
    weight = np.geomspace(0.01, 100, n)
    values = replicates(n, spy, count, rng=3, sample_weight=weight)
    total = np.bincount(spy.rows(values).ravel(), minlength=n)
    assert chi_square_p(total, np.full(n, float(count))) > ALPHA


@pytest.mark.parametrize(("n", "size"), [(100_000, 20), (100_000, 100), (5000, 500)])
def test_few_of_many_rows_come_from_everywhere(n, size):
    # Drawn with replacement: uniform over 50 stretches of the file, with the number of repeated
    # rows that chance gives. False-alarm rate 1e-4 each.
    count, spy = 2000, Spy()
    rows = spy.rows(replicates(n, spy, count, size, rng=4))
    assert rows.shape == (count, size)
    assert rows.min() >= 0
    assert rows.max() < n
    stretch = np.bincount(rows.ravel() * 50 // n, minlength=50)
    assert chi_square_p(stretch, np.full(50, count * size / 50)) > ALPHA
    assert chi_square_p(np.bincount(rows.ravel() % 2, minlength=2), [count * size / 2] * 2) > ALPHA
    pairs = np.array([np.sum(t * (t - 1)) / 2 for t in map(multiplicities, rows)]).sum()
    expected = count * size * (size - 1) / 2 / n
    assert min(stats.poisson.cdf(pairs, expected), stats.poisson.sf(pairs - 1, expected)) > ALPHA


def multiplicities(rows):
    return np.unique(rows, return_counts=True)[1]


def test_labels_under_the_hypothesis_follow_the_scores():
    # All 16 patterns of four hits, a probability of 0 and of 1 apart; false-alarm rate 1e-4.
    count, s = 20_000, np.array([0.1, 0.0, 0.5, 1.0, 0.8, 0.35])
    result = fastece.calibration_test(
        [0, 0, 1, 1, 1, 0], s, estimator=HitCode(), n_resamples=count, rng=5
    )
    patterns = np.arange(64)[:, None] >> np.arange(6) & 1
    law = np.prod(np.where(patterns == 1, s, 1 - s), axis=1)
    seen = np.bincount(result.null_distribution.astype(np.int64), minlength=64)
    assert seen[law == 0].sum() == 0
    assert chi_square_p(seen[law > 0], count * law[law > 0]) > ALPHA


@pytest.mark.parametrize("setting", ["confidence", 0, 2])
def test_labels_of_class_vectors_follow_their_probabilities(setting):
    # False-alarm rate 1e-4 each.
    count = 20_000
    prob = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.25, 0.35, 0.4]])
    s = prob.max(axis=1) if setting == "confidence" else prob[:, setting]
    result = fastece.calibration_test(
        [0, 1, 2], prob, setting=setting, estimator=HitCode(), n_resamples=count, rng=6
    )
    patterns = np.arange(8)[:, None] >> np.arange(3) & 1
    law = np.prod(np.where(patterns == 1, s, 1 - s), axis=1)
    seen = np.bincount(result.null_distribution.astype(np.int64), minlength=8)
    assert chi_square_p(seen, count * law) > ALPHA


# -- replicates ------------------------------------------------------------------------------------


def plain_bootstrap(true, prob, estimator, count, seed):
    """Values of rows drawn by numpy."""
    rng = np.random.default_rng(seed)
    values = np.empty(count)
    for r in range(count):
        rows = rng.integers(0, len(true), len(true))
        values[r] = fastece.ece(true[rows], prob[rows], estimator=estimator)
    return values


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n", [7, 100, 5000])
def test_replicates_are_distributed_as_those_of_a_plain_loop(n, name):
    # Kolmogorov and Smirnov: false-alarm rate at most 1e-4 each. The error of a standard error is
    # 0.5 % in 20 000 replicates of nearly normal values and 0.7 % in 10 000, so 2 % are 2.8
    # standard deviations of the ratio of two and for 5000 rows 2.3: false-alarm rates of 0.5 % and
    # 2 % each. Where one rings, more replicates tell, and not another seed.
    true, prob = data(n)
    values = replicates(n, name, 20_000, rng=n)
    plain = plain_bootstrap(true, prob, name, 10_000 if n == 5000 else 20_000, seed=n + 1)
    assert values.std() == pytest.approx(plain.std(), rel=0.02)
    # Few rows have few values, and one value may be rounded in two ways.
    p = stats.ks_2samp(values.round(10), plain.round(10), method="asymp").pvalue
    assert p > ALPHA


@pytest.mark.parametrize(("n", "size"), [(50, 20), (50, 120), (5000, 30)])
@pytest.mark.parametrize("name", ["ece", "ece_a"])
def test_replicates_of_another_size_are_too(n, size, name):
    # False-alarm rate at most 1e-4 each. "sqrt" and edges are those of the drawn rows.
    true, prob = data(n)
    estimator = Binned(n_bins="sqrt", edges=ESTIMATORS[name].edges)
    values = replicates(n, estimator, 10_000, size, rng=7)
    rng, plain = np.random.default_rng(8), []
    for _ in range(10_000):
        rows = rng.integers(0, n, size)
        plain.append(fastece.ece(true[rows], prob[rows], estimator=estimator))
    assert stats.ks_2samp(values.round(10), np.round(plain, 10), method="asymp").pvalue > ALPHA


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [15, 40, 150])
@pytest.mark.parametrize("method", ["basic", "percentile", "bca"])
def test_intervals_agree_with_those_of_scipy(method, n):
    # The upper end of a BCa interval, far out in a tail, has a Monte Carlo error of up to 0.041
    # standard errors in 20 000 replicates (measured), other ends less: 0.25 are 4.3 standard
    # deviations of the difference of two, a false-alarm rate under 1e-4. The scores are so skewed
    # that the three methods differ by more than that for 15 and 40 rows.
    count, tolerance = 20_000, 0.25
    rng = np.random.default_rng(n)
    prob = rng.random(n) ** 6
    true = np.zeros(n, dtype=np.int64)
    result = fastece.bootstrap(
        true, prob, estimator=Mean(), n_resamples=count, method=method, rng=1
    )
    scipy = stats.bootstrap(
        (prob,), np.mean, n_resamples=count, method=method, batch=1000,
        rng=np.random.default_rng(2),
    )  # fmt: skip
    slack = tolerance * scipy.standard_error
    assert result.standard_error == pytest.approx(scipy.standard_error, rel=0.03)
    assert result.confidence_interval.low == pytest.approx(
        max(0, scipy.confidence_interval.low), abs=slack
    )
    assert result.confidence_interval.high == pytest.approx(
        scipy.confidence_interval.high, abs=slack
    )


@pytest.mark.parametrize("method", ["basic", "percentile", "bca"])
def test_intervals_of_an_error_agree_with_those_of_scipy(method):
    # As above: at least 3.7 standard deviations of either end, a false-alarm rate under 1e-3.
    true, prob = data(300)
    both = {"n_resamples": 5000, "method": method}
    result = fastece.bootstrap(true, prob, n_bins=3, rng=1, **both)
    scipy = stats.bootstrap(
        (true, prob), lambda y, s: fastece.ece(y, s, n_bins=3), paired=True, vectorized=False,
        rng=np.random.default_rng(2), **both,
    )  # fmt: skip
    low, high = scipy.confidence_interval
    slack = 0.3 * scipy.standard_error
    assert tuple(result.confidence_interval) == pytest.approx((max(0, low), high), abs=slack)


def test_basic_intervals_of_a_mean_hold_it_as_often_as_they_say():
    # Coverage of 1000 intervals at a level of 90 %, of a mean of 100 nearly normal values: 0.885 to
    # be expected, and within 4 standard deviations (0.0101 each), a false-alarm rate of 1e-4.
    hits, rng = 0, np.random.default_rng(9)
    for i in range(1000):
        prob = rng.random(100)
        result = fastece.bootstrap(
            np.zeros(100, dtype=np.int64), prob, estimator=Mean(), n_resamples=199, rng=i,
            confidence_level=0.9,
        )  # fmt: skip
        low, high = result.confidence_interval
        hits += low <= 0.5 <= high
    assert abs(hits / 1000 - 0.885) < 0.041


# -- tests -----------------------------------------------------------------------------------------


def test_the_calibration_test_rejects_calibrated_models_as_often_as_it_says():
    # The level is exact, so 5000 simulations have a standard deviation of 0.31 %: outside of 4 to
    # 6 % with a probability of 0.1 %.
    rng, rejected = np.random.default_rng(10), 0
    for i in range(5000):
        prob = rng.random(200)
        true = rng.random(200) < prob
        rejected += fastece.calibration_test(true, prob, n_resamples=199, rng=i).p_value <= 0.05
    assert 0.04 <= rejected / 5000 <= 0.06


@pytest.mark.parametrize("setting", ["confidence", "classwise"])
def test_so_it_does_for_class_vectors(setting):
    # 1500 simulations: a standard deviation of 0.56 %, so 3 to 7 % are 3.6 of them: 4e-4 each.
    rng, rejected = np.random.default_rng(11), 0
    for i in range(1500):
        prob = rng.dirichlet(np.ones(3), 100)
        true = (rng.random((100, 1)) > np.cumsum(prob, axis=1)[:, :2]).sum(axis=1)
        result = fastece.calibration_test(true, prob, setting=setting, n_resamples=99, rng=i)
        rejected += result.p_value <= 0.05
    assert 0.03 <= rejected / 1500 <= 0.07


def test_the_calibration_test_finds_models_that_are_not():
    rng, rejected = np.random.default_rng(12), 0
    for i in range(200):
        prob = rng.random(500)
        true = rng.random(500) < 0.5 + 0.5 * (prob - 0.5)
        rejected += fastece.calibration_test(true, prob, n_resamples=99, rng=i).p_value <= 0.05
    assert rejected > 190


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_band_of_equal_scores_is_the_binomial_law(level):
    # An end is at most one hit from the quantile; a false alarm needs 4 standard deviations.
    n, s = 200, 0.3
    result = fastece.calibration_test(
        np.arange(n) % 2, np.full(n, s), n_bins=1, confidence_level=level,
        n_resamples=20_000, rng=0,
    )  # fmt: skip
    want = stats.binom.ppf([(1 - level) / 2, (1 + level) / 2], n, s) / n
    slack = 1.01 / n
    assert (result.band.low[0], result.band.high[0]) == pytest.approx(tuple(want), abs=slack)


@pytest.mark.parametrize("name", ["ece", "ece_a", "ece_c"])
def test_bands_hold_the_frequencies_of_calibrated_data(name):
    # Frequencies of about 50 rows a bin move in steps, which makes ranges hold a little more than
    # the nominal 90 %, and 4000 replicates place their ends within 0.5 %.
    _, prob = data(750)
    options = {"estimator": name}
    band = fastece.calibration_test(
        prob > 0.5, prob, n_resamples=4000, confidence_level=0.9, rng=0, **options
    ).band
    rng, inside = np.random.default_rng(13), []
    for _ in range(1000):
        diagram = fastece.reliability_diagram(rng.random(750) < prob, prob, **options)
        inside.append((band.low <= diagram.frequency) & (diagram.frequency <= band.high))
    assert 0.89 < np.mean(inside) < 0.95
