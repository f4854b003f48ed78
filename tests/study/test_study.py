"""The pieces of a study: mixtures, truth, designs, estimators of one's own, folders, tables, and
the command."""

import csv
import json
import math
import shutil
import statistics
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from math import fsum, inf, nan
from pathlib import Path

import numba
import numpy as np
import pytest
import reference
import scipy
from chance import ALPHA, chi_square_p
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

sklearn = pytest.importorskip("sklearn")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

import study_cases as cases  # noqa: E402
from study_cases import FIFTEEN, SINGLE, TINY  # noqa: E402

import fastece  # noqa: E402
from fastece import Binned  # noqa: E402
from fastece.cli.commands import main  # noqa: E402
from fastece.protocol import Sample  # noqa: E402
from fastece.study import Design, preset, run_study, study  # noqa: E402
from fastece.study.contestants import own  # noqa: E402
from fastece.study.design import PRESETS, Distribution  # noqa: E402
from fastece.study.distributions import GaussianMixture  # noqa: E402
from fastece.study.models import MODELS, predicted  # noqa: E402
from fastece.study.runner import Outcome, contestants_of, run_distribution  # noqa: E402
from fastece.study.sources import NO_NUMBERS, package_hash  # noqa: E402
from fastece.study.store import Store, write_whole  # noqa: E402
from fastece.study.summary import distribution_table, ranking_of, summarise  # noqa: E402
from fastece.study.truth import truth_from_labels, truth_from_posterior  # noqa: E402

# -- mixtures --------------------------------------------------------------------------------------


def drawn_mixture(n_classes, n_features, seed=0, n_modes=4):
    return GaussianMixture.draw(n_classes, n_features, np.random.default_rng(seed), n_modes)


def covariances(mixture):
    """A^T A of each mode (K, M, d, d)."""
    return mixture.factors.swapaxes(-1, -2) @ mixture.factors


def scipy_logs(mixture, x):
    """log p(x | k) (K, n) by scipy."""
    shape, covariance = mixture.means.shape, covariances(mixture)
    out = np.empty((shape[0], len(x)))
    for k in range(shape[0]):
        modes = [
            stats.multivariate_normal(mixture.means[k, m], covariance[k, m]).logpdf(x)
            for m in range(shape[1])
        ]
        out[k] = np.logaddexp.reduce(np.reshape(modes, (shape[1], len(x))), axis=0)
    return out - math.log(shape[1])


@pytest.mark.parametrize("n_features", [1, 2, 5, 7])
@pytest.mark.parametrize("n_classes", [2, 5, 7])
def test_density_and_posterior_are_those_of_scipy(n_classes, n_features):
    mixture = drawn_mixture(n_classes, n_features)
    x, _ = mixture.sample(200, np.random.default_rng(1))
    x = np.concatenate([x, np.random.default_rng(2).uniform(-2, 2, (50, n_features))])
    # scipy inverts the covariances, whose condition is the square of that of the factors.
    condition = np.linalg.cond(covariances(mixture)).max()
    rel = max(1e-10, 100 * condition * np.finfo(float).eps)
    of_class = scipy_logs(mixture, x)
    assert mixture.class_log_density(x) == pytest.approx(of_class, rel=rel, abs=rel)
    posterior = mixture.posterior(x)
    assert posterior.shape == (250, n_classes)
    assert posterior.flags.c_contiguous
    assert posterior.sum(1) == pytest.approx(np.ones(250), abs=1e-14)
    for row, logs in zip(posterior, of_class.T, strict=True):
        each = [math.exp(log - logs.max()) for log in logs]
        scale = rel * np.abs(logs).max()  # an error of a log is a relative one of its power
        assert row == pytest.approx(np.array(each) / fsum(each), abs=max(1e-10, scale))


def test_well_conditioned_mixtures_are_those_of_scipy_to_ten_digits():
    for d in (2, 5, 7):
        rng = np.random.default_rng(d)
        factors = 0.3 * np.eye(d) + rng.uniform(-0.02, 0.02, (5, 4, d, d))
        mixture = GaussianMixture(rng.uniform(-1, 1, (5, 4, d)), factors)
        x, _ = mixture.sample(300, rng)
        of_class = scipy_logs(mixture, x)
        assert mixture.class_log_density(x) == pytest.approx(of_class, rel=1e-10, abs=1e-10)
        want = np.exp(of_class - of_class.max(0))
        assert mixture.posterior(x) == pytest.approx((want / want.sum(0)).T, abs=1e-10)


def test_a_random_mixture_is_in_the_box_of_the_paper():
    mixture = drawn_mixture(7, 7)
    assert mixture.means.shape == (7, 4, 7)
    assert mixture.factors.shape == (7, 4, 7, 7)
    # 1372 and 196 uniform numbers: the most extreme are near the ends (false alarm below 1e-8).
    for values, end in ((mixture.means, 1.0), (mixture.factors, 0.3)):
        assert np.abs(values).max() < end
        assert values.max() > 0.9 * end
        assert values.min() < -0.9 * end
        assert stats.kstest(values.ravel(), "uniform", (-end, 2 * end)).pvalue > ALPHA


def test_the_density_integrates_to_one():
    mixture = drawn_mixture(3, 1)
    x = np.linspace(-4, 4, 200_001)
    of_class = np.exp(mixture.class_log_density(x[:, None]))
    assert of_class.sum(1) * (x[1] - x[0]) == pytest.approx(np.ones(3))


