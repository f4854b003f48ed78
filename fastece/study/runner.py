"""One distribution of scores: a model is fitted, its hold-out drawn from, every contestant
evaluated on the same draws.

Everything depends on the design and on the distribution alone, so it does not matter where, when
and after which others one is run.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from fastece.problems.reading import read_problems
from fastece.protocol import Sample
from fastece.resampling.draws import RowDraws, new_key
from fastece.resampling.engine import Problem
from fastece.study.contestants import ZERO, Contestant, Drawn, Zero, corrected, own
from fastece.study.design import Design, Distribution
from fastece.study.distributions import GaussianMixture
from fastece.study.models import MODELS, new_model, predicted
from fastece.study.published import published
from fastece.study.truth import truths_of
from fastece.typing import F64, I32, I64

# What random numbers are for.
MIXTURE, HOLDOUT, TRAINING, MODEL, DRAWS = range(5)


class Holdout(NamedTuple):
    """Rows of a mixture that evaluation sets are drawn from, with the exact posterior."""

    mixture: GaussianMixture
    x: F64
    y: I64
    posterior: F64


class Outcome(NamedTuple):
    """What is found of one distribution of scores: estimates (settings, contestants, sizes, draws),
    the truth (settings, 2) from the posterior and from labels, and seconds by kind of work."""

    estimates: F64
    truth: F64
    seconds: dict[str, float]


@contextmanager
def add_time(seconds: dict[str, float], kind: str) -> Iterator[None]:
    """Add what the block takes to the seconds of its kind of work."""
    start = time.perf_counter()
    yield
    seconds[kind] = seconds.get(kind, 0.0) + time.perf_counter() - start


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


def contestants_of(design: Design) -> list[Contestant]:
    """What competes in a design: its convention's estimators, the user's own, and zero."""
    found = published() if design.convention == "published" else corrected()
    found += [*map(own, design.estimators), Contestant(ZERO, Zero())]
    names = [contestant.name for contestant in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"estimator: the name {name!r} is taken")
    return found


# One: the distributions of a mixture follow one another. With 2 000 000 rows one has 0.4 GB.
@lru_cache(maxsize=1)
def holdout_of(design: Design, n_classes: int, n_features: int, number: int) -> Holdout:
    """The hold-out of a mixture."""
    kind = (n_classes, n_features, number)
    mixture = GaussianMixture.draw(n_classes, n_features, design.rng(MIXTURE, *kind))
    x, y = mixture.sample(design.holdout, design.rng(HOLDOUT, *kind))
    return Holdout(mixture, x, y, mixture.posterior(x))


def scores_of(
    design: Design, which: Distribution, holdout: Holdout, seconds: dict[str, float]
) -> F64:
    """Probabilities (n, K) that the model gives to the hold-out."""
    numbers = (*which[:3], which.training)
    x, y = holdout.mixture.sample(design.train_size, design.rng(TRAINING, *numbers))
    seed = int(design.rng(MODEL, *numbers).integers(2**31))
    with add_time(seconds, "fitting"):
        model = new_model(which.model, seed).fit(x, y)
    with add_time(seconds, "prediction"):
        return predicted(model, holdout.x, which.n_classes)


def problems_of(holdout: Holdout, prob: F64, setting: str) -> tuple[list[Sample], list[F64]]:
    """The problems of a setting, and the exact probability of a hit of each of their rows."""
    problems = read_problems(holdout.y, prob, setting=setting)
    samples = [problems.sample(k) for k in range(problems.n_problems)]
    if setting == "confidence":
        top = prob.argmax(1)
        return samples, [holdout.posterior[np.arange(top.size), top]]
    return samples, list(np.ascontiguousarray(holdout.posterior.T))


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
    design: Design, which: Distribution, samples: Sequence[Sample], entrants: Sequence[Contestant]
) -> F64:
    """Values (contestants, sizes, draws) on the drawn rows, which all of them share."""
    out = np.empty((len(entrants), len(design.sizes), design.draws))
    problems = [Problem(sample) for sample in samples]
    model = MODELS.index(which.model)
    for i, size in enumerate(design.sizes):
        rng = design.rng(DRAWS, *which[:3], model, which.training, size)
        rows = RowDraws(new_key(rng), design.holdout, size).rows(0, design.draws)
        drawn = [drawn_rows(problem, rows) for problem in problems]
        for e, entrant in enumerate(entrants):
            try:
                out[e, i] = entrant.values(drawn)
            except Exception as error:
                raise ValueError(
                    f"estimator: {entrant.name!r} failed on {which}, n = {size}: {error!r}"
                ) from error
    return out


def run_distribution(design: Design, which: Distribution) -> Outcome:
    """Every estimate and both truths of one distribution of scores."""
    estimates, truth, seconds = [], [], dict[str, float]()
    entrants = contestants_of(design)
    with OneThread():
        with add_time(seconds, "hold-out"):
            holdout = holdout_of(design, *which[:3])
        prob = scores_of(design, which, holdout, seconds)
        for setting in design.settings:
            with add_time(seconds, "estimation"):
                samples, chances = problems_of(holdout, prob, setting)
                estimates.append(estimates_of(design, which, samples, entrants))
            with add_time(seconds, "truth"):
                truth.append(truths_of(samples, chances))
    return Outcome(np.array(estimates), np.array(truth), seconds)
