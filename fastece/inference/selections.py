"""Selections of rows: which rows, classes or streams each slice is made of.

`select_by_columns` reads a caller's columns, `select_by_class` takes every class against the rest,
`select_by_prediction` the rows of each predicted class, and `select_streams` one stream for each.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_array, as_real, dtypes_of, refuse_where, warn_of_index
from fastece.data.errors import InputError
from fastece.data.labels import LabelledRows, as_groups, as_objects, by_name, columns_of
from fastece.data.parameters import check_flag, check_integer
from fastece.data.samples import effective_rows
from fastece.data.table import RowTable
from fastece.kernels.types import F64, I64
from fastece.resampling.call import Call

NEVER = "never the label"
# A column with more different numbers than this is cut into intervals.
MAX_NUMBERS = 20
# More dates than `MAX_NUMBERS` are put into periods, of which there are at most so many: the months
# of two years, or the quarters of six.
MAX_PERIODS = 24
# A text that is a date, perhaps with a time, and its characters up to the day.
DATE = re.compile(r"\d{4}([-/])\d\d(\1\d\d([ T].*)?)?")
DAY_CHARACTERS = 10
# A date, a month, a quarter or a year, as slices are labelled.
PERIOD = re.compile(r"(19|20)\d\d(-?Q[1-4]|-\d\d(-\d\d([ T].*)?)?)?")
# Intervals that a column is cut into at most.
MAX_INTERVALS = 1000
# Entries of class vectors that are read at once: 1 MB.
MAX_ENTRIES = 2**17
# Edges beyond this, such as times in seconds, are shown with 15 digits, others with 6.
LARGE_EDGE = 1e5


class Selection(NamedTuple):
    """Rows of one slice.

    Attributes
    ----------
    label : object
        The label of the slice.
    n : int
        Number of rows of positive weight; for a class, the rows with this label.
    n_effective : float
        Kish's number of rows.
    make_table : callable
        Returns the table of the rows; slices are many, so none is made before it is needed.
    note : str
        A note for the reader of the slice's numbers; "" without one.
    rows : int64 array or None
        Positions of the rows among all rows of positive weight; None where these are all of them.
    problem : int or None
        The only problem of the slice; None where it has all problems of its rows.
    """

    label: Any
    n: int
    n_effective: float
    make_table: Callable[[], RowTable]
    note: str = ""
    rows: I64 | None = None
    problem: int | None = None


# --- columns --------------------------------------------------------------------------------


def select_by_columns(
    call: Call, by: Any, y_prob: Any, bins: Any = 4, cross: Any = False
) -> list[Selection]:
    """Select rows of positive weight by a caller's columns.

    Parameters
    ----------
    call : Call
    by : (n,) array_like, or a mapping or data frame of them
    y_prob : (n,) or (n, K) array_like
        The probabilities, whose number is the length of the columns.
    bins : int, sequence of float or None
        Number of intervals of a column of numbers, or their edges.
    cross : bool
        Whether the columns are combined into one.
    """
    problems = call.rows
    axes = problems.find_axes("y_prob", y_prob)
    check_bins(bins)
    for name, column in (by if isinstance(by, Mapping) else {None: by}).items():
        warn_of_index(by_name(name), column, call.index)
    columns = [
        read_column(axes.flatten("by", column), axes.n, name, problems, bins)
        for name, column in columns_of(by).items()
    ]
    if check_flag("cross", cross):
        columns = [reduce(combine, columns)]
    return [selection for column in columns for selection in select_labels(problems, column)]


def select_labels(problems: RowTable, column: LabelledRows) -> Iterator[Selection]:
    """Yield the selection of each label that occurs in a column."""
    order = np.argsort(column.position, kind="stable")
    present, first = np.unique(column.position[order], return_index=True)
    for k, rows in zip(present, np.split(order, first[1:]), strict=True):
        weights = None if problems.v is None else problems.v[rows]
        copies = rows.size if problems.c is None else problems.c[rows]
        yield Selection(
            label=column.labels[k],
            n=problems.count(rows),
            n_effective=effective_rows(weights, copies),
            make_table=partial(problems.where, rows),
            rows=rows,
        )


def check_bins(bins: Any) -> None:
    """Check the number of intervals, or their edges in increasing order."""
    if np.ndim(bins):
        edges = as_real("bins", bins)
        if edges.ndim > 1 or edges.size < 2 or not (edges[1:] > edges[:-1]).all():
            raise InputError("bins", "must be a number, or edges in increasing order", value=bins)
    elif bins is not None:
        check_integer("bins", bins, 1, MAX_INTERVALS)


def read_column(column: Any, n: int, name: Any, problems: RowTable, bins: Any) -> LabelledRows:
    """Read the label of each row of the problems in a column; numbers may be cut.

    With a name, labels begin with it.
    """
    argument = by_name(name)
    cut = cut_numbers(column, n, argument, problems, bins)
    labelled = as_groups(column, n, argument) if cut is None else cut
    if cut is None and bins is not None and "category" not in dtypes_of(column):
        labelled = by_period(labelled, problems.callers)
    labels = [as_label(label) for label in labelled.labels]
    if name is not None:
        labels = [f"{name} {label}" for label in labels]
    return LabelledRows(labelled.position[problems.callers], labels)


def as_label(label: Any) -> Any:
    """Return a label as it is if it is plain, and otherwise its text."""
    return label if isinstance(label, str | int | float | tuple) else str(label)


def cut_numbers(
    column: Any, n: int, argument: str, problems: RowTable, bins: Any
) -> LabelledRows | None:
    """Find the interval of each of a column's numbers; None if its values stay labels."""
    numbers = as_array(argument, as_objects(column))
    is_numeric = numbers.dtype.kind in "iuf" and "category" not in dtypes_of(column)
    if bins is None or not is_numeric or numbers.shape not in ((n,), (n, 1)):
        return None
    if np.isnan(numbers).any():
        return None
    if np.ndim(bins):
        edges = np.asarray(bins, np.result_type(numbers, 1.0))
        refuse_where(
            argument, "must lie in {bins}", numbers, lambda x: (x < edges[0]) | (x > edges[-1])
        )
    else:
        numbers_of_rows = numbers.ravel()[problems.callers]
        if np.unique(numbers_of_rows).size <= MAX_NUMBERS:
            return None
        is_weighted = problems.v is not None or problems.c is not None
        weights = problems.total_weights if is_weighted else None
        edges = quantile_edges(numbers_of_rows, weights, bins)
    return LabelledRows(np.searchsorted(edges[1:], numbers.ravel()), interval_texts(edges))


