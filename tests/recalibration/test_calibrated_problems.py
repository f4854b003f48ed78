"""A problem that is calibrated is left nearly alone, by every method.

What chance does to the error of a calibrated model is what `calibration_test` draws. A map fitted
to other rows brings its own error along, so the test is at 1 %: of 200 simulations a map that
changes nothing would fail 2, and more than 10 with a probability of 8e-6. Seeds are fixed.
"""

import numpy as np
import pytest
from recalibration_cases import METHODS
from scipy.special import softmax

import fastece

SIMULATIONS = 200
ALLOWED = 10  # 5 %
N = 1000


def binary_problem(rng):
    p = rng.beta(1.5, 1.5, N)
    return p, (rng.random(N) < p).astype(int)


def class_problem(rng):
    p = softmax(1.5 * rng.standard_normal((N, 3)), axis=1)
    return p, (rng.random((N, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


def is_chance(y, q, level, seed):
    return fastece.calibration_test(y, q, n_resamples=199, rng=seed).p_value >= level


@pytest.mark.slow
@pytest.mark.parametrize("problem", [binary_problem, class_problem])
@pytest.mark.parametrize("name", METHODS)
def test_the_error_after_is_what_chance_makes(name, problem):
    """Fitted to one half of the rows, and looked at on the other; then on the same rows, where a
    fit comes closer to the labels than chance does."""
    worse = same = 0
    for seed in range(SIMULATIONS):
        rng = np.random.default_rng(seed)
        (x, y), (new, labels) = problem(rng), problem(rng)
        model = METHODS[name]().fit(x, y)
        # The new labels are of `new`; what is asked is whether the mapped scores still fit them.
        worse += not is_chance(labels, model.transform(new), 0.01, seed)
        same += not is_chance(y, model.transform(x), 0.05, seed)
    assert worse <= ALLOWED, (name, worse)
    assert same <= ALLOWED, (name, same)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_maps_of_many_rows_are_near_the_identity(name):
    """Of 100,000 calibrated rows, mean |q - p| is a few thousandths; a histogram's is that of its
    15 bins, 1 / 60 for even scores, and half of it more."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 100_000)
    q = METHODS[name]().fit_transform(p, (rng.random(100_000) < p).astype(int))
    bound = 0.02 if name in ("histogram", "scaling_binning") else 0.006
    assert np.mean(np.abs(q - p)) < bound
