"""The command line: ``fastece report FILE``, ``compare A B`` and other commands.

Each command has a module of its name, which registers its options and runs it; what several share
is in `options`, `inputs` and `output`. Nothing is computed here: a command turns a file and options
into a call of Python, and its result into a page. Begin with `check`, a whole command on one
screen, and `commands`, which runs it.
"""

import os
import signal
import sys
from collections.abc import Sequence

# Exit code after an interrupt.
INTERRUPTED = 130
# Number of the file that is standard error.
STANDARD_ERROR = 2
# An entry for each interrupt that came.
interrupts: list[bool] = []


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
    is_process = arguments is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_process:
        signal.signal(signal.SIGINT, stop)
    try:
        from fastece.cli import commands

        return commands.main(arguments)
    except BaseException as error:
        # Within a lock of the standard library, or compiled code, it becomes another error.
        if not interrupts and KeyboardInterrupt not in (type(error), type(error.__context__)):
            raise
        print("fastece: interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        if is_process:
            # All is done, and the end of Python would print a traceback.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def stop(*_: object) -> None:
    """End the process at once, as imports swallow interrupts, or wrap them in errors."""
    os.write(STANDARD_ERROR, b"fastece: interrupted\n")
    os._exit(INTERRUPTED)


def allow_interrupts() -> None:
    """Let an interrupt be an exception again, after which files are removed."""
    if signal.getsignal(signal.SIGINT) is stop:
        signal.signal(signal.SIGINT, interrupt)


def interrupt(*_: object) -> None:
    """Raise an interrupt, and note that it came."""
    interrupts.append(True)
    raise KeyboardInterrupt
