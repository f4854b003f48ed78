"""Replicates of `bootstrap`, `compare` and `calibration_test`.

Checks and intervals are part of the time. All calls run on one thread, except in
`BootstrapThreads`. asv skips versions of fastece that lack a function.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastece
from benchmarks import baselines
from benchmarks.common import ESTIMATORS, Draws, Replicated, require

# Rows of a group, on average.
ROWS_PER_GROUP = 10


class BootstrapSizes(Draws):
    """Measure every estimator on uniform scores, from 30 rows to a million."""

    params = (ESTIMATORS, [30, 100, 1000, 10_000, 50_000, 1_000_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data."""
        self.prepare_bootstrap(baselines.draw_binary("uniform", n), estimator)


class BootstrapShapes(Draws):
    """Measure every estimator on multiples of 0.01, and on scores that are mostly 0."""

    params = (ESTIMATORS, ["tied", "zeros"], [100, 50_000])
    param_names = ("estimator", "scores", "n")

    def setup(self, estimator: str, shape: str, n: int) -> None:
        """Draw the data."""
        self.prepare_bootstrap(baselines.draw_binary(shape, n), estimator)


class BootstrapThreads(Draws):
    """Measure one thread and two; the numpy loop has one in both cases."""

    params = ([1, 2], [100, 50_000])
    param_names = ("n_jobs", "n")

    def setup(self, n_jobs: int, n: int) -> None:
        """Draw the data."""
        self.prepare_bootstrap(baselines.draw_binary("uniform", n), "ece", n_jobs=n_jobs)


class BootstrapAll(Draws):
    """Measure all estimators on the same draws, also in the numpy loop."""

    params = ([100, 50_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Draw the data."""
        self.prepare_bootstrap(baselines.draw_binary("uniform", n), ESTIMATORS)


class BootstrapClasses(Draws):
    """Measure every estimator on ten classes, each of them against the others."""

    params = (ESTIMATORS, [10_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data."""
        data = baselines.draw_class_vectors(n, baselines.N_CLASSES)
        self.prepare_bootstrap(data, estimator, setting="classwise")


class BootstrapSubsets(Draws):
    """Measure every estimator on draws of a hundred rows from many."""

    params = (ESTIMATORS, [200_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data."""
        self.prepare_bootstrap(baselines.draw_binary("uniform", n), estimator, size=100)


class BootstrapGroups(Replicated):
    """Measure draws of whole groups of about ten rows, which are in random order.

    The numpy loop gathers the rows of the groups that it draws.
    """

    params = (["ece", "ece_a"], [50_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data."""
        require("bootstrap")
        y, p = baselines.draw_binary("uniform", n)
        groups = np.random.default_rng(0).integers(0, n // ROWS_PER_GROUP, n)
        order = np.argsort(groups, kind="stable")
        rows_of_groups = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
        value = baselines.prepare_estimator(estimator, y, p)
        call = partial(fastece.bootstrap, y, p, estimator=estimator, groups=groups)
        self.prepare(call, partial(resample_groups, value, rows_of_groups), n)


def resample_groups(
    value: Callable[[Any], float], rows_of_groups: list[Any], replicates: int
) -> Any:
    """Compute the values (replicates,) of draws of as many groups as there are."""
    rng = np.random.default_rng(0)
    n_groups = len(rows_of_groups)
    values = []
    for _ in range(replicates):
        groups = rng.integers(0, n_groups, n_groups)
        values.append(value(np.concatenate([rows_of_groups[group] for group in groups])))
    return np.array(values)


class Compare(Replicated):
    """Measure two models on the same draws, with bins of equal width or mass."""

    params = (["ece", "ece_a"], [1000, 50_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data."""
        require("compare")
        y, first_scores = baselines.draw_binary("uniform", n)
        second_scores = first_scores**1.5
        values = [
            baselines.prepare_estimator(estimator, y, p) for p in (first_scores, second_scores)
        ]
        call = partial(
            fastece.compare, y, first_scores, second_scores, estimator=estimator, method="basic"
        )
        self.prepare(call, partial(baselines.resample, values, n, n), n)


class CalibrationTest(Replicated):
    """Measure labels that are drawn as if the model were calibrated."""

    params = (["ece", "ece_a"], [1000, 50_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data."""
        require("calibration_test")
        y, p = baselines.draw_binary("uniform", n)
        call = partial(fastece.calibration_test, y, p, estimator=estimator)
        self.prepare(call, partial(baselines.redraw_labels, estimator, p), n)
