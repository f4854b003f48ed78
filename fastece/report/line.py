"""Lines of the lists in a report."""

from dataclasses import dataclass, fields
from typing import Any

from fastece.display.results import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Line(Record):
    """A line of a list in a report, read as ``line.value`` or as ``line["value"]``."""

    def __getitem__(self, name: str) -> Any:
        """Return a value by its name."""
        if name not in [field.name for field in fields(self)]:
            raise KeyError(name)
        return getattr(self, name)
