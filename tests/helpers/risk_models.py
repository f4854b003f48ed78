"""Risk models by chance: rare events, weak models, separated and constant scores, wrong columns."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

BASE_RATES = (0.001, 0.5)
SPREADS = (0.02, 3.0)
ROWS = (50, 5000)
# What is odd about a model. Most are calibrated, or of another slope.
KINDS = (
    "calibrated",
    "calibrated",
    "another slope",
    "shifted",
    "separated",
    "almost separated",
    "constant",
    "few scores",
    "nearly constant",
    "wrong column",
    "sure of the event",
    "sure of no event",
    "zeros and ones",
    "one outcome",
)


class RiskModel(NamedTuple):
    """Outcomes and predicted probabilities of one model.

    Attributes
    ----------
    name : str
        What it is, for a failure.
    y, p : (n,) int64 and float64 arrays
    options : dict
        Weights, counts or groups.
    """

    name: str
    y: np.ndarray
    p: np.ndarray
    options: dict


def draw_risk_model(seed, max_rows=ROWS[1]):
    """Draw one risk model by its seed."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(KINDS)
    base_rate = between(rng, *BASE_RATES)
    spread = between(rng, *SPREADS)
    n = int(between(rng, ROWS[0], max_rows))
    z = logit(base_rate) + spread * rng.standard_normal(n)
    risk = expit(z)
    y = (rng.random(n) < risk).astype(int)
    p = predictions(rng, kind, z, y)
    if kind == "one outcome":
        y[:] = rng.integers(2)
    name = f"seed {seed}: {kind}, {n} rows, base rate {base_rate:.4f}, spread {spread:.2f}"
    return RiskModel(name, y, p, options_of(rng, n))


def between(rng, low, high):
    """Draw a number between two positive ones, uniform on the log scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def predictions(rng, kind, z, y):
    """Make the predictions (n,) of a kind of model, from the logits of the risks."""
    if kind == "another slope":
        return expit(z.mean() + between(rng, 0.05, 20) * (z - z.mean()))
    if kind == "shifted":
        return expit(z + rng.uniform(-8, 8))
    if kind == "separated":
        return expit(z.mean() + np.where(y == 1, 1, -1) * rng.exponential(1, z.size))
    if kind == "almost separated":
        p = predictions(rng, "separated", z, y)
        p[rng.integers(z.size)] = rng.random()
        return p
    if kind == "constant":
        return np.full(z.size, rng.choice([0.0, 1e-17, expit(z.mean()), 1.0]))
    if kind == "few scores":
        return expit(z).round(2)
    if kind == "nearly constant":
        return expit(z.mean() + between(rng, 1e-16, 1e-3) * (z - z.mean()))
    if kind == "wrong column":
        return 1 - expit(z)
    if kind == "sure of the event":
        return 1 - between(rng, 1e-17, 0.03) * rng.random(z.size)
    if kind == "sure of no event":
        return between(rng, 1e-300, 1e-3) * rng.random(z.size)
    if kind == "zeros and ones":
        p = expit(z)
        sure = rng.random(z.size) < 0.3
        p[sure] = p[sure].round()
        return p
    return expit(z)


def options_of(rng, n):
    """Give one in four models weights, counts or groups."""
    which = rng.integers(12)
    if which == 0:
        return {"sample_weight": rng.gamma(rng.choice([0.05, 1.0]), 1.0, n) + 1e-9}
    if which == 1:
        return {"counts": rng.integers(1, 20, n)}
    if which == 2:
        return {"groups": rng.integers(0, max(2, n // 10), n)}
    return {}
