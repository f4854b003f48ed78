"""Formats of files, each read as tables of some rows after another.

Delimited text with a header, JSON Lines, NPY, NPZ and Parquet are known by their first bytes.
"""

import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from glob import glob, has_magic
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import BadArgumentError, InputError
from fastece.files.columns import PYARROW, Column, Fault, Table, arrow_column, row_fault
from fastece.files.evaluations import (
    find_attempts,
    find_samples,
    read_answers,
    results_of,
    unpack,
    without_long,
)
from fastece.files.harness import follow, is_log

STANDARD_INPUT = "-"
GZIP, PACKED = b"\x1f\x8b", ".gz"
# How files start that are no text, and how their names end.
BINARY = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PAR1": ".parquet"}
OTHERS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".eval")
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# Errors of packed files that are cut off or have other bytes in them.
BROKEN = (EOFError, OSError, zlib.error)
# At most so many rows of a batch, and so many numbers: a few megabytes. Of text, characters: some
# megabytes, and some ten times as much while its cells are strings.
ROWS, NUMBERS, CHARACTERS = 2**17, 2**19, 2**20
# Of JSON Lines, some so many lines are searched for the first good object.
HEAD = 1000
# Objects of JSON on so many levels are read by Python, which refuses too many.
DEPTH = 500
# Bytes that are no text, as Python keeps them.
UNDECODED = re.compile("[\udc80-\udcff]")
# Chooses the columns of labels and those of numbers, of a table without rows.
Choose = Callable[[Table], tuple[list[str], list[str]]]


def read_tables(path: str, choose: Choose, header: Collection[str]) -> Iterator[Table]:
    """Yield the rows of a file in order, of a broken one those before the break.

    A header of text is known by one of the names in `header`.
    """
    is_input = path == STANDARD_INPUT
    name = "standard input" if is_input else path
    with readable(name, *BROKEN), ExitStack() as stack:
        plain: Any = sys.stdin.buffer if is_input else stack.enter_context(open(path, "rb"))
        size = 0 if is_piped(path) else os.path.getsize(path)
        if is_piped(path):  # whole, as it may hold what is not read from one end to the other
            plain = io.BufferedReader(io.BytesIO(plain.read()))
        is_packed = plain.peek(2).startswith(GZIP)
        file = stack.enter_context(gzip.open(plain)) if is_packed else plain
        start = file.peek(6)[:6]
        kind = next((ending for magic, ending in BINARY.items() if start.startswith(magic)), "")
        suffix = Path(path).suffix.lower()
        if not kind and suffix in BINARY.values():
            rule = f"is no {suffix[1:]} file: it starts with {start!r}"
            raise InputError("path", rule, place=name)
        check_encoding(name, start)
        if not kind:
            text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
            lines = stack.enter_context(text)
            tables = text_tables(name, lines, choose, header)
        else:
            whole = path if file is plain and not is_piped(path) else io.BytesIO(file.read())
            tables = READERS[kind](name, whole, choose)
        count = 0
        for table in tables:
            count += len(table.places)
            if len(table.places):
                yield replace(table, share=plain.tell() / size if size else 0.0)
        if not count:
            raise InputError("path", "is empty: it has no rows", place=name)


def is_piped(path: str) -> bool:
    """Return whether a path is of a pipe or a terminal, which can be read once only."""
    return path == STANDARD_INPUT or (os.path.exists(path) and not os.path.isfile(path))


def check_encoding(name: str, start: bytes) -> None:
    """Refuse text in UTF-16 or UTF-32, which its first bytes show."""
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        text = start[:4].decode(encoding, "replace")
        if text.startswith("\ufeff") or (text.isascii() and text.strip("\0") == text != ""):
            raise InputError("path", f"is {encoding[:6].upper()}; save it as UTF-8", place=name)


@contextmanager
def readable(name: str, *broken: type[Exception]) -> Generator[None]:
    """Turn errors of libraries about a broken file into input errors."""
    try:
        yield
    except broken as error:
        if isinstance(error, BadArgumentError) or getattr(error, "errno", None) is not None:
            raise  # one of the disk among them
        raise InputError("path", f"cannot be read: {error}", place=name) from error


