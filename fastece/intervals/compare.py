"""Whether two models differ in their calibration error, on the same rows."""

from functools import partial
from typing import Any, Literal, overload

from fastece.checks.probabilities import as_probabilities
from fastece.data.settings import class_count
from fastece.document.result import Results
from fastece.estimators.base import Estimator
from fastece.intervals.difference import differences
from fastece.resampling.arguments import Call, add_groups, check_can_be_null, read_call
from fastece.resampling.bootstrap import resample
from fastece.resampling.intervals import METHODS, Method
from fastece.resampling.results import HONEST, ComparisonResult


def comparison_results(call: Call, *, method: Any = "basic", **options: Any) -> Any:
    """The result of a call on two models, each of which may have hits of its own, or `Results` by
    the names of its estimators; `options` are those of `resample`."""
    models = call.models
    same: dict[str, list[str]] = {
        "the classes and the setting": [f"{x.n_classes} and {x.setting.name!r}" for x in models],
        "its classes in the order": [
            str([str(label) for label in x.labels or range(x.n_classes)]) for x in models
        ],
    }
    for what, (a, b) in same.items():
        if a != b:
            raise ValueError(f"y_prob_b: must have {what} of y_prob_a, {a}; got {b}")
    if method == HONEST:
        if call.groups is not None:
            raise ValueError(
                'method: "honest" intervals take every row for independent of the others, so they '
                f"go without groups; with them: {', '.join(map(repr, METHODS))}"
            )
        check_can_be_null(call, 'method="honest"')
    honest = partial(differences, call)
    return resample(call, ComparisonResult, method=method, honest=honest, **options)


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
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, size: int | None = None,
    method: Method | Literal["honest"] = "basic", rng: Any = None, bootstrap_result: Any = None,
    groups: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Difference between the calibration errors of two models, on the same rows.

    Parameters
    ----------
    y_true, size, rng, bootstrap_result, groups, **options
        As in `bootstrap`, with the same defaults. "honest" intervals take rows for independent, so
        `groups` go with the other methods only.
    method : {"basic", "percentile", "bca", "honest"}, default "basic"
        The first three as in `bootstrap`; the basic interval of a difference is not clipped at 0.
        "honest", which ``fastece compare`` prints: joined from the intervals that `estimate` has
        for both models, with a p-value that is less than 1 - level exactly where the interval does
        not hold 0. It holds the true difference where the others often miss it, and is wider. Rows
        are drawn only if you ask for `bootstrap_distribution`, `standard_error` or `bias`.
    y_prob_a, y_prob_b : (n,) or (n, K) array_like of float
        Probabilities of the two models, row by row for the same labels.

    Returns
    -------
    ComparisonResult, or for a list of estimators a dict of them, as of `bootstrap`

    Raises
    ------
    ValueError, TypeError
        As in `bootstrap`; for `groups` with "honest"; for models that differ in their setting or
        their number of classes.

    Notes
    -----
    Both models are evaluated on the same draws, so what they have in common cancels:
    ``p = (1 + #{|d* - d| >= |d|}) / (n_resamples + 1)`` with the difference d and its replicates
    d* (Efron and Tibshirani 1993, section 16.4; the 1 as in Davison and Hinkley 1997, "Bootstrap
    methods and their application", eq. 4.11). The ends of "honest" intervals are joined by MOVER
    with the correlation of what each row changes (Zou 2007, "Toward using confidence intervals to
    compare correlations"); each is made of at most 1999 replicates, or of a posterior.
    ``docs/intervals.md`` has the coverage of "basic" and "honest", and how often they tell equal
    models apart.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import compare
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> result = compare(y, p**2, p, n_resamples=999, rng=0)
    >>> print(result)
    Binned(n_bins=15), setting binary: 1000 rows, 999 replicates
      a                0.176
      b                0.037
      a - b            0.139
      95 % CI (basic)  [0.124, 0.182]
      p-value          0.001
      standard error   0.015
      bias             -0.012
    >>> print(compare(y, p**2, p, method="honest", rng=0))
    Binned(n_bins=15), setting binary: 1000 rows
      a                 0.176
      b                 0.037
      a - b             0.139
      95 % CI (honest)  [0.112, 0.202]
      p-value           0.001
    """
    models = {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}
    a, b = (class_count(as_probabilities(p, name).shape) for name, p in models.items())
    if a != b:  # labels would be out of range for one of them
        raise ValueError(f"y_prob_b: must have the classes of y_prob_a, {a}; got {b}")
    call = read_call(y_true, models, int(bootstrap_result is None), **options)
    call = add_groups(call, groups, y_prob_a, "y_prob_a")
    return comparison_results(
        call, method=method, size=size, rng=rng, bootstrap_result=bootstrap_result
    )
