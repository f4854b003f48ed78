"""Both errors as functions of multiplicities and of labels: replicates, true errors, and every
function that takes them by name."""

import numpy as np
import pytest

import fastece
from fastece import SKCE, DirichletKDE
from fastece.estimators.base import Counts, Labels
from fastece.resampling.draws import draws_of
from helpers import canonical_cases as cases
from helpers.canonical_cases import CLOSE, ESTIMATORS, assert_near, near
from helpers.resample_cases import same_bits

NAMES = ["canonical", "skce"]
# Rows of which no kernel is kept in memory.
MANY = 4100
LARGE = ["canonical, wide", "skce, default", "skce, unbiased", "canonical, norm 2"]


def data(n=24, n_classes=3, seed=0, weighted=False):
    """(y_true, y_prob, sample_weight) with corners, zeros and equal rows."""
    y, p = cases.draw(n, n_classes, seed)
    p[1] = np.eye(n_classes)[0]
    p[3] = p[2]
    p[4] = np.where(np.arange(n_classes) < 2, 0.5, 0.0)
    v = np.random.default_rng(seed + 1).random(n) + 0.1 if weighted else None
    return y, p, v


def plan_of(estimator, y, p, v=None, size=None):
    sample = cases.sample_of(y, p, v)
    return estimator.prepare(sample, len(y) if size is None else size)


def test_both_are_calibration_errors_of_class_vectors():
    for name in NAMES:
        assert fastece.ESTIMATORS[name].is_calibration_error
        assert fastece.ESTIMATORS[name].needs_vectors


# -- multiplicities --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_values_of_multiplicities_are_those_of_the_reference(name, weighted):
    estimator, (y, p, v) = ESTIMATORS[name], data(14, weighted=weighted)
    plan = plan_of(estimator, y, p, v)
    c = cases.multiplicities(14, 14)[0]
    for r in range(6):
        want = cases.expected(estimator, y, p, v, c[:, r])
        assert_near(estimator.evaluate(plan, c[:, r]), want, what=r)
        assert_near(estimator.evaluate(plan, c[:, r].astype(np.float64)), want, what=r)
    parts = np.random.default_rng(2).random(14) * 2  # of rows
    assert_near(estimator.evaluate(plan, parts), cases.expected(estimator, y, p, v, parts))
    once = np.ones(14, np.uint8)
    assert_near(estimator.evaluate(plan, once), cases.expected(estimator, y, p, v))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_draw_of_one_row_has_no_other(name):
    estimator, (y, p, v) = ESTIMATORS[name], data(14, weighted=True)
    plan = plan_of(estimator, y, p, v)
    c = np.zeros((1, 14, 32), np.uint8)
    c[0, 5, :] = 14
    c[0, 6, 16:] = 1
    values = estimator.values(plan, Counts(c))
    lonely = isinstance(estimator, DirichletKDE) or estimator.form != "biased"
    assert np.isnan(values[:16]).all() == lonely
    for r in (0, 20):
        want = cases.expected(estimator, y, p, v, c[0, :, r])
        assert_near(values[r], want)
        assert_near(estimator.evaluate(plan, c[0, :, r]), want)


def test_bandwidth_and_width_are_chosen_once_on_all_rows():
    y, p, v = data(14, weighted=True)
    p[:5] = p[13] + 0.01 * (p[:5] - p[13])
    few = np.array([3, 1, 2, 4, 4] + 9 * [0])  # which by themselves ask for less smoothing
    for estimator in (DirichletKDE(), SKCE(), SKCE("unbiased", kernel="gaussian")):
        value = estimator.evaluate(plan_of(estimator, y, p, v), few)
        assert_near(value, cases.expected(estimator, y, p, v, few))
        alone = cases.expected(estimator, y[:5], p[:5], v[:5], few[:5])
        assert abs(value - alone) > 1e-3


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scores_are_columns_to_every_setting_without_vectors(name):
    estimator, (y, p, v) = ESTIMATORS[name], data(12, weighted=True)
    for setting in ("confidence", 1, "classwise"):
        sample = cases.sample_of(y, p, v, setting=setting)
        assert sample.vectors is None
        plan = estimator.prepare(sample, 12)
        hit, c = sample.y.astype(int), cases.multiplicities(12, 12)
        values = estimator.values(plan, Counts(c))
        for r in (0, 9):
            want = cases.expected(estimator, hit, sample.s, v, c[0, :, r])
            assert_near(values[r], want)
            assert_near(estimator.evaluate(plan, c[0, :, r]), want)


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["canonical, norm 2", "skce, default"])
def test_values_of_other_hits_of_a_binary_problem(name):
    estimator, (y, p, v) = ESTIMATORS[name], data(15, weighted=True)
    sample = cases.sample_of(y, p, v, setting=1)
    labels = np.random.default_rng(3).integers(0, 2, (1, 15, 32)).astype(np.int32)
    values = estimator.values(estimator.prepare(sample, 15), Labels(labels))
    for r in (0, 31):
        assert_near(values[r], cases.expected(estimator, labels[0, :, r], sample.s, v))