def rows_of(numbers: float) -> int:
    """Return the number of rows of a batch for so many numbers in a row."""
    return max(1, min(ROWS, NUMBERS // ceil(max(numbers, 1))))


# --- arrays and Parquet -------------------------------------------------------------------------


def array_tables(name: str, file: Any, choose: Choose) -> Iterator[Table]:
    """Read the arrays of an NPZ file, or the mapped one of an NPY file, in batches."""
    with readable(name, Exception):
        mode: Any = "r" if isinstance(file, str) else None
        found = np.load(file, mmap_mode=mode, allow_pickle=False)
        if isinstance(found, np.ndarray):
            columns = array_columns(found, name)
            names = [*columns]
        else:
            with found as archive:
                columns, names = dict(archive), archive.files  # where a name may come twice
    wanted = [*chain(*choose(Table(name, names, {})))]
    first = columns[wanted[0]]
    count = len(np.atleast_1d(first))
    for key in wanted:
        if columns[key].shape[:1] != (count,):
            other = f"{wanted[0]} has {first.shape}" if first.ndim else "must be a column"
            rule = f"has shape {columns[key].shape}, {other}"
            raise InputError(key, rule, place=f"{name}: column {key}")
    table = Table(name, [*columns], {key: columns[key] for key in wanted}, range(1, count + 1))
    step = rows_of(sum(columns[key].size for key in wanted) / max(count, 1))
    yield from (table.part(start, start + step) for start in range(0, count, step))


def array_columns(array: NDArray[Any], name: str) -> dict[str, NDArray[Any]]:
    """Return the columns of an array with named fields, or of one (n, 1 + K)."""
    if array.dtype.names:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim != 2 or array.shape[1] < 2:
        rule = f"holds an array of shape {array.shape}, and must hold named fields, or a matrix"
        rule += " whose first column is y_true, and whose others are y_prob, or p_0, p_1 and so on"
        raise InputError("path", rule, place=name)
    width = array.shape[1] - 1
    names = [f"p_{k}" for k in range(width)] if width > 1 else ["y_prob"]
    return dict(zip(["y_true", *names], array.T, strict=True))


def parquet_tables(name: str, file: Any, choose: Choose) -> Iterator[Table]:
    """Read a Parquet file by pyarrow, in batches of its row groups."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError("path", "Parquet needs pyarrow", place=name, hint=PYARROW) from error
    with readable(name, OSError, pyarrow.ArrowException):
        # Without the buffer a column of a row group is read at once, however long it is.
        opened = parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20)
        names = opened.schema_arrow.names
        wanted, before = [*dict.fromkeys(chain(*choose(Table(name, names, {}))))], 0
        if not opened.num_row_groups:
            return
        group = opened.metadata.row_group(0)
        parts = map(group.column, range(group.num_columns))
        numbers = sum(x.num_values for x in parts if x.path_in_schema.split(".")[0] in wanted)
        size, is_wide = rows_of(numbers / max(group.num_rows, 1)), len(wanted) > 2
        # Of two columns threads would gain nothing, and take memory.
        for batch in opened.iter_batches(size, columns=wanted, use_threads=is_wide):
            columns: dict[str, Column] = {}
            for key in wanted:
                found = arrow_column(batch.column(key))
                columns[key] = batch.column(key).to_pylist() if found is None else found
            yield Table(name, names, columns, range(before + 1, before + batch.num_rows + 1))
            before += batch.num_rows


def zip_tables(name: str, file: Any, choose: Choose) -> Iterator[Table]:
    """Read a log of inspect, or an NPZ file."""
    attempts = []
    with readable(name, Exception), ZipFile(file) as archive:
        for info in find_samples(archive):
            with readable(place := f"{name}: {info.filename}", Exception):
                text = unpack(archive, info, place).decode("utf-8", "surrogateescape")
            attempt = read_object(text)
            if isinstance(attempt, Fault):
                raise InputError("path", attempt.rule, value=attempt.value, place=place)
            attempts.append(without_long(attempt))
    if attempts:
        return iter([attempt_table(name, attempts, choose)])
    if not isinstance(file, str):
        file.seek(0)
    return array_tables(name, file, choose)


def attempt_table(name: str, attempts: Sequence[dict[str, Any]], choose: Choose) -> Table:
    """Make a table of the attempts that have results; how many have none is a note."""
    results = {k: found for k, row in enumerate(attempts) if (found := results_of(row))}
    if not results:
        raise InputError("path", f"has {len(attempts)} attempts without a result", place=name)
    rows, left = [attempts[k] for k in results], len(attempts) - len(results)
    answers, note, groups = read_answers(rows, [*results.values()])
    note += f"; {left} of {len(attempts)} attempts without a result are left out" * (left > 0)
    paths, columns = dict(paths_of(rows[0])), dict[str, Column]()
    places = np.array([*results]) + 1
    head = Table(name, [*answers, *paths], columns, places, "attempt", note=note, groups=groups)
    for key in chain(*choose(head)):
        columns[key] = answers.get(key) or [follow(row, paths[key]) for row in rows]
    return head


# Readers of the formats in `BINARY`, from a path or an open file.
READERS: dict[str, Callable[[str, Any, Choose], Iterator[Table]]] = {
    ".npy": array_tables,
    ".npz": zip_tables,
    ".parquet": parquet_tables,
}


# --- text ---------------------------------------------------------------------------------------


def text_tables(
    file: str, lines: Iterator[str], choose: Choose, header: Collection[str]
) -> Iterator[Table]:
    """Read delimited text, or JSON Lines, where an object comes before any header."""
    chunks = chunks_of(lines)
    first = next(chunks)
    start = next(filter(None, map(str.strip, first)), "")
    is_object, is_array = start.startswith("{"), start.startswith("[")
    if start == "{":  # an object over many lines
        first, chunks = [*first, *chain(*chunks)], iter(())
        start = "".join(first)
    if is_object and (attempts := find_attempts(read_object(start))):
        return iter([attempt_table(file, attempts, choose)])
    if is_object or not any(name in start for name in header):
        is_long = is_array and not start.endswith("]")  # over lines that may be objects
        found = None if is_long else find_head(file, first, chunks, choose)
        if found is not None:
            return object_tables(file, *found, first, chunks)
    if is_array:
        rule = "is a JSON array; one object a line (JSON Lines) is read"
        raise InputError("path", rule, place=file)
    if is_object:
        rows = [read_object(line) for line in first if line.strip()]
        Table(file, [], {}, places_of(first, 0), "line").refuse([("path", rows, row_fault)])
    delimiter, names, before = read_header(file, first, header)
    chunks = chain([first[before:]], chunks)
    head = Table(file, names, {}, unit="line")
    return delimited_tables(head, delimiter, before, chunks, lines, choose)


def chunks_of(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield lines in batches; those before a break come before the error about it."""
    chunk: list[str] = []
    length = 0
    try:
        for line in lines:
            chunk.append(line)
            length += len(line)
            if length >= CHARACTERS:
                yield chunk
                chunk, length = [], 0
    except BROKEN:
        yield chunk
        raise
    yield chunk


def read_header(file: str, lines: list[str], wanted: Collection[str]) -> tuple[str, list[str], int]:
    """Read the delimiter and the names of the columns, and count their lines.

    The right delimiter yields one of the wanted names; if none does, it yields several names.
    """
    found = []
    for delimiter in DELIMITERS:
        reader = csv.reader(lines, delimiter=delimiter)
        try:
            names = [name.strip() for name in next(filter(None, reader), [])]
        except csv.Error as error:
            raise InputError("path", str(error), place=f"{file}: line 1") from error
        found.append((delimiter, names, reader.line_num))
    if not found[0][1]:
        raise InputError("path", "is empty", place=file)
    found = (
        [one for one in found if not {*wanted}.isdisjoint(one[1])]
        or [one for one in found if len(one[1]) > 1]
        or found[:1]
    )
    if any(one[1] != found[0][1] for one in found):
        rule = f"the cells may be separated by {' or '.join(DELIMITERS[one[0]] for one in found)}"
        hint = "name a column of the header by {y_true}"
        raise InputError("path", rule, place=f"{file}: line {found[0][2]}", hint=hint)
    return found[0]


def delimited_tables(
    head: Table, delimiter: str, before: int, chunks: Iterator[list[str]], lines: Iterator[str],
    choose: Choose,
) -> Iterator[Table]:  # fmt: skip
    """Read chunks of delimited text.

    Plain ones are read by pyarrow; a row whose cell in quotes goes on takes more of the lines.
    """
    labels, numbers = choose(head)
    numbered = {name: head.names.index(name) for name in dict.fromkeys([*labels, *numbers])}
    keys = [str(k) for k in range(len(head.names))]
    kinds = {keys[k]: name in labels for name, k in numbered.items()}

    def parse(source: Any, size: int) -> Any:
        import pyarrow as pa
        from pyarrow import csv as reader

        return reader.read_csv(
            source,
            reader.ReadOptions(use_threads=False, block_size=size, column_names=keys),
            reader.ParseOptions(delimiter=delimiter),
            reader.ConvertOptions(
                column_types={k: pa.string() if x else pa.float64() for k, x in kinds.items()},
                include_columns=[*kinds], null_values=[],
            ),
        )  # fmt: skip

    for chunk in chunks:
        used, is_plain = len(chunk), not any('"' in line for line in chunk)
        places: range | NDArray[Any] = range(before + 1, before + used + 1)
        columns = arrow_columns(chunk, [*numbered], parse) if is_plain else None
        if columns is None:
            rows, ends, used = split_rows(chunk, lines, delimiter, len(head.names))
            places = np.array(ends, np.int64) + before
            columns = {
                name: [x if isinstance(x, Fault) else x[k].strip() for x in rows]
                for name, k in numbered.items()
            }
        yield replace(head, columns=columns, places=places)
        before += used


def arrow_columns(
    lines: Sequence[str], names: Sequence[str], parse: Callable[[Any, int], Any]
) -> dict[str, Column] | None:
    """Read columns of lines by pyarrow, one row a line.

    None without it, and where a cell must be looked at.
    """
    try:
        import pyarrow as pa

        data = pa.py_buffer("".join(lines).encode())
        table = parse(pa.BufferReader(data), data.size + 1).combine_chunks()
    except (ImportError, ValueError, LookupError):  # of lines that are not plain
        return None
    if not lines or table.num_rows != len(lines):
        return None
    pairs = zip(names, table.columns, strict=True)
    columns = {name: arrow_column(column.chunk(0)) for name, column in pairs}
    for column in columns.values():
        if column is None or (isinstance(column, np.ndarray) and (column != column).any()):
            return None
    return columns  # type: ignore[return-value]


def split_rows(
    chunk: Sequence[str], lines: Iterator[str], delimiter: str, width: int
) -> tuple[list[list[str] | Fault], list[int], int]:
    """Split lines into rows of cells; cells in quotes may contain ends of lines.

    Rows are cells or the rule that they break; then how many lines each row ends after, and how
    many were used, those of `lines` that the last row took among them. Of a broken row only the
    first line is used, as what follows a quote that nothing closes may be rows.
    """
    rows: list[list[str] | Fault] = []
    ends: list[int] = []
    used, held = 0, [*chunk]

    def lines_from(start: int) -> Iterator[str]:
        yield from (held[k] for k in range(start, len(held)))
        for line in lines:
            held.append(line)
            yield line

    while used < len(held):
        reader = csv.reader(lines_from(used), delimiter=delimiter, strict=True)
        before = used
        try:
            for row in reader:
                used = before + reader.line_num
                if row:
                    rows.append(check_row(row, width))
                    ends.append(used)
                if used >= len(held):
                    break
        except (csv.Error, *BROKEN) as error:
            used += 1
            rows.append(Fault(str(error)))
            ends.append(used)
    return rows, ends, used


def check_row(row: list[str], width: int) -> list[str] | Fault:
    """Return a row as it is, or the rule that it breaks."""
    if len(row) != width:
        return Fault(f"must have {width} cells, as the header has, got {len(row)}")
    if all(map(str.isascii, row)):
        return row
    bad = next(filter(UNDECODED.search, row), None)
    if bad is None:
        return row
    return Fault("is no text in UTF-8", bad.encode("utf-8", "surrogateescape"))


def find_head(
    file: str, first: list[str], chunks: Iterator[list[str]], choose: Choose
) -> tuple[dict[str, Any], list[str]] | None:
    """Find the first object that has columns to choose, and these columns.

    It is among some first lines, to which `first` grows. If none has, the error is about the first.
    """
    tried, error = 0, None
    while tried < len(first):
        for line in first[tried:]:
            row = read_object(line)
            if isinstance(row, dict):
                try:
                    names = [name for name, _ in paths_of(row)]
                    chosen = choose(Table(file, names, {}, unit="line", rows=[row]))
                    return row, [*chain(*chosen)]
                except InputError as fault:
                    error = error or fault
        tried = len(first)
        first += next(chunks, []) if tried < HEAD else []
    if error is not None:
        raise error
    return None


def object_tables(
    file: str, head: dict[str, Any], wanted: list[str], first: list[str],
    chunks: Iterator[list[str]],
) -> Iterator[Table]:  # fmt: skip
    """Read chunks of JSON Lines, by pyarrow where columns are keys of simple values.

    Columns are the keys of the head; a dotted path, such as a.b.0, leads to what is inside. A log
    is one batch.
    """
    paths = dict(paths_of(head))
    names, before, is_one = [*paths], 0, is_log(head)

    def parse(source: Any, size: int) -> Any:
        from pyarrow import json as reader

        options = reader.ReadOptions(use_threads=False, block_size=size)
        return reader.read_json(source, options).select(wanted)

    for lines in [[*first, *chain(*chunks)]] if is_one else chain([first], chunks):
        rows: list[Any] = []
        columns = None
        if not is_one and all(paths[name] == (name,) for name in wanted):
            full = lines if are_objects(lines) else [*filter(str.strip, lines)]
            if full is lines or are_objects(full):
                columns = arrow_columns(full, wanted, parse)
        if columns is None:
            rows = [read_object(line) for line in lines if line.strip()]
            columns = {
                name: [x if isinstance(x, Fault) else follow(x, paths[name]) for x in rows]
                for name in wanted
            }
        yield Table(file, names, columns, places_of(lines, before), "line", rows if is_one else ())
        before += len(lines)


def are_objects(lines: list[str]) -> bool:
    """Return whether each line looks like an object that is not nested deeply.

    Else pyarrow reads on in the next line, and crashes on null and on objects of many levels.
    """
    text = "".join(lines).strip()
    ends = text.count("}\n{") or text.count("}\r\n{")
    if not (text.startswith("{") and text.endswith("}") and ends == len(lines) - 1):
        return False
    return max(map(len, lines)) <= DEPTH or not any(
        line.count("[") + line.count("{") > DEPTH for line in lines
    )


def places_of(lines: Sequence[str], before: int) -> range | NDArray[Any]:
    """Find the numbers of the lines that are not blank."""
    places = range(before + 1, before + len(lines) + 1)
    if all(map(str.strip, lines)):
        return places
    return np.array([k for k, line in zip(places, lines, strict=True) if line.strip()])


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dictionary of an object of JSON, none of whose keys may come twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        (twice, count), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{count} of its values have the key {twice!r}")
    return row


DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def read_object(line: str) -> dict[str, Any] | Fault:
    """Read the object of a line, or return the rule that it breaks."""
    if not line.isascii() and UNDECODED.search(line):
        return Fault("is no text in UTF-8")
    try:
        row = DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        return Fault(f"must hold a JSON object: {error}")
    return row if isinstance(row, dict) else Fault("must hold a JSON object", row)


def paths_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield all paths into a value, with their dotted names."""
    if path:
        yield ".".join(path), path
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    for key in inner if isinstance(inner, dict) else ():
        yield from paths_of(inner[key], (*path, str(key)))


# --- paths --------------------------------------------------------------------------------------


def expand_paths(paths: Sequence[str]) -> list[str]:
    """Find the files of paths, patterns and folders.

    The files of a folder are all below it that end as files of predictions do, in the order of
    their names, but for those of notebooks' copies and unfinished work: they and their folders
    begin with "." or "_".
    """
    found = [file for path in paths for file in files_of(path)]
    places = [identity(file) for file in found]
    for k, place in enumerate(places):
        if place in places[:k]:
            raise InputError("path", "is named twice; its rows would count twice", place=found[k])
    return found


def identity(path: str) -> Any:
    """Return the same for all names of a file: where it is on the disk, or would be."""
    try:
        found = os.stat("/dev/stdin" if path == STANDARD_INPUT else path)
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def files_of(path: str) -> list[str]:
    """Find the files of one path."""
    if os.path.isdir(path):
        endings = (*OTHERS, *BINARY.values())
        files = sorted(
            str(file) for file in Path(path).rglob("*")
            if file.is_file() and file.name.lower().removesuffix(PACKED).endswith(endings)
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        )  # fmt: skip
        rule = f"no file in this folder ends in {', '.join(endings)}"
    elif os.path.exists(path) or not has_magic(path):
        return [path]
    else:
        files = sorted(file for file in glob(path, recursive=True) if os.path.isfile(file))
        rule = "no file has such a name"
    if not files:
        raise InputError("path", rule, place=path)
    return files
