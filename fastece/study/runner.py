"""One distribution of scores: its true error, and the estimates of each candidate.

Everything depends on the design and on the distribution alone, so distributions may run anywhere,
at any time and in any order.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.data.sources import one_problem
from fastece.estimators.binned import Binned
from fastece.estimators.draws import Rows
from fastece.kernels.types import F64, I32
from fastece.resampling.problem import Problem
from fastece.study.candidates import Candidate, candidates_of
from fastece.study.design import Population, StudyDesign, add_time

# The published truth: bins of equal width on the labels of all rows.
PUBLISHED = Binned(n_bins=2000, closed="left")


class Outcome(NamedTuple):
    """Results of one distribution of scores.

    Estimates (settings, candidates, sizes, draws), the truth (settings, 3), as `truths_of` has it,
    and seconds by kind of work.
    """

    estimates: F64
    truth: F64
    seconds: dict[str, float]


def drawn_rows(problem: Problem, rows: I32) -> Rows:
    """Return the drawn rows (R, size) of a problem as a sample of their own.

    It fits the processor's cache, and estimators do not prepare the whole hold-out for each size.
    """
    place = problem.place[rows].ravel().astype(np.int64)
    ordered = np.sort(place << 32 | np.arange(place.size))  # ten times as fast as argsort
    order = ordered & 0xFFFFFFFF
    found = np.empty(place.size, np.int32)
    found[order] = np.arange(place.size, dtype=np.int32)
    return Rows(found.reshape(rows.shape), problem.ordered.where(ordered >> 32))


def estimates_of(
    design: StudyDesign, which: Any, samples: Sequence[Sample], candidates: Sequence[Candidate]
) -> F64:
    """Compute values (candidates, sizes, draws) on the same drawn rows."""
    sizes = design.sizes_of(which)
    out = np.empty((len(candidates), len(sizes), design.draws))
    problems = [Problem(sample) for sample in samples]
    for i, size in enumerate(sizes):
        rows = design.rows(which, size)
        drawn = [drawn_rows(problem, rows) for problem in problems]
        for e, candidate in enumerate(candidates):
            try:
                out[e, i] = candidate.values(drawn)
            except Exception as error:
                rule = f"{candidate.name!r} failed on {which}, n = {size}: {error!r}"
                raise InputError("estimator", rule) from error
    return out


def run_distribution(design: StudyDesign, which: Any) -> Outcome:
    """Compute every estimate and the truth of one distribution of scores.

    Linear algebra runs on one thread: sums of several threads may differ in their last bits.
    """
    from threadpoolctl import threadpool_limits

    estimates, truth, seconds = [], [], dict[str, float]()
    candidates = candidates_of(design)
    with threadpool_limits(1):
        for population in design.populations(which, seconds):
            with add_time(seconds, "estimation"):
                estimates.append(estimates_of(design, which, population.samples, candidates))
            with add_time(seconds, "truth"):
                truth.append(truths_of(population))
    return Outcome(np.array(estimates), np.array(truth), seconds)


# -- truth -----------------------------------------------------------------------------------------


def debiased_error(s: F64, q: F64, n_bins: int) -> tuple[float, F64]:
    """Compute ``E |P(event | s) - s|`` from scores s (n,) and probabilities q (n,).

    Outcomes may take the place of probabilities. Also returns the influence of each row (n,): the
    standard error is the root of the sum of their squares, divided by n.

    Notes
    -----
    With D the mean of ``q - s`` over the W_b rows of bin b, of equal mass, and d its standard
    error, the value is ``sum_b W_b / n (2 |D| - E |N(D, d**2)|)``: the part of |D| that is due to
    chance is estimated by the part that chance would add again. Without that, calibrated scores
    have a floor; with outcomes in place of probabilities it is several times as high.

    The influence of a row of bin b is ``sign(D) (q - s - D)`` plus the excess of the bin's part
    over the value, since its score is random too. Where D is 0 that is 22 % too much, and at two d
    8 % too little.
    """
    order = np.argsort(s, kind="stable")
    s, gap = s[order], q[order] - s[order]
    bins = np.searchsorted(s, s) * n_bins // s.size  # ties together, where the first of them is
    _, bins, count = np.unique(bins, return_inverse=True, return_counts=True)
    mean = np.bincount(bins, gap) / count
    squares = np.bincount(bins, (gap - mean[bins]) ** 2)
    error = np.sqrt(squares / (count * np.maximum(count - 1, 1)))
    corrected = 2 * np.abs(mean) - mean_of_folded(np.abs(mean), error)
    value = float(corrected @ count / s.size)
    influence = np.empty(s.size)
    influence[order] = (np.sign(mean)[bins] * (gap - mean[bins])) + corrected[bins] - value
    return value, influence


def mean_of_folded(mean: F64, sd: F64) -> F64:
    """Compute ``E |N(mean, sd**2)|``, mean >= 0, of the folded normal distribution.

    See Leone, Nelson and Nottingham (1961).
    """
    from scipy.special import ndtr

    z = mean / np.maximum(sd, np.finfo(float).tiny)
    with np.errstate(under="ignore", over="ignore"):
        half = sd * math.sqrt(2 / math.pi) * np.exp(-0.5 * z * z)
        return np.asarray(half + mean * (1 - 2 * ndtr(-z)))


def truths_of(population: Population) -> tuple[float, float, float]:
    """Compute the debiased error, the published truth, and a standard error.

    The standard error is of the debiased error. The values are means over the problems, which have
    the same rows, so that their influences add up.
    """
    pairs = zip(population.samples, population.chances, strict=True)
    found = [debiased_error(sample.s, q, population.n_bins) for sample, q in pairs]
    values, influences = zip(*found, strict=True)
    labels = [PUBLISHED.point_values(one_problem(sample))[0] for sample in population.samples]
    influence = np.mean(influences, axis=0)
    error = float(np.sqrt(influence @ influence) / influence.size)
    return float(np.mean(values)), float(np.mean(labels)), error
