"""The error by densities: the cost of its bandwidth and its kernel.

asv skips versions of fastece that lack the estimator.
"""

from functools import partial
from typing import Any

import fastece
from benchmarks import baselines
from benchmarks.common import Benchmark, Replicated, Single, require

ESTIMATOR = "ece_kde"


def make_estimator(**fields: Any) -> Any:
    """Make the estimator with some of its fields; asv skips versions that lack it."""
    require("bootstrap")
    if ESTIMATOR not in fastece.ESTIMATORS:
        raise NotImplementedError
    return fastece.KDE(**fields)


class KdeBootstrap(Replicated):
    """Measure replicates with bandwidths that depend on the draw, and with fixed ones."""

    params = (["silverman", 0.01, 0.05], [100, 10_000])
    param_names = ("bandwidth", "n")

    def setup(self, bandwidth: str | float, n: int) -> None:
        """Draw the data."""
        estimator = make_estimator(bandwidth=bandwidth)
        y, p = baselines.draw_binary("uniform", n)
        h = None if bandwidth == "silverman" else bandwidth
        values = [baselines.repeat_on_draws(baselines.density_error, h=h)(y, p)]
        call = partial(fastece.bootstrap, y, p, estimator=estimator)
        self.prepare(call, partial(baselines.resample, values, n, n), n)


class KdeKernels(Benchmark):
    """Measure replicates of beta kernels, beside the Gaussian."""

    params = (["gaussian", "beta"], ["silverman", 0.05], [500])
    param_names = ("kernel", "bandwidth", "n")

    def setup(self, kernel: str, bandwidth: str | float, n: int) -> None:
        """Draw the data and compile."""
        estimator = make_estimator(kernel=kernel, bandwidth=bandwidth)
        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(fastece.bootstrap, y, p, estimator=estimator, rng=0)
        self.call(n_resamples=32)

    def time_bootstrap(self, *params: Any) -> None:  # noqa: ARG002
        """Make a thousand replicates."""
        self.call(n_resamples=1000)


class KdeCalls(Single):
    """Measure single calls, with Silverman's bandwidth as in the baseline."""

    params = ([ESTIMATOR], [10_000, 1_000_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        """Draw the data and compile."""
        make_estimator()
        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(fastece.ece, y, p, estimator=estimator)
        self.baseline = partial(baselines.BASELINES[estimator], y, p)
        self.call()


class KdeCurve(Benchmark):
    """Measure a reliability curve with a band of 500 resamples."""

    params = ([1000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Draw the data and compile."""
        require("reliability_curve")
        y, p = baselines.draw_binary("uniform", n)
        self.call = partial(fastece.reliability_curve, y, p, n_resamples=500, rng=0)
        self.call()

    def time_curve(self, n: int) -> None:  # noqa: ARG002
        """Compute the curve."""
        self.call()
