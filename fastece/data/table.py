"""Settings, and the table: whatever a caller has, as weighted binary problems."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.axes import RowAxes, find_row_axes
from fastece.data.containers import contiguous
from fastece.data.errors import InputError, repr_of
from fastece.data.labels import LabelledRows
from fastece.data.parameters import check_integer, list_names
from fastece.data.samples import ALL, Sample, Vectors, effective_rows, pick
from fastece.kernels.types import F64, I64, U8

# Scores in [0, 1] (n,) float64 with outcomes (n,) uint8; or class vectors (n, K), of which every
# class is a problem, with classes (n,) int64 from 0 to K - 1. Class vectors are float64 where they
# are read; the table keeps large matrices of float32 as they are.
Arrays = tuple[NDArray[Any], NDArray[Any]]
NO_ROWS = np.empty(0, np.int64)
# Logits of greater scores may differ in numbers that the scores do not show: float64 has a distance
# of 1e-16 next to 1, where a difference of 1e-6 of logits, as float32 has it, is 1e-15 of scores.
NEAR_1 = 1 - 1e-9


@dataclass(frozen=True)
class Setting:
    """How class vectors and labels become binary problems.

    Attributes
    ----------
    name : str
        As the caller writes it and as results show it.
    column : int or None
        The class whose probability is the score, and whose label makes the outcome 1. None: the
        class of the largest probability, or every class in turn.
    per_class : bool
        Whether every class is a problem: K of them rather than one.
    """

    name: str
    column: int | None = None
    per_class: bool = False

    @property
    def is_top(self) -> bool:
        """Whether the score is the largest of K probabilities, so its support is [1/K, 1]."""
        return self.column is None and not self.per_class


SETTINGS = {
    "binary": Setting("binary", column=1),
    "confidence": Setting("confidence"),
    "classwise": Setting("classwise", per_class=True),
}
# Settings whose problems have rows of their own, which `fastece.data.separate` reads.
SEPARATE_SETTINGS = {
    "tasks": Setting("tasks", per_class=True),
    "top-label": Setting("top-label", per_class=True),
}


HINTS_FOR_OWN_ROWS = {
    "tasks": "one call for each task: {y_true}[:, k] and {y_prob}[:, k]",
    "top-label": "one call for each predicted class, or the setting 'confidence'",
}
# Settings that take the class of the largest probability, for each row.
TOP_LABEL_SETTINGS = ("confidence", "top-label")


def class_count(shape: tuple[int, ...]) -> int:
    """Count the classes; probabilities of the positive class alone have two."""
    return 2 if len(shape) == 1 else shape[1]


@lru_cache(maxsize=64)
def class_setting(k: int) -> Setting:
    """Return the setting of class `k` against all others; to make it takes 1 us."""
    return Setting(f"class {k}", column=k)


def find_setting(setting: Any, shape: tuple[int, ...]) -> Setting:
    """Find the setting of a name for probabilities of a shape, or refuse the name."""
    if isinstance(setting, str):
        if setting == "auto":
            return SETTINGS["binary" if len(shape) == 1 else "confidence"]
        if setting in SETTINGS:
            if setting == "binary" and class_count(shape) != 2:
                raise InputError(
                    "setting",
                    f"'binary' needs P(positive) or 2 columns, and here are {class_count(shape)}",
                    hint="'confidence', 'classwise' or a class index take any number of classes",
                )
            return SETTINGS[setting]
    if isinstance(setting, Integral) and not isinstance(setting, bool | np.bool_):
        return class_setting(
            check_integer("setting", setting, 0, class_count(shape) - 1, "a class index")
        )
    if isinstance(setting, str) and setting in SEPARATE_SETTINGS:
        rule = f"{setting!r} goes with arrays of functions such as ece, estimate and bootstrap"
        raise InputError("setting", rule, hint="'confidence' and 'classwise' go everywhere")
    names = f"{list_names(['auto', *SETTINGS, *SEPARATE_SETTINGS])}, or a class index"
    raise InputError("setting", "must be a known name", value=setting, hint=names)


# Data that an estimator may need of a table, and declares as `needs`. Every table has "ranks".
RANKS = "ranks"
SQUARES = "squares"  # of the scores
DISTANCES = "distances"  # squared, of class vectors from the true class
VECTORS = "vectors"
ROWS = "rows"
# The content of streams.
CONTENT_OF_STREAMS = (RANKS, SQUARES, DISTANCES)
NEEDS = {
    RANKS: "the ranks of the scores",
    SQUARES: "squares of the scores",
    DISTANCES: "squared distances of class vectors",
    VECTORS: "whole class vectors",
    ROWS: "every row by itself",
}


class TableMaker(ABC):
    """A stream, or arrays that were read before: it stands for both arrays."""

    @abstractmethod
    def table(self, setting: Any = "auto") -> "RowTable":
        """Return the rows in a setting; "auto" is its own."""


# The remedy where single rows are needed.
REPEAT_ROWS = "repeat the rows, as in np.repeat(y_prob, counts, axis=0)"


@dataclass(eq=False)  # not frozen, as `Sample` is not
class RowTable:
    """A caller's data as weighted binary problems.

    Problems share all rows, of which each has a class vector, or each has rows of its own, which
    lie one problem after the other::

        shared rows   prob  (n,), or (n, K): a column for each of K problems
        own rows      prob  (n,)   .2 .7 .9 | .1 .4 | .6 .8 .8 .3   offsets 0 3 5 9

    Arrays are C-contiguous and writable, as kernels take them; they are perhaps the caller's, and
    never written to.

    Attributes
    ----------
    setting : Setting
        How labels and probabilities became problems.
    prob, label : arrays
        `Arrays` as `read` returns them; or, if there is `convert`, the caller's own.
    low, high : float
        Support of the score.
    n_classes : int
        Number of classes, or of problems with rows of their own.
    v : (n,) float64 array or None
        Weight of one copy of each row, greater than 0; None where every row counts 1.
    c : (n,) float64 array or None
        How many independent rows each row stands for; whole except in the cells of a stream. None
        where each row counts once.
    rows : (n,) int64 array or None
        Positions of the rows before any of weight 0 was dropped; None where none was.
    origin : (N,) int64 array or None
        The caller's row behind each position, where one of his rows makes several: a soft label has
        a row for each class, and a count of events one for each outcome. None where they are the
        same.
    votes : float
        As for `Sample`.
    labels : list or None
        The labels of the class indices.
    names : list of str or None
        Names of the columns, where labels are class indices.
    vectors : Vectors or None
        The class vectors of all rows, also of weight 0, for estimators that need them whole.
    convert : callable or None
        Makes `Arrays` of some rows of `prob` and `label`, which have been checked and are too
        large to be kept twice.
    logits : (n,) or (n, K) array of float, or None
        The logits that `prob` was made from, perhaps the caller's array; the log odds of scores
        (n,) where problems have rows of their own.
    offsets : (K + 1,) int64 array or None
        Problem k has the rows from ``offsets[k]`` on, up to ``offsets[k + 1]``. None where the
        problems share all rows.
    shares : (K,) float64 array or None
        The weight of each problem in a mean over all; None where all have the same.
    shares_are_drawn : bool
        Whether these are the shares of the rows, which a resample changes.
    problem_names : sequence of str
        Names of problems with rows of their own; others go by the indices of classes.
    axes : RowAxes or None
        The axes of the caller's rows, also of those that were dropped.
    by : LabelledRows or None
        The part of each of the caller's rows, where each part is a table of its own.
    stream : object or None
        The stream that made the table of its cells. Its method ``cell_table(needs)`` makes others:
        some errors need ranks of the scores, and some squares of them.
    content : str
        The content of the cells of a stream, one of `NEEDS`.
    number : int or None
        The number of this problem among those of the stream; None where they are all here.
    """

    setting: Setting
    prob: NDArray[Any]
    label: NDArray[Any]
    low: float
    high: float
    n_classes: int = 2
    v: F64 | None = None
    c: F64 | None = None
    rows: I64 | None = None
    origin: I64 | None = None
    votes: float = 1.0
    labels: list[Any] | None = None
    names: list[str] | None = None
    vectors: Vectors | None = None
    convert: Callable[[NDArray[Any], NDArray[Any]], Any] | None = None
    logits: NDArray[Any] | None = None
    offsets: I64 | None = None
    shares: F64 | None = None
    shares_are_drawn: bool = False
    problem_names: Sequence[str] = ()
    axes: RowAxes | None = None
    by: LabelledRows | None = None
    stream: Any = None
    content: str = RANKS
    number: int | None = None

    # --- rows -----------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows of the table."""
        return self.label.size

    @cached_property
    def positions(self) -> I64:
        """Positions of the rows before any was dropped; one array for all classes."""
        return np.arange(self.n) if self.rows is None else self.rows

    @cached_property
    def callers(self) -> I64:
        """The caller's row of each row."""
        return self.positions if self.origin is None else self.origin[self.positions]

    @property
    def has_own_rows(self) -> bool:
        """Whether each problem has rows of its own; the cells of a stream share its rows."""
        return self.offsets is not None and self.stream is None

    @property
    def has_repeats(self) -> bool:
        """Whether a row of the caller may be here several times, as votes or in tasks."""
        is_in_problems = self.has_own_rows and not self.shares_are_drawn
        return self.votes != 1 or is_in_problems

    def count(self, rows: Any = ALL) -> int:
        """Count the independent rows behind all rows, or some of them."""
        if self.stream is not None:
            return int(self.stream.n)
        if self.has_repeats:
            return self._count_callers(rows)
        return int(self.label[rows].size if self.c is None else self.c[rows].sum())

    def _count_callers(self, rows: Any) -> int:
        """Count the caller's rows behind some rows, each in the first problem that has it."""
        callers, first = np.unique(self.callers[rows], return_index=True)
        if self.c is None:
            return int(callers.size)
        problem = self.problem_of_row[rows]
        is_first = problem == problem[first][np.searchsorted(callers, self.callers[rows])]
        return int(self.c[rows][is_first].sum())

    @property
    def problem_of_row(self) -> I64:
        """The problem (n,) of each row, of problems with rows of their own."""
        assert self.offsets is not None
        return np.repeat(np.arange(self.n_problems), np.diff(self.offsets))

    @property
    def n_effective(self) -> float:
        """Number of rows of equal weight whose mean varies as much (`effective_rows`)."""
        return effective_rows(self.v, self.n if self.c is None else self.c)

    @property
    def total_weights(self) -> F64:
        """Weight (n,) of all copies of each row."""
        v = np.ones(self.n) if self.v is None else self.v
        return v if self.c is None else self.c * v

    def replace(self, **columns: Any) -> "RowTable":
        """Return the table with other attributes.

        It takes a fifth of the time of `dataclasses.replace`. Numbers that were made from the old
        attributes, and cached, are left out.
        """
        table = object.__new__(RowTable)
        attributes = vars(table)
        attributes.update(vars(self))
        for name in CACHED_NUMBERS & attributes.keys():
            del attributes[name]
        attributes.update(columns)
        return table

    # --- problems -------------------------------------------------------------------------------

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        if self.offsets is not None:
            return self.offsets.size - 1
        return self.n_classes if self.setting.per_class else 1

    def average(self, values: Any) -> Any:
        """Average values (K, ...) over the problems, with their shares if they have some."""
        if not self.has_own_rows:
            # The bits of `values.mean(0)`, in a third of the time for a few values.
            return np.add.reduce(values, 0) / len(values)
        return np.tensordot(self.problem_shares, values, axes=1)

    @property
    def problem_shares(self) -> F64:
        """The weight (K,) of each problem in a mean over all."""
        if self.shares is None:
            return np.full(self.n_problems, 1 / self.n_problems)
        return self.shares

    def name(self, k: int) -> str:
        """Name problem `k`, with the caller's label if it is of one class."""
        if self.problem_names:
            return self.problem_names[k]
        column = k if self.setting.per_class else self.setting.column
        name = f"class {k}" if self.setting.per_class else self.setting.name
        class_names = self.labels or self.names
        if class_names is None or column is None:
            return name
        return f"{name} ({repr_of(class_names[column])})"

    def of_single_copies(self) -> "RowTable":
        """Return the table in which each copy of a row is a row, also of the caller."""
        assert self.c is not None, "callers make sure"
        copies = self.c.astype(np.int64)
        of_caller = np.zeros(self.callers.max() + 1, np.int64)
        of_caller[self.callers] = copies
        first_of_caller = np.cumsum(of_caller) - of_caller
        rows = np.repeat(np.arange(self.n), copies)
        first = np.repeat(np.cumsum(copies) - copies, copies)
        number = np.arange(rows.size) - first  # of the copy among those of its row
        table = self.where(rows).replace(c=None, origin=None)
        table.rows = first_of_caller[self.callers[rows]] + number
        if self.offsets is not None:
            table.offsets = np.append(0, np.cumsum(copies))[self.offsets]
        return table

    def problem(self, k: int) -> "RowTable":
        """Return problem `k` as a table of its own."""
        rows = self.rows_of(k)
        s, y = self.read_problem(k, rows)
        return self.replace(
            setting=SETTINGS["binary"], prob=s, label=y, n_classes=2,
            v=pick(self.v, rows), c=pick(self.c, rows),
            rows=self.rows if rows is ALL else self.positions[rows], labels=None, names=None,
            vectors=None, convert=None, logits=self.log_odds(k, s, rows), offsets=None, shares=None,
            shares_are_drawn=False, problem_names=(), number=k,
        )  # fmt: skip

    def problems(self) -> list["RowTable"]:
        """Return each problem as a table of its own."""
        return [self.problem(k) for k in range(self.n_problems)]

    def joined(self) -> "RowTable":
        """Return all rows as one problem, of problems with rows of their own."""
        return self.replace(
            setting=SETTINGS["binary"], offsets=None, shares=None, problem_names=(), n_classes=2
        )

    def rows_of(self, k: int) -> slice:
        """Return the rows of problem `k`."""
        if self.offsets is None:
            return ALL
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    def size(self, k: int) -> int:
        """Count the independent rows of problem `k`, which its statistics go by."""
        return self.count(self.rows_of(k))

    def where(self, rows: Any) -> "RowTable":
        """Select rows; where problems have their own, the caller renews `offsets`."""
        return self.replace(
            prob=self.prob[rows], label=self.label[rows], v=pick(self.v, rows),
            c=pick(self.c, rows), rows=self.positions[rows], logits=pick(self.logits, rows),
        )  # fmt: skip

    def find_axes(self, name: str, prob: Any) -> RowAxes:
        """Return the axes of the caller's rows; `name` and `prob` are his predictions."""
        if self.axes is None:
            return find_row_axes(name, prob, None)
        return self.axes

    def order_by_part(self) -> tuple[I64, I64]:
        """Return the rows (n,) part by part, and where each part begins (G + 1,)."""
        assert self.by is not None, "callers make sure"
        part_of_row = self.by.position[self.callers]
        sizes = np.bincount(part_of_row, minlength=len(self.by.labels))
        if not sizes.all():
            name = self.by.labels[int(sizes.argmin())]
            raise InputError("by", f"has no row of positive weight in the group {name!r}")
        offsets = np.append(0, np.cumsum(sizes))
        order = np.empty(self.n, np.int64)
        kernels.reading.order_by_group(part_of_row, offsets[:-1].copy(), order)
        return order, offsets

    def part(self, rows: I64) -> "RowTable":
        """Return the table that some rows alone would make, which are in their order."""
        table = self.where(rows).replace(by=None)
        if self.votes != 1:
            table.votes = table.n / np.unique(table.callers).size
        if not self.has_own_rows:
            return table
        problem = self.problem_of_row[rows]
        sizes = np.bincount(problem, minlength=self.n_problems)
        table.offsets = np.append(0, np.cumsum(sizes[sizes > 0]))
        if not self.shares_are_drawn:
            if not sizes.all():
                name = self.problem_names[int(sizes.argmin())]
                raise InputError("by", f"must have a label of {name} in each group")
            return table
        kept = np.flatnonzero(sizes)
        weights = np.bincount(problem, table.total_weights)[kept]
        table.n_classes = kept.size
        table.shares = weights / weights.sum()
        table.problem_names = [self.problem_names[k] for k in kept.tolist()]
        return table

    # --- arrays and samples -----------------------------------------------------------------------

    def read(self, rows: Any = ALL) -> Arrays:
        """Return scores and outcomes, or class vectors and classes, of some rows."""
        prob, label = self.read_kept(rows)
        return prob.astype(np.float64, copy=False), label

    def read_kept(self, rows: Any = ALL) -> Arrays:
        """Do as `read`, with class vectors as they are kept: perhaps float32."""
        prob = self.prob
        label = self.label
        if rows is not ALL:
            prob = prob[rows]
            label = label[rows]
        if self.convert is None:
            return prob, label
        converted: Arrays = self.convert(prob, label)
        return converted

    def read_problem(self, k: int, rows: Any = ALL) -> Arrays:
        """Return the scores and outcomes of some rows of the table for problem `k`."""
        return rows_of_problem(*self.read_kept(rows), k)

    def log_odds(self, k: int, s: F64, rows: Any = ALL) -> F64 | None:
        """Return the log odds of some rows for problem `k`, where they are needed.

        They are where a score is 0, or so near to 1 that others may be equal by rounding alone.
        """
        if self.logits is None or not s.size or (s.max() <= NEAR_1 and s.min() > 0):
            return None
        if self.has_own_rows:  # whose logits are the log odds of their scores
            return np.asarray(self.logits[rows])
        column = k if self.setting.per_class else self.setting.column
        return log_odds_of(self.logits[rows], column)

    @property
    def has_vectors(self) -> bool:
        """Whether an estimator of class vectors takes these as a whole."""
        if self.stream is not None:
            return bool(self.stream.has_vectors and self.number is None)
        return self.vectors is not None

    def read_vectors(self, rows: Any = ALL) -> Arrays:
        """Return the class vectors and classes of some rows, which must be there."""
        assert self.vectors is not None, "an estimator that needs no vectors asks for them"
        chosen = rows if self.rows is None else self.rows[rows]
        return self.vectors.prob[chosen], self.vectors.label[chosen]

    def view(self, k: int = 0, rows: Any = None) -> Sample:
        """Return problem `k`, or some of its rows, as a sample that is only read.

        It has no positions, except that those in its class vectors are from 0 on.
        """
        if rows is None:
            rows = self.rows_of(k)
        s, y = self.read_problem(k, rows)
        v = pick(self.v, rows)
        c = pick(self.c, rows)
        log_odds = self.log_odds(k, s, rows)
        vectors = None
        positions = NO_ROWS
        if self.vectors is not None:
            positions = np.arange(y.size)
            vectors = Vectors(*self.read_vectors(rows))
        return Sample(s, y, v, self.low, self.high, positions, vectors, c, self.votes, log_odds)

    def sample(self, k: int = 0) -> Sample:
        """Return problem `k` as a sample with positions, whose rows may be changed."""
        rows = self.rows_of(k)
        s, y = self.read_problem(k, rows)
        if np.may_share_memory(s, self.prob):
            s = s.copy()
        if np.may_share_memory(y, self.label):
            y = y.copy()
        v = None if self.v is None else self.v[rows].copy()
        c = pick(self.c, rows)
        log_odds = self.log_odds(k, s, rows)
        positions = self.positions[rows]
        return Sample(
            s, y, v, self.low, self.high, positions, self.vectors, c, self.votes, log_odds
        )

    def samples(self, reads_only: bool = False) -> list[Sample]:
        """Return every problem as a sample, perhaps as views that are only read."""
        make = self.view if reads_only else self.sample
        return [make(k) for k in range(self.n_problems)]

    def parts(self, rows: int, k: int = 0) -> Iterator[Sample]:
        """Yield problem `k` in parts of so many rows, as samples that are only read."""
        for start in range(0, self.n, rows):
            yield self.view(k, slice(start, start + rows))

    # --- who may read it --------------------------------------------------------------------------

    def seen_by(self, estimator: Any) -> "RowTable":
        """Return the table as an estimator reads it, or refuse the estimator.

        This is the table itself, or for a stream its cells with the content that the estimator
        needs.
        """
        needs: str = getattr(estimator, "needs", RANKS)
        needs_vectors = getattr(estimator, "needs_vectors", False)
        if self.stream is not None:
            if self.has_vectors and needs_vectors and needs != ROWS:
                needs = DISTANCES if needs == SQUARES else VECTORS
            return self.with_content(needs, "estimator", str(estimator))
        if self.c is not None and needs_vectors and getattr(estimator, "reads_pairs", False):
            raise lack_of_single_rows(f"{estimator}, which compares single rows")
        return self

    def with_content(self, needs: str, argument: str, reader: str) -> "RowTable":
        """Return the table that has the content a reader needs, one of `NEEDS`.

        Cells with squares have ranks too, which are coarser.
        """
        if self.stream is None or (self.content == SQUARES and needs in (RANKS, SQUARES)):
            return self
        if needs not in CONTENT_OF_STREAMS:
            raise self.lack(reader, argument, needs)
        table: RowTable = self.stream.cell_table(needs)
        return table if self.number is None else table.problem(self.number)

    def need_rows(self, reader: str, argument: str = "y_true") -> "RowTable":
        """Return a table whose problems share single rows; refuse any other."""
        if self.c is not None or self.has_own_rows:
            raise self.lack(reader, argument)
        return self

    def need_shared_rows(self, reader: str, argument: str = "y_true") -> "RowTable":
        """Return a table whose problems share rows with counts; refuse any other."""
        if self.stream is not None or self.has_own_rows:
            raise self.lack(reader, argument)
        return self

    def lack(self, reader: str, argument: str = "y_true", needs: str = ROWS) -> InputError:
        """Build the error for a reader that needs data which are not here."""
        if self.stream is not None:
            content = NEEDS[needs]
            rule = f"{reader} needs {content}, and a stream keeps only sums over cells of scores"
            return InputError(argument, rule)
        if self.has_own_rows:
            name = self.setting.name
            rule = f"{name!r} goes without {reader}: its problems have rows of their own"
            return InputError("setting", rule, hint=HINTS_FOR_OWN_ROWS[name])
        return lack_of_single_rows(reader)