def test_classes_and_modes_are_equally_frequent():
    # Modes so far apart that each row says which it is of. Two tests, each with ALPHA.
    rng = np.random.default_rng(0)
    means = 100 * np.arange(12).reshape(3, 4, 1) * np.ones(2)
    mixture = GaussianMixture(means, rng.uniform(-0.3, 0.3, (3, 4, 2, 2)))
    x, y = mixture.sample(24_000, rng)
    mode = np.rint(x.mean(1) / 100).astype(int)
    assert np.array_equal(mode // 4, y)
    assert chi_square_p(np.bincount(mode, minlength=12), np.full(12, 2000)) > ALPHA
    # In which order they come: pairs of neighbours are independent.
    pairs = np.bincount(y[::2] * 3 + y[1::2], minlength=9)
    assert chi_square_p(pairs, np.full(9, 12_000 / 9)) > ALPHA


@pytest.mark.parametrize("n_features", [1, 3, 6])
def test_means_and_covariances_of_modes_are_those_given(n_features):
    # One mode a class. In each class, n times the whitened mean squared is chi-square with d
    # degrees of freedom, the sum of all squares with n d (and the mean known), both exactly;
    # products of two coordinates sum up to nearly normal. Nine tests, each with ALPHA.
    rng = np.random.default_rng(n_features)
    mixture = drawn_mixture(3, n_features, seed=n_features, n_modes=1)
    x, y = mixture.sample(60_000, rng)
    for k in range(3):
        mine = x[y == k]
        n = len(mine)
        root = np.linalg.cholesky(covariances(mixture)[k, 0])
        z = np.linalg.solve(root, (mine - mixture.means[k, 0]).T).T
        assert stats.chi2.sf(n * np.sum(z.mean(0) ** 2), n_features) > ALPHA
        both = stats.chi2.cdf(np.sum(z**2), n * n_features)
        assert ALPHA / 2 < both < 1 - ALPHA / 2
        products = (z.T @ z)[np.triu_indices(n_features, 1)] / math.sqrt(n)
        if products.size:
            assert stats.chi2.sf(np.sum(products**2), products.size) > ALPHA


def test_labels_are_drawn_with_the_posterior():
    # For each class, hits less their probabilities are nearly normal: three tests with ALPHA, and
    # the same of the rows where the probability is middling.
    mixture = drawn_mixture(3, 2, seed=5)
    x, y = mixture.sample(50_000, np.random.default_rng(1))
    posterior = mixture.posterior(x)
    for k in range(3):
        p = posterior[:, k]
        for mine in (p >= 0, np.abs(p - 0.5) < 0.25):
            z = np.sum((y == k)[mine] - p[mine]) / math.sqrt(np.sum((p * (1 - p))[mine]))
            assert abs(z) < stats.norm.isf(ALPHA / 2)


def test_a_far_point_has_a_posterior():
    mixture = drawn_mixture(4, 2)
    x = np.array([[1e6, -1e6], [-1e150, 0], [0, 0]])
    posterior = mixture.posterior(x)
    assert np.isfinite(posterior).all()
    assert posterior.sum(1) == pytest.approx(np.ones(3))
    assert np.isfinite(mixture.class_log_density(x[:1])).all()


@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(0, 40),
    st.integers(0, 2**32),
)  # fmt: skip
def test_shapes(n_classes, n_modes, n_features, n, seed):
    mixture = drawn_mixture(n_classes, n_features, seed, n_modes)
    assert mixture.means.shape == (n_classes, n_modes, n_features)
    x, y = mixture.sample(n, np.random.default_rng(seed))
    assert x.shape == (n, n_features)
    assert x.dtype == np.float64
    assert y.shape == (n,)
    assert y.dtype == np.int64
    assert ((y >= 0) & (y < n_classes)).all()
    assert mixture.class_log_density(x).shape == (n_classes, n)
    posterior = mixture.posterior(x.tolist() if n else x)
    assert posterior.shape == (n, n_classes)
    assert posterior.sum(1) == pytest.approx(np.ones(n))
    again = drawn_mixture(n_classes, n_features, seed, n_modes)
    assert np.array_equal(again.means, mixture.means)
    assert np.array_equal(again.factors, mixture.factors)
    same = again.sample(n, np.random.default_rng(seed))
    assert np.array_equal(same[0], x)
    assert np.array_equal(same[1], y)


def test_other_seeds_draw_others():
    mixture = drawn_mixture(2, 2)
    x = [mixture.sample(5, np.random.default_rng(seed))[0] for seed in (0, 1)]
    assert not np.isin(*x).any()
    assert not np.isin(drawn_mixture(2, 2, 1).means, mixture.means).any()


def test_what_is_given_is_copied():
    means, factors = np.zeros((2, 1, 1)), np.ones((2, 1, 1, 1))
    mixture = GaussianMixture(means, factors)
    means[:] = 7
    assert (mixture.means == 0).all()
    assert GaussianMixture([[[0]], [[1]]], [[[[1]]], [[[2]]]]).posterior([[0.5]]).shape == (1, 2)


@pytest.mark.parametrize(
    ("means", "factors", "message"),
    [
        (np.zeros((2, 3)), np.ones((2, 3, 3)), r"means: must have the shape \(K, M, d\)"),
        (np.zeros((0, 4, 2)), np.ones((0, 4, 2, 2)), r"means: .*\(0, 4, 2\)"),
        (np.zeros((2, 0, 2)), np.ones((2, 0, 2, 2)), "means: must have the shape"),
        (np.zeros((2, 4, 2)), np.ones((2, 4, 2)), r"factors: must have .*\(2, 4, 2, 2\)"),
        (np.zeros((2, 4, 2)), np.ones((2, 4, 2, 3)), r"factors: .*got \(2, 4, 2, 3\)"),
        (np.zeros((1, 1, 2)), np.ones((1, 1, 2, 2)), "factors: one is singular"),
        (np.zeros((1, 1, 2)), np.zeros((1, 1, 2, 2)), "factors: one is singular"),
    ],
)
def test_wrong_mixtures_are_refused(means, factors, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(means, factors)


@pytest.mark.parametrize("x", [np.zeros(2), np.zeros((3, 3)), np.zeros((1, 2, 2)), 0.0])
def test_points_of_another_dimension_are_refused(x):
    mixture = drawn_mixture(2, 2)
    for method in (mixture.posterior, mixture.class_log_density):
        with pytest.raises(ValueError, match=r"X: must have the shape \(n, 2\)"):
            method(x)


def test_wrong_sizes_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="n: must be an integer from 0"):
        drawn_mixture(2, 2).sample(-1, rng)
    with pytest.raises(TypeError, match="n: must be an integer"):
        drawn_mixture(2, 2).sample(2.5, rng)
    for sizes, name in (((0, 2), "n_classes"), ((2, 0), "n_features"), ((2, 2, rng, 0), "n_modes")):
        sizes = sizes if len(sizes) == 4 else (*sizes, rng)
        with pytest.raises(ValueError, match=f"{name}: must be an integer from 1"):
            GaussianMixture.draw(*sizes)


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_models_give_probabilities_to_all_classes(name):
    mixture = drawn_mixture(3, 2, seed=1)
    x, y = mixture.sample(90, np.random.default_rng(0))
    prob = predicted(MODELS[name](0).fit(x, y), x, 3)
    assert prob.shape == (90, 3)
    assert prob.dtype == np.float64
    assert prob.flags.c_contiguous
    assert prob.sum(1) == pytest.approx(np.ones(90))
    assert ((prob >= 0) & (prob <= 1)).all()
    assert (prob.argmax(1) == y).mean() > 0.4
    again = predicted(MODELS[name](0).fit(x, y), x, 3)
    assert np.array_equal(again, prob)


