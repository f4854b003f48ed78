"""Draws of rows with counts follow the laws of the draws of repeated rows."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

import fastece

RNG = np.random.default_rng(5)
P = np.round(RNG.random(12), 2)
COUNTS = RNG.integers(1, 60, 12)
Y = (RNG.random(12) < P).astype(int)
ROWS = np.repeat(Y, COUNTS), np.repeat(P, COUNTS)
VECTORS = RNG.dirichlet([1, 1, 1], 12)
CLASSES = RNG.integers(0, 3, 12)
CLASS_ROWS = np.repeat(CLASSES, COUNTS), np.repeat(VECTORS, COUNTS, axis=0)


def same_law(first, second):
    """Decide whether two samples (n,) may have one law, with a risk of 1 in 1000."""
    return ks_2samp(first, second).pvalue > 0.001


@pytest.mark.parametrize("options", [{}, {"size": 40}, {"estimator": "brier_score"}])
def test_a_bootstrap_of_counts_has_the_law_of_the_repeated_rows(options):
    of_table = fastece.bootstrap(Y, P, counts=COUNTS, n_resamples=2000, rng=1, **options)
    of_rows = fastece.bootstrap(*ROWS, n_resamples=2000, rng=2, **options)
    assert same_law(of_table.bootstrap_distribution, of_rows.bootstrap_distribution)
    assert of_table.n == of_rows.n == COUNTS.sum()


def test_a_bootstrap_of_groups_draws_the_same_groups():
    groups = np.arange(12) % 5
    options = {"n_resamples": 200, "rng": 3}
    of_table = fastece.bootstrap(Y, P, counts=COUNTS, groups=groups, **options)
    of_rows = fastece.bootstrap(*ROWS, groups=np.repeat(groups, COUNTS), **options)
    expected = of_rows.bootstrap_distribution
    assert of_table.bootstrap_distribution == pytest.approx(expected, abs=1e-12)


def test_bca_leaves_out_each_of_the_copies():
    counts = np.minimum(COUNTS, 12)  # so few that the rows themselves are left out one by one
    options = {"n_resamples": 200, "rng": 3, "method": "bca", "estimator": "brier_score"}
    of_table = fastece.bootstrap(Y, P, counts=counts, **options)
    of_rows = fastece.bootstrap(np.repeat(Y, counts), np.repeat(P, counts), **options)
    assert counts.sum() <= 200
    assert of_table.acceleration == pytest.approx(of_rows.acceleration, abs=1e-9)


@pytest.mark.parametrize("estimator", ["ece", "ece_debiased", "mmce", "ece_kde"])
def test_a_test_of_counts_has_the_law_of_the_repeated_rows(estimator):
    options = {"estimator": estimator, "n_resamples": 1000}
    of_table = fastece.calibration_test(Y, P, counts=COUNTS, rng=1, **options)
    of_rows = fastece.calibration_test(*ROWS, rng=2, **options)
    assert same_law(of_table.null_distribution, of_rows.null_distribution)
    assert of_table.value == pytest.approx(of_rows.value, abs=1e-12)


@pytest.mark.parametrize("options", [{"setting": "classwise"}, {}])
def test_the_classes_of_copies_are_drawn_together(options):
    options |= {"estimator": "ece", "n_resamples": 1000}
    of_table = fastece.calibration_test(CLASSES, VECTORS, counts=COUNTS, rng=1, **options)
    of_rows = fastece.calibration_test(*CLASS_ROWS, rng=2, **options)
    assert same_law(of_table.null_distribution, of_rows.null_distribution)


@pytest.mark.parametrize("setting", ["auto", "classwise"])
def test_posteriors_of_counts_are_those_of_the_repeated_rows(setting):
    of_table = fastece.estimate(CLASSES, VECTORS, counts=COUNTS, setting=setting)
    of_rows = fastece.estimate(*CLASS_ROWS, setting=setting)
    assert of_table.value == pytest.approx(of_rows.value, abs=1e-9)
    assert [*of_table.confidence_interval] == pytest.approx(
        [*of_rows.confidence_interval], abs=1e-9
    )


@pytest.mark.parametrize("estimator", ["ece", "ece_kde", "smooth_ece"])
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
