"""Sums over files of predictions, which are added a batch of rows at a time."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastece.checks.errors import BadArgumentError, InputError, InputWarning, warn_outside
from fastece.files.columns import Table
from fastece.files.predictions import Predictions, Reader

# After so many bad rows of a file without a good one before them, no row of it is tried any more.
MAX_BAD_PREFIX = 1000


@dataclass
class FileCount:
    """Counts of a file's rows that were added or skipped."""

    file: str
    rows: int = 0
    batches: int = 0
    skipped: int = 0
    is_cut: bool = False  # it could not be read to its end
    reason: str = ""  # the first fault


@dataclass
class FileSum:
    """Sum over files, added batch by batch."""

    add: Callable[[Predictions], Any]  # adds nothing where it raises an error
    skips: bool  # bad rows, and what cannot be read, are left out; else they are errors
    progress: Callable[[FileCount, float], None]  # after each batch: the share that is read
    files: list[FileCount] = field(default_factory=list)
    has_warned: bool = False

    def add_file(self, reader: Reader) -> None:
        """Add a file; errors name the file, the row and the rule."""
        count = FileCount(reader.path)
        self.files.append(count)
        tables = reader.tables()
        while True:
            try:
                table = next(tables, None)
            except BadArgumentError as error:
                if not self.skips:
                    raise
                count.is_cut, count.reason = True, count.reason or str(error)
                return
            if table is None:
                return
            count.batches += 1
            self.add_batch(reader, table, count)
            self.progress(count, table.share)

    def add_batch(self, reader: Reader, table: Table, count: FileCount) -> None:
        """Add a batch; if it is bad and bad rows are skipped, add its halves separately."""
        size = len(table.places)
        try:
            self.add_rows(reader.read_batch(table))
            count.rows += size
        except BadArgumentError as error:
            if not self.skips or error.place is None:
                raise
            if size > 1:
                self.add_batch(reader, table.part(0, size // 2), count)
                self.add_batch(reader, table.part(size // 2, size), count)
                return
            count.skipped += 1
            count.reason = count.reason or str(error)
            if count.skipped == MAX_BAD_PREFIX and not count.rows:
                rule = f"none of its first {MAX_BAD_PREFIX} rows is good"
                rule += f"; the first: {count.reason}"
                raise InputError("path", rule, place=count.file) from error

    def add_rows(self, found: Predictions) -> None:
        """Add predictions; errors, and the first warning, name the file."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.add(found)
            except BadArgumentError as error:
                found.place(error)
                raise
        if caught and not self.has_warned:
            self.has_warned = True
            if isinstance(caught[0].message, InputWarning):
                caught[0].message.place = f"{found.file}: from {found.row(0)} on"
            warn_outside(caught[0].message)
