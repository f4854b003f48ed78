"""Slices: errors of groups of rows, with intervals that hold simultaneously."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, overload

import numpy as np

from fastece.data.containers import as_array, as_probabilities, as_real, dtypes_of, refuse_where
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import as_groups, as_objects
from fastece.data.parameters import check_flag, check_integer
from fastece.data.samples import effective_rows, scale_weights
from fastece.data.sources import ROWS, Problems, Source, need_rows
from fastece.data.threads import with_threads
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number, PValue
from fastece.display.results import Record, Result, group_notes, sample_text
from fastece.inference.estimate import INVERSION, POSTERIOR, Estimate, estimate_of, posterior_maker
from fastece.kernels.types import I64
from fastece.resampling.adaptive import ADAPTIVE
from fastece.resampling.arguments import (
    add_groups,
    check_single,
    read_call,
    require_calibration_error,
)
from fastece.resampling.calibration_test import calibration_result
from fastece.resampling.call import Call, common_fields
from fastece.resampling.draws import new_key

# Of groups with fewer rows the table says so.
LEAST_ROWS = 20
TOO_FEW, NEVER = "too few rows", "never the label"
# The smallest p-value of replicates is at most this part of the level of each group, or the upper
# end of its interval would be the largest error there is.
PART = 4
# Draws of rows that the tests of all groups take, some two seconds; a group without rows would cost
# as much as one of so many. Beyond that p-values are those of Bayes factors.
MOST_DRAWS, ROWS_OF_TEST = 2 * 10**9, 1000
# Groups that are printed.
MOST_LINES = 40
# A column with more different numbers than this is cut, into so many intervals at most. Edges that
# are larger than that, such as times in seconds, are shown with 15 digits, others with 6.
MOST_NUMBERS, MOST_INTERVALS, LARGE = 20, 1000, 1e5
# The position of each row among labels, and these.
Column = tuple[I64, list[Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Record):
    """Calibration error of one group of rows.

    Attributes
    ----------
    label : str, int, float or bool
        The label of the group, such as "(20, 35]" of numbers that are cut, and of several columns
        with their names: "age (20, 35], sex f". Of class tables the class.
    n : int
        Its rows of positive weight; of a class the rows that have it as their label.
    n_effective : float
        How many rows of equal weight tell its error: ``(sum w)^2 / sum w^2`` (Kish 1965, "Survey
        sampling", section 11.7). Of a class all rows do.
    events, predicted : float
        How often the event came true and the mean score, weighted: where `events` is the smaller
        one, scores are too high. Of top labels these are the accuracy and the mean confidence. nan
        where a group has a mean over classes.
    value : float
        The calibration error.
    low, high : float
        The interval, at the same time as those of all groups.
    p_value : float
        Of the hypothesis that the group is calibrated, multiplied by the number of groups, at most
        1.
    raw_p_value : float
        The same of this group alone.
    note : str
        "too few rows" for a group with `n_effective` below 20; for a class "never the label" where
        `n` is 0; else "".
    """

    label: Any
    n: int
    n_effective: float
    events: float
    predicted: float
    value: float
    low: float
    high: float
    p_value: float
    raw_p_value: float
    note: str

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """Ends `low` and `high` of the interval."""
        return ConfidenceInterval(self.low, self.high)


@dataclass(frozen=True, eq=False, kw_only=True)
class Slices(Result, Sequence[Slice]):
    """Calibration errors of all groups of rows.

    A sequence of `Slice`, the one with the most evidence of miscalibration first; what
    `fastece.slices` gives.

    Attributes
    ----------
    rows : tuple of Slice
    confidence_level : float
        Of all intervals at the same time.
    method : {"posterior", "test inversion"}
        As of `fastece.Estimate`.
    correction : str
        "Bonferroni": each interval has the level ``1 - (1 - confidence_level) / len(rows)``.
    n : int
        Rows of positive weight.
    n_resamples : int
        Replicates of each group, 0 where p-values are of Bayes factors.
    key : int
        The number that all draws depend on.
    estimator, setting : str
        The estimator with its parameters, and what "auto" stood for.
    """

    rows: tuple[Slice, ...]
    confidence_level: float
    method: str
    correction: str = "Bonferroni"
    n: int
    n_resamples: int
    key: int
    estimator: str
    setting: str
    n_groups: int | None = None

    _derived = ("notes",)

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the table."""
        return group_notes(self.n_groups)

    @property
    def test(self) -> str:
        """The test that p-values are of."""
        if self.method == INVERSION:
            return "test of this error"
        return "adaptive test" if self.n_resamples else "Bayes factor"

    @property
    def off(self) -> int:
        """Number of groups that are miscalibrated by their joint p-values."""
        return sum(row.p_value <= 1 - self.confidence_level for row in self)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Slice: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Slice]: ...
    def __getitem__(self, index: int | slice) -> Slice | Sequence[Slice]:
        return self.rows[index]

    def document(self) -> Document:
        """Describe the groups with the most evidence."""
        title = f"{self.estimator}, setting {self.setting}: {sample_text(self)}"
        more = len(self) - MOST_LINES
        notes = [f"and {more} groups with less evidence"] * (more > 0)
        names = f"Joint intervals by {self.method}, p-values by {self.test}"
        notes.append(f"{names} ({self.correction}).")
        notes += self.notes
        return Document(title, sections=[Section(table=self.table("group"), notes=notes)])

    def table(self, name: str, most: int = MOST_LINES) -> Table:
        """Describe the first groups in a table whose first column is named `name`."""
        is_top = self.setting in ("confidence", "class vectors")
        means = ["accuracy", "confidence"] if is_top else ["observed", "predicted"]
        rows = [
            (f"{row.label}", row.n,
             *(Number(x, row.confidence_interval) for x in (row.events, row.predicted, row.value)),
             row.confidence_interval, PValue(row.p_value), row.note)
            for row in self.rows[:most]
        ]  # fmt: skip
        interval = f"joint {100 * self.confidence_level:g} % CI"
        head = [name, "rows", *means, "value", interval, "p-value", ""]
        width = len(head) if any(row[-1] for row in rows) else -1  # without notes no column of them
        return Table(head[:width], [row[:width] for row in rows])

    def _columns(self) -> dict[str, Any]:
        names = [name for name in Slice.__dataclass_fields__ if not name.startswith("_")]
        return {name: [getattr(row, name) for row in self] for name in names}


