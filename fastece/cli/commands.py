"""The run of a command: its parser, its page in the chosen form, and exit codes."""

import errno
import io
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from fastece.cli import STANDARD_ERROR, allow_interrupts
from fastece.cli.output import check_files, write_files
from fastece.cli.parser import make_parser, parse_words
from fastece.cli.progress import show_progress
from fastece.cli.registry import argument_names, load_command
from fastece.data.errors import BadArgumentError, InputWarning, to_printable

# By this variable a shell asks for the words that may come next, and by this one gives the line.
COMPLETION = "_ARGCOMPLETE"
COMPLETED_LINE = "COMP_LINE"


def main(arguments: Sequence[str] | None) -> int:
    """Run one command, print its page, and return the code of `fastece.cli.main`."""
    open_streams()
    if COMPLETION in os.environ:
        complete_words(os.environ.get(COMPLETED_LINE, ""))
    words = sys.argv[1:] if arguments is None else arguments
    options = parse_words(words)
    if options is None:
        return 0
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal may be unable to show a name.
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            page = run_command(options)
            text = options.form.write(page)
        except (OSError, MemoryError, ImportError) as error:
            return refuse(describe_failure(error))
        except BadArgumentError as error:
            error.rename(argument_names())
            return refuse(str(error))
    print_warnings([caught.message for caught in caught_warnings])
    fault = print_line(text, sys.stdout)
    # A reader, such as head, that has seen enough is no error.
    if fault is None or isinstance(fault, BrokenPipeError):
        return getattr(page, "exit_code", 0)
    return refuse(f"the page cannot be printed: {fault.strerror}", 1)


def complete_words(line: str) -> None:
    """Print the words that may come next in a line for a shell, and end the process."""
    import argcomplete

    argcomplete.autocomplete(make_parser(line.split()))


def run_command(options: Namespace) -> Any:
    """Run a command, write its files and return its page."""
    command = load_command(options.command)
    check_files(command, options)
    allow_interrupts()
    with show_progress() as progress:
        return write_files(command.run(options, progress), command, options, progress)


# --- standard streams -----------------------------------------------------------------------------


def open_streams() -> None:
    """Open standard streams that are closed, so that no file is opened as one of them."""
    number = os.open(os.devnull, os.O_RDWR)
    while number <= STANDARD_ERROR:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(STANDARD_ERROR, "w", closefd=False)  # noqa: SIM115


def describe_failure(error: Exception) -> str:
    """Write an error of the system, or of an import, without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {os.fspath(error.filename)}"
    return str(error) or "not enough memory"


def print_warnings(messages: Sequence[Warning | str]) -> None:
    """Print each warning once, in words of the command line."""
    for message in messages:
        if isinstance(message, InputWarning):
            message.rename(argument_names())
    for text in dict.fromkeys(map(str, messages)):
        print_line(f"fastece: warning: {to_printable(text)}", sys.stderr)


def print_line(text: str, stream: Any) -> OSError | None:
    """Print a text, and return the error if that cannot be done."""
    if stream is None:
        return OSError(errno.EBADF, "standard output is closed")
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        # Python flushes the stream again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None


def refuse(message: str, code: int = 2) -> int:
    """Print a message as one line on stderr, and return the exit code."""
    print_line(f"fastece: error: {to_printable(' '.join(message.split()))}", sys.stderr)
    return code
