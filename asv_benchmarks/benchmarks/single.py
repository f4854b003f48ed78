"""Single calls on one thread, validation included."""

import fastece
from benchmarks.common import (
    SHAPES,
    binary,
    class_vectors,
    numpy_classwise,
    numpy_confidence,
    numpy_ece,
    ratio,
)


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


class ClassVectors:
    """Uniform hard bins on class vectors of ten million entries, and of one thousand."""

    IDIOMS = {"confidence": numpy_confidence, "classwise": numpy_classwise}  # noqa: RUF012
    params = (list(IDIOMS), ["float64", "float32"], [2, 10, 1000], [1000, 10_000_000])
    param_names = ("setting", "dtype", "classes", "entries")

    def setup(self, setting: str, dtype: str, classes: int, entries: int) -> None:
        """Make the data and compile."""
        self.y, self.p = class_vectors(max(1, entries // classes), classes, dtype)
        self.time_ece(setting, dtype, classes, entries)

    def time_ece(self, setting: str, dtype: str, classes: int, entries: int) -> None:  # noqa: ARG002
        """Time of one call."""
        fastece.ece(self.y, self.p, setting=setting)

    def track_ratio_to_numpy(self, setting: str, dtype: str, classes: int, entries: int) -> float:
        """Time of the numpy idiom over the time of one call."""
        return ratio(
            lambda: self.time_ece(setting, dtype, classes, entries),
            lambda: self.IDIOMS[setting](self.y, self.p),
        )
