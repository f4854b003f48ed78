"""JSON Lines: an object in each line, whose keys and dotted paths are the columns."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fastece.data.errors import InputError
from fastece.files.arrow import read_lines
from fastece.files.batches import Batch, Choose, Header
from fastece.files.cells import Fault, RawColumn
from fastece.files.harness import is_log
from fastece.files.json_objects import follow, paths_of, read_object
from fastece.files.lines import LineChunks, places_of_lines

# Lines among which the first object with the columns to read is looked for.
MAX_HEAD_LINES = 1000
# Levels of an object that pyarrow may read; Python reads deeper ones, or refuses them.
MAX_DEPTH = 500


class JsonHead(NamedTuple):
    """The header of JSON Lines, the chosen columns, and the path of each column."""

    header: Header
    column_names: list[str]
    paths: dict[str, tuple[str, ...]]


def find_head(file: str, chunks: LineChunks, choose: Choose) -> JsonHead | None:
    """Find the first object that has columns to choose.

    It is looked for among some first lines; the first chunk grows until it is found. If objects
    have no such columns, the error is about the first one; without objects, return None.
    """
    n_tried = 0
    first_error = None
    while n_tried < len(chunks.head):
        for line in chunks.head[n_tried:]:
            row = read_object(line)
            if isinstance(row, Fault):
                continue
            try:
                return head_of_object(file, row, "line", choose)
            except InputError as error:
                first_error = first_error or error
        n_tried = len(chunks.head)
        if n_tried < MAX_HEAD_LINES:
            chunks.extend_head()
    if first_error is not None:
        raise first_error
    return None


def head_of_object(file: str, row: dict[str, Any], unit: str, choose: Choose) -> JsonHead:
    """Make the header of rows that are objects, and choose columns, by one of them."""
    # Names may come twice here: a key "a.b" beside a key "b" in "a".
    paths = list(paths_of(row))
    names = [name for name, _ in paths]
    header = Header(file, names, unit=unit, first_object=row)
    return JsonHead(header, choose(header).names(), dict(paths))


def cells_of_objects(objects: Sequence[Any], head: JsonHead) -> dict[str, RawColumn]:
    """Return the chosen columns of rows that are objects, or their faults."""
    return {
        name: [x if isinstance(x, Fault) else follow(x, head.paths[name]) for x in objects]
        for name in head.column_names
    }


def read_json_lines(head: JsonHead, chunks: LineChunks) -> Iterator[Batch]:
    """Read JSON Lines, by pyarrow where columns are keys of simple values.

    A log is one batch, and brings its objects along.
    """
    assert head.header.first_object is not None, "a head has an object"
    has_log = is_log(head.header.first_object)
    if has_log:
        chunks.read_all()
    has_paths = any(head.paths[name] != (name,) for name in head.column_names)
    n_before = 0
    for lines in chunks:
        columns = None if has_log or has_paths else read_plain_lines(lines, head.column_names)
        objects: list[Any] = []
        if columns is None:
            objects = [read_object(line) for line in lines if line.strip()]
            columns = cells_of_objects(objects, head)
        places = places_of_lines(lines, n_before)
        yield Batch(head.header, columns, places, objects if has_log else ())
        n_before += len(lines)


def read_plain_lines(lines: list[str], names: list[str]) -> dict[str, RawColumn] | None:
    """Read columns of objects by pyarrow; return None where it cannot read them."""

    def parse(source: Any, size: int) -> Any:
        from pyarrow import json as arrow_json

        options = arrow_json.ReadOptions(use_threads=False, block_size=size)
        return arrow_json.read_json(source, options).select(names)

    if are_plain_objects(lines):
        return read_lines(lines, names, parse)
    filled_lines = list(filter(str.strip, lines))
    return read_lines(filled_lines, names, parse) if are_plain_objects(filled_lines) else None


def are_plain_objects(lines: Sequence[str]) -> bool:
    """Decide whether each line looks like an object that is not nested deeply.

    Otherwise pyarrow reads on in the next line, and crashes on null and on objects of many levels.
    """
    text = "".join(lines).strip()
    n_ends = text.count("}\n{") or text.count("}\r\n{")
    if not (text.startswith("{") and text.endswith("}") and n_ends == len(lines) - 1):
        return False
    return max(map(len, lines)) <= MAX_DEPTH or not any(
        line.count("[") + line.count("{") > MAX_DEPTH for line in lines
    )
