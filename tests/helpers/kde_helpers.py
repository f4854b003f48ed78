"""Cases and checks that tests of the density based error share."""

from math import inf

import numpy as np
import pytest

from fastece import KDE, ece
from fastece.data.samples import Sample
from helpers import strategies as cases
from helpers.kde_cases import KERNELS
from oracles import reference_kde as oracle

KDE_NAME = {"estimator": "ece_kde"}


def close(value, rel=1e-3):
    """Within what "auto" may be off."""
    return pytest.approx(value, rel=rel, abs=1e-6)


def same(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=1e-15, nan_ok=True)


def kde(y, p, weight=None, **fields):
    return ece(y, p, estimator="ece_kde", sample_weight=weight, **fields)


def exact(y, p, weight=None, **fields):
    return oracle.kde_error((p, y, 0.0, 1.0), weight, **fields)


def smooth(n, seed=0, a=2.0, b=2.0):
    """(y_true, y_prob): scores without a pile, and hits that are not calibrated."""
    rng = np.random.default_rng(seed)
    s = rng.beta(a, b, n)
    return (rng.random(n) < s**1.3).astype(np.int64), s


VARIANTS = {
    **{kernel: KDE(kernel=kernel) for kernel in KERNELS},
    **{f"{kernel}, narrow": KDE(0.004, kernel) for kernel in KERNELS},
    **{f"{kernel}, wide": KDE(0.3, kernel) for kernel in KERNELS},
    "norm 2": KDE(norm=2.0),
    "norm 1.5, narrow": KDE(0.01, norm=1.5),
    "mce": KDE(norm=inf),
    "mce, fixed": KDE(0.05, norm=inf),
    "unit": KDE(0.05, score_range="unit"),
    "range": KDE(score_range=(0.25, 0.6)),
    "range, beta": KDE(0.1, "beta", score_range=(0.25, 0.6)),
}


def samples():
    """name, Sample, sorted by score: ties, ends, one row, with and without weights."""
    rng = np.random.default_rng(30)
    sets = cases.score_sets()
    scores = {name: sets[name] for name in ("bell", "80 % zeros", "constant 0.3", "one row")}
    scores["hundredths"] = rng.beta(3, 1, 90).round(2)
    scores["spread"] = rng.random(200)
    for name, s in scores.items():
        n = len(s)
        low = 1 / 3 if name == "bell" else 0.0
        for kind, v in (("", None), (", weights", rng.random(n) + 0.01)):
            y = cases.labels_for(s).astype(np.uint8)
            rows = np.arange(n, dtype=np.int64)
            s = np.array(s, dtype=np.float64)
            yield name + kind, Sample(s, y, v, low, 1.0, rows).sorted()


def sizes(n):
    return sorted({n, max(1, n // 3), min(2 * n + 1, 200)})


def rows_of(sample, c):
    """Hits, scores and weights of the drawn rows, each as often as it was drawn."""
    columns = sample.y, sample.s, sample.v
    return tuple(None if x is None else np.repeat(x, c) for x in columns)
