"""A text that is one value of JSON: an array of objects, or an object of lists.

`read_document` finds such a value, which may go on over many lines, and `read_rows` or
`read_columns` turns it into a batch. Lines of objects are in `json_lines`, and logs of evaluations
in `evaluations`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from json import JSONDecodeError
from typing import Any

from fastece.data.errors import InputError
from fastece.files.batches import Batch, Choose, Header
from fastece.files.cells import Fault, RawColumn
from fastece.files.harness import is_log
from fastece.files.json_lines import MAX_HEAD_LINES, JsonHead, cells_of_objects, head_of_object
from fastece.files.json_objects import DECODER
from fastece.files.lines import LineChunks

# The word for a row of a document in messages.
UNIT = "entry"
# Levels of objects in which lists are looked for.
MAX_DEPTH = 4
# Starts of an object and of an array.
BRACKETS = ("{", "[")


def read_document(chunks: LineChunks) -> Any:
    """Read the whole text as an object or an array of JSON, or return None.

    The text is read to its end only if its first line is the start of a value and no whole one.
    """
    filled = list(islice(filter(str.strip, chunks.head), 2))
    if not filled or not filled[0].lstrip().startswith(BRACKETS):
        return None
    text = filled[0].rstrip()
    try:
        value = DECODER.decode(text)
    except JSONDecodeError as error:
        ends_early = error.pos >= len(text) or error.msg.startswith("Unterminated string")
        return read_all_lines(chunks) if ends_early else None
    except (ValueError, RecursionError):
        return None
    is_whole = len(filled) == 1 and not chunks.has_more()
    return value if is_whole else None


def read_all_lines(chunks: LineChunks) -> Any:
    """Read the text to its end as one value of JSON; return None if it is none."""
    chunks.read_all()
    try:
        return DECODER.decode("".join(chunks.head))
    except (ValueError, RecursionError):
        return None


# --- an array of objects --------------------------------------------------------------------------


def read_rows(file: str, rows: Sequence[Any], choose: Choose) -> Iterator[Batch]:
    """Read an array whose entries are objects, as JSON Lines has them in its lines."""
    head = find_head(file, rows, choose)
    objects = [
        row if isinstance(row, dict) else Fault("must be an object", row, is_of_row=True)
        for row in rows
    ]
    first_object = head.header.first_object
    has_log = first_object is not None and is_log(first_object)
    columns = cells_of_objects(objects, head)
    yield Batch(head.header, columns, range(1, len(rows) + 1), objects if has_log else ())


def find_head(file: str, rows: Sequence[Any], choose: Choose) -> JsonHead:
    """Find the first object with columns to choose; the error is about the first one."""
    first_error = None
    for row in rows[:MAX_HEAD_LINES]:
        if not isinstance(row, dict):
            continue
        try:
            return head_of_object(file, row, UNIT, choose)
        except InputError as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error
    rule = "is a JSON array without objects; each entry must be one, with its columns by name"
    raise InputError("path", rule, place=file)


# --- an object of lists ---------------------------------------------------------------------------


# A column: its entries in a list, or by the keys of their rows.
Entries = list[Any] | dict[str, Any]


def find_lists(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[str, Entries]:
    """Find the columns in an object by their dotted names, also in objects within it."""
    lists: dict[str, Entries] = {}
    for key, entry in value.items():
        path_of_entry = (*path, key)
        if isinstance(entry, list):
            lists[".".join(path_of_entry)] = entry
        elif isinstance(entry, dict) and entry and all(map(str.isdecimal, entry)):
            # A frame of pandas writes a column as an object, with the row as the key.
            lists[".".join(path_of_entry)] = entry
        elif isinstance(entry, dict) and len(path_of_entry) < MAX_DEPTH:
            lists |= find_lists(entry, path_of_entry)
    return lists


def has_list_beside(name: str, lists: Mapping[str, Entries]) -> bool:
    """Decide whether an object has a list of a name, and another list beside it.

    A single list among numbers is a value of one row, and not a column.
    """
    parent = name.rpartition(".")[0]
    others = (other for other in lists if other != name)
    return name in lists and any(other.rpartition(".")[0] == parent for other in others)


def read_columns(file: str, lists: Mapping[str, Entries], choose: Choose) -> Iterator[Batch]:
    """Read an object of columns, whose rows belong together by their keys.

    The entries of a list have their positions as keys. Rows are in the order of the first column.
    """
    header = Header(file, list(lists), unit=UNIT)
    chosen = choose(header)
    names = chosen.names()
    keyed = {name: by_key(lists[name]) for name in names}
    first = keyed[names[0]]
    names = [x for x in names if x not in chosen.kept or keyed[x].keys() == first.keys()]
    for name in names:
        place = f"{file}: column {name}"
        if len(keyed[name]) != len(first):
            rule = f"has {len(keyed[name])} entries, {names[0]} has {len(first)}"
            raise InputError(name, rule, place=place)
        lacking = first.keys() - keyed[name].keys()
        if lacking:
            rule = f"has no entry with the key {min(lacking)!r}, {names[0]} has one"
            raise InputError(name, rule, place=place)
    columns: dict[str, RawColumn] = {name: [keyed[name][key] for key in first] for name in names}
    yield Batch(header, columns, range(1, len(first) + 1))


def by_key(entries: Entries) -> dict[str, Any]:
    """Return the entries of a column by their keys."""
    if isinstance(entries, dict):
        return entries
    return {str(k): entry for k, entry in enumerate(entries)}
