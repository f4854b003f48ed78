"""Scores and decompositions, validation included, on one thread, beside what else gives them."""

from functools import partial

import numpy as np

import fastece
from benchmarks import baselines
from benchmarks.common import Beside, function_of


class Scores(Beside):
    """Each score of the positive class alone, beside that of scikit-learn, or of numpy."""

    params = (["brier_score", "log_loss", "accuracy", "sharpness"], [1000, 1_000_000])
    param_names = ("score", "n")

    def setup(self, score: str, n: int) -> None:
        """Make the data."""
        from sklearn import metrics

        y, p = baselines.binary("uniform", n)
        self.call = partial(function_of(score), y, p)
        self.other = {
            "brier_score": partial(metrics.brier_score_loss, y, p),
            "log_loss": partial(metrics.log_loss, y, p),
            "accuracy": lambda: metrics.accuracy_score(y, p > 0.5),
            "sharpness": p.var,
        }[score]


class ScoresOfVectors(Beside):
    """Brier score of class vectors with so many entries, beside numpy."""

    params = ([10, 1000], [1_000_000])
    param_names = ("classes", "n")

    def setup(self, classes: int, n: int) -> None:
        """Make the data."""
        y, p = baselines.class_vectors(max(1, n // classes), classes)
        self.call = partial(function_of("brier_score"), y, p)
        self.other = lambda: ((p - np.eye(classes)[y]) ** 2).sum(axis=1).mean()


class ScoresBootstrap(Beside):
    """1000 replicates of a score, beside those of "ece"."""

    params = (["brier_score", "log_loss", "sharpness"], [100, 50_000])
    param_names = ("score", "n")

    def setup(self, score: str, n: int) -> None:
        """Make the data."""
        function_of(score)
        y, p = baselines.binary("uniform", n)
        replicates = partial(fastece.bootstrap, y, p, n_resamples=1000, rng=0)
        self.call, self.other = partial(replicates, estimator=score), replicates


class Corp(Beside):
    """Decomposition by isotonic regression, beside the fit of scikit-learn alone."""

    params = (["brier", "log"], ["uniform", "tied"], [1000, 1_000_000])
    param_names = ("score", "scores", "n")

    def setup(self, score: str, shape: str, n: int) -> None:
        """Make the data."""
        from sklearn.isotonic import IsotonicRegression

        y, p = baselines.binary(shape, n)
        self.call = partial(function_of("score_decomposition"), y, p, score=score)
        self.other = lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y)