def test_a_class_that_a_model_has_not_seen_has_no_probability():
    mixture = drawn_mixture(4, 2, seed=1)
    x, y = mixture.sample(90, np.random.default_rng(0))
    seen = (y == 1) | (y == 3)
    prob = predicted(MODELS["naive_bayes"](0).fit(x[seen], y[seen]), x, 4)
    assert (prob[:, [0, 2]] == 0).all()
    assert (prob[:, [1, 3]].sum(1)) == pytest.approx(np.ones(90))


def test_a_random_forest_has_the_seed_that_it_is_given():
    mixture = drawn_mixture(3, 2, seed=1)
    x, y = mixture.sample(90, np.random.default_rng(0))
    both = [predicted(MODELS["random_forest"](seed).fit(x, y), x, 3) for seed in (0, 1)]
    assert not np.array_equal(*both)


# -- truth -----------------------------------------------------------------------------------------


def test_truth_of_a_power_is_its_integral():
    # E |S^1.3 - S| = 1/2 - 1/2.3. The standard error of a mean of 400 000 gaps, of standard
    # deviation 0.03, is 5e-5; four of them: false-alarm rate 6e-5.
    s = np.random.default_rng(0).random(400_000)
    assert truth_from_posterior(s, s**1.3) == pytest.approx(0.5 - 1 / 2.3, abs=2e-4)
    # Rows in any order, and a smooth noise of the posterior around it, which has the mean 0.
    order = np.random.default_rng(1).permutation(s.size)
    assert truth_from_posterior(s[order], s[order] ** 1.3) == pytest.approx(
        truth_from_posterior(s, s**1.3), rel=1e-12
    )
    noise = np.random.default_rng(2).choice([-0.02, 0.02], s.size)
    assert truth_from_posterior(s, s**1.3 + noise) == pytest.approx(0.5 - 1 / 2.3, abs=3e-4)


@pytest.mark.parametrize("n", [1000, 1001, 20_000])
def test_calibrated_scores_have_no_error_at_all(n):
    s = np.random.default_rng(0).random(n)
    assert truth_from_posterior(s, s) == 0
    s = s.round(2)
    assert truth_from_posterior(s, s) == 0


def test_a_constant_gap_is_the_truth():
    s = np.random.default_rng(0).random(5000) * 0.5
    assert truth_from_posterior(s, s + 0.25) == pytest.approx(0.25, rel=1e-12)


@given(st.integers(1, 1500), st.sampled_from([None, 1, 2]), st.integers(0, 1000))
def test_truth_is_that_of_plain_loops(n, digits, seed):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    s = s if digits is None else s.round(digits)
    q = np.clip(s**1.2 + 0.1 * rng.standard_normal(n), 0, 1)
    assert truth_from_posterior(s, q) == pytest.approx(cases.truth(s, q), rel=1e-11, abs=1e-14)


def test_with_few_distinct_scores_bins_are_the_scores():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 101, 30_000) / 100
    q = np.clip(s + 0.05 * np.sin(9 * s) + 0.1 * rng.standard_normal(s.size), 0, 1)
    total = 0.0
    for score in set(s.tolist()):
        gaps = (q - s)[s == score].tolist()
        m, mean = len(gaps), fsum(gaps) / len(gaps)
        sd = math.sqrt(fsum((gap - mean) ** 2 for gap in gaps) / (m - 1) / m)
        total += m * (2 * abs(mean) - cases.folded(abs(mean), sd))
    assert truth_from_posterior(s, q) == pytest.approx(total / s.size, rel=1e-10)


def test_truth_neither_changes_nor_reorders_what_it_is_given():
    s = np.random.default_rng(0).random(2000)
    q = s**2
    s.setflags(write=False)
    q.setflags(write=False)
    assert truth_from_posterior(s, q) > 0


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1 / 3, 1.0)])
def test_truth_from_labels_is_the_plain_formula_of_2000_bins(low, high):
    rng = np.random.default_rng(0)
    for digits in (17, 2):
        s = (low + (high - low) * rng.random(150)).round(digits).clip(low, high)
        y = (rng.random(150) < s**1.3).astype(np.uint8)
        want = reference.error((s.tolist(), y.tolist(), 0.0, 1.0), n_bins=2000, closed="left")
        sample = Sample(s, y, None, low, high, np.arange(150))
        assert truth_from_labels(sample) == pytest.approx(want, abs=1e-12)


# -- designs ---------------------------------------------------------------------------------------


def test_the_paper_has_its_size():
    paper = preset("paper")
    assert paper == Design()
    assert len(paper.distributions) == len(set(paper.distributions)) == 540
    assert len(paper.sizes) == 20
    assert (paper.sizes[0], paper.sizes[-1]) == (30, 500)
    ratios = np.diff(np.log(paper.sizes))
    assert ratios == pytest.approx(np.full(19, np.log(500 / 30) / 19), abs=0.02)
    assert (paper.holdout, paper.draws, paper.train_size) == (200_000, 200, 300)
    assert paper.settings == ("confidence", "classwise")
    evaluations = 540 * 20 * 200 * 2 * len(FIFTEEN)
    assert evaluations == 64_800_000
    assert set(MODELS) == set(paper.models)
    assert len(paper.models) == 4


def test_distributions_of_one_mixture_follow_one_another():
    design = preset("paper")
    kinds = [which[:3] for which in design.distributions]
    changes = sum(a != b for a, b in pairwise(kinds))
    assert changes == len(set(kinds)) - 1
    names = [which.file_name for which in design.distributions]
    assert len(set(names)) == 540
    assert str(design.distributions[0]).startswith("2 classes, 2 features, mixture 0, ")


def test_presets_and_their_changes():
    assert set(PRESETS) == {"quick", "paper"}
    assert preset("quick", draws=7, holdout=None).draws == 7
    assert preset("quick", holdout=None) == PRESETS["quick"]
    assert preset("paper", holdout=2_000_000).holdout == 2_000_000
    assert preset("paper", largest=5000).sizes[-1] == 5000
    with pytest.raises(ValueError, match="preset: got 'full'; known: 'quick', 'paper'"):
        preset("full")
    with pytest.raises(ValueError, match="draws: must be an integer from 2"):
        preset("quick", draws=1)


def test_a_design_goes_through_json():
    design = replace(TINY, estimators=("a:b",), convention="published")
    assert Design(**json.loads(json.dumps(design.to_dict()))) == design
    assert hash(Design(classes=[2, 5])) == hash(Design(classes=(2, 5)))


def test_sizes_are_distinct_and_increase():
    assert replace(TINY, smallest=10, largest=12, n_sizes=20).sizes == (10, 11, 12)
    assert replace(TINY, smallest=10, largest=10, n_sizes=5).sizes == (10,)
    assert replace(TINY, n_sizes=1).sizes == (10,)


