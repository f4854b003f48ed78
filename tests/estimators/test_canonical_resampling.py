"""Canonical errors of replicates and of labels, and their tests of calibration."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

import fastece
from fastece import SKCE, DirichletKDE, calibration_test
from fastece.data.reading import read_problems
from fastece.estimators.draws import Counts, Labels
from fastece.resampling.draws import RowLists, Units, make_row_draws
from helpers import canonical_cases as cases
from helpers.canonical_cases import ESTIMATORS, assert_near, near
from helpers.chance import ALPHA, chi_square_p
from helpers.resample_cases import same_bits
from helpers.samples import draws

NAMES = ["canonical", "skce"]
# Rows of which no kernel is kept in memory.
MANY = 4100
LARGE = ["canonical, norm 2", "skce, biased"]


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


@pytest.mark.parametrize("name", ESTIMATORS)
def test_values_of_multiplicities_are_those_of_the_reference(name):
    estimator = ESTIMATORS[name]
    y, p, v = data(14, weighted=[*ESTIMATORS].index(name) % 2)
    plan = plan_of(estimator, y, p, v)
    c = draws(14, 14)[0]
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
    estimator = ESTIMATORS[name]
    y, p, v = data(14, weighted=True)
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
    counts_of_few = np.array(
        [3, 1, 2, 4, 4] + 9 * [0]
    )  # which by themselves ask for less smoothing
    for estimator in (DirichletKDE(), SKCE(), SKCE("biased", kernel="gaussian")):
        value = estimator.evaluate(plan_of(estimator, y, p, v), counts_of_few)
        assert_near(value, cases.expected(estimator, y, p, v, counts_of_few))
        alone = cases.expected(estimator, y[:5], p[:5], v[:5], counts_of_few[:5])
        assert abs(value - alone) > 1e-3


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scores_are_columns_to_every_setting_without_vectors(name):
    estimator = ESTIMATORS[name]
    y, p, v = data(12, weighted=True)
    for setting in ("confidence", 1, "classwise"):
        sample = cases.sample_of(y, p, v, setting=setting)
        assert sample.vectors is None
        plan = estimator.prepare(sample, 12)
        hit = sample.y.astype(int)
        c = draws(12, 12)
        values = estimator.values(plan, Counts(c))
        for r in (0, 9):
            want = cases.expected(estimator, hit, sample.s, v, c[0, :, r])
            assert_near(values[r], want)
            assert_near(estimator.evaluate(plan, c[0, :, r]), want)


@pytest.mark.parametrize("name", ["canonical, norm 2", "skce, default"])
def test_values_of_other_hits_of_a_binary_problem(name):
    estimator = ESTIMATORS[name]
    y, p, v = data(15, weighted=True)
    sample = cases.sample_of(y, p, v, setting=1)
    labels = np.random.default_rng(3).integers(0, 2, (1, 15, 32)).astype(np.int32)
    values = estimator.values(estimator.prepare(sample, 15), Labels(labels))
    for r in (0, 31):
        assert_near(values[r], cases.expected(estimator, labels[0, :, r], sample.s, v))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_true_error_is_that_of_the_reference(name):
    estimator = ESTIMATORS[name]
    y, p, v = data(12, weighted=[*ESTIMATORS].index(name) % 2)
    plan = plan_of(estimator, y, p, v)
    q = np.random.default_rng(4).dirichlet(np.ones(3), 12)
    for chances in (q, 0.5 * q + 0.5 * p, np.eye(3)[y]):
        assert_near(estimator.truth(plan, chances), cases.expected_truth(estimator, p, chances, v))
    assert estimator.truth(plan, p) == 0


@pytest.mark.parametrize(
    ("name", "size"), [("skce", 2), ("canonical", 5), ("canonical", 100), ("skce", 130)]
)
def test_draws_of_any_size_count_copies_as_one_row(name, size):
    # Few of many rows are lists of rows, in which a row may stand twice.
    y, p, v = data(100, weighted=True)
    estimator = fastece.ESTIMATORS[name]
    options = {"estimator": name, "n_resamples": 40, "rng": 1, "size": size, "sample_weight": v}
    result = fastece.bootstrap(y, p, **options)
    draws = make_row_draws(result.key, Units(100), size)
    if isinstance(draws, RowLists):
        counts = [np.bincount(rows, minlength=100) for rows in draws.make(0, 40)]
    else:
        c = draws.make(0, 2)
        counts = [c[r // 32, :, r % 32] for r in range(40)]
    plan = plan_of(estimator, y, p, v, size)
    want = [estimator.evaluate(plan, c) for c in counts]
    assert result.bootstrap_distribution == near(want)


@pytest.mark.parametrize("name", NAMES)
def test_an_estimate_has_the_value_and_an_interval(name):
    good = cases.draw(80, 3, 6)
    bad = cases.shifted(80, 3, 6)
    for model, is_good in ((good, True), (bad, False)):
        result = fastece.estimate(*model, estimator=name, n_resamples=199, rng=0)
        low, high = result.confidence_interval
        assert result.value == fastece.ece(*model, estimator=name)
        assert 0 <= low <= high
        assert (result.p_value > 0.05) == (low == 0) == is_good
        assert result.method == "test inversion"


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_without_a_kept_kernel_values_are_the_same(name):
    estimator = ESTIMATORS[name]
    y, p, v = data(MANY + 31, weighted=True)
    plan = plan_of(estimator, y, p, v)
    c = draws(len(y), len(y))
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
    once = np.ones(len(y), np.uint8)
    assert estimator.evaluate(plan, once) == near(relabelled[0])
    assert estimator.truth(plan, p) == near(0.0)
    assert estimator.truth(plan, q) > 0


@pytest.mark.parametrize("estimator", [*NAMES, DirichletKDE(0.02, 2.0), SKCE("biased")], ids=str)
def test_the_p_value_counts_errors_as_large_as_that_of_the_data(estimator):
    y, p = cases.draw(40, 3)
    v = np.random.default_rng(1).random(40) if isinstance(estimator, str) else None
    options = {"estimator": estimator, "sample_weight": v}
    result = calibration_test(y, p, n_resamples=99, rng=1, **options)
    assert type(result.value) is type(result.p_value) is float
    assert result.value == fastece.ece(y, p, **options)
    assert result.null_distribution.shape == (99,)
    above = np.sum(result.null_distribution >= result.value - 1e-12)
    assert result.p_value == (1 + above) / 100
    assert result.band is None
    assert (result.setting, result.n) == ("class vectors", 40)
    assert str(result).count("\n") == 3


def every_value(estimator, p, v):
    """Value of all K^n vectors of labels, and the probability of each under the predictions."""
    n, n_classes = p.shape
    chance_of_value = {}
    for y in product(range(n_classes), repeat=n):
        value = cases.expected(estimator, np.array(y), p, v)
        key = round(value, 9)
        chance_of_value[key] = chance_of_value.get(key, 0.0) + np.prod(p[np.arange(n), y])
    return chance_of_value


@pytest.mark.parametrize("estimator", [DirichletKDE(0.05), SKCE(), SKCE("biased")], ids=str)
def test_labels_are_drawn_with_the_probabilities_of_the_vectors(estimator):
    # All values with their probabilities, against 4000 that are drawn. False alarm: 1e-4 each.
    p = cases.draw(4, 3, 3)[1]
    p[1] = [0.0, 0.7, 0.3]
    v = np.array([1.0, 2.0, 0.5, 1.5])
    law = every_value(estimator, p, v)
    options = {"estimator": estimator, "sample_weight": v, "n_resamples": 4000, "rng": 4}
    result = calibration_test([0, 1, 2, 0], p, **options)
    values, counts = np.unique(result.null_distribution.round(9), return_counts=True)
    possible = np.array(sorted(law))
    place = np.abs(possible[:, None] - values).argmin(axis=0)
    assert np.abs(possible[place] - values).max() < 1e-8
    observed = np.zeros(len(possible))
    np.add.at(observed, place, counts)
    assert chi_square_p(observed, 4000 * np.array([law[x] for x in sorted(law)])) > ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_sure_and_right_is_calibrated_sure_and_wrong_is_not(name):
    y = np.arange(40) % 4
    right = calibration_test(y, np.eye(4)[y], estimator=name, n_resamples=50, rng=0)
    assert right.null_distribution.max() == right.null_distribution.min() == right.value
    assert right.p_value == 1
    wrong = calibration_test((y + 1) % 4, np.eye(4)[y], estimator=name, n_resamples=99, rng=0)
    assert wrong.p_value == 1 / 100


@pytest.mark.slow
def test_what_neither_the_top_label_nor_a_class_shows():
    # Orders of (0.1, 0.3, 0.6). The two smaller ones are 0.1 off, in cyclic orders one way, in the
    # others the other way: of each class and each of its probabilities that cancels.
    rng = np.random.default_rng(9)
    order = np.array(list(permutations(range(3))))[rng.integers(0, 6, 900)]
    way = np.linalg.det(np.eye(3)[order]).round()
    p = np.array([0.1, 0.3, 0.6])[order]
    true = p + way[:, None] * np.array([0.1, -0.1, 0.0])[order]
    y = cases.labels_from(true, rng)
    for setting in ("confidence", "classwise"):
        result = calibration_test(y, p, setting=setting, n_resamples=199, rng=0)
        assert result.p_value > 0.05
    for name in NAMES:
        assert calibration_test(y, p, estimator=name, n_resamples=199, rng=0).p_value < 0.01


# With 22 of 45 pairs equal: were every row there twice, more than half of them would be.
TIED = np.array([0.3] * 7 + [0.6, 0.6, 0.9])


@pytest.mark.parametrize("scores", [cases.draw(30, 2, 11)[1][:, 1], TIED], ids=len)
@pytest.mark.parametrize("name", NAMES)
def test_a_binary_problem_is_that_of_two_columns(name, scores):
    # Each by its own draws, of the same law: a row that stands there as a hit and as a miss would
    # be its own neighbour. False alarm: 1e-4 each.
    y = np.arange(len(scores)) % 2
    p = np.column_stack([1 - scores, scores])
    v = np.random.default_rng(1).random(len(y)) + 0.1
    options = {"estimator": name, "n_resamples": 1500, "sample_weight": v}
    two = calibration_test(y, p, rng=3, **options)
    for prob, setting in ((scores, "auto"), (p, "binary"), (p, 1), (p, "classwise")):
        one = calibration_test(y, prob, rng=4, setting=setting, **options)
        assert one.value == near(two.value)
        law = stats.ks_2samp(one.null_distribution.round(9), two.null_distribution.round(9))
        assert law.pvalue > ALPHA, setting


# Of 200 simulations 1 to 10 % may be false alarms. That there are fewer or more is up to chance,
# for a test whose level is exactly 5 %, in 0.2 % of all seeds (a binomial law).
MIN_RATE = 0.01
MAX_RATE = 0.10
SIMULATIONS = 200
CASES = [("canonical", 10), ("skce", 3)]


def rate(n, n_classes, **options):
    """Share of p-values of at most 5 %, of the simulations."""
    rejected = 0
    for seed in range(SIMULATIONS):
        rng = np.random.default_rng([n, n_classes, seed])
        prob = rng.dirichlet(np.ones(n_classes), n)
        y = cases.labels_from(prob, rng)
        rejected += calibration_test(y, prob, n_jobs=1, **options).p_value <= 0.05
    return rejected / SIMULATIONS


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_the_level_is_5_percent(name, n_classes):
    rng = np.random.default_rng(0)  # of which each call takes a number
    found_rate = rate(50, n_classes, estimator=name, n_resamples=199, rng=rng)
    assert MIN_RATE <= found_rate <= MAX_RATE, found_rate


@pytest.mark.slow
@pytest.mark.parametrize("shift", ["one class", "none of its own"])
def test_intervals_of_whole_vectors_hold_the_true_error(shift):
    # An interval that holds it in 95 % of cases misses more than 3 times in 0.2 % of seeds.
    misses = {"skce": 0, "canonical": 0}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, n_classes = (80, 8) if shift == "one class" else (80, 3)
        p = rng.dirichlet(np.ones(n_classes), n)
        factor = np.where(np.arange(n_classes) == 0, 8.0, 1.0)
        if shift != "one class":
            factor = 1 + np.roll(p, -1, axis=1) - np.roll(p, -2, axis=1)
        q = p * factor / (p * factor).sum(axis=1, keepdims=True)
        y = (rng.random((n, 1)) < q.cumsum(axis=1)).argmax(axis=1)
        for name in misses:
            estimator = fastece.ESTIMATORS[name]
            sample = read_problems(y, p, vectors=True).sample(0)
            truth = estimator.truth(estimator.prepare(sample, n), q)
            estimate = fastece.estimate(y, p, estimator=name, n_resamples=199, rng=seed)
            low, high = estimate.confidence_interval
            misses[name] += not low <= truth <= high
    assert max(misses.values()) <= 3, misses
