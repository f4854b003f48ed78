"""Comparison of the calibration errors of two models on the same rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Unpack, overload

import numpy as np

from fastece.data.axes import find_row_axes
from fastece.data.containers import as_probabilities
from fastece.data.errors import InputError
from fastece.data.options import shows_options, split_options
from fastece.data.parameters import check_choice
from fastece.data.predictions import Predictions
from fastece.data.reading import NO_PARTS, refuse_options
from fastece.data.table import TableMaker, class_count
from fastece.display.results import Results
from fastece.estimators.base import Estimator
from fastece.inference.joint_differences import draw_deviations, join_comparisons
from fastece.inference.mover import ModelError, compute_differences, errors_of_models
from fastece.inference.results import ComparisonResult, JointComparisonResult
from fastece.resampling.arguments import (
    ResamplingKeywords,
    add_groups,
    check_single,
    read_call,
    require_calibration_error,
)
from fastece.resampling.bootstrap import Resampling, check_size, compute_quantity, resample
from fastece.resampling.call import (
    Call,
    collect_results,
    common_fields,
    compute_values,
    find_infinite_rows,
)
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import as_float
from fastece.resampling.results import METHODS, Method

# The method that joins the intervals of both models, as `estimate` has them.
MOVER = "mover"


def check_same_classes(call: Call, names: Sequence[str] = ("y_prob_b",)) -> None:
    """Check that all models of a call have the classes and setting of the first.

    `names` are the arguments of all models after the first.
    """
    first, *others = call.uncounted_tables
    for name, other in zip(names, others, strict=True):
        if (first.n_classes, first.setting.name) != (other.n_classes, other.setting.name):
            kind_a, kind_b = (f"{x.n_classes} and {x.setting.name!r}" for x in (first, other))
            raise differing_models("the classes and the setting", kind_a, kind_b, name)
        order_a, order_b = (
            str([str(label) for label in x.labels or range(x.n_classes)]) for x in (first, other)
        )
        if order_a != order_b:
            raise differing_models("its classes in the order", order_a, order_b, name)


def differing_models(quantity: str, of_a: str, of_b: str, name: str) -> InputError:
    """Build the error for a model that differs from the first in a quantity."""
    return InputError(name, f"must have {quantity} of {{y_prob_a}}, {of_a}, got {of_b}")


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


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of all models of a call with the first.

    Attributes
    ----------
    call : Call
    methods : dict of str to str
        The method of the estimator of each name.
    size : int
        Number of rows per draw.
    key : int
        The number that all draws depend on.
    """

    call: Call
    methods: dict[str, str]
    size: int
    key: int

    def results(self) -> dict[str, list[ComparisonResult]]:
        """Compare each model with the first by each estimator; several hold together."""
        pairs = [
            replace(self.call, tables=[self.call.tables[0], other])
            for other in self.call.tables[1:]
        ]
        drawn = [resample_by_method(pair, self.methods, self.size, self.key) for pair in pairs]
        return {name: self._compare_by(name, pairs, drawn) for name in self.call.estimators}

    def _compare_by(
        self, name: str, pairs: Sequence[Call], drawn: Sequence[dict[str, dict[str, Any]]]
    ) -> list[ComparisonResult]:
        """Compare the models by the estimator of a name.

        `drawn` has the fields of the results whose method draws rows, for each pair.
        """
        first_value, *values = compute_values(self.call, name)
        errors: list[list[ModelError]] = []
        if self.methods[name] == MOVER:
            errors = errors_of_models(self.call, name, [first_value, *values], self.key)
            if self.call.clusters is not None:
                # Estimates take into account that rows of a group depend on each other.
                first_value, *values = (value_of_errors(self.call, x) for x in errors)
        results = []
        for number, (pair, value) in enumerate(zip(pairs, values, strict=True)):
            both_values = [first_value, value]
            if errors:
                both_errors = [errors[0], errors[1 + number]]
                fields_of_method = self._fields_of_mover(pair, name, both_values, both_errors)
            else:
                fields_of_method = drawn[number][name]
            results.append(
                ComparisonResult(
                    value=compute_quantity(both_values),
                    a=first_value,
                    b=value,
                    confidence_level=self.call.level,
                    _infinite_rows=find_infinite_rows(pair, name, both_values),
                    **fields_of_method,
                )
            )
        if len(results) == 1:
            return results
        return self._join(results, errors)

    def _fields_of_mover(
        self, pair: Call, name: str, values: Sequence[Any], errors: Sequence[Sequence[ModelError]]
    ) -> dict[str, Any]:
        """Return the fields of a result that is joined from the errors of a pair."""
        return {
            **common_fields(pair, name, self.key),
            "method": MOVER,
            "size": pair.n,
            "bootstrap_distribution": np.empty((*np.shape(values[0]), 0)),
            "_differences": compute_differences(pair, name, values, errors),
        }

    def _join(
        self, results: Sequence[ComparisonResult], errors: Sequence[Sequence[ModelError]]
    ) -> list[ComparisonResult]:
        """Make results that hold together of comparisons that hold one by one."""
        if errors:
            deviations = draw_deviations(self.call, errors, self.key)
        else:
            deviations = np.array([
                np.atleast_2d(x.bootstrap_distribution - np.asarray(x.value)[..., None])
                for x in results
            ])  # fmt: skip
        test = join_comparisons(results, deviations)
        return [
            JointComparisonResult(
                **{x.name: getattr(result, x.name) for x in fields(result) if x.init},
                n_comparisons=len(results),
                _joint_p_value=as_float(p_value),
                _joint_levels=test.levels,
            )
            for result, p_value in zip(results, test.p_values, strict=True)
        ]


