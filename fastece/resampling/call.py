"""A call: checked arguments of a function that resamples, and results made from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.data.table import RowTable
from fastece.display.results import Results
from fastece.estimators.base import Statistic, values_of_problems
from fastece.estimators.losses import Mean, infinite_rows
from fastece.kernels.types import F64
from fastece.resampling.dependence import estimate_dependence
from fastece.resampling.draws import Units, make_row_draws
from fastece.resampling.engine import Workers, evaluate, plan_replicates
from fastece.resampling.groups import Dependence, Groups
from fastece.resampling.intervals import as_float
from fastece.resampling.naming import describe
from fastece.resampling.problem import Problem

# Copies of the rows of several tasks that are drawn one by one.
MAX_COPIES = 2**24


@dataclass(frozen=True)
class Call:
    """Checked arguments of one call.

    Attributes
    ----------
    function : str
        The name of the function that was called, for errors.
    estimators : dict of str to Estimator
        The estimators by name; the name is "" for one that the caller did not put in a list.
    tables : sequence of RowTable
        The table of each model, on the same rows.
    average : "macro" or None
        Whether several classes have the mean of their values as the result, or a value each.
    n_resamples : int
    level : float
        The confidence level.
    workers : Workers
        Who evaluates the replicates.
    groups : Groups or None
        The caller's groups of rows; None for independent rows.
    index : pandas.Index or None
        The index of the caller's rows; None where they have none.
    first_row : int
        The number of the first row in draws of labels, of one of several problems with rows of
        their own.
    joint_dependence : Dependence or None
        For such a problem the dependence of its rows, which was estimated with all others.
    """

    function: str
    estimators: dict[str, Any]
    tables: Sequence[RowTable]
    average: str | None
    n_resamples: int
    level: float
    workers: Workers
    groups: Groups | None = None
    index: Any = None
    first_row: int = 0
    joint_dependence: Dependence | None = None

    @property
    def models(self) -> list[RowTable]:
        """The table of each model; an error where rows have counts, or problems their own."""
        return [table.need_rows(self.function) for table in self.tables]

    @property
    def uncounted_tables(self) -> list[RowTable]:
        """The table of each model, in which rows with `counts` are there once."""
        tables = [table.need_shared_rows(self.function) for table in self.tables]
        return [table.replace(c=None) for table in tables]

    @property
    def rows(self) -> RowTable:
        """The table of the first model, whose problems share single rows."""
        return self.tables[0].need_shared_rows(self.function)

    @property
    def counts(self) -> F64 | None:
        """How many rows each row of the tables stands for; None where these are all rows."""
        table = self.tables[0]
        return table.c if table.stream is None else None

    @property
    def n(self) -> int:
        """Number of independent rows of positive weight."""
        return self.tables[0].count()

    @property
    def n_groups(self) -> int | None:
        """Number of the caller's groups; None without groups."""
        return None if self.groups is None else self.groups.count

    @cached_property
    def clusters(self) -> Groups | None:
        """Groups, or the rows of one of the caller's; None where all rows are independent."""
        groups = self.groups
        table = self.tables[0]
        if groups is None and table.has_repeats:
            groups = Groups.of(table.callers)
        has_single_rows = groups is not None and groups.count == groups.of_row.size == self.n
        return None if groups is None or has_single_rows else groups

    @cached_property
    def units(self) -> Units:
        """The units that are drawn: rows, copies of rows, or clusters."""
        table = self.tables[0]
        if self.clusters is None:
            return Units(table.n, copies=table.c, offsets=table.offsets)
        count, of_row = self.clusters.count, self.clusters.of_row
        if self.groups is not None or table.c is None:
            return Units(count, of_row, rows=table.c, offsets=table.offsets)
        copies = np.empty(count)
        copies[of_row] = table.c  # the same in all rows of one of the caller's
        return Units(count, of_row, copies, offsets=table.offsets)

    @cached_property
    def dependence(self) -> Dependence | None:
        """Dependence within the clusters of the only model; None without clusters."""
        if self.joint_dependence is not None:
            return self.joint_dependence
        if self.clusters is None:
            return None
        table = self.tables[0]
        rows = table.joined() if table.has_own_rows else table
        return estimate_dependence(rows, self.clusters)

    @property
    def design_effect(self) -> float:
        """Design effect of the clusters: so many of their rows count as one."""
        return 1.0 if self.dependence is None else self.dependence.effect

    @property
    def setting(self) -> str:
        """Setting, as results show it."""
        table = self.tables[0]
        return table.setting.name if table.setting.per_class else table.name(0)

    @property
    def per_class(self) -> bool:
        """Whether each class has a value of its own, and not all of them their mean."""
        return self.average is None and self.tables[0].setting.per_class

    def uses_class_vectors(self, estimator: Any) -> bool:
        """Return whether an estimator has a value of whole class vectors here."""
        return estimator.needs_vectors and self.tables[0].has_vectors

    def with_estimator(self, estimator: Any) -> "Call":
        """Return the same call with one estimator, which is in no list."""
        return replace(self, estimators={"": estimator})


