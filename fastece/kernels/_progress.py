"""The line on stderr while kernels are compiled."""

import multiprocessing
import os
import shutil
import sys
import time

# Seconds that are compiled without a word, and those that a kernel takes, about.
PATIENCE, EACH = 1.0, 0.2


def show(text: str) -> None:
    """Overwrite the line with a text, cut to the width of the terminal."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)


class Progress:
    """The number of kernels that this process has compiled, and a line that shows it.

    Attributes
    ----------
    expected : int
        Number of kernels that a command needs, 0 where it is not known.
    """

    def __init__(self) -> None:
        self.expected, self.done, self.seconds = 0, 0, 0.0
        self._starts: list[float] = []
        self._is_shown = False

    def begin(self, name: str) -> None:
        """Count a kernel that is about to be compiled; show it after some time."""
        self.done += 1
        self._starts.append(time.perf_counter())
        seconds = self.seconds + self._starts[-1] - self._starts[0]
        # Others wait for the process that shows it, not for its workers.
        is_worker = multiprocessing.parent_process() is not None
        is_quiet = is_worker or os.environ.get("FASTECE_QUIET") or sys.stderr is None
        if seconds > PATIENCE and not is_quiet:
            about = f"about {EACH * self.expected:.0f} s" if self.expected else "a few seconds"
            text = f"fastece: compiling once, {about}"
            if sys.stderr.isatty():
                total = f" of {self.expected}" if self.done <= self.expected else ""
                show(f"{text}: kernel {self.done}{total}, {name}")
            elif not self._is_shown:
                print(text, file=sys.stderr, flush=True)
            self._is_shown = True

    def end(self) -> None:
        """Add the seconds of a kernel and its callees, and clear the line."""
        start = self._starts.pop() if self._starts else time.perf_counter()
        if not self._starts:
            self.seconds += time.perf_counter() - start
            if self._is_shown and sys.stderr.isatty():
                show("")


progress = Progress()