# --- from groups to rows --------------------------------------------------------------------


class Group(NamedTuple):
    """A group of rows: label, counts of rows, a maker of its problems, and a note.

    The note is for the reader of its numbers.
    """

    label: Any
    n: int
    n_effective: float
    data: Callable[[], Source]
    note: str
    rows: I64 | None = None  # of all that have weight; None for all


def groups_by(call: Call, by: Any, y_prob: Any, bins: Any = 4, cross: Any = False) -> list[Group]:
    """Make the groups of rows that have weight from a caller's columns."""
    (data,), n = call.models, len(as_probabilities(y_prob))
    check_bins(bins)
    columns = [read_column(x, n, name, data, bins) for name, x in columns_by(by).items()]
    if check_flag("cross", cross):
        columns = [reduce(combine, columns)]
    return [group for column in columns for group in groups_at(data, *column)]


def groups_at(data: Problems, position: I64, labels: Sequence[Any]) -> Iterator[Group]:
    """Yield the groups of rows with the same position among labels."""
    order = np.argsort(position, kind="stable")
    present, first = np.unique(position[order], return_index=True)
    for k, rows in zip(present, np.split(order, first[1:]), strict=True):
        count = effective_rows(None if data.v is None else data.v[rows], rows.size)
        own = labels[k], data.count(rows), count, partial(data.where, rows)
        yield Group(*own, "", rows)


def columns_by(by: Any) -> dict[Any, Any]:
    """Return the columns of a mapping or a data frame by name; a column alone by None."""
    names = by if isinstance(by, Mapping) else getattr(by, "columns", None)
    names = getattr(by, "column_names", names)  # of pyarrow
    found = {None: by} if names is None else {name: by[name] for name in names}
    if not found:
        raise InputError("by", "must have a column")
    return found


