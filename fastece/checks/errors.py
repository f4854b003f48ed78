"""Errors about input as fields, which Python, the command line and `compat` put into words."""

from collections.abc import Callable
from enum import Enum
from string import Formatter
from typing import Any

import numpy as np


class Absent(Enum):
    """Stands for a value that an error does not show."""

    ABSENT = "absent"


ABSENT: Any = Absent.ABSENT
# Arguments that are True or False: a reader who is told of one is to set it.
FLAGS = {"from_logits"}
# Characters of a value that a message shows.
WIDTH = 80


def repr_of(value: Any) -> str:
    """Write a value as in Python, shortened."""
    return f"{value.item() if isinstance(value, np.generic) else value!r:.{WIDTH}}"


def python_name(argument: str) -> str:
    """Write a reference to another argument as in a call in Python."""
    return f"{argument}=True" if argument in FLAGS else f"{argument}="


class BadArgumentError(Exception):
    """An argument that breaks a rule.

    Attributes
    ----------
    argument : str
        Name of the argument, as in Python: "y_prob", "n_bins".
    rule : str
        What must hold: "must be in [0, 1]".
    index : tuple of int or None
        Position of the first entry that breaks it.
    value : object
        That entry, or the argument; `ABSENT` where it says nothing.
    place : str or None
        Where in a file: "scores.csv, line 7".
    hint : str
        What to do instead. Other arguments are named in braces: ``"pass {labels}"``.
    """

    def __init__(
        self, argument: str, rule: str, *, index: tuple[int, ...] | int | None = None,
        value: Any = ABSENT, place: str | None = None, hint: str = "",
    ) -> None:  # fmt: skip
        super().__init__(argument, rule)
        self.argument, self.rule, self.place, self.hint = argument, rule, place, hint
        self.index = (index,) if isinstance(index, int) else index
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self.__dict__)

    def __str__(self) -> str:
        return self.render(self.argument)

    def render(self, argument: str, refer: Callable[[str], str | None] = python_name) -> str:
        """Put the error into words.

        Parameters
        ----------
        argument : str
            What the reader calls the argument.
        refer : callable
            Gives what the reader calls another argument, or None if there is no such argument: then
            the hint is left out.
        """
        text = f"{argument}: {self.rule}"
        if self.index is not None:
            text += f"; {argument}[{', '.join(map(str, self.index))}] is {repr_of(self.value)}"
        elif self.value is not ABSENT:
            text += f", got {repr_of(self.value)}"
        names = {name: refer(name) for _, name, _, _ in Formatter().parse(self.hint) if name}
        if self.hint and None not in names.values():
            text += f"; {self.hint.format(**names)}"
        return text if self.place is None else f"{self.place}: {text}"


def rebuild(kind: type[BadArgumentError], fields: dict[str, Any]) -> BadArgumentError:
    """Make an error again that came from another process."""
    error = kind(fields["argument"], fields["rule"])
    error.__dict__.update(fields)
    return error


class InputError(BadArgumentError, ValueError):
    """An argument has a value that breaks a rule: see `BadArgumentError` for its fields."""


class InputTypeError(BadArgumentError, TypeError):
    """An argument has a type that breaks a rule: see `BadArgumentError` for its fields."""
