"""Comparison of the calibration errors of two models on the same rows."""

from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from fastece.data.axes import find_row_axes
from fastece.data.containers import as_probabilities
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice
from fastece.data.sources import Source, class_count, need_rows
from fastece.display.results import Results
from fastece.estimators.base import Estimator
from fastece.inference.mover import compute_differences
from fastece.inference.results import ComparisonResult
from fastece.resampling.arguments import add_groups, read_call, require_calibration_error
from fastece.resampling.bootstrap import Resampling, check_size, compute_quantity, resample
from fastece.resampling.call import (
    Call,
    collect_results,
    common_fields,
    compute_values,
    find_infinite_rows,
)
from fastece.resampling.draws import new_key
from fastece.resampling.results import METHODS, Method

# The method that joins the intervals of both models, as `estimate` has them.
MOVER = "mover"


def check_same_classes(call: Call) -> None:
    """Check that both models of a call have the same classes, in the same setting."""
    a, b = call.tables
    if (a.n_classes, a.setting.name) != (b.n_classes, b.setting.name):
        kind_a, kind_b = (f"{x.n_classes} and {x.setting.name!r}" for x in (a, b))
        raise differing_models("the classes and the setting", kind_a, kind_b)
    order_a, order_b = (
        str([str(label) for label in x.labels or range(x.n_classes)]) for x in (a, b)
    )
    if order_a != order_b:
        raise differing_models("its classes in the order", order_a, order_b)


def differing_models(quantity: str, of_a: str, of_b: str) -> InputError:
    """Build the error for two models that differ in a quantity."""
    return InputError("y_prob_b", f"must have {quantity} of {{y_prob_a}}, {of_a}, got {of_b}")


def choose_method(call: Call, method: Any, size: Any, name: str) -> str:
    """Choose the method for the estimator of a name, or check the caller's."""
    if method is None:
        is_mover = call.estimators[name].is_calibration_error and size is None
        return MOVER if is_mover else "basic"
    checked: str = check_choice("method", method, (MOVER, *METHODS))
    if checked == MOVER:
        require_calibration_error(call.with_estimator(call.estimators[name]), f"method={MOVER!r}")
        if size is not None:
            rule = "must draw rows for size=, which 'mover' does not"
            hint = f"with it: {', '.join(map(repr, METHODS))}"
            raise InputError("method", rule, value=checked, hint=hint)
    return checked


def resample_by_method(
    call: Call, methods: dict[str, str], size: int, key: int
) -> dict[str, dict[str, Any]]:
    """Return the fields of results by name, for estimators whose method draws rows."""
    fields: dict[str, dict[str, Any]] = {}
    for method in sorted({*methods.values()} - {MOVER}):
        estimators = {name: call.estimators[name] for name in methods if methods[name] == method}
        fields |= resample(replace(call, estimators=estimators), Resampling(method, size, key))
    return fields


