"""Random problems that are hard for a density estimate on a grid."""

import numpy as np

KERNELS = ["gaussian", "triweight", "epanechnikov", "beta"]


def uniform(rng, n):
    return rng.random(n)


def beta(rng, n):
    return rng.beta(*10 ** rng.uniform(-0.7, 1.5, 2), n)


def piled(rng, n):
    """Some scores exactly 0 or 1, most of the others close by."""
    s = 1 / (1 + np.exp(-rng.uniform(2, 15) * rng.standard_normal(n)))
    ends = (rng.random(n) < rng.random()).astype(float)
    return np.where(rng.random(n) < rng.random(), ends, s)


def hundredths(rng, n):
    return beta(rng, n).round(2)


def constant(rng, n):
    return np.full(n, rng.choice([0.0, 1.0, 0.5, rng.random(), 1e-30, 1 - 1e-12]))


def tiny(rng, n):
    """Powers of ten down to 1e-300, and as close to 1."""
    s = 10 ** -rng.uniform(0, rng.choice([3, 30, 300]), n)
    return np.where(rng.random(n) < rng.choice([0.0, 0.5, 1.0]), 1 - s, s)


def clustered(rng, n):
    """A few narrow modes with nothing between them."""
    places = rng.random(rng.integers(1, 6))
    return np.clip(rng.choice(places, n) + 10 ** rng.uniform(-6, -2) * rng.normal(size=n), 0, 1)


SCORES = [uniform, beta, piled, hundredths, constant, tiny, clustered]


def hits_for(rng, s):
    """Calibrated hits, over-confident ones, all, none, or hits that know nothing of the score."""
    kind = rng.integers(6)
    if kind < 2:
        one = rng.random() < 0.5
        return np.full(len(s), rng.integers(0, 2)) if one else rng.integers(0, 2, len(s))
    p = [s, s ** rng.uniform(0.3, 3), 0.1 + 0.8 * s, rng.random() + 0 * s][kind - 2]
    return (rng.random(len(s)) < p).astype(np.int64)


def weights_for(rng, n):
    """None in two cases of three; else random, of many magnitudes, or integers with zeros."""
    if rng.random() < 2 / 3:
        return None
    kind = rng.integers(3)
    if kind == 0:
        return rng.random(n) + 1e-3
    if kind == 1:
        return 10 ** rng.uniform(-4, 4, n)
    return np.append(rng.integers(0, 4, n - 1), 1 + rng.integers(3))


def range_for(rng, s):
    """The support, a pair that leaves scores outside, or a pair around the scores."""
    if rng.random() < 0.6:
        return "support"
    if rng.random() < 0.3:
        return (float(rng.random() * s.min() * 0.99), 1.0)
    low = rng.uniform(0, 0.9)
    return (low, min(1.0, low + rng.uniform(0.05, 1)))


def random_case(rng, kernel, largest=3000, norms=(1.0, 2.0, 1.5)):
    """`(hits, scores, weights)` and the fields of a KDE."""
    n = round(10 ** rng.uniform(0, np.log10(largest)))
    s = np.asarray(SCORES[rng.integers(len(SCORES))](rng, n))
    smallest = 0.003 if kernel == "beta" else 1e-4
    h = float(np.exp(rng.uniform(np.log(smallest), np.log(0.5))))
    fields = {
        "bandwidth": "silverman" if rng.random() < 1 / 3 else h,
        "kernel": kernel,
        "norm": float(rng.choice(norms)),
        "score_range": range_for(rng, s),
    }
    return (hits_for(rng, s), s, weights_for(rng, n)), fields
