"""Objects of JSON: read from a text, and followed along dotted paths such as a.b.0."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from fastece.data.errors import InputError

Json = dict[str, Any]


def unique_keys(pairs: list[tuple[str, Any]]) -> Json:
    """Make the dictionary of an object of JSON, none of whose keys may come twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        key, count = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"{count} of its values have the key {key!r}")
    return row


DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def read_object(content: bytes, place: str) -> Json:
    """Read an object of JSON."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        value = content[error.start : error.end]
        raise InputError("path", "is no text in UTF-8", value=value, place=place) from error
    try:
        row = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InputError("path", f"must hold a JSON object: {error}", place=place) from error
    if not isinstance(row, dict):
        raise InputError("path", "must hold a JSON object", value=row, place=place)
    return row


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
