"""A proper score as miscalibration, discrimination and uncertainty, without bins."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from fastece.checks.parameters import check_choice
from fastece.data.order import scale_weights
from fastece.data.sample import Sample
from fastece.data.source import Source
from fastece.decomposition.parts import Decomposition, add_parts
from fastece.estimators.losses import BrierScore, LogLoss, Mean, surprise
from fastece.typing import F64

# What each score is the mean of.
RULES: dict[str, Mean] = {"brier": BrierScore(), "log": LogLoss()}


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreDecomposition(Decomposition):
    """A proper score as a sum of three parts, none of which is negative.

    Attributes
    ----------
    score : float
        ``miscalibration - discrimination + uncertainty``; inf where a log loss is.
    miscalibration : float
        How much recalibration would lower the score: 0 is best.
    discrimination : float
        How much better recalibrated scores are than the base rate: the larger, the better the
        scores discriminate.
    uncertainty : float
        The score of always predicting the base rate.
    rule : {"brier", "log"}
        The scoring rule.
    n : int
        Number of rows of positive weight.
    setting : str
        The setting used, never "auto".

    Examples
    --------
    >>> from fastece import score_decomposition
    >>> parts = score_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.6, 0.9])
    >>> round(parts.miscalibration, 6), round(parts.discrimination, 6), parts.uncertainty
    (0.13, 0.125, 0.25)
    """

    miscalibration: float
    discrimination: float
    uncertainty: float
    rule: str

    _parts = (("+", "miscalibration"), ("-", "discrimination"), ("+", "uncertainty"))

    @property
    def _name(self) -> str:
        return f"{'Brier score' if self.rule == 'brier' else 'log loss'} by isotonic regression"


def score_decomposition(
    y_true: Any, y_prob: Any = None, *, score: Literal["brier", "log"] = "brier",
    setting: Any = "auto", labels: Any = None, pos_label: Any = None, sample_weight: Any = None,
    from_logits: bool = False,
) -> ScoreDecomposition:  # fmt: skip
    """Decompose the Brier score or the log loss by isotonic regression, without bins.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits
        As in `fastece.ece`.
    score : {"brier", "log"}, default "brier"
        The Brier score, or the log loss in nats.

    Returns
    -------
    ScoreDecomposition
        Of class vectors, as long as the setting is "auto", each part is the sum over the classes,
        each against the rest; with "classwise" it is the mean. So the `score` of "brier" is
        `fastece.brier_score`, and that of "log" the sum of the log losses of K binary problems,
        which is not `fastece.log_loss`.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for another `score`.

    Notes
    -----
    CORP (Dimitriadis, Gneiting and Jordan 2021, "Stable reliability diagrams for probabilistic
    classifiers", section on score decomposition)::

        miscalibration = S(scores) - S(recalibrated)
        discrimination = S(base rate) - S(recalibrated)
        uncertainty    = S(base rate)

    where scores are recalibrated by the isotonic regression of the labels on them, rows of equal
    scores counting as one. That is a sort and the algorithm of pooling adjacent violators, of
    `scipy.optimize.isotonic_regression`. The fit knows the labels, so with few rows miscalibration
    and discrimination are both too large.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import score_decomposition
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> print(score_decomposition(rng.random(1000) < p**1.5, p))
    Brier score by isotonic regression, setting binary: 1000 rows
      score             0.16068
      + miscalibration  0.01278
      - discrimination  0.09814
      + uncertainty     0.24603
    """
    rule = check_choice("score", score, tuple(RULES))
    values, n, name = add_parts(
        y_true, y_prob, partial(isotonic_parts, rule), setting=setting, labels=labels,
        pos_label=pos_label, sample_weight=sample_weight, from_logits=from_logits,
    )  # fmt: skip
    return ScoreDecomposition(**ScoreDecomposition.named(values), rule=rule, n=n, setting=name)


def isotonic_parts(rule: str, source: Source, k: int) -> tuple[float, ...]:
    """Compute the score of problem `k`, and its parts in their order."""
    mean = RULES[rule]
    sample = source.sample(k, source.needs_of(mean))
    score = mean.evaluate(mean.prepare(sample, source.n), sample.counts)
    hits, misses = blocks_of(source.sample(k))
    recalibrated = least_score(rule, hits, misses)
    uncertainty = least_score(rule, hits.sum(keepdims=True), misses.sum(keepdims=True))
    # No part is negative but by rounding.
    return (
        score,
        max(score - recalibrated, 0.0),
        max(uncertainty - recalibrated, 0.0),
        uncertainty,
    )


def blocks_of(sample: Sample) -> tuple[F64, F64]:
    """Sum up the weights of outcomes 1 and 0 in each block of the isotonic regression."""
    _, hits, misses, found = fit_isotonic(sample)
    blocks = found.blocks[:-1]
    return np.add.reduceat(hits, blocks), np.add.reduceat(misses, blocks)


def fit_isotonic(sample: Sample) -> tuple[F64, F64, F64, Any]:
    """Fit outcomes by isotonic regression on the scores.

    Returns each distinct score, the weights of its outcomes 1 and 0, and the result of scipy, whose
    blocks have one value each.
    """
    from scipy.optimize import isotonic_regression

    s, hits, misses = pool_ties(scale_weights(sample)[0])
    return s, hits, misses, isotonic_regression(hits / (hits + misses), weights=hits + misses)


def pool_ties(sample: Sample) -> tuple[F64, F64, F64]:
    """Sort the distinct scores, with the weights of their outcomes 1 and 0."""
    w = sample.weight
    if w is None:
        # The bits of numbers from 0 to 1 increase as they do, and leave room for the hit at the
        # end: half the time of finding the order first.
        key: Any = (sample.s + 0.0).view(np.int64) << 1 | sample.y
        key.sort()
        s, y, w = (key >> 1).view(np.float64), key & 1, np.ones(key.size)
    else:
        order = np.argsort(sample.s)  # equal scores become one, in whatever order they are
        s, y, w = sample.s[order], sample.y[order], w[order]
    first = np.flatnonzero(np.append(True, s[1:] != s[:-1]))
    return s[first], np.add.reduceat(w * y, first), np.add.reduceat(w * (1 - y), first)


def least_score(rule: str, hits: F64, misses: F64) -> float:
    """Compute the least mean score, where each block predicts its own rate.

    From both weights of a block, so that a rate that rounds to 0 or 1 does no harm.
    """
    weight = hits + misses
    rate = hits / weight
    if rule == "brier":
        return float((hits * (misses / weight)).sum() / weight.sum())
    return float((weight * (surprise(rate) + surprise(misses / weight))).sum() / weight.sum())
