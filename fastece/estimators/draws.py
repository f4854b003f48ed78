"""Draws: how often each row of a sample counts in each of many replicates.

A class has the bytes that a row takes in each replicate as `bytes_per_row`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_blocks
from fastece.data.samples import Sample
from fastece.kernels import REPLICATES
from fastece.kernels.types import I32, I64, U8


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each row of the sample counts in each replicate.

    Parameters
    ----------
    c : (G, n, 32) uint8 array
        Replicates side by side, in blocks.
    """

    bytes_per_row: ClassVar[int] = 1

    c: U8

    def blocks(self, n: int) -> U8:
        """Return the counts of `n` rows in the block layout of the kernels."""
        return as_blocks(self.c, n, REPLICATES)


@dataclass(frozen=True, eq=False)
class TableCounts:
    """How often each row of a table with counts counts in each replicate.

    Counts may be far larger than in `Counts`. Replicates are therefore evaluated one by one.

    Parameters
    ----------
    c : (G, n, 32) int64 array
        Replicates side by side, or fewer than 32 of one block.
    """

    bytes_per_row: ClassVar[int] = 8

    c: I64


@dataclass(frozen=True, eq=False)
class Labels:
    """Drawn labels in place of a sample's own, with the weights of its rows.

    Parameters
    ----------
    y : (G, n, 32) int32 array
        Outcomes, or classes of class vectors.
    sample : Sample or None
        The sample whose labels they replace; None for an estimator that takes them by its plan
        alone.
    """

    bytes_per_row: ClassVar[int] = 4

    y: I32
    sample: Sample | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the sample that make up each replicate, each counting once.

    Parameters
    ----------
    rows : (R, size) int32 array
        Positions in the sample.
    sample : Sample or None
        The sample; None for an estimator that takes them by its plan alone.
    """

    bytes_per_row: ClassVar[int] = 4

    rows: I32
    sample: Sample | None = None


Draws = Counts | TableCounts | Labels | Rows


def columns(x: NDArray[Any]) -> NDArray[Any]:
    """Turn blocks (G, n, W) into one line (n,) per replicate."""
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(-1, x.shape[1])
