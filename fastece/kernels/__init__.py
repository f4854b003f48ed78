"""Compiled kernels: loops over rows and cells, without checks of arguments, files or output.

A loop that is too slow in numpy goes here; its callers check the arguments. Begin with `reading`,
which most values start with, then read `moments`.

Each module is imported at its first use (``kernels.moments.cell_moments``), so that numba is
imported only when something is to be computed: 0.2 s that ``import fastece`` does not pay.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from fastece.kernels.types import F64

if TYPE_CHECKING:
    from fastece.kernels import (  # noqa: F401, I001
        arithmetic, bayes, binning, cells, density, errors, moments, pieces, plain, quantiles,
        reading, replicates, resampling, selection, vectors,
    )  # fmt: skip

# Weights where every row counts 1: with None, each kernel would be compiled twice.
NO_WEIGHTS = np.empty(0)
# Sums over the rows of a bin: weight times gap, which is outcome minus score; weight; weight times
# score; weight times outcome; squared weight; and, where every row counts 1, the numbers of rows
# and of hits, packed into one number.
GAP, WEIGHT, SCORE, HITS, SQUARE, COUNTS = MOMENTS = tuple(range(6))
# Terms that are averaged over rows: the squared distance of the score from the outcome, and the
# probability that the score gave to the outcome.
DISTANCE = 0
CHANCE = 1
# Shapes of the kernel of a density, as `density.kernel_height` takes them.
GAUSSIAN = 0
TRIWEIGHT = 1
EPANECHNIKOV = 2
# A bin with less than this share of the weight is empty to a norm that divides by its weight.
EMPTY = 1e-9
# A hit in `COUNTS`: sums are exact, and rows and hits can be told apart, of fewer rows than this.
PACK = 2.0**26
# Replicates of a block: the multiplicities of one row, a byte each, fill half a cache line.
REPLICATES = 32
# Scores of a chunk, whose sums are added up before those of the next one. A thread is busy with
# them for a millisecond, so that two threads seldom wait for one another: on 1e8 scores they are
# 1.7 times as fast as one, and with 2**16 scores a chunk 1.2 times.
CHUNK_SCORES = 2**19
# Rows, evenly spaced, by which most calls see that predictions do not contradict the labels.
MAX_ROWS_COMPARED = 256
# Standard deviations by which a constant guess must have more hits than predictions for a warning.
MIN_DEVIATIONS = 4.0


def weights(v: F64 | None) -> F64:
    """Return weights, or None, as kernels take them: empty where every row counts 1."""
    return NO_WEIGHTS if v is None else v


def __getattr__(name: str) -> Any:
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
