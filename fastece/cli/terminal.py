"""Progress of a command, in one line of the terminal."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Takes the name of the next step.
Progress = Callable[[str], None]


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show the steps of the block in a line on stderr, if it is a terminal.

    The block gets a function that takes the name of its next step. The package itself gives how
    many tasks of a step are done, and which kernel is about to be compiled.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from fastece.kernels import _jit
    from fastece.resampling import engine

    step = "working"

    def show_step(text: str) -> None:
        nonlocal step
        step = text
        show(text)

    def show_tasks(done: int, total: int) -> None:
        show(f"{step}: {done} of {total} parts done")

    def show_kernel(name: str, done: int) -> None:
        show(f"compiling, the first time only: {done} kernels done, now {name}")

    engine.progress_callbacks.append(show_tasks)
    _jit.progress_callbacks.append(show_kernel)
    try:
        yield show_step
    finally:
        engine.progress_callbacks.remove(show_tasks)
        _jit.progress_callbacks.remove(show_kernel)
        show("")


def show(text: str) -> None:
    """Overwrite the line with a text, cut to the width of the terminal."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)