# Numbers that a table computes once, from columns that `RowTable.replace` may change.
CACHED_NUMBERS = frozenset(
    name for name, member in vars(RowTable).items() if isinstance(member, cached_property)
)


def lack_of_single_rows(reader: str) -> InputError:
    """Build the error for a reader that takes no counts."""
    return InputError("counts", f"must be left out for {reader}", hint=REPEAT_ROWS)


def join_tables(tables: Sequence[RowTable], **changes: Any) -> RowTable:
    """Join tables of one problem each into one, whose problems have rows of their own."""

    def column(name: str) -> Any:
        columns = [getattr(table, name) for table in tables]
        if all(part is None for part in columns):
            return None
        pairs = zip(tables, columns, strict=True)
        return np.concatenate([np.ones(t.n) if part is None else part for t, part in pairs])

    sizes = [table.n for table in tables]
    parts = [table.read() for table in tables]
    return tables[0].replace(
        prob=np.concatenate([prob for prob, _ in parts]),
        label=np.concatenate([label for _, label in parts]),
        v=column("v"),
        c=column("c"),
        logits=column("logits"),
        rows=np.concatenate([table.callers for table in tables]),
        origin=None,
        convert=None,
        offsets=np.append(0, np.cumsum(sizes)),
        labels=None,
        names=None,
        **changes,
    )