# -- the true error --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_true_error_is_that_of_the_reference(name, weighted):
    estimator, (y, p, v) = ESTIMATORS[name], data(12, weighted=weighted)
    plan = plan_of(estimator, y, p, v)
    q = np.random.default_rng(4).dirichlet(np.ones(3), 12)
    for chances in (q, 0.5 * q + 0.5 * p, np.eye(3)[y]):
        assert_near(estimator.truth(plan, chances), cases.expected_truth(estimator, p, chances, v))
    assert estimator.truth(plan, p) == 0


def test_the_true_error_of_a_binary_problem():
    y, p, v = data(12, weighted=True)
    sample = cases.sample_of(y, p, v, setting=1)
    chance = np.random.default_rng(5).random(12)
    q = np.column_stack([1 - chance, chance])
    for name, estimator in ESTIMATORS.items():
        got = estimator.truth(estimator.prepare(sample, 12), q)
        assert_near(got, cases.expected_truth(estimator, sample.s, q, v), what=name)


# -- by name ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_bootstrap_has_the_values_of_its_draws(name, weighted):
    y, p, v = data(30, weighted=weighted)
    estimator = fastece.ESTIMATORS[name]
    options = {"estimator": name, "n_resamples": 70, "rng": 1, "sample_weight": v}
    result = fastece.bootstrap(y, p, method="bca", **options)
    assert result.value == fastece.ece(y, p, estimator=name, sample_weight=v)
    assert result.setting == "class vectors"
    c = draws_of(result.key, 30, 30).make(0, 3)
    plan = plan_of(estimator, y, p, v)
    assert result.bootstrap_distribution == near(estimator.values(plan, Counts(c))[:70])
    for r in (0, 69):
        want = cases.expected(estimator, y, p, v, c[r // 32, :, r % 32])
        assert_near(result.bootstrap_distribution[r], want)
    for method in ("basic", "percentile", "bca"):
        low, high = result.interval(method=method)
        assert low <= high
    assert name == "canonical" or "SKCE" in str(result)


@pytest.mark.parametrize("size", [2, 5, 100, 130])
@pytest.mark.parametrize("name", NAMES)
def test_draws_of_any_size_count_copies_as_one_row(name, size):
    # Few of many rows are lists of rows, in which a row may stand twice.
    y, p, v = data(100, weighted=True)
    estimator = fastece.ESTIMATORS[name]
    options = {"estimator": name, "n_resamples": 40, "rng": 1, "size": size, "sample_weight": v}
    result = fastece.bootstrap(y, p, **options)
    draws = draws_of(result.key, 100, size)
    if hasattr(draws, "rows"):
        counts = [np.bincount(rows, minlength=100) for rows in draws.rows(0, 40)]
    else:
        c = draws.make(0, 2)
        counts = [c[r // 32, :, r % 32] for r in range(40)]
    plan = plan_of(estimator, y, p, v, size)
    want = [estimator.evaluate(plan, c) for c in counts]
    assert result.bootstrap_distribution == near(want)


def test_groups_are_drawn_whole():
    y, p, v = data(24, weighted=True)
    groups = np.arange(24) // 3
    for name in NAMES:
        options = {"estimator": name, "n_resamples": 40, "rng": 2, "groups": groups}
        result = fastece.bootstrap(y, p, sample_weight=v, **options)
        estimator, plan = fastece.ESTIMATORS[name], plan_of(fastece.ESTIMATORS[name], y, p, v)
        c = draws_of(result.key, 8, 8).make(0, 2)[:, groups]
        want = estimator.values(plan, Counts(np.ascontiguousarray(c)))[:40]
        assert result.bootstrap_distribution == near(want)


@pytest.mark.parametrize("name", NAMES)
def test_an_estimate_has_the_value_and_an_interval(name):
    good, bad = cases.draw(80, 3, 6), cases.shifted(80, 3, 6)
    for model, is_good in ((good, True), (bad, False)):
        result = fastece.estimate(*model, estimator=name, n_resamples=199, rng=0)
        low, high = result.confidence_interval
        assert result.value == fastece.ece(*model, estimator=name)
        assert 0 <= low <= high
        assert (result.p_value > 0.05) == (low == 0) == is_good
        assert result.method == "test inversion"


@pytest.mark.parametrize("setting", ["auto", "confidence", "classwise", 1])
@pytest.mark.parametrize("name", NAMES)
def test_an_estimate_has_about_the_p_value_of_the_test(name, setting):
    # Both have some 195 replicates, so that they differ by 0.2 once in 1e4 seeds.
    y, p = cases.draw(50, 3, 8)
    options = {"estimator": name, "setting": setting, "n_resamples": 199}
    result = fastece.estimate(y, p, rng=0, **options)
    test = fastece.calibration_test(y, p, rng=1, **options)
    assert result.value == near(test.value)
    assert abs(result.p_value - test.p_value) < 0.2


# -- threads and memory ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_without_a_kept_kernel_values_are_the_same(name):
    estimator, (y, p, v) = ESTIMATORS[name], data(MANY + 31, weighted=True)
    plan = plan_of(estimator, y, p, v)
    c = cases.multiplicities(len(y), len(y))
    values = estimator.values(plan, Counts(c))
    for r in (0, 17, 31):
        assert values[r] == near(estimator.evaluate(plan, c[0, :, r]))
    labels = np.random.default_rng(3).integers(0, 3, (1, len(y), 32)).astype(np.int32)
    labels[0, :, 0] = y
    relabelled = estimator.values(plan, Labels(labels))
    assert relabelled[0] == near(fastece.ece(y, p, estimator=estimator, sample_weight=v))
    other = labels[0, :, 31].astype(np.int64)
    assert relabelled[31] == near(fastece.ece(other, p, estimator=estimator, sample_weight=v))
    options = {"estimator": estimator, "n_resamples": 64, "rng": 3, "sample_weight": v}
    one, two = (fastece.bootstrap(y, p, n_jobs=jobs, **options) for jobs in (1, 2))
    assert same_bits(one.bootstrap_distribution, two.bootstrap_distribution)
    q = np.random.default_rng(4).dirichlet(np.ones(3), len(y))
    whole = np.ones(len(y), np.uint8)
    assert estimator.evaluate(plan, whole) == near(relabelled[0])
    assert estimator.truth(plan, p) == near(0.0)
    assert estimator.truth(plan, q) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE[:3])
def test_many_rows_are_those_of_numpy(name):
    # In tiles, of as many rows as are not kept: sums over pairs by numpy, in pieces.
    estimator, (y, p, v) = ESTIMATORS[name], data(MANY + 7, weighted=True)
    c = cases.multiplicities(len(y), len(y))[0, :, 0].astype(float)
    want = by_numpy(estimator, y, p, c * v, np.median(first_distances(p)))
    assert_near(estimator.evaluate(plan_of(estimator, y, p, v), c), want, CLOSE)


def first_distances(p):
    """Of pairs of the first thousand rows."""
    first = p[:1000]
    distance = np.sqrt(((first[:, None] - first) ** 2).sum(axis=2))
    return distance[np.triu_indices(1000, 1)]


def by_numpy(estimator, y, p, w, width):
    """The value where rows count w, from parts of matrices of all pairs."""
    n, n_classes = p.shape
    corner = np.eye(n_classes)[y]
    gap, log = corner - p, np.log(np.maximum(p, 1e-5))
    values = []
    for start in range(0, n, 500):
        some = slice(start, start + 500)
        if isinstance(estimator, DirichletKDE):
            constant = cases.dirichlet_constants(p, estimator.bandwidth)
            powers = log[some] @ p.T / estimator.bandwidth + constant
            powers[np.arange(len(powers)), np.arange(start, start + len(powers))] = -np.inf
            k = np.exp(powers - powers.max(axis=1, keepdims=True)) * w
            r = k @ corner / k.sum(axis=1, keepdims=True)
            values.append((w[some, None] * abs(r - p[some]) ** estimator.norm).sum())
        else:
            distance = np.sqrt(((p[some, None] - p) ** 2).sum(axis=2))
            values.append(w[some] @ (np.exp(-distance / width) * (gap[some] @ gap.T)) @ w)
    if isinstance(estimator, DirichletKDE):
        return sum(values) / w.sum()
    if estimator.form == "biased":
        return sum(values) / w.sum() ** 2
    own = w**2 @ (gap**2).sum(axis=1)
    return (sum(values) - own) / (w.sum() ** 2 - (w**2).sum())


def test_a_table_names_the_settings_of_all_its_estimators():
    y, p = cases.draw(30, 3, 5)
    names = ["skce", "ece", "canonical"]
    found = fastece.calibration_test(y, p, estimator=names, n_resamples=9, rng=0)
    assert str(found).startswith("settings class vectors and confidence: 30 rows, 9 replicates")
    alone = fastece.calibration_test(y, p, estimator=["skce", "canonical"], n_resamples=9, rng=0)
    assert str(alone).startswith("setting class vectors: 30 rows, 9 replicates")
