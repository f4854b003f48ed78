"""Objects saved as JSON, such as monitors, thresholds and fitted maps: one writer, one reader.

What is saved has a function `to_dict`, which gives plain values by their names, and `from_dict`,
which checks them and makes the object again. Its text is one JSON object of these values, whose
entry ``"format"`` names the kind of the object and the version of the values. One version is read,
that of this release. Numbers have all their digits, nan is null, and the constants NaN and
Infinity, which JSON does not have, are neither written nor read.
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
        The kind in the entry ``"format"`` of the text: "fastece.monitor".
    version : int
        The version of the other entries, which follows the name.
    """

    noun: str
    name: str
    version: int

    def to_text(self, values: Mapping[str, Any]) -> str:
        """Write plain values by their names as a JSON text of this format."""
        return json.dumps({"format": f"{self.name} {self.version}", **values}, allow_nan=False)

    def save(self, path: str | PathLike[str], values: Mapping[str, Any]) -> None:
        """Write plain values to a file, which is replaced as a whole if it exists."""
        write_file(path, f"{self.to_text(values)}\n".encode())

    def from_text(
        self, text: str | bytes, from_dict: Callable[[dict[str, Any]], Saved],
        argument: str = "text", place: str | None = None,
    ) -> Saved:  # fmt: skip
        """Make an object from a JSON text of this format.

        Parameters
        ----------
        text : str or bytes
        from_dict : callable
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
            values = parse(text)
            found = values.pop("format", None)
            if found == f"{self.name} {self.version}":
                return from_dict(values)
        except DAMAGES as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            rule = f"is no {self.noun} that fastece has saved: {reason}"
            raise InputError(argument, rule, place=place) from error
        version = str(found).removeprefix(f"{self.name} ")
        if version.isdecimal():
            rule = f"is a {self.noun} of version {version}, and this fastece reads {self.version}"
            raise InputError(argument, rule, place=place)
        rule = f"is no {self.noun} that fastece has saved: its format is {found!r:.60}"
        raise InputError(argument, rule, place=place)

    def load(
        self, path: str | PathLike[str], from_dict: Callable[[dict[str, Any]], Saved]
    ) -> Saved:
        """Make an object from a file of this format, as `from_text` does from its text."""
        return self.from_text(Path(path).read_bytes(), from_dict, "path", str(path))


def parse(text: str | bytes) -> dict[str, Any]:
    """Parse the text of a JSON object, no two of whose values have one name."""
    values = json.loads(text, object_pairs_hook=unique_keys, parse_constant=refuse_constant)
    if not isinstance(values, dict):
        raise InputTypeError("content", "must be an object with named values")
    return values


def refuse_constant(name: str) -> NoReturn:
    """Refuse nan and infinities, which Python's parser reads though JSON has none."""
    raise ValueError(f"{name} is no number")
