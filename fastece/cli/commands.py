"""Commands: their run, the form of their output, and exit codes."""

import io
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fastece.checks.errors import BadArgumentError, InputError, InputWarning
from fastece.cli.options import COMMANDS, REFERENCES, make_parser

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
    with show_progress() as progress:
        module = import_module(f"fastece.cli.{COMMANDS[options.command].module}")
        return module.run(options, progress).write(options, progress)


def run_study(options: Namespace) -> Any:
    """Run ``fastece study``."""
    from fastece import study

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default the one of the process, and return the exit code.

    Returns
    -------
    int
        The exit code: 0, or 2 for bad input, with one line on stderr, or 130 if it was interrupted.
    """
    options = make_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name this terminal cannot show
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = options.form(run_command(options))
        except KeyboardInterrupt:
            print("fastece: interrupted", file=sys.stderr)
            return 130
        except (OSError, MemoryError, ImportError) as error:
            return refuse(str(error) or "not enough memory")
        except BadArgumentError as error:
            error.rename(REFERENCES)
            return refuse(str(error))
    for one in caught:
        if isinstance(one.message, InputWarning):
            one.message.rename(REFERENCES)
    for warning in dict.fromkeys(str(one.message) for one in caught):  # the rows are read often
        print(f"fastece: warning: {warning}", file=sys.stderr)
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader, such as head, that has seen enough is no error.
        return 0 if isinstance(error, BrokenPipeError) else refuse(str(error))
    return 0


def refuse(message: str) -> int:
    """Print a message as one line on stderr, and return the exit code of bad input."""
    print(f"fastece: error: {' '.join(message.split())}", file=sys.stderr)
    return 2
