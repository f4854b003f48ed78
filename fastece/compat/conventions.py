"""The table of conventions: the bins of other libraries, and their closed ends.

A convention is a rule for the edges of bins and the side on which bins are closed. `Binned` with
explicit edges takes any rule, so whatever takes an estimator takes a convention too:

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
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_real
from fastece.data.errors import InputError, rename_arguments
from fastece.data.parameters import check_integer
from fastece.data.reading import read_source
from fastece.data.samples import Sample
from fastece.data.sources import NO_ROWS, Problems, one_problem
from fastece.estimators.binned import Binned, Bins, formula_of
from fastece.estimators.binned.layouts import hard_layout
from fastece.estimators.binned.ranks import scores_at_ranks
from fastece.estimators.binned.sums import bins_of_layout
from fastece.kernels import GAP, HITS, SCORE, WEIGHT
from fastece.kernels.types import F64, U8

Scores = NDArray[np.floating[Any]]
Rule = Callable[[int, Scores], Scores]
# More bins than anyone wants; edges are a list of Python's floats. Larger ones are not kept.
MAX_BINS, MAX_KEPT_BINS = 2**20, 4096
NO_SCORES, ZERO, ONE = np.empty(0), np.zeros(1), np.ones(1)


# -- names of arguments ---------------------------------------------------------------------------


class Names(NamedTuple):
    """A library's names of labels, of probabilities and of the first argument.

    `has_pos_label`: whether its functions take `pos_label`.
    """

    label: str
    prob: str
    first: str
    has_pos_label: bool = False

    @property
    def arguments(self) -> dict[str, str | None]:
        """Map fastece's arguments to the library's, or to None where it has none."""
        names = {"y_true": self.label, "y_prob": self.prob, "first": self.first}
        absent = ("labels", "from_logits") + (() if self.has_pos_label else ("pos_label",))
        return {**names, **dict.fromkeys(absent)}

    def scores(self, value: Any) -> NDArray[Any]:
        """Convert probabilities to an array in the dtype that they have."""
        return as_real(self.prob, value)

    def columns(self, value: Any) -> NDArray[Any]:
        """Convert probabilities to an array as `scores`, one column (n, 1) to (n,)."""
        prob = self.scores(value)
        return prob[:, 0] if prob.ndim == 2 and prob.shape[1] == 1 else prob

    def vector(self, prob: NDArray[Any]) -> NDArray[Any]:
        """Return probabilities (n,), or refuse another shape."""
        if prob.ndim != 1:
            raise InputError(self.prob, f"must have shape (n,), got {prob.shape}")
        return prob

    def read(self, label: Any, prob: Any, setting: Any = "auto", **options: Any) -> Problems:
        """Read labels and probabilities as problems; errors have the library's names."""
        with rename_arguments(self.arguments):
            source = read_source(label, prob, setting=setting, prob_name=self.prob, **options)
        assert isinstance(source, Problems), "libraries have no streams"
        return source


LIBRARIES = {
    "torchmetrics": Names("target", "preds", "preds"),
    "netcal": Names("y", "X", "X"),
    "uncertainty-calibration": Names("labels", "probs", "probs"),
    "scikit-learn": Names("y_true", "y_prob", "y_true", has_pos_label=True),
    "relplot": Names("y", "f", "f"),
    "uncertainty-metrics": Names("labels", "probs", "labels"),
    "hle": Names("correct", "confidence", "confidence"),
}


# -- rules for edges ------------------------------------------------------------------------------
# Each takes the number of bins and the scores, or what has their dtype, and returns edges from 0 to
# 1. Those of equal width look at the dtype alone.


