"""The estimator "ece_bayes", its posterior, and how often its interval holds the true error."""

import math

import numpy as np
import pytest

from fastece import BayesCurve, ece
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from fastece.data.samples import Sample, effective_rows
from fastece.estimators.bayes import curves as curves_module
from fastece.estimators.bayes.cells import (
    MAX_CELLS,
    cell_count,
    cells_of_problems,
    cells_of_rows,
)
from fastece.estimators.bayes.curves import (
    FAMILY_DRAWS,
    FAR_ODDS_PER_ROW,
    MIN_ODDS,
    MIN_SHARE,
    NEAR_ODDS_PER_ROW,
    PROCESS_ALONE,
    ROUGH,
    SPARSE,
    VALUE_BELIEF,
    Belief,
    Curves,
    probabilities,
)
from fastece.estimators.bayes.posterior import Posterior
from fastece.estimators.bayes.process import (
    DRAWS,
    ROUGHNESS,
    SCALES,
    VALUE_LAW,
    process_normals,
    process_priors,
)
from fastece.estimators.bayes.widening import calibrated_draws, calibrated_share, draw_order
from fastece.kernels import bayes
from oracles import reference_bayes as reference


def sample_of(s, y, v=None):
    """Rows as they come, as one problem."""
    s = np.asarray(s, np.float64)
    v = None if v is None else np.asarray(v, np.float64)
    return Sample(s, np.asarray(y, np.uint8), v, 0.0, 1.0, np.arange(s.size))


def rows(n=300, seed=0, digits=9):
    rng = np.random.default_rng(seed)
    s = rng.beta(3, 1, n).round(digits)
    return (rng.random(n) < s**1.5).astype(int), s


def reference_value(y, s, w, norm=1.0):
    """The value from the definition: with sixteen tenths of a second for each hyperparameter."""
    count = reference.effective_count(w)
    n_cells = cell_count(count)
    rows_of_cells = reference.cells(list(zip(s, y, w, strict=True)), n_cells, count)
    cuts = [math.log(MIN_ODDS + odds * count) for odds in (NEAR_ODDS_PER_ROW, FAR_ODDS_PER_ROW)]
    x, t = reference.logits(rows_of_cells, *reference.logit_range(rows_of_cells, *cuts))
    power, middle = VALUE_LAW
    chosen = [
        (2.0**power / (tau / middle + middle / tau) ** power, tau, *family)
        for tau in SCALES for family in ROUGHNESS
    ]  # fmt: skip
    return reference.posterior_mean(
        rows_of_cells, x, t, chosen, process_normals(n_cells, 0).T.tolist(), norm
    )


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1.0, math.inf])
def test_value_of_the_process_is_that_of_the_reference(norm, monkeypatch):
    monkeypatch.setattr(curves_module, "VALUE_BELIEF", PROCESS_ALONE)
    y, s = rows(25, digits=1)
    w = np.random.default_rng(1).integers(1, 4, 25)
    expected = reference_value(y.tolist(), s.tolist(), w.tolist(), norm)
    assert ece(y, s, estimator=BayesCurve(norm), sample_weight=w) == pytest.approx(expected)


def test_integer_weights_are_repetition_up_to_the_effective_number_of_rows():
    y, s = rows(200, digits=2)
    w = np.random.default_rng(0).integers(1, 3, 200)
    estimator = BayesCurve()
    (weighted,) = cells_of_problems(read_problems(y, s, ReadingOptions(sample_weight=w)), map)
    (repeated,) = cells_of_problems(read_problems(np.repeat(y, w), np.repeat(s, w)), map)
    assert weighted.n == pytest.approx(w.sum() ** 2 / (w * w).sum())
    assert repeated.n == w.sum()
    both = [x.cells[0] / x.n for x in (weighted, repeated)]
    if both[0].size == both[1].size:
        assert both[0] == pytest.approx(both[1])
    assert estimator.value(weighted) == pytest.approx(estimator.value(repeated), rel=0.25)


def test_value_is_the_mean_of_the_families():
    """Their weights are prior times evidence; evidence of chains is tested with kernels."""
    y, s = rows(400, digits=1)
    y[s > 0.85] = np.arange((s > 0.85).sum()) % 3 > 0  # a jump
    (cells,) = cells_of_problems(read_problems(y, s), map)
    curves = Curves(cells)
    evidence = np.array(curves.log_evidence(curves.priors.value))
    share = np.exp(evidence - evidence.max()) * VALUE_BELIEF.prior
    assert share.min() > MIN_SHARE * share.sum()  # less would be left out
    draws = [
        curves.draw_pieces(SPARSE),
        curves.process.draw(curves.priors.value, 0, DRAWS),
        curves.draw_pieces(ROUGH),
    ]
    means = [curves.errors(probabilities(z.copy()), 1.0).mean() for z in draws]
    expected = share @ means / share.sum()
    assert ece(y, s, estimator="ece_bayes") == pytest.approx(expected)
    # The family that alone is believed has all curves of an interval.
    (chosen,) = curves.choose(Belief((1.0, 0.0, 0.0)))
    assert set(chosen) == set(range(FAMILY_DRAWS[SPARSE]))


