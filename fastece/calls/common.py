"""The most common call: two plain arrays and fixed bins, straight to kernels."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fastece import kernels
from fastece.data.reading import TOLERANCE
from fastece.estimators.binned.single import CHUNK_SCORES
from fastece.kernels import GAP
from fastece.typing import F64

# Entries that are read in one piece, for a quarter of a second at most: an interrupt waits so long.
MAX_ENTRIES = 2**24
# Arrays of these types are read as they lie in memory.
NAMES = ("binary", "confidence")
GAP_ALONE, NO_SUMS = np.array([GAP]), np.empty((0, 0))
F8, F4, I8, U1, BOOL = (np.dtype(name) for name in ("f8", "f4", "i8", "u1", "?"))


def common_arguments(estimator: Any, y: Any, p: Any, setting: Any) -> tuple[Any, ...] | None:
    """Return the arguments of a common call as kernels take them, else None."""
    if (bins := estimator.common) is None:
        return None
    if type(y) is not np.ndarray or type(p) is not np.ndarray:
        return None
    is_vector = p.ndim == 2 and p.shape[1] > 1
    if not (is_vector or p.ndim == 1) or not (p.dtype is F8 or p.dtype is F4):
        return None
    y = y.view(U1) if y.dtype is BOOL else y
    if not (y.dtype is I8 or y.dtype is U1) or y.shape != p.shape[:1] or not p.size:
        return None
    if not isinstance(setting, str) or setting not in ("auto", NAMES[is_vector]):
        return None
    if not p.flags.carray or not y.flags.carray:
        return None
    if is_vector and p.size > MAX_ENTRIES and CHUNK_SCORES * p.shape[1] > MAX_ENTRIES:
        return None
    if y.size <= CHUNK_SCORES:  # types of others are changed piece by piece
        if is_vector:
            y = y.astype(I8, copy=False)
        elif p.dtype is F4:
            p = p.astype(F8)
    return p, y, *bins, TOLERANCE


def common_value(estimator: Any, y: Any, p: Any, setting: Any) -> float:
    """Compute the value of a common call; nan for other calls and bad input."""
    arguments = common_arguments(estimator, y, p, setting)
    if arguments is None:
        return math.nan
    if y.size <= CHUNK_SCORES:
        hard_error: Any = kernels.moments.hard_error
        return float(hard_error(*arguments, GAP_ALONE, NO_SUMS))
    sums = sum_pieces(*arguments, moments=[GAP])
    return math.nan if sums is None else float(np.abs(sums[0]).sum() / y.size)


def common_sums(estimator: Any, y: Any, p: Any, moments: Sequence[int]) -> F64 | None:
    """Add up moments (Q, B) of the bins of a common call; None of another."""
    arguments = common_arguments(estimator, y, p, "auto")
    if arguments is None or y.size > CHUNK_SCORES:
        return None if arguments is None else sum_pieces(*arguments, moments=moments)
    sums, hard_error = np.empty((len(moments), arguments[4])), cast(Any, kernels.moments.hard_error)
    return None if math.isnan(hard_error(*arguments, np.array(moments), sums)) else sums


def sum_pieces(p: Any, y: Any, *bins: Any, moments: Sequence[int]) -> F64 | None:
    """Add up moments (Q, B) of bins, one piece of the scores after another."""
    kinds, part = np.array(moments), np.empty((len(moments), bins[2]))
    dtypes = (F8, y.dtype) if p.ndim == 1 else (p.dtype, I8)
    sums, hard_error = np.zeros_like(part), cast(Any, kernels.moments.hard_error)
    for start in range(0, y.size, CHUNK_SCORES):
        rows = slice(start, start + CHUNK_SCORES)
        arrays = (x[rows].astype(t, copy=False) for x, t in zip((p, y), dtypes, strict=True))
        if math.isnan(hard_error(*arrays, *bins, kinds, part)):
            return None
        sums += part
    return sums
