"""Rows of a monitor that wait until all labels of their day have come.

Labels come days after their predictions, and one outcome is known earlier than the other:
a default is known when it happens, its absence at the end of the loan. Counted as they come, such
rows would be evidence against any model. So a row waits until its day is more than the horizon ago,
whatever its label is and whenever it came. A day is then counted as a whole, in an order of its
rows that depends neither on their labels nor on the order in which they came.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.data.labels import as_groups
from fastece.data.parameters import check_integer
from fastece.kernels.types import F64, I64, U8

# Scores that wait at most, 80 MB and a file of 200 MB.
MAX_WAITING_SCORES = 10**7
# Numbers of days beyond it are seconds or the like.
MAX_DAY = 10**7
# Characters of a date.
DATE_LENGTH = 10
# The order of the rows of a day depends on this number and on the rows that were counted before.
SHUFFLE_SEED = 48


class RowsOfDay(NamedTuple):
    """Rows as the bets take them.

    Attributes
    ----------
    scores : (Q, n) float64 array
    outcomes : (Q, n) uint8 array
    names : list of n str, or None
        The segment of each row.
    """

    scores: F64
    outcomes: U8
    names: list[str] | None

    def select(self, rows: I64) -> "RowsOfDay":
        """Select rows by their positions."""
        names = None if self.names is None else [self.names[row] for row in rows.tolist()]
        return RowsOfDay(self.scores[:, rows], self.outcomes[:, rows], names)

    def shuffled(self, n_before: int) -> "RowsOfDay":
        """Return the rows in an order that is the same whatever order they are in.

        They are sorted by all that they have, and then shuffled by a number that no label has a
        bearing on, as a monitor must not be able to tell labels from the order of equal scores.
        """
        keys = [*self.outcomes, *self.scores]
        if self.names is not None:
            keys.append(np.unique(self.names, return_inverse=True)[1])
        order = np.lexsort(keys)
        generator = np.random.default_rng([SHUFFLE_SEED, n_before])
        return self.select(order[generator.permutation(order.size)])


@dataclass(frozen=True)
class LateRows:
    """Labelled rows whose day is not closed yet.

    Attributes
    ----------
    horizon : int
        A day is closed when a row has come whose day is later by more than so many days.
    days : (n,) int64 array
        The day of each row.
    rows : RowsOfDay
        The rows, of all days.
    today : int or None
        The latest day of any row so far.
    has_dates : bool or None
        Whether days are dates, and not numbers; None before the first row.
    n_too_late : int
        Rows that came after their day was closed, and are left out.
    """

    horizon: int
    days: I64
    rows: RowsOfDay
    today: int | None = None
    has_dates: bool | None = None
    n_too_late: int = 0

    @classmethod
    def of_no_rows(cls, horizon: int, n_problems: int) -> "LateRows":
        """Return the rows of a monitor that has none yet."""
        no_rows = RowsOfDay(np.empty((n_problems, 0)), np.empty((n_problems, 0), np.uint8), None)
        return cls(horizon, np.empty(0, np.int64), no_rows)

    @property
    def last_closed(self) -> int | None:
        """The last day that is closed; None before the first row."""
        return None if self.today is None else self.today - self.horizon - 1

    def after_rows(self, column: "DayColumn", rows: RowsOfDay) -> "LateRows":
        """Add rows that have come, except the ones whose day was closed before."""
        if self.has_dates not in (None, column.has_dates):
            kind = "dates" if self.has_dates else "numbers"
            raise InputError("day", f"must be {kind}, as in the batches before")
        today = int(column.days.max(initial=self.today if self.today is not None else -MAX_DAY))
        is_in_time = self.are_open(column.days)
        in_time = rows.select(np.flatnonzero(is_in_time))
        names = in_time.names
        if names is not None:
            names = [*(self.rows.names or []), *names]
        n_problems = len(in_time.scores)
        max_rows = MAX_WAITING_SCORES // n_problems
        late = replace(
            self,
            days=np.concatenate([self.days, column.days[is_in_time]]),
            rows=RowsOfDay(
                np.concatenate([self.rows.scores, in_time.scores], axis=1),
                np.concatenate([self.rows.outcomes, in_time.outcomes], axis=1),
                names,
            ),
            today=today,
            has_dates=column.has_dates,
            n_too_late=self.n_too_late + int(np.count_nonzero(~is_in_time)),
        )
        n_waiting = int(np.count_nonzero(late.are_open(late.days)))
        if n_waiting > max_rows:
            rule = f"must leave at most {max_rows} rows waiting"
            raise InputError("horizon", rule, value=self.horizon, rows=n_waiting)
        return late

    def closed_days(self) -> list[RowsOfDay]:
        """Return the rows of each day that is closed, in the order of the days."""
        closed = np.unique(self.days[~self.are_open(self.days)])
        return [self.rows.select(np.flatnonzero(self.days == day)) for day in closed]

    def without_closed_days(self) -> "LateRows":
        """Return the rows that go on waiting."""
        waiting = np.flatnonzero(self.are_open(self.days))
        return replace(self, days=self.days[waiting], rows=self.rows.select(waiting))

    def are_open(self, days: I64) -> NDArray[np.bool_]:
        """Decide which days are not closed yet."""
        if self.last_closed is None:
            return np.ones(days.size, bool)
        return np.asarray(days > self.last_closed)

    # --- files ------------------------------------------------------------------------------

    def to_saved(self) -> dict[str, Any]:
        """Return all values under the names that they have in files."""
        return {
            "days": self.days.tolist(),
            "scores": self.rows.scores.tolist(),
            "outcomes": self.rows.outcomes.tolist(),
            "names": self.rows.names,
            "today": self.today,
            "has_dates": self.has_dates,
            "n_too_late": self.n_too_late,
        }

    def from_saved(self, content: Mapping[str, Any]) -> "LateRows":
        """Read the rows from the values of a file, for the monitor of these rows."""
        days = np.array([check_day(day) for day in content["days"]], np.int64)
        shape = (len(self.rows.scores), days.size)
        scores = np.array(content["scores"], np.float64).reshape(shape)
        outcomes = np.array(content["outcomes"], np.uint8).reshape(shape)
        if not ((scores >= 0) & (scores <= 1)).all() or (outcomes > 1).any():
            raise InputError("scores", "must be from 0 to 1, and outcomes 0 or 1")
        names = content["names"]
        if names is not None and (
            len(names) != days.size or not all(isinstance(name, str) for name in names)
        ):
            raise InputError("names", "must be a text for each row")
        today = content["today"]
        return replace(
            self,
            days=days,
            rows=RowsOfDay(scores, outcomes, names),
            today=None if today is None else check_day(today),
            has_dates=None if content["has_dates"] is None else bool(content["has_dates"]),
            n_too_late=check_integer("n_too_late", content["n_too_late"], 0, 2**62),
        )


class DayColumn(NamedTuple):
    """The day of each row; dates are numbered by the calendar."""

    days: I64
    has_dates: bool

    def select(self, rows: Any) -> "DayColumn":
        """Select rows by their positions."""
        return self._replace(days=self.days[rows])


def check_day(day: Any) -> int:
    """Check the number of a day."""
    return check_integer("day", day, -MAX_DAY, MAX_DAY)


def read_days(day: Any, n: int) -> DayColumn:
    """Read the day of each of n rows: dates, texts of dates, or numbers of days."""
    column = as_groups(day, n, "day")
    days = np.empty(len(column.labels), np.int64)
    are_dates = np.empty(len(column.labels), bool)
    for k, label in enumerate(column.labels):
        number = read_number(label)
        are_dates[k] = number is None
        if number is None:
            number = read_date(label)
        if number is None or not abs(number) <= MAX_DAY:
            rule = "must be a date, such as 2025-06-14, or a number of days"
            rows = np.flatnonzero(column.position == k)
            raise InputError("day", rule, index=int(rows[0]), value=label, rows=rows.size)
        days[k] = math.floor(number)
    if are_dates.any() and not are_dates.all():
        other = int(np.flatnonzero(are_dates[column.position] != are_dates[column.position[0]])[0])
        label = column.labels[column.position[other]]
        raise InputError("day", "must be dates or numbers, not both", index=other, value=label)
    return DayColumn(days[column.position], bool(are_dates.any()))


def read_number(label: Any) -> float | None:
    """Read a number, or a text of one; None for anything else."""
    if not isinstance(label, str | int | float | np.number):
        return None
    try:
        return float(label)
    except ValueError:
        return None


def read_date(label: Any) -> float | None:
    """Read the date that a text or a time begins with, as a number, or None."""
    try:
        return float(date.fromisoformat(str(label)[:DATE_LENGTH]).toordinal())
    except ValueError:
        return None
