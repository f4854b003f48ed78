"""Parquet files, by pyarrow."""

from collections.abc import Iterator
from typing import Any

from fastece.data.errors import InputError
from fastece.files.arrow import INSTALL_PYARROW, read_arrow_batch
from fastece.files.batches import Batch, Choose, Header, rows_per_batch
from fastece.files.broken import input_errors

# Bytes of a column of a row group that are read at once.
BUFFER_SIZE = 2**20


def read_parquet(name: str, file: Any, choose: Choose) -> Iterator[Batch]:
    """Read a Parquet file in batches of its row groups."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        rule = "Parquet needs pyarrow"
        raise InputError("path", rule, place=name, hint=INSTALL_PYARROW) from error
    with input_errors(name, OSError, pyarrow.ArrowException):
        # Without a buffer size a column of a row group is read at once, however long it is.
        opened = parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_SIZE)
        header = Header(name, opened.schema_arrow.names)
        column_names = choose(header).names()
        if not opened.num_row_groups:
            return
        size = rows_per_batch(numbers_per_row(opened.metadata.row_group(0), column_names))
        # Threads gain nothing with two columns, and take memory.
        has_threads = len(column_names) > 2
        n_before = 0
        for rows in opened.iter_batches(size, columns=column_names, use_threads=has_threads):
            places = range(n_before + 1, n_before + rows.num_rows + 1)
            yield Batch(header, read_arrow_batch(rows, column_names), places)
            n_before += rows.num_rows


def numbers_per_row(group: Any, column_names: list[str]) -> float:
    """Count the numbers of some columns in a row of a row group; cells may be lists."""
    columns = [group.column(k) for k in range(group.num_columns)]
    n_numbers = sum(x.num_values for x in columns if x.path_in_schema.split(".")[0] in column_names)
    return float(n_numbers / max(group.num_rows, 1))
