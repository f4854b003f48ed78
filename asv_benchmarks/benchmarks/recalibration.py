"""Fits of recalibration maps on one thread, beside what else fits them."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks import baselines
from benchmarks.common import Beside


def map_of(name: str, **options: Any) -> Any:
    """A map to fit, if the measured version has it."""
    try:
        from fastece.recalibration import METHODS
    except ImportError as error:
        raise NotImplementedError from error
    return METHODS[name](**options)


def fit_with_torch(z: Any, y: Any) -> float:
    """The usual recipe for a temperature: 50 steps of LBFGS."""
    import torch

    temperature = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.LBFGS([temperature], lr=0.01, max_iter=50)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(z / temperature, y)
        loss.backward()
        return loss

    optimizer.step(closure)
    return float(temperature.detach())


class Temperature(Beside):
    """A temperature for float32 logits, beside torch on one thread."""

    params = ([10, 1000], [50_000])
    param_names = ("classes", "n")

    def setup(self, classes: int, n: int) -> None:
        """Make the data."""
        try:
            import torch
        except ImportError as error:
            raise NotImplementedError from error
        torch.set_num_threads(1)
        y, z = baselines.class_vectors(n, classes, "float32", logits=True)
        self.call = partial(map_of("temperature", from_logits=True).fit, z, y)
        self.other = partial(fit_with_torch, torch.from_numpy(z), torch.from_numpy(y))


class Matrix(Beside):
    """Matrix scaling, beside the multinomial regression of scikit-learn, stopped as near."""

    params = ([1000, 50_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the data."""
        from sklearn.linear_model import LogisticRegression

        y, z = baselines.class_vectors(n, 10, logits=True)
        self.call = partial(map_of("matrix", from_logits=True).fit, z, y)
        self.other = partial(LogisticRegression(C=np.inf, tol=1e-6, max_iter=1000).fit, z, y)


class OfScores(Beside):
    """Maps of the score of the positive class, beside scikit-learn."""

    params = (["platt", "beta", "isotonic"], [1000, 1_000_000])
    param_names = ("method", "n")

    def setup(self, method: str, n: int) -> None:
        """Make the data."""
        from sklearn.isotonic import IsotonicRegression
        from sklearn.linear_model import LogisticRegression

        y, p = baselines.binary("uniform", n)
        log, log_rest = np.log(p + 1e-300), np.log1p(-p)
        features = [log - log_rest] if method == "platt" else [log, -log_rest]
        regression = LogisticRegression(C=np.inf, tol=1e-6, solver="newton-cholesky")
        self.call = partial(map_of(method).fit, p, y)
        self.other = partial(regression.fit, np.column_stack(features), y)
        if method == "isotonic":
            self.other = partial(IsotonicRegression(out_of_bounds="clip").fit, p, y)
