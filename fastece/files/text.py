"""Text files: which of them are delimited text, JSON Lines, a document of JSON, or a log."""

from collections.abc import Collection, Iterator
from typing import Any

from fastece.data.errors import InputError
from fastece.files.batches import BadColumn, Batch, Choose, Header, refuse_first_fault
from fastece.files.cells import row_fault
from fastece.files.delimited import read_delimited
from fastece.files.evaluations import attempt_batch, find_attempts
from fastece.files.harness import is_log
from fastece.files.json_documents import (
    find_lists,
    has_list_beside,
    read_columns,
    read_document,
    read_rows,
)
from fastece.files.json_lines import find_head, read_json_lines
from fastece.files.json_objects import read_object
from fastece.files.lines import LineChunks, places_of_lines


def read_text(
    file: str, lines: Iterator[str], choose: Choose, header_names: Collection[str]
) -> Iterator[Batch]:
    """Read a text: a document of JSON, JSON Lines, or else delimited text.

    Delimited text begins with a header, in which one of `header_names` occurs; JSON Lines may begin
    with bad lines, as long as an object comes soon.
    """
    chunks = LineChunks(lines)
    document = read_document(chunks)
    if document is not None:
        batches = read_json_document(file, document, choose, header_names)
        if batches is not None:
            return batches
    start = next(filter(None, map(str.strip, chunks.head)), "")
    is_object = start.startswith("{")
    if is_object or not any(name in start for name in header_names):
        json_head = find_head(file, chunks, choose)
        if json_head is not None:
            return read_json_lines(json_head, chunks)
    if is_object:
        refuse_broken_lines(file, chunks.head)
    if start.startswith(("[{", "[[")) or start == "[":
        rule = "is a JSON array that is cut off or broken"
        raise InputError("path", rule, place=file)
    return read_delimited(file, chunks, choose, header_names)


def read_json_document(
    file: str, document: Any, choose: Choose, header_names: Collection[str]
) -> Iterator[Batch] | None:
    """Read one value of JSON: a log, an array of objects, or an object of lists.

    Any other object is a line of JSON Lines: None.
    """
    attempts = find_attempts(document)
    if attempts:
        return iter([attempt_batch(file, attempts, choose)])
    if isinstance(document, list):
        return read_rows(file, document, choose)
    lists = find_lists(document)
    has_labels = any(has_list_beside(name, lists) for name in header_names)
    has_row = any(name in document for name in header_names) or is_log(document)
    if has_labels or (len(lists) > 1 and not has_row):
        return read_columns(file, lists, choose)
    return None


def refuse_broken_lines(file: str, lines: list[str]) -> None:
    """Raise the error of the first line that is no object of JSON."""
    rows = [read_object(line) for line in lines if line.strip()]
    batch = Batch(Header(file, [], unit="line"), {}, places_of_lines(lines, 0))
    refuse_first_fault(batch, [BadColumn("path", rows, row_fault)], {})
