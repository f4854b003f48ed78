"""The bootstrap of a stream: a Poisson number of copies of every row, or of every group.

Comments give probabilities of a false alarm over all seeds.
"""

from math import sqrt

import numpy as np
import pytest

import fastece
from fastece import Accumulator
from fastece.resampling.results import BootstrapResult
from helpers.bad_input import assert_refused
from helpers.chance import ALPHA, chi_square_p, poisson_probabilities
from helpers.resample_cases import same_bits
from helpers.stream_cases import (
    SETTINGS,
    assert_same,
    binary_data,
    data_of,
    digits,
    state_of,
    weights_of,
)

KEY = {"n_replicates": 8, "seed": 3}


def replicates(state, estimator="ece", **fields):
    return fastece.bootstrap(state, estimator=estimator, **fields).bootstrap_distribution


def test_the_first_replicates_do_not_depend_on_their_number():
    y, p = binary_data("bimodal", 100)
    state = state_of(y, p, n_replicates=100, seed=5)
    for n_replicates in (7, 33):
        shorter = state_of(y, p, n_replicates=n_replicates, seed=5)
        for name in ("ece", "ece_c", "ece_a"):
            assert same_bits(replicates(shorter, name), replicates(state, name)[:n_replicates])


def test_rows_seeds_and_replicates_are_drawn_apart():
    y, p = binary_data("bimodal", 100)
    one = replicates(state_of(y, p, n_replicates=50, seed=1))
    assert same_bits(one, replicates(state_of(y, p, n_replicates=50, seed=1)))
    assert np.unique(one).size == 50
    for other in ({"seed": 2}, {"seed": 1, "row_offset": 100}, {"seed": 1, "row_offset": 1}):
        drawn = replicates(state_of(y, p, n_replicates=50, **other))
        assert not np.any(one == drawn)


def test_rows_without_weight_have_their_number():
    y, p = binary_data("bimodal", 10)
    weight = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1, 0])
    at_once = state_of(y, p, weight, **KEY)
    row_by_row = Accumulator(**KEY)
    for i in range(10):
        row_by_row.update(y[[i]], p[[i]], sample_weight=weight[[i]])
    assert_same(row_by_row, at_once)
    skipped = Accumulator(**KEY)
    for i in np.flatnonzero(weight):
        skipped.update(y[[i]], p[[i]], row_offset=int(i))
    assert same_bits(replicates(skipped), replicates(at_once))


def test_large_row_numbers_are_drawn_apart_and_too_large_ones_refused():
    y, p = binary_data("bimodal", 50)
    first = replicates(state_of(y, p, n_replicates=50, seed=1))
    for offset in (2**32, 2**40, 2**58):
        drawn = replicates(state_of(y, p, n_replicates=50, seed=1, row_offset=offset))
        assert np.isfinite(drawn).all()
        assert not np.any(first == drawn)
    state = Accumulator(**KEY)
    assert_refused(lambda: state.update(y, p, row_offset=2**64), ["row_offset"])
    assert state == Accumulator(**KEY)


def test_two_parts_that_share_their_rows_are_refused():
    y, p = binary_data("bimodal", 20)
    a = state_of(y[:10], p[:10], **KEY)
    b = state_of(y[10:], p[10:], **KEY)
    for merge in (lambda: a + b, lambda: a.copy().merge(b), lambda: sum([a, b]), lambda: a + a):
        assert_refused(merge, ["row_offset|rows"])
    # Without replicates there is nothing to share.
    assert (state_of(y[:10], p[:10]) + state_of(y[10:], p[10:])).n == 20
    # Nothing is shared with a state that has no rows.
    assert same_bits(replicates(a + Accumulator(**KEY)), replicates(a))


