"""Single calls on one thread, validation included."""

import fastece
from benchmarks.common import SHAPES, binary, numpy_ece, ratio


class Binary:
    """Every estimator of the table, binary setting."""

    params = (list(fastece.ESTIMATORS), list(SHAPES), [100, 10_000, 1_000_000])
    param_names = ("estimator", "scores", "n")

    def setup(self, estimator: str, shape: str, n: int) -> None:
        """Make the data and compile."""
        self.y, self.p = binary(shape, n)
        self.time_ece(estimator, shape, n)

    def time_ece(self, estimator: str, shape: str, n: int) -> None:  # noqa: ARG002
        """Time of one call."""
        fastece.ece(self.y, self.p, estimator=estimator)

    def track_ratio_to_numpy(self, estimator: str, shape: str, n: int) -> float:
        """Time of the numpy idiom for uniform hard bins over the time of one call."""
        return ratio(lambda: self.time_ece(estimator, shape, n), lambda: numpy_ece(self.y, self.p))
