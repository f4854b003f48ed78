"""Errors about input, whose fields each interface puts into words.

A check raises an `InputError` or `InputTypeError` with the argument, the rule, the index and the
value. Python shows these as they are; the command line and `compat` rename the arguments by
`rename_arguments`, and messages about files have a place instead.
"""

import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np


class Absent(Enum):
    """Stands for a value that an error does not show."""

    ABSENT = "absent"


ABSENT: Any = Absent.ABSENT
# The readers' names of arguments; None where they have no such argument.
Names = Mapping[str, str | None]
# References that are not written as in a call, "labels=": arguments that come by position, the one
# that comes first, and a flag that is to be set.
PYTHON = {name: name for name in ("y_true", "y_prob", "y_prob_a", "y_prob_b", "X", "y")}
PYTHON |= {"first": "y_true", "from_logits": "from_logits=True", "percent": "percent=True"}
PYTHON |= {"soft": "soft=True", "tasks": "setting='tasks'"}
# The values of arguments that a remedy names.
PYTHON |= {"ignore_nan": "ignore_label=nan", "class_axis_1": "class_axis=1"}
# The beginning of a statement that a remedy gives.
PYTHON |= {"keep": "keep ="}
# Options of the command line alone.
PYTHON_LACKS = {"missing": None}
# A remedy, or several of which one is right.
Hint = str | tuple[str, ...]
# Another argument in a rule or a hint.
REFERENCE = re.compile(r"\{(\w+)\}")
# Characters of a value that a message shows.
WIDTH = 80
# Entries of an array that a message shows.
MAX_ENTRIES_SHOWN = 12
# Characters that a terminal obeys, or that move the text around them: controls except the ends of
# lines and tabs, separators of lines, and marks that turn the direction of the text.
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def repr_of(value: Any) -> str:
    """Write a value as in Python, shortened; arrays only by their kind."""
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and math.prod(shape) > MAX_ENTRIES_SHOWN:
        return f"{type(value).__name__} of shape {shape}"
    if isinstance(value, dict) and any(getattr(entry, "shape", ()) for entry in value.values()):
        return f"a dict of {', '.join(map(repr, value))}"[:WIDTH]
    return f"{value.item() if isinstance(value, np.generic) else value!r:.{WIDTH}}"


def to_unicode(text: str) -> str:
    """Write halves of surrogate pairs, which UTF-8 has not, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def to_printable(text: str) -> str:
    """Write characters that a terminal obeys as in Python.

    Names of columns, groups and files may have them, such as the escape character, and could
    rewrite the lines that a person reads.
    """
    return to_unicode(CONTROLS.sub(lambda found: repr(found[0])[1:-1], text))


def refer(name: str, names: Names) -> str | None:
    """Return the reader's name of an argument, or else its name in Python."""
    if name in names:
        return names[name]
    return PYTHON_LACKS[name] if name in PYTHON_LACKS else PYTHON.get(name, f"{name}=")


