"""JSON Lines: one row a line, which is an object."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, Any

from numpy.typing import NDArray

from fastece.files.columns import Columns, by_column
from fastece.files.table import refuse_rows, shown


class Objects(Columns):
    """Rows that are objects. Columns are the keys of the first one; a dotted path, such as a.b.0,
    leads to what is inside. `before`: how many lines of the file are before these."""

    endings: tuple[str, ...] = (".jsonl", ".ndjson", ".json")

    def __init__(self, lines: Sequence[str], before: int = 0) -> None:
        numbered = enumerate(lines, before + 1)
        found = [(k, read_object(line)) for k, line in numbered if line.strip()]
        refuse_rows((f"line {k}", row) for k, row in found if isinstance(row, str))
        self.rows = [row for _, row in found if isinstance(row, dict)]
        self.paths = dict(paths_of(self.rows[0]))
        lines_of = [k for k, _ in found]
        column = partial(cells_of, self.rows, self.paths)  # no circle of references
        super().__init__([*self.paths], column, lambda index: f"line {lines_of[index]}")

    def write(self, file: IO[bytes], names: Sequence[str], values: NDArray[Any]) -> None:
        """Write the table, as `Table` says; the values of all other keys stay what they are."""
        new = [(self.paths[x], column.tolist()) for x, column in by_column(names, values).items()]
        keys = follow(self.rows[0], new[0][0])  # of the numbers, where cells are objects
        for index, row in enumerate(self.rows):
            for path, cells in new:
                cell = cells[index]
                if isinstance(keys, dict):
                    cell = {**follow(row, path), **dict(zip(keys, cell, strict=True))}
                row = put(row, path, cell)
            # What is no text in Unicode, half of a surrogate pair, was an escape and becomes one.
            text = json.dumps(row, ensure_ascii=False)
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def cells_of(
    rows: Sequence[dict[str, Any]], paths: dict[str, tuple[str, ...]], name: str
) -> list[Any]:
    """What a path leads to in each row, None where it leads nowhere."""
    path = paths[name]
    if len(path) == 1:
        return [row.get(name) for row in rows]
    return [follow(row, path) for row in rows]


def read_object(line: str) -> dict[str, Any] | str:
    """The object of a line, or the rule that it breaks."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"must hold a JSON object: {error}"
    return row if isinstance(row, dict) else f"must hold a JSON object, got {shown(row)}"


def paths_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """All paths into a value by their dotted names."""
    if path:
        yield ".".join(path), path
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    for key in inner if isinstance(inner, dict) else ():
        yield from paths_of(inner[key], (*path, str(key)))


def follow(value: Any, path: Sequence[str]) -> Any:
    """What a path leads to, None if nowhere."""
    for key in path:
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError):
            return None
    return value


def put(value: Any, path: Sequence[str], new: Any) -> Any:
    """A value with something new in the place to which a path leads."""
    if not path:
        return new
    key = int(path[0]) if isinstance(value, list) else path[0]
    changed = value.copy()
    changed[key] = put(value[key], path[1:], new)
    return changed
