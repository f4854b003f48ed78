"""Fits of recalibration maps on one thread, beside the fits of other libraries."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks import baselines
from benchmarks.common import Benchmark, Beside

# Added to probabilities before their logarithm, which 0 does not have.
LOG_OFFSET = 1e-300
# At this tolerance, scikit-learn stops about as near to the optimum as the maps of fastece.
TOLERANCE = 1e-6


def make_map(name: str, **options: Any) -> Any:
    """Make a map to fit; asv skips versions of fastece that lack it."""
    try:
        from fastece.recalibration import METHODS
    except ImportError as error:
        raise NotImplementedError from error
    return METHODS[name](**options)


def fit_with_torch(z: Any, y: Any) -> float:
    """Fit a temperature to logits by the usual recipe, 50 steps of LBFGS."""
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


def make_scikit_learn_fit(method: str, y: Any, p: Any) -> Any:
    """Make a call that fits a map of scores (n,) in scikit-learn."""
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    if method == "isotonic":
        return partial(IsotonicRegression(out_of_bounds="clip").fit, p, y)
    log_score = np.log(p + LOG_OFFSET)
    log_complement = np.log1p(-p)
    log_odds = log_score - log_complement
    features = {
        "platt": [log_odds],
        "beta": [log_score, -log_complement],
        "quadratic": [log_odds, log_odds**2],
    }[method]
    regression = LogisticRegression(C=np.inf, tol=TOLERANCE, solver="newton-cholesky")
    return partial(regression.fit, np.column_stack(features), y)


class Temperature(Beside):
    """Measure a temperature for float32 logits, beside torch on one thread."""

    params = ([10, 1000], [50_000])
    param_names = ("classes", "n")

    def setup(self, classes: int, n: int) -> None:
        """Draw the data."""
        try:
            import torch
        except ImportError as error:
            raise NotImplementedError from error
        torch.set_num_threads(1)
        y, z = baselines.draw_class_vectors(n, classes, "float32", logits=True)
        self.call = partial(make_map("temperature", from_logits=True).fit, z, y)
        self.other = partial(fit_with_torch, torch.from_numpy(z), torch.from_numpy(y))


class Matrix(Beside):
    """Measure matrix scaling, beside the multinomial regression of scikit-learn."""

    params = ([1000, 50_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Draw the data."""
        from sklearn.linear_model import LogisticRegression

        y, z = baselines.draw_class_vectors(n, baselines.N_CLASSES, logits=True)
        regression = LogisticRegression(C=np.inf, tol=TOLERANCE, max_iter=1000)
        self.call = partial(make_map("matrix", from_logits=True).fit, z, y)
        self.other = partial(regression.fit, z, y)


class Structured(Beside):
    """Measure structured scaling of probabilities, beside that of probmetrics on one thread."""

    params = (["ets", "svs", "sms"], [(1000, 2), (10_000, 10)])
    param_names = ("method", "rows and classes")

    def setup(self, method: str, shape: tuple[int, int]) -> None:
        """Draw the data."""
        try:
            import torch
            from probmetrics.calibrators import ETSCalibrator, get_calibrator
        except ImportError as error:
            raise NotImplementedError from error
        torch.set_num_threads(1)
        y, p = baselines.draw_class_vectors(*shape)
        their = ETSCalibrator("ce") if method == "ets" else get_calibrator(method)
        self.call = partial(make_map(method).fit, p, y)
        self.other = partial(their.fit, p, y)


class ManyClasses(Benchmark):
    """Measure structured vector scaling of 50,000 rows of float32 logits of 1000 classes."""

    def setup(self) -> None:
        """Draw the data."""
        y, z = baselines.draw_class_vectors(50_000, 1000, "float32", logits=True)
        self.call = partial(make_map("svs", from_logits=True).fit, z, y)

    def time_fit(self) -> None:
        """Fit the map."""
        self.call()

    def peakmem_fit(self) -> None:
        """Fit the map; the logits take 200 MB."""
        self.call()


class OfScores(Beside):
    """Measure maps of the score of the positive class, beside scikit-learn."""

    params = (["platt", "beta", "quadratic", "isotonic"], [1000, 1_000_000])
    param_names = ("method", "n")

    def setup(self, method: str, n: int) -> None:
        """Draw the data."""
        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(make_map(method).fit, p, y)
        self.other = make_scikit_learn_fit(method, y, p)
