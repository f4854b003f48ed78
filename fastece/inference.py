"""How sure one can be of a calibration error, and of the difference between two models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.engine import evaluate, plan_replicates
from fastece.estimators import find_estimator
from fastece.intervals import METHODS, ConfidenceInterval, acceleration_of, interval
from fastece.protocol import Sample, direct_values
from fastece.resampling import LeaveOut, draws_of, new_key
from fastece.settings import ArrayProblems, read_problems
from fastece.validation import (
    check_average,
    check_choice,
    check_integer,
    check_jobs,
    check_real,
)

__all__ = [
    "BootstrapResult",
    "Call",
    "ComparisonResult",
    "bootstrap",
    "compare",
    "find_estimators",
    "read_call",
    "replicate_values",
]

F64 = NDArray[np.float64]

# Groups of a delete-block jackknife: acceleration needs no more, and it is 2 % of the default cost.
GROUPS = 200
MOST_RESAMPLES = 2**40
MOST_DRAWN = 2**31 - 1


# --- results --------------------------------------------------------------------------------


def as_float(value: Any) -> Any:
    """A float of an array without dimensions."""
    value = np.asarray(value, np.float64)
    return value if value.ndim else float(value)


def listed(value: Any) -> Any:
    """Plain Python values of arrays and intervals."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [listed(end) for end in value] if isinstance(value, tuple) else value


def shown(value: Any) -> str:
    """Digits of a number, or of several."""
    return " ".join(f"{x:.5f}" for x in np.atleast_1d(value))


