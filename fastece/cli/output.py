"""Output of a command: its page, and the files that its options name."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section
from fastece.display.numbers import to_plain
from fastece.display.pages import (
    PICTURE_ENDINGS,
    Panel,
    draw_picture,
    require_matplotlib,
    require_page,
)
from fastece.display.results import Readable
from fastece.files import (
    STANDARD_INPUT,
    check_output,
    expand_paths,
    file_identity,
    is_device,
    write_file,
)

# Arguments that name files to read: one, or several.
INPUTS = ("file", "baseline", "fit", "load", "reference")
LISTS_OF_INPUTS = ("models", "predictions")
# Options that name files to write, and the words for these files on a page.
OUTPUTS = {
    "plot": "picture",
    "html": "page",
    "out": "predictions",
    "save": "model",
    "state": "state",
    "junit": "JUnit XML",
    "summary": "summary",
}
PAGE_ENDINGS = (".html", ".htm")
# Standard streams, which are files if a shell has redirected them.
STREAMS = ("/dev/stdout", "/dev/stderr")


@dataclass(frozen=True)
class Page(Readable):
    """The answer of a command.

    Attributes
    ----------
    description : Document
    values : dict
        The same as values by name, for JSON.
    writers : dict
        Functions that write a file, by the option that names it.
    remarks : dict
        Remarks on files, by option, which are shown behind their names.
    exit_code : int
    """

    description: Document
    values: dict[str, Any]
    writers: Mapping[str, Callable[[Path], Any]] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0

    def document(self) -> Document:
        """Return the document."""
        return self.description

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain Python values by name."""
        plain: dict[str, Any] = to_plain(self.values)
        return plain


def write_page(page: Page, options: Namespace) -> str:
    """Write a page in the form that the options name."""
    if options.json:
        return json.dumps(page.to_dict(), allow_nan=False)
    if options.markdown:
        return page.to_markdown().rstrip("\n")
    return str(page)


# --- files that are written -----------------------------------------------------------------------


def save_picture(path: Path, panels: Sequence[Panel], note: str = "") -> None:
    """Write a page of panels to a file."""
    write_file(path, draw_picture(path, panels, note))


def write_files(page: Page, options: Namespace, progress: Progress) -> Page:
    """Write the files that options name; return the page that lists them."""
    paths = {}
    files = {}
    for name, write in page.writers.items():
        path = getattr(options, name)
        if path:
            progress(f"writing {path}")
            write(Path(path))
            paths[name] = path
            files[OUTPUTS[name]] = f"{path} {page.remarks.get(name, '')}".rstrip()
    if not files:
        return page
    sections = [*page.description.sections, Section("Files", files)]
    description = replace(page.description, sections=sections)
    return replace(page, description=description, values={**page.values, **paths})


# --- files that are checked before anything is computed -------------------------------------------


def check_files(options: Namespace) -> None:
    """Check the files that options name for output, before anything is computed.

    No file may be one that the command reads, or writes already.
    """
    inputs = input_paths(options)
    if STANDARD_INPUT in inputs and sys.stdin is None:
        raise InputError("path", "is closed", place="standard input")
    taken = {file_identity(path) for path in [*inputs, *filter(os.path.isfile, STREAMS)]}
    for name in OUTPUTS:
        path = getattr(options, name, None)
        if path is None:
            continue
        check_name(name, path)
        check_place(name, path)
        if file_identity(path) in taken:
            rule = "must be a file that this command does not read, or write already"
            raise InputError(name, rule, value=path)
        taken.add(file_identity(path))


def input_paths(options: Namespace) -> list[str]:
    """List the files that a command reads."""
    values = vars(options)
    paths = [values[name] for name in INPUTS if values.get(name) is not None]
    for name in LISTS_OF_INPUTS:
        paths += values.get(name) or []
    return [*paths, *expand_paths(values.get("files", []))]


def check_name(option: str, path: str) -> None:
    """Refuse a name that an output cannot have, and pictures without their packages."""
    if option == "plot":
        require_ending(option, path, PICTURE_ENDINGS)
        require_matplotlib(option)
    if option == "html":
        require_ending(option, path, PAGE_ENDINGS)
        require_page(option)
    if path == STANDARD_INPUT:
        raise InputError(option, "must be a file, and - is standard input")
    if option == "out":
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
