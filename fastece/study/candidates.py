"""Candidates of a study: estimators under test, and constant zero.

They come from the table, from a publication, or from the user.

The published convention has the slips of the published code, so that its figure can be compared.
Where it differs from its text, and from `fastece`: convex shares are swapped, so that the farther
centre gets the larger one, and a score on a centre has none in the bin of that centre, but all of
it in the one before (on the first centre: in the last bin); bins of `ece` divide [0, 1] whatever
the support, and hold their left edges; edges of equal mass lie ``floor(n / B)`` rows apart, and the
last bin takes the rest; the kernel is a triweight; every class has the bandwidth of the first. Its
grid of 2**14 points over 6 units is not kept: a fitting grid gives the same to 2e-4, in a hundredth
of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.binned import Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.draws import Rows
from fastece.estimators.table import find_estimator
from fastece.kernels.types import F64, I64
from fastece.study.design import StudyDesign

BINS: tuple[Any, ...] = (10, 30, "sqrt")
BANDWIDTHS: tuple[Any, ...] = ("silverman", 0.1, 0.033)
KINDS: dict[str, dict[str, Any]] = {
    "ece": {},
    "ece_a": {"edges": "quantile"},
    "ece_c": {"mapping": "convex"},
    "ece_ac": {"edges": "quantile", "mapping": "convex"},
}
# Names, numbers of bins and fields of binned estimators; names and bandwidths of densities.
BINNED = [(f"{kind}_{bins}", bins, KINDS[kind]) for kind in KINDS for bins in BINS]
DENSITIES = [(f"ece_kde_{h}", h) for h in BANDWIDTHS]
BAYES, ZERO = "ece_bayes", "zero"


@dataclass(frozen=True)
class Candidate:
    """An estimator with its name in results."""

    name: str
    estimator: Any

    def values(self, problems: Sequence[Rows]) -> F64:
        """Compute the mean over the problems (R,) of each draw of their rows."""
        plans = [self.estimator.prepare(drawn.sample, drawn.rows.shape[1]) for drawn in problems]
        values = [self.estimator.values(*pair) for pair in zip(plans, problems, strict=True)]
        return np.asarray(np.mean(values, axis=0))


class Zero(Candidate):
    """The constant estimate 0: the cost of not measuring."""

    def values(self, problems: Sequence[Rows]) -> F64:
        """Return 0 for every draw."""
        return np.zeros(len(problems[0].rows))


def corrected() -> list[Candidate]:
    """Build the paper's fifteen estimators as corrected, and the Bayesian curve.

    All bins divide the support of the score, so that equal numbers of them mean equal widths.
    """
    return [
        *(Candidate(name, Binned(bins, score_range="support", **x)) for name, bins, x in BINNED),
        *(Candidate(name, KDE(bandwidth=h)) for name, h in DENSITIES),
        Candidate(BAYES, BayesCurve()),
    ]


def own(path: str) -> Candidate:
    """Import the user's estimator "module:name".

    It is an object of the protocol, or a class or function that returns one without arguments.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise InputError("estimator", 'must be "module:name"', value=path)
    try:
        found = getattr(import_module(module), name)
        made = found() if callable(found) else found
    except Exception as error:  # whatever a user's module does
        raise InputError("estimator", f"{path!r} was not found, or not made: {error!r}") from error
    estimator = find_estimator(made, {})
    if not estimator.is_calibration_error:
        raise InputError("estimator", f"{path!r} is no calibration error, and these have a truth")
    return Candidate(name, estimator)


