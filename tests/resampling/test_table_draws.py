"""Counts in comparisons, slices and other estimators; `test_numbers` has those of the others."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

import fastece

RNG = np.random.default_rng(5)
P = np.round(RNG.random(12), 2)
COUNTS = RNG.integers(1, 60, 12)
Y = (RNG.random(12) < P).astype(int)
ROWS = np.repeat(Y, COUNTS), np.repeat(P, COUNTS)


@pytest.mark.parametrize("estimator", ["ece_debiased", "mmce", "ece_kde"])
def test_a_test_of_counts_has_the_law_of_the_repeated_rows(estimator):
    options = {"estimator": estimator, "n_resamples": 1000}
    of_table = fastece.calibration_test(Y, P, counts=COUNTS, rng=1, **options)
    of_rows = fastece.calibration_test(*ROWS, rng=2, **options)
    assert ks_2samp(of_table.null_distribution, of_rows.null_distribution).pvalue > 0.001
    assert of_table.value == pytest.approx(of_rows.value, abs=1e-12)


@pytest.mark.parametrize("estimator", ["ece", "ece_kde"])
def test_intervals_by_inversion_of_counts_are_close_to_those_of_the_repeated_rows(estimator):
    options = {"estimator": estimator, "n_resamples": 500}
    of_table = fastece.estimate(Y, P, counts=COUNTS, **options)
    of_rows = fastece.estimate(*ROWS, **options)
    ends = [*of_rows.confidence_interval]
    assert [*of_table.confidence_interval] == pytest.approx(ends, abs=0.02)


@pytest.mark.parametrize("estimator", ["ece_bayes", "brier_score"])
@pytest.mark.filterwarnings("ignore:.*times with the same labels")
def test_a_comparison_of_counts_is_the_one_of_the_repeated_rows(estimator):
    other = P**1.5
    options = {"estimator": estimator, "n_resamples": 500, "rng": 0}
    of_table = fastece.compare(Y, P, other, counts=COUNTS, **options)
    of_rows = fastece.compare(*ROWS, np.repeat(other, COUNTS), **options)
    slack = 1e-9 if estimator == "ece_bayes" else 0.01
    ends = [*of_rows.confidence_interval]
    assert of_table.value == pytest.approx(of_rows.value, abs=1e-9)
    assert [*of_table.confidence_interval] == pytest.approx(ends, abs=slack)


def test_slices_of_counts_are_those_of_the_repeated_rows():
    by = np.array(list("aabbccaabbcc"))
    of_table = fastece.slices(Y, P, by=by, counts=COUNTS, n_resamples=99)
    of_rows = fastece.slices(*ROWS, by=np.repeat(by, COUNTS), n_resamples=99)
    by_label = {row.label: row for row in of_rows}
    for row in of_table:
        expected = by_label[row.label]
        assert (row.n, row.n_effective) == (expected.n, expected.n_effective)
        assert (row.value, row.low, row.high) == pytest.approx(
            (expected.value, expected.low, expected.high), abs=1e-9
        )


def test_draws_do_not_depend_on_who_makes_them():
    options = {"counts": COUNTS, "n_resamples": 333, "rng": 0}
    first = fastece.bootstrap(Y, P, n_jobs=1, **options)
    second = fastece.bootstrap(Y, P, n_jobs=3, **options)
    assert np.array_equal(first.bootstrap_distribution, second.bootstrap_distribution)