def test_random_numbers_depend_on_their_purpose_and_on_nothing_else():
    design = Design()
    first = design.rng(4, 2, 2, 0, 1, 0, 30).random(3)
    assert np.array_equal(replace(design, draws=7).rng(4, 2, 2, 0, 1, 0, 30).random(3), first)
    for other in (
        design.rng(3, 2, 2, 0, 1, 0, 30),
        design.rng(4, 2, 2, 0, 1, 0, 31),
        design.rng(4, 2, 2, 0, 0, 1, 30),
        replace(design, seed=1).rng(4, 2, 2, 0, 1, 0, 30),
    ):
        assert not np.isin(other.random(3), first).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": (1,)}, "classes: must be an integer from 2 to 1000, got 1"),
        ({"classes": ()}, r"classes: must be a list of some, got \(\)"),
        ({"features": (0,)}, "features: must be an integer from 1"),
        ({"models": "naive_bayes"}, "models: must be a list of some, got 'naive_bayes'"),
        ({"models": ("bayes",)}, "models: got 'bayes'; known: 'logistic_regression'"),
        ({"models": []}, "models: must be a list"),
        ({"settings": ("binary",)}, "settings: got 'binary'"),
        ({"settings": ("macro",)}, "settings: got 'macro'; known: "),
        ({"convention": "paper"}, "convention: got 'paper'; known: 'corrected', 'published'"),
        ({"convention": None}, "convention: got None"),
        ({"mixtures": 0}, "mixtures: must be an integer from 1"),
        ({"trainings": 0}, "trainings: must be an integer from 1"),
        ({"train_size": 9}, "train_size: must be an integer from 10"),
        ({"holdout": 999}, "holdout: must be an integer from 1000"),
        ({"smallest": 1}, "smallest: must be an integer from 2"),
        ({"n_sizes": 0}, "n_sizes: must be an integer from 1"),
        ({"draws": 1}, "draws: must be an integer from 2"),
        ({"seed": -1}, "seed: must be an integer from 0"),
        ({"largest": 29}, r"largest: must be from smallest \(30\) to holdout \(200000\), got 29"),
        ({"largest": 1001, "holdout": 1000}, r"largest: .* to holdout \(1000\), got 1001"),
        ({"estimators": "a:b"}, "estimators: must be a list of some, got 'a:b'"),
        # What would count some distributions or curves twice.
        ({"classes": (2, 2)}, "classes"),
        ({"models": ("naive_bayes", "naive_bayes")}, "models"),
        ({"settings": ("confidence", "confidence")}, "settings"),
    ],
)
def test_wrong_designs_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Design(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draws": 2.5}, "draws: must be an integer, got 2.5"),
        ({"draws": True}, "draws: must be an integer, got True"),
        ({"seed": None}, "seed: must be an integer"),
        ({"classes": (2.0,)}, "classes: must be an integer, got 2.0"),
        ({"classes": 2}, "classes"),
        ({"estimators": (3,)}, "estimators"),
    ],
)
def test_designs_of_wrong_kinds_are_refused(changes, message):
    with pytest.raises(TypeError, match=message):
        Design(**changes)


# -- estimators of one's own -----------------------------------------------------------------------

