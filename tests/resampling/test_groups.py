"""Whole groups of rows are drawn: the law, the values, and what depends on neither."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

import fastece
from fastece import KDE, Binned
from fastece.data.samples import Sample
from fastece.estimators.table import ESTIMATORS, find_estimator
from fastece.resampling.dependence import design_effect
from fastece.resampling.draws import (
    LabelDraws,
    LeaveOutDraws,
    RowDraws,
    Units,
    make_row_draws,
)
from fastece.resampling.groups import Dependence, Groups
from helpers.chance import ALPHA, chi_square_p
from helpers.resample_cases import binary, classes, distribution, same_bits, two_models

# A replicate of an estimator of sums equals the estimator on a file of the drawn rows; the others
# use the number of rows, or pairs, of which two copies of a row are none.
NOT_SUMS = ("ece_kde", "ece_bayes", "canonical", "skce")
OF_SUMS = [
    *(name for name in ESTIMATORS if name not in NOT_SUMS),
    Binned(n_bins=4, edges="quantile", bin_weights="equal", threshold=0.3),
    Binned(n_bins=4, debias=True, norm=2, edges="quantile"),
    KDE(bandwidth=0.1), KDE(bandwidth=0.1, kernel="beta"), fastece.SmoothECE(scale=0.1),
]  # fmt: skip


def uneven(n, count=20, seed=0):
    """Groups (n,) of quite different sizes, mixed."""
    size = np.random.default_rng(seed).dirichlet(np.full(count, 0.7))
    group = np.random.default_rng(seed + 1).choice(count, n, p=size)
    group[:count] = np.arange(count)
    return group


def drawn(key, group, replicates):
    """How often (R, n) the rows of each replicate count."""
    groups = Groups.of(np.asarray(group))
    draws = make_row_draws(key, Units(groups.count, groups.of_row), groups.count)
    c = draws.of_problem(draws.make(0, -(-replicates // 32)), 0)
    return c.transpose(0, 2, 1).reshape(-1, c.shape[1])[:replicates].astype(np.int64)


@pytest.mark.slow
def test_draws_of_four_groups_have_the_law_of_all_draws():
    # All 4^4 draws of groups of 1, 2, 3 and 5 rows; false-alarm rate 1e-4.
    group = np.array([2, 0, 3, 3, 1, 2, 3, 1, 2, 3, 3])
    law = {}
    for draw in product(range(4), repeat=4):
        c = tuple(np.bincount(draw, minlength=4)[group])
        law[c] = law.get(c, 0) + 1 / 4**4
    count = 40_000
    rows, seen = np.unique(drawn(1, group, count), axis=0, return_counts=True)
    frequency = {tuple(c.tolist()): k for c, k in zip(rows, seen, strict=True)}
    assert set(frequency) <= set(law)
    expected = count * np.array(list(law.values()))
    assert chi_square_p([frequency.get(c, 0) for c in law], expected) > ALPHA


def test_test_with_groups_of_one_row_equals_the_test_without():
    true, prob = binary(50)
    plain = fastece.calibration_test(true, prob, n_resamples=99, rng=0)
    alone = fastece.calibration_test(true, prob, n_resamples=99, rng=0, groups=np.arange(50))
    assert same_bits(alone.null_distribution, plain.null_distribution)


@pytest.mark.parametrize("estimator", OF_SUMS, ids=str)
def test_replicate_of_groups_equals_the_value_of_its_rows(estimator):
    true, prob = binary(300, seed=4, decimals=2)
    group = uneven(300)
    has_weights = OF_SUMS.index(estimator) % 2
    weight = np.random.default_rng(5).integers(1, 4, 300) / 2 if has_weights else None
    result = fastece.bootstrap(
        true, prob, estimator=estimator, groups=group, sample_weight=weight, n_resamples=40, rng=6
    )
    for c, value in zip(drawn(result.key, group, 40), result.bootstrap_distribution, strict=True):
        rows = np.repeat(np.arange(300), c)
        w = None if weight is None else weight[rows]
        want = fastece.ece(true[rows], prob[rows], estimator=estimator, sample_weight=w)
        assert value == pytest.approx(want, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", ["ece_kde", "ece_bayes", Binned(n_bins="sqrt")], ids=str)
def test_replicates_of_groups_keep_the_number_of_rows(name):
    true, prob = binary(200, seed=4)
    group = uneven(200)
    estimator = find_estimator(name, {})
    result = fastece.bootstrap(true, prob, estimator=name, groups=group, n_resamples=33, rng=6)
    order = np.argsort(prob, kind="stable")
    n = order.size
    sample = Sample(prob[order], true[order].astype(np.uint8), np.ones(n), 0.0, 1.0, np.arange(n))
    plan = estimator.prepare(sample, n)
    want = [estimator.evaluate(plan, c[order]) for c in drawn(result.key, group, 33)]
    assert result.bootstrap_distribution == pytest.approx(want, rel=1e-9)


def test_classes_and_models_share_draws_of_groups():
    true, prob = classes(120)
    group = uneven(120)
    options = {"setting": "classwise", "groups": group, "n_resamples": 40, "rng": 8}
    every = fastece.bootstrap(true, prob, average=None, **options)
    for k in range(3):
        one = distribution(true, prob, **{**options, "setting": k})
        assert every.bootstrap_distribution[k] == pytest.approx(one, abs=1e-12)
    mean = every.bootstrap_distribution.mean(axis=0)
    assert distribution(true, prob, **options) == pytest.approx(mean, abs=1e-12)
    true, a, b = two_models(150)
    options = {"groups": uneven(150), "n_resamples": 40, "rng": 8}
    parts = [distribution(true, p, **options) for p in (a, b)]
    result = fastece.compare(true, a, b, estimator="ece", method="basic", **options)
    assert result.bootstrap_distribution == pytest.approx(parts[0] - parts[1], abs=1e-12)
    assert "150 rows in 20 groups, 40 replicates" in str(result)


def test_rows_of_weight_zero_and_their_groups_do_not_exist():
    true, prob = binary(200)
    group = uneven(200)
    weight = np.ones(200)
    weight[(group == 3) | (np.arange(200) % 7 == 0)] = 0
    options = {"n_resamples": 40, "rng": 1}
    weighted = fastece.bootstrap(true, prob, groups=group, sample_weight=weight, **options)
    is_weighted = weight > 0
    without = fastece.bootstrap(
        true[is_weighted], prob[is_weighted], groups=group[is_weighted], **options
    )
    assert weighted.n_groups == without.n_groups == np.unique(group[is_weighted]).size < 20
    want = pytest.approx(without.bootstrap_distribution, abs=1e-12)
    assert weighted.bootstrap_distribution == want


def test_acceleration_leaves_out_whole_groups():
    true, prob = binary(150, seed=2)
    group = uneven(150, 12)
    result = fastece.bootstrap(true, prob, groups=group, method="bca", n_resamples=99, rng=0)
    _, first = np.unique(group, return_index=True)
    values = np.array([
        fastece.ece(true[group != g], prob[group != g]) for g in group[np.sort(first)]
    ])  # fmt: skip
    gap = values.mean() - values
    want = (gap**3).sum() / (6 * (gap**2).sum() ** 1.5)
    assert result.acceleration == pytest.approx(want, abs=1e-10)
    c = LeaveOutDraws(Units(12, Groups.of(group).of_row), 12, 0, 11)
    assert c.of_problem(c.make(0, 1), 0)[0, :, :12].sum(axis=1).tolist() == [11] * 150


def test_band_is_made_of_the_curves_of_drawn_groups():
    true, prob = binary(200, seed=3)
    group = uneven(200)
    options = {"estimator": "ece_kde", "bandwidth": 0.1, "n_resamples": 60, "rng": 4}
    curve = fastece.reliability_curve(true, prob, groups=group, **options)
    parts = []
    for c in drawn(curve.key, group, 60):
        rows = np.repeat(np.arange(200), c)
        one = fastece.reliability_curve(true[rows], prob[rows], estimator="ece_kde", bandwidth=0.1)
        parts.append(np.interp(curve.score, one.score, one.probability))
    middle = slice(5, -5)
    assert np.median(parts, axis=0)[middle] == pytest.approx(curve.median[middle], abs=2e-3)


def test_results_show_their_groups_and_can_be_pickled():
    true, prob = binary(100)
    options = {"groups": uneven(100), "n_resamples": 50, "method": "bca"}
    result = fastece.bootstrap(true, prob, **options)
    assert "setting binary: 100 rows in 20 groups, 50 replicates" in str(result)
    assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()
    assert result.to_dict()["n_groups"] == 20


@pytest.mark.slow
def test_labels_of_groups_have_their_probabilities_and_covariance():
    # 64 000 draws: a mean is known to 0.002 and a covariance to 0.001; five of these are allowed.
    prob = np.array([0.3, 0.3, 0.8, 0.05, 0.6])
    of_row = np.array([0, 0, 0, 1, 1], np.int32)
    part = 0.5
    dependence = Dependence(of_row, 2, np.sqrt(part))
    c = LabelDraws(3, prob, 0, dependence).make(0, 2000)
    hits = c[:, :5].transpose(0, 2, 1).reshape(-1, 5)
    assert (c[:, :5] + c[:, 5:] == 1).all()
    assert hits.mean(0) == pytest.approx(prob, abs=0.01)
    largest = np.minimum.outer(prob, prob) - np.outer(prob, prob)
    want = np.where(np.equal.outer(of_row, of_row), part * largest, 0)
    np.fill_diagonal(want, prob * (1 - prob))
    assert np.cov(hits.T) == pytest.approx(want, abs=0.005)
    ones = np.ones(5)
    effect = ones @ want @ ones / np.trace(want)
    assert design_effect(dependence, prob, None) == pytest.approx(effect)
    v = np.array([1.0, 2, 0.5, 3, 1])
    weighted = v @ want @ v / (v**2 @ np.diag(want))
    assert design_effect(dependence, prob, v) == pytest.approx(weighted)
    # Some of the rows, as where not all are in memory, have the draws of all.
    last_rows = LabelDraws(3, prob[2:], 2, dependence.rows(2, 3)).make(1, 1)
    assert np.array_equal(last_rows[0, :3], c[1, 2:5])
    vectors = np.column_stack([prob, 0.4 * (1 - prob), 0.6 * (1 - prob)])
    label = LabelDraws(3, vectors, 0, replace(dependence, share=1.0)).make(0, 500)
    assert (label[:, 0] == label[:, 1]).all()
    for k in range(3):
        assert (label == k).mean((0, 2)) == pytest.approx(vectors[:, k], abs=0.02)


def correlated(rng, count, rho):
    """Labels, scores and groups: hits of a group are correlated, and each comes as its score says
    (a Gaussian copula)."""
    group = np.repeat(np.arange(count), 1 + rng.poisson(9, count))
    s = rng.beta(5, 1.5, group.size)
    noise_of_row = rng.normal(size=group.size)
    z = np.sqrt(rho) * rng.normal(size=count)[group] + np.sqrt(1 - rho) * noise_of_row
    return z < norm.ppf(s), s, group


@pytest.mark.slow
def test_test_with_groups_has_its_level_under_dependence():
    # 100 simulations: more than 13 % would be a false alarm of 0.05 %.
    grouped = plain = 0
    for seed in range(100):
        rng = np.random.default_rng([12, seed])
        y, s, group = correlated(rng, 60, 0.6)
        options = {"n_resamples": 199, "rng": rng}
        grouped += fastece.calibration_test(y, s, groups=group, **options).p_value <= 0.05
        plain += fastece.calibration_test(y, s, **options).p_value <= 0.05
    assert grouped <= 13
    assert plain >= 15


CALLS = {
    "ece": partial(fastece.estimate, estimator="ece"),
    "ece_ac": partial(fastece.estimate, estimator="ece_ac"),
    "ece_kde": partial(fastece.estimate, estimator="ece_kde"),
    "ece_bayes": fastece.estimate,
    "direction": fastece.direction,
    "direction of a curve": partial(fastece.direction, estimator="ece_bayes"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:.*times with the same labels")
def test_intervals_of_copied_rows_in_groups_equal_the_intervals_of_the_rows(name):
    # Eight copies of each row are one row, whatever their weights are.
    rng = np.random.default_rng(3)
    p = rng.random(120)
    y = rng.random(120) < p**2
    call = partial(CALLS[name], n_resamples=199)
    copies = np.repeat(np.arange(120), 8)
    one = call(y, p)
    dependent = call(y[copies], p[copies])
    weight = np.tile([0.5, 1.5], 480)
    grouped = call(y[copies], p[copies], groups=copies, sample_weight=weight)
    alone = call(y, p, groups=np.arange(120))
    widths = [
        high - low for low, high in (x.confidence_interval for x in (one, grouped, dependent))
    ]
    assert alone.confidence_interval == one.confidence_interval
    assert widths[1] == pytest.approx(widths[0], rel=0.2)
    assert widths[2] < 0.75 * widths[1]
    assert grouped.n_groups == 120
    assert grouped.notes == []
    assert "960 rows in 120 groups" in str(grouped)


@pytest.mark.slow
def test_few_groups_are_noted_for_every_setting():
    true, prob = classes(400)
    group = np.arange(400) // 25
    for setting in ("classwise", "confidence", 1):
        options = {"setting": setting, "n_resamples": 49}
        for estimator in ("ece_bayes", "ece", "skce"):
            if estimator != "skce" or setting == "confidence":
                options |= {"setting": "auto"} if estimator == "skce" else {}
                result = fastece.estimate(true, prob, estimator=estimator, groups=group, **options)
                assert result.confidence_interval.high > 0
    (note,) = result.notes
    assert note.startswith("16 groups are few")
    assert result.to_dict()["notes"] == [note]
    text = " ".join(str(result).split())
    assert note in text
    by = np.where(group < 4, "a", "b")
    table = fastece.slices(true, prob, by=by, groups=group)
    assert table.notes == fastece.direction(true, prob, groups=group).notes == [note]
    assert note in " ".join(str(table).split())
    rows = {row.label: row for row in table}
    alone = fastece.slices(true, prob, by=by)
    assert all(rows[row.label].n_effective <= row.n_effective for row in alone)


def test_test_with_groups_rejects_miscalibration():
    rng = np.random.default_rng(0)
    y, s, group = correlated(rng, 100, 0.3)
    result = fastece.calibration_test(y, s**0.3, groups=group, n_resamples=199, rng=0)
    assert result.p_value == pytest.approx(1 / 200)
    assert "in 100 groups" in str(result)
    band = result.band
    assert (band.low <= band.high)[~np.isnan(band.low)].all()
    by_class = fastece.calibration_test(
        *classes(200), setting="classwise", average=None, groups=uneven(200), n_resamples=99, rng=0
    )
    assert by_class.p_value.shape == (3,)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([1, 2, 3], ValueError, r"groups: must have shape \(30,\) as y_prob has rows, got \(3,\)"),
        (np.ones((30, 2)), ValueError, r"groups: must have shape \(30,\)"),
        ([*range(29), None], ValueError, r"groups: must not be missing.*groups\[29\]"),
        (np.ones(30), ValueError, "groups: must be at least 2 that have rows"),
        (7, TypeError, "groups: must be an array, no int, got 7"),
    ],
)
def test_bad_groups_are_refused(groups, error, message):
    true, prob = binary(30)
    calls = [
        *(
            partial(function, true, prob, groups=groups)
            for function in (fastece.estimate, fastece.direction, fastece.calibration_report)
        ),
        lambda: fastece.slices(true, prob, by=true, groups=groups),
        lambda: fastece.bootstrap(true, prob, groups=groups),
        lambda: fastece.compare(true, prob, prob, groups=groups),
        lambda: fastece.calibration_test(true, prob, groups=groups),
        lambda: fastece.reliability_curve(
            true, prob, groups=groups, estimator="ece_kde", n_resamples=9
        ),
    ]
    for call in calls:
        with pytest.raises(error, match=message):
            call()


def test_groups_refuse_bands_without_resamples():
    true, prob = binary(30)
    groups = np.arange(30) // 3
    with pytest.raises(ValueError, match="groups: go with n_resamples of 1 or more for a KDE"):
        fastece.reliability_curve(true, prob, groups=groups, estimator="ece_kde")


def test_bits_of_groups_are_equal_for_any_workers():
    true, prob = binary(3000)
    options = {"estimator": ["ece", "ece_ac", "brier_score"], "groups": uneven(3000, 300), "rng": 1}
    alone = fastece.bootstrap(true, prob, n_resamples=300, **options)
    with ThreadPoolExecutor(3) as pool:
        for how in ({"n_jobs": 2}, {"executor": pool}):
            results = fastece.bootstrap(true, prob, **{"n_resamples": 300, **options, **how})
            for name, result in alone.items():
                same = result.bootstrap_distribution, results[name].bootstrap_distribution
                assert same_bits(*same), (name, how)
    draws = RowDraws(4, Units(300, Groups.of(options["groups"]).of_row), 300)
    draws.units.of_row.flags.writeable = False  # as what comes from another process may be
    assert np.array_equal(
        draws.of_problem(draws.make(1, 1), 0)[0], draws.of_problem(draws.make(0, 2), 0)[1]
    )
