"""Output of a command: its page, and the files that its options name."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastece.cli.options import Command
from fastece.cli.output_files import check_place
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section
from fastece.display.numbers import to_plain
from fastece.display.pages import Panel, draw_picture
from fastece.display.results import Readable
from fastece.files import STANDARD_INPUT, expand_paths, file_identity, write_file

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


def save_picture(path: Path, panels: Sequence[Panel], note: str = "") -> None:
    """Write a page of panels to a file."""
    write_file(path, draw_picture(path, panels, note))


def write_files(page: Page, command: Command, options: Namespace, progress: Progress) -> Page:
    """Write the files that options name; return the page that lists them."""
    nouns = {option.attribute: option.writes.noun for option in command.options if option.writes}
    paths = {}
    files = {}
    for name, write in page.writers.items():
        path = getattr(options, name)
        if path:
            progress(f"writing {path}")
            write(Path(path))
            paths[name] = path
            files[nouns[name]] = f"{path} {page.remarks.get(name, '')}".rstrip()
    if not files:
        return page
    sections = [*page.description.sections, Section("Files", files)]
    description = replace(page.description, sections=sections)
    return replace(page, description=description, values={**page.values, **paths})


def check_files(command: Command, options: Namespace) -> None:
    """Check the files that options name for output, before anything is computed.

    No file may be one that the command reads, or writes already.
    """
    inputs = input_paths(command, options)
    if STANDARD_INPUT in inputs and sys.stdin is None:
        raise InputError("path", "is closed", place="standard input")
    taken = {file_identity(path) for path in [*inputs, *filter(os.path.isfile, STREAMS)]}
    for option in command.options:
        path = getattr(options, option.attribute)
        if option.writes is None or path is None:
            continue
        option.writes.check_name(option.argument, path)
        check_place(option.argument, path)
        if file_identity(path) in taken:
            rule = "must be a file that this command does not read, or write already"
            raise InputError(option.argument, rule, value=path)
        taken.add(file_identity(path))


def input_paths(command: Command, options: Namespace) -> list[str]:
    """List the files that a command reads."""
    paths: list[str | None] = []
    for file in command.files:
        value = getattr(options, file.attribute)
        paths += expand_paths(value) if file.is_list else [value]
    paths += [getattr(options, option.attribute) for option in command.options if option.reads_file]
    return [path for path in paths if path is not None]