AWKWARD = {
    "one row": ([1], [0.3]),
    "one row of 0": ([1], [0.0]),
    "one row of 1": ([1], [1.0]),
    "all scores equal": ([0, 1, 1, 1] * 20, [0.5] * 80),
    "hits alone": ([1] * 50, np.linspace(0, 1, 50)),
    "misses alone": ([0] * 50, np.linspace(0, 1, 50)),
    "0 and 1, right": ([0, 1] * 40, [0.0, 1.0] * 40),
    "0 and 1, wrong": ([1, 0] * 40, [0.0, 1.0] * 40),
    "tiny": ([0, 0, 1], [5e-324, 1e-200, 1 - 1e-16]),
    "two": ([0, 1], [0.2, 0.9]),
}


@pytest.mark.filterwarnings("ignore:.*is it the probability of")
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_rows_have_a_value_and_an_interval(name):
    y = np.array(AWKWARD[name][0])
    s = np.array(AWKWARD[name][1], np.float64)
    for norm in (1.0, 2.0, math.inf):
        estimator = BayesCurve(norm)
        value = ece(y, s, estimator=estimator)
        posterior = estimator.posterior(read_problems(y, s).samples())
        low, high = posterior.interval(0.95)
        assert 0 <= low <= value <= high <= 1
        assert posterior.value == pytest.approx(value, rel=1e-6)
        assert np.isfinite(posterior.influence).all()


def test_what_rows_say_beyond_doubt_is_found():
    assert ece([0, 1] * 400, [0.0, 1.0] * 400, estimator="ece_bayes") < 0.01
    assert ece([1, 0] * 400, [0.0, 1.0] * 400, estimator="ece_bayes") > 0.98
    assert ece([1, 0, 0, 0] * 200, [0.75] * 800, estimator="ece_bayes") == pytest.approx(
        0.5, abs=0.02
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_million_rows_are_not_sorted(weighted):
    y, s = rows(100_000, digits=3)
    w = np.random.default_rng(0).random(100_000) if weighted else None
    problems = read_problems(y, s, ReadingOptions(sample_weight=w))
    estimator = BayesCurve()
    sample = problems.sample(0).sorted()
    expected = estimator.evaluate(estimator.prepare(sample, sample.n), np.ones(sample.n))
    assert estimator.point_values(problems)[0] == pytest.approx(expected, rel=1e-3)
    (rows_in_cells,) = cells_of_problems(problems, map)
    assert rows_in_cells.cells[0].size == MAX_CELLS
    assert rows_in_cells.cells[0].sum() == pytest.approx(rows_in_cells.n)


def test_large_norms_come_close_to_the_largest_gap():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = rng.random(200) < p**2
    values = [ece(y, p, estimator=BayesCurve(norm=norm)) for norm in (50, 200, 1000, np.inf)]
    assert np.all(np.diff(values) > 0)
    assert values[-2] == pytest.approx(values[-1], rel=0.02)


def drawn(n, curve, seed=0, a=2.0, b=1.0):
    """n scores of a beta distribution, and hits with the probability ``curve(s)``."""
    rng = np.random.default_rng(seed)
    s = rng.beta(a, b, n)
    return sample_of(s, rng.random(n) < curve(s))


PROBLEMS = {
    "calibrated": drawn(60, lambda s: s),
    "too sure": drawn(200, lambda s: 0.5 + 0.6 * (s - 0.5), 1),
    "one side": drawn(100, lambda s: s**2, 2),
    "sharp": drawn(600, lambda s: 0.9 * s, 3, 9, 0.7),
    "a wave": drawn(500, lambda s: s + 0.1 * np.sin(2 * np.pi * s), 4),
}


def importance_sample(curves, draws=3000, seed=0):
    """Errors and weights of draws from Laplace's normal distributions, for all hyperparameters of
    the interval that count."""
    x = curves.x
    t = curves.process.t
    n = x.size
    rng = np.random.default_rng(seed)
    weight, hits, score = curves.rows.cells
    lines = np.hstack([np.eye(n), np.ones((n, 1)), t[:, None]])
    errors = []
    logs = []
    log_prior = process_priors(n).interval
    log_evidence = curves.process.log_evidence
    tops = curves.process.state.reshape(n + 4, -1, bayes.LANES)[2:-2, 0]
    for g, ((tau, family), log_p) in enumerate(
        zip([(tau, f) for tau in SCALES for f in ROUGHNESS], log_prior, strict=True)
    ):
        if log_p + log_evidence[g] < (log_prior + log_evidence).max() - 8:
            continue
        prior = np.array(reference.prior_precision(n, tau, *family))
        top = np.append(tops[:, g], curves.process.b.reshape(-1, bayes.LANES)[:2, g])
        p = 1 / (1 + np.exp(-(x + lines @ top)))
        factor = np.linalg.cholesky(prior + lines.T @ ((weight * p * (1 - p))[:, None] * lines))
        z = rng.normal(size=(draws, n + 2))
        theta = top + np.linalg.solve(factor.T, z.T).T
        logit = x + theta @ lines.T
        likelihood = logit @ hits - np.logaddexp(0, logit) @ weight
        target = likelihood - 0.5 * np.einsum("ij,jk,ik->i", theta, prior, theta)
        target += 0.5 * np.linalg.slogdet(prior)[1] + log_p
        proposal = -0.5 * (z * z).sum(1) + np.log(np.diag(factor)).sum()
        logs.append(target - proposal)
        errors.append(np.abs(1 / (1 + np.exp(-logit)) - score) @ weight / weight.sum())
    logs = np.concatenate(logs)
    return np.concatenate(errors), np.exp(logs - logs.max())


def weighted_quantiles(values, weights, q):
    order = np.argsort(values)
    return np.interp(q, np.cumsum(weights[order]) / weights.sum(), values[order])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["too sure", "sharp"])
