"""The one decorator that sets all options of numba.

Options: ``nogil`` so that threads run side by side; ``error_model="numpy"`` so that a division
needs no branch; ``forceinline`` because a kernel that calls another was up to three times slower in
the process that compiled it than in those that read it from the cache; ``no_cfunc_wrapper`` because
nobody takes a kernel's address, and it is a twentieth of the time to compile. Never
``parallel=True`` (its thread layers abort when two Python threads call in, or deadlock after a
fork), never ``fastmath`` (results must not depend on the compiler's mood).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from fastece.kernels import cache

F = TypeVar("F", bound=Callable[..., Any])

# Every kernel of this process, as its module is imported.
KERNELS: list[Any] = []
# Called with the name of each kernel that this process is about to compile (not of those that are
# read from disk), and with how many it has compiled.
progress_callbacks: list[Callable[[str, int], None]] = []
compiled_names: list[str] = []


def report_compilation(name: str) -> None:
    """Pass the name of a kernel about to be compiled to the callbacks."""
    for callback in tuple(progress_callbacks):  # one may take itself off
        callback(name, len(compiled_names))
    compiled_names.append(name)


def jit(function: F) -> F:
    """Compile `function` at its first call for each set of types."""
    options: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True,
    }  # fmt: skip
    compiled: Any = numba.njit(**options)(function)
    if compiled is function:  # with NUMBA_DISABLE_JIT
        return function
    KERNELS.append(compiled)
    # A closure's variables are in no hash. And modules are imported when they are first needed, or
    # again after an edit: what is not of the sources that named the folder does not belong there.
    is_hashed = function.__closure__ is None and cache.source_times() == cache.SOURCES
    directory = cache.CACHE_DIRECTORY if is_hashed else None
    if cache.IS_TESTED:
        compiled._cache = cache.KernelCache(function, directory, report_compilation)
    return compiled  # type: ignore[no-any-return]
