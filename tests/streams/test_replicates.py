"""The bootstrap of a stream: groups of rows, which a hash makes, are drawn as groups in memory are.

Comments give probabilities of a false alarm over all seeds.
"""

import numpy as np
import pytest

import fastece
from fastece import Accumulator
from fastece.resampling.results import BootstrapResult
from helpers.bad_input import assert_refused
from helpers.chance import ALPHA, chi_square_p
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def groups_of(rows, n_replicates=1000, seed=7, groups=None):
    """The groups that rows of these numbers, or of the caller's groups, come into."""
    found = []
    for i, row in enumerate(rows):
        state = Accumulator(n_replicates=n_replicates, seed=seed, n_cells=9)
        label = None if groups is None else groups[[i]]
        state.update([1], [0.3], row_offset=int(row), groups=label)
        sums = state.state_dict()["groups"]
        _, group, _ = np.nonzero(sums)
        assert sums.sum() == 2**30
        found.append(group.item())
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "has_groups"), [(0, False), (2**31, True), (2**40, False)])
def test_rows_come_into_all_groups_by_chance(first, has_groups):
    rows = first + np.arange(1000)
    groups = rows if has_groups else None
    found = groups_of(rows, 40, groups=groups)
    assert found.max() < 64  # whole blocks of 32
    assert chi_square_p(np.bincount(found, minlength=64), np.full(64, 1000 / 64)) > ALPHA
    # Neighbours, and the same rows with another seed, are together by chance alone: 6e-7.
    for other in (np.roll(found, 1), groups_of(rows, 40, seed=8, groups=groups)):
        assert np.mean(found == other) == pytest.approx(1 / 64, abs=5 * np.sqrt(1 / 64 / 1000))


def test_the_group_of_a_row_does_not_depend_on_the_others():
    y = np.arange(50) % 2
    labels = np.arange(50) % 7 * 1000
    for groups in (None, labels):
        at_once = state_of(y, np.linspace(0, 1, 50), groups=groups, n_replicates=90, seed=7)
        sums = at_once.state_dict()["groups"][0].reshape(96, 7200, 2)
        group, cell, _ = np.nonzero(sums)
        assert group[np.argsort(cell)].tolist() == groups_of(range(50), 90, groups=groups).tolist()
    assert groups_of([77], groups=labels[[3]]) == groups_of([0], groups=labels[[3]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "weights"),
    [("binary", "random"), ("confidence", "none"), ("classwise", "random"), (1, "none")],
)
def test_replicates_are_those_of_groups_in_memory(setting, weights):
    n = 150
    n_classes, y, p = data_of(setting, n)
    # Ends and centres of bins are ends of cells, and the rows of a cell have one score.
    p = np.floor(p * 900)
    if p.ndim > 1:
        p[:, -1] = 900 - p[:, :-1].sum(axis=1)
    p /= 900
    weight = weights_of(weights, n)
    options = {"n_classes": n_classes, "setting": setting, "n_replicates": 70, "seed": 3}
    for caller in (None, np.arange(n) // 4):
        groups = groups_of(range(n), 70, seed=3, groups=caller)
        rows = np.argsort(groups, kind="stable")  # groups are numbered as they come in memory
        state = state_of(y, p, weight, groups=caller, **options)
        for name in ("ece", "ece_c"):
            expected = fastece.bootstrap(
                y[rows], p[rows], estimator=name, setting=setting, n_bins=10, n_resamples=70, rng=3,
                groups=groups[rows], sample_weight=None if weight is None else weight[rows],
            )  # fmt: skip
            drawn = replicates(state, name, n_bins=10)
            assert drawn == pytest.approx(expected.bootstrap_distribution, abs=1e-9), name


@pytest.mark.slow
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


@pytest.mark.slow
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
@pytest.mark.parametrize("kind", ["bimodal", "network"])
def test_standard_errors_are_near_the_bootstrap(kind):
    if kind == "network":
        labels, rows = digits()
        y = labels == rows.argmax(1)
        p = rows.max(1)
    else:
        y, p = binary_data(kind, 2000)
    state = state_of(y, p, n_replicates=400, seed=1)
    for name in ("ece", "ece_c", "ece_a"):
        expected = fastece.bootstrap(y, p, estimator=name, n_resamples=2000, rng=12)
        result = fastece.bootstrap(state, estimator=name)
        error = expected.standard_error
        assert result.standard_error == pytest.approx(error, rel=0.13), name  # three deviations
        assert result.bias == pytest.approx(expected.bias, abs=0.25 * error), name