@dataclass(frozen=True, eq=False, kw_only=True)
class Replicated:
    """What every result of a bootstrap has.

    Attributes
    ----------
    bootstrap_distribution : (n_resamples,) or (K, n_resamples) float64 array
        Values in the order of the replicates.
    confidence_interval : ConfidenceInterval
        ``(low, high)`` at `confidence_level` by `method`; nan where `size` is not `n`.
    confidence_level : float
    method : str
    n : int
        Number of rows of positive weight.
    size : int
        Number of rows per draw.
    key : int
        Key of the draws.
    acceleration : float or (K,) float64 array
        Of the delete-block jackknife, for BCa intervals.
    estimator : str
        The estimator with its parameters.
    setting : str
        The setting it used.
    """

    bootstrap_distribution: F64
    confidence_interval: ConfidenceInterval
    confidence_level: float
    method: str
    n: int
    size: int
    key: int
    acceleration: Any
    estimator: str
    setting: str

    # The smallest value that the quantity may have.
    _lowest = 0.0

    @property
    def _point(self) -> Any:
        """What is estimated."""
        raise NotImplementedError

    @property
    def standard_error(self) -> Any:
        """Standard deviation of the distribution (``ddof=1``); nan for a single replicate."""
        values = self.bootstrap_distribution
        if values.shape[-1] < 2:
            return as_float(np.full(values.shape[:-1], np.nan))
        return as_float(values.std(-1, ddof=1))

    @property
    def bias(self) -> Any:
        """Mean of the distribution minus the estimate."""
        return as_float(self.bootstrap_distribution.mean(-1) - self._point)

    def interval(
        self,
        confidence_level: float = 0.95,
        method: Literal["basic", "percentile", "bca"] = "basic",
    ) -> ConfidenceInterval:
        """A confidence interval from the distribution that is there.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.
        method : {"basic", "percentile", "bca"}

        Returns
        -------
        ConfidenceInterval
            ``(low, high)``.
        """
        level, method = check_level(confidence_level), check_method(method)
        if self.size != self.n:  # the spread of draws of another size is another
            nothing = as_float(np.full(self.bootstrap_distribution.shape[:-1], np.nan))
            return ConfidenceInterval(nothing, nothing)
        return interval(
            self._point, self.bootstrap_distribution, level, method, self.acceleration,
            self._lowest,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        values = {name: listed(getattr(self, name)) for name in self.__dataclass_fields__}
        more = ("standard_error", "bias")
        return {**values, **{name: listed(getattr(self, name)) for name in more}}

    def _lines(self, rows: Sequence[tuple[str, str]]) -> str:
        """The result as text: what was done, and a line for each number."""
        low, high = self.confidence_interval
        drawn = "" if self.size == self.n else f", {self.size} drawn"
        count = self.bootstrap_distribution.shape[-1]
        head = f"{self.estimator}, setting {self.setting}: {self.n} rows{drawn}, {count} replicates"
        ends = [
            f"[{a:.5f}, {b:.5f}]"
            for a, b in zip(np.atleast_1d(low), np.atleast_1d(high), strict=True)
        ]
        table = [
            *rows,
            (f"{100 * self.confidence_level:g} % interval", f"{' '.join(ends)} ({self.method})"),
            ("standard error", shown(self.standard_error)),
            ("bias", shown(self.bias)),
        ]
        return "\n".join([head, *(f"  {name:<16} {text}" for name, text in table)])


@dataclass(frozen=True, eq=False, kw_only=True)
class BootstrapResult(Replicated):
    """A calibration error with its bootstrap distribution.

    Attributes
    ----------
    estimate : float or (K,) float64 array
        The value of `fastece.ece`.

    Also those of every result: ``bootstrap_distribution``, ``standard_error``, ``bias``,
    ``confidence_interval``, ``confidence_level``, ``method``, ``n``, ``size``, ``key``,
    ``acceleration``, ``estimator``, ``setting``, and the method ``interval``.

    Examples
    --------
    >>> from fastece import bootstrap
    >>> y, p = [0, 0, 1, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> result = bootstrap(y, p, n_bins=2, rng=0)
    >>> result.estimate
    0.0
    """

    estimate: Any

    @property
    def _point(self) -> Any:
        return self.estimate

    def __str__(self) -> str:
        return self._lines([("estimate", shown(self.estimate))])


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonResult(Replicated):
    """The difference between the calibration errors of two models on the same rows.

    Attributes
    ----------
    difference : float or (K,) float64 array
        ``a - b``: above 0 where the second model is better calibrated.
    a, b : float or (K,) float64 array
        The two errors.
    p_value : float or (K,) float64 array
        ``(1 + #{|d* - d| >= |d|}) / (n_resamples + 1)``, two-sided, with d the difference and d* the
        replicates.

    Also those of `BootstrapResult`, of the difference; its basic interval is not clipped at 0.
    """

    difference: Any
    a: Any
    b: Any

    _lowest = -np.inf

    @property
    def _point(self) -> Any:
        return self.difference

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of the hypothesis that both models have the same error."""
        point = np.asarray(self.difference)[..., None]
        values = self.bootstrap_distribution
        far = (np.abs(values - point) >= np.abs(point)).sum(-1)
        p = (1 + far) / (values.shape[-1] + 1)
        return as_float(np.where(np.isnan(point[..., 0]), np.nan, p))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {**super().to_dict(), "p_value": listed(self.p_value)}

    def __str__(self) -> str:
        rows = [("a", self.a), ("b", self.b), ("a - b", self.difference), ("p-value", self.p_value)]
        return self._lines([(name, shown(value)) for name, value in rows])


# --- checks ---------------------------------------------------------------------------------


def check_level(value: Any) -> float:
    """A confidence level."""
    level = check_real("confidence_level", value, 0.0, 1.0)
    if not 0 < level < 1:
        raise ValueError(f"confidence_level: must be between 0 and 1, got {value!r}")
    return level


def check_method(value: Any) -> str:
    """The name of a method for intervals."""
    return check_choice("method", value, METHODS)


def find_estimators(estimator: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The estimators of one call by their names."""
    if not isinstance(estimator, list | tuple):
        return {"": find_estimator(estimator, fields)}
    if not estimator:
        raise ValueError("estimator: the list is empty")
    found: dict[str, Any] = {}
    for one in estimator:
        name = one if isinstance(one, str) else str(one)
        if name in found:
            raise ValueError(f"estimator: {name!r} is named twice")
        found[name] = find_estimator(one, fields)
    return found


def check_executor(executor: Any, n_jobs: Any) -> int:
    """Number of threads of our own, where there is no executor."""
    if executor is None:
        return check_jobs(n_jobs)
    if n_jobs is not None:
        raise ValueError("n_jobs: goes without executor=, which has workers of its own")
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor: must have a method submit, got {executor!r}")
    return 1


# --- what bootstrap and compare have in common ------------------------------------------------


@dataclass(frozen=True)
class Call:
    """The checked arguments of one call.

    Attributes
    ----------
    estimators : dict
        By name; "" for a single one.
    models : list of ArrayProblems
        The problems of each model, on the same rows.
    average : "macro" or None
    n_resamples : int
    level : float
    method : str
    jobs : int
    executor : object or None
    """

    estimators: dict[str, Any]
    models: list[ArrayProblems]
    average: str | None
    n_resamples: int
    level: float
    method: str
    jobs: int
    executor: Any

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.models[0].n

    @property
    def setting(self) -> str:
        """The setting, as results name it."""
        problems = self.models[0]
        return "classwise" if problems.setting.per_class else problems.name(0)

    def averaged(self, values: F64) -> Any:
        """Values (K, ...) of the problems as the caller wants them."""
        if not self.models[0].setting.per_class:
            return values[0]
        return values if self.average is None else values.mean(0)


def read_call(
    y_true: Any,
    models: dict[str, Any],
    *,
    estimator: Any,
    fields: dict[str, Any],
    n_resamples: Any,
    least: int,
    confidence_level: Any,
    method: Any,
    setting: Any,
    average: Any,
    labels: Any,
    sample_weight: Any,
    from_logits: Any,
    n_jobs: Any,
    executor: Any,
) -> Call:
    """Check the arguments of one call; `models` are the predicted probabilities by the names of
    their arguments, `least` is the smallest number of replicates."""
    check_average(average)
    estimators = find_estimators(estimator, fields)
    count = check_integer("n_resamples", n_resamples, least, MOST_RESAMPLES)
    level, method = check_level(confidence_level), check_method(method)
    jobs = check_executor(executor, n_jobs)
    problems = [
        read_problems(
            y_true, y_prob, setting=setting, labels=labels, sample_weight=sample_weight,
            from_logits=from_logits, prob_name=name,
        ).checked
        for name, y_prob in models.items()
    ]  # fmt: skip
    return Call(estimators, problems, average, count, level, method, jobs, executor)


def samples_of(problems: ArrayProblems) -> list[Sample]:
    """Every problem as a whole, in the order in which rows are drawn."""
    source = problems.probabilities
    return [source.sample(k) for k in range(source.n_problems)]


def replicate_values(
    call: Call, samples: Sequence[Sample], draws: Any, size: int, first: int, last: int
) -> F64:
    """Values (samples, estimators, ..., replicates) of a range of replicates."""
    estimators = list(call.estimators.values())
    replicates = plan_replicates(estimators, samples, draws, size)
    values = evaluate(replicates, first, last, call.jobs, call.executor)
    return values.reshape(len(samples), len(estimators), *values.shape[1:])


def jackknife_values(call: Call, samples: Sequence[Sample]) -> F64:
    """Values (samples, estimators, groups) without the rows i of each group ``i % groups``."""
    groups = min(call.n, GROUPS)
    longer, least = call.n % groups, call.n // groups
    parts = []
    for first, last, rows in ((0, longer, least + 1), (longer, groups, least)):
        if last > first:
            draws = LeaveOut(call.n, groups, first)
            size = call.n - rows
            parts.append(replicate_values(call, samples, draws, size, 0, last - first))
    return np.concatenate(parts, axis=-1)


@dataclass(frozen=True)
class Numbers:
    """The numbers of one estimator on one call: of each model, averaged as the caller wants them.

    Attributes
    ----------
    points : list
        The value of the data.
    distributions : list of arrays
        The replicates.
    jackknife : list of arrays
        The values without each group of rows; empty where there are none.
    """

    points: list[Any]
    distributions: list[F64]
    jackknife: list[F64]


def resample(call: Call, key: int, size: int, start: int) -> dict[str, Numbers]:
    """Estimates, replicates from number `start` on and jackknife values of every estimator."""
    samples = [sample for problems in call.models for sample in samples_of(problems)]
    values = replicate_values(
        call, samples, draws_of(key, call.n, size), size, start, start + call.n_resamples
    )
    without = np.empty((len(samples), len(call.estimators), 0))
    if size == call.n > 1:
        without = jackknife_values(call, samples)
    ends = np.cumsum([problems.n_problems for problems in call.models])[:-1]
    return {
        name: Numbers(
            [as_float(call.averaged(direct_values(estimator, p))) for p in call.models],
            [call.averaged(part) for part in np.split(values[:, i], ends)],
            [call.averaged(part) for part in np.split(without[:, i], ends)],
        )
        for i, (name, estimator) in enumerate(call.estimators.items())
    }


def extended(name: str, result: Any, previous: Any) -> Any:
    """A result with the replicates of a previous one before its own."""
    old = previous.get(name) if isinstance(previous, Mapping) and name else previous
    if type(old) is not type(result):
        kind = type(result).__name__
        raise TypeError(f"bootstrap_result: must be a {kind} of the same call, got {old!r:.80}")
    for field in ("estimator", "setting", "n", "size", "_point"):
        a, b = getattr(old, field), getattr(result, field)
        if not np.array_equal(a, b, equal_nan=field == "_point"):
            what = field.strip("_").replace("point", "estimate")
            raise ValueError(f"bootstrap_result: is of another {what}: {a!r}, and here it is {b!r}")
    parts = [old.bootstrap_distribution, result.bootstrap_distribution]
    return replace(result, bootstrap_distribution=np.concatenate(parts, axis=-1))


def previous_of(previous: Any) -> tuple[int | None, int]:
    """Key and number of the replicates of a previous result, or of several."""
    if previous is None:
        return None, 0
    one = next(iter(previous.values()), None) if isinstance(previous, Mapping) else previous
    if not isinstance(one, Replicated):
        raise TypeError(f"bootstrap_result: must be a result of the same call, got {previous!r:.80}")
    return one.key, one.bootstrap_distribution.shape[-1]


Made = tuple[type[Replicated], dict[str, Any], F64, F64]


def estimate_of(numbers: Numbers) -> Made:
    """Kind of the result of `bootstrap`, its own fields, its replicates and jackknife values."""
    fields = {"estimate": numbers.points[0]}
    return BootstrapResult, fields, numbers.distributions[0], numbers.jackknife[0]


def difference_of(numbers: Numbers) -> Made:
    """The same of `compare`."""
    a, b = numbers.points
    first, second = numbers.distributions
    gap = numbers.jackknife[0] - numbers.jackknife[1]
    return ComparisonResult, {"difference": a - b, "a": a, "b": b}, first - second, gap


def results_of(
    call: Call, make: Callable[[Numbers], Made], rng: Any, size: Any, previous: Any
) -> Any:
    """Resample, and make a result with an interval of the numbers of each estimator."""
    key, start = previous_of(previous)
    key = new_key(rng) if rng is not None or key is None else key
    size = call.n if size is None else check_integer("size", size, 1, MOST_DRAWN)
    results = {}
    for name, numbers in resample(call, key, size, start).items():
        kind, fields, distribution, jackknife = make(numbers)
        result = kind(
            **fields,
            bootstrap_distribution=distribution,
            confidence_interval=ConfidenceInterval(np.nan, np.nan),
            confidence_level=call.level,
            method=call.method,
            n=call.n,
            size=size,
            key=key,
            acceleration=as_float(acceleration_of(jackknife)) if jackknife.shape[-1] else np.nan,
            estimator=str(call.estimators[name]),
            setting=call.setting,
        )
        if previous is not None:
            result = extended(name, result, previous)
        ends = result.interval(call.level, call.method)  # type: ignore[arg-type]
        results[name] = replace(result, confidence_interval=ends)
    return results.get("", results)


# --- public ---------------------------------------------------------------------------------


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
    y_true, y_prob, setting, average, labels, sample_weight, from_logits, **fields
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
        Where to work instead: anything with ``submit``, such as a pool of processes or a Dask client.
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
    introduction to the bootstrap", chapters 13 and 14); coverage as measured is in the README.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import bootstrap
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**1.3
    >>> result = bootstrap(y, p, n_resamples=999, rng=0)
    >>> print(result)
    >>> result.interval(0.9, "bca").low > result.confidence_interval.low
    """
    call = read_call(
        y_true, {"y_prob": y_prob}, estimator=estimator, fields=fields, n_resamples=n_resamples,
        least=0 if bootstrap_result is not None else 1, confidence_level=confidence_level,
        method=method, setting=setting, average=average, labels=labels,
        sample_weight=sample_weight, from_logits=from_logits, n_jobs=n_jobs, executor=executor,
    )  # fmt: skip
    return results_of(call, estimate_of, rng, size, bootstrap_result)


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
    sample_weight, from_logits, rng, n_jobs, executor, bootstrap_result, **fields
        As in `bootstrap`; the basic interval of a difference is not clipped at 0.
    y_prob_a, y_prob_b : (n,) or (n, K) array_like of float
        Probabilities of the two models, row by row for the same labels.

    Returns
    -------
    ComparisonResult, or for a list of estimators a dict of them by their names

    Notes
    -----
    Both models are evaluated on the same draws, so what they have in common cancels:
    ``p = (1 + #{|d* - d| >= |d|}) / (n_resamples + 1)`` with the difference d and its replicates d*.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import compare
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> result = compare(y, p**2, p, n_resamples=999, rng=0)
    >>> print(result)
    """
    call = read_call(
        y_true, {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}, estimator=estimator, fields=fields,
        n_resamples=n_resamples, least=0 if bootstrap_result is not None else 1,
        confidence_level=confidence_level, method=method, setting=setting, average=average,
        labels=labels, sample_weight=sample_weight, from_logits=from_logits, n_jobs=n_jobs,
        executor=executor,
    )  # fmt: skip
    a, b = call.models
    if a.n_problems != b.n_problems:
        raise ValueError(
            f"y_prob_b: must have as many classes as y_prob_a, {a.n_classes}, got {b.n_classes}"
        )
    return results_of(call, difference_of, rng, size, bootstrap_result)
