"""Areas below the risk-coverage curve: how wrong the most confident rows are."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.parameters import check_choice
from fastece.data.samples import Sample, scale_weights
from fastece.estimators.base import Parameters, Statistic
from fastece.estimators.draws import Counts, Draws
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32

AREAS = ("aurc", "e_aurc", "augrc")
# The largest areas. Where all rows are misses, L(c) = c. E-AURC is largest where the half of the
# rows with the highest scores are the misses.
LARGEST_AREAS = {"aurc": 1.0, "e_aurc": math.log(2), "augrc": 0.5}
# Sums of distinct scores that are made at once: all of them stay in the second-level cache.
MAX_SUMS_AT_ONCE = 2**15
# In place of a 0 that is divided by, or whose logarithm is taken, where the result is multiplied by
# 0.
TINY_WEIGHT = 1e-300


class RiskPlan(NamedTuple):
    """Rows from the highest score down, where equal scores are one block.

    Attributes
    ----------
    terms : (2, n) float64 array
        The weight of each row, and its loss times the weight.
    order, starts : (n,) and (D + 1,) int32 arrays
        The rows in this order, and where the rows of each of D scores begin.
    has_loss : (D,) bool array
        Whether any row of the score has a loss: with a good model most have none, and take less
        time.
    best : RiskPlan or None
        The same rows from the smallest loss up; None where every loss is 0 or 1.
    """

    terms: F64
    order: I32
    starts: I32
    has_loss: NDArray[np.bool_]
    best: "RiskPlan | None" = None

    @classmethod
    def of(cls, order: NDArray[Any], key: F64, loss: F64, v: F64 | None) -> Self:
        """Make the plan of rows in an order of their keys (n,)."""
        key = key[order]
        loss = loss[order]
        weight = np.ones(loss.size) if v is None else (v / v.max())[order]
        starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1], [True]]))
        rows_with_loss = np.append(0, np.cumsum(loss != 0))[starts]
        return cls(
            terms=np.stack([weight, weight * loss]),
            order=np.ascontiguousarray(order, np.int32),
            starts=starts.astype(np.int32),
            has_loss=rows_with_loss[1:] > rows_with_loss[:-1],
        )

    def sums(self, c: NDArray[Any], first: int, last: int) -> F64:
        """Sum up both terms (2, last - first, R) of blocks for counts (G, n, 32) or (n,)."""
        starts = self.starts[first : last + 1] - self.starts[first]
        rows = slice(self.starts[first], self.starts[last])
        terms = self.terms[:, rows]
        order = self.order[rows]
        if c.ndim == 1:
            sums: F64 = terms * c[order]
            if starts.size <= order.size:  # some rows have equal scores
                sums = np.add.reduceat(sums, starts[:-1], axis=1)
            return sums[:, :, None]
        out = np.empty((2, last - first, REPLICATES * len(c)))
        cells = np.arange(last - first, dtype=np.int32)
        kernels.replicates.tile_sums(terms.copy(), order, starts, cells, 0, c, out)
        return out

    def areas(self, c: NDArray[Any]) -> F64:
        """Compute the areas (3, R) in the order of `AREAS` for counts (G, n, 32) or (n,)."""
        mean, aurc, augrc = self.integrals(c)
        if self.best is None:
            right = 1 - mean
            best_aurc = mean + right * np.log(np.maximum(right, TINY_WEIGHT))
        else:
            best_aurc = self.best.integrals(c)[1]
        return np.stack([aurc, aurc - best_aurc, augrc])

    def integrals(self, c: NDArray[Any]) -> F64:
        """Compute the mean loss, AURC and AUGRC (3, R) for counts (G, n, 32) or (n,)."""
        n_replicates = 1 if c.ndim == 1 else REPLICATES * len(c)
        step = max(1, MAX_SUMS_AT_ONCE // n_replicates)
        weight = np.zeros(n_replicates)  # of the rows so far
        totals = np.zeros((3, n_replicates))
        for first in range(0, self.has_loss.size, step):
            mass, loss = self.sums(c, first, min(first + step, self.has_loss.size))
            end = weight + np.cumsum(mass, axis=0)
            begin = np.concatenate([weight[None], end[:-1]])
            weight = end[-1]
            counts = self.has_loss[first : first + step]
            mass, loss, begin, end = (x[counts] for x in (mass, loss, begin, end))
            mean_loss = loss / np.maximum(mass, TINY_WEIGHT)
            area = mean_loss * (antiderivative(end) - antiderivative(begin))
            totals += [loss.sum(0), area.sum(0), (loss * (end + begin)).sum(0) / 2]
        mean, area, moment = totals / weight
        return np.stack([mean, area + np.log(weight) * mean, mean - moment / weight])


def antiderivative(weight: F64) -> F64:
    """Compute ``k - k log k``, the integral of ``-log k``; 0 at 0."""
    return np.asarray(weight - weight * np.log(np.maximum(weight, TINY_WEIGHT)))


def prepare_rows(sample: Sample, losses: F64 | None = None) -> RiskPlan:
    """Prepare a sorted sample, with its misses or the losses (N,) of a caller's rows."""
    sample, _ = scale_weights(sample)
    order = np.arange(sample.n)
    if sample.log_odds is not None:
        order = np.argsort(sample.log_odds, kind="stable")
    order = order[::-1]
    if losses is None:
        return RiskPlan.of(order, sample.ranking, np.subtract(1.0, sample.y), sample.v)
    loss = losses[sample.rows]
    best = RiskPlan.of(np.argsort(loss, kind="stable"), loss, loss, sample.v)
    return RiskPlan.of(order, sample.ranking, loss, sample.v)._replace(best=best)


