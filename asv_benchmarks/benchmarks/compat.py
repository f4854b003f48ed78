"""Functions by the names of other libraries, beside `fastece.ece` of the same rows; one thread.

`asv_benchmarks/peers.py` has them beside the libraries themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastece
from benchmarks.common import Beside

CLASSES = 10


def function_of(name: str) -> Callable[[Any, Any], Any]:
    """A function of labels and probabilities, those of class 0 for binary ones."""
    from fastece.compat import netcal, relplot, robustness_metrics, sklearn, torchmetrics
    from fastece.compat import uncertainty_calibration as uc

    return {
        "torchmetrics": lambda y, p: torchmetrics.multiclass_calibration_error(p, y, CLASSES),
        "netcal": lambda y, p: netcal.ECE(15).measure(p, y),
        "uncertainty_calibration": lambda y, p: uc.get_ece_em(p, y),
        "sklearn": lambda y, p: sklearn.calibration_curve(y == 0, p[:, 0], n_bins=15),
        "binnedECE": lambda y, p: relplot.binnedECE(p[:, 0], y == 0),
        "smECE": lambda y, p: relplot.smECE(p[:, 0], y == 0),
        "gce": lambda y, p: robustness_metrics.ace(y, p),
    }[name]


class Conventions(Beside):
    """A function of each library."""

    params = (
        [
            "torchmetrics", "netcal", "uncertainty_calibration", "sklearn", "binnedECE", "smECE",
            "gce",
        ],
        [100, 100_000],
    )  # fmt: skip
    param_names = ("function", "n")

    def setup(self, name: str, n: int) -> None:
        """Make the data and compile."""
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.full(CLASSES, 0.3), n)
        y = (p.cumsum(1) > rng.random(n)[:, None]).argmax(1)
        self.call = partial(function_of(name), y, p)
        self.other = partial(fastece.ece, y, p)
        self.call()
        self.other()
