"""Selections of rows: which rows, classes or streams each slice is made of.

`select_by_columns` reads a caller's columns, `select_by_class` takes every class against the rest,
`select_by_prediction` the rows of each predicted class, and `select_streams` one stream for each.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fastece.data.axes import find_row_axes
from fastece.data.containers import as_array, as_real, dtypes_of, refuse_where, warn_of_index
from fastece.data.counted import CountedRows
from fastece.data.errors import InputError
from fastece.data.labels import LabelledRows, as_groups, as_objects
from fastece.data.parameters import check_flag, check_integer
from fastece.data.samples import effective_rows
from fastece.data.sources import Problems, Source
from fastece.kernels.types import F64, I64
from fastece.resampling.call import Call

NEVER = "never the label"
# A column with more different numbers than this is cut into intervals.
MAX_NUMBERS = 20
# Intervals that a column is cut into at most.
MAX_INTERVALS = 1000
RowsToSelect = Problems | CountedRows
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
    make_source : callable
        Returns the source of the rows; slices are many, so none is made before it is needed.
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
    make_source: Callable[[], Source]
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
    axes = find_row_axes("y_prob", y_prob, call.class_axis)
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


def select_labels(problems: RowsToSelect, column: LabelledRows) -> Iterator[Selection]:
    """Yield the selection of each label that occurs in a column."""
    order = np.argsort(column.position, kind="stable")
    present, first = np.unique(column.position[order], return_index=True)
    for k, rows in zip(present, np.split(order, first[1:]), strict=True):
        weights = None if problems.v is None else problems.v[rows]
        copies = problems.c[rows] if isinstance(problems, CountedRows) else rows.size
        yield Selection(
            label=column.labels[k],
            n=problems.count(rows),
            n_effective=effective_rows(weights, copies),
            make_source=partial(problems.where, rows),
            rows=rows,
        )


def columns_of(by: Any) -> dict[Any, Any]:
    """Return columns by name, of a mapping or a data frame; a single one by None."""
    names = by if isinstance(by, Mapping) else getattr(by, "columns", None)
    names = getattr(by, "column_names", names)  # of pyarrow
    if names is None:
        return {None: by}
    columns = {name: by[name] for name in names}
    if not columns:
        raise InputError("by", "must have a column")
    return columns


def by_name(name: Any) -> str:
    """Return the name of a column of `by` in messages."""
    return "by" if name is None else f"by[{name!r}]"


def check_bins(bins: Any) -> None:
    """Check the number of intervals, or their edges in increasing order."""
    if np.ndim(bins):
        edges = as_real("bins", bins)
        if edges.ndim > 1 or edges.size < 2 or not (edges[1:] > edges[:-1]).all():
            raise InputError("bins", "must be a number, or edges in increasing order", value=bins)
    elif bins is not None:
        check_integer("bins", bins, 1, MAX_INTERVALS)


def read_column(column: Any, n: int, name: Any, problems: RowsToSelect, bins: Any) -> LabelledRows:
    """Read the label of each row of the problems in a column; numbers may be cut.

    With a name, labels begin with it.
    """
    argument = by_name(name)
    cut = cut_numbers(column, n, argument, problems, bins)
    labelled = as_groups(column, n, argument) if cut is None else cut
    labels = [as_label(label) for label in labelled.labels]
    if name is not None:
        labels = [f"{name} {label}" for label in labels]
    return LabelledRows(labelled.position[problems.callers], labels)


def as_label(label: Any) -> Any:
    """Return a label as it is if it is plain, and otherwise its text."""
    return label if isinstance(label, str | int | float | tuple) else str(label)


def cut_numbers(
    column: Any, n: int, argument: str, problems: RowsToSelect, bins: Any
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
        weights = problems.v
        if isinstance(problems, CountedRows):
            weights = problems.total_weights
        edges = quantile_edges(numbers_of_rows, weights, bins)
    return LabelledRows(np.searchsorted(edges[1:], numbers.ravel()), interval_texts(edges))


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


def select_by_class(call: Call) -> list[Selection]:
    """Select every class against the rest, on all rows."""
    (source,) = call.sources
    if not source.setting.per_class:
        raise InputError("by", "is needed unless setting is 'classwise'", value=call.setting)
    labels = source.labels or source.names or range(source.n_problems)
    return [select_class(source, k, label) for k, label in enumerate(labels)]


def select_class(source: Source, k: int, label: Any) -> Selection:
    """Select class k against the rest."""
    sample = source.sample(k)
    if isinstance(source, Problems):
        n = source.count(sample.y > 0)
    else:
        n = round(float(sample.counts @ sample.y.astype(np.float64)))
    n_effective: float = source.n
    if isinstance(source, Problems | CountedRows):
        n_effective = sample.n_effective
    make_source = partial(source.problem, k)
    note = "" if n else NEVER
    return Selection(label, n, n_effective, make_source, note=note, problem=k)


def select_by_prediction(call: Call, classes: Problems) -> list[Selection]:
    """Select the rows with the same most probable class."""
    problems = call.rows
    labels = classes.labels or classes.names or range(classes.n_classes)
    column = LabelledRows(classes.prob.argmax(axis=1), labels)
    return [*select_labels(problems, column)]


def select_streams(sources: Mapping[Any, Source]) -> list[Selection]:
    """Make a selection of each stream, which has its own sums."""
    return [
        Selection(label, source.n, source.n, partial(return_source, source))
        for label, source in sorted(sources.items(), key=lambda item: str(item[0]))
    ]


def return_source(source: Source) -> Source:
    """Return a source as it is."""
    return source
