"""The bootstrap distribution of a calibration error."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy as np

from fastece.data.errors import InputError
from fastece.data.options import shows_options
from fastece.data.parameters import check_choice, check_flag, check_integer
from fastece.data.reading import refuse_options
from fastece.data.samples import Sample
from fastece.data.table import VECTORS
from fastece.display.results import Results
from fastece.estimators.base import Estimator, Statistic
from fastece.estimators.draws import Counts, TableCounts
from fastece.estimators.parts import values_of_parts
from fastece.estimators.table import GroupedEstimatorKeywords
from fastece.kernels.types import F64
from fastece.resampling.arguments import add_groups, read_call
from fastece.resampling.call import (
    Call,
    average_classes,
    collect_results,
    compute_values,
    find_infinite_rows,
    make_problem,
    result_fields,
)
from fastece.resampling.draws import LeaveOutDraws, ReplicateDraws, make_row_draws, new_key
from fastece.resampling.engine import evaluate, plan_replicates
from fastece.resampling.intervals import accelerate, as_float
from fastece.resampling.naming import describe
from fastece.resampling.part_replicates import PlainGroups, plain_groups
from fastece.resampling.parts import (
    generator_of_parts,
    group_names,
    join_parts,
    results_of_parts,
)
from fastece.resampling.results import METHODS, BootstrapResult, Method

# Parts of a delete-block jackknife: acceleration needs no more, and it is 2 % of the default cost.
MAX_JACKKNIFE_PARTS = 200
# Rows of a table with counts, each of which a jackknife leaves out: some seconds.
MAX_JACKKNIFE_TABLE = 5000
# Rows of a draw are numbered by 32 bits.
MAX_SIZE = 2**31 - 1
DEFAULT_RESAMPLES = 9999


class Resampling(NamedTuple):
    """How rows are drawn: `size` rows or groups by a key, for intervals by `method`."""

    method: str
    size: int
    key: int


# --- replicates -----------------------------------------------------------------------------


def compute_quantity(values: Sequence[Any]) -> Any:
    """Return the value of the only model, or the first one's minus the second one's."""
    if len(values) == 1:
        return values[0]
    with np.errstate(invalid="ignore"):  # both may be infinite
        return values[0] - values[1]


class Drawn(NamedTuple):
    """Replicates of each estimator, by name.

    Attributes
    ----------
    values : dict of str to (..., R) float64 array
    lacks_rows : (..., R) bool array or None
        Where a problem with rows of its own has none of them; None where problems share rows.
    """

    values: dict[str, F64]
    lacks_rows: Any


def compute_replicates(call: Call, draws: Any, share: float, count: int) -> Drawn:
    """Compute replicates of each estimator, for draws of a share of the rows.

    The shares of predicted classes are those of the rows that were drawn, so that a class without
    rows has none. Its own error is nan then, as is the mean of tasks of which one has no rows.
    """
    table = call.tables[0]
    reads_only = all(estimator.reads_only for estimator in call.estimators.values())
    samples = [x for table in call.tables for x in table.samples(reads_only=reads_only)]
    problems = [make_problem(call, sample) for sample in samples]
    n_models = len(call.tables)
    sizes = [round(share * table.size(k)) for k in range(table.n_problems)] * n_models
    statistics: list[Statistic] = [*call.estimators.values()]
    if table.has_own_rows:
        statistics = [*map(WithRows, statistics), TotalWeight()]
    plan = plan_replicates(statistics, problems, draws, sizes)
    values = evaluate(plan, 0, count, call.workers)
    by_model = values.reshape(n_models, table.n_problems, len(statistics), count)
    if not table.has_own_rows:
        averages = [
            compute_quantity([average_classes(call, model[:, i]) for model in by_model])
            for i in range(len(statistics))
        ]
        return Drawn(dict(zip(call.estimators, averages, strict=True)), None)
    *errors, weight = by_model[0].swapaxes(0, 1)
    if table.shares_are_drawn:
        shares = weight / weight.sum(axis=0)
    else:
        shares = np.full_like(weight, 1 / table.n_problems)
    lacks_rows = weight == 0
    if not call.per_class:
        errors = [(shares * np.where(shares > 0, error, 0.0)).sum(axis=0) for error in errors]
        lacks_rows = (lacks_rows & (shares > 0)).any(axis=0)
    return Drawn(dict(zip(call.estimators, errors, strict=True)), lacks_rows)


class WithRows(Statistic):
    """An estimator that is nan in replicates without a row, which it never sees."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.needs_sorted = estimator.needs_sorted
        self.reads_pairs = estimator.reads_pairs
        self.native = estimator.native

    def prepare(self, sample: Sample, size: int) -> Any:
        """Prepare a sample for the estimator."""
        return self.estimator.prepare(sample, size)

    def values(self, plan: Any, draws: Any) -> F64:
        """Compute the value (R,) of each replicate."""
        has_rows = draws.c.max(axis=1) > 0
        if has_rows.all():
            return np.asarray(self.estimator.values(plan, draws))
        c = draws.c.copy()
        c[:, 0][~has_rows] = 1  # a row that stands for none
        values = self.estimator.values(plan, replace(draws, c=c))
        return np.where(has_rows.ravel(), values, np.nan)


