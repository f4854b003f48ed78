"""How often the interval holds the true error. Seeds are fixed; the rates over all seeds are
stated, for whoever changes the draws."""

import numpy as np
import pytest

from fastece import BayesCurve
from helpers.bayes_helpers import sample_of

CURVES = {
    "calibrated": lambda s: s,
    "too sure": lambda s: 0.5 + 0.7 * (s - 0.5),
    "one side": lambda s: s**1.5,
    "a wave": lambda s: (s + 0.08 * np.sin(4 * np.pi * s)).clip(0, 1),
    "stairs": lambda s: (np.floor(4 * s).clip(0, 3) + 0.5) / 4,
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("n", [60, 500])
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


def test_calibrated_rows_are_seldom_said_not_to_be():
    """Of 300 intervals at 95 % at most 30 begin above 0, by Markov's inequality with a mean of at
    most 15: more has a probability of 2e-4."""
    rng = np.random.default_rng(1)
    above = 0
    for _ in range(300):
        s = rng.beta(2, 1, 200)
        above += BayesCurve().posterior([sample_of(s, rng.random(200) < s)]).interval()[0] > 0
    assert above <= 30
