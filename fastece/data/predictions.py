"""Labels and predictions that are read once, for any number of functions."""

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from fastece.data.errors import InputError
from fastece.data.options import GroupedKeywords, ReadingOptions, reading_options, shows_options
from fastece.data.reading import read_table
from fastece.data.table import RowTable, TableMaker

# Names of classes or groups that a text shows.
MAX_NAMES_SHOWN = 5


class Predictions(TableMaker):
    """Labels and predicted probabilities, read and checked once.

    Functions take them in place of `y_true` and `y_prob`: ``ece(table)``, ``bootstrap(table)``,
    ``calibration_report(table)``. Nothing is read, converted or checked again.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.ece`: labels and probabilities, and how they are read.

    Attributes
    ----------
    n : int
        Number of independent rows of positive weight.
    n_problems : int
        Number of binary problems, in each group.
    parts : int
        Number of groups that `by` made; 1 without.
    part_names : list
        Their labels, in their order; empty without `by`.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`.

    Examples
    --------
    >>> from fastece import Predictions, ece, mce
    >>> table = Predictions([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75])
    >>> print(table)
    5 rows, setting binary
    >>> ece(table, n_bins=2)
    0.29
    >>> round(mce(table, n_bins=2), 6)
    0.316667
    """

    @shows_options
    def __init__(self, y_true: Any, y_prob: Any, **options: Unpack[GroupedKeywords]) -> None:
        reading = reading_options(options, GroupedKeywords)
        table = read_table(y_true, y_prob, reading, vectors=True, takes_parts=True)
        self._axes = table.find_axes("y_prob", y_prob)
        self._table = table.replace(axes=self._axes)
        self._arrays = y_true, y_prob
        self._reading = reading
        self._tables = {reading.setting: self._table}

    def table(self, setting: Any = "auto") -> RowTable:
        """Return the rows in a setting; "auto" is the one in which they were read.

        Another setting is read from the arrays, once.
        """
        if isinstance(setting, str) and setting == "auto":
            return self._table
        if self._reading.setting != "auto" and setting != self._reading.setting:
            own = self._table.setting.name
            raise InputError("setting", f"must be {own!r}, as of {self!r}", value=setting)
        if setting not in self._tables:
            reading = replace(self._reading, setting=setting)
            table = read_table(*self._arrays, reading, takes_parts=True)
            self._tables[setting] = table.replace(axes=self._axes)
        return self._tables[setting]

    @property
    def arrays(self) -> tuple[Any, Any, ReadingOptions]:
        """The caller's arrays and options, for a reader of several settings."""
        return *self._arrays, self._reading

    @property
    def n(self) -> int:
        """Number of independent rows of positive weight."""
        return self._table.count()

    @property
    def n_problems(self) -> int:
        """Number of binary problems, in each group."""
        return self._table.n_problems

    @property
    def parts(self) -> int:
        """Number of groups that `by` made; 1 without."""
        return 1 if self._table.by is None else len(self._table.by.labels)

    @property
    def part_names(self) -> list[Any]:
        """Labels of the groups, in their order; empty without `by`."""
        return [] if self._table.by is None else [*self._table.by.labels]

    def __repr__(self) -> str:
        return f"<Predictions: {self}>"

    def __str__(self) -> str:
        table = self._table
        texts = [f"{self.n} rows", f"setting {table.setting.name}"]
        if table.n_problems > 1 or table.setting.is_top:
            noun = "problems" if table.has_own_rows else "classes"
            texts.append(f"{table.n_classes} {noun}")
        class_names = table.problem_names or table.labels or table.names
        if class_names is not None and len(class_names):
            texts.append(list_some(class_names))
        if table.c is not None:
            texts.append(f"with counts in {table.n} rows")
        elif table.v is not None:
            texts.append(f"with weights, worth {table.n_effective:.0f} rows")
        if self.parts > 1:
            texts.append(f"in {self.parts} groups: {list_some(self.part_names)}")
        n_left_out = self._axes.n - np.unique(table.callers).size
        if n_left_out:
            texts.append(f"{n_left_out} left out, without a weight or a label")
        return ", ".join(texts)


def list_some(names: Any) -> str:
    """List the first of some names."""
    shown = ", ".join(str(name) for name in names[:MAX_NAMES_SHOWN])
    return shown if len(names) <= MAX_NAMES_SHOWN else f"{shown}, ..."
