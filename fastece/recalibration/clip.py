"""Maps of logarithms of probabilities, and how probabilities of exactly 0 or 1 are clipped."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import warn
from fastece.data.parameters import check_real
from fastece.data.scores import two_columns
from fastece.recalibration.calibrator import Calibrator, Parameter
from fastece.recalibration.outputs import MIN_CLIP, LabelledOutputs, ModelOutputs

# The largest clip: every probability would become one half.
MAX_CLIP = 0.5
# A probability within so many units of rounding of 0 or 1 counts as exactly 0 or 1.
ROUNDING_UNITS = 4
IMPOSSIBLE_LABELS = (
    "some labels have probability 0, and the map depends on the clip that stands for it: isotonic "
    "and curve calibration take no logarithms"
)


@dataclass(kw_only=True, eq=False)
class LogitMap(Calibrator):
    """A map of logarithms of probabilities, which a clip makes finite."""

    SHARED_PARAMETERS = (Parameter("clip", low=MIN_CLIP, high=MAX_CLIP),)

    clip: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip is not None:
            check_real("clip", self.clip, MIN_CLIP, MAX_CLIP)

    def fit_rows(self, rows: LabelledOutputs) -> Self:
        """Choose the clip, and fit the map to rows that have been checked."""
        self.clip_ = choose_clip(rows) if self.clip is None else float(self.clip)
        return super().fit_rows(replace(rows, clip=self.clip_))

    def map_outputs(self, outputs: ModelOutputs) -> NDArray[Any]:
        """Map checked predictions to probabilities of their shape and dtype."""
        return super().map_outputs(replace(outputs, clip=self.clip_))


def choose_clip(rows: LabelledOutputs) -> float:
    """Choose the smallest probability before logarithms; warn of impossible labels.

    For n rows to fit to, some of whose probabilities are exactly 0 or 1, the clip is
    ``1 / (2 n + 2)``: Jeffreys' estimate ``(k + 1/2) / (n + 1)`` of a rate, for k = 0 events in n
    rows. Where another probability is nearer to 0 or 1, the clip is that probability, so that no
    other one is clipped. Where none is exactly 0 or 1, the clip is `MIN_CLIP`.
    """
    if rows.from_logits:
        logits = rows.values
        if logits.ndim == 1:
            logits = two_columns(logits, from_logits=True)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        is_exact = logits == -np.inf
    elif rows.values.ndim == 1:
        p = np.column_stack([1 - rows.values, rows.values])
        rounding = float(np.finfo(rows.values.dtype).eps)
        is_exact = p < [ROUNDING_UNITS * rounding, ROUNDING_UNITS * MIN_CLIP]
    else:
        p = rows.values
        is_exact = p < ROUNDING_UNITS * MIN_CLIP
    if not is_exact.any():
        return MIN_CLIP
    if is_exact[np.arange(rows.n_rows), rows.label].any():
        warn("X", IMPOSSIBLE_LABELS)
    largest_clip = 1 / (2 * rows.n_rows + 2)
    return max(MIN_CLIP, float(p.min(where=~is_exact, initial=largest_clip)))
