"""The table of conventions: where the bins of other libraries are, and what falls into them.

A convention is a rule for the edges of bins and the side on which bins are closed. What is made of
the bins is `Binned`'s business, whose explicit edges take any rule, so that whatever takes an
estimator takes a convention too:

>>> import fastece
>>> from fastece.compat.conventions import CONVENTIONS
>>> torch = CONVENTIONS["torchmetrics"].binned(10)
>>> fastece.ece([0, 1, 1], [0.2, 0.6, 1.0], estimator=torch)
0.20000000000000004
>>> result = fastece.bootstrap([0, 1, 1], [0.2, 0.6, 1.0], estimator=torch, rng=0)
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.checks.parameters import check_integer
from fastece.estimators.binned import Binned
from fastece.estimators.binned.edges import MAX_KEPT_BINS, Layout, hard_layout

Scores = NDArray[np.floating[Any]]
Rule = Callable[[int, Scores], Scores]
# More bins than anyone wants; edges are a list of Python's floats.
MAX_BINS = 2**20
NO_SCORES = np.empty(0)


# -- rules for edges ------------------------------------------------------------------------------
# Each takes the number of bins and the scores, or what has their dtype, and returns edges from 0 to
# 1. Those of equal width look at the dtype alone.


def quotients(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """``j / B``, rounded once."""
    return np.arange(n_bins + 1) / n_bins


def linspace(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """``j * (1 / B)``, rounded twice: one float above ``j / B`` here and there, such as 0.3."""
    return np.linspace(0.0, 1.0, n_bins + 1)


def two_sided_steps(n_bins: int, scores: Scores) -> Scores:
    """``j * (1 / B)`` in the lower half and ``1 - (B - j) * (1 / B)`` in the upper, in float64 if
    the scores are, else in float32.

    The latter is rounded once, as by a fused multiply-add, which torch uses on processors that have
    it (AVX2, AVX-512); without, about every second edge there is a float off.
    """
    kind = np.float64 if scores.dtype == np.float64 else np.float32
    step = kind(1) / kind(n_bins)
    exact = Fraction(float(step))
    half = (n_bins + 1) // 2
    lower = [step * kind(j) for j in range(half)]
    upper = [kind(float(1 - (n_bins - j) * exact)) for j in range(half, n_bins + 1)]
    return np.array([*lower, *upper])


def single_two_sided_steps(n_bins: int, scores: Scores) -> Scores:
    """`two_sided_steps` in float32, to which scores are rounded first. For float64 scores an edge
    is the least that rounds to it."""
    edges = two_sided_steps(n_bins, np.empty(0, np.float32))
    if scores.dtype != np.float64:
        return edges
    below = np.nextafter(edges, np.float32(-1)).astype(np.float64)
    middle = (below + edges) / 2
    up = middle.astype(np.float32) < edges
    return np.where(up, np.nextafter(middle, 2), middle).clip(0, 1)


def least_with_quotient(n_bins: int, scores: Scores) -> Scores:
    """The least score whose quotient by ``1 / B`` is j, in the precision of the scores."""
    kind = scores.dtype.type if scores.dtype.kind == "f" else np.float64
    width = kind(1.0 / n_bins)
    j = np.arange(1, n_bins + 1).astype(kind)
    edge = j * width
    for _ in range(4):  # the product and the quotient are each rounded once
        down = np.nextafter(edge, kind(-1))
        edge = np.where(down / width >= j, down, edge)
        edge = np.where(edge / width < j, np.nextafter(edge, kind(2)), edge)
    return np.concatenate([[0.0], edge[edge <= 1], [1.0]])


def one_alone(rule: Rule) -> Rule:
    """The rule, and a bin for scores of 1 after the last, where bins are closed at the left."""

    def edges(n_bins: int, scores: Scores) -> Scores:
        return np.append(rule(n_bins, scores), 1.0)

    return edges


def percentiles(n_bins: int, scores: Scores) -> Scores:
    """Numpy's percentiles: between two scores, in proportion."""
    inner = np.percentile(scores, np.linspace(0, 1, n_bins + 1) * 100)[1:-1]
    return with_ends(inner)


def quantiles(n_bins: int, scores: Scores) -> Scores:
    """Numpy's quantiles: as `percentiles`, but for rounding."""
    return with_ends(np.quantile(scores, np.linspace(0, 1, n_bins + 1))[1:-1])


def middles_of_groups(n_bins: int, scores: Scores) -> Scores:
    """The middle between the last score of a group and the first of the next, of groups of n // B
    scores in order, the first n % B of them with one more; of n groups if B is larger."""
    s, n_bins = np.sort(scores), min(n_bins, scores.size)
    small, more = divmod(s.size, n_bins)
    start = np.arange(1, n_bins) * small + np.minimum(np.arange(1, n_bins), more)
    return with_ends(np.unique((s[start - 1] + s[start]) / scores.dtype.type(2)))


