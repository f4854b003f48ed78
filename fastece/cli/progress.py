"""The progress of a command, by tqdm on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastece.data.errors import to_printable

# Takes the name of the next step.
Progress = Callable[[str], None]
# A step, and what share of its tasks is done.
BAR = "{desc} {percentage:3.0f} % |{bar:20}|"


def load_tqdm() -> Any:
    """Import the bar of tqdm, or return None without it."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show the steps of the block in a line on stderr, if it is a terminal.

    The block gets a function that takes the name of its next step. Without tqdm nothing is shown.
    """
    tqdm = load_tqdm() if sys.stderr.isatty() else None
    if tqdm is None:
        yield lambda _: None
        return
    from fastece.resampling import engine

    with tqdm(total=1, bar_format=BAR, leave=False, dynamic_ncols=True, delay=1e-9) as bar:

        def show_step(text: str) -> None:
            bar.reset(total=1)
            bar.set_description_str(to_printable(text))

        def show_tasks(done: int, total: int) -> None:
            bar.total = total
            bar.n = done
            bar.refresh()

        engine.progress_callbacks.append(show_tasks)
        try:
            yield show_step
        finally:
            engine.progress_callbacks.remove(show_tasks)
