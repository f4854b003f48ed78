"""One distribution of scores: evaluation sets are drawn from its rows, and every contestant is
evaluated on all of them.

Everything depends on the design and on the distribution alone, so it does not matter where, when
and after which others one is run.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from fastece.data.sample import Sample
from fastece.resampling.engine import Problem
from fastece.study.arena import Arena, add_time
from fastece.study.contestants import ZERO, Contestant, Drawn, Zero, corrected, own
from fastece.study.published import published
from fastece.study.truth import truths_of
from fastece.typing import F64, I32


class Outcome(NamedTuple):
    """What is found of one distribution of scores: estimates (settings, contestants, sizes, draws),
    the truth (settings, 3), as `truths_of` has it, and seconds by kind of work."""

    estimates: F64
    truth: F64
    seconds: dict[str, float]


class OneThread:
    """Linear algebra on one thread as long as any distribution is run: sums of several threads may
    end in other bits. The limit is the process's own, so threads share it."""

    lock, users = Lock(), 0
    limits: Any = None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with OneThread.lock:
            if OneThread.users == 0:
                OneThread.limits = threadpool_limits(1)
            OneThread.users += 1

    def __exit__(self, *_: Any) -> None:
        with OneThread.lock:
            OneThread.users -= 1
            if OneThread.users == 0:
                OneThread.limits.restore_original_limits()


def contestants_of(arena: Arena) -> list[Contestant]:
    """What competes: its convention's estimators, the user's own, and zero."""
    found = published() if arena.convention == "published" else corrected()
    found += [*map(own, arena.estimators), Contestant(ZERO, Zero())]
    names = [contestant.name for contestant in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"estimator: the name {name!r} is taken")
    return found


def drawn_rows(problem: Problem, rows: I32) -> Drawn:
    """The drawn rows (R, size) of a problem as a sample of their own: it is in the cache, and what
    estimators prepare is not of the whole hold-out, for each size again."""
    place = problem.place[rows].ravel().astype(np.int64)
    ordered = np.sort(place << 32 | np.arange(place.size))  # ten times as fast as argsort
    order = ordered & 0xFFFFFFFF
    found = np.empty(place.size, np.int32)
    found[order] = np.arange(place.size, dtype=np.int32)
    return Drawn(problem.ordered.where(ordered >> 32), found.reshape(rows.shape))


def estimates_of(
    arena: Arena, which: Any, samples: Sequence[Sample], entrants: Sequence[Contestant]
) -> F64:
    """Values (contestants, sizes, draws) on the drawn rows, which all of them share."""
    sizes = arena.sizes_of(which)
    out = np.empty((len(entrants), len(sizes), arena.draws))
    problems = [Problem(sample) for sample in samples]
    for i, size in enumerate(sizes):
        rows = arena.rows(which, size)
        drawn = [drawn_rows(problem, rows) for problem in problems]
        for e, entrant in enumerate(entrants):
            try:
                out[e, i] = entrant.values(drawn)
            except Exception as error:
                raise ValueError(
                    f"estimator: {entrant.name!r} failed on {which}, n = {size}: {error!r}"
                ) from error
    return out


def run_distribution(arena: Arena, which: Any) -> Outcome:
    """Every estimate and the truth of one distribution of scores."""
    estimates, truth, seconds = [], [], dict[str, float]()
    entrants = contestants_of(arena)
    with OneThread():
        for population in arena.populations(which, seconds):
            with add_time(seconds, "estimation"):
                estimates.append(estimates_of(arena, which, population.samples, entrants))
            with add_time(seconds, "truth"):
                truth.append(truths_of(population))
    return Outcome(np.array(estimates), np.array(truth), seconds)
