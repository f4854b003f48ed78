"""The message on stderr that tells a user that kernels are being compiled."""

import functools
import multiprocessing
import os
import sys

MESSAGE = (
    "fastece: compiling kernels for the first call, which takes some seconds "
    "(fastece warmup compiles all of them)"
)


@functools.cache
def announce_compiling() -> None:
    """Print the message, once in each process."""
    if is_quiet():
        return
    # On a terminal a command shows its steps in the line that the message takes.
    clearing = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{clearing}{MESSAGE}", file=sys.stderr, flush=True)


def is_quiet() -> bool:
    """Return whether nobody reads this process's stderr, or wants to.

    A worker is silent, since the user waits for the process that started it.
    """
    if multiprocessing.parent_process() is not None:
        return True
    return bool(os.environ.get("FASTECE_QUIET")) or sys.stderr is None
