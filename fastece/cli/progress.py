"""The progress of a command, in a line on a terminal."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastece.data.errors import to_printable

# Takes the name of the next step.
Progress = Callable[[str], None]


def overwrite_line(text: str) -> None:
    """Overwrite the line on stderr with a text, cut to the width of the terminal."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show the steps of the block in a line on stderr, if it is a terminal.

    The block gets a function that takes the name of its next step. The tasks of a step that are
    done are shown behind it; without the name of a step no tasks are shown.
    """
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