class TotalWeight(Statistic):
    """The weight of all rows of a problem that were drawn."""

    needs_sorted = False
    native = (Counts, TableCounts)

    def prepare(self, sample: Sample, size: int) -> F64:  # noqa: ARG002
        """Return the weights (n,) of the rows."""
        return sample.weights

    def values(self, weights: F64, draws: Counts | TableCounts) -> F64:
        """Compute the weight (R,) of each replicate."""
        return np.asarray(np.einsum("n,gnr->gr", weights, draws.c).reshape(-1))


# --- acceleration ---------------------------------------------------------------------------


def compute_accelerations(call: Call) -> dict[str, Any]:
    """Compute the acceleration of BCa intervals by estimator; nan for a single row."""
    if call.n == 1:
        values = {name: compute_quantity(compute_values(call, name)) for name in call.estimators}
        return {name: as_float(np.nan * np.asarray(value)) for name, value in values.items()}
    # Leaving out one copy of a row of a table stands for leaving out any of its copies.
    copies = call.units.copies
    with np.errstate(invalid="ignore"):  # of an infinite estimate
        return {
            name: as_float(accelerate(values, copies))
            for name, values in compute_jackknife(call).items()
        }


def compute_jackknife(call: Call) -> dict[str, F64]:
    """Compute the jackknife values (..., P) of each estimator, by name.

    Part p leaves out the rows or groups i with ``i % P == p``.
    """
    units = call.units
    n_parts = min(units.count, MAX_JACKKNIFE_PARTS)
    if units.copies is not None:
        if units.count > MAX_JACKKNIFE_TABLE:
            rule = f"'bca' needs at most {MAX_JACKKNIFE_TABLE} rows with {{counts}}"
            raise InputError("method", rule, value=units.count, hint="'basic' takes any")
        kinds = [(range(units.count), 1)]
        n_parts = units.count
    elif call.clusters is not None:
        kinds = [(range(n_parts), round(call.n / n_parts))]
    else:
        # Parts that have a row more than others come first; draws without them have another size.
        rows_per_part, n_longer = divmod(call.n, n_parts)
        kinds = [(range(n_longer), rows_per_part + 1), (range(n_longer, n_parts), rows_per_part)]
    values = []
    for parts, n_left_out in kinds:
        if parts:
            draws = LeaveOutDraws(units, n_parts, parts.start, parts.stop - 1)
            share = (call.n - n_left_out) / call.n
            values.append(compute_replicates(call, draws, share, len(parts)).values)
    return {name: np.concatenate([x[name] for x in values], axis=-1) for name in call.estimators}


def resample(call: Call, resampling: Resampling) -> dict[str, dict[str, Any]]:
    """Draw rows or groups, and return the fields of each estimator's result, by name."""
    units = call.units
    draws: ReplicateDraws = make_row_draws(resampling.key, units, resampling.size)
    drawn = compute_replicates(call, draws, resampling.size / units.total, call.n_resamples)
    fields = bootstrap_fields(call, drawn.values, resampling)
    for of_name in fields.values():
        of_name["_lacks_rows"] = drawn.lacks_rows
    if resampling.method == "bca" and resampling.size == units.total:
        for name, acceleration in compute_accelerations(call).items():
            fields[name]["acceleration"] = acceleration
    return fields


# --- results --------------------------------------------------------------------------------


def bootstrap_fields(
    call: Call, distributions: dict[str, F64], resampling: Resampling
) -> dict[str, dict[str, Any]]:
    """Return the fields of results by estimator, given their replicates."""
    is_whole = resampling.size == call.units.total
    return {
        name: {
            **result_fields(call, name, resampling.key),
            "method": resampling.method,
            "size": call.n if is_whole else resampling.size,
            "_is_whole": is_whole,
            "bootstrap_distribution": distribution,
            "_bounds": find_bounds(call, call.estimators[name]),
        }
        for name, distribution in distributions.items()
    }


def find_bounds(call: Call, estimator: Any) -> tuple[float, float]:
    """Return the least and the largest value of the only model, or difference of two."""
    n_classes = call.tables[0].n_classes if call.uses_class_vectors(estimator) else None
    lowest, largest = estimator.bounds(n_classes)
    if len(call.tables) == 1:
        return lowest, largest
    return lowest - largest, largest - lowest