def test_posterior_is_that_of_importance_sampling(name):
    curves = Curves(cells_of_rows(PROBLEMS[name].sorted()))
    errors, weights = importance_sample(curves)
    assert weights.sum() ** 2 / (weights @ weights) > 300  # the effective number of draws
    x, t, state, b, log_evidence = curves.process
    log_prior = process_priors(x.size).interval
    normal_numbers = np.random.default_rng(1).normal(size=(x.size + 2, 4000))
    logit = bayes.draw_process(x, t, state, b, log_evidence + log_prior, normal_numbers)
    drawn_errors = curves.errors(probabilities(logit), 1.0)
    assert drawn_errors.mean() == pytest.approx(weights @ errors / weights.sum(), rel=0.05)
    q = [0.1, 0.5, 0.9]
    assert np.quantile(drawn_errors, q) == pytest.approx(
        weighted_quantiles(errors, weights, q), rel=0.05
    )
    # And the few draws that are taken stand for many.
    errors_of_few = curves.errors(probabilities(curves.process.draw(log_prior, 0, DRAWS)), 1.0)
    assert errors_of_few.mean() == pytest.approx(drawn_errors.mean(), rel=0.04)


def test_influence_is_in_the_order_of_the_rows():
    sample = PROBLEMS["one side"]
    posterior = BayesCurve().posterior([sample])
    order = np.random.default_rng(0).permutation(sample.n)
    again = BayesCurve().posterior([sample.where(order)])
    assert again.influence == pytest.approx(posterior.influence[order], abs=1e-12)
    assert again.errors == pytest.approx(posterior.errors)
    # Hits are rarer than scores say, so each miss makes the error larger.
    low = sample.y == 0
    assert posterior.influence[low].mean() > 0.1 > posterior.influence[~low].mean()


@pytest.mark.slow
def test_influence_of_many_rows_is_that_of_their_cells():
    """They are not sorted: the cells that the means are of must be those that rows are put in."""
    sample = drawn(70_000, lambda s: s**1.2)
    sample_with_ties = sample.where(np.arange(sample.n))
    sample_with_ties.s[:20_000] = sample_with_ties.s[:20_000].round(2)
    (part,) = BayesCurve().posterior([sample_with_ties]).problems
    weight, hits, score = part.rows.cells
    cell = part.rows.find_cells(sample_with_ties)
    assert np.bincount(cell, minlength=weight.size) == pytest.approx(weight)
    assert np.bincount(cell, sample_with_ties.y, weight.size) == pytest.approx(hits)
    gap, _, sign = (mean[cell] for mean in part.mean_gaps)
    assert part.influence() == pytest.approx(sign * (sample_with_ties.y - score[cell] - gap))


