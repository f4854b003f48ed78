"""Data to recalibrate, every method with its options, and checks of answers."""

import re
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, softmax

from fastece import KDE
from fastece.recalibration import METHODS

# Methods of one score, and methods with a smallest loss.
ONE_SCORE = ("platt", "beta", "quadratic", "isotonic", "histogram", "scaling_binning", "curve")
OPTIMA = (
    "temperature", "ets", "vector", "matrix", "svs", "sms", "platt", "beta", "quadratic",
    "scaling_binning",
)  # fmt: skip
# Methods whose penalties fall as rows grow: weights say how much rows differ, not how many.
PENALISED = ("svs", "sms")
# Options with which integer weights are repetitions: other curves depend on n as such.
REPEATABLE = {"curve": {"estimator": KDE(bandwidth=0.05)}}
# Every method, and every option of it: name -> (method, options).
VARIANTS = {
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
    """A map that is not fitted."""
    name, options_of_variant = VARIANTS[variant]
    return METHODS[name](**options_of_variant, **options)


def repeatable(name):
    """A map for which integer weights are repetitions of rows."""
    return METHODS[name](**REPEATABLE.get(name, {}))


@dataclass(frozen=True)
class Data:
    """Logits with labels and weights, and logits of new rows of the same kind."""

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

    def inputs(self, from_logits):
        """Rows to fit to, and new rows: logits or probabilities."""
        return (self.logits, self.new_logits) if from_logits else (self.X, self.new)


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
    logits, new_logits = (
        np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)])
        for z in (data.logits, data.new_logits)
    )
    return Data(logits, data.y, data.w, new_logits)


def classes(n=400, k=3, seed=0):
    """Over-confident class vectors with offsets."""
    rng = np.random.default_rng(seed)
    logits = np.round(2 * rng.standard_normal((n, k)), 3)
    true = softmax(0.5 * logits + np.linspace(-0.4, 0.4, k), axis=1)
    y = (rng.random((n, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
    new = np.round(2.5 * rng.standard_normal((50, k)), 3)
    return Data(logits, y, rng.exponential(size=n) + 0.05, new)


PROBLEMS = {"one column": binary, "two columns": two_columns, "three classes": classes}


def cases_of(names):
    """Pairs of names and problems: each name with three classes, and with one form of two.

    A law of its own holds the two forms of two classes against each other.
    """
    binary_forms = ["one column", "two columns"]
    for i, name in enumerate(names):
        yield name, "three classes"
        yield name, binary_forms[i % 2]


CASES = list(cases_of(VARIANTS))
METHOD_CASES = list(cases_of(METHODS))


@cache
def data_of(problem):
    return PROBLEMS[problem]()


@cache
def fitted(variant, problem, from_logits=False):
    """A map that is fitted to the weighted rows of a problem; tests do not change it."""
    data = data_of(problem)
    return make(variant, from_logits=from_logits).fit(data.inputs(from_logits)[0], data.y, data.w)


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
    """(answer, messages) of a call that may be refused: then (None, [the message]).

    Every message is one line, of a UserWarning or a ValueError.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = call()
            messages = [str(warning.message) for warning in caught]
        except ValueError as error:
            answer = None
            messages = [str(error)]
    assert all(issubclass(warning.category, UserWarning) for warning in caught), messages
    for message in messages:
        assert re.fullmatch(r"[^\n]{15,400}", message), message
    return answer, messages
