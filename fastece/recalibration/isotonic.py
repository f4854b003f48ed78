"""Isotonic regression of hits on scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastece.data.sample import Sample
from fastece.decomposition.isotonic import fit_isotonic
from fastece.recalibration.one_vs_rest import PointsOneVsRest, Say
from fastece.recalibration.rows import Score
from fastece.typing import F64


@dataclass(kw_only=True, eq=False)
class IsotonicCalibration(PointsOneVsRest):
    """The nearest function that does not decrease, by squares.

    Parameters
    ----------
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    score_, value_ : float64 array, or a list of one for each class
        Ends of the pieces that are constant, and the shares of hits there: between them the map
        is linear, and outside it is that of the nearest end.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        As `fit` and `transform` say.

    Notes
    -----
    Zadrozny and Elkan (2002, "Transforming classifier scores into accurate multiclass probability
    estimates"), by `scipy.optimize.isotonic_regression`; rows of equal scores count as one. A piece
    without hits has a probability of 0, whose log loss is infinite if one comes.

    Examples
    --------
    >>> from fastece.recalibration import IsotonicCalibration
    >>> model = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.5, 0.65]))
    [0.   0.5  0.75]
    """

    title: ClassVar[str] = "isotonic calibration"

    def _fit_one(self, score: Score, sample: Sample, say: Say) -> Sequence[F64]:  # noqa: ARG002
        s, _, _, found = fit_isotonic(sample)
        ends = np.unique([found.blocks[:-1], found.blocks[1:] - 1])
        # No more than 1 by rounding.
        return s[ends], found.x[ends].clip(0.0, 1.0)
