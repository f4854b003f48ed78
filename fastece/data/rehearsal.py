"""A rehearsal of a call on small data, which finds the kernels that it needs.

Kernels are functions of Python too, and as such they are fast enough for a few rows. So it takes a
part of a second to find out which kernels a call needs, for which types and in which order, before
any of them is compiled.
"""

import pkgutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from fastece import kernels

# Seconds after which a rehearsal ends. Most take a quarter of one, and densities of classes many.
MAX_SECONDS = 1.0


class NeededKernel(NamedTuple):
    """A kernel that a call needs, and the compiler's types of its arguments."""

    kernel: Any
    types: tuple[Any, ...]


def compile_backwards(call: Callable[[], object]) -> None:
    """Compile the kernels that a call on small data needs, about from its end."""
    for kernel, types in from_the_end(rehearse(call)):
        kernel.compile(types)


def rehearse(call: Callable[[], object]) -> list[NeededKernel]:
    """Run a call without compiled kernels, and list the kernels that it needs.

    They are in the order of their first use. Kernels that only other kernels call are compiled with
    these. The last kernels are missing if the data are too small for the call, or if it takes too
    long.
    """
    rehearsal = Rehearsal()
    with rehearsal.plain_kernels(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with suppress(ValueError, TypeError, TimeoutError):
            call()
    return list(rehearsal.needed)


class Rehearsal:
    """Kernels that run as plain Python, and are noted when they are called.

    Attributes
    ----------
    needed : dict of NeededKernel to None
        The kernels that were called from outside of kernels, in the order of their first use.
    """

    def __init__(self) -> None:
        self.needed: dict[NeededKernel, None] = {}
        self._end = time.perf_counter() + MAX_SECONDS
        # Has `is_in_kernel` in threads that run a kernel.
        self._thread = threading.local()

    @contextmanager
    def plain_kernels(self) -> Iterator[None]:
        """Put functions of Python into the places of all kernels while the block runs."""
        places = [
            (module, name, value)
            for module in kernel_modules()
            for name, value in vars(module).items()
            if is_kernel(value)
        ]
        for module, name, kernel in places:
            setattr(module, name, self._plain(kernel))
        try:
            yield
        finally:
            for module, name, kernel in places:
                setattr(module, name, kernel)

    def _plain(self, kernel: Any) -> Callable[..., Any]:
        """Return a function of Python that does the work of a kernel, and notes it."""
        function = kernel.py_func
        parameters = signature(function)

        def run(*arguments: Any, **named: Any) -> Any:
            if time.perf_counter() > self._end:
                raise TimeoutError
            if getattr(self._thread, "is_in_kernel", False):
                return function(*arguments, **named)
            values = parameters.bind(*arguments, **named).args
            # The compiler has types of its own for arguments that are left out.
            if len(values) == len(parameters.parameters):
                types = tuple(map(kernel.typeof_pyval, values))
                self.needed.setdefault(NeededKernel(kernel, types))
            self._thread.is_in_kernel = True
            try:
                return function(*values)
            finally:
                self._thread.is_in_kernel = False

        return run


def from_the_end(needed: list[NeededKernel]) -> list[NeededKernel]:
    """Put kernels into the order in which a second process compiles them.

    First comes the half that the call needs last, its largest kernels first: at the end both
    processes may compile the same kernel, and should lose little. The other half follows backwards.
    """
    counted: set[Any] = set()
    sizes = {each: size_of_code(each.kernel, counted) for each in needed}
    middle = sum(sizes.values()) / 2
    first_half: list[NeededKernel] = []
    second_half: list[NeededKernel] = []
    size_before = 0
    for each, size in sizes.items():
        half = first_half if size_before + size / 2 < middle else second_half
        half.append(each)
        size_before += size
    return sorted(second_half, key=lambda each: -sizes[each]) + first_half[::-1]


def size_of_code(kernel: Any, counted: set[Any]) -> int:
    """Add up the bytes of a kernel and of its callees that are not yet counted."""
    if kernel in counted:
        return 0
    counted.add(kernel)
    function = kernel.py_func
    names = function.__code__.co_names
    callees = [function.__globals__[name] for name in names if name in function.__globals__]
    size = len(function.__code__.co_code)
    return size + sum(size_of_code(x, counted) for x in callees if is_kernel(x))


def is_kernel(value: Any) -> bool:
    """Return whether a value in a module of kernels is one."""
    return hasattr(value, "py_func")


def kernel_modules() -> list[Any]:
    """Import all modules of kernels, which otherwise happens at their first use."""
    return [getattr(kernels, module.name) for module in pkgutil.iter_modules(kernels.__path__)]
