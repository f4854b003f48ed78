"""Objects of JSON: read from a text, and followed along dotted paths such as a.b.0."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from fastece.files.cells import Fault

# Bytes that are no UTF-8, as Python keeps them in a text ("surrogateescape").
UNDECODED = re.compile("[\udc80-\udcff]")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dictionary of an object of JSON, none of whose keys may come twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        key, count = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"{count} of its values have the key {key!r}")
    return row


DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def read_object(text: str) -> dict[str, Any] | Fault:
    """Read one object of JSON, or return the rule that the text breaks."""
    if not text.isascii() and UNDECODED.search(text):
        return Fault("is no text in UTF-8", is_of_row=True)
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        return Fault(f"must hold a JSON object: {error}", is_of_row=True)
    if isinstance(value, dict):
        return value
    return Fault("must hold a JSON object", value, is_of_row=True)


def paths_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the dotted names and the keys of all paths into a value."""
    if path:
        yield ".".join(path), path
    entries = dict(enumerate(value)) if isinstance(value, list) else value
    if isinstance(entries, dict):
        for key, entry in entries.items():
            yield from paths_of(entry, (*path, str(key)))


def follow(value: Any, path: Sequence[str]) -> Any:
    """Return the value to which a path leads, or None."""
    for key in path:
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError):
            return None
    return value
