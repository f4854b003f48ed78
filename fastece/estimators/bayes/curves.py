"""The posterior of the calibration curve of one problem, of three families.

::

    cells -> cut logits    of the mean scores
          -> evidence      of each family: the process, and chains of few or of many pieces
          -> shares        what each family is believed: prior times evidence
          -> draws         curves: the logit of the probability of a hit in each cell
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastece import kernels
from fastece.estimators.bayes.cells import CellRows
from fastece.estimators.bayes.fixed_numbers import DRAWS, shuffled_positions
from fastece.estimators.bayes.pieces import (
    LAWS,
    SPARSE_LAWS,
    FilteredChains,
    draw_chains,
    filter_cells,
)
from fastece.estimators.bayes.process import Hyperpriors, draw_process, fit_process, hyperpriors
from fastece.kernels.types import F64, I64

if TYPE_CHECKING:
    from fastece.kernels.bayes import Fits

# Families of curves: chains whose pieces are mostly calibrated, the process, chains of many pieces.
SPARSE = 0
PROCESS = 1
ROUGH = 2
# Curves of each family that are drawn for an interval.
FAMILY_DRAWS = (48, 96, 32)
# The laws of the chains of both families.
LAWS_OF_FAMILY = {
    SPARSE: slice(0, len(SPARSE_LAWS)),
    ROUGH: slice(len(SPARSE_LAWS), len(LAWS)),
}
# A family with a smaller share of the value is left out of it.
MIN_SHARE = 0.01
# Each family keeps at least this part of its prior, which may be all that is left.
MIN_LIKELIHOOD = 1e-300
# Logits are cut at odds of 2 + n / 2, two misses among n rows, or of 2 + 2 n, half a miss: the rows
# do not tell larger ones apart.
MIN_ODDS = 2.0
NEAR_ODDS_PER_ROW = 0.5
FAR_ODDS_PER_ROW = 2.0


class Belief(NamedTuple):
    """Prior probabilities of the families, and shares that each always keeps."""

    prior: tuple[float, float, float]
    reserved: tuple[float, float, float] = (0.0, 0.0, 0.0)


VALUE_BELIEF = Belief(prior=(0.04, 0.95, 0.01))
# For the errors of an interval.
ERROR_BELIEF = Belief(prior=(0.3, 0.5, 0.2))
# Each end of an interval has the prior that takes it further out.
LOW_BELIEF = Belief(prior=(0.7, 0.2, 0.1), reserved=(0.2, 0.0, 0.0))
HIGH_BELIEF = Belief(prior=(0.15, 0.7, 0.15), reserved=(0.0, 0.0, 0.12))
PROCESS_ALONE = Belief(prior=(0.0, 1.0, 0.0))


def family_shares(log_evidence: F64, belief: Belief) -> list[float]:
    """Compute the posterior probability of each family with a belief."""
    weights = [
        prior * max(likelihood, MIN_LIKELIHOOD)
        for prior, likelihood in zip(belief.prior, over_largest(log_evidence.tolist()), strict=True)
    ]
    shared_out = 1 - sum(belief.reserved)
    total = sum(weights)
    return [
        shared_out * weight / total + reserved
        for weight, reserved in zip(weights, belief.reserved, strict=True)
    ]


def over_largest(log_evidence: list[float]) -> list[float]:
    """Return how many times as likely as the likeliest each evidence is."""
    top = max(log_evidence)
    return [math.exp(log_e - top) for log_e in log_evidence]


class CutLogits(NamedTuple):
    """Logits of the mean scores of the cells, which the number of rows limits.

    Attributes
    ----------
    low, high : float
        The limits.
    log_likelihood : float
        Log likelihood of the hits under the logits without limits: of a calibrated model.
    x : (C,) float64 array
        The logits.
    t : (C,) float64 array
        Their distances from the mean.
    """

    low: float
    high: float
    log_likelihood: float
    x: F64
    t: F64


@dataclass(frozen=True, eq=False)
class Curves:
    """The posterior of the calibration curve of one problem.

    Parameters
    ----------
    rows : CellRows
    k : int
        Number of the problem, whose interval has random numbers of its own.
    """

    rows: CellRows
    k: int = 0

    @cached_property
    def logits(self) -> CutLogits:
        """Cut logits of the mean scores.

        At each end it is the further one of two cuts, unless the hits of the rows beyond the nearer
        one are less likely then: where scores of 1 come true in 95 of 100 rows, they are not as far
        from calibrated with the nearer cut.
        """
        near = math.log(MIN_ODDS + NEAR_ODDS_PER_ROW * self.rows.n)
        far = math.log(MIN_ODDS + FAR_ODDS_PER_ROW * self.rows.n)
        x, t = np.empty((2, self.rows.cells.weight.size))
        sums = np.zeros((3, 2))
        low, high, log_likelihood = kernels.bayes.cut_logits(self.rows.cells, near, far, x, t, sums)
        return CutLogits(low, high, log_likelihood, x, t)

    @property
    def priors(self) -> Hyperpriors:
        """Hyperparameters with their priors, for these cells."""
        return hyperpriors(self.rows.cells.weight.size)

    @cached_property
    def fits(self) -> "Fits":
        """Laplace's approximations of the process, one for each hyperparameter."""
        return fit_process(self.rows.cells, self.logits.x, self.logits.t, self.priors.curve)

    @cached_property
    def chains(self) -> FilteredChains:
        """The chains, filtered."""
        return filter_cells(self.rows.n, self.rows.cells, self.logits.x)

    # --- evidence

    @cached_property
    def chain_evidence(self) -> tuple[float, float]:
        """Log evidence of sparse chains and of rough ones: the mean over the laws of each."""
        sparse, rough = (
            self.chains.chains.log_evidence[LAWS_OF_FAMILY[family]] for family in (SPARSE, ROUGH)
        )
        return log_mean(sparse), log_mean(rough)

    def log_evidence(self, log_prior: F64) -> F64:
        """Compute the log evidence (3,) of each family, with a prior of hyperparameters."""
        sparse, rough = self.chain_evidence
        return np.array([sparse, np.logaddexp.reduce(self.fits.log_evidence + log_prior), rough])

    @cached_property
    def interval_evidence(self) -> F64:
        """Log evidence (3,) of each family with the prior of the interval."""
        return self.log_evidence(self.priors.interval)

    @property
    def log_bayes_factor(self) -> float:
        """Log Bayes factor of a curve against perfect calibration, ``c = s``."""
        log_p = self.interval_evidence + np.log(ERROR_BELIEF.prior)
        return float(np.logaddexp.reduce(log_p)) - self.logits.log_likelihood

    # --- draws

    def draw_process(self, log_prior: F64, k: int, count: int) -> F64:
        """Draw logits (C, S) of the process, with the fixed numbers of problem k."""
        return draw_process(self.logits.x, self.logits.t, self.fits, log_prior, k, count)

    @cached_property
    def sparse(self) -> F64:
        """Drawn logits (C, S) of sparse chains."""
        return self._draw_chains(SPARSE)

    @cached_property
    def rough(self) -> F64:
        """Drawn logits (C, S) of rough chains."""
        return self._draw_chains(ROUGH)

    def _draw_chains(self, family: int) -> F64:
        """Draw logits (C, S) of the chains of a family, with one set of numbers."""
        log_evidence = self.chains.chains.log_evidence.tolist()
        laws = LAWS_OF_FAMILY[family]
        share = [0.0] * len(log_evidence)
        share[laws] = over_largest(log_evidence[laws])
        return draw_chains(self.logits.x, self.chains, share, FAMILY_DRAWS[family])

    def pool(self) -> F64:
        """Draw logits (C, 176) of curves of all families, for intervals."""
        process = self.draw_process(self.priors.interval, self.k, FAMILY_DRAWS[PROCESS])
        return np.concatenate([self.sparse, process, self.rough], axis=1)

    def choose(self, *beliefs: Belief) -> I64:
        """Choose the curves (B, S) of the pool that make up a posterior with each belief."""
        shares = [family_shares(self.interval_evidence, belief) for belief in beliefs]
        share_of_curve = np.repeat(np.array(shares) / FAMILY_DRAWS, FAMILY_DRAWS, axis=1)
        # Sums of belief b lie between b and b + 1, so that all of them are one sorted sequence.
        begin = np.arange(len(beliefs))[:, None]
        sums = begin + np.cumsum(share_of_curve, axis=1)
        sums[:, -1] = begin[:, 0] + 1.0
        place = begin + (np.arange(DRAWS) + 0.5) / DRAWS
        number = np.searchsorted(sums.ravel(), place) - begin * share_of_curve.shape[1]
        return np.asarray(shuffled_positions(self.k, FAMILY_DRAWS, PROCESS)[number])

    def interval_draws(self) -> F64:
        """Draw logits (C, S) of curves under the prior of the interval."""
        return np.asarray(np.take(self.pool(), self.choose(ERROR_BELIEF)[0], axis=1))

    # --- errors

    @cached_property
    def cell_shares(self) -> F64:
        """Shares (C,) of the cells in the weight."""
        weight = self.rows.cells.weight
        return np.asarray(weight / weight.sum())

    def values(self, norm: float, sides: Sequence[int] = (0,)) -> F64:
        """Compute the posterior mean (D,) of the error and of its parts on some sides."""
        evidence = self.log_evidence(self.priors.value)
        total = np.zeros(len(sides))
        total_share = 0.0
        for family, share in enumerate(family_shares(evidence, VALUE_BELIEF)):
            if share >= MIN_SHARE:
                p = probabilities(self._value_draws(family))
                means = [self.errors(p, norm, side).sum() / p.shape[1] for side in sides]
                total += share * np.array(means)
                total_share += share
        return np.asarray(total / total_share)

    def _value_draws(self, family: int) -> F64:
        """Draw logits (C, S) of curves of a family, for the value."""
        if family == PROCESS:
            return self.draw_process(self.priors.value, 0, DRAWS)
        return (self.sparse if family == SPARSE else self.rough).copy()

    def errors(self, p: F64, norm: float, side: int = 0) -> F64:
        """Compute the calibration error (S,) of each curve p (C, S).

        Side 1 counts only scores below the curve, and side -1 only scores above it.
        """
        scale = np.sign(self.cell_shares) if norm == math.inf else self.cell_shares ** (1 / norm)
        gap = (-scale * self.rows.cells.score)[None, None]
        no_rare_rows = kernels.errors.NO_RARE_ROWS
        out = np.empty((1, p.shape[1]))
        kernels.errors.gap_errors(
            gap, scale[None, None], p[None], no_rare_rows, float(side), norm, out
        )
        return np.asarray(np.minimum(out[0], 1.0))  # shares may add up to a little more than 1

    def mean_gaps(self, p: F64, weight: F64) -> F64:
        """Average the gap ``c - s``, its size and its sign (3, C) over weighted curves p."""
        out = np.empty((3, len(p)))
        kernels.bayes.mean_gaps(self.rows.cells.score, p, weight, out)
        return out

    def at(self, score: F64) -> F64:
        """Compute probabilities (G, S) of drawn curves at scores (G,).

        The distances of their logits from the scores' logits are interpolated between the cells,
        and level beyond the first and the last.
        """
        is_filled = self.rows.cells.weight > 0
        shift = (self.interval_draws() - self.logits.x[:, None])[is_filled]
        place = np.interp(score, self.rows.cells.score[is_filled], np.arange(len(shift)))
        below = place.astype(np.int64)
        above = np.minimum(below + 1, len(shift) - 1)
        with np.errstate(divide="ignore"):
            logit = (np.log(score) - np.log1p(-score)).clip(self.logits.low, self.logits.high)
        # In place, since memory takes most of the time.
        drawn = shift[below]
        change = shift[above]
        change -= drawn
        change *= (place - below)[:, None]
        drawn += change
        drawn += logit[:, None]
        return probabilities(drawn)


def log_mean(log_evidence: F64) -> float:
    """Compute the logarithm of the mean of evidences whose logarithms are given."""
    return float(np.logaddexp.reduce(log_evidence)) - math.log(log_evidence.size)


def probabilities(logit: F64) -> F64:
    """Turn logits of any shape into probabilities, in place."""
    flat = logit.reshape(-1)
    kernels.arithmetic.sigmoid(flat, flat)
    return logit
