"""The one decorator that owns every numba option, and the place of the disk cache.

Options: ``nogil`` so that threads run side by side; ``error_model="numpy"`` so that a division
needs no branch; ``forceinline`` because a kernel that calls another was up to three times slower in
the process that compiled it than in those that read it from the cache; ``no_cfunc_wrapper`` because
nobody takes a kernel's address, and it is a twentieth of the time to compile. Never
``parallel=True`` (its thread layers abort when two Python threads call in, or deadlock after a
fork), never ``fastmath`` (results must not depend on the compiler's mood).

numba decides whether a cached kernel is fresh by the file of that kernel alone: edit a kernel that
another file calls, and the caller's cache is silently stale. Here the directory is named by a hash
of all kernel sources, of numba's version and of the CPU, so a stale entry is never looked at.
"""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite.binding import get_host_cpu_name
from numba.core import caching

__all__ = ["CACHE_DIRECTORY", "jit"]

F = TypeVar("F", bound=Callable[..., Any])


def cache_key(folder: Path = Path(__file__).parent) -> str:
    """Hash of every kernel source in `folder`, numba's version and options, and the CPU's name."""
    config: Any = numba.config
    options = [numba.__version__, config.BOUNDSCHECK, str(config.OPT), get_host_cpu_name()]
    digest = hashlib.sha256(repr(options).encode())
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def home_cache() -> str:
    """The user's cache folder; RuntimeError for a user without a home."""
    return str(Path("~/.cache").expanduser())


def cache_directory() -> str | None:
    """The writable directory of this key's compiled kernels, or None, with one warning.

    ``FASTECE_CACHE_DIR`` or ``NUMBA_CACHE_DIR`` name another parent than the user's cache folder.
    """
    named = os.environ.get("FASTECE_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    try:
        if not named:
            named = os.path.join(os.environ.get("XDG_CACHE_HOME") or home_cache(), "fastece")
        directory = os.path.join(os.path.abspath(os.path.expanduser(named)), cache_key())
        os.makedirs(directory, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"fastece cannot write its cache of compiled kernels ({error}); they are compiled "
            "anew in every process. Set FASTECE_CACHE_DIR to a writable folder.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return directory


CACHE_DIRECTORY = cache_directory()


FunctionCache: Any = caching.FunctionCache


class ForgivingCache(FunctionCache):  # type: ignore[misc]
    """A disk cache that is never the reason for an error: what cannot be read is compiled anew and
    written over, what cannot be written is not kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code of this signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a truncated pickle may raise anything
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code, if that can be done."""
        with suppress(Exception):
            super().save_overload(sig, data)


def jit(function: F) -> F:
    """Compile `function` at its first call for each set of types, with the package's options."""
    options: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True,
    }  # fmt: skip
    compiled: Any = numba.njit(**options)(function)
    if CACHE_DIRECTORY is None or compiled is function:  # the latter with NUMBA_DISABLE_JIT
        return compiled  # type: ignore[no-any-return]
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_DIRECTORY  # read when a cache is made, once for each kernel
    try:
        cache = ForgivingCache(function)
    finally:
        config.CACHE_DIR = before
    # Where it cannot write, numba goes elsewhere, to folders that are not named by the key.
    if cache.cache_path.startswith(CACHE_DIRECTORY):
        compiled._cache = cache
    return compiled  # type: ignore[no-any-return]
