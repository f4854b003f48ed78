"""Base classes of results, which print and tabulate from their documents.

`Readable` has every output format as a method; `Result` is a dataclass of numbers that is readable;
`EstimatorResult` prints the numbers that it lists in `_numbers`, and `Results` several of them as
one table.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from typing import Any, ClassVar, TypeVar

import numpy as np

from fastece.display.documents import Cell, Document, Section, Table
from fastece.display.numbers import (
    ConfidenceInterval,
    Number,
    PValue,
    count_of,
    format_cell,
    to_plain,
)
from fastece.display.writers import to_fragment, to_markdown, to_text

INTERVAL = "confidence_interval"
# The variance of fewer groups than these is not known well.
MIN_GROUPS = 20
FEW_GROUPS = (
    "{} groups are few: how much their rows depend on each other is hardly known, and intervals "
    "and p-values of fewer than 20 may be too sure."
)
# Names of numbers in print, where they differ from their names in Python.
LABELS = {
    "floor": "chance alone",
    "p_value": "p-value",
    "chi_squared_p_value": "chi-squared p-value",
}


# --- base classes ---------------------------------------------------------------------------


class Readable(ABC):
    """A base class of objects that have a document, and so every output format."""

    @abstractmethod
    def document(self) -> Document:
        """Describe the result as a `fastece.display.documents.Document`."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values by name, which JSON can hold."""

    def __str__(self) -> str:
        return to_text(self.document())

    def _repr_html_(self) -> str | None:
        """Return the document as HTML; without jinja2 None, and notebooks show text."""
        if find_spec("jinja2") is None:
            return None
        return to_fragment(self.document())

    def to_markdown(self) -> str:
        """Return the document as Markdown, without pictures."""
        return to_markdown(self.document())

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the data frame by name, from the first table."""
        tables = [section.table for section in self.document().sections]
        return next(table for table in tables if table is not None).columns()

    def to_frame(self) -> Any:
        """Return the numbers as a `pandas.DataFrame`; needs pandas."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ImportError("to_frame: needs pandas: pip install pandas") from error
        return DataFrame(self._columns())


@dataclass(frozen=True, eq=False)
class Record:
    """Values that become a dictionary.

    These are the public fields, and the properties named in `_derived`.
    """

    _derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values by name: nan as None, infinities as "inf" and "-inf"."""
        names = [x.name for x in fields(self) if not x.name.startswith("_")]
        return {name: to_plain(getattr(self, name)) for name in (*names, *self._derived)}


@dataclass(frozen=True, eq=False)
class Result(Record, Readable):
    """A result of numbers in its fields, which it describes as a document."""


# --- words that results share ---------------------------------------------------------------


def group_notes(n_groups: int | None) -> list[str]:
    """Write the caution about few groups, if there are few."""
    if n_groups is None or n_groups >= MIN_GROUPS:
        return []
    return [FEW_GROUPS.format(n_groups)]


def sample_text(result: Any) -> str:
    """Write the number of rows of a result, and of their groups."""
    rows = count_of(result.n, "row")
    return rows if result.n_groups is None else f"{rows} in {result.n_groups} groups"


# --- results of estimators ------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimatorResult(Result):
    """A result of one estimator: a value for the problem, or one for each class."""

    value: Any
    n: int
    key: int = field(repr=False)
    estimator: str
    setting: str
    n_groups: int | None = None
    _names: Sequence[str] = field(repr=False, default=())  # of problems, other than classes
    _kind: str = field(repr=False, default="class")  # what has a value of its own

    _derived: ClassVar[tuple[str, ...]] = ("notes",)
    # Fields with a number, or a line of numbers, for each value; and those with a list.
    _arrays: ClassVar[tuple[str, ...]] = ("value",)
    _lists: ClassVar[tuple[str, ...]] = ()

    def _joined_fields(self, results: Sequence[Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return other fields of the result that joins several."""
        return {}

    @property
    def _interval_name(self) -> str:
        """Name of the interval in print."""
        return "CI"

    @property
    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """The numbers that are shown, by name, the headline number first."""

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the numbers."""
        return group_notes(self.n_groups)

    @property
    def _sample(self) -> str:
        """Number of rows, of groups and of replicates, as text."""
        return sample_text(self)

    def _label(self, name: str) -> str:
        """Return the name of a number in print."""
        if name == INTERVAL:
            return self._interval_name
        words = name.replace("_p_value", " p-value").replace("_", " ")
        return LABELS.get(name, words)

    def _rows(self) -> list[dict[str, Cell]]:
        """Return the numbers as cells by name: one row, or one for each class."""
        if np.ndim(self.value) == 0:
            return [cells_of(self._numbers, self._smallest_p_value)]
        rows = []
        for k in range(len(self.value)):
            numbers = {name: one_of(x, k) for name, x in self._numbers.items()}
            name = self._names[k] if self._names else k
            rows.append({self._kind: name, **cells_of(numbers, self._smallest_p_value)})
        return rows

    def _smallest_p_value(self, name: str) -> float | None:  # noqa: ARG002
        """Return the smallest p-value that the draws can give; None without draws."""
        return None

    def document(self) -> Document:
        """Describe the numbers: as facts, or as a table of classes."""
        title = f"{self.estimator}, setting {self.setting}: {self._sample}"
        rows = self._rows()
        if self._kind in rows[0]:
            section = Section(table=self._table(rows), notes=self.notes)
        else:
            facts = {self._label(name): x for name, x in rows[0].items() if format_cell(x) != "-"}
            section = Section(facts=facts, notes=self.notes)
        return Document(title, sections=[section])

    def _table(self, rows: Sequence[dict[str, Cell]]) -> Table:
        """Make a table of rows, whose columns have this result's names."""
        keys = list(dict.fromkeys(key for row in rows for key in row))
        cells = [[row.get(key) for key in keys] for row in rows]
        return Table([self._label(key) for key in keys], cells, keys)

    def _columns(self) -> dict[str, Any]:
        return self._table(self._rows()).columns()


