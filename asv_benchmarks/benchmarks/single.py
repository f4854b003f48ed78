"""Single calls on binary scores, on one thread, except in `Threads`."""

from functools import partial
from typing import Any

import numpy as np
import scipy.stats  # noqa: F401  # once, before asv forks a process for each number

import fastece
from benchmarks import baselines
from benchmarks.common import (
    CALLS,
    ESTIMATORS,
    Benchmark,
    Beside,
    Single,
    find_call,
    prepare_other_work,
)
from benchmarks.opponents import OPPONENTS, is_installed

# Larger matrices take too long to draw: 0.4 GB of float64.
MAX_ENTRIES = 5 * 10**7


class Sizes(Single):
    """Measure every estimator, every score and a diagram, on uniform scores."""

    params = (CALLS, [100, 10_000, 1_000_000])
    param_names = ("call", "n")

    def setup(self, name: str, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary("uniform", n)
        _, baseline = baselines.find_baseline(name)
        self.call = partial(find_call(name), y, p)
        self.baseline = partial(baseline, y, p)
        self.call()


class TopLabels(Single):
    """Measure class vectors without any option, from the smallest call on."""

    params = (["float64", "float32"], [10, 1000], [100, 10_000, 100_000])
    param_names = ("dtype", "classes", "n")

    def setup(self, dtype: str, classes: int, n: int) -> None:
        """Draw the data and compile."""
        if classes * n > MAX_ENTRIES:
            raise NotImplementedError
        y, p = baselines.draw_class_vectors(n, classes, dtype)
        _, baseline = baselines.find_baseline("ece", "confidence")
        self.call = partial(fastece.ece, y, p)
        self.baseline = partial(baseline, y, p)
        self.call()


class Parameters(Single):
    """Measure a small call with a parameter of the estimator, with weights, and with lists."""

    params = (["n_bins", "sample_weight", "lists"], [100])
    param_names = ("kind", "n")

    def setup(self, kind: str, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary("uniform", n)
        weight = np.random.default_rng(1).random(n)
        lists = y.tolist(), p.tolist()
        ece = baselines.BASELINES["ece"]
        self.call, self.baseline = {
            "n_bins": (partial(fastece.ece, y, p, n_bins=10), partial(ece, y, p, 10)),
            "sample_weight": (
                partial(fastece.ece, y, p, sample_weight=weight),
                partial(ece, y, p, weight=weight),
            ),
            "lists": (partial(fastece.ece, *lists), partial(ece, y, p)),
        }[kind]
        self.call()


class Between(Benchmark):
    """Measure the same calls after other work, as in a program that makes few."""

    params = (CALLS, [100, 10_000])
    param_names = Sizes.param_names
    rounds = 100
    setup: Any = Sizes.setup
    call: Any
    baseline: Any

    def race(self) -> baselines.Race:
        """Measure the call beside the numpy code."""
        other_work = prepare_other_work()
        return baselines.race_between(self.call, self.baseline, other_work, self.rounds)

    def track_us(self, *params: Any) -> float:  # noqa: ARG002
        """Measure one call in microseconds."""
        return 1e6 * self.race().seconds

    def track_ratio_to_numpy(self, *params: Any) -> float:  # noqa: ARG002
        """Divide the time of the call by the time of the numpy code; less is better."""
        return round(1 / self.race().ratio, 4)

    track_us.unit = "us"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class Literature(Benchmark):
    """Measure debiased errors and sweeps, beside plain errors.

    Both have the same kind of bins, of equal width or equal mass.
    """

    params = (["ece_debiased", "ece_sweep"], [100_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary("uniform", n)
        plain_estimator = {"ece_debiased": "ece", "ece_sweep": "ece_a"}[estimator]
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.plain = partial(fastece.ece, y, p, estimator=plain_estimator)
        self.call()

    def track_ratio_to_plain(self, *params: Any) -> float:  # noqa: ARG002
        """Divide the time of the call by the time of the plain error.

        It should be at most 1.3 for debiased errors, and 3 for sweeps.
        """
        return round(1 / baselines.race(self.call, self.plain).ratio, 4)

    track_ratio_to_plain.unit = "of plain"  # type: ignore[attr-defined]


class Opponents(Beside):
    """Measure the two lines of each package for histograms, and of each function of numpy."""

    params = (list(OPPONENTS), [100, 10_000, 1_000_000])
    param_names = ("opponent", "n")

    def setup(self, name: str, n: int) -> None:
        """Draw the data and compile; asv skips a package that is not installed."""
        if not is_installed(name):
            raise NotImplementedError
        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(fastece.ece, y, p, estimator=OPPONENTS[name].estimator)
        self.other = partial(OPPONENTS[name].value, y, p)
        self.call()


class Slices(Beside):
    """Measure the errors of many slices in one call, beside a single `np.bincount` of all."""

    params = ([100, 1000], [100])
    param_names = ("slices", "n")

    def setup(self, n_slices: int, n: int) -> None:
        """Draw n rows of each slice in mixed order, and compile."""
        y, p, slices = baselines.draw_slices(n_slices, n)
        self.call = partial(fastece.ece, y, p, by=slices)
        self.other = partial(baselines.errors_of_slices, y, p, slices)
        self.call()


class Shapes(Single):
    """Measure every estimator on scores that are harder or easier to bin."""

    params = (ESTIMATORS, [name for name in baselines.SHAPES if name != "uniform"], [1_000_000])
    param_names = ("estimator", "scores", "n")

    def setup(self, estimator: str, shape: str, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary(shape, n)
        _, baseline = baselines.find_baseline(estimator)
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.baseline = partial(baseline, y, p)
        self.call()


class EqualMass(Beside):
    """Measure equal-mass bins, which need the scores in order, beside `np.sort` of the scores."""

    params = (["uniform", "sharp", "tied"], ["none", "random"], [1000, 100_000, 10_000_000])
    param_names = ("scores", "weights", "n")

    def setup(self, shape: str, weights: str, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary(shape, n)
        weight = None if weights == "none" else np.random.default_rng(1).random(n)
        self.call = partial(fastece.ece, y, p, estimator="ece_a", sample_weight=weight)
        self.other = partial(np.sort, p)
        self.call()


class Bins(Single):
    """Measure numbers of bins, up to more than the first-level cache holds."""

    params = ([15, 100, 1000], [1_000_000])
    param_names = ("n_bins", "n")

    def setup(self, n_bins: int, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(fastece.ece, y, p, n_bins=n_bins)
        self.baseline = partial(baselines.BASELINES["ece"], y, p, n_bins)
        self.call()


class Weights(Single):
    """Measure weighted rows."""

    params = ([10_000, 1_000_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary("uniform", n)
        weight = np.random.default_rng(1).random(n)
        self.call = partial(fastece.ece, y, p, sample_weight=weight)
        self.baseline = partial(baselines.BASELINES["ece"], y, p, weight=weight)
        self.call()


class Threads(Single):
    """Measure one thread and two; the numpy code has one in both cases."""

    params = ([1, 2], [10_000_000])
    param_names = ("n_jobs", "n")

    def setup(self, n_jobs: int, n: int) -> None:
        """Draw the data and compile."""
        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(fastece.ece, y, p, n_jobs=n_jobs)
        self.baseline = partial(baselines.BASELINES["ece"], y, p)
        self.call()
