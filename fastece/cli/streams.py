"""Standard streams: lines that are printed, and streams that are closed."""

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from fastece.cli.arguments import Parser

# Number of the file that is standard error.
STANDARD_ERROR = 2


def open_streams() -> None:
    """Open standard streams that are closed, so that no file is opened as one of them."""
    number = os.open(os.devnull, os.O_RDWR)
    while number <= STANDARD_ERROR:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(STANDARD_ERROR, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal may be unable to show a name.
            stream.reconfigure(errors="backslashreplace")


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


def print_warnings(messages: Sequence[Warning | str], parser: Parser) -> None:
    """Print each warning once, in words of the command line."""
    from fastece.data.errors import InputWarning, to_printable

    for message in messages:
        if isinstance(message, InputWarning):
            parser.name_options(message)
    for text in dict.fromkeys(map(str, messages)):
        print_line(f"fastece: warning: {to_printable(text)}", sys.stderr)


def refuse(message: str, code: int = 2) -> int:
    """Print a message as one line on stderr, and return the exit code."""
    from fastece.data.errors import to_printable

    print_line(f"fastece: error: {to_printable(' '.join(message.split()))}", sys.stderr)
    return code
