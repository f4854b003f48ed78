"""The command line: ``fastece report FILE``, ``compare A B`` and other commands.

Each command has a module of its name: its arguments (`make_parser`), its call of Python and its
page (`run`). Arguments that several share are functions of `arguments`. Nothing is computed here.
Begin with `check`, a whole command on one screen.
"""

import os
import signal
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fastece.cli.arguments import Parser
from fastece.cli.streams import open_streams, print_line, print_warnings, refuse

# Exit code after an interrupt.
INTERRUPTED = 130
# By this variable a shell asks for the words that may come next, and by this one gives the line.
COMPLETION = "_ARGCOMPLETE"
COMPLETED_LINE = "COMP_LINE"
# Only the module of the command that is typed is imported, as it imports the rooms that measure.
COMMANDS = {
    "report": "calibration errors, scores and diagram of a file",
    "compare": "differences between models on the same rows",
    "recalibrate": "recalibrate predictions, and whether it helped",
    "demo": "a report on predictions that ship with fastece",
    "curve": "observed frequency at any score, with intervals",
    "validate": "validation of a risk model: O/E, slope, net benefit",
    "plan": "sample size for an interval's width or a test's power",
    "monitor": "an alarm when predictions stop being calibrated",
    "check": "a gate: is the calibration error below a bound?",
    "threshold": "the score from which predictions may act alone",
    "warmup": "compile everything ahead, such as for an image",
    "info": "versions, processor and compiled kernels in use",
    "study": "compare estimators on simulated models or on files",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default the one of the process, and return the exit code.

    Returns
    -------
    int
        The exit code: 0, or 1 if the page cannot be printed, or 2 for bad input, with one line on
        stderr, or 130 if it was interrupted. ``fastece check`` also returns 1 if it fails, and 3 if
        it cannot tell, ``fastece monitor`` 1 on an alarm, and ``fastece threshold`` 1 if no score
        can be promised.
    """
    try:
        return run_words(sys.argv[1:] if arguments is None else arguments)
    except (KeyboardInterrupt, SystemError) as error:
        from fastece.data.errors import is_interrupt

        if not is_interrupt(error):
            raise
        print("fastece: interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        if arguments is None:
            # All is done, and the end of Python would print a traceback.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_words(words: Sequence[str]) -> int:
    """Run the command of a line, print its page, and return the exit code."""
    open_streams()
    if COMPLETION in os.environ:
        complete_words(os.environ.get(COMPLETED_LINE, ""))
    if not words or words[0] not in COMMANDS:
        return show_commands(words)
    command = import_module(f"fastece.cli.{words[0]}")
    parser: Parser = command.make_parser()
    # Files may stand before and after options.
    options = parser.parse_intermixed_args(words[1:])

    from fastece.cli.output import write_page
    from fastece.data.errors import BadArgumentError

    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            page = run_command(command, options)
            text = write_page(page, options)
        except (OSError, MemoryError, ImportError) as error:
            return refuse(describe_failure(error))
        except BadArgumentError as error:
            parser.name_options(error)
            return refuse(str(error))
    print_warnings([caught.message for caught in caught_warnings], parser)
    fault = print_line(text, sys.stdout)
    # A reader, such as head, that has seen enough is no error.
    if fault is None or isinstance(fault, BrokenPipeError):
        return int(page.exit_code)
    return refuse(f"the page cannot be printed: {fault.strerror}", 1)


def run_command(command: Any, options: Namespace) -> Any:
    """Run a command, write the files that its options name, and return its page."""
    from fastece.cli.output import check_files, write_files
    from fastece.cli.progress import show_progress

    check_files(options)
    with show_progress() as progress:
        return write_files(command.run(options, progress), options, progress)


def show_commands(words: Sequence[str]) -> int:
    """Print help or the version, or refuse an unknown command."""
    parser = make_parser()
    parser.parse_args(words)
    parser.print_help()
    return 0


def make_parser(typed: str | None = None) -> Parser:
    """Make the parser of the first word.

    Only the command that is typed has its arguments.
    """
    from fastece import __version__

    parser = Parser("", "Calibration errors of classifiers.", usage="fastece COMMAND ...")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", parser_class=Parser)
    for name, summary in COMMANDS.items():
        parents = []
        if name == typed:
            parents.append(import_module(f"fastece.cli.{name}").make_parser())
        commands.add_parser(name, help=summary, parents=parents, conflict_handler="resolve")
    parser.output.add_argument(
        "--version", action="version", version=f"fastece {__version__}", help="print the version"
    )
    return parser


def complete_words(line: str) -> None:
    """Print the words that may come next in a line for a shell, and end the process."""
    import argcomplete

    typed = next((word for word in line.split() if word in COMMANDS), None)
    argcomplete.autocomplete(make_parser(typed))


def describe_failure(error: Exception) -> str:
    """Write an error of the system, or of an import, without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {os.fspath(error.filename)}"
    return str(error) or "not enough memory"