def laws_of_intervals(posterior, n_levels=60):
    levels = np.linspace(0.01, 0.999, n_levels)
    ends = np.array([posterior.interval(level) for level in levels])
    assert (np.diff(ends[:, 0]) <= 0).all()
    assert (np.diff(ends[:, 1]) >= 0).all()
    assert (ends[:, 0] <= posterior.value).all()
    assert (ends[:, 1] >= posterior.value).all()
    assert (ends >= 0).all()
    assert (ends <= 1).all()
    begins_at_0 = np.log(1 / (1 - levels)) >= posterior.log_bayes_factor
    assert (ends[begins_at_0, 0] == 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_higher_level_is_never_narrower(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    s = [rng.random(n), rng.random(n).round(1), rng.beta(9, 0.5, n)][seed % 3]
    k = 1 + seed % 2
    samples = [sample_of(s, rng.random(n) < s ** rng.uniform(0.3, 3)) for _ in range(k)]
    laws_of_intervals(BayesCurve().posterior(samples))


def posterior_with(value, errors, factor, max_error=1.0):
    """A posterior whose ends have the same errors."""
    in_order = np.sort(errors)
    return Posterior(value, errors, in_order, in_order, in_order, factor, (), max_error)


@pytest.mark.parametrize("factor", [-5.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 50.0])
def test_intervals_widen_on_both_sides_of_where_doubt_begins(factor):
    errors = np.random.default_rng(0).gamma(4, 0.01, DRAWS)
    laws_of_intervals(posterior_with(float(errors.mean()), errors, factor))


def test_quantiles_beyond_the_draws_follow_a_log_normal_law():
    from scipy.special import ndtri

    z = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
    posterior = posterior_with(0.05, 0.05 * np.exp(0.3 * z), 50.0, 0.2)
    for level in (0.05, 0.3, 0.9):  # between the tails, they are quantiles of the draws
        assert posterior.quantile(posterior.errors, level) == pytest.approx(
            np.quantile(posterior.errors, level)
        )
    for level in (0.0005, 0.004, 0.99, 0.999):
        edge = np.clip(level, 1 / 64, 63 / 64)
        z_at_edge = np.log(np.quantile(posterior.errors, edge) / 0.05) / 0.3
        beyond = z_at_edge + 1.3 * (ndtri(level) - z_at_edge)
        expected = 0.05 * np.exp(0.3 * beyond)
        assert posterior.quantile(posterior.errors, level) == pytest.approx(expected, rel=1e-3)
    assert (
        posterior.quantile(posterior.errors, 1 - 1e-15) == 0.2
    )  # no error is larger than the largest
    partly_zero = posterior_with(0.0, np.where(np.arange(DRAWS) < 90, 0.0, 0.1), 50.0)
    assert partly_zero.quantile(partly_zero.errors, 0.999) == pytest.approx(0.1)
    assert partly_zero.quantile(partly_zero.errors, 0.001) == 0


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_sides_are_parts_of_the_error_of_each_draw(norm):
    sample = PROBLEMS["one side"]
    estimator = BayesCurve(norm)
    both_sides, over, under = estimator.posterior_parts([sample])
    assert both_sides.errors == pytest.approx(estimator.posterior([sample]).errors)
    curves = Curves(cells_of_rows(sample.sorted()))
    p = probabilities(curves.interval_draws())
    weight, _, score = curves.rows.cells
    weight = weight / weight.sum()
    gap = p - score[:, None]
    for side, posterior in ((-1, over), (1, under)):
        of_draws = np.maximum(side * gap, 0)
        if np.isinf(norm):
            want = of_draws[weight > 0].max(0)
        else:
            want = (weight @ of_draws**norm) ** (1 / norm)
        plain = curves.errors(p, norm)
        assert posterior.errors == pytest.approx(want * both_sides.errors / plain, rel=1e-9)
    if norm == 1:
        assert over.value + under.value == pytest.approx(both_sides.value, rel=1e-12)
        assert over.errors + under.errors == pytest.approx(both_sides.errors, rel=1e-12)
    assert over.value > 3 * under.value  # hits are rarer than scores say


def test_a_level_is_between_0_and_1():
    posterior = BayesCurve().posterior([PROBLEMS["calibrated"]])
    for level in (0.0, 1.0, -1, 2, math.nan):
        with pytest.raises(ValueError, match="confidence_level"):
            posterior.interval(level)


def test_a_score_of_0_with_a_hit_is_not_calibrated():
    posterior = BayesCurve().posterior([sample_of([0.0, 0.5, 0.9], [1, 0, 1])])
    assert posterior.log_bayes_factor > 600
    assert posterior.interval(0.999)[0] > 0


def test_logits_are_cut_further_where_hits_do_not_object():
    """At each end by itself, and at both as the reference has it."""
    low = np.full(200, 1e-6)
    high = np.full(200, 1.0)
    near, far = (math.log(MIN_ODDS + odds * 400) for odds in (0.5, 2.0))
    for misses, expected in ((0, (-far, far)), (20, (-far, near))):
        y = np.append(np.zeros(200), np.arange(200) >= misses)
        rows = cells_of_rows(sample_of(np.append(low, high), y).sorted())
        assert Curves(rows).cuts == pytest.approx(expected)
        rows_of_cells = list(zip(*(part.tolist() for part in rows.cells), strict=True))
        assert reference.logit_range(rows_of_cells, near, far) == pytest.approx(expected)
    rows = cells_of_rows(sample_of([0.3, 0.6], [0, 1]))
    assert Curves(rows).cuts == pytest.approx((-math.log(3), math.log(3)))


def test_fixed_normal_numbers_are_normal_and_differ_by_class():
    first = process_normals(64, 0)
    second = process_normals(64, 1)
    assert first.shape == (66, DRAWS)
    assert np.sort(first, axis=1) == pytest.approx(np.sort(second, axis=1))
    assert np.allclose(first.mean(1), 0)
    assert first.var() == pytest.approx(1, abs=0.02)
    together = (first * second).mean(1)
    assert np.abs(together).mean() < 0.12
    assert np.abs(np.corrcoef(first)[np.triu_indices(66, 1)]).max() < 0.45
    order = draw_order()
    assert abs(np.corrcoef(order, np.arange(DRAWS))[0, 1]) < 0.05


@pytest.mark.parametrize("unit", [1e300, 1e-300, 3.0])
def test_the_effective_number_of_rows_has_no_unit(unit):
    w = np.arange(1.0, 8)
    assert effective_rows(unit * w, 7) == pytest.approx(28**2 / 140, rel=1e-12)


@pytest.mark.parametrize("log_factors", [[-1, -0.5, 8], [3, -2, -1, -1, 4, 0.2], [-1, -1], [5, 9]])
def test_share_of_calibrated_problems_is_the_likeliest(log_factors):
    factors = np.exp(np.array(log_factors, np.float64))
    shares = np.linspace(0, 1, 10_001)
    likelihoods = (shares + (1 - shares) * factors[:, None]).prod(axis=0)
    likeliest = shares[likelihoods.argmax()]
    assert calibrated_share(factors) == pytest.approx(likeliest, abs=2e-4)
    drawn = calibrated_draws(np.log(factors)).mean(axis=1)
    expected = likeliest / (likeliest + (1 - likeliest) * factors)
    assert drawn == pytest.approx(expected, abs=1 / DRAWS)


def test_factors_beyond_numbers_decide():
    draws = calibrated_draws(np.array([np.inf, 1e4, -1e4]))
    assert draws.mean(axis=1).tolist() == [0, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [20, 40])
def test_interval_of_a_mean_holds_the_error_of_one_class(n_classes):
    """The noise of many calibrated classes is not taken for error."""
    rng = np.random.default_rng(n_classes)
    covers = []
    for _ in range(5):
        samples = []
        for k in range(n_classes):
            s = rng.beta(1, 4, 1000)
            chance = s * 0.3 if k == 0 else s
            samples.append(sample_of(s, rng.random(1000) < chance))
        truth = 0.7 * 0.2 / n_classes
        low, high = BayesCurve().posterior(samples).interval()
        assert low > 0  # the class is found
        covers.append(low <= truth <= high)
    assert all(covers)


CURVES = {
    "calibrated": lambda s: s,
    "too sure": lambda s: 0.5 + 0.7 * (s - 0.5),
    "one side": lambda s: s**1.5,
    "a wave": lambda s: (s + 0.08 * np.sin(4 * np.pi * s)).clip(0, 1),
    "stairs": lambda s: (np.floor(4 * s).clip(0, 3) + 0.5) / 4,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n"),
    [("calibrated", 60), ("too sure", 500), ("one side", 60), ("a wave", 500), ("stairs", 60)],
)
def test_interval_holds_the_true_error(name, n):
    """Of 80 intervals at 95 %, at least 68: fewer has a probability of 5e-5 where 95 % hold it, of
    0.4 % where 92 % do."""
    rng = np.random.default_rng([5, n])
    curve = CURVES[name]
    fine = np.random.default_rng(0).beta(3, 1.2, 400_000)
    truth = np.abs(curve(fine) - fine).mean()
    held = 0
    for _ in range(80):
        s = rng.beta(3, 1.2, n)
        low, high = BayesCurve().posterior([sample_of(s, rng.random(n) < curve(s))]).interval()
        held += low <= truth <= high
    assert held >= 68
