"""Classifiers give probabilities to all classes."""

import numpy as np
import pytest

from fastece.study.distributions import MODELS, GaussianMixture, new_model, predicted


def drawn_mixture(n_classes, n_features, seed=0, n_modes=4):
    return GaussianMixture.draw(n_classes, n_features, np.random.default_rng(seed), n_modes)


@pytest.mark.parametrize("name", MODELS)
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
    x, y = mixture.sample(90, np.random.default_rng(0))
    both = [predicted(new_model("random_forest", seed).fit(x, y), x, 3) for seed in (0, 1)]
    assert not np.array_equal(*both)