class BadArgumentError(Exception):
    """An argument that breaks a rule.

    Attributes
    ----------
    argument : str
        Name of the argument, as in Python: "y_prob", "n_bins".
    rule : str
        The rule that is broken: "must lie in [0, 1]". Other arguments are in braces, as in a hint.
    index : tuple of int or None
        Position of the first entry that breaks it.
    value : object
        That entry, or the argument; `ABSENT` where it would not help.
    place : str or None
        The place in a file, shown instead of argument and index: "a.csv: line 7".
    hint : str or tuple of str
        A remedy, or several: ``"pass {labels}"``. One is left out where the reader has no such
        argument.
    rows : int
        How many rows break the rule.
    names : dict
        The reader's names of arguments, where they differ from Python's.
    """

    def __init__(
        self, argument: str, rule: str, *, index: tuple[int, ...] | int | None = None,
        value: Any = ABSENT, place: str | None = None, hint: Hint = "", rows: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(argument, rule)
        self.argument = argument
        self.rule = rule
        self.place = place
        self.hint = hint
        self.index = (index,) if isinstance(index, int) else index
        self.value = value
        self.rows = rows
        self.names: Names = {}

    def __str__(self) -> str:
        text = f"{self.place or self.argument}: {fill(self.rule, self.names)}"
        if self.index is not None and self.place is None:
            text += f"; {self.argument}[{', '.join(map(str, self.index))}] is {repr_of(self.value)}"
        elif self.value is not ABSENT:
            text += f", got {repr_of(self.value)}"
        hints = fill_hints(self.hint, self.names)
        if hints:
            text += f"; {', or '.join(hints)}"
        if self.place and self.rows > 1:  # to fix a file, one has to know how many there are
            n_others = self.rows - 1
            noun = "row" if n_others == 1 else "rows"
            text += f"; and {n_others} more {noun}"
        return to_printable(text)

    @property
    def references(self) -> list[str]:
        """Arguments that the rule and the remedies name in braces."""
        return REFERENCE.findall(" ".join([self.rule, *hints_of(self.hint)]))

    def rename(self, names: Names) -> None:
        """Replace the names of arguments by the reader's, throughout the message."""
        self.argument = names.get(self.argument) or self.argument
        self.names = {**self.names, **names}


class InputError(BadArgumentError, ValueError):
    """Error about a value that breaks a rule; `BadArgumentError` lists the fields."""


class InputTypeError(BadArgumentError, TypeError):
    """Error about a type that breaks a rule; `BadArgumentError` lists the fields."""


class InputWarning(BadArgumentError, UserWarning):  # noqa: N818
    """An argument that may be a mistake; `BadArgumentError` lists the fields."""


class RowsWarning(InputWarning):
    """Rows that may be a mistake, whatever is computed from them."""


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is an interrupt, or was raised by numba because of one.

    Where a compiled function is reading its constants, an interrupt becomes a SystemError.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def fill(text: str, names: Names) -> str:
    """Replace names of arguments in braces by the reader's names."""
    return REFERENCE.sub(lambda match: refer(match[1], names) or match[1], text)


def hints_of(hint: Hint) -> list[str]:
    """Return one or several remedies as a list."""
    return [hint] if isinstance(hint, str) else list(hint)


def fill_hints(hint: Hint, names: Names) -> list[str]:
    """Return the remedies whose arguments the reader has, under their names."""
    return [
        fill(text, names)
        for text in hints_of(hint)
        if text and None not in [refer(name, names) for name in REFERENCE.findall(text)]
    ]


def warn(
    argument: str, rule: str, hint: Hint = "", kind: type[InputWarning] = InputWarning
) -> None:
    """Warn of an argument, at the first frame outside this package."""
    warn_outside(kind(argument, rule, hint=hint))


def warn_outside(warning: Warning | str) -> None:
    """Issue a warning that points at the first frame outside this package."""
    frame = sys._getframe(1)
    level = 2
    skipped = {__name__.partition(".")[0], "functools", "contextlib"}
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in skipped:
        frame = frame.f_back
        level += 1
    warnings.warn(warning, stacklevel=level)


@contextmanager
def rename_indices(rename: Callable[[str, tuple[int, ...]], tuple[int, ...]]) -> Iterator[None]:
    """Name the caller's entries in errors raised by the block, not those made of them.

    `rename` takes an argument and the index of one of its entries.
    """
    try:
        yield
    except BadArgumentError as error:
        if error.index is not None:
            error.index = rename(error.argument, error.index)
        raise


def rename_arguments(names: Names) -> "Renaming":
    """Rename arguments in errors raised by the block.

    A name of None marks an argument that the reader does not have.
    """
    return Renaming(names)


class Renaming:
    """A block whose errors name their arguments as the reader knows them.

    A generator in place of this class takes twice as long, 1 to 2 us of a call of 20.
    """

    def __init__(self, names: Names) -> None:
        self._names = names

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, InputError | InputTypeError):
            error.rename(self._names)
