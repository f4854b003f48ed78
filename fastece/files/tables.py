"""Files as tables: columns by name, in batches of rows.

A `Source` gives the unpacked bytes of a file. Tables of arrays and of JSON are here, those that
pyarrow reads in `arrow_tables`; `formats` chooses one. Nothing here knows what columns mean.
"""

import io
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from gzip import GzipFile
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from fastece.data.errors import BadArgumentError, InputError
from fastece.files.cells import Column, select_cells
from fastece.files.json_objects import Json, follow, paths_of, read_object
from fastece.files.paths import FILE_ENDINGS, GZIP_ENDING, STANDARD_INPUT, is_piped

# Rows of a batch, and numbers in it, at most: a few megabytes.
MAX_ROWS = 2**17
MAX_NUMBERS = 2**19
# Bytes of text that are parsed at once.
BLOCK_SIZE = 2**20
# Bytes in which the format of a file is looked for, and the header of a text.
START_SIZE = 2**20
# Levels of objects in which a document of JSON may have lists.
MAX_DEPTH = 4
# Lines among which the first object is looked for.
MAX_HEAD_LINES = 1000
# First bytes of formats.
GZIP_START = b"\x1f\x8b"
ZSTANDARD_START = b"\x28\xb5\x2f\xfd"
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
NUMPY_START = b"\x93NUMPY"
# Of a file of Arrow; a stream begins with another mark.
ARROW_FILE_START = b"ARROW1"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Names of an archive's files: arrays of numpy, attempts of inspect, and copies that macOS makes.
ARRAY_ENDING = ".npy"
SAMPLES = "samples/"
MAC_FOLDER = "__MACOSX/"
INSTALL_PYARROW = "pip install 'fastece[files]'"

# Some columns of a batch of rows, by their names.
Columns = dict[str, Column]


class Table(ABC):
    """Rows of a file, whose columns are read by their names.

    Attributes
    ----------
    file : str
        Name of the file for messages.
    names : list of str
        Names of the columns.
    unit : str
        The word for a row in messages.
    note : str
        How a log is read; "" for other files.
    needs_all_rows : bool
        Whether its rows belong together, as those of some logs do, so that it is no stream.
    has_shares : bool
        Whether the probabilities of a log are known to be shares, also where percents are expected.
    from_logits : bool
        Whether the probabilities of a log are logits.
    group_column : str
        The column of a log whose equal values belong together; "" without one.
    on_bad_row : callable or None
        Takes the error of a row that is none, which is left out then; None: it is raised.
    """

    file: str
    names: list[str]
    unit = "row"
    note = ""
    needs_all_rows = False
    has_shares = False
    from_logits = False
    group_column = ""
    on_bad_row: Callable[[InputError], None] | None = None

    @abstractmethod
    def batches(self, names: Sequence[str], numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield the rows in their order, with the columns of these names.

        Texts of the columns `numbers` may come as the numbers that they are.
        """

    def row_name(self, index: int) -> str:
        """Name a row for messages, by its position from 0 on."""
        return f"{self.unit} {index + 1}"

    def names_to_keep(self) -> list[str]:
        """List the columns that are written with the table; no name comes twice."""
        return [name for name, n in Counter(self.names).items() if n == 1]

    def without_holders(self, names: Sequence[str]) -> list[str]:
        """Return names without objects whose entries are columns themselves."""
        return list(names)


def rows_per_batch(numbers_per_row: int) -> int:
    """Return the number of rows of a batch, given the numbers in a row."""
    return max(1, min(MAX_ROWS, MAX_NUMBERS // max(numbers_per_row, 1)))


@contextmanager
def refusing_broken(file: str) -> Iterator[None]:
    """Turn the errors of libraries that parse a file into errors about the file.

    Errors of the disk, which have a number, and a lack of memory stay as they are. What pyarrow
    reads says how it is installed where it is missing.
    """
    try:
        yield
    except (BadArgumentError, MemoryError):
        raise
    except ImportError as error:
        rule = "needs pyarrow, without which only JSON, NPZ and NPY are read"
        raise InputError("path", rule, place=file, hint=INSTALL_PYARROW) from error
    except Exception as error:
        if getattr(error, "errno", None) is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError("path", f"cannot be read: {reason}", place=file) from error


# --- bytes ----------------------------------------------------------------------------------------


class Source:
    """The unpacked bytes of a file, which can be read again and again.

    A pipe can be read once only, so its bytes are kept.
    """

    def __init__(self, path: str) -> None:
        self.name = name_of(path)
        self._path = path
        self._content: bytes | None = None
        if path == STANDARD_INPUT:
            self._content = sys.stdin.buffer.read()
        elif is_piped(path):
            self._content = Path(path).read_bytes()
        with self.opened() as file:
            self.start: bytes = file.read(START_SIZE)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the unpacked bytes at their start."""
        with ExitStack() as stack:
            if self._content is None:
                file: Any = stack.enter_context(open(self._path, "rb"))
            else:
                file = io.BufferedReader(io.BytesIO(self._content))
            yield unpack(file, stack)

    @contextmanager
    def opened_text(self) -> Iterator[io.TextIOWrapper]:
        """Open the bytes as text, in which the ends of lines are as they were."""
        with (
            self.opened() as file,
            io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="") as text,
        ):
            yield text

    def for_library(self) -> Any:
        """Return the path of a file that is not packed, or else its bytes."""
        if self._content is None:
            with open(self._path, "rb") as file:
                is_packed = file.read(len(NUMPY_START)) != self.start[: len(NUMPY_START)]
            if not is_packed:
                return self._path
        with self.opened() as file:
            return io.BytesIO(file.read())


