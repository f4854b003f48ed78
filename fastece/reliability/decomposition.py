"""Decompositions of proper scores: by bins, and by isotonic regression."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from fastece.data.containers import as_probabilities
from fastece.data.parameters import check_choice
from fastece.data.reading import read_source
from fastece.data.samples import Sample, scale_weights
from fastece.data.sources import NO_ROWS, SQUARES, VECTORS, Problems, Source, one_problem
from fastece.display.documents import Document, Section
from fastece.display.numbers import Number
from fastece.display.results import Result
from fastece.estimators.binned import Binned
from fastece.estimators.losses import BrierScore, LogLoss, Mean, surprise
from fastece.kernels.types import F64

# Rows that are pooled at once.
PART = 2**18
# What each score is the mean of.
RULES: dict[str, Mean] = {"brier": BrierScore(), "log": LogLoss()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Decomposition(Result):
    """A score as a sum of parts, some of which are subtracted."""

    score: float
    n: int
    setting: str

    # Sign of each part by its name.
    _parts: ClassVar[dict[str, str]]
    _name: ClassVar[Any]

    @classmethod
    def of(cls, values: Sequence[float], **fields: Any) -> Self:
        """Make a decomposition from the score and its parts, in their order."""
        named: dict[str, Any] = dict(zip(("score", *cls._parts), values, strict=True))
        return cls(**named, **fields)

    @property
    def value(self) -> float:
        """The score."""
        return self.score

    def document(self) -> Document:
        """Describe the score and its parts."""
        facts = {
            f"{sign} {name.replace('_', ' ')}".lstrip(): Number(getattr(self, name), form=".5f")
            for name, sign in {"score": "", **self._parts}.items()
        }
        title = f"{self._name}, setting {self.setting}: {self.n} rows"
        return Document(title, sections=[Section(facts=facts)])

    def _columns(self) -> dict[str, Any]:
        return {name: [getattr(self, name)] for name in ("score", *self._parts)}


def add_parts(
    parts_of: Callable[[Source, int], Sequence[float]], y_true: Any, y_prob: Any, *, setting: Any,
    **options: Any,
) -> tuple[list[float], dict[str, Any]]:  # fmt: skip
    """Add up the parts of each problem; return them, the rows and the setting.

    Of class vectors with the setting "auto" they are the sum over the classes, each against the
    rest; with "classwise" the mean.
    """
    is_sum = False
    if isinstance(y_true, Source):
        if y_true.has_vectors:
            raise y_true.lack(VECTORS, "y_true", "the sum over classes")
    elif isinstance(setting, str) and setting == "auto":
        is_sum = as_probabilities(y_prob).ndim == 2
    source = read_source(y_true, y_prob, setting="classwise" if is_sum else setting, **options)
    each = [parts_of(source, k) for k in range(source.n_problems)]
    name = "classwise" if source.setting.per_class else source.name(0)
    name = f"sum over {len(each)} classes" if is_sum else name
    values = np.sum(each, axis=0) / (1 if is_sum else len(each))
    return values.tolist(), {"n": source.count(), "setting": name}


# --- by bins --------------------------------------------------------------------------------


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

    _parts: ClassVar[dict[str, str]] = {
        "reliability": "+",
        "resolution": "-",
        "uncertainty": "+",
        "within_variance": "+",
        "within_covariance": "-",
    }

    @property
    def _name(self) -> str:
        return f"Brier score by {self.n_bins} bins"


def brier_decomposition(
    y_true: Any, y_prob: Any = None, *, n_bins: Any = 15, edges: Any = "uniform",
    setting: Any = "auto", labels: Any = None, pos_label: Any = None, sample_weight: Any = None,
    from_logits: bool = False, soft: bool = False, votes: Any = None,
) -> BrierDecomposition:  # fmt: skip
    """Decompose the Brier score by bins of the score.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits, soft, votes
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
    values, facts = add_parts(
        partial(binned_parts, binned), y_true, y_prob, setting=setting, labels=labels,
        pos_label=pos_label, sample_weight=sample_weight, from_logits=from_logits, soft=soft,
        votes=votes,
    )  # fmt: skip
    return BrierDecomposition.of(values, n_bins=binned.bin_count(facts["n"]), **facts)