@dataclass(frozen=True)
class PublishedBinned:
    """Binned estimator with the bins of the published code, for rows without weights.

    Notes
    -----
    Edges "quantile" lie half way between the rows ``i * floor(n / B) - 1`` and ``i * floor(n / B)``
    in the order of their scores, nan for n < B; with "convex" bins a score above the centre ``c_j``
    and up to ``c_(j+1)`` gives ``(s - c_j) / (c_(j+1) - c_j)`` to the lower one.
    """

    n_bins: Any = 10
    edges: str = "uniform"
    mapping: str = "hard"

    def prepare(self, sample: Sample, size: int) -> tuple[Sample, int]:
        """Return the sorted sample and the number of bins."""
        return sample, int(size**0.5) if self.n_bins == "sqrt" else int(self.n_bins)

    def values(self, plan: tuple[Sample, int], draws: Rows) -> F64:
        """Compute the value of the rows (R, n) of each draw."""
        sample, n_bins = plan
        rows = np.sort(draws.rows, axis=1)
        s = sample.s[rows]
        gap = sample.y[rows] - s
        edges = np.empty((len(rows), n_bins + 1))
        edges[:, 0], edges[:, -1] = sample.low, sample.high
        if self.edges == "quantile":
            step = s.shape[1] // n_bins
            if step == 0:
                return np.full(len(rows), np.nan)
            starts = np.arange(1, n_bins) * step
            edges[:, 1:-1] = (s[:, starts - 1] + s[:, starts]) / 2
        else:
            edges[:] = sample.low + (sample.high - sample.low) * (np.arange(n_bins + 1) / n_bins)
        if self.mapping == "hard":
            return binned_values(n_bins, (places(edges[:, 1:-1], s, "right"), gap))
        centres = (edges[:, :-1] + edges[:, 1:]) / 2
        upper = places(centres, s, "left")
        inside = (upper > 0) & (upper < n_bins)
        # The lower index of a score on the first centre is -1, and that is the last bin.
        lower = np.where(s == centres[:, :1], n_bins - 1, np.maximum(upper - 1, 0))
        upper = np.minimum(upper, n_bins - 1)
        low, high = (np.take_along_axis(centres, at, axis=1) for at in (lower, upper))
        share = np.divide(s - low, high - low, out=np.ones_like(s), where=inside)
        return binned_values(n_bins, (lower, gap * share), (upper, gap * (1 - share)))


def places(edges: F64, s: F64, side: Literal["left", "right"]) -> I64:
    """Find the places of the scores (R, n) of each draw among its edges (R, B)."""
    return np.array([np.searchsorted(e, u, side) for e, u in zip(edges, s, strict=True)])


def binned_values(n_bins: int, *parts: tuple[I64, F64]) -> F64:
    """Compute values (R,) of gaps (R, n) that go to bins (R, n), in one or more parts."""
    n_draws, n = parts[0][0].shape
    first = np.arange(n_draws)[:, None] * n_bins
    sums = np.zeros(n_draws * n_bins)
    for bins, gap in parts:
        sums += np.bincount((first + bins).ravel(), gap.ravel(), sums.size)
    return np.asarray(np.abs(sums.reshape(n_draws, n_bins)).sum(1) / n)


class SharedBandwidth(Candidate):
    """A density that has the bandwidth of the first class in every class."""

    def values(self, problems: Sequence[Rows]) -> F64:
        """Compute the mean over the classes (R,) of each draw of their rows."""
        kde = self.estimator
        plans = [kde.prepare(drawn.sample, drawn.rows.shape[1]) for drawn in problems]
        h = plans[0].bandwidths(problems[0])
        values = [kde.errors(plan, drawn, h) for plan, drawn in zip(plans, problems, strict=True)]
        return np.asarray(np.mean(values, axis=0))


def published() -> list[Candidate]:
    """Build the paper's fifteen estimators as the published code has them."""
    found: list[Candidate] = []
    for name, bins, fields in BINNED:  # `ece` alone is on [0, 1], whatever the support
        unit = Binned(bins, closed="left")
        found.append(Candidate(name, PublishedBinned(bins, **fields) if fields else unit))
    for name, h in DENSITIES:
        found.append(SharedBandwidth(name, KDE(kernel="triweight", bandwidth=h)))
    return found


def candidates_of(design: StudyDesign) -> list[Candidate]:
    """Build the candidates: estimators of the convention, the user's own, and zero."""
    found = published() if design.convention == "published" else corrected()
    found += [*map(own, design.estimators), Zero(ZERO, None)]
    names = [candidate.name for candidate in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError("estimator", f"the name {name!r} is taken")
    return found
