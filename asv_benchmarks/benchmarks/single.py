"""Single calls on binary scores, validation included; on one thread, except `Threads`."""

from functools import partial
from typing import Any

import numpy as np
import scipy.stats  # noqa: F401  # once, before asv forks a process for each number

import fastece
from benchmarks import baselines
from benchmarks.common import CALLS, ESTIMATORS, Single, call_of, other_work


class Sizes(Single):
    """Every row of the table, and a diagram, on uniform scores."""

    params = (CALLS, [100, 10_000, 1_000_000])
    param_names = ("call", "n")

    def setup(self, name: str, n: int) -> None:
        """Make the data and compile."""
        y, p = baselines.binary("uniform", n)
        self.call = partial(call_of(name), y, p)
        self.baseline = partial(baselines.find_baseline(name)[1], y, p)
        self.call()


class Between:
    """The same between other work, as a program makes them that measures now and then."""

    params = (CALLS, [100, 10_000])
    param_names, timeout = Sizes.param_names, 180.0
    rounds = 100
    setup: Any = Sizes.setup
    call: Any
    baseline: Any

    def race(self) -> Any:
        """Of the call and of numpy's baseline."""
        return baselines.race_between(self.call, self.baseline, other_work(), self.rounds)

    def track_us(self, *params: Any) -> float:  # noqa: ARG002
        """Time of one call."""
        return 1e6 * float(self.race().seconds)

    def track_ratio_to_numpy(self, *params: Any) -> float:  # noqa: ARG002
        """Time of one call over that of the numpy baseline: less is better, as asv takes it."""
        return round(1 / self.race().ratio, 4)

    track_us.unit = "us"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class Literature:
    """Estimators that are made of bins, beside the plain ones with the same bins."""

    params = (["ece_debiased", "ece_sweep"], [100_000])
    param_names = ("estimator", "n")
    timeout = 180.0

    def setup(self, estimator: str, n: int) -> None:
        """Make the data and compile."""
        y, p = baselines.binary("uniform", n)
        plain = {"ece_debiased": "ece", "ece_sweep": "ece_a"}[estimator]
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.plain = partial(fastece.ece, y, p, estimator=plain)
        self.call()

    def track_ratio_to_plain(self, *params: Any) -> float:  # noqa: ARG002
        """Time over that of the plain error: at most 1.3 for debiased ones, and 3 for sweeps."""
        return round(1 / baselines.race(self.call, self.plain).ratio, 4)

    track_ratio_to_plain.unit = "of plain"  # type: ignore[attr-defined]


class Shapes(Single):
    """Every estimator on scores that are harder, or easier, to bin than uniform ones."""

    params = (ESTIMATORS, [name for name in baselines.SHAPES if name != "uniform"], [1_000_000])
    param_names = ("estimator", "scores", "n")

    def setup(self, estimator: str, shape: str, n: int) -> None:
        """Make the data and compile."""
        y, p = baselines.binary(shape, n)
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.baseline = partial(baselines.find_baseline(estimator)[1], y, p)
        self.call()


class Bins(Single):
    """More bins than fit into the first-level cache with their lanes."""

    params = ([15, 100, 1000], [1_000_000])
    param_names = ("n_bins", "n")

    def setup(self, n_bins: int, n: int) -> None:
        """Make the data and compile."""
        y, p = baselines.binary("uniform", n)
        self.call = partial(fastece.ece, y, p, n_bins=n_bins)
        self.baseline = partial(baselines.BASELINES["ece"], y, p, n_bins)
        self.call()


class Weights(Single):
    """Weighted rows."""

    params = ([10_000, 1_000_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the data and compile."""
        y, p = baselines.binary("uniform", n)
        weight = np.random.default_rng(1).random(n)
        self.call = partial(fastece.ece, y, p, sample_weight=weight)
        self.baseline = partial(baselines.BASELINES["ece"], y, p, weight=weight)
        self.call()


class Threads(Single):
    """One thread and two; numpy's baseline has one in both."""

    params = ([1, 2], [10_000_000])
    param_names = ("n_jobs", "n")

    def setup(self, n_jobs: int, n: int) -> None:
        """Make the data and compile."""
        y, p = baselines.binary("uniform", n)
        self.call = partial(fastece.ece, y, p, n_jobs=n_jobs)
        self.baseline = partial(baselines.BASELINES["ece"], y, p)
        self.call()
