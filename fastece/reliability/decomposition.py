"""Decompositions of proper scores: by bins, and by isotonic regression."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import numpy as np

from fastece.data.axes import find_row_axes
from fastece.data.containers import as_probabilities
from fastece.data.options import ReadingKeywords, ReadingOptions, reading_options, shows_options
from fastece.data.parameters import check_choice
from fastece.data.reading import read_table
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import NO_ROWS, SQUARES, VECTORS, RowTable, TableMaker
from fastece.display.documents import Document, Section
from fastece.display.numbers import Number
from fastece.display.results import Result
from fastece.estimators.base import values_of_problems
from fastece.estimators.binned import Binned
from fastece.estimators.losses import BrierScore, LogLoss, Mean, surprise
from fastece.kernels.types import F64

# Rows that are pooled at once.
ROWS_PER_POOL = 2**18
# The mean that each score is.
RULES: dict[str, Mean] = {"brier": BrierScore(), "log": LogLoss()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Decomposition(Result):
    """A score as a sum of components, some of which are subtracted."""

    score: float
    n: int
    setting: str

    _derived: ClassVar[tuple[str, ...]] = ("value",)

    # The sign of each component by its name.
    _signs: ClassVar[dict[str, str]]

    @property
    @abstractmethod
    def _method(self) -> str:
        """The score and the method, in words."""

    @property
    def value(self) -> float:
        """The score."""
        return self.score

    def document(self) -> Document:
        """Describe the score and its components."""
        facts = {"score": Number(self.score, form=".5f")}
        for name, sign in self._signs.items():
            label = f"{sign} {name.replace('_', ' ')}"
            facts[label] = Number(getattr(self, name), form=".5f")
        title = f"{self._method}, setting {self.setting}: {self.n} rows"
        return Document(title, sections=[Section(facts=facts)])

    def _columns(self) -> dict[str, Any]:
        return {name: [getattr(self, name)] for name in ("score", *self._signs)}


class Aggregate(NamedTuple):
    """Components (C,) of a score over all problems, with their rows and setting."""

    components: list[float]
    n: int
    setting: str


def aggregate(
    components_of: Callable[[RowTable, int], Any], y_true: Any, y_prob: Any, options: ReadingOptions
) -> Aggregate:
    """Compute the components of each problem, and add them up or average them.

    For class vectors with the setting "auto" they are added up over the classes, each against the
    rest; with "classwise" they are averaged.
    """
    is_sum = False
    if isinstance(y_true, TableMaker):
        table = y_true.table()
        if table.has_vectors and table.stream is not None:
            raise table.lack("the sum over classes", "y_true", VECTORS)
        is_sum = table.has_vectors
    elif isinstance(options.setting, str) and options.setting == "auto":
        if options.class_axis is None:
            is_sum = as_probabilities(y_prob).ndim == 2
        else:
            is_sum = find_row_axes("y_prob", y_prob, options.class_axis).n_classes > 1
    if is_sum:
        options = replace(options, setting="classwise")
    table = read_table(y_true, y_prob, options)
    components = np.array([components_of(table, k) for k in range(table.n_problems)])
    if is_sum:
        name = f"sum over {table.n_problems} classes"
        return Aggregate(components.sum(axis=0).tolist(), table.count(), name)
    name = table.setting.name if table.setting.per_class else table.name(0)
    return Aggregate(table.average(components).tolist(), table.count(), name)


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

    _signs: ClassVar[dict[str, str]] = {
        "reliability": "+",
        "resolution": "-",
        "uncertainty": "+",
        "within_variance": "+",
        "within_covariance": "-",
    }

    @property
    def _method(self) -> str:
        return f"Brier score by {self.n_bins} bins"


@shows_options
def brier_decomposition(
    y_true: Any, y_prob: Any = None, *, n_bins: Any = 15, edges: Any = "uniform",
    **options: Unpack[ReadingKeywords],
) -> BrierDecomposition:  # fmt: skip
    """Decompose the Brier score by bins of the score.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.ece`.
    n_bins : int or "sqrt", default 15
        Number of bins.
    edges : {"uniform", "quantile"}, default "uniform"
        Bins of [0, 1] of equal width or of equal weight, or bins between these edges: as in
        `Binned`.

    Returns
    -------
    BrierDecomposition
        For class vectors with the setting "auto", each part is the sum over the classes, each
        against the rest, so `score` is `fastece.brier_score`; with "classwise" it is the mean.

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

    The first three parts are due to Murphy (1973, "A new vector partition of the probability
    score") and sum to the Brier score where all scores of a bin are equal. The last two are due to
    Stephenson, Coelho and Jolliffe (2008, "Two extra components in the Brier score decomposition"):
    with them the parts sum to it whatever the scores are. Few rows in a bin increase reliability
    and resolution alike: `fastece.score_decomposition` has no bins.

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

    def components_of(table: RowTable, k: int) -> BrierComponents:
        return brier_components(binned, table, k)

    components, n, setting_name = aggregate(components_of, y_true, y_prob, reading_options(options))
    return BrierDecomposition(
        **BrierComponents(*components)._asdict(),
        n_bins=binned.bin_count(n),
        n=n,
        setting=setting_name,
    )


class BrierComponents(NamedTuple):
    """The Brier score of a problem and its five components."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float


def brier_components(binned: Binned, table: RowTable, k: int) -> BrierComponents:
    """Compute the Brier score of problem `k` and its components, by bins."""
    table = table.with_content(SQUARES, "estimator", "the decomposition")
    plan = binned.prepare(table.sample(k), table.size(k))
    sample = plan.sample
    s = sample.s
    y = sample.y.astype(np.float64)
    weight = sample.total_weights
    bins = binned.place(sample, plan.rule.n_bins).lower
    weight_of_bin = np.bincount(bins, weight)

    def mean(values: F64) -> float:
        return float(np.average(values, weights=weight))

    def mean_of_own_bin(values: F64) -> F64:
        sums = np.bincount(bins, weight * values)
        return np.asarray((sums / np.where(weight_of_bin > 0, weight_of_bin, 1.0))[bins])

    mean_score = mean_of_own_bin(s)
    hit_rate = mean_of_own_bin(y)
    base_rate = mean(y)
    return BrierComponents(
        score=mean((s - y) ** 2),
        reliability=mean((mean_score - hit_rate) ** 2),
        resolution=mean((hit_rate - base_rate) ** 2),
        uncertainty=base_rate * (1 - base_rate),
        within_variance=mean((s - mean_score) ** 2),
        within_covariance=2 * mean((s - mean_score) * (y - hit_rate)),
    )


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

    _signs: ClassVar = {"miscalibration": "+", "discrimination": "-", "uncertainty": "+"}

    @property
    def _method(self) -> str:
        name = "Brier score" if self.rule == "brier" else "log loss"
        return f"{name} by isotonic regression"


@shows_options
def score_decomposition(
    y_true: Any, y_prob: Any = None, *, score: Literal["brier", "log"] = "brier",
    **options: Unpack[ReadingKeywords],
) -> ScoreDecomposition:  # fmt: skip
    """Decompose the Brier score or the log loss by isotonic regression, without bins.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.ece`.
    score : {"brier", "log"}, default "brier"
        The Brier score, or the log loss in nats.

    Returns
    -------
    ScoreDecomposition
        For class vectors with the setting "auto", each part is the sum over the classes, each
        against the rest; with "classwise" it is the mean. So the `score` of "brier" is
        `fastece.brier_score`, and the `score` of "log" is the sum of the log losses of K binary
        problems, which is not `fastece.log_loss`.

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

    where S is the mean score, and the scores are recalibrated by the isotonic regression of the
    labels on them, in which rows of equal scores count as one. The rows are sorted, and adjacent
    violators are pooled by `scipy.optimize.isotonic_regression`. The fit knows the labels, so with
    few rows miscalibration and discrimination are both too large.

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

    def components_of(table: RowTable, k: int) -> ScoreComponents:
        return score_components(rule, table, k)

    components, n, setting_name = aggregate(components_of, y_true, y_prob, reading_options(options))
    return ScoreDecomposition(
        **ScoreComponents(*components)._asdict(), rule=rule, n=n, setting=setting_name
    )


