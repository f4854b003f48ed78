"""Replicates: `bootstrap`, `compare` and `calibration_test`, validation and intervals included, on
one thread, except `BootstrapThreads`. A version of the package without them is not measured."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastece
from benchmarks import baselines
from benchmarks.common import ESTIMATORS, Draws, Replicated


class BootstrapSizes(Draws):
    """Every estimator of the table on uniform scores."""

    params = (ESTIMATORS, [30, 100, 1000, 10_000, 50_000, 1_000_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data."""
        self.bootstrap(baselines.binary("uniform", n), estimator)


class BootstrapShapes(Draws):
    """Every estimator on multiples of 0.01, and on scores of which four in five are 0."""

    params = (ESTIMATORS, ["tied", "zeros"], [100, 50_000])
    param_names = ("estimator", "scores", "n")

    def setup(self, estimator: str, shape: str, n: int) -> None:
        """Make the data."""
        self.bootstrap(baselines.binary(shape, n), estimator)


class BootstrapThreads(Draws):
    """One thread and two; numpy's loop has one in both."""

    params = ([1, 2], [100, 50_000])
    param_names = ("n_jobs", "n")

    def setup(self, n_jobs: int, n: int) -> None:
        """Make the data."""
        self.bootstrap(baselines.binary("uniform", n), "ece", n_jobs=n_jobs)


class BootstrapAll(Draws):
    """All estimators in one call; in numpy's loop they share the draws as well."""

    params = ([100, 50_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the data."""
        self.bootstrap(baselines.binary("uniform", n), ESTIMATORS)


class BootstrapClasses(Draws):
    """Ten classes, each against the rest."""

    params = (ESTIMATORS, [10_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data."""
        self.bootstrap(baselines.class_vectors(n, 10), estimator, setting="classwise")


class BootstrapSubsets(Draws):
    """A hundred of many rows."""

    params = (ESTIMATORS, [200_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data."""
        self.bootstrap(baselines.binary("uniform", n), estimator, size=100)


class BootstrapGroups(Replicated):
    """Whole groups of about ten rows, mixed; numpy's loop gathers the rows of those it draws."""

    params = (["ece", "ece_a"], [50_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data."""
        if not hasattr(fastece, "bootstrap"):
            raise NotImplementedError
        y, p = baselines.binary("uniform", n)
        label = np.random.default_rng(0).integers(0, n // 10, n)
        order = np.argsort(label, kind="stable")
        rows_of = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
        value = baselines.value_on_rows(estimator, y, p)
        call = partial(fastece.bootstrap, y, p, estimator=estimator, groups=label)
        self.make(call, partial(resample_groups, value, rows_of), n)


def resample_groups(value: Callable[[Any], float], rows_of: list[Any], replicates: int) -> Any:
    """The values (replicates,) of draws of as many groups as there are, from the rows of each."""
    rng, count = np.random.default_rng(0), len(rows_of)
    draws = (rng.integers(0, count, count) for _ in range(replicates))
    return np.array([value(np.concatenate([rows_of[g] for g in draw])) for draw in draws])


class Compare(Replicated):
    """Two models on the same draws; a hard and an equal-mass estimator."""

    params = (["ece", "ece_a"], [1000, 50_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data."""
        if not hasattr(fastece, "compare"):
            raise NotImplementedError
        y, a = baselines.binary("uniform", n)
        b = a**1.5
        values = [baselines.value_on_rows(estimator, y, p) for p in (a, b)]
        call = partial(fastece.compare, y, a, b, estimator=estimator, method="basic")
        self.make(call, partial(baselines.resample, values, n, n), n)


class CalibrationTest(Replicated):
    """Labels drawn as if the model were calibrated."""

    params = (["ece", "ece_a"], [1000, 50_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data."""
        if not hasattr(fastece, "calibration_test"):
            raise NotImplementedError
        y, p = baselines.binary("uniform", n)
        call = partial(fastece.calibration_test, y, p, estimator=estimator)
        self.make(call, partial(baselines.redraw_labels, estimator, p), n)