def with_single_copies(call: Call) -> Call:
    """Return the call on single copies of rows, where several problems share them.

    The outcomes of one copy in several tasks may depend on each other, those of two copies not.
    """
    table = call.tables[0]
    if table.c is None or not table.has_repeats or call.groups is not None or call.per_class:
        return call
    if table.c.sum() > MAX_COPIES:
        rule = f"must add up to at most {MAX_COPIES} over all tasks for their mean"
        raise InputError("counts", rule, value=float(table.c.sum()), hint="average=None")
    return replace(call, tables=[table.of_single_copies()])


def calls_on_problems(call: Call) -> list[Call]:
    """Return a call on each problem of a table whose problems have rows of their own.

    Where their mean is the result, they have the draws and the dependence that they have together.
    """
    calls = []
    first_row = 0
    for problem in call.tables[0].problems():
        rows = np.arange(first_row, first_row + problem.n)
        groups = None if call.groups is None else call.groups.where(rows)
        on_problem = replace(call, tables=[problem], groups=groups)
        if not call.per_class:
            dependence = call.dependence
            if dependence is not None:
                dependence = dependence.rows(first_row, problem.n)
            on_problem = replace(on_problem, first_row=first_row, joint_dependence=dependence)
        calls.append(on_problem)
        first_row += problem.n
    return calls


# --- draws of the rows of a call ------------------------------------------------------------


def make_problem(call: Call, sample: Sample) -> Problem:
    """Make a problem for draws of the rows, or of the clusters, of a sample.

    Draws of clusters, of a stream, and of problems with rows of their own, differ in their number
    of rows, so every row has a weight there, and estimators add the weights up.
    """
    table = call.tables[0]
    has_sizes = call.clusters is not None or table.has_own_rows or table.stream is not None
    if has_sizes and sample.v is None:
        sample = replace(sample, v=sample.weights)
    return Problem(replace(sample, c=None))


def bootstrap_values(call: Call, statistic: Statistic, problem: Problem, key: int) -> F64:
    """Compute the replicates (..., R) of a statistic of a problem, on draws of a key."""
    draws = make_row_draws(key, call.units, call.units.total)
    plan = plan_replicates([statistic], [problem], draws, [call.n])
    values: F64 = evaluate(plan, 0, call.n_resamples, call.workers)[0]
    return values


# --- values and results ---------------------------------------------------------------------


def average_classes(call: Call, values: Any) -> Any:
    """Return values (K, ...) of the classes of a model as they are, or their mean."""
    return values if call.per_class else call.tables[0].average(values)


def compute_values(call: Call, name: str) -> list[Any]:
    """Compute the value of the estimator of a name on the data of each model."""
    estimator = call.estimators[name]
    return [
        as_float(average_classes(call, values_of_problems(estimator, table)))
        for table in call.tables
    ]


def common_fields(call: Call, name: str, key: int) -> dict[str, Any]:
    """Return the fields that all results of the estimator of a name have in common."""
    estimator = call.estimators[name]
    return {
        "n": call.n,
        "n_groups": call.n_groups,
        "key": key,
        "estimator": describe(estimator),
        "setting": "class vectors" if call.uses_class_vectors(estimator) else call.setting,
    }


def result_fields(call: Call, name: str, key: int) -> dict[str, Any]:
    """Return the fields of results of one estimator, with names of problems."""
    return {**common_fields(call, name, key), "_names": call.tables[0].problem_names}


def collect_results(call: Call, make_result: Callable[[str], Any]) -> Any:
    """Make the result of each estimator from its name; one alone is not put in a list."""
    results = Results({name: make_result(name) for name in call.estimators})
    return results.get("", results)


def find_infinite_rows(call: Call, name: str, values: Any) -> list[int]:
    """Find the caller's rows that make a mean over rows infinite; none in a stream."""
    estimator = call.estimators[name]
    if not isinstance(estimator, Mean) or not np.isinf(values).any():
        return []
    rows = {row for table in call.tables for row in infinite_rows(table, estimator)}
    return sorted(rows)
