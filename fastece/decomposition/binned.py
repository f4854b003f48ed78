"""The Brier score as reliability, resolution and uncertainty, by bins."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fastece.data.source import SQUARES, Source
from fastece.decomposition.parts import Decomposition, add_parts
from fastece.estimators.binned.estimator import Binned, place_rows
from fastece.typing import F64


@dataclass(frozen=True, eq=False, kw_only=True)
class BrierDecomposition(Decomposition):
    """The Brier score as a sum of five parts.

    Attributes
    ----------
    score : float
        ``reliability - resolution + uncertainty + within_variance - within_covariance``.
    reliability : float
        Mean squared gap between mean score and hit rate of the bins: 0 is best.
    resolution : float
        Variance of the hit rates of the bins: the larger, the better the scores discriminate.
    uncertainty : float
        Variance of the labels: the score of always predicting the base rate.
    within_variance, within_covariance : float
        Mean variance of the scores within the bins, and twice their covariance with the hits.
    n : int
        Number of rows of positive weight.
    n_bins : int
        Bins of each problem.
    setting : str
        The setting used, never "auto".

    Examples
    --------
    >>> from fastece import brier_decomposition
    >>> parts = brier_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.6, 0.9], n_bins=2)
    >>> round(parts.score, 6), round(parts.uncertainty, 6)
    (0.255, 0.25)
    """

    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    n_bins: int

    _parts = (
        ("+", "reliability"),
        ("-", "resolution"),
        ("+", "uncertainty"),
        ("+", "within_variance"),
        ("-", "within_covariance"),
    )

    @property
    def _name(self) -> str:
        return f"Brier score by {self.n_bins} bins"


def brier_decomposition(
    y_true: Any, y_prob: Any = None, *, n_bins: Any = 15, edges: Any = "uniform",
    setting: Any = "auto", labels: Any = None, pos_label: Any = None, sample_weight: Any = None,
    from_logits: bool = False,
) -> BrierDecomposition:  # fmt: skip
    """Decompose the Brier score by bins of the score.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits
        As in `fastece.ece`.
    n_bins : int or "sqrt", default 15
        Number of bins.
    edges : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of equal weight, of [0, 1], or between these edges, as of `Binned`.

    Returns
    -------
    BrierDecomposition
        Of class vectors, as long as the setting is "auto", each part is the sum over the classes,
        each against the rest, so `score` is `fastece.brier_score`; with "classwise" it is the mean.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece` and `Binned`.

    Notes
    -----
    With the weight W_b, mean score f_b and hit rate o_b of each bin b and the base rate o::

        reliability        sum_b W_b (f_b - o_b)^2 / W
        resolution         sum_b W_b (o_b - o)^2 / W
        uncertainty        o (1 - o)
        within_variance    sum_b sum_{i in b} w_i (s_i - f_b)^2 / W
        within_covariance  2 sum_b sum_{i in b} w_i (s_i - f_b) (y_i - o_b) / W

    The first three are those of Murphy (1973, "A new vector partition of the probability score").
    They sum to the Brier score where scores are all equal within a bin; with the last two
    (Stephenson, Coelho and Jolliffe 2008, "Two extra components in the Brier score decomposition")
    the parts sum to it whatever the scores. Few rows in a bin lift reliability and resolution
    alike: `fastece.score_decomposition` has no bins.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import brier_decomposition
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> print(brier_decomposition(rng.random(1000) < p**1.5, p))
    Brier score by 15 bins, setting binary: 1000 rows
      score                0.16068
      + reliability        0.00957
      - resolution         0.09521
      + uncertainty        0.24603
      + within variance    0.00036
      - within covariance  0.00007
    """
    binned = Binned(n_bins, edges)
    values, n, name = add_parts(
        y_true, y_prob, partial(binned_parts, binned), setting=setting, labels=labels,
        pos_label=pos_label, sample_weight=sample_weight, from_logits=from_logits,
    )  # fmt: skip
    named = BrierDecomposition.named(values)
    return BrierDecomposition(**named, n=n, n_bins=binned.bin_count(n), setting=name)


def binned_parts(binned: Binned, source: Source, k: int) -> tuple[float, ...]:
    """Compute the Brier score of problem `k`, and its parts in their order."""
    plan = binned.prepare(source.sample(k, SQUARES), source.n)
    s, y = plan.sample.s, plan.sample.y.astype(np.float64)
    weight = plan.sample.weight
    w = np.ones(s.size) if weight is None else weight
    _, bins, _ = place_rows(binned, plan.sample, plan.n_bins)
    total = np.bincount(bins, w)

    def bin_means(x: F64) -> F64:
        return np.bincount(bins, w * x) / np.where(total > 0, total, 1.0)

    def mean(x: F64) -> float:
        return float(np.average(x, weights=w))

    score, rate, base = bin_means(s)[bins], bin_means(y)[bins], mean(y)
    return (
        mean((s - y) ** 2),
        mean((score - rate) ** 2),
        mean((rate - base) ** 2),
        base * (1 - base),
        mean((s - score) ** 2),
        2 * mean((s - score) * (y - rate)),
    )