def check_size(call: Call, size: Any) -> int:
    """Return the checked number of units per draw, rows or groups; by default all."""
    if size is None:
        return call.units.total
    return check_integer("size", size, 1, MAX_SIZE)


def bootstrap_results(call: Call, *, method: Any = "basic", size: Any = None, rng: Any) -> Any:
    """Compute the result of a call on one model, or `Results` by estimator name."""
    method = check_choice("method", method, METHODS)
    size = check_size(call, size)
    return make_results(call, resample(call, Resampling(method, size, new_key(rng))))


def streamed_results(call: Call, method: Any) -> Any:
    """Compute the result of a call on a table that has replicates of its own.

    Several estimators have `Results` by name.
    """
    table = call.tables[0]
    # Without rows to leave out there is no acceleration.
    method = check_choice("method", method, ("basic", "percentile"))
    for estimator in call.estimators.values():
        if table.seen_by(estimator).vectors is not None:
            raise table.lack(f"the bootstrap of {describe(estimator)}", "estimator", VECTORS)
    draws = table.stream.draws()
    drawn = compute_replicates(call, draws, 1.0, table.stream.n_replicates)
    resampling = Resampling(method, call.units.total, table.stream.key)
    return make_results(call, bootstrap_fields(call, drawn.values, resampling))


def make_results(call: Call, fields: dict[str, dict[str, Any]]) -> Any:
    """Make the result of each estimator of a call on one model from its other fields."""

    def make_result(name: str) -> BootstrapResult:
        value = compute_values(call, name)[0]
        return BootstrapResult(
            value=value,
            confidence_level=call.level,
            _infinite_rows=find_infinite_rows(call, name, value),
            **fields[name],
        )

    return collect_results(call, make_result)


def plain_results(
    call: Call, rows: PlainGroups, method: str, rng: Any, keeps: bool
) -> BootstrapResult:
    """Compute the result of plain groups of rows, some groups at a time."""
    ((name, estimator),) = call.estimators.items()
    n_groups = rows.offsets.size - 1
    keys = generator_of_parts(rng).integers(2**64, size=n_groups, dtype=np.uint64)
    values = values_of_parts(estimator, call.tables[0])
    resampling = Resampling(method, call.units.total, int(keys[0]))
    results = []
    first = 0
    for distribution in rows.replicates(keys, call.n_resamples):
        (fields,) = bootstrap_fields(call, {name: distribution}, resampling).values()
        result = BootstrapResult(
            value=values[first : first + len(distribution)], confidence_level=call.level, **fields
        )
        results.append(result if keeps else result.without_distribution())
        first += len(distribution)
    return join_parts(call, results, group_names(call))


