"""Predictions from files larger than memory, a batch of rows at a time."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import BadArgumentError, InputError, InputWarning, warn_outside
from fastece.files.predictions import Chosen, Predictions, check_kind, form_of
from fastece.files.table import Table

# After so many bad rows of a file without a good one before them, no row of it is tried any more.
MAX_BAD_PREFIX = 1000


class BatchReader:
    """Reader of one file in batches, each independent of all other rows.

    Parameters
    ----------
    path : str or path
    any_labels : bool
        Whether the caller knows the classes of labels, which may be texts then.
    options
        Columns: attributes of `Chosen`.
    """

    def __init__(
        self, path: str | PathLike[str], *, any_labels: bool = False, **options: Any
    ) -> None:
        self.chosen, self.any_labels = Chosen(**options), any_labels
        self.source = self.chosen.source(str(path))
        self.form: dict[str, str] = {}

    def batches(self) -> Iterator[Table]:
        """Yield the unread batches of rows, in their order."""
        return self.source.tables()

    def read(self, table: Table) -> Predictions:
        """Read a batch as predictions, whose labels are numbers of classes."""
        if self.chosen.holds_log(table):
            rule = "is a log of lm-evaluation-harness, which is no stream"
            raise InputError("path", rule, place=table.file)
        rows = self.chosen.read(table)
        for name in (*rows.labels, *rows.numbers):
            check_kind(
                table, name, self.form.setdefault(name, form_of(rows, name)), form_of(rows, name)
            )
        found = self.chosen.interpret(rows)
        if found.pairs:  # texts that are numbers are so where another row has one that is not
            form = "a string" if found.label.dtype.kind == "U" else "a number"
            check_kind(table, "label", self.form.setdefault("label", form), form)
        elif not self.any_labels:
            check_class_numbers(found)
        names = getattr(found.y_prob, "columns", [])
        if any(name.isdecimal() and int(name) != k for k, name in enumerate(names)):
            rule = f"columns {names!r:.200} must be in the order of their classes in a stream"
            raise InputError("path", rule, place=table.file)
        return replace(found, y_true=as_bytes(found.y_true), y_prob=np.asarray(found.y_prob))


def check_class_numbers(found: Predictions) -> None:
    """Refuse text labels in a stream."""
    if found.label.dtype.kind in "OUST":
        # Text that is a number is so where another row of the batch has one that is not.
        texts = [str(label).strip().removeprefix("-") for label in found.label]
        bad = next((i for i, text in enumerate(texts) if not text.isdecimal()), 0)
        rule = (
            "must be the number of a class, as which column another label stands for is not known "
            "before all rows are read"
        )
        value = found.label[bad]
        hint = "pass {labels}, in the order of the classes"
        error = InputError("y_true", rule, index=bad, value=value, hint=hint)
        found.place(error)
        raise error


def read_batches(path: str | PathLike[str], **options: Any) -> Iterator[Predictions]:
    """Read a file of predictions in batches, only one of which is in memory.

    Parameters
    ----------
    path : str or path
    options
        Columns: attributes of `Chosen`.

    Yields
    ------
    Predictions
        Some rows, in the order of the file; `row` gives their numbers in the file.

    Raises
    ------
    InputError
        As `read_predictions` does; where labels are no numbers of classes, or a batch has others
        than the first one.
    """
    reader = BatchReader(path, **options)
    return map(reader.read, reader.batches())


def as_bytes(y: NDArray[Any]) -> NDArray[Any]:
    """View byte labels as unsigned if none is negative."""
    return y.view(np.uint8) if y.dtype == np.int8 and y.min(initial=0) >= 0 else y


@dataclass
class FileCount:
    """Counts of a file's rows that were added or skipped.

    Attributes
    ----------
    file : str
    rows, batches : int
        That were added.
    skipped : int
        Rows that were left out.
    is_cut : bool
        Whether the file could not be read to its end.
    reason : str
        The first fault.
    """

    file: str
    rows: int = 0
    batches: int = 0
    skipped: int = 0
    is_cut: bool = False
    reason: str = ""

    def note(self, error: Exception) -> None:
        """Keep the error as the reason, if it is the first one."""
        self.reason = self.reason or str(error)


@dataclass
class FileSum:
    """Sum over files, added batch by batch.

    Attributes
    ----------
    add : callable
        Takes the predictions of a batch. It may raise a ValueError, and adds nothing then.
    skips : bool
        Whether bad rows, and what cannot be read, are left out; else they are errors.
    tell : callable
        Is told the file, its rows so far and the share of it that is read, after each batch.
    files : list of FileCount
        What was added.
    any_labels : bool
        Whether the caller knows the classes of labels, which may be texts then.
    """

    add: Callable[[Predictions], Any]
    skips: bool = False
    tell: Callable[[FileCount, float], None] = lambda count, share: None  # noqa: ARG005
    files: list[FileCount] = field(default_factory=list)
    any_labels: bool = False
    has_warned: bool = False

    def add_file(self, path: str, **options: Any) -> None:
        """Add a file, with the options of `read_predictions`.

        Raises
        ------
        ValueError
            With the file, the row and the rule, for a bad row, and for a file that cannot be read;
            but with `skips` only where none of the first 1000 rows is good.
        """
        reader, count = BatchReader(path, any_labels=self.any_labels, **options), FileCount(path)
        self.files.append(count)
        batches = reader.batches()
        while (batch := self.following(batches, count)) is not None:
            count.batches += 1
            self.add_batch(reader, batch, count)
            self.tell(count, reader.source.share)

    def following(self, batches: Iterator[Table], count: FileCount) -> Table | None:
        """Return the next batch, or None at the end.

        It is None too where the rest of the file is skipped.
        """
        try:
            return next(batches, None)
        except BadArgumentError as error:
            if not self.skips:
                raise
            count.is_cut = True
            count.note(error)
            return None

    def add_batch(self, reader: BatchReader, batch: Table, count: FileCount) -> None:
        """Add a batch; if it is bad and bad rows are skipped, add its halves separately."""
        try:
            found = reader.read(batch)
            self.add_rows(found)
            count.rows += len(found.y_true)
        except BadArgumentError as error:
            if not self.skips or error.place is None:
                raise
            size = len(batch.places)
            if size > 1:
                self.add_batch(reader, batch.part(0, size // 2), count)
                self.add_batch(reader, batch.part(size // 2, size), count)
            else:
                count.skipped += 1
                count.note(error)
                if count.skipped == MAX_BAD_PREFIX and not count.rows:
                    rule = f"none of its first {MAX_BAD_PREFIX} rows is good"
                    rule += f"; the first: {count.reason}"
                    raise InputError("path", rule, place=count.file) from error

    def add_rows(self, found: Predictions) -> None:
        """Add predictions; errors, and the first warning, name the file."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with found.located():
                self.add(found)
        if caught and not self.has_warned:
            self.has_warned = True
            if isinstance(caught[0].message, InputWarning):
                caught[0].message.place = f"{found.file}: from {found.row(0)} on"
            warn_outside(caught[0].message)
