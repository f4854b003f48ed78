"""Estimators that tell what was drawn, written as a caller would: prepare, evaluate, no more."""

import os
from dataclasses import dataclass
from itertools import count

import numpy as np


@dataclass(frozen=True)
class Code:
    """How often each row was drawn, as one number: its digits in base `base`, row 0 last.

    A float holds them exactly for up to 13 rows in base 14; draws must be of fewer than `base`.
    """

    base: int

    def prepare(self, sample, size):
        assert size < self.base
        return self.base**sample.rows

    def evaluate(self, plan, c):
        return float(np.sum(plan * np.asarray(c, dtype=np.int64)))

    def counts(self, values, n):
        """The multiplicities (..., n) in the caller's order."""
        return (
            np.asarray(values).astype(np.int64)[..., None] // self.base ** np.arange(n) % self.base
        )


@dataclass(frozen=True)
class HitCode:
    """Which rows are hits, as one number: binary digits, row 0 last."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample.y * 2**sample.rows

    def evaluate(self, plan, c):
        return float(np.sum(plan * np.asarray(c, dtype=np.int64)))


@dataclass(frozen=True)
class Hits:
    """Number of hits."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample.y.astype(np.float64)

    def evaluate(self, plan, c):
        return float(plan @ c)


@dataclass(frozen=True)
class Mean:
    """Weighted mean of y + s, a smooth statistic that is never negative."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample.y + sample.s, np.ones(sample.n) if sample.v is None else sample.v

    def evaluate(self, plan, c):
        values, v = plan
        return float((c * v) @ values / (c @ v))


@dataclass(frozen=True)
class Distinct:
    """Share of the rows that were drawn at all."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample.n

    def evaluate(self, plan, c):
        return np.count_nonzero(c) / plan


@dataclass(frozen=True)
class Process:
    """Number of the process that evaluates."""

    def prepare(self, sample, size):
        pass

    def evaluate(self, plan, c):  # noqa: ARG002
        return float(os.getpid())


@dataclass(frozen=True)
class Broken:
    """Fails where rows are drawn twice, so not on the data themselves."""

    def prepare(self, sample, size):
        pass

    def evaluate(self, plan, c):  # noqa: ARG002
        if np.max(c) > 1:
            raise ZeroDivisionError("broken on purpose")
        return 0.5


class OneBin:
    """|sum w (y - s)| / sum w, with the two methods that the protocol requires and no other."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample

    def evaluate(self, sample, c):
        w = c if sample.v is None else c * sample.v
        return abs(np.sum(w * (sample.y - sample.s))) / np.sum(w)


class Spy:
    """An estimator whose value is the number of the evaluation, and which keeps the arguments.

    So each value of a distribution identifies its evaluation, even if the data themselves were
    evaluated in between.
    """

    def __init__(self):
        self.samples = []
        self.evaluations = {}
        self.number = count()

    def __str__(self):
        return "Spy()"

    def prepare(self, sample, size):
        self.samples.append(sample)
        return sample, size

    def evaluate(self, plan, c):
        sample, size = plan
        number = next(self.number)
        self.evaluations[number] = sample, size, np.array(c, dtype=np.int64)
        return float(number)

    def draws(self, distribution):
        """(sample, size, c) of each replicate."""
        return [self.evaluations[int(value)] for value in distribution]

    def rows(self, distribution):
        """The drawn rows (n_resamples, size) in the caller's numbers, sorted."""
        return np.array([np.sort(np.repeat(s.rows, c)) for s, _, c in self.draws(distribution)])