def check_bins(bins: Any) -> None:
    """Check the number of intervals, or their edges in increasing order."""
    if np.ndim(bins):
        edges = as_real("bins", bins)
        if edges.ndim > 1 or edges.size < 2 or not (edges[1:] > edges[:-1]).all():
            raise InputError("bins", "must be a number, or edges in increasing order", value=bins)
    elif bins is not None:
        check_integer("bins", bins, 1, MOST_INTERVALS)


def read_column(column: Any, n: int, name: Any, data: Problems, bins: Any) -> Column:
    """Read which of its labels each row of `data` has in a column.

    Numbers are cut into intervals. With a name, labels begin with it.
    """
    argument = "by" if name is None else f"by[{name!r}]"
    position, found = cut(column, n, argument, data, bins) or as_groups(column, n, argument)
    labels = [x if isinstance(x, str | int | float | tuple) else str(x) for x in found]
    labels = labels if name is None else [f"{name} {x}" for x in labels]
    return position[data.callers], labels


def cut(column: Any, n: int, argument: str, data: Problems, bins: Any) -> Column | None:
    """Find the interval of each row of a column of numbers; None if these stay labels.

    A number of intervals ends at quantiles of the weight, which are numbers of the column.
    """
    x = as_array(argument, as_objects(column))
    is_number = x.dtype.kind in "iuf" and "category" not in dtypes_of(column)
    if bins is None or not is_number or np.isnan(x).any() or x.shape not in ((n,), (n, 1)):
        return None
    own = x.ravel()[data.callers]
    values = np.unique(own)
    if np.ndim(bins):
        ends = np.asarray(bins, np.result_type(x, 1.0))
        refuse_where(argument, "must lie in {bins}", x, lambda x: (x < ends[0]) | (x > ends[-1]))
    elif values.size <= MOST_NUMBERS:
        return None
    else:
        inner = np.quantile(own, np.arange(1, bins) / bins, method="inverted_cdf", weights=data.v)
        ends = np.array([values[0], *np.unique([*inner, values[-1]])])
    return np.searchsorted(ends[1:], x.ravel()), interval_texts(ends)


def interval_texts(edges: Any) -> list[str]:
    """Write the intervals between edges, of which only the first holds its lower end."""
    ends = [float(x) for x in edges]
    texts = [f"{x:.{15 if x.is_integer() or abs(x) > LARGE else 6}g}" for x in ends]
    return [f"{'(['[k == 0]}{low}, {high}]" for k, (low, high) in enumerate(pairwise(texts))]


def combine(one: Column, other: Column) -> Column:
    """Combine two columns into one, whose labels are the pairs that occur."""
    size = len(other[1])
    pairs, position = np.unique(one[0] * size + other[0], return_inverse=True)
    return position, [f"{one[1][k // size]}, {other[1][k % size]}" for k in pairs.tolist()]


def groups_of_sources(sources: Mapping[Any, Source]) -> list[Group]:
    """Make the groups of streams, each with its own sums."""
    return [
        Group(label, one.n, one.n, partial(lambda x: x, one), "")
        for label, one in sorted(sources.items(), key=lambda item: str(item[0]))
    ]


def groups_by_class(call: Call) -> list[Group]:
    """Make the groups of every class against the rest."""
    (data,) = call.sources
    if not data.setting.per_class:
        raise InputError("by", "is needed unless setting is 'classwise'", value=call.setting)
    groups = []
    for k, label in enumerate(data.labels or data.names or range(data.n_problems)):
        sample = data.sample(k)
        hits = round(float(sample.counts @ sample.y.astype(np.float64)))
        count = data.count(sample.y > 0) if isinstance(data, Problems) else hits
        effective = effective_rows(sample.v, sample.n) if sample.c is None else data.n
        note = "" if count else NEVER
        groups.append(Group(label, count, effective, partial(data.problem, k), note))
    return groups


def groups_by_prediction(call: Call, classes: Problems) -> list[Group]:
    """Make the groups of rows with the same most probable class."""
    (data,), labels = call.models, classes.labels or classes.names or range(classes.n_classes)
    return [*groups_at(data, classes.prob.argmax(axis=1), labels)]


