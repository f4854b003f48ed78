"""Whether two models differ in their calibration error, on the same rows."""

from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from fastece.checks.errors import InputError
from fastece.checks.parameters import check_choice
from fastece.checks.probabilities import as_probabilities
from fastece.data.settings import class_count
from fastece.document.result import Results
from fastece.estimators.base import Estimator
from fastece.estimators.table import is_calibration_error
from fastece.intervals.mover import differences
from fastece.resampling.arguments import Call, add_groups, read_call, require_calibration_error
from fastece.resampling.bootstrap import check_size, resample
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import METHODS, Method
from fastece.resampling.results import MOVER, ComparisonResult


def check_same_classes(call: Call) -> None:
    """Check that both models of a call have the same classes, in the same setting."""
    models = call.models
    same: dict[str, list[str]] = {
        "the classes and the setting": [f"{x.n_classes} and {x.setting.name!r}" for x in models],
        "its classes in the order": [
            str([str(label) for label in x.labels or range(x.n_classes)]) for x in models
        ],
    }
    for what, (a, b) in same.items():
        if a != b:
            raise InputError("y_prob_b", f"must have {what} of y_prob_a, {a}, got {b}")


def method_for(call: Call, method: Any, size: Any, name: str) -> str:
    """Choose the method for one estimator, or check the one that is given."""
    if method is None:
        draws_rows = call.groups is not None or size is not None
        is_error = is_calibration_error(call.estimators[name])
        return MOVER if is_error and not draws_rows else "basic"
    chosen: str = check_choice("method", method, (MOVER, *METHODS))
    if chosen == MOVER:
        require_calibration_error(call.only(call.estimators[name]), f"method={MOVER!r}")
        for option, value in (("groups", call.groups), ("size", size)):
            if value is not None:
                raise InputError(
                    "method", f"must draw rows for {option}=, which 'mover' does not", value=chosen,
                    hint=f"with it: {', '.join(map(repr, METHODS))}",
                )  # fmt: skip
    return chosen


def comparison_results(call: Call, *, method: Any = None, size: Any = None, rng: Any = None) -> Any:
    """Give the result of a call on two models, each of which may have hits of its own, or
    `Results` by the names of its estimators."""
    check_same_classes(call)
    rows, key = check_size(call, size), new_key(rng)
    methods = {name: method_for(call, method, size, name) for name in call.estimators}
    drawn: dict[str, dict[str, Any]] = {}
    for kind in sorted({*methods.values()} - {MOVER}):
        own = {name: call.estimators[name] for name in methods if methods[name] == kind}
        drawn |= resample(replace(call, estimators=own), kind, rows, key)
    results: Results[ComparisonResult] = Results()
    for name in call.estimators:
        values = call.values(name)
        fields = drawn.get(name) or joined_fields(call, name, values, key)
        a, b = values
        results[name] = ComparisonResult(
            value=call.quantity(values), a=a, b=b, confidence_level=call.level, **fields
        )
    return results.get("", results)


def joined_fields(call: Call, name: str, values: list[Any], key: int) -> dict[str, Any]:
    """Join the intervals of both models, and give the fields of the result of one estimator."""
    return {
        **call.facts(name, key),
        "_joined": differences(call, name, values, key),
        "bootstrap_distribution": np.empty((*np.shape(values[0]), 0)),
        "method": MOVER,
        "size": call.n,
    }


@overload
def compare(
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, estimator: list[Any] | tuple[Any, ...],
    **options: Any,
) -> Results[ComparisonResult]: ...  # fmt: skip
@overload
def compare(
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, estimator: str | Estimator = ..., **options: Any
) -> ComparisonResult: ...
def compare(
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, estimator: Any = "ece_bayes",
    method: Method | Literal["mover"] | None = None, n_resamples: int = 1999, rng: Any = 0,
    size: int | None = None, groups: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Difference between the calibration errors of two models, on the same rows.

    Parameters
    ----------
    y_true, size, groups, **options
        As in `bootstrap`. "mover" takes rows for independent and draws none, so `size` and `groups`
        go with the other methods only.
    estimator : str or object, or a list of them, default "ece_bayes"
        As in `fastece.ece`. Several share every draw.
    method : {"mover", "basic", "percentile", "bca"} or None, default None
        "mover": joined from the intervals that `estimate` has for both models, with a p-value that
        is less than 1 - level exactly where the interval does not hold 0. It holds the true
        difference of calibration errors where the others often miss it, and is wider. The others
        as in `bootstrap`; the basic interval of a difference is not clipped at 0. None: "mover" for
        calibration errors, "basic" for means such as the Brier score, and with `groups` or `size`.
    n_resamples : int, default 1999
        Number of replicates.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.
    y_prob_a, y_prob_b : (n,) or (n, K) array_like of float
        Probabilities of the two models, row by row for the same labels.

    Returns
    -------
    ComparisonResult, or for a list of estimators a dict of them, as of `bootstrap`

    Raises
    ------
    ValueError, TypeError
        As in `bootstrap`; for `groups` with "mover"; for models that differ in their setting or
        their number of classes.

    Notes
    -----
    Both models are evaluated on the same draws, so what they have in common cancels:
    ``p = (1 + #{|d* - d| >= |d|}) / (n_resamples + 1)`` with the difference d and its replicates
    d* (Efron and Tibshirani 1993, section 16.4; the 1 as in Davison and Hinkley 1997, "Bootstrap
    methods and their application", eq. 4.11). The ends of "mover" intervals are joined with the
    correlation of what each row changes (Zou 2007, "Toward using confidence intervals to compare
    correlations"); each is made of at most 1999 replicates, or of a posterior.
    ``docs/intervals.md`` has the coverage of "basic" and "mover", and how often they tell equal
    models apart.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import compare
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> print(compare(y, p**2, p))
    BayesCurve(), setting binary: 1000 rows
      a                0.170
      b                0.031
      a - b            0.138
      95 % CI (mover)  [0.111, 0.196]
      p-value          0.00054
    >>> print(compare(y, p**2, p, estimator="brier_score"))
    BrierScore(), setting binary: 1000 rows, 1999 replicates
      a                0.202
      b                0.166
      a - b            0.036
      95 % CI (basic)  [0.025, 0.047]
      p-value          0.0005
      standard error   0.005
      bias             0.000
    """
    models = {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}
    a, b = (class_count(as_probabilities(p, name).shape) for name, p in models.items())
    if a != b:  # labels would be out of range for one of them
        raise InputError("y_prob_b", f"must have the classes of y_prob_a, {a}", value=b)
    call = read_call(
        "compare", y_true, models, estimator=estimator, n_resamples=n_resamples, **options
    )
    call = add_groups(call, groups, y_prob_a, "y_prob_a")
    return comparison_results(call, method=method, size=size, rng=rng)
