"""Output of a command: its page, the files that it writes, its progress and its kernels."""

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastece.data.errors import InputError
from fastece.data.parameters import processors
from fastece.display.documents import Document, Section
from fastece.display.numbers import to_plain
from fastece.display.pages import PICTURE_ENDINGS, Panel, draw_picture, require_matplotlib
from fastece.display.results import Readable
from fastece.files import (
    STANDARD_INPUT,
    check_output,
    ending_of,
    expand_paths,
    file_identity,
    is_device,
    write_file,
)

# Options that name a file to write, and the names of these files on the page.
FILES = {"plot": "picture", "html": "page", "out": "predictions", "save": "model", "state": "state"}
FILES |= {"junit": "JUnit XML", "summary": "summary"}
# Endings of files with pictures.
ENDINGS = {"plot": PICTURE_ENDINGS, "html": (".html", ".htm")}
# Kernels that a command compiles where none are kept, about, beside those of a second process.
KERNELS = {"demo": 28, "report": 28, "warmup": 155}
INPUTS = ("file", "a", "b", "fit", "load", "baseline")
# Takes the name of the next step.
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Page(Readable):
    """A document, the same as values by name, and writers of files by option.

    Remarks on files are shown behind their names.
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

    def write(self, options: Namespace, progress: Progress) -> "Page":
        """Write the files that options name; return the page that lists them."""
        paths = {name: path for name in self.writers if (path := getattr(options, name))}
        for name, path in paths.items():
            progress(f"writing {path}")
            self.writers[name](Path(path))
        facts = {FILES[x]: f"{paths[x]} {self.remarks.get(x, '')}".rstrip() for x in paths}
        sections = [*self.description.sections, *([Section("Files", facts)] if facts else [])]
        description = replace(self.description, sections=sections)
        return replace(self, description=description, values={**self.values, **paths})


def save_picture(path: Path, panels: Sequence[Panel], note: str = "") -> None:
    """Write a page of panels to a file."""
    write_file(path, draw_picture(path, panels, note))


def check_files(options: Namespace) -> None:
    """Check the files that options name for output, before anything is computed."""
    outputs = {x: path for x in FILES if (path := getattr(options, x)) is not None}
    given = [path for name in INPUTS if (path := getattr(options, name)) is not None]
    given += expand_paths([*(options.files or []), *(options.others or [])])
    given += filter(os.path.isfile, ("/dev/stdout", "/dev/stderr"))
    taken = set(map(file_identity, given))
    if STANDARD_INPUT in given and sys.stdin is None:
        raise InputError("path", "is closed", place="standard input")
    for option, path in outputs.items():
        check_file(option, path)
        if file_identity(path) in taken:
            rule = "must be a file that this command does not read, or write already"
            raise InputError(option, rule, value=path)
        if option == "out":
            check_output(Path(path))
        taken.add(file_identity(path))
    if options.safe_csv and not (options.out and ending_of(Path(options.out)) == ".csv"):
        raise InputError("safe_csv", "goes with {out} and a name that ends in .csv or .csv.gz")


def check_file(option: str, path: str) -> None:
    """Check that the file of an option has a known ending, and can be written."""
    file, endings = Path(path), ENDINGS.get(option, ())
    if endings:
        if file.suffix.lower() not in endings:
            rule = f"must end in {', '.join(endings[:-1])} or {endings[-1]}"
            raise InputError(option, rule, value=path)
        require_matplotlib(option)
    elif path == STANDARD_INPUT:
        raise InputError(option, "must be a file, and - is standard input")
    if not file.parent.is_dir():
        raise InputError(option, "must be in a folder that exists", value=str(file.parent))
    place = Path(os.path.realpath(path))
    # What is a link still is one of a circle.
    if place.is_dir() or place.is_symlink() or (file.exists() and not os.access(file, os.W_OK)):
        raise InputError(option, "must be a file that can be written", value=path)
    if not is_device(file) and not os.access(place.parent, os.W_OK):
        raise InputError(option, "must be in a folder that can be written", value=path)


@contextmanager
def show_progress(command: str = "") -> Iterator[Progress]:
    """Show the steps of the block in a line on stderr, if it is a terminal.

    The block gets a function that takes the name of its next step. The package itself gives how
    many tasks of a step are done.
    """
    from fastece.kernels.progress import overwrite_line, progress

    progress.expected = KERNELS.get(command, 0)
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from fastece.resampling import engine

    step = "working"

    def show_step(text: str) -> None:
        nonlocal step
        step = text
        overwrite_line(text)

    def show_tasks(done: int, total: int) -> None:
        overwrite_line(f"{step}: {done} of {total} parts done")

    engine.progress_callbacks.append(show_tasks)
    try:
        yield show_step
    finally:
        engine.progress_callbacks.remove(show_tasks)
        overwrite_line("")


def kept() -> list[str]:
    """List the kernel of each compiled signature that is kept on disk.

    Of kernels that call others, only they are read from the folder, so this process need not know
    all that are there.
    """
    from fastece.kernels import cache

    if cache.FAILURES:
        raise OSError(cache.FAILURES[-1])
    if cache.CACHE_DIRECTORY is None:
        raise OSError("NUMBA_DISABLE_JIT is set, so nothing is compiled")
    return [path.name.partition("-")[0] for path in Path(cache.CACHE_DIRECTORY).glob("*.nbc")]


@contextmanager
def run_beside(code: str) -> Iterator[None]:
    """Run code with the names of `warmup` in a second process beside the block.

    That is done where no kernels are kept yet and two processors are there. Each process reads
    what the other has kept, so all is compiled in half of the time.
    """
    is_first = False
    with suppress(OSError):  # nothing is kept where the folder cannot be read
        is_first = processors() > 1 and not kept()
    if not is_first:
        yield
        return
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FASTECE_QUIET": "1"}
    code = f"from fastece.cli.warmup import *; {code}"
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env}
    with subprocess.Popen([sys.executable, "-P", "-c", code], **quiet) as process:
        try:
            yield
        finally:
            process.kill()
