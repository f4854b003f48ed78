"""What a command prints: a page of text and the same as plain values, made of facts and tables."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fastece.document.writers import align

# What options write.
FILES = {"plot": "picture", "html": "page", "out": "predictions", "save": "model"}


class Page(NamedTuple):
    """What a command prints: text, or with ``--json`` the same as plain values."""

    text: str
    values: dict[str, Any]

    def with_file(self, option: str, path: str, note: str = "") -> "Page":
        """The page with the name of a file that was written, as an option asked, and a note."""
        said = f"{FILES[option]}: {path}{note and f' ({note})'}"
        return Page(f"{self.text}\n\n{said}", {**self.values, option: path})


def facts(title: str, **values: Any) -> list[str]:
    """A title, and a line for each value."""
    names = (name.replace("_", " ") for name in values)
    return [title, *map("  {:<16} {}".format, names, values.values())]


def noted(values: dict[str, Any]) -> dict[str, str]:
    """How a file was read, where there is something to say about that, as a fact."""
    return {"read_as": values["note"]} if values["note"] else {}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns, the last of which is of texts."""
    return [
        f"  {line}"
        for line in align([head, *rows], [i in (0, len(head) - 1) for i in range(len(head))])
    ]


def level_of(values: dict[str, Any]) -> list[str]:
    """The head of a column of intervals, if there are any."""
    return [f"{100 * values['confidence_level']:g} % interval"] if values["n_resamples"] else []


def ends_of(values: dict[str, Any], form: str = ".5f") -> str:
    """An interval as text."""
    return f"[{values['low']:{form}}, {values['high']:{form}}]"
