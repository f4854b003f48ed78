"""Class vectors that break kernels, hypothesis strategies, and values of the reference."""

from math import isnan

import numpy as np
import pytest
from hypothesis import strategies as st

import fastece
from fastece import SKCE, DirichletKDE
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from oracles import reference_canonical as oracle

CLOSE = 1e-10
FORMS = ["unbiased", "biased"]
KERNELS = ["exponential", "gaussian"]
DIRICHLET = {
    "default": DirichletKDE(),
    "narrow": DirichletKDE(0.002),
    "wide": DirichletKDE(0.3),
    "norm 2": DirichletKDE(0.05, norm=2.0),
}
SQUARED = {
    "default": SKCE(),
    "gaussian": SKCE(kernel="gaussian"),
    "given width": SKCE(width=0.2),
    "biased": SKCE("biased"),
    "biased, gaussian, given width": SKCE("biased", kernel="gaussian", width=0.3),
}
ESTIMATORS = {
    **{f"canonical, {name}": estimator for name, estimator in DIRICHLET.items()},
    **{f"skce, {name}": estimator for name, estimator in SQUARED.items()},
}


def near(value, slack=1e-12):
    return pytest.approx(value, rel=slack, abs=slack, nan_ok=True)


def draw(n, n_classes, seed=0, concentration=1.0):
    """(y_true, y_prob): calibrated Dirichlet vectors."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, concentration), n)
    return labels_from(prob, rng), prob


def labels_from(prob, rng):
    """Classes drawn with the probabilities (n, K)."""
    above = rng.random((len(prob), 1)) >= np.cumsum(prob, axis=1)[:, :-1]
    return above.sum(axis=1)


def shifted(n, n_classes, seed=0):
    """(y_true, y_prob): a model that is far too sure of itself."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(n_classes, 2.0), n)
    sure = true**3
    return labels_from(true, rng), sure / sure.sum(axis=1, keepdims=True)


def awkward_sets():
    """name -> (y_true, y_prob): corners, zeros, ties, rows far apart, one and two rows."""
    y, p = draw(9, 4, 1)
    sparse = np.where(np.random.default_rng(2).random((9, 4)) < 0.4, 0.0, p)
    sparse[:, 0] += 0.1
    sparse /= sparse.sum(axis=1, keepdims=True)
    tiny = np.array([[1e-7, 1 - 1e-7], [1e-5, 1 - 1e-5], [2e-5, 1 - 2e-5], [0.0, 1.0], [0.5, 0.5]])
    return {
        "interior": (y, p),
        "corners": (y[:6] % 3, np.eye(3)[[0, 1, 2, 0, 0, 1]]),
        "corners and inside": (y, np.concatenate([np.eye(4), p[:5]])),
        "zeros": (y, sparse),
        "two equal rows": (y, p[[0, 0, 1, 2, 3, 4, 5, 6, 7]]),
        "all equal": (y, np.tile(p[0], (9, 1))),
        "all in one corner": (y, np.tile(np.eye(4)[2], (9, 1))),
        "about the floor": (np.array([0, 1, 1, 0, 1]), tiny),
        "neighbours": (y, np.concatenate([p[:5], p[:4] * (1 - 1e-9) + 1e-9 / 4])),
        "two rows": (y[:2], p[:2]),
        "two far corners": (np.array([1, 0]), np.eye(2)),
    }


SETS = awkward_sets()


def as_rows(prob):
    """Lists of class vectors; of scores (n,) the columns (1 - p, p)."""
    prob = np.asarray(prob).astype(np.float64)
    return (prob if prob.ndim == 2 else np.column_stack([1 - prob, prob])).tolist()


def as_list(array):
    return None if array is None else np.asarray(array).tolist()


def expected_canonical(y, p, weight=None, c=None, **fields):
    rows = as_rows(p)
    labels = as_list(np.asarray(y).astype(int))
    return oracle.canonical_error(rows, labels, v=as_list(weight), c=as_list(c), **fields)


def expected_skce(y, p, weight=None, c=None, **fields):
    rows = as_rows(p)
    labels = as_list(np.asarray(y).astype(int))
    return oracle.skce(rows, labels, v=as_list(weight), c=as_list(c), **fields)


def expected(estimator, y, p, weight=None, c=None):
    """The reference's value for an estimator object."""
    if isinstance(estimator, DirichletKDE):
        fields = {"bandwidth": estimator.bandwidth, "norm": estimator.norm}
        return expected_canonical(y, p, weight, c, **fields)
    names = ("form", "kernel", "width")
    fields = {name: getattr(estimator, name) for name in names}
    return expected_skce(y, p, weight, c, **fields)


def expected_truth(estimator, p, q, weight=None):
    """The reference's true error where classes come true with the probabilities q."""
    rows = as_rows(p)
    chances = as_rows(q)
    v = as_list(weight)
    if isinstance(estimator, DirichletKDE):
        fields = {"bandwidth": estimator.bandwidth, "norm": estimator.norm}
        return oracle.canonical_truth(rows, chances, v=v, **fields)
    fields = {"kernel": estimator.kernel, "width": estimator.width}
    return oracle.skce_truth(rows, chances, v=v, **fields)


def sample_of(y, p, weight=None, **options):
    """The Sample of class vectors, or of another setting."""
    return read_problems(
        y, p, ReadingOptions(sample_weight=weight, **options), vectors=True
    ).sample(0)


def skce(y, p, form="unbiased", **options):
    return fastece.kernel_calibration_error(y, p, form=form, **options)


def assert_near(got, want, slack=CLOSE, what=None):
    """Numbers within `slack`, or both nan."""
    assert (isnan(got) and isnan(want)) or abs(got - want) <= slack, (what, got, want)


@st.composite
def rows(draw, n_classes):
    """A class vector: shares of whole numbers, a corner, or anything inside."""
    kind = draw(st.sampled_from(["shares", "shares", "corner", "inside"]))
    if kind == "corner":
        return np.eye(n_classes)[draw(st.integers(0, n_classes - 1))]
    entries = st.integers(0, 6) if kind == "shares" else st.floats(1e-7, 1)
    parts = draw(st.lists(entries, min_size=n_classes, max_size=n_classes).filter(any))
    return np.array(parts, dtype=float) / sum(parts)


@st.composite
def vectors(draw, min_size=2, max_size=8):
    """(y_true, y_prob, sample_weight) of up to 6 classes, with equal rows and weights or none."""
    n_classes = draw(st.integers(2, 6))
    distinct = draw(st.lists(rows(n_classes), min_size=1, max_size=max_size))
    n = draw(st.integers(min_size, max_size))
    index = st.lists(st.integers(0, len(distinct) - 1), min_size=n, max_size=n)
    prob = np.array([distinct[i] for i in draw(index)])
    label = st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)
    integers = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    enough = integers.filter(lambda weight: np.count_nonzero(weight) >= min_size)
    weight = draw(st.none() | enough.map(np.array) | enough.map(lambda w: 0.3 + np.array(w)))
    return np.array(draw(label)), prob, weight