def means_of(source: Source) -> list[float]:
    """Compute the share of outcomes and the mean score; nan for several problems."""
    if source.n_problems > 1:
        return [math.nan, math.nan]
    sample, _ = scale_weights(source.samples(reads_only=True)[0])
    return [float(np.average(x, weights=sample.weight)) for x in (sample.y, sample.s)]


def can_test(call: Call, groups: Sequence[Group], count: int) -> bool:
    """Decide whether every group can be tested by so many draws of labels."""
    problems = call.sources[0].n_problems
    if not call.n_resamples or (ROWS not in call.sources[0].has and problems > 1):
        return False
    sizes = [call.n if x.rows is None else x.rows.size * problems for x in groups]
    return count * (sum(sizes) + ROWS_OF_TEST * len(groups)) <= MOST_DRAWS


def slices_of(call: Call, groups: Sequence[Group], key: int) -> Slices:
    """Compute the table of some groups with one estimator, most evidence first."""
    ((name, estimator),) = call.estimators.items()
    alpha = (1 - call.level) / len(groups)
    has_posterior = posterior_maker(estimator) is not None
    count = max(call.n_resamples, math.ceil(PART / alpha))
    if has_posterior and not can_test(call, groups, count):
        count = 0
    own = replace(
        call,
        average="macro",
        level=1 - alpha,
        n_resamples=count,
        workers=call.workers._replace(jobs=1),
    )

    def result_of(group: Group) -> tuple[Estimate, float | None, float, list[float]]:
        source, groups = group.data(), call.groups and call.groups.where(group.rows)
        one = replace(own, sources=[source], groups=groups)
        found = estimate_of(one, name, key)
        p_value = found.p_value
        if has_posterior and count:
            p_value = calibration_result(replace(one, estimators={"": ADAPTIVE}), "", key).p_value
        return found, p_value, group.n_effective / one.design_effect, means_of(source)

    results = with_threads(call.workers.jobs, lambda run: [*run(result_of, groups)])
    rows = []
    for group, (result, p_value, n_effective, means) in zip(groups, results, strict=True):
        # Of a posterior, the evidence is the log Bayes factor, which exceeds log(1 / alpha) in a
        # share of alpha of calibrated samples at most (Markov's inequality).
        factor = max(float(getattr(result._parts[0], "log_bayes_factor", 0.0)), 0.0)
        if p_value is None:
            p_value, evidence = math.exp(-factor), factor
        else:
            evidence = -math.log(p_value)
        low, high = result.confidence_interval
        row = Slice(
            label=group.label, n=group.n, n_effective=n_effective, events=means[0],
            predicted=means[1], value=result.value, low=low, high=high,
            p_value=min(len(groups) * p_value, 1.0), raw_p_value=p_value,
            note=group.note or TOO_FEW * (n_effective < LEAST_ROWS),
        )  # fmt: skip
        # What is no number comes last.
        rows.append(((math.isnan(evidence), -evidence, -factor, -low, -result.value), row))
    facts = common_fields(call, name, key) | {"confidence_level": call.level, "n_resamples": count}
    ordered = tuple(row for _, row in sorted(rows, key=itemgetter(0)))
    return Slices(rows=ordered, method=POSTERIOR if has_posterior else INVERSION, **facts)


