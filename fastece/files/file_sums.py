"""Sums over files, batch by batch; bad rows stop them, or are left out and counted."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastece.data.errors import BadArgumentError, InputError, InputWarning, warn_outside
from fastece.files.batches import Batch
from fastece.files.file_predictions import FilePredictions
from fastece.files.predictions import Reader

# After so many bad rows of a file without a good one before them, no row of it is tried any more.
MAX_BAD_PREFIX = 1000


@dataclass
class FileCount:
    """Counts of a file's rows that were added or skipped.

    Attributes
    ----------
    file : str
    rows, batches, skipped : int
        Rows that were added, batches that were read, and bad rows.
    is_cut : bool
        Whether the file could not be read to its end.
    reason : str
        The first fault.
    note : str
        How the file is read, and which of its rows are left out.
    """

    file: str
    rows: int = 0
    batches: int = 0
    skipped: int = 0
    is_cut: bool = False
    reason: str = ""
    note: str = ""

    def note_fault(self, error: BadArgumentError) -> None:
        """Keep the first fault of the file."""
        self.reason = self.reason or str(error)


@dataclass
class FileSum:
    """Sum over files, added batch by batch.

    Attributes
    ----------
    add : callable
        Adds predictions, or raises an error and adds nothing.
    skips : bool
        Whether bad rows, and files that cannot be read, are left out; otherwise they are errors.
    progress : callable
        Gets the counts of the file, and the share of it that is read, after each batch.
    files : list of FileCount
    has_warned : bool
        Whether a warning was given, after which there are no others.
    """

    add: Callable[[FilePredictions], Any]
    skips: bool
    progress: Callable[[FileCount, float], None]
    files: list[FileCount] = field(default_factory=list)
    has_warned: bool = False

    def add_file(self, reader: Reader) -> None:
        """Add a file; errors name the file, the row and the rule."""
        count = FileCount(reader.path)
        self.files.append(count)
        batches = reader.batches()
        while True:
            try:
                batch = next(batches, None)
            except BadArgumentError as error:
                if not self.skips:
                    raise
                count.is_cut = True
                count.note_fault(error)
                return
            count.note = reader.note
            if batch is None:
                return
            count.batches += 1
            self.add_batch(reader, batch, count)
            self.progress(count, batch.share_read)

    def add_batch(self, reader: Reader, batch: Batch, count: FileCount) -> None:
        """Add a batch; if it is bad and bad rows are skipped, add its halves separately."""
        n_rows = len(batch.places)
        seen = reader.seen
        try:
            self.add_predictions(reader.read_batch(batch))
        except BadArgumentError as error:
            # Bad rows leave no trace in what good ones have shown.
            reader.seen = seen
            if not self.skips or error.place is None:
                raise
            if n_rows > 1:
                self.add_batch(reader, batch.cut(0, n_rows // 2), count)
                self.add_batch(reader, batch.cut(n_rows // 2, n_rows), count)
            else:
                self.skip_row(error, count)
        else:
            count.rows += n_rows

    def skip_row(self, error: BadArgumentError, count: FileCount) -> None:
        """Count a bad row; give the file up if it begins with too many of them."""
        count.skipped += 1
        count.note_fault(error)
        if count.skipped == MAX_BAD_PREFIX and not count.rows:
            rule = f"none of its first {MAX_BAD_PREFIX} rows is good; the first: {count.reason}"
            raise InputError("path", rule, place=count.file) from error

    def add_predictions(self, predictions: FilePredictions) -> None:
        """Add predictions; errors, and the first warning, name the file."""
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            with predictions.located():
                self.add(predictions)
        if caught_warnings and not self.has_warned:
            self.has_warned = True
            warning = caught_warnings[0].message
            if isinstance(warning, InputWarning):
                warning.place = f"{predictions.file}: from {predictions.row(0)} on"
            warn_outside(warning)