def weights_of_row(row, **options):
    """The weights of a row in the replicates of a state without other rows.

    A weight of 1 is the sum 2^26.
    """
    state = state_of([1], [0.3], n_replicates=3200, n_cells=9, row_offset=row, **options)
    parts = state.state_dict()["replicates"]
    assert np.all(parts % 2**26 == 0)
    return (parts.reshape(100, -1, 32).sum(axis=1) // 2**26).ravel()


def assert_poisson(drawn):
    """Mean, variance and frequencies agree with the Poisson law with the mean 1.

    The squared deviation from this mean has the variance 3. False alarms: 6e-7, 6e-7 and 1e-4.
    """
    assert drawn.mean() == pytest.approx(1, abs=5 / sqrt(drawn.size))
    assert drawn.var() == pytest.approx(1, abs=5 * sqrt(3 / drawn.size))
    law = np.array(poisson_probabilities(1.0))
    assert chi_square_p(np.bincount(drawn, minlength=40), law * drawn.size) > ALPHA


def test_weights_of_rows_are_poisson_numbers():
    weights = np.array([weights_of_row(row, seed=7) for row in (*range(12), 2**31, 2**40)])
    for row in weights:
        assert_poisson(row)
    assert_poisson(weights.ravel())
    # Rows, seeds and replicates one after another: correlations of 3200 pairs.
    table = np.corrcoef(weights) - np.eye(len(weights))
    assert np.abs(table).max() < 5 / sqrt(3200)
    other = weights_of_row(0, seed=8)
    assert abs(np.corrcoef(other, weights[0])[0, 1]) < 5 / sqrt(3200)
    assert abs(np.corrcoef(weights[:, 1:].ravel(), weights[:, :-1].ravel())[0, 1]) < 5 / sqrt(4e4)


@pytest.mark.parametrize("groups", [None, [7, 7, 1, 2, 1]])
def test_each_replicate_is_the_error_of_rows_with_their_weights(groups):
    y = [0, 1, 0, 1, 1]
    p = [0.125, 0.625, 0.325, 0.85, 0.45]
    if groups is None:
        drawn = np.array([weights_of_row(2**33 + i, seed=7) for i in range(5)])
        options = {"row_offset": 2**33}
    else:
        drawn = np.array([weights_of_row(0, seed=7, groups=[g]) for g in groups])
        options = {"groups": groups}
    state = state_of(y, p, n_replicates=3200, seed=7, n_cells=3600, **options)
    drawn = drawn[:, drawn.any(axis=0)]
    for name in ("ece", "ece_c", "brier_score"):
        fields = {} if name == "brier_score" else {"n_bins": 10}
        values = replicates(state, name, **fields)
        assert values.size == drawn.shape[1]
        for value, weight in zip(values[:200], drawn.T, strict=False):
            expected = fastece.ece(y, p, estimator=name, sample_weight=weight, **fields)
            assert value == pytest.approx(expected, abs=1e-12)


def test_weights_of_groups_are_poisson_numbers():
    weights = np.array([weights_of_row(0, seed=7, groups=[g]) for g in range(-3, 9)])
    for row in weights:
        assert_poisson(row)
    table = np.corrcoef(weights) - np.eye(len(weights))
    assert np.abs(table).max() < 5 / sqrt(3200)
    # The weights of a group do not depend on the number of the row.
    assert np.array_equal(weights[5], weights_of_row(77, seed=7, groups=[2]))


def test_a_group_may_be_spread_over_workers():
    y, p = binary_data("bimodal", 60)
    groups = np.random.default_rng(0).integers(0, 12, 60) * 1000 - 5000
    weight = weights_of("random", 60)
    at_once = state_of(y, p, weight, groups=groups, **KEY)
    order = np.random.default_rng(1).permutation(60)
    states = []
    for rows in np.array_split(order, 4):
        first = len(states) * 15
        states.append(
            state_of(y[rows], p[rows], weight[rows], groups=groups[rows], row_offset=first, **KEY)
        )
    total = sum(states)
    assert same_bits(replicates(total), replicates(at_once))
    assert fastece.ece(total) == fastece.ece(at_once)
    row_by_row = Accumulator(**KEY)
    for i in order:
        row_by_row.update(y[[i]], p[[i]], sample_weight=weight[[i]], groups=groups[[i]])
    assert same_bits(replicates(row_by_row), replicates(at_once))


def test_wrong_groups_are_refused():
    y, p = binary_data("bimodal", 6)
    state = state_of(y, p, **KEY)
    before = state.copy()
    for groups in ([1, 2], [[1], [2], [3], [4], [5], [6]], [1, 2, 3, 4, 5, np.nan]):
        assert_refused(lambda groups=groups: state.update(y, p, groups=groups), ["groups"])
        assert_same(state, before)
    assert_refused(lambda: state.update(y, p, groups=y), ["groups: must be None, as rows before"])
    assert_refused(lambda: state_of(y, p, groups=y), ["groups: go with n_replicates"])
    grouped = state_of(y, p, groups=y, **KEY)
    assert_refused(lambda: grouped.update(y, p), ["groups: must be given, as rows before had some"])
    assert_refused(lambda: grouped + state, ["must have groups for all rows or for none"])


@pytest.mark.parametrize("setting", SETTINGS)
def test_results_have_the_fields_of_the_bootstrap(setting):
    n_classes, y, p = data_of(setting, 200)
    state = state_of(y, p, n_classes=n_classes, setting=setting, n_replicates=60, seed=1)
    for name in ("ece", "ece_a", "ece_c"):
        result = fastece.bootstrap(state, estimator=name)
        expected = fastece.bootstrap(y, p, setting=setting, estimator=name, n_resamples=60, rng=1)
        assert type(result) is BootstrapResult
        assert result.bootstrap_distribution.shape == (60,)
        assert result.value == fastece.ece(state, estimator=name)
        same = ("confidence_level", "method", "estimator", "setting", "n", "size")
        for field in same:
            assert getattr(result, field) == getattr(expected, field), field
        low, high = result.confidence_interval
        assert 0 <= low <= high
        assert str(result)
        assert result.to_dict().keys() == expected.to_dict().keys()
    percentile = fastece.bootstrap(state, method="percentile", confidence_level=0.8)
    low, high = percentile.confidence_interval
    expected = np.quantile(percentile.bootstrap_distribution, [0.1, 0.9])
    assert (low, high) == pytest.approx(tuple(expected), abs=1e-12)
    fields = fastece.bootstrap(state, n_bins=10, norm=2)
    assert fields.value == pytest.approx(
        fastece.ece(y, p, setting=setting, n_bins=10, norm=2), abs=1e-12
    )


def test_replicates_need_a_seed_and_a_state_that_has_them():
    assert_refused(lambda: Accumulator(n_replicates=5), ["seed"])
    state = state_of(*binary_data("spread", 10))
    assert_refused(lambda: fastece.bootstrap(state), ["n_replicates"])
    state = state_of(*binary_data("spread", 10), **KEY)
    assert_refused(lambda: fastece.bootstrap(state, method="bca"), ["bca"])
    assert_refused(lambda: fastece.bootstrap(state, method="nothing"), ["method", "nothing"])
    assert_refused(lambda: fastece.bootstrap(state, confidence_level=2), ["confidence_level", "2"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sharp", "bimodal", "network"])
def test_standard_errors_are_near_the_bootstrap(kind):
    if kind == "network":
        labels, rows = digits()
        y = labels == rows.argmax(1)
        p = rows.max(1)
    else:
        y, p = binary_data(kind, 2000)
    state = state_of(y, p, n_replicates=2000, seed=1)
    for name in ("ece", "ece_c", "ece_a"):
        expected = fastece.bootstrap(y, p, estimator=name, n_resamples=4000, rng=12)
        result = fastece.bootstrap(state, estimator=name)
        error = expected.standard_error
        assert result.standard_error == pytest.approx(error, rel=0.08), name  # three deviations
        assert result.bias == pytest.approx(expected.bias, abs=0.15 * error), name