@dataclass(frozen=True)
class RiskAreas(Statistic):
    """All areas (3, R) of a sample: of misses, or losses (N,) of a caller's rows."""

    losses: F64 | None = None

    def prepare(self, sample: Sample, size: int) -> RiskPlan:  # noqa: ARG002
        """Prepare a sorted sample."""
        return prepare_rows(sample, self.losses)

    def values(self, plan: RiskPlan, draws: Any) -> F64:
        """Compute the areas (3, R) of all replicates."""
        return plan.areas(draws.blocks(plan.order.size))


@dataclass(frozen=True)
class SelectiveRisk(Parameters):
    """An area below the risk-coverage curve of hits and their scores; 0 is best.

    With L(c) the loss of the share c of the weight that has the highest scores, where the loss of a
    row is ``1 - y``, and risk(c) = L(c) / c: AURC is the mean risk over all coverages c.

    Parameters
    ----------
    area : {"aurc", "e_aurc", "augrc"}
        "aurc": ``int_0^1 L(c) / c dc``. "e_aurc": AURC minus the AURC of the best order of the same
        rows, which for the share r of misses is ``r + (1 - r) log(1 - r)``. "augrc":
        ``int_0^1 L(c) dc``.

    Raises
    ------
    ValueError, TypeError
        For another area.

    Notes
    -----
    Geifman, Uziel and El-Yaniv (2019, "Bias-reduced uncertainty estimation for deep neural
    classifiers") for AURC and E-AURC; Traub et al. (2024, "Overcoming common flaws in the
    evaluation of selective classification systems") for AUGRC. Rows of one score count
    with their mean loss, so L is linear there, and a block of the coverages a to b with the mean
    loss r adds ``r (b - b log b - a + a log a)`` to AURC. Sums over rows, as other libraries have
    them, differ by O(1 / n): see ``docs/how_to/migration.md``.

    Examples
    --------
    >>> from fastece import SelectiveRisk, ece
    >>> hit, confidence = [1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6]
    >>> round(ece(hit, confidence, estimator=SelectiveRisk()), 6)
    0.119188
    >>> round(ece(hit, confidence, estimator="augrc"), 6)
    0.09375
    """

    area: str = "aurc"

    native = (Counts,)
    is_calibration_error = False
    lowest = 0.0
    checks: ClassVar = {"area": partial(check_choice, choices=AREAS)}

    @property
    def largest(self) -> float:
        """The largest value."""
        return LARGEST_AREAS[self.area]

    def prepare(self, sample: Sample, size: int) -> RiskPlan:  # noqa: ARG002
        """Prepare a sorted sample."""
        return prepare_rows(sample)

    def evaluate(self, plan: RiskPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return float(plan.areas(np.asarray(c, np.float64))[AREAS.index(self.area)][0])

    def values(self, plan: RiskPlan, draws: Draws) -> F64:
        """Compute the value of each replicate, of counts in one pass over the rows."""
        if isinstance(draws, Counts):
            return np.asarray(plan.areas(draws.blocks(plan.order.size))[AREAS.index(self.area)])
        return super().values(plan, draws)
