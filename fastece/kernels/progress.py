"""The line on stderr that tells a user that kernels are being compiled, and for how long."""

import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable

# Seconds of compiling that pass in silence.
PATIENCE = 1.0
# Seconds that it takes to compile one kernel, on average.
SECONDS_PER_KERNEL = 0.3


def overwrite_line(text: str) -> None:
    """Overwrite the line on stderr with a text, cut to the width of the terminal."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)


class Progress:
    """The kernels that this process has compiled so far, and the line that shows them.

    Attributes
    ----------
    expected : int
        Number of kernels that a command needs; 0 where it is not known.
    done : int
        Number of kernels whose compilation has begun.
    seconds : float
        Time spent on compiling.
    watchers : list of callables
        Called before each kernel is compiled.
    """

    def __init__(self) -> None:
        self.expected = 0
        self.done = 0
        self.seconds = 0.0
        self.watchers: list[Callable[[], None]] = []
        # When each compilation that is still running began: a kernel compiles its callees.
        self._starts: list[float] = []
        self._is_shown = False

    def begin(self, name: str) -> None:
        """Count a kernel that is about to be compiled, and show it after some time."""
        self.done += 1
        self._starts.append(time.perf_counter())
        for watcher in tuple(self.watchers):
            watcher()
        seconds = self.seconds + self._starts[-1] - self._starts[0]
        if seconds > PATIENCE and not is_quiet():
            self._show(name)

    def end(self) -> None:
        """Add the seconds of a kernel with its callees, and clear the line."""
        start = self._starts.pop() if self._starts else time.perf_counter()
        if self._starts:
            return
        self.seconds += time.perf_counter() - start
        if self._is_shown and sys.stderr.isatty():
            overwrite_line("")

    def _show(self, name: str) -> None:
        """Write the line: again and again on a terminal, once into a file."""
        duration = "a few seconds"
        if self.expected:
            duration = f"about {SECONDS_PER_KERNEL * self.expected:.0f} s"
        text = f"fastece: compiling once, {duration}"
        if sys.stderr.isatty():
            total = f" of {self.expected}" if self.done <= self.expected else ""
            overwrite_line(f"{text}: kernel {self.done}{total}, {name}")
        elif not self._is_shown:
            print(text, file=sys.stderr, flush=True)
        self._is_shown = True


def is_quiet() -> bool:
    """Return whether nobody reads this process's stderr, or wants to.

    A worker is silent, since the user waits for the process that started it.
    """
    if multiprocessing.parent_process() is not None:
        return True
    return bool(os.environ.get("FASTECE_QUIET")) or sys.stderr is None


progress = Progress()