def comparison_results(call: Call, *, method: Any = None, size: Any = None, rng: Any = None) -> Any:
    """Compute the result of a call on two models, or `Results` by estimator name.

    Each model may have outcomes of its own.
    """
    check_same_classes(call)
    n_drawn = check_size(call, size)
    key = new_key(rng)
    methods = {name: choose_method(call, method, size, name) for name in call.estimators}
    fields_of_drawn = resample_by_method(call, methods, n_drawn, key)

    def make_result(name: str) -> ComparisonResult:
        values = compute_values(call, name)
        a, b = values
        if methods[name] == MOVER:
            fields = {
                **common_fields(call, name, key),
                "method": MOVER,
                "size": call.n,
                "bootstrap_distribution": np.empty((*np.shape(a), 0)),
                "_differences": compute_differences(call, name, values, key),
            }
        else:
            fields = fields_of_drawn[name]
        return ComparisonResult(
            value=compute_quantity(values),
            a=a,
            b=b,
            confidence_level=call.level,
            _infinite_rows=find_infinite_rows(call, name, values),
            **fields,
        )

    return collect_results(call, make_result)


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
    """Compare the calibration errors of two models on the same rows.

    Parameters
    ----------
    y_true, size, groups, **options
        As in `fastece.bootstrap`. "mover" draws no rows, so `size` goes with the other methods
        only; with `groups` it joins both models as if they were independent.
    y_prob_a, y_prob_b : (n,) or (n, K) array_like of float
        Probabilities of the two models, row by row for the same labels.
    estimator : str or object, or a list of them, default "ece_bayes"
        As in `fastece.ece`. The estimators of a list share every draw.
    method : {"mover", "basic", "percentile", "bca"} or None, default None
        How the interval of the difference is made:

        - "mover": joined from confidence distributions of both models' errors, with a p-value
          that is less than 1 - level exactly where the interval does not hold 0. It holds the true
          difference of calibration errors where the others often miss it, and is wider.
        - "basic", "percentile", "bca": from draws of the rows, as in `fastece.bootstrap`; the basic
          interval of a difference is not clipped at 0.
        - None: "mover" for calibration errors, "basic" for means such as the Brier score, and with
          `size`.
    n_resamples : int, default 1999
        Number of replicates.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.

    Returns
    -------
    ComparisonResult, or for a list of estimators a dict of them, as in `fastece.bootstrap`

    Raises
    ------
    ValueError, TypeError
        As in `fastece.bootstrap`; for `size` with "mover"; for models that differ in their setting
        or their number of classes.

    Notes
    -----
    Both models are evaluated on the same draws, so that common noise cancels:
    ``p = (1 + #{|d* - d| >= |d|}) / (n_resamples + 1)`` with the difference d and its replicates d*
    (Efron and Tibshirani 1993, section 16.4; the 1 as in Davison and Hinkley 1997, "Bootstrap
    methods and their application", eq. 4.11). Intervals of "mover" have quantiles of the
    difference of two errors that follow the confidence distributions of both models, joined by a
    normal copula with the correlation of the changes that each row makes. They recover the
    variance of a difference from the two answers, as Zou (2007, "Toward using confidence
    intervals to compare correlations") does from ends alone; each answer is made of at most 1999
    replicates, or of a posterior, whose ends lie elsewhere than in `estimate`, since a difference
    adds up what is too wide in both. For "ece_bayes", where the scores of one model are an
    increasing function of the other's, as after recalibration, its error is larger by at most the
    mean distance of the scores (by the inequalities of Jensen and Minkowski), and the interval
    ends there. ``docs/evidence/coverage.md`` has the coverage of "basic" and "mover", and how
    often they find a difference between equal models.

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
      b                0.027
      a - b            0.142
      95 % CI (mover)  [0.092, 0.174]
      p-value          0.0018
    >>> print(compare(y, p**2, p, estimator="brier_score"))
    BrierScore(), setting binary: 1000 rows, 1999 replicates
      a                0.202
      b                0.166
      a - b            0.036
      95 % CI (basic)  [0.025, 0.047]
      p-value          <=0.0005
      standard error   0.005
      bias             0.000
    """
    if isinstance(y_true, Source):
        need_rows(y_true, "compare")
    models = {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}
    n_classes_a, n_classes_b = (
        class_count(read_shape(name, prob, options.get("class_axis")))
        for name, prob in models.items()
    )
    if n_classes_a != n_classes_b:  # labels would be out of range for one of them
        rule = f"must have the classes of y_prob_a, {n_classes_a}"
        raise InputError("y_prob_b", rule, value=n_classes_b)
    options |= {"estimator": estimator, "n_resamples": n_resamples}
    call = read_call("compare", y_true, models, **options)
    call = add_groups(call, groups, y_prob_a, "y_prob_a")
    return comparison_results(call, method=method, size=size, rng=rng)


def read_shape(name: str, prob: Any, class_axis: Any) -> tuple[int, ...]:
    """Read the shape of probabilities; with a class axis it is (n, K)."""
    if class_axis is None:
        return as_probabilities(prob, name).shape
    axes = find_row_axes(name, prob, class_axis)
    return (axes.n, axes.n_classes)