def by_period(column: LabelledRows, rows: Any) -> LabelledRows:
    """Put dates into the finest periods of which there are few.

    The rows decide how many there are. Periods are days, months, quarters and years. Other labels,
    and few dates, stay as they are.
    """
    present = np.unique(column.position[rows])
    if present.size <= MAX_NUMBERS:
        return column
    days = read_days(column.labels)
    if days is None:
        return column
    months = days.astype("M8[M]").astype(np.int64)
    years = days.astype("M8[Y]").astype(str)
    periods = [
        days.astype(str),
        days.astype("M8[M]").astype(str),
        np.array([f"{year}-Q{k + 1}" for year, k in zip(years, months % 12 // 3, strict=True)]),
        years,
    ]
    chosen = None
    for names in periods:
        n_periods = np.unique(names[present]).size
        if n_periods == 1:
            break
        chosen = names
        if n_periods <= MAX_PERIODS:
            break
    if chosen is None:
        return column
    labels, number = np.unique(chosen, return_inverse=True)
    return LabelledRows(number[column.position], labels.tolist())


def read_days(labels: Sequence[Any]) -> NDArray[Any] | None:
    """Read dates, periods of pandas, and texts such as 2026-01-31 as days."""
    texts = []
    for label in labels:
        moment = getattr(label, "start_time", label)
        text = moment.isoformat() if hasattr(moment, "isoformat") else moment
        if not isinstance(text, str) or not DATE.fullmatch(text):
            return None
        texts.append(text[:DAY_CHARACTERS].replace("/", "-"))
    try:
        return np.array(texts, "M8[D]")
    except ValueError:
        return None


def are_in_time(labels: Sequence[Any]) -> bool:
    """Decide whether all labels are texts of dates, whose order is the one of time."""
    return all(isinstance(label, str) and PERIOD.fullmatch(label) for label in labels)


def quantile_edges(numbers: Any, weights: F64 | None, bins: int) -> Any:
    """Compute edges at weighted quantiles, which are numbers of the column.

    There are fewer intervals than `bins` where many numbers are equal.
    """
    shares = np.arange(1, bins) / bins
    inner = np.quantile(numbers, shares, method="inverted_cdf", weights=weights)
    return np.array([numbers.min(), *np.unique([*inner, numbers.max()])])


def interval_texts(edges: Any) -> list[str]:
    """Write the intervals between edges, of which only the first has its lower end."""
    texts = [edge_text(float(edge)) for edge in edges]
    intervals = [f"({low}, {high}]" for low, high in pairwise(texts)]
    intervals[0] = f"[{intervals[0][1:]}"
    return intervals


def edge_text(edge: float) -> str:
    """Write an edge, with all digits if it is whole or large."""
    has_all_digits = edge.is_integer() or abs(edge) > LARGE_EDGE
    return f"{edge:.15g}" if has_all_digits else f"{edge:.6g}"


def combine(first: LabelledRows, second: LabelledRows) -> LabelledRows:
    """Combine two columns into one, whose labels are the pairs that occur."""
    size = len(second.labels)
    pairs, position = np.unique(first.position * size + second.position, return_inverse=True)
    labels = [f"{first.labels[k // size]}, {second.labels[k % size]}" for k in pairs.tolist()]
    return LabelledRows(position, labels)


# --- classes and streams --------------------------------------------------------------------


def select_by_class(call: Call, classes: Iterable[int] | None = None) -> list[Selection]:
    """Select each of some classes, or of all, against the rest, on all rows."""
    (table,) = call.tables
    if not table.setting.per_class:
        raise InputError("by", "is needed unless setting is 'classwise'", value=call.setting)
    labels = table.labels or table.names or range(table.n_problems)
    chosen = range(table.n_problems) if classes is None else classes
    return [select_class(table, k, labels[k]) for k in chosen]


def classes_with_rows(table: RowTable) -> list[int]:
    """Find the classes that some row has, or is predicted or expected to have.

    A row is expected where the probabilities of a class add up to 1. Rows tell nothing of any other
    class.
    """
    if table.stream is not None:
        samples = table.samples()
        rows = [max(each.counts @ each.y, each.counts @ each.s) for each in samples]
        return np.flatnonzero(np.array(rows) >= 1).tolist()
    has_rows = np.zeros(table.n_classes, np.bool_)
    expected = np.zeros(table.n_classes)
    step = max(1, MAX_ENTRIES // table.n_classes)
    for start in range(0, table.n, step):
        part = slice(start, start + step)
        prob, label = table.read(part)
        has_rows[label] = True
        has_rows[prob.argmax(axis=1)] = True
        rows_of_part = prob if table.c is None else table.c[part, None] * prob
        expected += rows_of_part.sum(axis=0, dtype=np.float64)
    return np.flatnonzero(has_rows | (expected >= 1)).tolist()


def select_class(table: RowTable, k: int, label: Any) -> Selection:
    """Select class k against the rest."""
    sample = table.sample(k)
    if table.c is None:
        n = table.count(sample.y > 0)
    else:
        n = round(float(sample.counts @ sample.y.astype(np.float64)))
    n_effective: float = table.count()
    if table.stream is None:
        n_effective = sample.n_effective
    make_table = partial(table.problem, k)
    note = "" if n else NEVER
    return Selection(label, n, n_effective, make_table, note=note, problem=k)


def select_by_prediction(call: Call, classes: RowTable) -> list[Selection]:
    """Select the rows with the same most probable class."""
    problems = call.rows
    labels = classes.labels or classes.names or range(classes.n_classes)
    column = LabelledRows(classes.prob.argmax(axis=1), labels)
    return [*select_labels(problems, column)]


def select_streams(tables: Mapping[Any, RowTable]) -> list[Selection]:
    """Make a selection of each stream, which has its own sums."""
    return [
        Selection(label, table.count(), table.count(), partial(return_table, table))
        for label, table in sorted(tables.items(), key=lambda item: str(item[0]))
    ]


def return_table(table: RowTable) -> RowTable:
    """Return a table as it is."""
    return table