def name_of(path: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if path == STANDARD_INPUT else path


def unpack(file: Any, stack: ExitStack) -> Any:
    """Open the content of a packed file, or of an archive of one table.

    What is opened is closed with the stack.
    """
    start = file.peek(len(ZIP_STARTS[0]))
    content: Any = None
    if start.startswith(ZIP_STARTS):
        content = open_only_table(file)
    elif start.startswith(GZIP_START):
        content = GzipFile(fileobj=file)
    elif start.startswith(ZSTANDARD_START):
        content = open_zstandard(file)
    if content is None:
        return file
    return unpack(io.BufferedReader(stack.enter_context(content)), stack)


def open_zstandard(file: Any) -> Any:
    """Open the content of a file that zstandard has packed."""
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")


def open_only_table(file: Any) -> Any:
    """Open the only table of an archive, if it is no array; otherwise return None."""
    archive = ZipFile(file)
    names = names_in(archive)
    is_columns = any(name.endswith(ARRAY_ENDING) or name.startswith(SAMPLES) for name in names)
    tables = [x for x in names if x.lower().removesuffix(GZIP_ENDING).endswith(FILE_ENDINGS)]
    only = names if len(names) == 1 else tables
    if len(only) == 1 and not is_columns:
        return archive.open(only[0])
    file.seek(0)
    return None


def names_in(archive: ZipFile) -> list[str]:
    """Return the names of an archive's files."""
    names = archive.namelist()
    return [name for name in names if not name.endswith("/") and not name.startswith(MAC_FOLDER)]


# --- JSON -----------------------------------------------------------------------------------------


# The number of a line, entry or attempt, and its object.
NumberedRow = tuple[int, Json]
# Takes a block of lines, the names of columns, and those of numbers among them.
ParseLines = Callable[[bytes, Sequence[str], Collection[str]], Columns | None]


class JsonObjects(Table):
    """Rows that are objects; dotted names such as a.b.0 lead into objects and lists.

    Parameters
    ----------
    file, unit : str
    read_rows : callable
        Yields the number and the object of each row, from the first on.
    """

    def __init__(
        self, file: str, unit: str, read_rows: Callable[[], Iterator[NumberedRow]]
    ) -> None:
        self.file = file
        self.unit = unit
        self.read_rows = read_rows
        self.paths: dict[str, tuple[str, ...]] = {}
        # The numbers of the rows of each batch.
        self._numbers: list[Sequence[int]] = []

    def find_names(self) -> None:
        """Find the columns by the first object, or by several if bad rows are left out."""
        n_tried = 1 if self.on_bad_row is None else MAX_HEAD_LINES
        paths = [pair for _, row in islice(self.read_rows(), n_tried) for pair in paths_of(row)]
        self.paths = dict(paths)
        # Names may come twice in an object: a key "a.b" beside a key "b" in "a".
        self.names = [name for name, _ in paths] if n_tried == 1 else list(self.paths)

    def batches(self, names: Sequence[str], _numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield the rows in their order."""
        self._numbers = []
        rows = self.read_rows()
        while batch := list(islice(rows, MAX_ROWS)):
            yield self.make_columns(batch, names)

    def make_columns(self, rows: Sequence[NumberedRow], names: Sequence[str]) -> Columns:
        """Make columns of rows, and keep the numbers of these."""
        self._numbers.append([number for number, _ in rows])
        return {name: [follow(row, self.paths[name]) for _, row in rows] for name in names}

    def row_name(self, index: int) -> str:
        """Name a row."""
        for numbers in self._numbers:
            if index < len(numbers):
                return f"{self.unit} {numbers[index]}"
            index -= len(numbers)
        return f"{self.unit} after the last"

    def names_to_keep(self) -> list[str]:
        """List the keys of an object, whose values may be objects themselves."""
        return [name for name in super().names_to_keep() if len(self.paths[name]) == 1]

    def without_holders(self, names: Sequence[str]) -> list[str]:
        """Return names without objects and lists."""
        holders = {".".join(path[:-1]) for path in self.paths.values()}
        return [name for name in names if name not in holders]


class JsonLines(JsonObjects):
    """An object in each line.

    Parameters
    ----------
    source : Source
    parse : callable or None
        Reads columns of a block of lines at once, or returns None if its lines are not simple.
    """

    def __init__(self, source: Source, parse: ParseLines | None) -> None:
        super().__init__(source.name, "line", self._read_lines)
        self._source = source
        self._parse = parse

    def batches(self, names: Sequence[str], numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield the rows in their order."""
        self._numbers = []
        parse = self._parse
        if any(self.paths[name] != (name,) for name in names):
            parse = None
        for n_before, block in self._read_blocks():
            columns = None if parse is None else parse(block, names, numbers)
            if columns is not None:
                self._numbers.append(range(n_before + 1, n_before + count_lines(block) + 1))
                yield columns
            elif rows := list(self._read_block(n_before, block)):
                yield self.make_columns(rows, names)

    def _read_blocks(self) -> Iterator[tuple[int, bytes]]:
        """Read whole lines, and the number of lines before them."""
        with self._source.opened() as file:
            n_before = 0
            while block := file.read(BLOCK_SIZE):
                block += file.readline()
                if not n_before:
                    block = block.removeprefix(BYTE_ORDER_MARK)
                yield n_before, block
                n_before += count_lines(block)

    def _read_lines(self) -> Iterator[NumberedRow]:
        """Read the object in each line."""
        for n_before, block in self._read_blocks():
            yield from self._read_block(n_before, block)

    def _read_block(self, n_before: int, block: bytes) -> Iterator[NumberedRow]:
        """Read the object in each line of a block that is not blank."""
        for number, line in enumerate(block.splitlines(), n_before + 1):
            if not line.strip():
                continue
            try:
                yield number, read_object(line, f"{self.file}: line {number}")
            except InputError as error:
                if self.on_bad_row is None:
                    raise
                self.on_bad_row(error)


def is_text(content: bytes) -> bool:
    """Decide whether bytes are text in UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def count_lines(block: bytes) -> int:
    """Count the lines of a text that ends with the end of a line, or of the file."""
    return len(block.splitlines())


def read_entries(file: str, entries: Sequence[Any]) -> Iterator[NumberedRow]:
    """Read the entries of an array, each of which is an object."""
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            place = f"{file}: entry {number}"
            raise InputError("path", "must be an object", value=entry, place=place)
        yield number, entry


def find_lists(value: Json, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Find the columns in an object by their dotted names, also in objects within it."""
    lists: dict[str, Any] = {}
    for key, entry in value.items():
        path_of_entry = (*path, key)
        if isinstance(entry, list):
            lists[".".join(path_of_entry)] = entry
        elif isinstance(entry, dict) and entry and all(map(str.isdecimal, entry)):
            # pandas writes a column as an object, with the row as the key.
            lists[".".join(path_of_entry)] = entry
        elif isinstance(entry, dict) and len(path_of_entry) < MAX_DEPTH:
            lists |= find_lists(entry, path_of_entry)
    return lists


# --- columns in memory ----------------------------------------------------------------------------


class ColumnTable(Table):
    """Columns in memory: arrays of numpy, lists, or objects with the rows as keys."""

    def __init__(
        self, file: str, names: list[str], columns: Mapping[str, Any], unit: str = "row"
    ) -> None:
        self.file = file
        self.names = names
        self.unit = unit
        self._columns = columns
        self._n_rows: int | None = None

    def batches(self, names: Sequence[str], _numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield the rows in their order."""
        columns: dict[str, Any] = {name: self._columns[name] for name in names}
        if any(isinstance(column, dict) for column in columns.values()):
            columns = self._by_key(columns)
        self._n_rows = n_rows = self._count_rows(columns)
        n_numbers = sum(np.size(column[:1]) for column in columns.values())
        step = rows_per_batch(n_numbers)
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            yield {name: select_cells(column, rows) for name, column in columns.items()}

    def names_to_keep(self) -> list[str]:
        """List the columns that have as many rows as the columns that were read."""
        names = super().names_to_keep()
        return [name for name in names if length_of(self._columns[name]) == self._n_rows]

    def _by_key(self, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return columns in the order of the first one's keys, or positions."""
        keyed = {name: by_key(column) for name, column in columns.items()}
        first_name, first = next(iter(keyed.items()))
        for name, entries in keyed.items():
            lacking = first.keys() - entries.keys()
            if lacking and len(entries) == len(first):
                rule = f"has no entry with the key {min(lacking)!r}, {first_name} has one"
                raise InputError(name, rule, place=f"{self.file}: column {name}")
        return {
            name: [entries[key] for key in first] if len(entries) == len(first) else [*entries]
            for name, entries in keyed.items()
        }

    def _count_rows(self, columns: Mapping[str, Any]) -> int:
        """Refuse columns of another length than the first one, and return its length."""
        first_name, first = next(iter(columns.items()))
        for name, column in columns.items():
            place = f"{self.file}: column {name}"
            length = length_of(column)
            if isinstance(column, np.ndarray) and (length is None or length != length_of(first)):
                first_shape = getattr(first, "shape", ())
                expected = f"{first_name} has {first_shape}" if first_shape else "must be a column"
                rule = f"has shape {column.shape}, {expected}"
                raise InputError(name, rule, place=place)
            if length != length_of(first):
                rule = f"has {length} entries, {first_name} has {len(first)}"
                raise InputError(name, rule, place=place)
        return len(first)


def length_of(column: Any) -> int | None:
    """Return the number of rows of a column; None for a single number."""
    return None if np.shape(column) == () and isinstance(column, np.ndarray) else len(column)


def by_key(entries: Any) -> dict[str, Any]:
    """Return the entries of a column by their keys."""
    if isinstance(entries, dict):
        return entries
    return {str(k): entry for k, entry in enumerate(entries)}
