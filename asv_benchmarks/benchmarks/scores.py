"""Scores and decompositions, on one thread, beside other libraries."""

from functools import partial

import numpy as np

import fastece
from benchmarks import baselines
from benchmarks.common import Beside, find_function


class Scores(Beside):
    """Measure each score of the positive class, beside scikit-learn or numpy."""

    params = (["brier_score", "log_loss", "accuracy", "sharpness"], [1000, 1_000_000])
    param_names = ("score", "n")

    def setup(self, score: str, n: int) -> None:
        """Draw the data."""
        from sklearn import metrics

        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(find_function(score), y, p)
        self.other = {
            "brier_score": partial(metrics.brier_score_loss, y, p),
            "log_loss": partial(metrics.log_loss, y, p),
            "accuracy": lambda: metrics.accuracy_score(y, p > 0.5),
            "sharpness": p.var,
        }[score]


class ScoresOfVectors(Beside):
    """Measure the Brier score of class vectors with `n` entries, beside numpy."""

    params = ([10, 1000], [1_000_000])
    param_names = ("classes", "n")

    def setup(self, classes: int, n: int) -> None:
        """Draw the data."""
        y, p = baselines.draw_class_vectors(max(1, n // classes), classes)
        self.call = partial(find_function("brier_score"), y, p)
        self.other = lambda: ((p - np.eye(classes)[y]) ** 2).sum(axis=1).mean()


class ScoresBootstrap(Beside):
    """Measure 1000 replicates of a score, beside as many of "ece"."""

    params = (["brier_score", "log_loss", "sharpness"], [100, 50_000])
    param_names = ("score", "n")

    def setup(self, score: str, n: int) -> None:
        """Draw the data."""
        find_function(score)
        y, p = baselines.draw_binary("uniform", n)
        self.other = partial(fastece.bootstrap, y, p, n_resamples=1000, rng=0)
        self.call = partial(self.other, estimator=score)


class Corp(Beside):
    """Measure the decomposition by isotonic regression, beside scikit-learn's fit."""

    params = (["brier", "log"], ["uniform", "tied"], [1000, 1_000_000])
    param_names = ("score", "scores", "n")

    def setup(self, score: str, shape: str, n: int) -> None:
        """Draw the data."""
        from sklearn.isotonic import IsotonicRegression

        y, p = baselines.draw_binary(shape, n)
        self.call = partial(find_function("score_decomposition"), y, p, score=score)
        self.other = lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y)
