"""The one decorator of all kernels, which sets the options of numba.

``nogil`` lets threads run side by side. ``error_model="numpy"`` spares a division its branch.
``forceinline`` is there because a kernel that calls another was up to three times slower in the
process that compiled it than in those that read it from the cache. ``no_cfunc_wrapper`` saves a
twentieth of the time to compile, and nobody takes a kernel's address. Never use ``parallel=True``:
its thread layers abort when two Python threads call in, or deadlock after a fork. Never use
``fastmath``: results must not depend on how the compiler reorders sums.
"""

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

import numba

from fastece.kernels.cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])

# Every kernel of this process, from the modules that have been imported.
KERNELS: list[Any] = []


def jit(function: F) -> F:
    """Compile a function for each set of types, at the first call that has them.

    Code that is kept on disk is read from there. With ``NUMBA_DISABLE_JIT`` the function is
    returned as it is.
    """
    options: dict[str, Any] = {"nogil": True, "forceinline": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(error_model="numpy", **options)(function)
    if compiled is function:
        return function
    KERNELS.append(compiled)
    if function.__module__.startswith(f"{__package__}."):  # whose sources name the cache
        compiled._cache = KernelCache(compiled)
    compiled.compile = without_interrupts()(without_collector()(compiled.compile))
    return compiled  # type: ignore[no-any-return]


@contextmanager
def without_collector() -> Iterator[None]:
    """Pause the garbage collector while the block runs.

    The objects of a compiler live on, and the collector takes a tenth of its time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Hold back an interrupt until the block ends.

    LLVM asks for machine code through functions of Python, which an exception cannot leave: an
    interrupt there was lost, or ended the process with a segmentation fault. Only the main thread
    is interrupted, and only a handler that is a function of Python raises anything.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    interrupts: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *interrupt: interrupts.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            handler(*interrupts[0])
