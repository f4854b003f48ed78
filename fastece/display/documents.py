"""Documents of facts, tables, sentences and pictures, independent of format."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastece.display.numbers import ConfidenceInterval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A str, int, float, None, `Number`, `PValue` or `ConfidenceInterval`.
Cell = Any


@dataclass(frozen=True)
class Table:
    """Rows of raw values under a head.

    Attributes
    ----------
    head : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Cells: str, int, float, None, `Number`, `PValue` or `ConfidenceInterval`.
    keys : sequence of str
        Names of the columns in a data frame; by default `head`.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    keys: Sequence[str] = ()

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns by key, with two columns "low" and "high" for an interval."""
        columns: dict[str, list[Any]] = {}
        for key, cells in zip(self.keys or self.head, self.cells_by_column(), strict=True):
            if any(isinstance(cell, ConfidenceInterval) for cell in cells):
                intervals = [cell or ConfidenceInterval(None, None) for cell in cells]
                columns["low"] = [interval.low for interval in intervals]
                columns["high"] = [interval.high for interval in intervals]
            else:
                columns[key] = [getattr(cell, "value", cell) for cell in cells]
        return columns

    def cells_by_column(self) -> list[Sequence[Cell]]:
        """Return the cells of each column; without rows, the columns are empty."""
        if not self.rows:
            return [() for _ in self.head]
        return list(zip(*self.rows, strict=True))


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn when a page shows it.

    Attributes
    ----------
    title : str
        Description for readers who cannot see it.
    draw : callable
        Takes nothing and returns a figure, at most `axes.PAGE_WIDTH` inches wide.
    """

    title: str
    draw: Callable[[], "Figure"]


@dataclass(frozen=True)
class Section:
    """One part of a document.

    Attributes
    ----------
    title : str
        "" for the only section of a short document.
    facts : dict
        Raw values by name.
    table : Table or None
    notes : sequence of str
        Sentences below the facts and the table.
    pictures : sequence of Picture
        Only pages show them.
    reading : sequence of str
        Sentences on how the pictures are read, which stand above them.
    """

    title: str = ""
    facts: Mapping[str, Cell] = field(default_factory=dict)
    table: Table | None = None
    notes: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    reading: Sequence[str] = ()


@dataclass(frozen=True)
class Document:
    """A result as it is shown to a reader.

    Attributes
    ----------
    title : str
    lead : str
        The most important sentence.
    sections : sequence of Section
    tone : str
        "bad", "good", "unclear" or "": how a page colours the lead.
    footer : str
    """

    title: str
    lead: str = ""
    sections: Sequence[Section] = ()
    tone: str = ""
    footer: str = ""