OWN = '''
import numpy as np
from fastece import Binned

class Gap:
    """The absolute mean gap."""

    def prepare(self, sample, size):
        return sample.y - sample.s

    def evaluate(self, plan, c):
        return float(abs(np.sum(plan * c)) / np.sum(c))

class Slow:
    """Ten bins, by prepare and evaluate alone."""

    def __init__(self):
        self.binned = Binned(n_bins=10, score_range="support")

    def prepare(self, sample, size):
        return self.binned.prepare(sample, size)

    def evaluate(self, plan, c):
        return self.binned.evaluate(plan, c)

class Narrow(Gap):
    """Of draws, each is asked for by its own rows."""

    def subsets(self, plan, rows):
        return np.array([abs(np.sum(plan[row])) / len(row) for row in np.sort(rows)])

an_object = Gap()
ready = Binned(n_bins=10, score_range="support")
number = 3

def a_function():
    return Gap()

def of_a_number():
    return 3

def with_arguments(x):
    return x

def out_of_reach():
    raise OSError("no such file")

class Unprepared:
    def evaluate(self, plan, c):
        return 0.0

class Failing(Gap):
    def evaluate(self, plan, c):
        return 1 / 0

zero = an_object
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module with estimators, on the path."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_estimators.py").write_text(OWN)
    (folder / "own_broken.py").write_text("import nothing_like_this\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "own_estimators", raising=False)
    return folder


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("name", ["Gap", "an_object", "a_function", "Slow", "ready"])
def test_an_estimator_of_ones_own_is_found(name):
    found = own(f"own_estimators:{name}")
    assert found.name == name
    sample = Sample(np.array([0.2, 0.8]), np.array([1, 0], np.uint8), None, 0.0, 1.0, np.arange(2))
    plan = found.estimator.prepare(sample, 2)
    assert 0 <= found.estimator.evaluate(plan, np.ones(2, np.uint8)) <= 0.8


@pytest.mark.usefixtures("quick")
def test_the_command_finds_modules_of_the_working_folder(module, monkeypatch, capsys, tmp_path):
    before = [path for path in sys.path if path not in (str(module), "", str(Path.cwd()))]
    monkeypatch.setattr(sys, "path", before.copy())
    monkeypatch.chdir(module)
    # Which must not take the place of a module of Python that nobody has imported so far.
    (module / "colorsys.py").write_text("raise AssertionError('of the working folder')")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (module / "own_here.py").write_text(f"import colorsys\n{OWN}")
    code, out, err = run(
        capsys, "--out", tmp_path / "a", "--jobs", 1, "--estimator", "own_here:Gap"
    )
    assert (code, err) == (0, "")
    assert out.count(" Gap ") == 2
    assert sys.path == [*before, str(module)]


@pytest.mark.usefixtures("quick")
def test_without_an_estimator_the_command_looks_for_nothing_in_the_working_folder(
    monkeypatch, capsys, tmp_path
):
    before = [path for path in sys.path if path not in ("", str(tmp_path))]
    monkeypatch.setattr(sys, "path", before.copy())
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "--jobs", 1)[0] == 0
    assert sys.path == before


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("own_estimators", ValueError, "must be \"module:name\", got 'own_estimators'"),
        (":Gap", ValueError, "must be"),
        ("own_estimators:", ValueError, "must be"),
        ("", ValueError, "must be"),
        ("no_such_module:Gap", ValueError, "'no_such_module:Gap' was not found: No module named"),
        ("own_estimators:Gab", ValueError, "'own_estimators:Gab' was not found: .*Gab"),
        ("own_broken:Gap", ValueError, "not found: No module named 'nothing_like_this'"),
        ("own_estimators:number", TypeError, "is no estimator, but 3"),
        ("own_estimators:of_a_number", TypeError, "estimator: .*got 3"),
        ("own_estimators:Unprepared", TypeError, "an object with prepare and evaluate"),
        ("own_estimators:with_arguments", TypeError, "makes none: .*missing 1 required"),
        ("own_estimators:out_of_reach", TypeError, "makes none: .*no such file"),
    ],
)
def test_what_is_no_estimator_is_refused(tmp_path, path, error, message):
    with pytest.raises(error, match=message) as caught:
        own(path)
    assert str(caught.value).startswith("estimator: ")
    with pytest.raises(error, match=message):
        run_study(replace(SINGLE, estimators=(path,)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("module")
def test_a_name_that_is_taken_is_refused(tmp_path):
    with pytest.raises(ValueError, match="estimator: the name 'zero' is taken"):
        run_study(replace(SINGLE, estimators=("own_estimators:zero",)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("module")
def test_ones_own_estimators_compete_on_the_same_draws():
    names = ("Slow", "ready", "Gap", "Narrow")
    design = replace(SINGLE, estimators=tuple(f"own_estimators:{name}" for name in names))
    which = design.distributions[0]
    outcome = run_distribution(design, which)
    entrants = [contestant.name for contestant in contestants_of(design)]
    assert entrants == [*FIFTEEN, *names, "zero"]
    values = dict(zip(entrants, outcome.estimates.swapaxes(0, 1), strict=True))
    assert np.array_equal(values["ready"], values["ece_10"])  # Binned, by its subsets
    assert values["Slow"] == pytest.approx(values["ece_10"], abs=1e-15)
    assert values["Narrow"] == pytest.approx(values["Gap"], abs=1e-15)
    # Nobody is disturbed by them.
    alone = run_distribution(SINGLE, which)
    assert np.array_equal(alone.estimates[:, :15], outcome.estimates[:, :15])
    again = cases.Replay(design, which)
    for i, size in enumerate(design.sizes):
        for j, row in enumerate(again.rows(size)):
            for s, setting in enumerate(design.settings):
                gaps = [
                    abs(fsum(y) - fsum(p)) / size for p, y, _, _ in again.problems(row, setting)
                ]
                assert values["Gap"][s, i, j] == pytest.approx(np.mean(gaps), abs=1e-14)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_estimator_that_fails_is_named(tmp_path, n_jobs):
    design = replace(SINGLE, estimators=("own_estimators:Failing",))
    message = (
        "estimator: 'Failing' failed on 3 classes, 2 features, mixture 0, naive_bayes, training 0, "
        "n = 10: ZeroDivisionError"
    )
    with pytest.raises(ValueError, match=message):
        run_study(design, tmp_path / "a", n_jobs=n_jobs)


def test_results_of_another_version_of_ones_own_estimator_are_refused(
    module, tmp_path, monkeypatch
):
    cases.with_quick_figures(monkeypatch.setattr)
    design = replace(SINGLE, estimators=("own_estimators:Gap",))
    run_study(design, tmp_path / "a")
    run_study(design, tmp_path / "a")
    (module / "own_estimators.py").write_text(OWN + "# better now")
    with pytest.raises(ValueError, match="with source of own_estimators:Gap '"):
        run_study(design, tmp_path / "a")


def test_results_of_other_sources_of_the_package_are_refused(tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    run_study(SINGLE, tmp_path / "a")
    monkeypatch.setattr(study, "package_hash", lambda: "another")
    with pytest.raises(ValueError, match=r"holds a study with source of fastece '\w+', not 'anoth"):
        run_study(SINGLE, tmp_path / "a")


def test_the_hash_of_the_package_changes_with_what_decides_on_numbers(tmp_path):
    package = Path(fastece.__file__).parent
    copy = shutil.copytree(package, tmp_path / "fastece", ignore=shutil.ignore_patterns("__pyc*"))
    first = package_hash()
    assert package_hash(copy) == first
    for name in ("study/figures.py", "cli/commands.py", "plot/marks.py", "speed/bench.py"):
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write("# other looks")
    assert package_hash(copy) == first
    hashes = {first}
    for name in ("kernels/binning.py", "binned/estimator.py", "protocol.py", "study/runner.py"):
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write("# other numbers")
        hashes.add(package_hash(copy))
    (copy / "kernels" / "binning.py").rename(copy / "kernels" / "renamed.py")
    assert len({*hashes, package_hash(copy)}) == 6


DISTRIBUTION = """
import sys
from fastece.study import preset, summary
from fastece.study.runner import run_distribution

design = preset(
    "quick", classes=(2,), features=(2,), models=("naive_bayes",), holdout=1000, n_sizes=1, draws=2
)
run_distribution(design, design.distributions[0])
print(*(name.partition(".")[2] for name in sys.modules if name.startswith("fastece.")))
"""


def test_what_is_not_in_the_hash_is_not_used_for_numbers():
    done = subprocess.run([sys.executable, "-c", DISTRIBUTION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    used = {f"{name.replace('.', '/')}.py" for name in done.stdout.split()}
    used |= {name.partition(".")[0] for name in done.stdout.split()}
    assert {"kernels/binning.py", "kde", "study/summary.py"} <= used
    assert not used & NO_NUMBERS


def test_ones_own_estimators_are_found_by_processes(request, tmp_path, monkeypatch):
    # Also by those of an earlier call, which joblib keeps, and which know an older path.
    joblib = pytest.importorskip("joblib")
    joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-3) for _ in range(4))
    request.getfixturevalue("module")
    cases.with_quick_figures(monkeypatch.setattr)
    design = replace(
        SINGLE, models=("naive_bayes", "logistic_regression"), estimators=("own_estimators:Gap",)
    )
    alone = run_study(design, tmp_path / "one")
    spread = run_study(design, tmp_path / "two", n_jobs=2)
    assert spread.values.equals(alone.values)
    assert "Gap" in alone.summary["estimator"].to_pylist()
    assert "Gap" in str(alone)


# -- folders ---------------------------------------------------------------------------------------


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.csv"

    def fail(part):
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)
    assert not path.exists()
    write_whole(path, lambda part: part.write_text("all of it"))
    assert path.read_text() == "all of it"
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)
    assert path.read_text() == "all of it"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_two_may_write_a_file_at_once(tmp_path):
    path = tmp_path / "a.csv"

    def interrupted(part):
        part.write_text("the fir")
        write_whole(path, lambda other: other.write_text("the second"))
        assert path.read_text() == "the second"
        part.write_text("the first")

    write_whole(path, interrupted)
    assert path.read_text() == "the first"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


MADE_BY = {"version": {"fastece": "1"}}


def test_a_folder_is_of_one_design(tmp_path):
    Store(tmp_path / "a", SINGLE, MADE_BY)
    Store(tmp_path / "a", SINGLE, MADE_BY)
    for design, made_by, message in (
        (replace(SINGLE, draws=6), MADE_BY, "holds a study with draws 5, not 6"),
        (replace(SINGLE, seed=3), MADE_BY, "seed 0, not 3"),
        (replace(SINGLE, convention="published"), MADE_BY, "'corrected', not 'published'"),
        (replace(SINGLE, estimators=("a:b",)), MADE_BY, r"estimators \[\], not \['a:b'\]"),
        (SINGLE, {"version": {"fastece": "2"}}, "version of fastece '1', not '2'"),
    ):
        with pytest.raises(ValueError, match=f"out: .*{message}: choose another folder"):
            Store(tmp_path / "a", design, made_by)


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("not mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("not mine")
    for name in ("file", "folder"):
        with pytest.raises(ValueError, match=r"out: .*exists, and holds no study"):
            run_study(SINGLE, tmp_path / name)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["thesis.tex"]
    assert (tmp_path / "file").read_text() == "not mine"


def test_an_empty_folder_and_one_in_folders_that_are_not_there_are_good(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "a" / "b"):
        store = Store(folder, SINGLE, MADE_BY)
        assert json.loads((folder / "study.json").read_text())["draws"] == SINGLE.draws
        assert not store.has(SINGLE.distributions[0])


def test_what_made_the_results_is_noted(tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    run_study(SINGLE, tmp_path / "a")
    note = json.loads((tmp_path / "a" / "study.json").read_text())
    for package in (fastece, np, numba, scipy, sklearn):
        name = "scikit-learn" if package is sklearn else package.__name__
        assert note.pop(f"version of {name}") == package.__version__
    assert note.pop("source of fastece") == package_hash()
    assert Design(**note) == SINGLE


def test_a_spoiled_note_is_refused(tmp_path):
    Store(tmp_path, SINGLE, MADE_BY)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(ValueError):
        Store(tmp_path, SINGLE, MADE_BY)


# -- tables ----------------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "zero")
THREE = replace(SINGLE, mixtures=5, n_sizes=3)


@pytest.fixture(scope="module")
def made_up():
    """Outcomes of five distributions, of made-up estimators, and the table of their values."""
    rng = np.random.default_rng(0)
    shape = (2, len(NAMES), len(THREE.sizes), 7)
    outcomes, tables = [], []
    for which in THREE.distributions:
        estimates = rng.gamma(2, 0.05, shape)
        estimates[:, 1] *= 0.3
        estimates[:, -1] = 0
        outcomes.append(Outcome(estimates, rng.uniform(0.02, 0.2, (2, 2)), {}))
        tables.append(distribution_table(THREE, which, NAMES, outcomes[-1]))
    return outcomes, pa.concat_tables(tables)


def quantile(values, q):
    """Linear between the order statistics."""
    values = sorted(values)
    place = q * (len(values) - 1)
    below = min(math.floor(place), len(values) - 2)
    if values[below] == values[below + 1]:
        return values[below]
    return values[below] + (place - below) * (values[below + 1] - values[below])


def measures_of(estimates, truth):
    """Of the draws of one estimator at one size."""
    ratios = [inf if e == 0 else abs(math.log(e / truth)) for e in estimates]
    return {
        "p95_relative_error": quantile([abs(e - truth) / truth for e in estimates], 0.95),
        "p95_absolute_error": quantile([abs(e - truth) for e in estimates], 0.95),
        "median_abs_log_ratio": statistics.median(ratios),
        "bias": fsum(e - truth for e in estimates) / len(estimates),
        "relative_bias": fsum(e / truth - 1 for e in estimates) / len(estimates),
        "sd": statistics.stdev(estimates),
    }


def all_measures(outcomes, which_truth):
    """(setting, estimator, n) -> measures of each distribution."""
    return {
        (setting, name, n): [
            measures_of(o.estimates[s, e, i].tolist(), o.truth[s, which_truth]) for o in outcomes
        ]
        for s, setting in enumerate(THREE.settings)
        for e, name in enumerate(NAMES)
        for i, n in enumerate(THREE.sizes)
    }


def test_values_of_each_distribution_are_those_of_plain_loops(made_up):
    outcomes, values = made_up
    assert values.num_rows == 5 * 2 * len(NAMES) * 3
    kinds = ["n_classes", "n_features", "mixture", "model", "training"]
    assert values.column_names == [
        *kinds, "setting", "estimator", "n", "truth", "truth_labels", "mean", "sd",
        "p95_relative_error", "median_abs_log_ratio", "p95_relative_error_labels",
        "median_abs_log_ratio_labels",
    ]  # fmt: skip
    exact, labels = all_measures(outcomes, 0), all_measures(outcomes, 1)
    for row in values.to_pylist():
        d = THREE.distributions.index(Distribution(*(row[kind] for kind in kinds)))
        key = row["setting"], row["estimator"], row["n"]
        s = THREE.settings.index(row["setting"])
        assert [row["truth"], row["truth_labels"]] == outcomes[d].truth[s].tolist()
        for suffix, found in (("", exact[key][d]), ("_labels", labels[key][d])):
            for name in ("p95_relative_error", "median_abs_log_ratio"):
                assert row[name + suffix] == pytest.approx(found[name], rel=1e-12)
        assert row["sd"] == pytest.approx(exact[key][d]["sd"], rel=1e-12, abs=1e-15)
        assert row["mean"] - row["truth"] == pytest.approx(exact[key][d]["bias"], abs=1e-15)


@pytest.mark.parametrize("truth", ["posterior", "labels"])
def test_the_summary_is_that_of_plain_loops(made_up, truth):
    outcomes, values = made_up
    table = summarise(values, THREE, truth)
    rows = {(row["setting"], row["estimator"], row["n"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows == 2 * len(NAMES) * 3
    required = ["setting", "estimator", "n", "p95_relative_error", "median_abs_log_ratio", "bias"]
    assert set(required) <= set(table.column_names)
    every = all_measures(outcomes, ["posterior", "labels"].index(truth))
    assert list(rows) == list(every)
    for key, of_each in every.items():
        for name in of_each[0]:
            want = statistics.median(one[name] for one in of_each)
            assert rows[key][name] == pytest.approx(want, rel=1e-11, abs=1e-15), (key, name)


def test_intervals_are_those_of_resampled_distributions(made_up):
    outcomes, values = made_up
    rng = THREE.rng(5)
    draws = [rng.integers(5, size=5).tolist() for _ in range(400)]
    every = all_measures(outcomes, 0)
    for row in summarise(values, THREE).to_pylist():
        of_each = every[row["setting"], row["estimator"], row["n"]]
        for measure in of_each[0]:
            medians = [statistics.median(of_each[d][measure] for d in draw) for draw in draws]
            ends = sorted(medians)[9], sorted(medians)[-10]
            found = row[f"{measure}_low"], row[f"{measure}_high"]
            assert found == pytest.approx(ends, rel=1e-11, abs=1e-15), measure
            assert found[0] <= row[measure] <= found[1]


def test_best_is_who_has_the_smallest_error(made_up):
    outcomes, values = made_up
    every = all_measures(outcomes, 0)
    for row in summarise(values, THREE).to_pylist():
        wins = 0
        for d in range(5):
            errors = {
                name: every[row["setting"], name, row["n"]][d]["p95_relative_error"]
                for name in NAMES[:-1]
            }
            wins += min(errors, key=errors.get) == row["estimator"]
        assert row["best"] == pytest.approx(wins / 5)


def test_those_who_are_equally_good_share_the_first_place():
    which = SINGLE.distributions[0]
    estimates = np.random.default_rng(0).random((2, 1, 3, 5)).repeat(3, axis=1)
    outcome = Outcome(estimates, np.full((2, 2), 0.1), {})
    table = summarise(distribution_table(SINGLE, which, ("a", "b", "zero"), outcome), SINGLE)
    for row in table.to_pylist():
        assert row["best"] == (0 if row["estimator"] == "zero" else 0.5)


def test_measuring_nothing_is_wrong_by_all_of_the_truth(made_up):
    table = summarise(made_up[1], THREE)
    rows = [row for row in table.to_pylist() if row["estimator"] == "zero"]
    assert len(rows) == 6
    for row in rows:
        for end in ("", "_low", "_high"):
            assert row[f"p95_relative_error{end}"] == 1
            assert row[f"median_abs_log_ratio{end}"] == inf
        assert row["relative_bias"] == -1
        assert row["bias"] < 0
        assert row["sd"] == row["best"] == 0


@pytest.mark.parametrize("measure", ["p95_relative_error", "p95_absolute_error"])
def test_the_ranking_is_that_of_plain_loops(made_up, measure):
    summary = summarise(made_up[1], THREE)
    rows = {(row["setting"], row["estimator"], row["n"]): row for row in summary.to_pylist()}
    found = ranking_of(summary, measure).to_pylist()
    assert len(found) == 8
    assert list(found[0]) == [
        "setting", "rank", "estimator", "mean_rank", "error_at_10", "error_at_20", "error_at_40",
        "best", "relative_bias",
    ]  # fmt: skip
    for setting in THREE.settings:
        mine = [row for row in found if row["setting"] == setting]
        assert [row["rank"] for row in mine] == [1, 2, 3, 0]
        assert mine[-1]["estimator"] == "zero"
        assert math.isnan(mine[-1]["mean_rank"])
        assert mine[0]["mean_rank"] <= mine[1]["mean_rank"] <= mine[2]["mean_rank"]
        for row in mine:
            name = row["estimator"]
            ranks = []
            for n in THREE.sizes:
                errors = [rows[setting, other, n][measure] for other in NAMES[:-1]]
                ranks.append(1 + sum(e < rows[setting, name, n][measure] for e in errors))
                assert row[f"error_at_{n}"] == rows[setting, name, n][measure]
            if name != "zero":
                assert row["mean_rank"] == pytest.approx(np.mean(ranks))
            for column in ("best", "relative_bias"):
                want = np.mean([rows[setting, name, n][column] for n in THREE.sizes])
                assert row[column] == pytest.approx(want)


def test_an_estimator_without_a_value_is_never_best_and_comes_last():
    # As the published bins of equal mass with fewer rows than bins.
    which = SINGLE.distributions[0]
    estimates = np.random.default_rng(0).random((2, 3, 3, 5))
    estimates[:, 0, 0] = nan
    outcome = Outcome(estimates, np.full((2, 2), 0.1), {})
    table = distribution_table(SINGLE, which, ("a", "b", "zero"), outcome)
    summary = summarise(table, SINGLE)
    first = summary.to_pylist()[0]
    assert (first["estimator"], first["n"], first["best"]) == ("a", 10, 0)
    assert math.isnan(first["p95_relative_error"])
    ranking = ranking_of(summary).to_pylist()
    assert ranking[0]["setting"] == "confidence"
    assert {row["rank"] for row in ranking} == {0, 1, 2}


def test_a_negative_estimate_is_as_far_off_as_zero():
    # As debiased estimators have, without a warning of a logarithm.
    which = SINGLE.distributions[0]
    estimates = np.random.default_rng(0).random((2, 2, 3, 5)) - 0.5
    table = distribution_table(
        SINGLE, which, ("a", "zero"), Outcome(estimates, np.full((2, 2), 0.1), {})
    )
    found = iter(table.to_pylist())
    for of_setting in estimates.tolist():
        for of_estimator in of_setting:
            for draws in of_estimator:
                logs = [abs(math.log(e / 0.1)) if e > 0 else inf for e in draws]
                row = next(found)
                assert row["median_abs_log_ratio"] == pytest.approx(statistics.median(logs))
                errors = [abs(e - 0.1) / 0.1 for e in draws]
                assert row["p95_relative_error"] == pytest.approx(quantile(errors, 0.95))


def test_numbers_in_csv_have_six_digits(tmp_path, made_up):
    store = Store(tmp_path / "a", THREE, MADE_BY)
    table = summarise(made_up[1], THREE)
    store.write_csv("summary.csv", table)
    with open(tmp_path / "a" / "summary.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == table.column_names
    assert len(rows) == 1 + table.num_rows
    for row, want in zip(rows[1:], table.to_pylist(), strict=True):
        for cell, value in zip(row, want.values(), strict=True):
            if isinstance(value, float):
                assert float(cell) == pytest.approx(value, rel=1e-5)
            else:
                assert cell == str(value)


def assert_same_tables(found, want):
    """Tables that may hold nan."""
    assert found.column_names == want.column_names
    for name in want.column_names:
        np.testing.assert_array_equal(found[name].to_numpy(), want[name].to_numpy())


def test_the_published_study_is_measured_against_labels_without_division(tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    corrected = run_study(SINGLE, tmp_path / "corrected")
    design = replace(SINGLE, convention="published")
    published = run_study(design, tmp_path / "published")
    assert_same_tables(published.summary, summarise(published.values, design, "labels"))
    assert_same_tables(corrected.summary, summarise(corrected.values, SINGLE, "posterior"))
    ranked = ranking_of(published.summary, "p95_absolute_error")
    assert_same_tables(published.ranking, ranked)
    names = {path.name for path in (tmp_path / "published").iterdir()}
    assert "summary_posterior.csv" in names
    assert "summary_labels.csv" not in names
    # Of one distribution, the median is its own value.
    zero = [row for row in published.summary.to_pylist() if row["estimator"] == "zero"]
    truth = published.values["truth_labels"].to_pylist()
    for row in zero:
        assert row["p95_absolute_error"] in truth
    assert "published convention" in str(published)


# -- results and the command -----------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    """The preset "quick" is SINGLE, and pictures take no time."""
    cases.with_quick_figures(monkeypatch.setattr)
    monkeypatch.setitem(PRESETS, "quick", SINGLE)


def run(capsys, *arguments):
    code = main([str(a) for a in ("study", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("quick")
def test_the_command_in_words(capsys, tmp_path):
    code, out, err = run(capsys, "--out", tmp_path / "a", "--jobs", 1)
    assert (code, err) == (0, "")
    for text in ("1 distributions of scores", "3 sizes from 10 to 40", "5 draws",
                 "450 evaluations", "corrected convention", "confidence", "classwise", "rank",
                 "n =   10", "n =   40", "zero", str(tmp_path / "a")):  # fmt: skip
        assert text in out, text
    for name in FIFTEEN:
        assert out.count(f" {name} ") == 2, name
    assert out == str(run_study(SINGLE, tmp_path / "a")) + "\n"


@pytest.mark.usefixtures("quick")
def test_the_command_as_json(capsys, tmp_path):
    code, out, err = run(capsys, "--out", tmp_path / "a", "--jobs", 1, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    found = json.loads(out)
    assert set(found) == {"design", "folder", "evaluations", "seconds", "summary", "ranking"}
    assert Design(**found["design"]) == SINGLE
    assert found["folder"] == str(tmp_path / "a")
    assert found["evaluations"] == 450
    assert len(found["summary"]) == 2 * 16 * 3
    zero = [row for row in found["summary"] if row["estimator"] == "zero"]
    assert {row["median_abs_log_ratio"] for row in zero} == {None}  # JSON has no infinity
    assert {row["p95_relative_error"] for row in zero} == {1.0}
    result = run_study(SINGLE, tmp_path / "a")
    assert result.to_dict()["seconds"] == found["seconds"]


@pytest.mark.usefixtures("quick", "module")
def test_options_of_the_command_change_the_design(capsys, tmp_path):
    code, out, _ = run(
        capsys, "--out", tmp_path / "a", "--jobs", 1, "--json", "--holdout", 1500, "--largest", 20,
        "--draws", 3, "--seed", 9, "--convention", "published", "--estimator", "own_estimators:Gap",
        "--estimator", "own_estimators:ready",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    want = replace(
        SINGLE, holdout=1500, largest=20, draws=3, seed=9, convention="published",
        estimators=("own_estimators:Gap", "own_estimators:ready"),
    )  # fmt: skip
    assert Design(**found["design"]) == want
    assert found["evaluations"] == 17 * 2 * 3 * 3
    names = {row["estimator"] for row in found["summary"]}
    assert names == {*FIFTEEN, "Gap", "ready", "zero"}


@pytest.mark.usefixtures("quick", "module")
def test_the_folder_is_named_after_what_is_given(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (
        [],
        ["--convention", "published", "--seed", 0],
        ["--estimator", "own_estimators:Gap", "--draws", 3],
    ):
        code, _, err = run(capsys, "--jobs", 1, *arguments)
        assert (code, err) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "modules") == [
        "fastece-study-quick",
        "fastece-study-quick-convention-published-seed-0",
        "fastece-study-quick-draws-3-Gap",
    ]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "full"], "preset: got 'full'; known: 'quick', 'paper'"),
        (["--convention", "paper"], "convention: got 'paper'"),
        (["--holdout", 10], "holdout: must be an integer from 1000"),
        (["--draws", 1], "draws: must be an integer from 2"),
        (["--largest", 5], "largest: must be from smallest (10)"),
        (["--seed", -1], "seed: must be an integer from 0"),
        (["--estimator", "nothing"], 'must be "module:name"'),
        (["--estimator", "no_such_module:x"], "'no_such_module:x' was not found"),
        (["--estimator", "os:getcwd"], "estimator"),
        (["--estimator", "fastece:Binned", "--estimator", "fastece:Binned"], "twice"),
        (["--jobs", 0], "jobs"),
    ],
)
def test_bad_options_are_answered_in_one_line(capsys, tmp_path, arguments, message):
    code, out, err = run(capsys, "--out", tmp_path / "a", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("fastece: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (tmp_path / "a").exists()


@pytest.mark.usefixtures("quick")
def test_a_folder_that_is_taken_is_answered_in_one_line(capsys, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("")
    code, out, err = run(capsys, "--out", tmp_path / "a")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "holds no study" in err
    assert run(capsys, "--out", tmp_path / "b", "--jobs", 1)[0] == 0
    code, out, err = run(capsys, "--out", tmp_path / "b", "--draws", 3)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "holds a study with draws 5, not 3" in err


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("missing", ["sklearn", "pyarrow", "matplotlib", "joblib", "tqdm"])
def test_without_a_package_of_the_extra_the_command_says_what_to_install(
    capsys, tmp_path, monkeypatch, missing
):
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = run(capsys, "--out", tmp_path / "a")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'fastece[study]'" in err
    assert not (tmp_path / "a").exists()


@pytest.mark.usefixtures("quick")
def test_without_threadpoolctl_nothing_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    code, out, err = run(capsys, "--out", tmp_path / "a", "--jobs", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'fastece[study]'" in err


@pytest.mark.usefixtures("quick")
def test_a_result_is_readable(tmp_path):
    result = run_study(SINGLE, tmp_path / "a")
    text = str(result)
    assert "95th percentile over draws" in text
    assert text.index("ece_") < text.index("zero")
    assert set(result.seconds) >= {"fitting", "prediction", "estimation", "truth", "hold-out"}
    assert all(value >= 0 for value in result.seconds.values())
    assert Binned(n_bins=10, score_range="support") in [
        contestant.estimator for contestant in contestants_of(SINGLE)
    ]
