"""The posterior of the calibration curve of one problem, of three families.

::

    cells -> cut logits    of the mean scores
          -> evidence      of each family: the process, and chains of few or of many pieces
          -> shares        what each family is believed: prior times evidence
          -> value         the mean error of curves drawn from the families
          -> pool          drawn curves of all families, from which intervals choose
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.estimators.bayes.cells import CellRows
from fastece.estimators.bayes.pieces import LAWS, SPARSE_LAWS, filter_pieces
from fastece.estimators.bayes.process import DRAWS, SEED, fit_process, process_priors
from fastece.kernels.types import F64, I64

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
# Scores are multiplied by this power of two, which rounds nothing, where slopes are divided by
# their distances: between subnormal scores a slope would be infinite.
UNIT = 2.0**100
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


def family_shares(log_evidence: list[float], belief: Belief) -> list[float]:
    """Compute the posterior probability of each family with a belief."""
    weights = [
        prior * max(likelihood, MIN_LIKELIHOOD)
        for prior, likelihood in zip(belief.prior, over_largest(log_evidence), strict=True)
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


class Curves:
    """The posterior of the calibration curve of one problem.

    Parameters
    ----------
    rows : CellRows
    k : int
        Number of the problem, whose interval has random numbers of its own.

    Attributes
    ----------
    x : (C,) float64 array
        Logits of the mean scores of the cells, cut at both ends. At each end it is the further one
        of two cuts, unless the hits of the rows beyond the nearer one are less likely then: where
        scores of 1 come true in 95 of 100 rows, they are not as far from calibrated with the nearer
        cut.
    cuts : (float, float)
        The lower and the upper cut.
    log_likelihood : float
        Log likelihood of the hits under the logits without cuts: of a calibrated model.
    process : Process
        The process, fitted.
    pieces : Pieces
        The chains, filtered.
    """

    def __init__(self, rows: CellRows, k: int = 0) -> None:
        near = math.log(MIN_ODDS + NEAR_ODDS_PER_ROW * rows.n)
        far = math.log(MIN_ODDS + FAR_ODDS_PER_ROW * rows.n)
        x, t, low, high, log_likelihood = kernels.bayes.cut_logits(rows.cells, near, far)
        self.rows = rows
        self.k = k
        self.x: F64 = x
        self.cuts: tuple[float, float] = low, high
        self.log_likelihood: float = log_likelihood
        self.priors = process_priors(x.size)
        self.process = fit_process(rows.cells, x, t, self.priors)
        self.pieces = filter_pieces(rows.n, rows.cells, x)
        self._drawn_pieces: dict[int, F64] = {}

    # --- evidence

    def log_evidence(self, log_prior: F64) -> list[float]:
        """Compute the log evidence of each family, with a prior of hyperparameters."""
        of_laws = self.pieces.log_evidence.tolist()
        sparse = of_laws[LAWS_OF_FAMILY[SPARSE]]
        rough = of_laws[LAWS_OF_FAMILY[ROUGH]]
        return [
            log_sum(sparse) - math.log(len(sparse)),
            log_sum((self.process.log_evidence + log_prior).tolist()),
            log_sum(rough) - math.log(len(rough)),
        ]

    @cached_property
    def interval_evidence(self) -> list[float]:
        """Log evidence of each family with the prior of the interval."""
        return self.log_evidence(self.priors.interval)

    @property
    def log_bayes_factor(self) -> float:
        """Log Bayes factor of a curve against perfect calibration, ``c = s``."""
        evidence = zip(self.interval_evidence, ERROR_BELIEF.prior, strict=True)
        return log_sum([log_e + math.log(prior) for log_e, prior in evidence]) - self.log_likelihood

    # --- value

    def values(self, norm: float, sides: Sequence[int] = (0,)) -> F64:
        """Compute the posterior mean (D,) of the error and of its parts on some sides."""
        return self.posterior_mean(
            lambda p: np.array([self.errors(p, norm, side) for side in sides])
        )

    def distances(self) -> F64:
        """Compute the posterior mean (C,) of ``|c(s) - s|`` in each cell."""
        return self.posterior_mean(self.gap_sizes)

    def gap_sizes(self, p: F64) -> F64:
        """Compute ``|c(s) - s|`` (C, S) of curves p (C, S) in each cell."""
        return np.asarray(np.abs(p - self.rows.cells[2][:, None]))

    def posterior_mean(self, measure: Callable[[F64], F64]) -> F64:
        """Compute the posterior mean (D,) of measures (D, S) of curves p (C, S)."""
        total: Any = 0.0
        total_share = 0.0
        evidence = self.log_evidence(self.priors.value)
        for family, share in enumerate(family_shares(evidence, VALUE_BELIEF)):
            if share < MIN_SHARE:
                continue
            if family == PROCESS:
                logit = self.process.draw(self.priors.value, 0, DRAWS)
            else:
                logit = self.draw_pieces(family).copy()
            p = probabilities(logit)
            total += share * np.add.reduce(measure(p), axis=1) / p.shape[1]
            total_share += share
        return np.asarray(total / total_share)

    def errors(self, p: F64, norm: float, side: int = 0) -> F64:
        """Compute the calibration error (S,) of each curve p (C, S).

        Side 1 counts only scores below the curve, and side -1 only scores above it.
        """
        errors: F64 = kernels.bayes.curve_errors(self.rows.cells, p, float(side), float(norm))
        return errors

    def draw_pieces(self, family: int) -> F64:
        """Draw logits (C, S) of the chains of a family; again, they are the same array."""
        if family not in self._drawn_pieces:
            log_evidence = self.pieces.log_evidence.tolist()
            laws = LAWS_OF_FAMILY[family]
            share = [0.0] * len(log_evidence)
            share[laws] = over_largest(log_evidence[laws])
            self._drawn_pieces[family] = self.pieces.draw(share, FAMILY_DRAWS[family])
        return self._drawn_pieces[family]

    # --- pool

    def pool(self) -> F64:
        """Draw logits (C, 176) of curves of all families, for intervals."""
        process = self.process.draw(self.priors.interval, self.k, FAMILY_DRAWS[PROCESS])
        parts = self.draw_pieces(SPARSE), process, self.draw_pieces(ROUGH)
        return np.concatenate(parts, axis=1)

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

    def at(self, score: F64) -> F64:
        """Compute probabilities (G, S) of drawn curves at scores (G,).

        The distances of their logits from the scores' logits are interpolated between the cells,
        and level beyond the first and the last.
        """
        weight, _, mean_score = self.rows.cells
        is_filled = weight > 0
        shift = (self.interval_draws() - self.x[:, None])[is_filled]
        filled_score = mean_score[is_filled]
        place = np.interp(UNIT * score, UNIT * filled_score, np.arange(len(shift)))
        below = place.astype(np.int64)
        above = np.minimum(below + 1, len(shift) - 1)
        with np.errstate(divide="ignore"):
            logit = (np.log(score) - np.log1p(-score)).clip(*self.cuts)
        # In place, since memory takes most of the time.
        drawn = shift[below]
        change = shift[above]
        change -= drawn
        change *= (place - below)[:, None]
        drawn += change
        drawn += logit[:, None]
        return probabilities(drawn)


def log_sum(logarithms: list[float]) -> float:
    """Compute the logarithm of the sum of numbers whose logarithms are given."""
    top = max(logarithms)
    return top + math.log(sum([math.exp(log_number - top) for log_number in logarithms]))


def probabilities(logit: F64) -> F64:
    """Turn logits of any shape into probabilities, in place."""
    flat = logit.reshape(-1)
    kernels.arithmetic.sigmoid(flat, flat)
    return logit


@lru_cache(maxsize=64)
def shuffled_positions(k: int, sizes: tuple[int, ...], ordered: int) -> I64:
    """Return positions in groups, group by group, in an order of problem k.

    Groups have some sizes. The group with the number `ordered` keeps its order. The others are
    shuffled, for each problem in another way.
    """
    rng = np.random.RandomState(SEED + 1 + k)
    groups = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return np.concatenate(
        [group if j == ordered else rng.permutation(group) for j, group in enumerate(groups)]
    )
