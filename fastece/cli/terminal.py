"""One line of the terminal that says what a command is doing and how far it is."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Say = Callable[[str], None]


@contextmanager
def progress() -> Iterator[Say]:
    """While the block runs, a line on stderr tells its steps, if stderr is a terminal.

    The block gets a function that takes the name of its next step. How many tasks of a step are
    done, and which kernel is about to be compiled, the package tells by itself.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from fastece.kernels import _jit
    from fastece.resampling import engine

    step = "working"

    def say(text: str) -> None:
        nonlocal step
        step = text
        show(text)

    def tell_tasks(done: int, total: int) -> None:
        show(f"{step}: {done} of {total} parts done")

    def tell_kernel(name: str, done: int) -> None:
        show(f"compiling, the first time only: {done} kernels done, now {name}")

    engine.progress_callbacks.append(tell_tasks)
    kernels = _jit.progress_callbacks
    kernels.append(tell_kernel)
    try:
        yield say
    finally:
        engine.progress_callbacks.remove(tell_tasks)
        kernels.remove(tell_kernel)
        show("")


def show(text: str) -> None:
    """Write over the line, with what fits."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)
