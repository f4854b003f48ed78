"""Mixtures of Gaussians, their densities and posteriors."""

import math
from math import fsum

import numpy as np
import pytest
from scipy import stats

from fastece.study.distributions import MODELS, GaussianMixture, new_model, predicted
from helpers.chance import ALPHA, chi_square_p


def drawn_mixture(n_classes, n_features, seed=0, n_modes=4):
    return GaussianMixture.draw(n_classes, n_features, np.random.default_rng(seed), n_modes)


def covariances(mixture):
    """A^T A of each mode (K, M, d, d)."""
    return mixture.factors.swapaxes(-1, -2) @ mixture.factors


def scipy_logs(mixture, x):
    """log p(x | k) (K, n) by scipy."""
    shape = mixture.means.shape
    covariance = covariances(mixture)
    out = np.empty((shape[0], len(x)))
    for k in range(shape[0]):
        modes = [
            stats.multivariate_normal(mixture.means[k, m], covariance[k, m]).logpdf(x)
            for m in range(shape[1])
        ]
        out[k] = np.logaddexp.reduce(np.reshape(modes, (shape[1], len(x))), axis=0)
    return out - math.log(shape[1])


@pytest.mark.parametrize(("n_classes", "n_features"), [(2, 1), (2, 7), (5, 2), (7, 5), (7, 7)])
def test_density_and_posterior_equal_scipy(n_classes, n_features):
    mixture = drawn_mixture(n_classes, n_features)
    x, _ = mixture.sample(200, np.random.default_rng(1))
    x = np.concatenate([x, np.random.default_rng(2).uniform(-2, 2, (50, n_features))])
    # scipy inverts the covariances, whose condition is the square of the factors' condition.
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


def test_a_far_point_has_a_posterior():
    mixture = drawn_mixture(4, 2)
    x = np.array([[1e6, -1e6], [-1e150, 0], [0, 0]])
    posterior = mixture.posterior(x)
    assert np.isfinite(posterior).all()
    assert posterior.sum(1) == pytest.approx(np.ones(3))
    assert np.isfinite(mixture.class_log_density(x[:1])).all()


def test_factors_of_another_shape_are_refused():
    for shape in ((2, 4, 2), (2, 4, 2, 3), (2, 3, 2, 2)):
        with pytest.raises(ValueError, match="factors: must be"):
            GaussianMixture(np.zeros((2, 4, 2)), np.ones(shape))


def test_wrong_sizes_are_refused():
    rng = np.random.default_rng(0)
    for sizes, name in (((0, 2), "n_classes"), ((2, 0), "n_features"), ((2, 2, rng, 0), "n_modes")):
        sizes = sizes if len(sizes) == 4 else (*sizes, rng)
        with pytest.raises(ValueError, match=f"{name}: must be an integer from 1"):
            GaussianMixture.draw(*sizes)


SLOW_MODELS = ("support_vectors", "random_forest")
MODELS_TO_FIT = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW_MODELS else name for name in MODELS
]


@pytest.mark.parametrize("name", MODELS_TO_FIT)
def test_models_give_probabilities_to_all_classes(name):
    mixture = drawn_mixture(3, 2, seed=1)
    x, y = mixture.sample(90, np.random.default_rng(0))
    prob = predicted(new_model(name, 0).fit(x, y), x, 3)
    assert prob.shape == (90, 3)
    assert prob.dtype == np.float64
    assert prob.flags.c_contiguous
    assert prob.sum(1) == pytest.approx(np.ones(90))
    assert ((prob >= 0) & (prob <= 1)).all()
    assert (prob.argmax(1) == y).mean() > 0.4
    again = predicted(new_model(name, 0).fit(x, y), x, 3)
    assert np.array_equal(again, prob)


def test_a_class_that_a_model_has_not_seen_has_no_probability():
    mixture = drawn_mixture(4, 2, seed=1)
    x, y = mixture.sample(90, np.random.default_rng(0))
    seen = (y == 1) | (y == 3)
    prob = predicted(new_model("naive_bayes", 0).fit(x[seen], y[seen]), x, 4)
    assert (prob[:, [0, 2]] == 0).all()
    assert (prob[:, [1, 3]].sum(1)) == pytest.approx(np.ones(90))


def test_a_random_forest_has_the_seed_that_it_is_given():
    mixture = drawn_mixture(3, 2, seed=1)
    x, y = mixture.sample(40, np.random.default_rng(0))
    probabilities = []
    for seed in (0, 1):
        model = new_model("random_forest", seed).set_params(n_estimators=5)
        probabilities.append(predicted(model.fit(x, y), x, 3))
    assert not np.array_equal(*probabilities)