def slices(
    y_true: Any, y_prob: Any = None, *, by: Any = None, estimator: Any = "ece_bayes",
    n_resamples: int = 1999, rng: Any = 0, bins: Any = 4, cross: bool = False,
    groups: Any = None, **options: Any,
) -> Slices:  # fmt: skip
    """Estimate the calibration error of each group of rows, most evidence first.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.estimate`, with the same defaults, but no `average`: class by class, a group
        has the mean over classes. `confidence_level` is that of all intervals at the same time.
    by : (n,) array_like, or a dict or data frame of such columns, optional
        The group of each row: numbers, strings, intervals of `pandas.qcut` or whatever can be a
        key, none of it missing. A column with more than 20 different numbers is cut into intervals,
        unless it is a category of pandas. Of a dict or a data frame each column has its own groups,
        such as "age (20, 35]" and "sex f", in one table. With ``setting="classwise"`` and without
        `by`, the groups are the classes, each against the rest on all rows.
    estimator : str or object, default "ece_bayes"
        As in `fastece.ece`.
    n_resamples : int, default 1999
        Replicates of each group, for its test; more where the number of groups needs it,
        ``4 G / (1 - confidence_level)``.
    rng : None, int or numpy.random.Generator, default 0
        Seed of the tests: the same seed gives the same result.
    bins : int, sequence of float or None, default 4
        How many intervals of equal weight such a column is cut into, fewer where many of its
        numbers are equal; or the edges at which every column of numbers is cut, of which the first
        and the last may be infinite. The first interval holds both of its ends, the others their
        upper end. With None every number is a group.
    cross : bool, default False
        Whether the groups are the combinations of all columns that occur, such as
        "age (20, 35], sex f".
    groups : (n,) array_like, optional
        As in `fastece.estimate`: rows that belong together, in one slice or in several.

    Returns
    -------
    Slices
        A sequence of `Slice`, which prints as a table.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.estimate`; for labels that are missing or not one a row, and for numbers
        outside the edges.

    Notes
    -----
    Of G groups each interval is that of `fastece.estimate` on its rows at the level
    ``1 - (1 - confidence_level) / G``, and its p-value is multiplied by G (Bonferroni). So the
    intervals hold all true errors at the same time with `confidence_level`, whatever the groups
    have in common. Of an estimator with a posterior the p-value is that of the adaptive test of
    `fastece.calibration_test`, which may reject where the interval still begins at 0: that there is
    an error is surer than its size. Of streams, with `n_resamples` 0, and where the tests would
    take more than some seconds, it is the inverse of the Bayes factor: by Markov's inequality that
    is at most alpha in a share of alpha of calibrated samples, in fact in fewer. Of other
    estimators it is that of the test of this error, and the interval begins at 0 exactly where it
    exceeds 1 - `confidence_level`; but errors of small groups are inflated by noise, and so not
    comparable with those of large ones, whereas those of the default are.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import slices
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.random(3000), rng.choice(["north", "south", "west"], 3000)
    >>> y = rng.random(3000) < np.where(site == "west", p**1.5, p)
    >>> table = slices(y, p, by=site)
    >>> print(table)
    BayesCurve(), setting binary: 3000 rows
      group  rows  observed  predicted  value   joint 95 % CI  p-value
      west   1004     0.402      0.488  0.082  [0.055, 0.114]   0.0015
      south   970     0.520      0.497  0.039      [0, 0.077]     0.41
      north  1026     0.508      0.507  0.026      [0, 0.065]     1.00
      Joint intervals by posterior, p-values by adaptive test (Bonferroni).
    >>> table[0].label
    'west'

    Numbers are cut at their quartiles, and a column of a data frame or a dict is named.

    >>> age = rng.integers(18, 91, 3000)
    >>> print(slices(y, p, by={"age": age, "site": site}, bins=2))
    BayesCurve(), setting binary: 3000 rows
      group         rows  observed  predicted  value   joint 95 % CI  p-value
      site west     1004     0.402      0.488  0.082  [0.053, 0.118]   0.0025
      age [18, 54]  1517     0.473      0.503  0.038      [0, 0.075]     0.03
      site south     970     0.520      0.497  0.039      [0, 0.089]     0.68
      site north    1026     0.508      0.507  0.026      [0, 0.079]     1.00
      age (54, 90]  1483     0.479      0.492  0.026      [0, 0.073]     1.00
      Joint intervals by posterior, p-values by adaptive test (Bonferroni).
    >>> slices(y, p, by={"age": age, "site": site}, bins=2, cross=True)[0].label
    'age [18, 54], site west'
    """
    if "average" in options:
        raise InputTypeError("average", "must be left out, as a slice has one value")
    check_single(estimator)
    options |= {"estimator": estimator, "n_resamples": n_resamples}
    call = read_call("slices", y_true, {"y_prob": y_prob}, **options)
    need_rows(call.sources[0], "slices")
    require_calibration_error(call, "slices")
    call = add_groups(call, groups, y_prob)
    parts = groups_by_class(call) if by is None else groups_by(call, by, y_prob, bins, cross)
    return slices_of(call, parts, new_key(rng))
