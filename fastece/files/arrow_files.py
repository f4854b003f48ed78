"""Arrow files, also known as Feather, and streams of Arrow, by pyarrow."""

from collections.abc import Iterator
from typing import Any

from fastece.data.errors import InputError
from fastece.files.arrow import INSTALL_PYARROW, read_arrow_batch
from fastece.files.batches import Batch, Choose, Header, rows_per_batch
from fastece.files.broken import input_errors

# How a file of Arrow begins; a stream begins with another mark.
FILE_START = b"ARROW1"
STREAM_START = b"\xff\xff\xff\xff"


def read_arrow_file(name: str, file: Any, choose: Choose) -> Iterator[Batch]:
    """Read a file or a stream of Arrow in batches of its record batches."""
    try:
        import pyarrow
        from pyarrow import ipc
    except ImportError as error:
        raise InputError("path", "Arrow needs pyarrow", place=name, hint=INSTALL_PYARROW) from error
    with input_errors(name, Exception):
        source = pyarrow.memory_map(file) if isinstance(file, str) else file
        is_file = source.read(len(FILE_START)) == FILE_START
        source.seek(0)
        if is_file:
            opened = ipc.open_file(source)
            parts = (opened.get_batch(k) for k in range(opened.num_record_batches))
        else:
            opened = ipc.open_stream(source)
            parts = iter(opened)
        header = Header(name, opened.schema.names)
        column_names = choose(header).names()
        n_before = 0
        for part in parts:
            # Offsets of a damaged file may lead out of its memory.
            part.validate(full=True)
            n_numbers = sum(len(part.column(key)) for key in column_names)
            step = rows_per_batch(n_numbers / max(part.num_rows, 1))
            for start in range(0, part.num_rows, step):
                rows = part.slice(start, step)
                places = range(n_before + 1, n_before + rows.num_rows + 1)
                yield Batch(header, read_arrow_batch(rows, column_names), places)
                n_before += rows.num_rows