def value_of_errors(call: Call, errors: Sequence[ModelError]) -> Any:
    """Return the estimates of all classes of a model as an array, or the only one."""
    values = [error.value for error in errors]
    return as_float(values if call.per_class else values[0])


def comparisons_with_first(
    call: Call, *, method: Any = None, size: Any = None, rng: Any = None
) -> dict[str, list[ComparisonResult]]:
    """Compare the models of a call with the first, by the name of each estimator.

    Each model may have outcomes of its own. The p-values and intervals of several comparisons hold
    together, for each estimator by itself.
    """
    n_drawn = check_size(call, size)
    key = new_key(rng)
    methods = {name: choose_method(call, method, size, name) for name in call.estimators}
    return Comparisons(call, methods, n_drawn, key).results()


def comparison_results(call: Call, *, method: Any = None, size: Any = None, rng: Any = None) -> Any:
    """Compute the result of a call on two models, or `Results` by estimator name.

    Each model may have outcomes of its own; the caller has checked that they have the same classes.
    """
    results = comparisons_with_first(call, method=method, size=size, rng=rng)
    return collect_results(call, lambda name: results[name][0])


@overload
def compare(
    y_true: Any, y_prob_a: Any = ..., y_prob_b: Mapping[Any, Any] = ..., *,
    estimator: str | Estimator = ...,
    method: Method | Literal["mover"] | None = ..., n_resamples: int = ...,
    average: Literal["macro"] | None = ..., rng: Any = ..., size: int | None = ...,
    groups: Any = ..., **options: Unpack[ResamplingKeywords],
) -> Results[ComparisonResult]: ...  # fmt: skip
@overload
def compare(
    y_true: Any, y_prob_a: Any = ..., y_prob_b: Any = ..., *,
    estimator: list[Any] | tuple[Any, ...],
    method: Method | Literal["mover"] | None = ..., n_resamples: int = ...,
    average: Literal["macro"] | None = ..., rng: Any = ..., size: int | None = ...,
    groups: Any = ..., **options: Unpack[ResamplingKeywords],
) -> Results[ComparisonResult]: ...  # fmt: skip
@overload
def compare(
    y_true: Any, y_prob_a: Any = ..., y_prob_b: Any = ..., *, estimator: str | Estimator = ...,
    method: Method | Literal["mover"] | None = ..., n_resamples: int = ...,
    average: Literal["macro"] | None = ..., rng: Any = ..., size: int | None = ...,
    groups: Any = ..., **options: Unpack[ResamplingKeywords],
) -> ComparisonResult: ...  # fmt: skip
@shows_options
def compare(
    y_true: Any, y_prob_a: Any = None, y_prob_b: Any = None, *, estimator: Any = "ece_bayes",
    method: Method | Literal["mover"] | None = None, n_resamples: int = 1999,
    average: Literal["macro"] | None = "macro", rng: Any = 0, size: int | None = None,
    groups: Any = None, **options: Unpack[ResamplingKeywords],
) -> Any:  # fmt: skip
    """Compare the calibration errors of models with the first one's on the same rows.

    Parameters
    ----------
    y_true, average, size, groups, **options
        As in `fastece.bootstrap`. "mover" draws no rows, so `size` goes with the other methods
        only; with `groups` it joins both models as if they were independent.
    y_prob_a, y_prob_b : (n,) or (n, K) array_like of float
        Probabilities of the two models, row by row for the same labels. Several models are compared
        with the first as a dict of them, ``y_prob_b={"new": q, "newer": r}``. A table that was read
        before stands for the labels, the first model and all options of reading:
        ``compare(Predictions(y, p), y_prob_b=q)``.
    estimator : str or object, or a list of them, default "ece_bayes"
        As in `fastece.ece`. The estimators of a list share every draw. With a dict of models there
        is one.
    method : {"mover", "basic", "percentile", "bca"} or None, default None
        How the interval of the difference is made:

        - "mover": joined from confidence distributions of both models' errors, with a p-value
          that is less than 1 - level exactly where the interval does not hold 0. It holds the true
          difference of calibration errors where the others often miss it, and is wider.
        - "basic", "percentile", "bca": from draws of the rows, as in `fastece.bootstrap`.
        - None: "mover" for calibration errors, "basic" for means such as the Brier score, and with
          `size`.
    n_resamples : int, default 1999
        Number of replicates.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.

    Returns
    -------
    ComparisonResult, or for a list of estimators a dict of them, as in `fastece.bootstrap`
        For a dict of models a dict of the comparison of each with the first, whose p-values and
        intervals hold for all of them together; `raw_p_value` is the p-value of each alone.

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
    ends there.

    With several models, each comparison has its own p-value p_i and confidence intervals, and all
    share the draws of the rows. The share of draws whose deviation is as extreme as in draw r is
    p_i(r). Joint p-values are adjusted by step-down min-p (Westfall and Young 1993,
    "Resampling-based multiple testing", algorithm 2.8; Romano and Wolf 2005, "Stepwise multiple
    testing as formalized data snooping"): with ``p_1 <= ... <= p_M`` it is
    ``max_{j <= k} #{r: min_{i >= j} p_i(r) <= p_j} / (n_resamples + 1)``, at least p_k and at most
    Holm's. A model that is named twice costs nothing. Joint intervals have the level
    ``1 - a`` each, where a is the alpha-quantile of ``min_i p_i(r)`` with the two tails of each
    deviation (Beran 1988, "Balanced simultaneous confidence sets"): at least alpha / M, which is
    Bonferroni's, and at most alpha. With "mover", the deviation of a difference in a draw is the
    one of the linearised errors: the sum of the influences of the rows that are drawn, scaled to
    the width of the error's confidence distribution.

    ``docs/evidence/coverage.md`` has the coverage of "basic" and "mover", and how
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
      95 % CI (mover)  [0.106, 0.174]
      p-value          0.0011
    >>> print(compare(y, p**2, p, estimator="brier_score"))
    BrierScore(), setting binary: 1000 rows, 1999 replicates
      a                0.202
      b                0.166
      a - b            0.036
      95 % CI (basic)  [0.025, 0.047]
      p-value          <=0.0005
      standard error   0.005
      bias             0.000

    Several models are compared with the first, here with the calibrated one:

    >>> compare(y, p, {"squared": p**2, "cautious": 0.1 + 0.8 * p, "same": p})
    setting binary: 1000 rows
      name           a       b   a - b  joint 95 % CI (mover)  joint p-value
      squared    0.027   0.170  -0.142       [-0.175, -0.098]          0.002
      cautious   0.027   0.062  -0.035        [-0.052, 0.023]           0.13
      same      0.0273  0.0273       0                 [0, 0]           1.00
      Joint intervals and p-values hold for all 3 comparisons together (step-down min-p).
    """
    keywords: dict[str, Any] = {**options}
    if isinstance(y_true, Predictions):
        refuse_options(y_true, y_prob_a=y_prob_a, **split_options(keywords)[0].given)
        y_true, y_prob_a, reading = y_true.arrays
        if reading.by is not None:
            raise InputError("by", NO_PARTS)
        keywords |= reading.given
    elif isinstance(y_true, TableMaker):
        y_true.table().need_rows("compare")
    others = name_models(y_prob_b)
    if isinstance(y_prob_b, Mapping):
        check_single(estimator)
    n_classes = class_count(read_shape("y_prob_a", y_prob_a, keywords.get("class_axis")))
    for name, prob in others.items():
        n_classes_of_other = class_count(read_shape(name, prob, keywords.get("class_axis")))
        if n_classes_of_other != n_classes:  # labels would be out of range for one of them
            rule = f"must have the classes of y_prob_a, {n_classes}"
            raise InputError(name, rule, value=n_classes_of_other)
    call = read_call(
        "compare", y_true, {"y_prob_a": y_prob_a, **others}, estimator=estimator,
        n_resamples=n_resamples, average=average, **keywords,
    )  # fmt: skip
    call = add_groups(call, groups, y_prob_a, "y_prob_a")
    check_same_classes(call, list(others))
    if not isinstance(y_prob_b, Mapping):
        return comparison_results(call, method=method, size=size, rng=rng)
    (results,) = comparisons_with_first(call, method=method, size=size, rng=rng).values()
    return Results(dict(zip(y_prob_b, results, strict=True)))


def name_models(y_prob_b: Any) -> dict[str, Any]:
    """Return the models after the first by the names of their arguments."""
    if not isinstance(y_prob_b, Mapping):
        return {"y_prob_b": y_prob_b}
    if not y_prob_b:
        raise InputError("y_prob_b", "must have a model")
    return {f"y_prob_b[{name!r}]": prob for name, prob in y_prob_b.items()}


def read_shape(name: str, prob: Any, class_axis: Any) -> tuple[int, ...]:
    """Read the shape of probabilities; with a class axis it is (n, K)."""
    if class_axis is None:
        return as_probabilities(prob, name).shape
    axes = find_row_axes(name, prob, class_axis)
    return (axes.n, axes.n_classes)