def log_odds_of(logits: NDArray[Any], column: int | None) -> F64:
    """Compute the log odds (n,) of a class, for None of the largest one of a row."""
    if logits.ndim == 1:
        log_odds = logits.astype(np.float64)
        if column is None:
            return np.abs(log_odds)
        return log_odds if column == 1 else -log_odds
    rows = np.arange(len(logits))
    chosen = logits.argmax(axis=1) if column is None else np.full(len(logits), column)
    others = logits.astype(np.float64)
    score = others[rows, chosen].copy()
    others[rows, chosen] = -np.inf
    with np.errstate(divide="ignore"):
        return np.asarray(score - np.logaddexp.reduce(others, axis=1))


def rows_of_problem(prob: NDArray[Any], label: NDArray[Any], k: int) -> Arrays:
    """Return scores and outcomes of problem `k`, of arrays as for `as_lines`."""
    if prob.ndim == 1:
        return prob, label
    return prob[:, k].astype(np.float64), (label == k).view(np.uint8)


def as_lines(prob: NDArray[Any], label: NDArray[Any], numbers: range) -> tuple[F64, U8]:
    """Return scores and outcomes (K, n) of some problems, one after the other.

    `prob` and `label` are scores and outcomes of the only problem, or class vectors and classes, as
    `RowTable.read_kept` returns them.
    """
    if prob.ndim == 1:
        return prob[None], label[None]
    columns = prob[:, numbers.start : numbers.stop]
    hit = label == np.array(numbers)[:, None]
    return contiguous(columns.T, np.float64), hit.view(np.uint8)


def one_problem(sample: Sample) -> RowTable:
    """Turn a sample into a problem without a copy; counts become weights."""
    return RowTable(
        SETTINGS["binary"], sample.s, sample.y, sample.low, sample.high,
        v=sample.weight,
        rows=sample.rows, vectors=sample.vectors, votes=sample.votes, logits=sample.log_odds,
    )  # fmt: skip
