"""The forms of a kernel: compiled, and as plain Python."""

import os
from functools import cache
from types import FunctionType

import numpy as np

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


@cache
def plain_form(kernel):
    """The kernel as plain Python, with all that it calls: a word that compiled code returns is a
    Python int, which has lost its type."""
    function = getattr(kernel, "py_func", kernel)
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        if hasattr(scope.get(name), "py_func"):
            scope[name] = plain_form(scope[name])
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


def forms(kernel):
    """The kernel as it is called, and as plain Python; 64-bit words wrap around in silence."""

    def plain(*arguments):
        with np.errstate(over="ignore"):
            return plain_form(kernel)(*arguments)

    return [plain] if PLAIN else [kernel, plain]
