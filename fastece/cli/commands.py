"""Commands: their run, the form of their output, and exit codes."""

import errno
import io
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fastece.cli import allow_interrupts
from fastece.cli.options import COMMANDS, REFERENCES, make_parser
from fastece.data.errors import BadArgumentError, InputError, InputWarning

# Options of `fastece study` that belong to simulated models, or to files.
SIMULATED, OF_FILES = ("preset", "holdout", "largest"), ("sizes", "y_true", "y_prob")
# What text of a tuple has beside its numbers, and names of folders have not.
FOLDER = str.maketrans(",", "-", "() ")


def run_command(options: Namespace) -> Any:
    """Run a command, write its files and return its page.

    Its module is imported now, as ``fastece --help`` need not wait for what measures.
    """
    if options.command == "study":  # which shows its progress itself
        return run_study(options)
    from fastece.cli.output import check_files, show_progress

    check_files(options)
    module = import_module(f"fastece.cli.{COMMANDS[options.command].module}")
    allow_interrupts()
    with show_progress(options.command) as progress:
        return module.run(options, progress).write(options, progress)


def run_study(options: Namespace) -> Any:
    """Run ``fastece study``."""
    from fastece import study

    allow_interrupts()
    if options.estimators and os.getcwd() not in sys.path:  # they may be in the working folder
        sys.path.append(os.getcwd())
    names = ("convention", *SIMULATED, *OF_FILES, "draws")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    given |= {"seed": options.seed} if options.seed else {}  # 0 is the usual one
    for name in SIMULATED if options.predictions else OF_FILES:
        if name in given:
            where = "does not go with" if options.predictions else "goes with"
            raise InputError(name, f"{where} --predictions")
    title = "predictions" if options.predictions else given.pop("preset", "quick")
    parts = [f"{name}-{value}".translate(FOLDER) for name, value in given.items()]
    parts += [path.rpartition(":")[2] for path in options.estimators]
    given["estimators"] = tuple(options.estimators)
    files = tuple(options.predictions)
    design = study.Predictions(files, **given) if files else study.preset(title, **given)
    folder = options.out or "-".join(["fastece-study", title, *parts])
    return study.run_study(design, folder, n_jobs=options.jobs)


def main(arguments: Sequence[str] | None) -> int:
    """Run one command, print its page, and return the code of `fastece.cli.main`."""
    open_streams()
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for the words that may come next
        import argcomplete

        argcomplete.autocomplete(parser)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name this terminal cannot show
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = options.form(page := run_command(options))
        except (OSError, MemoryError, ImportError) as error:
            return refuse(str(error) or "not enough memory")
        except BadArgumentError as error:
            error.rename(REFERENCES)
            return refuse(str(error))
    for one in caught:
        if isinstance(one.message, InputWarning):
            one.message.rename(REFERENCES)
    for warning in dict.fromkeys(str(one.message) for one in caught):  # the rows are read often
        print_line(f"fastece: warning: {warning}", sys.stderr)
    fault = print_line(text, sys.stdout)
    # A reader, such as head, that has seen enough is no error.
    if fault is None or isinstance(fault, BrokenPipeError):
        return getattr(page, "exit_code", 0)
    return refuse(f"the page cannot be printed: {fault.strerror}", 1)


def open_streams() -> None:
    """Open standard streams that are closed, so that no file is opened as one of them."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def print_line(text: str, stream: Any) -> OSError | None:
    """Print a text, and return the error if that cannot be done."""
    if stream is None:
        return OSError(errno.EBADF, "standard output is closed")
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # for the end of the process
        return error
    return None


def refuse(message: str, code: int = 2) -> int:
    """Print a message as one line on stderr, and return the exit code."""
    print_line(f"fastece: error: {' '.join(message.split())}", sys.stderr)
    return code
