"""A second process that compiles kernels which this one will need.

A call names a function that goes through the call's own work from its end, on small data. When this
process compiles its first kernel, another process begins with that function. Each reads the kernels
that the other has kept on disk, so all are compiled in about half of the time, and results are the
same. Where all kernels are at hand no process is started.
"""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from fastece.data.parameters import processors
from fastece.kernels.progress import progress

# With this variable, kernels are compiled in this process alone.
ONE_PROCESS = "FASTECE_ONE_PROCESS"
# The variable that pytest-xdist sets in its workers, which multiprocessing does not know of.
WORKER_OF_TESTS = "PYTEST_XDIST_WORKER"
# The program of the second process. An infinite argument is written as `inf`.
CODE = """
from math import inf
from fastece.data.second_process import follow
follow({directory!r})
from {module} import {name}
{name}(*{arguments!r})
"""
# Held while a second process runs: one serves all threads, and calls inside of other calls.
only_one = Lock()


def compile_beside(
    work: Callable[..., object], describe: Callable[[], tuple[Any, ...]] = tuple
) -> "SecondProcess":
    """Call a function in a second process, if the block compiles kernels.

    Parameters
    ----------
    work : callable
        A function of a module of this package, which compiles the kernels that the block needs
        last.
    describe : callable
        Returns the arguments of the function: numbers, strings and tuples of them. It is called
        when a process is started.
    """
    return SecondProcess(work, describe)


class SecondProcess:
    """A process that is started at most once, and ends with the block that it serves."""

    def __init__(
        self, work: Callable[..., object], describe: Callable[[], tuple[Any, ...]]
    ) -> None:
        self._work = work
        self._describe = describe
        self._process: subprocess.Popen[bytes] | None = None
        # Another thread may compile while the block ends.
        self._guard = Lock()
        self._was_tried = False
        self._has_turn = False

    def __enter__(self) -> None:
        progress.watchers.append(self.start)

    def __exit__(self, *_: object) -> None:
        progress.watchers.remove(self.start)
        self.end()

    def start(self) -> None:
        """Start the process, if there is none yet and it can save time."""
        with self._guard:
            if self._was_tried:
                return
            self._was_tried = True
            if not is_worth_a_process():
                return
            self._has_turn = only_one.acquire(blocking=False)
            if self._has_turn:
                with suppress(OSError):
                    self._process = start_python(self._code())

    def end(self) -> None:
        """End the process, whatever it has compiled, and wait for its end."""
        with self._guard:
            self._was_tried = True
            if self._process is not None:
                with self._process:
                    self._process.kill()
            if self._has_turn:
                only_one.release()

    def _code(self) -> str:
        """Write the code that the process runs."""
        from fastece.kernels import cache

        return CODE.format(
            directory=cache.CACHE_DIRECTORY,
            module=self._work.__module__,
            name=self._work.__name__,
            arguments=self._describe(),
        )


def is_worth_a_process() -> bool:
    """Decide whether a second process is safe here, and its kernels can be read."""
    from fastece.kernels import cache

    is_worker = multiprocessing.parent_process() is not None or WORKER_OF_TESTS in os.environ
    if os.environ.get(ONE_PROCESS) or is_worker or processors() == 1:
        return False
    # The executable of a frozen program, or of one that embeds Python, would be that program.
    is_python = Path(sys.executable or "").name.lower().startswith("python")
    if not is_python or hasattr(sys, "frozen"):
        return False
    directory = cache.CACHE_DIRECTORY
    return directory is not None and not cache.FAILURES and os.access(directory, os.W_OK)


def start_python(code: str) -> subprocess.Popen[bytes]:
    """Start a process that runs code with this one's modules, and prints nothing.

    Its input is a pipe that nobody writes to: it closes when this process ends, however it ends.
    """
    path = os.pathsep.join(map(str, sys.path))
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path, "FASTECE_QUIET": "1", ONE_PROCESS: "1"},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def follow(directory: str) -> None:
    """Let this process end when the one that started it ends.

    It ends at once if it keeps its kernels in another directory, where nobody would look for them.
    """
    from fastece.kernels import cache

    Thread(target=end_with_input, daemon=True).start()
    if directory != cache.CACHE_DIRECTORY:
        sys.exit()


def end_with_input() -> None:
    """Wait for the end of standard input, and end this process at once."""
    os.read(0, 1)
    os._exit(0)
