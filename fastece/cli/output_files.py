"""Files that options name for output: checked before anything is computed."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastece.data.errors import InputError
from fastece.display.pages import PICTURE_ENDINGS, require_matplotlib, require_page
from fastece.files import STANDARD_INPUT, check_output, is_device

PAGE_ENDINGS = (".html", ".htm")


@dataclass(frozen=True)
class OutputFile:
    """A kind of file that an option names for output.

    Attributes
    ----------
    noun : str
        The word for the file on the page of a command.
    check_name : callable
        Refuses names of other kinds of files; takes the option and the name.
    """

    noun: str
    check_name: Callable[[str, str], None]


def check_picture(option: str, path: str) -> None:
    """Refuse a name that does not end as pictures do, and pictures without matplotlib."""
    require_ending(option, path, PICTURE_ENDINGS)
    require_matplotlib(option)


def check_page(option: str, path: str) -> None:
    """Refuse a name that does not end as pages do, and pages without their packages."""
    require_ending(option, path, PAGE_ENDINGS)
    require_page(option)


def check_data(option: str, path: str) -> None:
    """Refuse the name of standard input, which is no file."""
    if path == STANDARD_INPUT:
        raise InputError(option, "must be a file, and - is standard input")


def check_predictions(option: str, path: str) -> None:
    """Refuse names of standard input, and of formats that have no writer."""
    check_data(option, path)
    check_output(Path(path))


def require_ending(option: str, path: str, endings: tuple[str, ...]) -> None:
    """Refuse a name that has none of these endings."""
    if Path(path).suffix.lower() not in endings:
        rule = f"must end in {', '.join(endings[:-1])} or {endings[-1]}"
        raise InputError(option, rule, value=path)


def check_place(option: str, path: str) -> None:
    """Refuse a file that cannot be written where it is."""
    file = Path(path)
    if not file.parent.is_dir():
        raise InputError(option, "must be in a folder that exists", value=str(file.parent))
    target = Path(os.path.realpath(path))
    # A target that is a link is part of a circle of links.
    cannot_be_file = target.is_dir() or target.is_symlink()
    if cannot_be_file or (file.exists() and not os.access(file, os.W_OK)):
        raise InputError(option, "must be a file that can be written", value=path)
    if not is_device(file) and not os.access(target.parent, os.W_OK):
        raise InputError(option, "must be in a folder that can be written", value=path)


PICTURE = OutputFile("picture", check_picture)
PAGE = OutputFile("page", check_page)
PREDICTIONS = OutputFile("predictions", check_predictions)
MODEL = OutputFile("model", check_data)
STATE = OutputFile("state", check_data)
JUNIT = OutputFile("JUnit XML", check_data)
SUMMARY = OutputFile("summary", check_data)
