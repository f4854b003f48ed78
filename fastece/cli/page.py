"""The output of a command: a document, and the same as plain values."""

from dataclasses import dataclass, replace
from typing import Any

from fastece.document.document import Document, Section
from fastece.document.plain import to_plain
from fastece.document.result import Readable

# What options write.
TITLE = "Files"
FILES = {"plot": "picture", "html": "page", "out": "predictions", "save": "model"}


@dataclass(frozen=True)
class Page(Readable):
    """A document, and its content as values by name."""

    description: Document
    values: dict[str, Any]

    def document(self) -> Document:
        """Return the document."""
        return self.description

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain Python values by name."""
        plain: dict[str, Any] = to_plain(self.values)
        return plain

    def with_file(self, option: str, path: str, note: str = "") -> "Page":
        """Return the page with the name of a file that an option wrote, and a note."""
        known = {FILES[option]: f"{path} ({note})" if note else path}
        others = [x for x in self.description.sections if x.title != TITLE]
        for section in self.description.sections[len(others) :]:
            known = {**section.facts, **known}
        sections = [*others, Section(TITLE, known)]
        return Page(replace(self.description, sections=sections), {**self.values, option: path})


def noted(note: str) -> dict[str, str]:
    """Return the fact of how a file was read, if there is a note on it."""
    return {"read as": note} if note else {}
