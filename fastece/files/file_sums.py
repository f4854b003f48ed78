"""Sums over files, batch by batch; bad rows stop them, or are left out and counted."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from fastece.data.errors import BadArgumentError, InputError, InputWarning, warn_outside
from fastece.files.predictions import Batch, FilePredictions, Reader

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

    def skip_row(self, error: BadArgumentError) -> None:
        """Count a bad row."""
        self.skipped += 1
        self.note_fault(error)

    def check_start(self) -> None:
        """Give the file up if it begins with too many bad rows."""
        if self.skipped >= MAX_BAD_PREFIX and not self.rows:
            rule = f"none of its first {MAX_BAD_PREFIX} rows is good; the first: {self.reason}"
            raise InputError("path", rule, place=self.file)


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
        Is called after each batch.
    files : list of FileCount
    has_warned : bool
        Whether a warning was given, after which there are no others.
    """

    add: Callable[[FilePredictions], Any]
    skips: bool
    progress: Callable[[], None]
    files: list[FileCount] = field(default_factory=list)
    has_warned: bool = False

    def add_file(self, path: str | PathLike[str], **options: Any) -> None:
        """Add a file, given the options of a `Reader`; errors name the file, row and rule."""
        count = FileCount(str(path))
        self.files.append(count)
        for reader, batch in self.read_batches(path, count, options):
            self.add_batch(reader, batch, count)
            self.progress()

    def read_batches(
        self, path: str | PathLike[str], count: FileCount, options: dict[str, Any]
    ) -> Iterator[tuple[Reader, Batch]]:
        """Read the batches of a file, up to where it is cut if that is no error."""
        try:
            reader = Reader(path, on_bad_row=count.skip_row if self.skips else None, **options)
            for batch in reader.batches():
                count.check_start()
                count.batches += 1
                count.note = reader.note
                yield reader, batch
            count.note = reader.note
        except BadArgumentError as error:
            if not self.skips:
                raise
            count.is_cut = True
            count.note_fault(error)

    def add_batch(self, reader: Reader, batch: Batch, count: FileCount) -> None:
        """Add a batch; if it is bad and bad rows are skipped, add its halves separately."""
        n_rows = len(batch.positions)
        kinds = dict(reader.kinds)
        words = list(reader.words)
        try:
            self.add_predictions(reader.read_batch(batch))
        except BadArgumentError as error:
            # Bad rows leave no trace in what good ones have shown.
            reader.kinds = kinds
            reader.words = words
            if not self.skips or error.place is None:
                raise
            if n_rows > 1:
                self.add_batch(reader, batch.cut(0, n_rows // 2), count)
                self.add_batch(reader, batch.cut(n_rows // 2, n_rows), count)
            else:
                count.skip_row(error)
                count.check_start()
        else:
            count.rows += n_rows

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
