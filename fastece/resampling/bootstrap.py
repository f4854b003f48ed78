"""How sure one can be of a calibration error, and of the difference between two models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fastece.inputs.validation import check_integer
from fastece.protocol import Estimator, direct_values
from fastece.resampling.arguments import Call, plan, read_call, replicate_values, samples_of
from fastece.resampling.draws import LeaveOut, draws_of, new_key
from fastece.resampling.engine import Problem, Work
from fastece.resampling.intervals import ConfidenceInterval, acceleration_of
from fastece.resampling.rehearsal import compile_resampling
from fastece.resampling.results import BootstrapResult, ComparisonResult, Replicated, as_float

__all__ = ["bootstrap", "bootstrapped", "compare", "compared"]

F64 = NDArray[np.float64]

# Groups of a delete-block jackknife: acceleration needs no more, and it is 2 % of the default cost.
GROUPS = 200
MOST_DRAWN = 2**31 - 1


def jackknife(call: Call, problems: Sequence[Problem]) -> list[Work]:
    """The values without the rows i of each group ``i % groups``, in order: of groups that have one
    row more, and of the others, whose draws have another size."""
    groups = min(call.n, GROUPS)
    longer, least = call.n % groups, call.n // groups
    works = []
    for first, last, rows in ((0, longer, least + 1), (longer, groups, least)):
        if last > first:
            draws = LeaveOut(call.n, groups, first, last - 1)
            works.append(Work(plan(call, problems, draws, call.n - rows), 0, last - first))
    return works


@dataclass(frozen=True)
class Numbers:
    """The replicates of one estimator on one call: of each model, averaged as the caller wants.

    Attributes
    ----------
    distributions : list of arrays
        The replicates.
    jackknife : list of arrays
        The values without each group of rows; empty where there are none.
    """

    distributions: list[F64]
    jackknife: list[F64]


def points_of(call: Call) -> dict[str, list[Any]]:
    """The value of every estimator on the data of each model."""
    return {
        name: [as_float(call.averaged(direct_values(estimator, p))) for p in call.models]
        for name, estimator in call.estimators.items()
    }


def resample(call: Call, key: int, size: int, start: int) -> dict[str, Numbers]:
    """Replicates from number `start` on and jackknife values of every estimator."""
    problems = [Problem(sample) for model in call.models for sample in samples_of(model)]
    replicates = plan(call, problems, draws_of(key, call.n, size), size)
    works = [Work(replicates, start, start + call.n_resamples)]
    if size == call.n > 1:
        works += jackknife(call, problems)
    values, *rest = replicate_values(call, works)
    without = np.concatenate(rest, axis=-1) if rest else values[..., :0]
    ends = np.cumsum([model.n_problems for model in call.models])[:-1]
    return {
        name: Numbers(
            [call.averaged(part) for part in np.split(values[:, i], ends)],
            [call.averaged(part) for part in np.split(without[:, i], ends)],
        )
        for i, name in enumerate(call.estimators)
    }


def previous_of(
    call: Call, kind: type[Replicated], size: int, points: dict[str, Any], given: Any
) -> dict[str, Any]:
    """The earlier result of each estimator, if any, where it is one of the same call."""
    if given is None:
        return {}
    earlier = given if isinstance(given, Mapping) else {"": given}
    for name, estimator in call.estimators.items():
        old = earlier.get(name)
        if not isinstance(old, kind):
            raise TypeError(
                f"bootstrap_result: must be a {kind.__name__} of the same call, or a dict of them "
                f"for several estimators, got {given!r:.80}"
            )
        here = {"estimator": str(estimator), "setting": call.setting, "n": call.n, "size": size}
        for field, value in (*here.items(), *points[name].items()):
            same_as(field, getattr(old, field), value)
    earlier = {name: earlier[name] for name in call.estimators}
    first = next(iter(earlier.values()))
    for old in earlier.values():
        same_as("key", old.key, first.key)
        same_as("shape", old.bootstrap_distribution.shape, first.bootstrap_distribution.shape)
    return earlier


def same_as(what: str, old: Any, new: Any) -> None:
    """An error, unless an earlier result has the same."""
    numbers = what in ("estimate", "difference", "a", "b")
    if not np.array_equal(old, new, equal_nan=numbers):
        raise ValueError(f"bootstrap_result: is of another {what}: {old!r}, and here it is {new!r}")


def extended(result: Replicated, old: Replicated) -> Replicated:
    """A result with the replicates of an earlier one before its own."""
    parts = [old.bootstrap_distribution, result.bootstrap_distribution]
    return replace(result, bootstrap_distribution=np.concatenate(parts, axis=-1))


Points = Callable[[list[Any]], dict[str, Any]]
Parts = Callable[[list[F64]], F64]


def estimate_of(points: list[Any]) -> dict[str, Any]:
    """Own fields of the result of `bootstrap`."""
    return {"estimate": points[0]}


def difference_of(points: list[Any]) -> dict[str, Any]:
    """Own fields of the result of `compare`."""
    a, b = points
    return {"difference": a - b, "a": a, "b": b}


def only(values: list[F64]) -> F64:
    """The values of the only model."""
    return values[0]


def gap(values: list[F64]) -> F64:
    """The differences of the values of two models."""
    return values[0] - values[1]


def results_of(
    call: Call,
    kind: type[Replicated],
    fields_of: Points,
    values_of: Parts,
    *,
    rng: Any,
    size: Any,
    bootstrap_result: Any,
) -> Any:
    """Resample, and make a result of this kind of the numbers of each estimator."""
    size = call.n if size is None else check_integer("size", size, 1, MOST_DRAWN)
    points = {name: fields_of(values) for name, values in points_of(call).items()}
    earlier = previous_of(call, kind, size, points, bootstrap_result)
    first = next(iter(earlier.values()), None)
    start = 0 if first is None else first.bootstrap_distribution.shape[-1]
    key = first.key if first is not None and rng is None else new_key(rng)
    results = {}
    for name, numbers in resample(call, key, size, start).items():
        without = values_of(numbers.jackknife)
        result = kind(
            **points[name],
            bootstrap_distribution=values_of(numbers.distributions),
            confidence_interval=ConfidenceInterval(np.nan, np.nan),
            confidence_level=call.level,
            method=call.method,
            n=call.n,
            size=size,
            key=key,
            acceleration=as_float(acceleration_of(without)) if without.shape[-1] else np.nan,
            estimator=str(call.estimators[name]),
            setting=call.setting,
        )
        if earlier:
            result = extended(result, earlier[name])
        ends = result.interval(call.level, call.method)  # type: ignore[arg-type]
        results[name] = replace(result, confidence_interval=ends)
    return results.get("", results)


def bootstrapped(call: Call, *, rng: Any, size: Any = None, bootstrap_result: Any = None) -> Any:
    """The results of a call on one model, by the names of its estimators."""
    return results_of(
        call,
        BootstrapResult,
        estimate_of,
        only,
        rng=rng,
        size=size,
        bootstrap_result=bootstrap_result,
    )


def compared(call: Call, *, rng: Any, size: Any = None, bootstrap_result: Any = None) -> Any:
    """The same of a call on two, each of which may have hits of its own."""
    a, b = call.models
    if a.n_classes != b.n_classes or a.setting != b.setting:
        raise ValueError(
            f"{b.prob_name}: must have the classes and the setting of {a.prob_name}, "
            f"{a.n_classes} and {a.setting.name!r}; got {b.n_classes} and {b.setting.name!r}"
        )
    return results_of(
        call,
        ComparisonResult,
        difference_of,
        gap,
        rng=rng,
        size=size,
        bootstrap_result=bootstrap_result,
    )


@overload
def bootstrap(
    y_true: Any, y_prob: Any, *, estimator: list[Any] | tuple[Any, ...], **options: Any
) -> dict[str, BootstrapResult]: ...
@overload
def bootstrap(
    y_true: Any, y_prob: Any, *, estimator: str | Estimator = ..., **options: Any
) -> BootstrapResult: ...
def bootstrap(
    y_true: Any,
    y_prob: Any,
    *,
    estimator: Any = "ece",
    n_resamples: int = 9999,
    size: int | None = None,
    confidence_level: float = 0.95,
    method: Literal["basic", "percentile", "bca"] = "basic",
    setting: Any = "auto",
    average: Literal["macro"] | None = "macro",
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    from_logits: bool = False,
    rng: Any = None,
    n_jobs: int | None = None,
    executor: Any = None,
    bootstrap_result: Any = None,
    **fields: Any,
) -> Any:
    """Bootstrap distribution and confidence interval of a calibration error.

    Parameters
    ----------
    y_true, y_prob, setting, average, labels, pos_label, sample_weight, from_logits, **fields
        As in `fastece.ece`.
    estimator : str or object, or a list of them, default "ece"
        As in `fastece.ece`. Several share every draw.
    n_resamples : int, default 9999
        Number of replicates; 0 is allowed with `bootstrap_result`.
    size : int, optional
        Rows per draw, by default as many as there are. With another number there is the
        distribution alone, and the interval is nan.
    confidence_level : float, default 0.95
    method : {"basic", "percentile", "bca"}, default "basic"
        "basic": ``(max(0, 2 e - q_hi), max(0, 2 e - q_lo))`` with the estimate e and quantiles q of
        the distribution. "percentile": the quantiles. "bca": quantiles at levels corrected for bias
        and skewness; nan where all replicates are on one side of the estimate.
    rng : None, int or numpy.random.Generator
        Where the key of the draws comes from (SPEC 7).
    n_jobs : int, optional
        Threads; -1 for all processors.
    executor : concurrent.futures.Executor or the like, optional
        Where to work instead: anything with ``submit``, such as a pool of processes or a Dask
        client.
    bootstrap_result : BootstrapResult, or a dict of them, optional
        An earlier result of the same data, estimator and setting, whose replicates come before the
        new ones. Without `rng` its draws are continued.

    Returns
    -------
    BootstrapResult, or for a list of estimators a dict of them by their names

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for a `bootstrap_result` of other data.

    Notes
    -----
    Rows are drawn with replacement, each with probability 1/n whatever its weight; rows of weight 0
    do not exist. The same seed gives the same bits for any number of threads, any executor and any
    `n_resamples`. A plug-in calibration error is biased upward, and the bootstrap repeats that
    bias: "basic" takes it off, "percentile" adds it once more. Efron and Tibshirani (1993, "An
    introduction to the bootstrap", chapters 13 and 14); coverage as measured is in
    ``docs/intervals.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import bootstrap
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**1.3
    >>> result = bootstrap(y, p, n_resamples=999, rng=0)
    >>> print(result)
    Binned(n_bins=15), setting binary: 1000 rows, 999 replicates
      estimate         0.05972
      95 % interval    [0.03039, 0.07242] (basic)
      standard error   0.01057
      bias             0.00837
    >>> print(*map("{:.5f}".format, result.interval(0.9, "bca")))
    0.03370 0.06948
    """
    call = read_call(
        y_true, {"y_prob": y_prob}, estimator=estimator, fields=fields, n_resamples=n_resamples,
        least=0 if bootstrap_result is not None else 1, confidence_level=confidence_level,
        method=method, setting=setting, average=average, labels=labels, pos_label=pos_label,
        sample_weight=sample_weight, from_logits=from_logits, n_jobs=n_jobs, executor=executor,
    )  # fmt: skip
    with compile_resampling(call, bootstrap):
        return bootstrapped(call, rng=rng, size=size, bootstrap_result=bootstrap_result)


@overload
def compare(
    y_true: Any,
    y_prob_a: Any,
    y_prob_b: Any,
    *,
    estimator: list[Any] | tuple[Any, ...],
    **options: Any,
) -> dict[str, ComparisonResult]: ...
@overload
def compare(
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, estimator: str | Estimator = ..., **options: Any
) -> ComparisonResult: ...
def compare(
    y_true: Any,
    y_prob_a: Any,
    y_prob_b: Any,
    *,
    estimator: Any = "ece",
    n_resamples: int = 9999,
    size: int | None = None,
    confidence_level: float = 0.95,
    method: Literal["basic", "percentile", "bca"] = "basic",
    setting: Any = "auto",
    average: Literal["macro"] | None = "macro",
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    from_logits: bool = False,
    rng: Any = None,
    n_jobs: int | None = None,
    executor: Any = None,
    bootstrap_result: Any = None,
    **fields: Any,
) -> Any:
    """Difference between the calibration errors of two models, on the same rows.

    Parameters
    ----------
    y_true, estimator, n_resamples, size, confidence_level, method, setting, average, labels,
    pos_label, sample_weight, from_logits, rng, n_jobs, executor, bootstrap_result, **fields
        As in `bootstrap`; the basic interval of a difference is not clipped at 0.
    y_prob_a, y_prob_b : (n,) or (n, K) array_like of float
        Probabilities of the two models, row by row for the same labels.

    Returns
    -------
    ComparisonResult, or for a list of estimators a dict of them by their names

    Raises
    ------
    ValueError, TypeError
        As in `bootstrap`; for models that differ in their setting or their number of classes.

    Notes
    -----
    Both models are evaluated on the same draws, so what they have in common cancels:
    ``p = (1 + #{|d* - d| >= |d|}) / (n_resamples + 1)`` with the difference d and its replicates
    d* (Efron and Tibshirani 1993, section 16.4; the 1 as in Davison and Hinkley 1997, "Bootstrap
    methods and their application", eq. 4.11).

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
      a                0.17612
      b                0.03737
      a - b            0.13875
      p-value          0.00100
      95 % interval    [0.12434, 0.18214] (basic)
      standard error   0.01494
      bias             -0.01212
    """
    call = read_call(
        y_true, {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}, estimator=estimator, fields=fields,
        n_resamples=n_resamples, least=0 if bootstrap_result is not None else 1,
        confidence_level=confidence_level, method=method, setting=setting, average=average,
        labels=labels, pos_label=pos_label, sample_weight=sample_weight, from_logits=from_logits, n_jobs=n_jobs,
        executor=executor,
    )  # fmt: skip
    return compared(call, rng=rng, size=size, bootstrap_result=bootstrap_result)
