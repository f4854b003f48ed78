"""Signs that numbers mislead: when each one is given, and its sentence.

A sign must never come for good data: `tests/field/test_doubts.py` counts how often it does.
"""

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample
from fastece.data.sources import Source

IMPOSSIBLE_OUTCOME = (
    "The outcome had the predicted probability 0 in {}: no calibrated model allows that, so the "
    "test of calibration rejects."
)


# --- outcomes that cannot be ----------------------------------------------------------------


def are_impossible(sample: Sample) -> NDArray[np.bool_]:
    """Decide for rows (n,) whether their outcome had the probability 0."""
    impossible = ((sample.s <= 0) & (sample.y > 0)) | ((sample.s >= 1) & (sample.y < 1))
    return np.asarray(impossible)


def impossible_rows(source: Source) -> NDArray[np.bool_]:
    """Decide for rows (K, n) of each problem whether their outcome had probability 0."""
    return np.array([are_impossible(sample) for sample in source.samples(reads_only=True)])
