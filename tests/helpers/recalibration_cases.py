"""Data to recalibrate, every method with its options, and what its answers have to be."""

import re
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from fastece import KDE
from fastece.recalibration import METHODS

ONE_SCORE = ("platt", "beta", "isotonic", "histogram", "scaling_binning", "curve")
OPTIMA = ("temperature", "vector", "matrix", "platt", "beta", "scaling_binning")
# Where n enters as such: weights are not repetitions of rows (nor are they with "silverman").
REPEATABLE = {"curve": {"estimator": KDE(bandwidth=0.05)}}
VARIANTS = {  # id -> (method, options): every row of the table, and every option of it
    **{name: (name, {}) for name in METHODS},
    "matrix, penalties": ("matrix", {"off_diagonal": 0.3, "intercept": 0.2}),
    "platt, smooth": ("platt", {"smooth": True}),
    "histogram, quantiles": ("histogram", {"n_bins": 7, "edges": "quantile"}),
    "scaling_binning, 4 bins": ("scaling_binning", {"n_bins": 4}),
    "curve, not monotone": ("curve", {"monotone": False}),
    "curve, densities": ("curve", {"estimator": "ece_kde"}),
    "curve, densities, not monotone": ("curve", {"estimator": "ece_kde", "monotone": False}),
}


def make(variant, **options):
    name, own = VARIANTS[variant]
    return METHODS[name](**own, **options)


def repeatable(name):
    return METHODS[name](**REPEATABLE.get(name, {}))


@dataclass(frozen=True)
class Data:
    """Probabilities or logits, labels, weights, and fresh rows of the same kind."""

    logits: np.ndarray
    y: np.ndarray
    w: np.ndarray
    new_logits: np.ndarray

    @property
    def X(self):  # noqa: N802
        return probabilities(self.logits)

    @property
    def new(self):
        return probabilities(self.new_logits)


def probabilities(logits):
    return expit(logits) if logits.ndim == 1 else softmax(logits, axis=1)


def binary(n=300, seed=0):
    """Over-confident scores with an offset, rounded so that some are equal, and real weights."""
    rng = np.random.default_rng(seed)
    logits = np.round(2.5 * rng.standard_normal(n), 2)
    y = (rng.random(n) < expit(0.6 * logits + 0.3)).astype(int)
    return Data(logits, y, rng.exponential(size=n) + 0.05, np.round(3 * rng.standard_normal(50), 2))


def two_columns(n=300, seed=0):
    """The binary data as two columns, whose logits are log probabilities."""
    data = binary(n, seed)
    pair = [
        np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)])
        for z in (data.logits, data.new_logits)
    ]
    return Data(pair[0], data.y, data.w, pair[1])


def classes(n=400, k=3, seed=0):
    """Over-confident class vectors with offsets."""
    rng = np.random.default_rng(seed)
    logits = np.round(2 * rng.standard_normal((n, k)), 3)
    true = softmax(0.5 * logits + np.linspace(-0.4, 0.4, k), axis=1)
    y = (rng.random((n, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
    new = np.round(2.5 * rng.standard_normal((50, k)), 3)
    return Data(logits, y, rng.exponential(size=n) + 0.05, new)


PROBLEMS = {"one column": binary, "two columns": two_columns, "three classes": classes}


def assert_probabilities(q, like):
    """In [0, 1], of the shape of `like`, finite, and rows of class vectors sum to 1."""
    assert isinstance(q, np.ndarray)
    assert q.shape == np.shape(like)
    assert np.isfinite(q).all()
    assert q.min() >= 0
    assert q.max() <= 1
    if q.ndim == 2:
        np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


def outcome(call):
    """(answer, warnings) of a call that may be refused: then (None, [the sentence]).

    Whatever is said is one line, and is said by a UserWarning or a ValueError.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = call()
            said = [str(warning.message) for warning in caught]
        except ValueError as error:
            answer, said = None, [str(error)]
    assert all(issubclass(warning.category, UserWarning) for warning in caught), said
    for sentence in said:
        assert re.fullmatch(r"[^\n]{15,400}", sentence), sentence
    return answer, said
