"""How sure one can be of a calibration error: its bootstrap."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fastece.estimators import direct_values
from fastece.inputs.parameters import check_integer
from fastece.protocol import Estimator
from fastece.resampling.arguments import Call, describe, read_call
from fastece.resampling.draws import LeaveOut, draws_of, new_key
from fastece.resampling.engine import Problem, plan_replicates
from fastece.resampling.intervals import Method
from fastece.resampling.rehearsal import compile_resampling
from fastece.resampling.results import BootstrapResult, Replicated, Results, as_float

__all__ = ["bootstrap", "bootstrap_results", "model_values", "resample"]

F64 = NDArray[np.float64]

# Groups of a delete-block jackknife: acceleration needs no more, and it is 2 % of the default cost.
GROUPS = 200
MOST_DRAWN = 2**31 - 1
# Estimates of the same data differ by no more between processors.
ROUNDING = 1e-12


# --- values ---------------------------------------------------------------------------------


def model_values(call: Call) -> dict[str, list[Any]]:
    """The value of every estimator on the data of each model."""
    return {
        name: [as_float(call.average_of(direct_values(estimator, p))) for p in call.models]
        for name, estimator in call.estimators.items()
    }


def is_near(a: Any, b: Any) -> bool:
    """Whether values are the same but for rounding, nan included."""
    near = partial(np.allclose, rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
    return np.shape(a) == np.shape(b) and bool(near(a, b))


def problems_of(call: Call) -> list[Problem]:
    """The problems of all models, on the same rows."""
    return [Problem(sample) for model in call.models for sample in model.samples()]


def draw_values(
    call: Call, problems: Sequence[Problem], draws: Any, size: int, first: int, last: int
) -> F64:
    """The values (problems, estimators, last - first) of a range of replicates."""
    replicates = plan_replicates(list(call.estimators.values()), problems, draws, size)
    values = call.evaluate(replicates, first, last)
    return values.reshape(len(problems), len(call.estimators), last - first)


def quantities(call: Call, values: F64) -> dict[str, F64]:
    """What each estimator estimates, from values (problems, estimators, R) of all models."""
    ends = np.cumsum([model.n_problems for model in call.models])[:-1]
    models = np.split(values, ends)
    return {
        name: call.quantity([call.average_of(model[:, i]) for model in models])
        for i, name in enumerate(call.estimators)
    }


def jackknife(call: Call, name: str, point: Any) -> F64:
    """The values (..., groups) of an estimator without the rows i of each group ``i % groups``; an
    error if the data are not those on which it has the value `point`."""
    call = replace(call, estimators={name: call.estimators[name]})
    if not is_near(call.quantity(model_values(call)[name]), point):
        raise ValueError("acceleration: the data have changed since the bootstrap; call it anew")
    problems, groups = problems_of(call), min(call.n, GROUPS)
    least, longer = divmod(call.n, groups)
    parts = []
    # Groups that have a row more than others come first; draws without them have another size.
    for first, last, rows in ((0, longer, least + 1), (longer, groups, least)):
        if first < last:
            draws = LeaveOut(call.n, groups, first, last - 1)
            parts.append(draw_values(call, problems, draws, call.n - rows, 0, last - first))
    return quantities(call, np.concatenate(parts, axis=-1))[name]


# --- results --------------------------------------------------------------------------------


def check_same(what: str, old: Any, new: Any) -> None:
    """An error, unless an earlier result has the same, numbers but for rounding."""
    if not (is_near(old, new) if isinstance(new, float | np.ndarray) else old == new):
        raise ValueError(f"bootstrap_result: is of another {what}: {old!r}, and here it is {new!r}")


def check_earlier(
    call: Call, kind: type[Replicated], points: dict[str, Any], size: int, earlier: Any
) -> dict[str, Any]:
    """The earlier result of each estimator, if it is one of the same call."""
    results = earlier if isinstance(earlier, Mapping) else {"": earlier}
    found = {name: results.get(name) for name in call.estimators}
    first: Any = next(iter(found.values()))
    for name, old in found.items():
        if not isinstance(old, kind):
            raise TypeError(
                f"bootstrap_result: must be a {kind.__name__} of the same call, or a dict of them "
                f"for several estimators, got {earlier!r:.80}"
            )
        here = {"estimator": describe(call.estimators[name]), "setting": call.setting, "n": call.n}
        here |= {"size": size, "key": first.key, **points[name]}
        for field, value in here.items():
            check_same(field, getattr(old, field), value)
        old_shape, shape = (x.bootstrap_distribution.shape for x in (old, first))
        check_same("shape", old_shape, shape)
    return found


def resample(
    call: Call,
    kind: type[Replicated],
    points: dict[str, Any],
    *,
    rng: Any,
    size: Any = None,
    bootstrap_result: Any = None,
) -> Any:
    """Draw rows, and make of the values a result of this kind for each estimator; `points` are the
    fields of it that are values on the data themselves."""
    size = call.n if size is None else check_integer("size", size, 1, MOST_DRAWN)
    key, start, earlier = new_key(rng), 0, {}
    if bootstrap_result is not None:
        earlier = check_earlier(call, kind, points, size, bootstrap_result)
        first = next(iter(earlier.values()))
        key, start = key if rng is not None else first.key, first.bootstrap_distribution.shape[-1]
    draws = draws_of(key, call.n, size)
    values = draw_values(call, problems_of(call), draws, size, start, start + call.n_resamples)
    # Of BCa intervals the jackknife is part of this call, else whoever wants it later waits for it.
    later = call if call.method == "bca" else replace(call, executor=None)
    results: Results[Any] = Results()
    for name, new in quantities(call, values).items():
        old = [earlier[name].bootstrap_distribution] if earlier else []
        results[name] = kind(
            **points[name],
            bootstrap_distribution=np.concatenate([*old, new], axis=-1),
            confidence_level=call.level,
            method=call.method,
            n=call.n,
            size=size,
            key=key,
            estimator=describe(call.estimators[name]),
            setting=call.setting,
            _jackknife=partial(jackknife, later, name),
        )
    return results.get("", results)


def bootstrap_results(call: Call, **options: Any) -> Any:
    """The result of a call on one model, or `Results` by the names of its estimators; `options` are
    those of `resample`."""
    points = {name: {"estimate": value} for name, (value,) in model_values(call).items()}
    return resample(call, BootstrapResult, points, **options)


@overload
def bootstrap(
    y_true: Any, y_prob: Any, *, estimator: list[Any] | tuple[Any, ...], **options: Any
) -> Results[BootstrapResult]: ...
@overload
def bootstrap(
    y_true: Any, y_prob: Any, *, estimator: str | Estimator = ..., **options: Any
) -> BootstrapResult: ...
def bootstrap(
    y_true: Any, y_prob: Any, *, estimator: Any = "ece", n_resamples: int = 9999,
    size: int | None = None, confidence_level: float = 0.95, method: Method = "basic",
    setting: Any = "auto", average: Literal["macro"] | None = "macro", labels: Any = None,
    pos_label: Any = None, sample_weight: Any = None, from_logits: bool = False, rng: Any = None,
    n_jobs: int | None = None, executor: Any = None, bootstrap_result: Any = None, **fields: Any,
) -> Any:  # fmt: skip
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
        The share of such intervals that is to hold the true error.
    method : {"basic", "percentile", "bca"}, default "basic"
        "basic": ``(max(0, 2 e - q_hi), max(0, 2 e - q_lo))`` with the estimate e and quantiles q of
        the distribution. "percentile": the quantiles. "bca": quantiles at levels corrected for bias
        and skewness; nan where all replicates are on one side of the estimate.
    rng : None, int or numpy.random.Generator
        Seed: the same seed gives the same result. None: other draws in every call.
    n_jobs : int, optional
        Threads; -1 for all processors. Of many rows there are fewer at a time, so that they do not
        need more than 1 GB beyond what one needs.
    executor : concurrent.futures.Executor or the like, optional
        Where to work instead: anything with ``submit``, such as a pool of processes or a Dask
        client.
    bootstrap_result : BootstrapResult, or a dict of them, optional
        An earlier result of the same data, estimator and setting, whose replicates come before the
        new ones. Without `rng` its draws are continued.

    Returns
    -------
    BootstrapResult, or for a list of estimators a dict of them, which prints as a table
        The names are those of the list; of objects what they print, or else their class.

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
      estimate               0.05972
      95 % interval (basic)  [0.03039, 0.07242]
      standard error         0.01057
      bias                   0.00837
    >>> print(*map("{:.5f}".format, result.interval(0.9, "bca")))
    0.03370 0.06948
    """
    call = read_call(
        y_true, {"y_prob": y_prob}, estimator=estimator, fields=fields, n_resamples=n_resamples,
        confidence_level=confidence_level, method=method, average=average, n_jobs=n_jobs,
        executor=executor, least=0 if bootstrap_result is not None else 1, setting=setting,
        labels=labels, pos_label=pos_label, sample_weight=sample_weight, from_logits=from_logits,
    )  # fmt: skip
    with compile_resampling(call.models[0], list(call.estimators.values())):
        return bootstrap_results(call, rng=rng, size=size, bootstrap_result=bootstrap_result)
