"""Logistic maps of a score: Platt scaling and beta calibration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastece.checks.parameters import check_flag
from fastece.data.sample import Sample
from fastece.recalibration.base import Parameter
from fastece.recalibration.one_vs_rest import OneVsRest, Say
from fastece.recalibration.regression import SMALLEST, Hits
from fastece.recalibration.rows import CLIP, Score, row_weights, sigmoid
from fastece.recalibration.search import Minimum, minimise
from fastece.typing import F64

LINE = {"slope": Parameter(each=True), "intercept": Parameter(each=True)}
# Which of a and b may be other than 0, in the order in which they are tried.
FACES = ((True, True), (True, False), (False, True), (False, False))


@dataclass(kw_only=True, eq=False)
class PlattScaling(OneVsRest):
    """A logistic curve of the log odds: ``sigmoid(slope logit(s) + intercept)``.

    Parameters
    ----------
    smooth : bool, default False
        Whether the n+ hits count as ``(n+ + 1) / (n+ + 2)`` and the n- misses as ``1 / (n- + 2)``,
        in place of 1 and 0; n+ and n- are sums of weights.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    slope_, intercept_ : float, or (K,) float64 arrays
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        As `fit` and `transform` say.

    Notes
    -----
    Platt (1999, "Probabilistic outputs for support vector machines"), on the log odds of the
    scores, which are taken to be at least 2**-52 from 0 and 1.

    Examples
    --------
    >>> from fastece.recalibration import PlattScaling
    >>> model = PlattScaling().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.1, 0.5, 0.9]).round(3))
    [0.035 0.5   0.965]
    """

    title: ClassVar[str] = "Platt scaling"
    PARAMETERS: ClassVar[dict[str, Parameter]] = LINE

    smooth: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("smooth", self.smooth)

    def _fit_one(self, score: Score, sample: Sample, say: Say) -> Sequence[float]:
        return fit_platt(score.logit, sample, say, self.smooth)

    def _map_one(self, score: Score, slope: float, intercept: float) -> F64:
        return sigmoid(slope * score.logit + intercept)


def fit_platt(
    logit: F64, sample: Sample, say: Say, smooth: bool = False
) -> tuple[float, float]:  # fmt: skip
    """Slope and intercept of the least log loss."""
    weight, target = row_weights(sample), sample.y.astype(np.float64)
    if np.ptp(logit) < SMALLEST or target.min() == target.max():
        return 0.0, base_rate(logit, weight, target, say)
    if smooth:
        target = smooth_targets(sample)
    centre, spread = logit.mean(), logit.std()
    loss = Hits(np.column_stack([(logit - centre) / spread, np.ones(logit.size)]), target, weight)
    found = minimise(loss, np.array([spread, centre]))
    slope, intercept = found.theta
    if found.fault:
        say(found.fault)
    return float(slope / spread), float(intercept - slope * centre / spread)


@dataclass(kw_only=True, eq=False)
class BetaCalibration(OneVsRest):
    """The likelihood ratio of two beta distributions: ``logit q = a log s - b log(1 - s) + c``.

    Parameters
    ----------
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    a_, b_, c_ : float, or (K,) float64 arrays
        a and b are 0 or more: the map does not decrease.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        As `fit` and `transform` say.

    Notes
    -----
    Kull, Silva Filho and Flach (2017, "Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers"). The log loss is convex, so the
    best a and b that are not negative are the best of all, or the best with one of them, or both,
    at 0. Scores are taken to be at least 2**-52 from 0 and 1.

    Examples
    --------
    >>> from fastece.recalibration import BetaCalibration
    >>> model = BetaCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.1, 0.5, 0.9]).round(3))
    [0.035 0.5   0.965]
    """

    title: ClassVar[str] = "beta calibration"
    PARAMETERS: ClassVar[dict[str, Parameter]] = {
        "a": Parameter(each=True, low=0.0),
        "b": Parameter(each=True, low=0.0),
        "c": Parameter(each=True),
    }

    def _fit_one(self, score: Score, sample: Sample, say: Say) -> Sequence[float]:
        weight, target = row_weights(sample), sample.y.astype(np.float64)
        if np.ptp(score.logit) < SMALLEST or target.min() == target.max():
            return 0.0, 0.0, base_rate(score.logit, weight, target, say)
        both = np.column_stack([score.log_hit, -score.log_miss])
        spread = np.maximum(both.std(axis=0), SMALLEST)  # of scores near an end, one may not vary
        features = np.column_stack([both / spread, np.ones(target.size)])
        best: Minimum | None = None
        for face in FACES:
            used = np.array([*face, True])
            start = np.append(spread, 0.0)[used]
            found = minimise(Hits(features[:, used], target, weight), start)
            theta = np.zeros(3)
            theta[used] = found.theta
            if theta[:2].min() >= 0 and (best is None or found.loss < best.loss):
                best = found._replace(theta=theta)
            if best and all(face):
                break
        assert best is not None, "a and b may both be 0"
        if best.fault:
            say(best.fault)
        a, b = best.theta[:2] / spread
        return float(a), float(b), float(best.theta[2])

    def _map_one(self, score: Score, a: float, b: float, c: float) -> F64:
        return sigmoid(a * score.log_hit - b * score.log_miss + c)


def smooth_targets(sample: Sample) -> F64:
    """Platt's shares of hits, between 0 and 1."""
    v = np.ones(sample.n) if sample.v is None else sample.v
    hits = float(v @ sample.y)
    misses = float(v.sum()) - hits
    return np.where(sample.y == 1, (hits + 1) / (hits + 2), 1 / (misses + 2))


def base_rate(score: F64, weight: F64, target: F64, say: Say) -> float:
    """Log odds of a hit, for a map that is the same for every score."""
    if np.ptp(score) < SMALLEST:
        say("all scores are equal, so the map is their share of hits, for any score")
    rate = float(np.clip(weight @ target, CLIP, 1 - CLIP))
    return float(np.log(rate) - np.log1p(-rate))
