"""The progress of a command, in a line on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastece.data.errors import to_printable

# Takes the name of the next step.
Progress = Callable[[str], None]


@contextmanager
def show_progress(n_kernels: int = 0) -> Iterator[Progress]:
    """Show the steps of the block in a line on stderr, if it is a terminal.

    The block gets a function that takes the name of its next step. The tasks of a step that are
    done are shown behind it; without the name of a step no tasks are shown. `n_kernels` is
    the number of kernels that the block is expected to compile.
    """
    from fastece.kernels.progress import overwrite_line, progress

    progress.expected = n_kernels
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from fastece.resampling import engine

    step = ""

    def show_step(text: str) -> None:
        nonlocal step
        step = to_printable(text)
        overwrite_line(step)

    def show_tasks(done: int, total: int) -> None:
        if step:
            overwrite_line(f"{step}: {done} of {total} parts done")

    engine.progress_callbacks.append(show_tasks)
    try:
        yield show_step
    finally:
        engine.progress_callbacks.remove(show_tasks)
        if step:
            overwrite_line("")
