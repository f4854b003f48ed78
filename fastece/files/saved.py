"""Objects saved as JSON, such as monitors, thresholds and fitted maps: one writer, one reader.

A saved object is one JSON object whose entry ``"format"`` names the kind of the object and the
version of its entries, the only one that is read. Numbers have all their digits, nan is null, and
the constants NaN and Infinity, which JSON does not have, are neither written nor read.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from fastece.data.errors import InputError, InputTypeError
from fastece.files.json_objects import unique_keys
from fastece.files.replacing import write_file

Saved = TypeVar("Saved")
# Errors that the content of a damaged or foreign text leads to, while it is parsed and checked.
DAMAGES = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class SavedFormat:
    """Format of the JSON texts that one kind of object is saved in.

    Parameters
    ----------
    noun : str
        The kind of the object in messages: "monitor".
    name : str
        The entry ``"format"`` of the text, with the version of the other entries:
        "fastece.monitor 1".
    """

    noun: str
    name: str

    def to_text(self, content: Mapping[str, Any]) -> str:
        """Write plain values by their names as a JSON text of this format."""
        return json.dumps({"format": self.name, **content}, allow_nan=False)

    def save(self, path: str | PathLike[str], content: Mapping[str, Any]) -> None:
        """Write plain values to a file, which is replaced as a whole if it exists."""
        write_file(path, f"{self.to_text(content)}\n".encode())

    def from_text(
        self, text: str | bytes, make: Callable[[dict[str, Any]], Saved],
        argument: str = "text", place: str | None = None,
    ) -> Saved:  # fmt: skip
        """Make an object from a JSON text of this format.

        Parameters
        ----------
        text : str or bytes
        make : callable
            Makes the object from the values of the text by their names, without the entry
            ``"format"``. It checks them: any ValueError, TypeError or KeyError refuses the text.
        argument, place : str
            The name of the argument that messages show, or the file in its place.

        Raises
        ------
        InputError
            For a text that is damaged, or is of another format or version.
        """
        try:
            return make(self._parse(text))
        except DAMAGES as error:
            rule = f"is no {self.noun} that fastece has saved and can read: {error}"
            raise InputError(argument, rule, place=place) from error

    def load(self, path: str | PathLike[str], make: Callable[[dict[str, Any]], Saved]) -> Saved:
        """Make an object from a file of this format, as `from_text` does from its text."""
        return self.from_text(Path(path).read_bytes(), make, "path", str(path))

    def _parse(self, text: str | bytes) -> dict[str, Any]:
        """Parse a text, check its format, and return its other entries."""
        content = json.loads(text, object_pairs_hook=unique_keys, parse_constant=refuse_constant)
        if not isinstance(content, dict):
            raise InputTypeError("content", "must be an object with named values")
        name = content.pop("format", None)
        if name != self.name:
            raise InputError("format", f"must be {self.name!r}", value=name)
        return content


def refuse_constant(name: str) -> NoReturn:
    """Refuse nan and infinities, which Python's parser reads though JSON has none."""
    raise ValueError(f"{name} is no number")