def quotients(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """Divide ``j / B``, rounded once."""
    return np.arange(n_bins + 1) / n_bins


def linspace(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """Multiply ``j * (1 / B)``, rounded twice: a float above ``j / B`` at 0.3."""
    return np.linspace(0.0, 1.0, n_bins + 1)


def two_sided_steps(n_bins: int, scores: Scores) -> Scores:
    """Step by ``1 / B`` up from 0 to the middle and down from 1 to it, as torch does.

    In float64 if the scores are, else in float32. ``1 - (B - j) * (1 / B)`` is rounded once, as by
    a fused multiply-add, which torch uses on processors that have it (AVX2, AVX-512); without,
    about every second edge there is a float off.
    """
    kind = np.float64 if scores.dtype == np.float64 else np.float32
    step = kind(1) / kind(n_bins)
    exact = Fraction(float(step))
    half = (n_bins + 1) // 2
    lower = [step * kind(j) for j in range(half)]
    upper = [kind(float(1 - (n_bins - j) * exact)) for j in range(half, n_bins + 1)]
    return np.array([*lower, *upper])


def single_two_sided_steps(n_bins: int, scores: Scores) -> Scores:
    """Return `two_sided_steps` as float32, for scores that are rounded first.

    For float64 scores an edge is the least that rounds to it.
    """
    edges = two_sided_steps(n_bins, np.empty(0, np.float32))
    if scores.dtype != np.float64:
        return edges
    below = np.nextafter(edges, np.float32(-1)).astype(np.float64)
    middle = (below + edges) / 2
    up = middle.astype(np.float32) < edges
    return np.where(up, np.nextafter(middle, 2), middle).clip(0, 1)


def least_with_quotient(n_bins: int, scores: Scores) -> Scores:
    """Find the least scores whose quotients by ``1 / B`` are j, in their precision."""
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
    """Extend a rule of left-closed bins by one for scores of 1 after the last."""

    def edges(n_bins: int, scores: Scores) -> Scores:
        return np.append(rule(n_bins, scores), 1.0)

    return edges


def quantiles(unit: float, n_bins: int, scores: Scores) -> Scores:
    """Take numpy's quantiles, of shares in a unit: between two scores, in proportion.

    The difference of the two is rounded in their precision, all else in float64.
    """
    ranks, part = ranks_of_quantiles(unit, n_bins, scores.size)
    low, high, nearest = scores_at_ranks(scores, ranks).reshape(3, -1)
    return with_ends(nearest + (high - low) * part)


@lru_cache(maxsize=64)
def ranks_of_quantiles(unit: float, n_bins: int, n: int) -> tuple[NDArray[np.intp], F64]:
    """Find ranks below, above and nearest to quantiles, and parts of steps there."""
    place = (np.linspace(0, 1, n_bins + 1) * unit / unit)[1:-1] * (n - 1)
    below = place.astype(np.intp)
    is_far = place - below >= 0.5
    ranks = np.concatenate([below, below + 1, below + is_far])
    return np.minimum(ranks, n - 1), place - below - is_far


def middles_of_groups(n_bins: int, scores: Scores) -> Scores:
    """Take the middles between groups of n // B scores in order.

    The first n % B of them have one more; if B is larger than n there are n groups.
    """
    j = np.arange(1, min(n_bins, scores.size))
    small, more = divmod(scores.size, j.size + 1)
    return middles_before(j * small + np.minimum(j, more), scores)


def middles_of_runs(size: int, scores: Scores) -> Scores:
    """Take the middles between runs of so many scores, the last with the rest."""
    return middles_before(np.arange(1, max(scores.size // size, 1)) * size, scores)


def middles_before(start: NDArray[np.intp], scores: Scores) -> Scores:
    """Take the middles between scores at ranks and the scores before them."""
    low, high = scores_at_ranks(scores, np.concatenate([start - 1, start])).reshape(2, -1)
    return with_ends((low + high) / scores.dtype.type(2))


def middles_of_scores(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """Take the middles of distinct scores: every score has a bin of its own."""
    s = np.unique(scores)
    return with_ends((s[:-1] + s[1:]) / scores.dtype.type(2))


def order_statistics(n_bins: int, scores: Scores) -> Scores:
    """Take the scores at the positions ``round(j n / B)`` of all in order."""
    at = np.rint(np.arange(1, n_bins) * (scores.size / n_bins)).astype(np.intp)
    return with_ends(scores_at_ranks(scores, np.minimum(at, scores.size - 1)))


def with_ends(inner: Scores) -> Scores:
    """Add the ends 0 and 1 to inner edges."""
    return np.concatenate([ZERO, np.maximum.accumulate(inner), ONE])


# -- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Convention:
    """How functions of a library bin scores.

    Parameters
    ----------
    library : str
        Name of the package.
    functions : tuple of str
        Functions of the module of `fastece.compat` that use it.
    edges : callable
        From the number of bins and the scores to the edges.
    closed : {"left", "right"}
        Bins ``[a, b)`` or ``(a, b]``.
    formula, ends, bad : str
        For readers: the edges; where scores of 0 and 1 go; what the library does about a score that
        is nan or outside [0, 1].
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
    needs_scores: bool = False

    def binned(self, n_bins: int, scores: Scores = NO_SCORES, **fields: Any) -> Binned:
        """Build the estimator: `Binned` with the edges of this convention.

        Parameters
        ----------
        n_bins : int
            As the library counts them; a bin for scores of 1 alone is one more.
        scores : (n,) array of float
            All scores, where edges depend on them; else only their dtype matters.
        **fields
            Others of `Binned`, such as ``norm=2``.

        Raises
        ------
        ValueError, TypeError
            For an invalid number of bins, and for edges that depend on scores without any.
        """
        n_bins, scores = check_bins("n_bins", n_bins), np.asarray(scores)
        if self.needs_scores and not scores.size:
            raise InputError("scores", "are needed for edges that depend on them, got none")
        if self.needs_scores or n_bins > MAX_KEPT_BINS:
            edges = self.edges(n_bins, scores).tolist()
            return Binned(edges=edges, closed=self.closed, **fields)
        return fixed_bins(self, n_bins, scores.dtype, tuple(sorted(fields.items())))

    def errors(
        self, label: Any, prob: NDArray[Any], n_bins: int, setting: Any = "auto",
        guess_logits: bool = False, **fields: Any,
    ) -> F64:  # fmt: skip
        """Compute the error (K,) of each problem of a library's labels and probabilities.

        `setting` and `guess_logits` are those of `read_problems`, `fields` others of `Binned`.
        """
        names, options = LIBRARIES[self.library], {"guess_logits": guess_logits}
        if not self.needs_scores:
            binned = self.binned(n_bins, prob, **fields)
            return binned.point_values(names.read(label, prob, setting, **options))
        problems, formula = names.read(label, prob, setting, **options), formula_of(**fields)
        samples = (problems.view(k) for k in range(problems.n_problems))
        bins = (self.bins(n_bins, x.s, x.y, prob.dtype) for x in samples)
        return np.concatenate([formula.errors(part) for part in bins])

    def bins(self, n_bins: int, s: F64, y: U8, dtype: np.dtype[Any]) -> Bins:
        """Add up the bins of scores in [0, 1], which the library has in a dtype, and hits."""
        scores: Scores = s.astype(np.float32) if dtype == np.float32 else s
        edges = self.edges(n_bins, scores).astype(np.float64, copy=False)
        layout = hard_layout(edges, edges[1:-1], self.closed == "right")
        problem = one_problem(Sample(s, y, None, 0.0, 1.0, NO_ROWS))
        return bins_of_layout(layout, problem, (GAP, WEIGHT, SCORE, HITS))


def check_bins(name: str, value: Any) -> int:
    """Check a number of bins."""
    return check_integer(name, value, 1, MAX_BINS)


@lru_cache(maxsize=256)
def fixed_bins(
    convention: Convention, n_bins: int, dtype: np.dtype[Any], fields: tuple[tuple[str, Any], ...]
) -> Binned:
    """Build the bins of a convention that ignores the scores, and cache them."""
    edges = convention.edges(n_bins, np.empty(0, dtype)).tolist()
    return Binned(edges=edges, closed=convention.closed, **dict(fields))


ALONE = "0 in the first bin, 1 in a bin of its own after the last"
INSIDE = "0 in the first bin, 1 in the last"
LOGITS = "one value outside makes all of them logits; nan counts somewhere"
CLIPPED = "clipped to [0, 1]; nan counts somewhere"
NEAREST = "counts in the nearest bin; nan in the last"
LAST = "counts in the first or the last bin"
REFUSED = "an error; nan is returned"

CONVENTIONS = {
    "torchmetrics": Convention(
        "torchmetrics", ("multiclass_calibration_error", "MulticlassCalibrationError"),
        one_alone(single_two_sided_steps), "left",
        "`torch.linspace` in float32, to which scores are rounded", ALONE, LOGITS,
    ),
    "torchmetrics_binary": Convention(
        "torchmetrics", ("binary_calibration_error", "BinaryCalibrationError"),
        one_alone(two_sided_steps), "left",
        "`torch.linspace` in the precision of the scores", ALONE, LOGITS,
    ),
    "netcal": Convention(
        "netcal", ("ECE", "MCE", "ACE"), linspace, "left", "`j * (1 / B)`", INSIDE, CLIPPED,
    ),
    "netcal_quantile": Convention(
        "netcal", ("ECE(equal_intervals=False)", "MCE", "ACE"), partial(quantiles, 1), "left",
        "quantiles of the scores by numpy, and 0 and 1", INSIDE, CLIPPED, needs_scores=True,
    ),
    "uncertainty_calibration": Convention(
        "uncertainty-calibration", ("get_ece",), quotients, "right", "`j / B`", INSIDE, NEAREST,
    ),
    "uncertainty_calibration_quantile": Convention(
        "uncertainty-calibration", ("get_ece_em", "get_calibration_error"),
        middles_of_groups, "right",
        "middles between neighbours of two groups of n // B scores", INSIDE, NEAREST,
        needs_scores=True,
    ),
    "uncertainty_calibration_discrete": Convention(
        "uncertainty-calibration", ("get_calibration_error",), middles_of_scores, "right",
        "middles between all distinct scores", INSIDE, NEAREST, needs_scores=True,
    ),
    "sklearn": Convention(
        "scikit-learn", ("calibration_curve",), linspace, "right", "`j * (1 / B)`", INSIDE, REFUSED,
    ),
    "sklearn_quantile": Convention(
        "scikit-learn", ('calibration_curve(strategy="quantile")',),
        partial(quantiles, 100), "right",
        "percentiles of the scores by numpy, and 0 and 1", INSIDE, REFUSED, needs_scores=True,
    ),
    "relplot": Convention(
        "relplot", ("binnedECE",), least_with_quotient, "left",
        "where `int(s / (1 / B))` changes",
        "0 in the first bin, 1 mostly in one of its own", "an error, or a bin further on",
    ),
    "robustness_metrics": Convention(
        "uncertainty-metrics", ("gce", "ece", "sce"), one_alone(linspace), "left",
        "`j * (1 / B)`", ALONE, LAST,
    ),
    "robustness_metrics_adaptive": Convention(
        "uncertainty-metrics", ("gce", "rmsce", "ace", "tace"), order_statistics, "left",
        "the scores at the positions `round(j n / B)`", INSIDE, LAST, needs_scores=True,
    ),
    "hle": Convention(
        "hle", ("calib_err",), middles_of_runs, "right",
        "between runs of 100 rows in order, which part equal scores; the last run counts 0",
        INSIDE, "nan counts nowhere, outside somewhere", needs_scores=True,
    ),
    "browse_comp": Convention(
        "hle", ("calibration_error",), linspace, "right",
        "`j * (1 / B)`, of BrowseComp in inspect-evals", INSIDE, LAST,
    ),
}  # fmt: skip


# -- areas below risk-coverage curves -------------------------------------------------------------


def from_first(x: F64, y: F64) -> float:
    """Compute the area of trapezoids from the first coverage on, over its width."""
    return float(np.trapezoid(y, x) / (1 - x[0])) if x.size > 1 else float("nan")


class AreaConvention(NamedTuple):
    """How a library computes an area below the risk-coverage curve.

    Parameters
    ----------
    library, function : str
        Name of the package or the publication, and of its class or attribute.
    together : bool
        Whether rows of one score are one point, else each row is, in the order of a stable sort.
    rule : callable
        From the coverages of the points, and the misses down to them, both (k,) as shares of all
        rows, to the number of the library.
    formula : str
        For readers.
    """

    library: str
    function: str
    together: bool
    rule: Callable[[F64, F64], float]
    formula: str

    def area(self, hit: Any, score: Any) -> float:
        """Compute the number of the library for hits (n,) and their scores (n,)."""
        score = as_real("score", score)
        order = np.argsort(-score, kind="stable")
        last = np.append(np.diff(score[order]) != 0, True) | (not self.together)
        points = np.arange(1, score.size + 1), np.cumsum(1.0 - as_real("hit", hit)[order])
        return float(self.rule(*(x[last] / score.size for x in points)))


AREAS = {
    "geifman": AreaConvention(
        "Geifman et al. (2019)", "AURC", False, lambda x, y: float((y / x).mean()),
        "mean of the risks of the first k rows"),
    "torch_uncertainty": AreaConvention(
        "torch-uncertainty", "AURC", False, lambda x, y: from_first(x, y / x),
        "trapezoids of these risks from coverage 1 / n on, over 1 - 1 / n; nan of one row"),
    "torch_uncertainty_augrc": AreaConvention(
        "torch-uncertainty", "AUGRC", False, from_first, "the same of risks times coverages"),
    "fd_shifts": AreaConvention(
        "fd-shifts", "aurc", True, lambda x, y: 1000 * float(np.trapezoid(y / x, x) + y[0]),
        "1000 times trapezoids of risks, the first one from coverage 0 on"),
    "fd_shifts_augrc": AreaConvention(
        "fd-shifts", "augrc", True,
        lambda x, y: 1000 * float(np.trapezoid(y, x) + x[0] * y[0] / 2),
        "1000 times trapezoids of risks times coverages, from coverage 0 on"),
}  # fmt: skip