@overload
def bootstrap(
    y_true: Any, y_prob: Any = ..., *, estimator: list[Any] | tuple[Any, ...],
    n_resamples: int = ...,
    size: int | None = ..., confidence_level: float = ..., method: Method = ...,
    average: Literal["macro"] | None = ..., rng: Any = ..., n_jobs: int | None = ...,
    executor: Any = ..., groups: Any = ..., keep_distribution: bool = ...,
    **options: Unpack[GroupedEstimatorKeywords],
) -> Results[BootstrapResult]: ...  # fmt: skip
@overload
def bootstrap(
    y_true: Any, y_prob: Any = ..., *, estimator: str | Estimator = ..., n_resamples: int = ...,
    size: int | None = ..., confidence_level: float = ..., method: Method = ...,
    average: Literal["macro"] | None = ..., rng: Any = ..., n_jobs: int | None = ...,
    executor: Any = ..., groups: Any = ..., keep_distribution: bool = ...,
    **options: Unpack[GroupedEstimatorKeywords],
) -> BootstrapResult: ...  # fmt: skip
@shows_options
def bootstrap(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece",
    n_resamples: int = DEFAULT_RESAMPLES, size: int | None = None,
    confidence_level: float = 0.95, method: Method = "basic",
    average: Literal["macro"] | None = "macro", rng: Any = None, n_jobs: int | None = None,
    executor: Any = None, groups: Any = None, keep_distribution: bool = True,
    **options: Unpack[GroupedEstimatorKeywords],
) -> Any:  # fmt: skip
    """Bootstrap a calibration error or a score: distribution and interval.

    Parameters
    ----------
    y_true, y_prob, average, **options
        As in `fastece.ece`. A soft label is drawn with all of its votes.
    estimator : str or object, or a list of them, default "ece"
        As in `fastece.ece`: a calibration error, or a score such as "brier_score". The estimators
        of a list share every draw.
    n_resamples : int, default 9999
        Number of replicates. An `Accumulator` has its own number and seed: it draws groups of rows,
        with which the outcomes 0 and 1 of a coarse cell keep their scores. It goes without `rng`,
        `size`, `groups` and "bca".
    size : int, optional
        Rows per draw, by default as many as there are. With another number there is the
        distribution alone, and the interval is nan.
    confidence_level : float, default 0.95
        The share of such intervals that is to hold the true error.
    method : {"basic", "percentile", "bca"}, default "basic"
        How the interval follows from the estimate e and the quantiles q(a) of the distribution,
        with ``a = (1 - confidence_level) / 2``:

        - "basic": ``(2 e - q(1 - a), 2 e - q(a))``, which ends at the least and the largest value
          that the estimator can have: its attributes ``lowest`` and ``largest``.
        - "percentile": ``(q(a), q(1 - a))``.
        - "bca": quantiles at levels that are corrected for bias and skewness; nan where all
          replicates are on one side of the estimate.
    rng : None, int or numpy.random.Generator
        Seed: the same seed gives the same result. None: other draws in every call.
    n_jobs : int, optional
        Threads; -1 for all processors. With many rows fewer of them work at a time, so that all
        together need at most 1 GB more than one of them.
    executor : concurrent.futures.Executor or the like, optional
        Where to work instead: anything with ``submit``, such as a pool of processes or a Dask
        client.
    groups : (n,) array_like, optional
        Rows with the same label here belong together, such as the questions of one passage or the
        images of one patient: whole groups are drawn, as many as there are. Integers, strings, or
        whatever else can be told apart, at least two of them and none missing. Goes without `size`.
        With `class_axis`: one for each row, or one for each index of the first axis, such as an
        image; "first_axis" takes each index as a group.
    keep_distribution : bool, default True
        Whether the result has the replicates, or its interval and standard error alone: with 1e5
        groups of `by` and 1000 replicates they are 800 MB.

    Returns
    -------
    BootstrapResult, or for a list of estimators a dict of them, which prints as a table
        The names are the caller's; an object is named by its text, or by its class.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for `groups` of another length.

    Notes
    -----
    Rows are drawn with replacement, each with probability 1/n whatever its weight; rows of weight 0
    do not exist. The same seed gives the same bits for any number of threads, any executor and any
    `n_resamples`. A plug-in calibration error is biased upward, and the bootstrap repeats that
    bias: "basic" takes it off, "percentile" adds it once more. Efron and Tibshirani (1993), "An
    introduction to the bootstrap", chapters 13 and 14; for "bca" Efron (1987), "Better bootstrap
    confidence intervals".

    Rows of one group are often right or wrong together, and then intervals that take them one by
    one are too narrow. A draw of G of G groups (Field and Welsh 2007, "Bootstrapping clustered
    data") does not always have n rows: a replicate divides by the weight of its own rows, while n,
    as in ``n_bins="sqrt"``, stays the number of rows of the data. BCa intervals leave out groups.
    With some 20 groups or fewer, intervals are too narrow all the same. Groups of one row each
    change nothing.

    Do not read the interval where the error may be small beside its noise, as where
    `calibration_test` does not reject: a 95 % interval then covers the truth in 0 to 80 % of
    simulated samples (``docs/how_to/bootstrap_study.md``), at any number of rows, since the error
    has a kink at 0. Take the interval of `fastece.estimate`; coverages and widths of both are in
    ``docs/evidence/coverage.md``.

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
    >>> print(*map("{:.5f}".format, bootstrap(y, p, method="bca", rng=0).interval(0.9)))
    0.03619 0.06817
    """
    call = read_call(
        "bootstrap", y_true, {"y_prob": y_prob}, estimator=estimator, n_resamples=n_resamples,
        confidence_level=confidence_level, average=average, n_jobs=n_jobs, executor=executor,
        **options,
    )  # fmt: skip
    table = call.tables[0]
    keeps = check_flag("keep_distribution", keep_distribution)

    def results_to_keep(results: Any) -> Any:
        if keeps:
            return results
        if not isinstance(results, Results):
            return results.without_distribution()
        return Results({name: each.without_distribution() for name, each in results.items()})

    if table.stream is not None:
        count = None if n_resamples == DEFAULT_RESAMPLES else n_resamples
        refuse_options(table.stream, n_resamples=count, groups=groups, size=size, rng=rng)
        return results_to_keep(streamed_results(call, method))
    call = add_groups(call, groups, y_prob)

    def results_of(part: Call, generator: Any) -> Any:
        return results_to_keep(bootstrap_results(part, method=method, size=size, rng=generator))

    if call.tables[0].by is None:
        return results_of(call, rng)
    rows = None if size is not None or method == "bca" else plain_groups(call)
    if rows is None:
        return results_of_parts(call, rng, results_of)
    return plain_results(call, rows, check_choice("method", method, METHODS), rng, keeps)
