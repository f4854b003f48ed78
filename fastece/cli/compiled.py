"""Compiled kernels of a command: kept ones, shipped ones, and a process that compiles more."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fastece.data.parameters import processors


def kept_kernels() -> list[str]:
    """List the kernel of each compiled signature that is kept on disk.

    The folder has a file for each, those that other kernels call among them, whichever process
    compiled it.

    Raises
    ------
    OSError
        If no kernels can be kept.
    """
    from fastece.kernels import cache

    if cache.FAILURES:
        raise OSError(cache.FAILURES[-1])
    if cache.CACHE_DIRECTORY is None:
        raise OSError("NUMBA_DISABLE_JIT is set, so nothing is compiled")
    return [path.name.partition("-")[0] for path in Path(cache.CACHE_DIRECTORY).glob("*.nbc")]


def shipped_kernels() -> list[str]:
    """List the kernel of each compiled signature that the package came with."""
    from fastece.kernels import archive

    names = frozenset() if archive.ARCHIVE is None else archive.ARCHIVE.names
    return [name.partition("-")[0] for name in names]


def close_archive() -> None:
    """Leave the kernels alone that the package came with, and compile them instead."""
    from fastece.kernels import archive

    if archive.ARCHIVE is not None:
        archive.ARCHIVE.close()


def is_worth_two_processes() -> bool:
    """Decide whether kernels are to be compiled in two processes: there are none yet."""
    # Where the folder cannot be read nothing is kept, and the second process would not help.
    with suppress(OSError):
        return processors() > 1 and not kept_kernels() and not shipped_kernels()
    return False


@contextmanager
def compile_beside(call: str) -> Iterator[None]:
    """Call a function of `warmup` in a second process, if that saves time.

    Each process reads the kernels that the other has kept, so all are compiled in half of the time.
    """
    if not is_worth_two_processes():
        yield
        return
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FASTECE_QUIET": "1"}
    code = f"from fastece.cli.warmup import *; {call}"
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env}
    with subprocess.Popen([sys.executable, "-P", "-c", code], **quiet) as process:
        try:
            yield
        finally:
            process.kill()