def binned_parts(binned: Binned, source: Source, k: int) -> tuple[float, ...]:
    """Compute the Brier score of problem `k`, and its parts in their order."""
    plan = binned.prepare(source.sample(k, SQUARES), source.count())
    s, y = plan.sample.s, plan.sample.y.astype(np.float64)
    weight = plan.sample.weight
    w = np.ones(s.size) if weight is None else weight
    bins = binned.place(plan.sample, plan.rule.n_bins).lower
    total = np.bincount(bins, w)

    def bin_means(x: F64) -> F64:
        return np.bincount(bins, w * x) / np.where(total > 0, total, 1.0)

    def mean(x: F64) -> float:
        return float(np.average(x, weights=w))

    score, rate, base = bin_means(s)[bins], bin_means(y)[bins], mean(y)
    reliability, resolution = mean((score - rate) ** 2), mean((rate - base) ** 2)
    variance, covariance = mean((s - score) ** 2), 2 * mean((s - score) * (y - rate))
    return mean((s - y) ** 2), reliability, resolution, base * (1 - base), variance, covariance


# --- by isotonic regression -----------------------------------------------------------------


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

    _parts: ClassVar = {"miscalibration": "+", "discrimination": "-", "uncertainty": "+"}

    @property
    def _name(self) -> str:
        return f"{'Brier score' if self.rule == 'brier' else 'log loss'} by isotonic regression"


def score_decomposition(
    y_true: Any, y_prob: Any = None, *, score: Literal["brier", "log"] = "brier",
    setting: Any = "auto", labels: Any = None, pos_label: Any = None, sample_weight: Any = None,
    from_logits: bool = False, soft: bool = False, votes: Any = None,
) -> ScoreDecomposition:  # fmt: skip
    """Decompose the Brier score or the log loss by isotonic regression, without bins.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits, soft, votes
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
    values, facts = add_parts(
        partial(isotonic_parts, rule), y_true, y_prob, setting=setting, labels=labels,
        pos_label=pos_label, sample_weight=sample_weight, from_logits=from_logits, soft=soft,
        votes=votes,
    )  # fmt: skip
    return ScoreDecomposition.of(values, rule=rule, **facts)


def isotonic_parts(rule: str, source: Source, k: int) -> tuple[float, ...]:
    """Compute the score of problem `k`, and its parts in their order."""
    mean = RULES[rule]
    if isinstance(source, Problems):
        sample = source.view(k)
        score = float(mean.point_values(one_problem(sample))[0])
    else:
        sample = source.sample(k)
        score = mean.evaluate_once(source.sample(k, source.needs_of(mean)), source.count())
    *_, hits, misses = isotonic_blocks(sample)
    recalibrated = least_score(rule, hits, misses)
    even = least_score(rule, hits.sum(keepdims=True), misses.sum(keepdims=True))
    # No part is negative but by rounding.
    return score, max(score - recalibrated, 0.0), max(even - recalibrated, 0.0), even


def isotonic_blocks(sample: Sample) -> tuple[F64, ...]:
    """Fit outcomes by isotonic regression on the scores: blocks with one value each.

    Returns the first and the last score of each, and the weights of its outcomes 1 and 0. Rows in
    order are pooled in parts, which takes less memory, and then the blocks of all parts.
    """
    ordered, begin, parts = replace(scale_weights(sample)[0], rows=NO_ROWS, vectors=None), 0, []
    ordered = ordered.sorted()
    while begin < ordered.n:
        last = ordered.s[min(begin + PART, ordered.n) - 1]
        end = int(np.searchsorted(ordered.s, last, "right"))
        part = ordered.where(slice(begin, end))
        w = np.ones(part.n) if part.weight is None else part.weight
        first = np.flatnonzero(np.append(True, part.s[1:] != part.s[:-1]))
        weights = (np.add.reduceat(x, first) for x in (w * part.y, w * (1 - part.y)))
        parts.append(pool(part.s[first], part.s[first], *weights))
        begin = end
    return pool(*map(np.concatenate, zip(*parts, strict=True)))


def pool(low: F64, high: F64, hits: F64, misses: F64) -> tuple[F64, ...]:
    """Pool neighbours whose share of hits decreases, by the algorithm of scipy."""
    from scipy.optimize import isotonic_regression

    weight = hits + misses
    blocks = isotonic_regression(hits / weight, weights=weight).blocks
    first = blocks[:-1]
    hits, misses = np.add.reduceat(hits, first), np.add.reduceat(misses, first)
    return low[first], high[blocks[1:] - 1], hits, misses


def least_score(rule: str, hits: F64, misses: F64) -> float:
    """Compute the least mean score, where each block predicts its own rate.

    From both weights of a block, so that a rate that rounds to 0 or 1 does no harm.
    """
    weight = hits + misses
    rate = hits / weight
    if rule == "brier":
        return float((hits * (misses / weight)).sum() / weight.sum())
    return float((weight * (surprise(rate) + surprise(misses / weight))).sum() / weight.sum())
