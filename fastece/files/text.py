"""Text files: which of them are delimited text, JSON Lines, or a log of attempts."""

from collections.abc import Collection, Iterator

from fastece.data.errors import InputError
from fastece.files.batches import BadColumn, Batch, Choose, Header, refuse_first_fault
from fastece.files.cells import row_fault
from fastece.files.delimited import read_delimited
from fastece.files.evaluations import attempt_batch, find_attempts
from fastece.files.json_lines import find_head, read_json_lines
from fastece.files.json_objects import read_object
from fastece.files.lines import LineChunks, places_of_lines


def read_text(
    file: str, lines: Iterator[str], choose: Choose, header_names: Collection[str]
) -> Iterator[Batch]:
    """Read a text: one object with attempts, JSON Lines, or else delimited text.

    Delimited text begins with a header, in which one of `header_names` occurs; JSON Lines may begin
    with bad lines, as long as an object comes soon.
    """
    chunks = LineChunks(lines)
    start = next(filter(None, map(str.strip, chunks.head)), "")
    is_object = start.startswith("{")
    if start == "{":
        # The object goes on over many lines.
        chunks.read_all()
        start = "".join(chunks.head)
    if is_object:
        attempts = find_attempts(read_object(start))
        if attempts:
            return iter([attempt_batch(file, attempts, choose)])
    is_array = start.startswith("[")
    if is_object or not any(name in start for name in header_names):
        # An array over many lines has objects in its lines, which are no JSON Lines.
        is_long_array = is_array and not start.endswith("]")
        json_head = None if is_long_array else find_head(file, chunks, choose)
        if json_head is not None:
            return read_json_lines(json_head, chunks)
    if is_array:
        rule = "is a JSON array; one object a line (JSON Lines) is read"
        raise InputError("path", rule, place=file)
    if is_object:
        refuse_broken_lines(file, chunks.head)
    return read_delimited(file, chunks, choose, header_names)


def refuse_broken_lines(file: str, lines: list[str]) -> None:
    """Raise the error of the first line that is no object of JSON."""
    rows = [read_object(line) for line in lines if line.strip()]
    batch = Batch(Header(file, [], unit="line"), {}, places_of_lines(lines, 0))
    refuse_first_fault(batch, [BadColumn("path", rows, row_fault)], {})
