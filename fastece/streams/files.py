"""Rows of files that are added up a batch at a time."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastece.checks.errors import BadArgumentError, InputError, InputWarning, warn_outside
from fastece.files.batches import Batch, BatchReader
from fastece.files.predictions import Predictions

# After so many bad rows of a file without a good one before them, no row of it is tried any more.
FUTILE = 1000


@dataclass
class FileCount:
    """What was added of a file.

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
        """Keep the first reason."""
        self.reason = self.reason or str(error)


@dataclass
class FileSum:
    """Adds up files.

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
    """

    add: Callable[[Predictions], Any]
    skips: bool = False
    tell: Callable[[FileCount, float], None] = lambda count, share: None  # noqa: ARG005
    files: list[FileCount] = field(default_factory=list)
    has_warned: bool = False

    def add_file(self, path: str, **options: Any) -> None:
        """Add a file; the options are those of `read_predictions`.

        Raises
        ------
        ValueError
            With the file, the row and the rule, for a bad row, and for a file that cannot be read;
            but with `skips` only where none of the first 1000 rows is good.
        """
        reader, count = BatchReader(path, **options), FileCount(path)
        self.files.append(count)
        batches = reader.batches()
        while (batch := self.following(batches, count)) is not None:
            count.batches += 1
            self.add_batch(reader, batch, count)
            self.tell(count, batch.share)

    def following(self, batches: Iterator[Batch], count: FileCount) -> Batch | None:
        """The next batch; none at the end, or where the rest of the file is skipped."""
        try:
            return next(batches, None)
        except BadArgumentError as error:
            if not self.skips:
                raise
            count.is_cut = True
            count.note(error)
            return None

    def add_batch(self, reader: BatchReader, batch: Batch, count: FileCount) -> None:
        """Add a batch; if it is bad and bad rows are skipped, each half of it by itself."""
        try:
            found = reader.read(batch)
            self.add_rows(found)
            count.rows += len(found.y_true)
        except BadArgumentError as error:
            if not self.skips or error.place is None:
                raise
            parts = batch.parts()
            for part in parts:
                self.add_batch(reader, part, count)
            if not parts:
                count.skipped += 1
                count.note(error)
                if count.skipped == FUTILE and not count.rows:
                    rule = f"none of its first {FUTILE} rows is good; the first: {count.reason}"
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
