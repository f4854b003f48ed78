"""Compiled kernels: numba only, pure, no checks, no input or output.

Each module is imported at its first use (``kernels.moments.cell_moments``), so that numba is
imported only when something is to be computed: 0.2 s that ``import fastece`` does not pay.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from fastece.kernels.types import F64

if TYPE_CHECKING:
    from fastece.kernels import (  # noqa: F401, I001
        arithmetic, bayes, binning, cells, density, errors, moments, pieces, quantiles, reading,
        replicates, resampling, vectors,
    )  # fmt: skip

# Weights where every row counts 1: with None, each kernel would be compiled twice.
NO_WEIGHTS = np.empty(0)
# What is added up in bins, of each row: weight times gap, which is hit less score; weight; weight
# times score; times hit; times weight; and, where every row counts 1, how many rows and how many
# hits there are, in one number.
GAP, WEIGHT, SCORE, HITS, SQUARE, COUNTS = MOMENTS = tuple(range(6))
# What is averaged over rows: squared distance from the outcome, or probability of what came true.
DISTANCE, CHANCE = 0, 1
# A bin with less than this share of the weight is empty to a norm that divides by its weight.
EMPTY = 1e-9
# A hit in `COUNTS`: sums are exact, and rows and hits can be told apart, of fewer rows than this.
PACK = 2.0**26
# Replicates of a block: the multiplicities of one row, a byte each, fill half a cache line.
REPLICATES = 32


def weights(v: F64 | None) -> F64:
    """Return weights, or None, as kernels take them: empty where every row counts 1."""
    return NO_WEIGHTS if v is None else v


def __getattr__(name: str) -> Any:
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