def one_of(value: Any, k: int) -> Any:
    """Take class k of a value, or of an interval, unless all classes share it."""
    if isinstance(value, ConfidenceInterval):
        return ConfidenceInterval(one_of(value.low, k), one_of(value.high, k))
    return value[k].item() if np.ndim(value) else value


def cells_of(
    numbers: dict[str, Any], smallest_p_value: Callable[[str], float | None]
) -> dict[str, Cell]:
    """Turn numbers into cells, with the digits that their interval is worth."""
    interval = numbers.get(INTERVAL)
    cells: dict[str, Cell] = {}
    for name, x in numbers.items():
        if name.endswith("p_value"):
            cells[name] = PValue(x, smallest_p_value(name))
        elif isinstance(x, float):
            cells[name] = Number(x, interval)
        else:
            cells[name] = x
    return cells


R = TypeVar("R", bound=EstimatorResult)


class Results(dict[str, R], Readable):
    """Results by the names of their estimators: a dict that prints as one table.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import bootstrap
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> results = bootstrap(y, p, estimator=["ece", "ece_ac"], n_resamples=99, rng=0)
    >>> results
    setting binary: 1000 rows, 99 replicates
      name    value  95 % CI (basic)  standard error   bias
      ece     0.037   [0.005, 0.036]           0.009  0.015
      ece_ac  0.034   [0.009, 0.039]           0.008  0.011
      Where a value lies outside its interval: noise shifts the value like the replicates, which the
      basic interval takes off.
    >>> results["ece"].value == results.to_dict()["value"][0]
    True
    """

    @property
    def _first(self) -> R:
        """The result that names the columns and the sample."""
        return next(iter(self.values()))

    def document(self) -> Document:
        """Describe all results as one table."""
        if not self:
            return Document("no results")
        settings = list(dict.fromkeys(result.setting for result in self.values()))
        word = "setting" if len(settings) == 1 else "settings"
        title = f"{word} {' and '.join(settings)}: {self._first._sample}"
        notes = list(dict.fromkeys(note for result in self.values() for note in result.notes))
        return Document(title, sections=[Section(table=self._table(), notes=notes)])

    def _table(self) -> Table:
        """Make a table with a row for each result, or for each of its classes."""
        rows = [{"name": name, **row} for name, x in self.items() for row in x._rows()]
        table = self._first._table(rows)
        interval_names = {result._interval_name for result in self.values()}
        if len(interval_names) == 1:
            return table
        # Intervals by several methods have a column with the method of each.
        head = [x.partition(" (")[0] if x in interval_names else x for x in table.head]
        methods = [method_of(result) for result in self.values() for _ in result._rows()]
        cells = [[*row, method] for row, method in zip(table.rows, methods, strict=True)]
        return Table([*head, "method"], cells, [*table.keys, "method"])

    def _columns(self) -> dict[str, Any]:
        return self._table().columns() if self else {}

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of the table by name: a row for each estimator and class."""
        plain: dict[str, list[Any]] = to_plain(self._columns())
        return plain

    __str__ = Readable.__str__
    __repr__ = Readable.__str__


def method_of(result: EstimatorResult) -> str:
    """Return the method named with an interval, as "basic" in "95 % CI (basic)"."""
    return result._interval_name.partition(" (")[2].rstrip(")")
