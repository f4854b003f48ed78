"""Sources of samples: a caller's arrays, or the sums of a stream."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from fastece.checks.errors import InputError, repr_of
from fastece.data.sample import Sample
from fastece.data.settings import SETTINGS, Setting
from fastece.typing import F64

# Data that an estimator may need of a source, and declares as `needs`. "squares" are squares of the
# scores, "distances" from class vectors to the true class; every source has "ranks".
RANKS, SQUARES, DISTANCES, VECTORS, ROWS = "ranks", "squares", "distances", "vectors", "rows"
NEEDS = {
    RANKS: "the ranks of the scores",
    SQUARES: "squares of the scores",
    DISTANCES: "squared distances of class vectors",
    VECTORS: "whole class vectors",
    ROWS: "every row by itself",
}


class Source(ABC):
    """One weighted binary problem, or one for each class, over the same rows.

    Attributes
    ----------
    setting : Setting
        How labels and probabilities became problems.
    n_classes : int
    low, high : float
        Support of the score.
    labels : list or None
        The labels of the class indices.
    has : set of str
        The content that its samples have, of `NEEDS`.
    key : int
        The key of the draws of replicates, where the source has some.
    """

    has: frozenset[str] = frozenset(NEEDS)

    setting: Setting
    n_classes: int
    low: float
    high: float
    labels: list[Any] | None
    key: int

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows of positive weight."""

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return self.n_classes if self.setting.per_class else 1

    @property
    @abstractmethod
    def has_vectors(self) -> bool:
        """Whether an estimator of class vectors takes these as a whole."""

    @abstractmethod
    def sample(self, k: int, needs: str = RANKS) -> Sample:
        """Return problem `k` as a sample with the content required, one of `NEEDS`."""

    def needs_of(self, estimator: Any) -> str:
        """Return the content of samples that an estimator needs, or refuse it."""
        needs: str = getattr(estimator, "needs", RANKS)
        if self.has_vectors and needs != ROWS and getattr(estimator, "needs_vectors", False):
            needs = DISTANCES if needs == SQUARES else VECTORS
        if needs not in self.has:
            raise self.lack(needs, "estimator", str(estimator))
        return needs

    def problem(self, k: int) -> "Source":
        """Return problem `k` as a source of its own."""
        return OneProblem(self, k)

    def samples(self, needs: str = RANKS) -> list[Sample]:
        """Return every problem as a sample."""
        return [self.sample(k, needs) for k in range(self.n_problems)]

    def check_setting(self, setting: Any) -> None:
        """Refuse a setting that is neither "auto" nor that of the source."""
        known = ["auto", self.setting.name, self.setting.column]
        # The top label is one question about class vectors, "auto" stands for the whole vectors.
        is_known = setting == "auto" if self.has_vectors else setting in known
        if setting is None or not is_known:
            own = "auto" if self.has_vectors else self.setting.name
            raise InputError("setting", f"must be {own!r}, that of {self!r}", value=setting)

    def draws(self, k: int) -> Iterator[F64]:  # noqa: ARG002
        """Yield the counts of the rows (n,) of `sample(k)` in each replicate."""
        raise InputError("n_replicates", f"there are none in {self!r}")

    def lack(self, needs: str, argument: str, reader: str) -> InputError:
        """Build the error for a reader that needs data which the source lacks."""
        rule = f"{reader} needs {NEEDS[needs]}, and a stream keeps only sums over cells of scores"
        return InputError(argument, rule)

    def name(self, k: int) -> str:
        """Name the setting of problem `k`, with the caller's label if it is of one class."""
        column = k if self.setting.per_class else self.setting.column
        name = f"class {k}" if self.setting.per_class else self.setting.name
        if self.labels is None or column is None:
            return name
        return f"{name} ({repr_of(self.labels[column])})"


class OneProblem(Source):
    """One problem of a source, by itself."""

    def __init__(self, source: Source, k: int) -> None:
        self.source, self.k = source, k
        self.setting, self.n_classes, self.labels = SETTINGS["binary"], 2, None
        self.low, self.high, self.has = source.low, source.high, source.has

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.source.n

    @property
    def has_vectors(self) -> bool:
        """False: a single problem has no class vectors."""
        return False

    def sample(self, k: int, needs: str = RANKS) -> Sample:  # noqa: ARG002
        """Return the problem as a sample with the content required."""
        return self.source.sample(self.k, needs)
