"""Kernels are tested as they are called: compiled, and with ``NUMBA_DISABLE_JIT=1`` as Python."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _words_wrap_around_in_silence():
    """As plain Python, words of 64 bits are numbers of numpy, which warns of an overflow."""
    with np.errstate(over="ignore"):
        yield
