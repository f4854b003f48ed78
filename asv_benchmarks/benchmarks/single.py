"""Single calls on binary scores, validation included; on one thread, except `Threads`."""

from functools import partial

import numpy as np

import fastece
from benchmarks.common import Single, yardstick

ESTIMATORS = list(fastece.ESTIMATORS)


class Sizes(Single):
    """Every estimator of the table on uniform scores."""

    params = (ESTIMATORS, [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data and compile."""
        y, p = yardstick.binary("uniform", n)
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.idiom = partial(yardstick.find_idiom(estimator)[1], y, p)
        self.call()


class Shapes(Single):
    """Every estimator on scores that are harder, or easier, to bin than uniform ones."""

    params = (ESTIMATORS, [name for name in yardstick.SHAPES if name != "uniform"], [1_000_000])
    param_names = ("estimator", "scores", "n")

    def setup(self, estimator: str, shape: str, n: int) -> None:
        """Make the data and compile."""
        y, p = yardstick.binary(shape, n)
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.idiom = partial(yardstick.find_idiom(estimator)[1], y, p)
        self.call()


class Bins(Single):
    """More bins than fit into the first-level cache with their lanes."""

    params = ([15, 100, 1000], [1_000_000])
    param_names = ("n_bins", "n")

    def setup(self, n_bins: int, n: int) -> None:
        """Make the data and compile."""
        y, p = yardstick.binary("uniform", n)
        self.call = partial(fastece.ece, y, p, n_bins=n_bins)
        self.idiom = partial(yardstick.IDIOMS["ece"], y, p, n_bins)
        self.call()


class Weights(Single):
    """Weighted rows."""

    params = ([10_000, 1_000_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the data and compile."""
        y, p = yardstick.binary("uniform", n)
        weight = np.random.default_rng(1).random(n)
        self.call = partial(fastece.ece, y, p, sample_weight=weight)
        self.idiom = partial(yardstick.IDIOMS["ece"], y, p, weight=weight)
        self.call()


class Threads(Single):
    """One thread and two; numpy's idiom has one in both."""

    params = ([1, 2], [10_000_000])
    param_names = ("n_jobs", "n")

    def setup(self, n_jobs: int, n: int) -> None:
        """Make the data and compile."""
        y, p = yardstick.binary("uniform", n)
        self.call = partial(fastece.ece, y, p, n_jobs=n_jobs)
        self.idiom = partial(yardstick.IDIOMS["ece"], y, p)
        self.call()
