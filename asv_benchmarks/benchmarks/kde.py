"""The density based error: what its bandwidth and its kernel cost. A version of the package without
it is not measured."""

from functools import partial
from typing import Any

import fastece
from benchmarks import baselines
from benchmarks.common import Replicated, Single

ESTIMATOR = "ece_kde"


def estimator_of(**fields: Any) -> Any:
    """The estimator with these fields."""
    if ESTIMATOR not in fastece.ESTIMATORS or not hasattr(fastece, "bootstrap"):
        raise NotImplementedError
    return fastece.KDE(**fields)


class KdeBootstrap(Replicated):
    """One value among many."""

    params = (["silverman", 0.01, 0.05], [100, 10_000])
    param_names = ("bandwidth", "n")

    def setup(self, bandwidth: str | float, n: int) -> None:
        """Make the data."""
        estimator = estimator_of(bandwidth=bandwidth)
        y, p = baselines.binary("uniform", n)
        h = None if bandwidth == "silverman" else bandwidth
        values = [baselines.on_rows(baselines.density_error, h=h)(y, p)]
        call = partial(fastece.bootstrap, y, p, estimator=estimator)
        self.make(call, partial(baselines.resample, values, n, n), n)


class KdeKernels:
    """A thousand replicates of kernels that differ from point to point, beside the Gaussian."""

    params = (["gaussian", "beta"], ["silverman", 0.05], [500])
    param_names = ("kernel", "bandwidth", "n")
    timeout = 180.0

    def setup(self, kernel: str, bandwidth: str | float, n: int) -> None:
        """Make the data and compile."""
        estimator = estimator_of(kernel=kernel, bandwidth=bandwidth)
        y, p = baselines.binary("uniform", n)
        self.call = partial(fastece.bootstrap, y, p, estimator=estimator, rng=0)
        self.call(n_resamples=32)

    def time_bootstrap(self, *params: Any) -> None:  # noqa: ARG002
        """Time of one call."""
        self.call(n_resamples=1000)


class KdeCalls(Single):
    """Single calls, with Silverman's bandwidth as the baseline has it."""

    params = (["ece_kde"], [10_000, 1_000_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Make the data and compile."""
        estimator_of()
        y, p = baselines.binary("uniform", n)
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.baseline = partial(baselines.BASELINES[estimator], y, p)
        self.call()


class KdeCurve:
    """A reliability curve with a band of 500 resamples."""

    params = ([1000],)
    param_names = ("n",)
    timeout = 180.0

    def setup(self, n: int) -> None:
        """Make the data and compile."""
        if not hasattr(fastece, "reliability_curve"):
            raise NotImplementedError
        y, p = baselines.binary("uniform", n)
        self.call = partial(fastece.reliability_curve, y, p, n_resamples=500, rng=0)
        self.call()

    def time_curve(self, n: int) -> None:  # noqa: ARG002
        """Time of one call."""
        self.call()
