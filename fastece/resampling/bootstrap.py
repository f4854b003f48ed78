"""How sure one can be of a calibration error: its bootstrap."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import eq
from typing import Any, Literal, overload

import numpy as np

from fastece.checks.parameters import check_choice, check_integer
from fastece.data.problems import Problems
from fastece.data.reading import refuse_options
from fastece.data.source import DISTANCES, VECTORS, Source
from fastece.document.result import Results
from fastece.estimators.base import Estimator
from fastece.resampling.arguments import Call, add_groups, describe, read_call
from fastece.resampling.draws import GroupDraws, LeaveOut, new_key
from fastece.resampling.engine import Problem
from fastece.resampling.intervals import Method
from fastece.resampling.results import HONEST, BootstrapResult, ReplicatedResult
from fastece.typing import F64

# Parts of a delete-block jackknife: acceleration needs no more, and it is 2 % of the default cost.
PARTS = 200
MOST_DRAWN = 2**31 - 1
DEFAULT = 9999
# Estimates of the same data differ by no more between processors.
ROUNDING = 1e-12


def is_near(a: Any, b: Any) -> bool:
    """Whether values are the same but for rounding, nan included."""
    near = partial(np.allclose, rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
    return np.shape(a) == np.shape(b) and bool(near(a, b))


def problems_of(call: Call) -> list[Problem]:
    """The problems of all models, on the same rows."""
    return [call.problem(sample) for model in call.models for sample in model.samples()]


def replicate_values(
    call: Call, problems: Sequence[Problem], draws: Any, size: int, first: int, last: int
) -> dict[str, F64]:
    """What each estimator estimates (..., last - first) in a range of replicates, by its name."""
    estimators = list(call.estimators.values())
    values = call.replicates(estimators, problems, draws, size, first, last)
    values = values.reshape(len(problems), len(call.estimators), last - first)
    models = np.split(values, len(call.models))
    return {
        name: call.quantity([call.average_of(model[:, i]) for model in models])
        for i, name in enumerate(call.estimators)
    }


def check_data(call: Call, name: str, point: Any, what: str) -> None:
    """An error if the data are not those on which an estimator has the value `point`."""
    if not is_near(call.quantity(call.values(name)), point):
        raise ValueError(f"{what}: the data have changed since the bootstrap; call it anew")


def jackknife(call: Call, name: str, point: Any) -> F64:
    """The values (..., P) of the estimator of a call, called so, without the rows or groups i of
    each part ``i % P``."""
    check_data(call, name, point, "acceleration")
    problems, clusters = problems_of(call), call.clusters
    if clusters is not None:
        parts = min(clusters.count, PARTS)
        draws = GroupDraws(LeaveOut(clusters.count, parts, 0, parts - 1), clusters.of_row)
        size = call.n - round(call.n / parts)
        return replicate_values(call, problems, draws, size, 0, parts)[name]
    parts = min(call.n, PARTS)
    least, longer = divmod(call.n, parts)
    found = []
    # Parts that have a row more than others come first; draws without them have another size.
    for first, last, rows in ((0, longer, least + 1), (longer, parts, least)):
        if first < last:
            without = LeaveOut(call.n, parts, first, last - 1)
            values = replicate_values(call, problems, without, call.n - rows, 0, last - first)
            found.append(values[name])
    return np.concatenate(found, axis=-1)


def check_earlier(
    call: Call, kind: type[ReplicatedResult], points: dict[str, Any], size: int, earlier: Any
) -> dict[str, Any]:
    """The earlier result of each estimator, if it is one of the same call; numbers are the same but
    for rounding."""
    results = earlier if isinstance(earlier, Mapping) else {"": earlier}
    found = {name: results.get(name) for name in call.estimators}
    first: Any = next(iter(found.values()))
    for name, old in found.items():
        if not isinstance(old, kind):
            raise TypeError(
                f"bootstrap_result: must be a {kind.__name__} of the same call, or a dict of them "
                f"for several estimators, got {earlier!r:.80}"
            )
        there = {**vars(old), "shape": old.bootstrap_distribution.shape, "n_groups": old.n_groups}
        here = {
            "estimator": describe(call.estimators[name]),
            "setting": call.setting_of(name),
            "n": call.n,
            "n_groups": call.n_groups,
        }
        here |= {"size": size, "key": first.key, **points[name]}
        here |= {"shape": first.bootstrap_distribution.shape}
        for what, value in here.items():
            is_same = is_near if isinstance(value, float | np.ndarray) else eq
            if not is_same(there[what], value):
                raise ValueError(
                    f"bootstrap_result: is of another {what}: {there[what]!r}, "
                    f"and here it is {value!r}"
                )
    return found


def draw_late(call: Call, name: str, point: Any, old: list[F64], *options: Any) -> F64:
    """The distribution of the estimator of a call, called so, after the `old` replicates; the
    options are those of `replicate_values`."""
    check_data(call, name, point, "bootstrap_distribution")
    new = replicate_values(call, problems_of(call), *options)[name]
    return np.concatenate([*old, new], axis=-1)


def resample(
    call: Call, kind: type[ReplicatedResult], *, method: Any = "basic", size: Any = None,
    rng: Any = None, bootstrap_result: Any = None,
    honest: Callable[[str, list[Any], int], Any] | None = None,
) -> Any:  # fmt: skip
    """A result of this kind, or `Results` of the estimators by their names, from drawn rows; the
    options are those of `bootstrap`. The method "honest" needs no rows: `honest` gives its
    intervals from the name of an estimator, its value for each model, and the key."""
    method = check_choice("method", method, kind._methods)
    if size is not None and call.groups is not None:
        raise ValueError(f"size: goes without groups, all of which count; got {size!r}")
    size = call.n if size is None else check_integer("size", size, 1, MOST_DRAWN)
    key, start, earlier = new_key(rng), 0, {}
    of_models = {name: call.values(name) for name in call.estimators}
    points: dict[str, Any] = {}
    for name, found in of_models.items():
        each = dict(zip(kind._models, found, strict=False))
        points[name] = {"value": call.quantity(found), **each}
    if bootstrap_result is not None:
        earlier = check_earlier(call, kind, points, size, bootstrap_result)
        first = next(iter(earlier.values()))
        key, start = key if rng is not None else first.key, first.bootstrap_distribution.shape[-1]
    options = (call.draws(key, size), size, start, start + call.n_resamples)
    honest = honest if method == HONEST else None
    values = {} if honest else replicate_values(call, problems_of(call), *options)
    # Of BCa intervals the jackknife is part of this call, else whoever wants it later waits for it.
    later = call if method == "bca" else replace(call, executor=None)
    results: Results[Any] = Results()
    for name, estimator in call.estimators.items():
        alone, point = replace(later, estimators={name: estimator}), points[name]["value"]
        old = [earlier[name].bootstrap_distribution] if earlier else []
        more: dict[str, Any]
        if honest:
            late = partial(draw_late, alone, name, point, old, *options)
            more = {"_honest": honest(name, of_models[name], key), "_distribution": late}
        else:
            more = {"_distribution": np.concatenate([*old, values[name]], axis=-1)}
        results[name] = kind(
            **points[name],
            **more,
            confidence_level=call.level,
            method=method,
            n=call.n,
            n_groups=call.n_groups,
            size=size,
            key=key,
            estimator=describe(estimator),
            setting=call.setting_of(name),
            _jackknife=partial(jackknife, alone, name),
        )
    return results.get("", results)


def replicated_results(call: Call, method: Any) -> Any:
    """The result of a call on a source that drew its replicates itself, or `Results`."""
    (source,) = call.sources
    # Without rows to leave out there is no acceleration.
    method = check_choice("method", method, ("basic", "percentile"))
    values = drawn_values(call, source)
    results: Results[Any] = Results()
    for i, (name, estimator) in enumerate(call.estimators.items()):
        (value,) = call.values(name)
        results[name] = BootstrapResult(
            value=value,
            confidence_level=call.level,
            method=method,
            n=call.n,
            size=call.n,
            key=source.key,
            estimator=describe(estimator),
            setting=call.setting,
            _distribution=call.average_of(values[:, :, i]),
            _jackknife=None,
        )
    return results.get("", results)


def drawn_values(call: Call, source: Source) -> F64:
    """The values (K, R, estimators) of the replicates of a source."""
    estimators, values = list(call.estimators.values()), []
    for estimator in estimators:
        if source.needs_of(estimator) == DISTANCES:
            raise source.lack(VECTORS, "estimator", f"the bootstrap of {describe(estimator)}")
    for k in range(source.n_problems):
        draws, sample = source.draws(k), source.sample(k)
        plans = [(estimator, estimator.prepare(sample, call.n)) for estimator in estimators]
        values.append([[float(e.evaluate(plan, c)) for e, plan in plans] for c in draws])
    return np.array(values)


@overload
def bootstrap(
    y_true: Any, y_prob: Any = ..., *, estimator: list[Any] | tuple[Any, ...], **options: Any
) -> Results[BootstrapResult]: ...
@overload
def bootstrap(
    y_true: Any, y_prob: Any = ..., *, estimator: str | Estimator = ..., **options: Any
) -> BootstrapResult: ...
def bootstrap(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece", n_resamples: int = DEFAULT,
    size: int | None = None, confidence_level: float = 0.95, method: Method = "basic",
    setting: Any = "auto", average: Literal["macro"] | None = "macro", labels: Any = None,
    pos_label: Any = None, sample_weight: Any = None, from_logits: bool = False, rng: Any = None,
    n_jobs: int | None = None, executor: Any = None, bootstrap_result: Any = None,
    groups: Any = None, **fields: Any,
) -> Any:  # fmt: skip
    """Bootstrap distribution and confidence interval of a calibration error, or of a score.

    Parameters
    ----------
    y_true, y_prob, setting, average, labels, pos_label, sample_weight, from_logits, **fields
        As in `fastece.ece`.
    estimator : str or object, or a list of them, default "ece"
        As in `fastece.ece`: a calibration error, or a score such as "brier_score". Several share
        every draw.
    n_resamples : int, default 9999
        Number of replicates; 0 is allowed with `bootstrap_result`. An `Accumulator` has its own,
        which depend on its seed: Poisson counts of each row, with which misses and hits of a coarse
        cell keep their scores. It goes without `rng`, `size`, `groups` and "bca".
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
    groups : (n,) array_like, optional
        Rows with the same label here belong together, such as the questions of one passage or the
        images of one patient: whole groups are drawn, as many as there are. Integers, strings, or
        whatever else can be told apart, at least two of them and none missing. Goes without `size`.

    Returns
    -------
    BootstrapResult, or for a list of estimators a dict of them, which prints as a table
        The names are those of the list; of objects what they print, or else their class.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for a `bootstrap_result` of other data; for `groups` of another length.

    Notes
    -----
    Rows are drawn with replacement, each with probability 1/n whatever its weight; rows of weight 0
    do not exist. The same seed gives the same bits for any number of threads, any executor and any
    `n_resamples`. A plug-in calibration error is biased upward, and the bootstrap repeats that
    bias: "basic" takes it off, "percentile" adds it once more. Efron and Tibshirani (1993, "An
    introduction to the bootstrap", chapters 13 and 14).

    Rows of one group are often right or wrong together, and then intervals that take them one by
    one are too narrow. A draw of G of G groups (Field and Welsh 2007, "Bootstrapping clustered
    data") is not always of n rows: a replicate is over the weight of its own rows, while n, as in
    ``n_bins="sqrt"``, stays that of the data. BCa intervals leave out groups. With few groups, some
    20 or less, intervals are too narrow all the same. Groups of one row each change nothing.

    Do not read the interval where the error may be small beside its noise, as where
    `calibration_test` does not reject: a 95 % interval then holds the truth in 0 to 80 of 100
    samples, at any number of rows, since the error has a kink at 0. The interval of
    `fastece.estimate` holds it; coverage of both is in ``docs/intervals.md``.

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
      value            0.060
      95 % CI (basic)  [0.030, 0.072]
      standard error   0.011
      bias             0.008
    >>> print(*map("{:.5f}".format, result.interval(0.9, "bca")))
    0.03370 0.06948
    """
    call = read_call(
        y_true, {"y_prob": y_prob}, int(bootstrap_result is None), estimator=estimator,
        n_resamples=n_resamples, confidence_level=confidence_level, setting=setting,
        average=average, labels=labels, pos_label=pos_label, sample_weight=sample_weight,
        from_logits=from_logits, n_jobs=n_jobs, executor=executor, **fields,
    )  # fmt: skip
    options = {"size": size, "rng": rng, "bootstrap_result": bootstrap_result}
    if not isinstance(call.sources[0], Problems):
        count = None if n_resamples == DEFAULT else n_resamples
        refuse_options(call.sources[0], n_resamples=count, groups=groups, **options)
        return replicated_results(call, method)
    return resample(add_groups(call, groups, y_prob), BootstrapResult, method=method, **options)
