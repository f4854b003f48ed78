"""Kernels compiled side by side: another process compiles those that are needed later.

Compiling holds a lock of numba, so threads do not help. A process of its own keeps what it compiles
in the same folder (`cache`), where this one finds it.
"""

import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock
from typing import Any

from fastece.kernels._jit import WATCHERS
from fastece.kernels.cache import CACHE_DIRECTORY, FAILURES

__all__ = ["compile_ahead", "helper", "is_possible", "processors"]

OFF = "FASTECE_COMPILE_AHEAD"
# What the other process runs: it imports what this one would, and is told what to call.
SCRIPT = """
import gc, pickle, sys
gc.disable()  # compiling makes many objects, and few to be collected: 7 %
sys.path[:] = pickle.load(sys.stdin.buffer)
function, args = pickle.load(sys.stdin.buffer)
function(*args)
"""
# One other process at a time.
ONLY_ONE = Lock()


def processors() -> int:
    """Number of processors that this process may use, of those that the machine has."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_possible() -> bool:
    """Whether another process can help: with a processor, a Python, a folder and locks to share.

    Not from processes that others have started (they are as many as they should be), not in tests,
    and not with ``FASTECE_COMPILE_AHEAD=0``.
    """
    return (
        os.name == "posix"
        and os.environ.get(OFF) != "0"
        and processors() > 1
        and CACHE_DIRECTORY is not None
        and not FAILURES
        and not getattr(sys, "frozen", False)
        and os.path.basename(sys.executable or "").startswith("python")
        and multiprocessing.parent_process() is None
        and "pytest" not in sys.modules
    )


@contextmanager
def helper(function: Callable[..., Any], *args: Any) -> Iterator[None]:
    """Let another process call ``function(*args)`` while the block runs; it says nothing."""
    with tempfile.TemporaryFile() as told:
        pickle.dump(sys.path, told)
        pickle.dump((function, args), told)
        told.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", SCRIPT], stdin=told, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, OFF: "0"},
        )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def compile_ahead(function: Callable[..., Any], *args: Any) -> Iterator[None]:
    """While the block runs, let another process call ``function(*args)``, so that it compiles the
    kernels that the block needs last. It begins when the block compiles its first kernel: never,
    where all are in the cache. It ends with the block.

    Parameters
    ----------
    function : callable
        Of a module, so that it can be pickled, as its arguments.
    """
    if not is_possible() or not ONLY_ONE.acquire(blocking=False):
        yield
        return
    with ExitStack() as helpers:
        helpers.callback(ONLY_ONE.release)

        def watch(name: str, count: int) -> None:  # noqa: ARG001
            stop_watching()
            with suppress(Exception):  # such as an estimator that cannot be pickled
                helpers.enter_context(helper(function, *args))

        def stop_watching() -> None:
            if watch in WATCHERS:
                WATCHERS.remove(watch)

        helpers.callback(stop_watching)
        WATCHERS.append(watch)
        yield