def middles_of_scores(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """The middle between one distinct score and the next: every score has a bin of its own."""
    s = np.unique(scores)
    return with_ends((s[:-1] + s[1:]) / scores.dtype.type(2))


def order_statistics(n_bins: int, scores: Scores) -> Scores:
    """The scores at the positions ``round(j n / B)`` of all in order."""
    at = np.round(np.arange(n_bins) * (scores.size / n_bins)).astype(np.intp)
    return with_ends(np.sort(scores)[np.minimum(at, scores.size - 1)][1:])


def with_ends(inner: Scores) -> Scores:
    """Inner edges between 0 and 1."""
    return np.concatenate([[0.0], np.maximum.accumulate(inner), [1.0]])


# -- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Convention:
    """How functions of a library bin scores, and where they depart from `fastece.ece`.

    Parameters
    ----------
    library : str
        Name of the package.
    functions : tuple of str
        Those of the module of `fastece.compat` that use it.
    edges : callable
        From the number of bins and the scores to the edges.
    closed : {"left", "right"}
        Bins ``[a, b)`` or ``(a, b]``.
    formula, ends, bad, departs : str
        For readers: the edges; where scores of 0 and 1 go; what the library does about a score that
        is nan or outside [0, 1]; what else differs from the definition, and why that matters.
    needs_scores : bool
        Whether edges depend on the scores.
    """

    library: str
    functions: tuple[str, ...]
    edges: Rule
    closed: Literal["left", "right"]
    formula: str
    ends: str
    bad: str
    departs: str
    needs_scores: bool = False

    def binned(self, n_bins: int, scores: Scores = NO_SCORES, **fields: Any) -> Binned:
        """The estimator: `Binned` with the edges of this convention.

        Parameters
        ----------
        n_bins : int
            As the library counts them; a bin for scores of 1 alone is one more.
        scores : (n,) array of float
            All scores, where edges depend on them; else only their dtype matters.
        **fields
            Others of `Binned`, such as ``norm=2``.

        Returns
        -------
        Binned

        Raises
        ------
        ValueError, TypeError
            For a number of bins that is none, and for edges that depend on scores without any.
        """
        n_bins, scores = check_bins("n_bins", n_bins), np.asarray(scores)
        if self.needs_scores and not scores.size:
            raise ValueError("scores: are needed for edges that depend on them; got none")
        if self.needs_scores:
            return self.between(self.edges(n_bins, scores), fields)
        make = fixed_bins if n_bins <= MAX_KEPT_BINS else fixed_bins.__wrapped__
        return make(self, n_bins, scores.dtype, tuple(sorted(fields.items())))

    def layout(self, n_bins: int, scores: Scores = NO_SCORES) -> Layout:
        """The bins alone, for sums over them: a quarter of the time of an estimator of few rows."""
        if self.needs_scores:
            edges = self.edges(n_bins, scores).astype(np.float64, copy=False)
            return hard_layout(edges, edges[1:-1], self.closed == "right")
        binned = self.binned(n_bins, scores)
        return binned.fixed_layout(len(binned.edges) - 1, 0.0, 1.0)

    def between(self, edges: Scores, fields: dict[str, Any]) -> Binned:
        """The estimator with these edges."""
        return Binned(edges=edges.tolist(), closed=self.closed, **fields)


def check_bins(name: str, value: Any) -> int:
    """A number of bins."""
    return check_integer(name, value, 1, MAX_BINS)


@lru_cache(maxsize=256)
def fixed_bins(
    convention: Convention, n_bins: int, dtype: np.dtype[Any], fields: tuple[tuple[str, Any], ...]
) -> Binned:
    """The bins of a convention that does not look at scores, kept for the next call."""
    return convention.between(convention.edges(n_bins, np.empty(0, dtype)), dict(fields))


ALONE = "0 in the first bin, 1 in a bin of its own after the last"
INSIDE = "0 in the first bin, 1 in the last"
TORCH = (
    "Bins are closed at the left, and a sure model (score 1) has a bin of its own, so a score on "
    "an edge, such as 0.5, counts in another bin. Sums are float32 there, added one by one, so "
    "that from some ten thousand rows on the sixth digit is off; here they are float64. Scores of "
    "two classes in float16 or bfloat16 are binned and added up in that precision there, which may "
    "move the second digit; here they are float32."
)
LOGITS = "one value outside makes all of them logits; nan counts somewhere"
CLIPPED = "clipped to [0, 1]; nan counts somewhere"
NEAREST = "counts in the nearest bin; nan in the last"
LAST = "counts in the first or the last bin"

CONVENTIONS = {
    "torchmetrics": Convention(
        "torchmetrics", ("multiclass_calibration_error", "MulticlassCalibrationError"),
        one_alone(single_two_sided_steps), "left",
        "`torch.linspace` in float32, to which scores are rounded", ALONE, LOGITS, TORCH,
    ),
    "torchmetrics_binary": Convention(
        "torchmetrics", ("binary_calibration_error", "BinaryCalibrationError"),
        one_alone(two_sided_steps), "left", "`torch.linspace` in the precision of the scores",
        ALONE, LOGITS, TORCH,
    ),
    "netcal": Convention(
        "netcal", ("ECE", "MCE", "ACE"), linspace, "left", "`j * (1 / B)`", INSIDE, CLIPPED,
        "Ten bins, closed at the left. Labels with at most two distinct values make it the binary "
        "problem of the last column, of two columns too, and not the top label. Bins of float32 "
        "scores are counted by other edges than they are averaged by, so that rows between the two "
        "are lost; here there is one edge.",
    ),
    "netcal_quantile": Convention(
        "netcal", ("ECE(equal_intervals=False)", "MCE", "ACE"), quantiles, "left",
        "quantiles of the scores by numpy, and 0 and 1", INSIDE, CLIPPED,
        "Quantiles that are equal, as tied scores make them, raise an error there; here the bins "
        "between them are empty. Of float32 scores rows are lost as above, and more often, since "
        "edges are scores.", needs_scores=True,
    ),
    "uncertainty_calibration": Convention(
        "uncertainty-calibration", ("get_ece",), quotients, "right", "`j / B`", INSIDE, NEAREST,
        "With `debias=False` this is `fastece.ece`. With `debias=True` the package draws normal "
        "variables, and raises an error if a bin has fewer than two rows; here the expected value "
        "of what it draws is computed, which is `fastece.ece(..., debias=True)`.",
    ),
    "uncertainty_calibration_quantile": Convention(
        "uncertainty-calibration", ("get_ece_em", "get_calibration_error"), middles_of_groups,
        "right", "middles between neighbours of two groups of n // B scores", INSIDE, NEAREST,
        "`get_calibration_error` is of norm 2, debiased, class by class and in equal-mass bins "
        "unless told otherwise: another quantity than the ECE. A tie at the end of a group is one "
        "edge, which all its rows are below.", needs_scores=True,
    ),
    "uncertainty_calibration_discrete": Convention(
        "uncertainty-calibration", ("get_calibration_error",), middles_of_scores, "right",
        "middles between all distinct scores", INSIDE, NEAREST,
        "Where every column has fewer distinct scores than n / 4, each score has a bin of its own, "
        "so the value may jump with the number of rows.", needs_scores=True,
    ),
    "sklearn": Convention(
        "scikit-learn", ("calibration_curve",), linspace, "right", "`j * (1 / B)`", INSIDE,
        "an error; nan is returned",
        "Five bins, and empty ones are left out, so that curves of two models may have different "
        "lengths. Edges are a float above `j / B` here and there: 0.3 of ten bins is in the bin "
        "below an edge of 0.30000000000000004.",
    ),
    "sklearn_quantile": Convention(
        "scikit-learn", ('calibration_curve(strategy="quantile")',), percentiles, "right",
        "percentiles of the scores by numpy, and 0 and 1", INSIDE, "an error; nan is returned",
        "Tied scores stay together, and bins that they leave empty are not returned.",
        needs_scores=True,
    ),
    "relplot": Convention(
        "relplot", ("binnedECE",), least_with_quotient, "left",
        "where `int(s / (1 / B))` changes",
        "0 in the first bin, 1 mostly in one of its own", "an error, or a bin further on",
        "Ten bins, closed at the left. Rounding puts scores of 1 into the last bin for some B, as "
        "93, or 7 in float32, and for others the float below 1 into their own. A float32 score of "
        "1 is an error there for 93 bins.",
    ),
    "robustness_metrics": Convention(
        "uncertainty-metrics", ("gce", "ece", "sce"), one_alone(linspace), "left",
        "`j * (1 / B)`", ALONE, LAST,
        'Thirty bins, closed at the left. `norm="l2"` is `sqrt(sum_b (D_b / n)^2)`, not the root '
        "mean square of the gaps: a bin counts by the square of its share, so that many bins make "
        "the value small.",
    ),
    "robustness_metrics_adaptive": Convention(
        "uncertainty-metrics", ("gce", "rmsce", "ace", "tace"), order_statistics, "left",
        "the scores at the positions `round(j n / B)`", INSIDE, LAST,
        "Bins count by their rows, not equally as the ACE and TACE of the paper have it "
        "(`fastece.ace`, `fastece.tace`). A bin begins with the score at its position, so tied "
        "scores may empty the bin before.", needs_scores=True,
    ),
}  # fmt: skip
