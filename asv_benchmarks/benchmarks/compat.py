"""Functions of `fastece.compat`, beside `fastece.ece`.

The former have the names of other libraries. Both get the same rows, on one thread, and
`asv_benchmarks/peers.py` runs them beside the libraries themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastece
from benchmarks.baselines import N_BINS, N_CLASSES
from benchmarks.common import Beside


def find_function_of_library(name: str) -> Callable[[Any, Any], Any]:
    """Find a function of labels and class vectors; binary ones get class 0."""
    from fastece.compat import (
        netcal,
        relplot,
        robustness_metrics,
        sklearn,
        torchmetrics,
        uncertainty_calibration,
    )

    functions: dict[str, Callable[[Any, Any], Any]] = {
        "torchmetrics": lambda y, p: torchmetrics.multiclass_calibration_error(p, y, N_CLASSES),
        "netcal": lambda y, p: netcal.ECE(N_BINS).measure(p, y),
        "uncertainty_calibration": lambda y, p: uncertainty_calibration.get_ece_em(p, y),
        "sklearn": lambda y, p: sklearn.calibration_curve(y == 0, p[:, 0], n_bins=N_BINS),
        "binnedECE": lambda y, p: relplot.binnedECE(p[:, 0], y == 0),
        "gce": lambda y, p: robustness_metrics.ace(y, p),
    }
    return functions[name]


class Conventions(Beside):
    """Measure a function of each library."""

    params = (
        [
            "torchmetrics", "netcal", "uncertainty_calibration", "sklearn", "binnedECE", "gce",
        ],
        [100, 100_000],
    )  # fmt: skip
    param_names = ("function", "n")

    def setup(self, name: str, n: int) -> None:
        """Draw the data and compile."""
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.full(N_CLASSES, 0.3), n)
        y = (p.cumsum(1) > rng.random(n)[:, None]).argmax(1)
        self.call = partial(find_function_of_library(name), y, p)
        self.other = partial(fastece.ece, y, p)
        self.call()
        self.other()