class ScoreComponents(NamedTuple):
    """A proper score of a problem and its three components."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def score_components(rule: str, table: RowTable, k: int) -> ScoreComponents:
    """Compute the score of problem `k` and its components, by isotonic regression."""
    mean = RULES[rule]
    sample = table.view(k)
    score = float(values_of_problems(mean, table.problem(k))[0])
    blocks = isotonic_blocks(sample)
    recalibrated = minimal_score(rule, blocks.hits, blocks.misses)
    all_hits = blocks.hits.sum(keepdims=True)
    all_misses = blocks.misses.sum(keepdims=True)
    base_rate = minimal_score(rule, all_hits, all_misses)
    # A component may only be negative by rounding.
    return ScoreComponents(
        score=score,
        miscalibration=max(score - recalibrated, 0.0),
        discrimination=max(base_rate - recalibrated, 0.0),
        uncertainty=base_rate,
    )


class Blocks(NamedTuple):
    """Blocks of an isotonic fit in increasing order; arrays are (B,).

    Attributes
    ----------
    first_score, last_score : (B,) float64 arrays
        The first and the last score of each block.
    hits, misses : (B,) float64 arrays
        The weights of its outcomes 1 and 0: ``hits / (hits + misses)`` is the fit.
    """

    first_score: F64
    last_score: F64
    hits: F64
    misses: F64


def isotonic_blocks(sample: Sample) -> Blocks:
    """Fit outcomes by isotonic regression on the scores.

    Rows in order are pooled in parts, which takes less memory, and then the blocks of all parts.
    """
    scaled, _ = scale_weights(sample)
    ordered = replace(scaled, rows=NO_ROWS, vectors=None).sorted()
    pooled_parts = []
    begin = 0
    while begin < ordered.n:
        # Equal scores stay together.
        last_score = ordered.s[min(begin + ROWS_PER_POOL, ordered.n) - 1]
        end = int(np.searchsorted(ordered.s, last_score, "right"))
        pooled_parts.append(pool(blocks_of_scores(ordered.where(slice(begin, end)))))
        begin = end
    return pool(Blocks(*map(np.concatenate, zip(*pooled_parts, strict=True))))


def blocks_of_scores(ordered: Sample) -> Blocks:
    """Add up the outcomes of each distinct score of a sorted sample."""
    weight = ordered.total_weights
    first = np.flatnonzero(ordered.is_first_of_score)
    return Blocks(
        first_score=ordered.s[first],
        last_score=ordered.s[first],
        hits=np.add.reduceat(weight * ordered.y, first),
        misses=np.add.reduceat(weight * (1 - ordered.y), first),
    )


def pool(blocks: Blocks) -> Blocks:
    """Pool neighbouring blocks whose rate decreases, by the algorithm of scipy."""
    from scipy.optimize import isotonic_regression

    weight = blocks.hits + blocks.misses
    ends = isotonic_regression(blocks.hits / weight, weights=weight).blocks
    first = ends[:-1]
    return Blocks(
        first_score=blocks.first_score[first],
        last_score=blocks.last_score[ends[1:] - 1],
        hits=np.add.reduceat(blocks.hits, first),
        misses=np.add.reduceat(blocks.misses, first),
    )


def minimal_score(rule: str, hits: F64, misses: F64) -> float:
    """Compute the minimal mean score, where each block predicts its own rate r.

    That is the mean over the rows of ``r (1 - r)``, or of the entropy ``-r log r - (1 - r) log(1 -
    r)``. Both r and 1 - r are computed from weights, so that a rate that rounds to 0 or 1 does no
    harm.
    """
    weight = hits + misses
    rate = hits / weight
    miss_rate = misses / weight
    if rule == "brier":
        return float((hits * miss_rate).sum() / weight.sum())
    return float((weight * (surprise(rate) + surprise(miss_rate))).sum() / weight.sum())
