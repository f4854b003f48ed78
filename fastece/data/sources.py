"""Settings, and sources of samples: a caller's arrays or the sums of a stream."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError, repr_of
from fastece.data.parameters import check_integer, list_names
from fastece.data.samples import ALL, Sample, Vectors, effective_rows
from fastece.kernels.types import F64, I64

# Scores in [0, 1] (n,) float64 with outcomes (n,) uint8; or class vectors (n, K) float64 or
# float32, of which every class is a problem, with classes (n,) from 0 to K - 1, uint8 or int64.
Arrays = tuple[NDArray[Any], NDArray[Any]]
NO_ROWS = np.empty(0, np.int64)
# Logits of greater scores may differ in numbers that the scores do not show: float64 has a distance
# of 1e-16 next to 1, where a difference of 1e-6 of logits, as float32 has it, is 1e-15 of scores.
NEAR_1 = 1 - 1e-9


@dataclass(frozen=True)
class Setting:
    """How class vectors and labels become binary problems.

    Attributes
    ----------
    name : str
        As the caller writes it and as results show it.
    column : int or None
        The class whose probability is the score, and whose label makes the outcome 1. None: the
        class of the largest probability, or every class in turn.
    per_class : bool
        Whether every class is a problem: K of them rather than one.
    """

    name: str
    column: int | None = None
    per_class: bool = False

    @property
    def is_top(self) -> bool:
        """Whether the score is the largest of K probabilities, so its support is [1/K, 1]."""
        return self.column is None and not self.per_class


SETTINGS = {
    "binary": Setting("binary", column=1),
    "confidence": Setting("confidence"),
    "classwise": Setting("classwise", per_class=True),
}
# Settings whose problems have rows of their own, which `fastece.data.separate` reads.
SEPARATE_SETTINGS = {
    "tasks": Setting("tasks", per_class=True),
    "top-label": Setting("top-label", per_class=True),
}


# Settings that take the class of the largest probability, for each row.
TOP_LABEL_SETTINGS = ("confidence", "top-label")


def class_count(shape: tuple[int, ...]) -> int:
    """Count the classes; probabilities of the positive class alone have two."""
    return 2 if len(shape) == 1 else shape[1]


def find_setting(setting: Any, shape: tuple[int, ...]) -> Setting:
    """Find the setting of a name for probabilities of a shape, or refuse the name."""
    if isinstance(setting, str):
        if setting == "auto":
            return SETTINGS["binary" if len(shape) == 1 else "confidence"]
        if setting in SETTINGS:
            if setting == "binary" and class_count(shape) != 2:
                raise InputError(
                    "setting",
                    f"'binary' needs P(positive) or 2 columns, and here are {class_count(shape)}",
                    hint="'confidence', 'classwise' or a class index take any number of classes",
                )
            return SETTINGS[setting]
    if isinstance(setting, Integral) and not isinstance(setting, bool | np.bool_):
        k = check_integer("setting", setting, 0, class_count(shape) - 1, "a class index")
        return Setting(f"class {k}", column=k)
    if isinstance(setting, str) and setting in SEPARATE_SETTINGS:
        rule = f"{setting!r} goes with arrays of functions such as ece, estimate and bootstrap"
        raise InputError("setting", rule, hint="'confidence' and 'classwise' go everywhere")
    names = f"{list_names(['auto', *SETTINGS, *SEPARATE_SETTINGS])}, or a class index"
    raise InputError("setting", "must be a known name", value=setting, hint=names)


# Data that an estimator may need of a source, and declares as `needs`. Every source has "ranks".
RANKS = "ranks"
SQUARES = "squares"  # of the scores
DISTANCES = "distances"  # squared, of class vectors from the true class
VECTORS = "vectors"
ROWS = "rows"
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
    names : list or None
        Names of the classes that are only shown, where labels are class indices.
    has : set of str
        Names in `NEEDS` of the data that its samples have.
    key : int
        The key of the draws of replicates, where the source has some.
    """

    has: frozenset[str] = frozenset(NEEDS)
    votes: float = 1.0  # as in `Sample`

    setting: Setting
    n_classes: int
    low: float
    high: float
    labels: list[Any] | None
    names: list[str] | None = None
    key: int
    # Names of problems with rows of their own; others go by the indices of classes.
    problem_names: Sequence[str] = ()

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows of positive weight."""

    def count(self) -> int:
        """Count the caller's rows, which statistics go by."""
        return self.n

    def size(self, k: int) -> int:  # noqa: ARG002
        """Count the caller's rows of problem `k`, which its statistics go by."""
        return self.count()

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return self.n_classes if self.setting.per_class else 1

    def average(self, values: Any) -> Any:
        """Average values (K, ...) over the problems."""
        # The bits of `values.mean(0)`, in a third of the time for a few values.
        return np.add.reduce(values, 0) / len(values)

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

    def samples(self, needs: str = RANKS, reads_only: bool = False) -> list[Sample]:
        """Return every problem as a sample; of arrays perhaps views that are only read."""
        if reads_only and isinstance(self, Problems):
            return [self.view(k) for k in range(self.n_problems)]
        return [self.sample(k, needs) for k in range(self.n_problems)]

    def check_setting(self, setting: Any) -> None:
        """Refuse a setting that is neither "auto" nor the one of the source."""
        allowed = ["auto", self.setting.name, self.setting.column]
        if self.has_vectors:
            # The top label is one question about class vectors, and "auto" stands for all of them.
            allowed = ["auto"]
        if setting is None or setting not in allowed:
            name = "auto" if self.has_vectors else self.setting.name
            raise InputError("setting", f"must be {name!r}, that of {self!r}", value=setting)

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
        class_names = self.labels or self.names
        if class_names is None or column is None:
            return name
        return f"{name} ({repr_of(class_names[column])})"


class OneProblem(Source):
    """One problem of a source, by itself."""

    def __init__(self, source: Source, k: int) -> None:
        self.source = source
        self.k = k
        self.setting = SETTINGS["binary"]
        self.n_classes = 2
        self.labels = None
        self.low = source.low
        self.high = source.high
        self.has = source.has

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


class BySquares(OneProblem):
    """The problems of a source, in samples with sums of squares and coarser ranks."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, 0)
        self.setting = source.setting
        self.n_classes = source.n_classes
        self.labels = source.labels

    def sample(self, k: int, needs: str = RANKS) -> Sample:  # noqa: ARG002
        """Return problem `k` as a sample with squares of scores."""
        return self.source.sample(k, SQUARES)


@dataclass(eq=False)  # not frozen, as `Sample` is not
class Problems(Source):
    """A caller's arrays as one problem, or as one for each class.

    Its arrays are C-contiguous and writable, as kernels take them.

    Attributes
    ----------
    setting : Setting
    prob, label : arrays
        `Arrays` as `read` returns them; or, if there is `convert`, the caller's own. They are
        perhaps the caller's in either case, and never written to.
    low, high : float
        Support of the score.
    n_classes : int
    v : (n,) float64 array or None
        Sample weights, greater than 0; None where every row counts 1.
    rows : (n,) int64 array or None
        Positions of the rows before any of weight 0 was dropped; None where none was.
    labels : list or None
        The labels of the class indices.
    vectors : Vectors or None
        The class vectors of all rows, also of weight 0, for estimators that need them whole.
    convert : callable or None
        Makes `Arrays` of some rows of `prob` and `label`, which have been checked and are too
        large to be kept twice.
    names : list of str or None
        Names of the columns, where labels are class indices.
    origin : (N,) int64 array or None
        The caller's row that each row, also of weight 0, is a label of; None for hard labels.
    votes : float
        As for `Sample`.
    logits : (n,) or (n, K) array of float, or None
        The logits that `prob` was made from, perhaps the caller's array.
    """

    setting: Setting
    prob: NDArray[Any]
    label: NDArray[Any]
    low: float
    high: float
    n_classes: int = 2
    v: F64 | None = None
    rows: I64 | None = None
    labels: list[Any] | None = None
    vectors: Vectors | None = None
    convert: Callable[[NDArray[Any], NDArray[Any]], Any] | None = None
    names: list[str] | None = None
    origin: I64 | None = None
    votes: float = 1.0
    logits: NDArray[Any] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.label.size

    @property
    def n_effective(self) -> float:
        """Number of rows of equal weight whose mean varies as much (`effective_rows`)."""
        return effective_rows(self.v, self.n)

    def count(self, rows: Any = ALL) -> int:
        """Count the caller's rows that all rows are labels of, or some of them."""
        if self.votes == 1:
            return int(self.label[rows].size)
        return int(np.unique(self.callers[rows]).size)

    @cached_property
    def callers(self) -> I64:
        """Positions of the rows in the caller's data, of which soft labels repeat some."""
        return self.positions if self.origin is None else self.origin[self.positions]

    @property
    def has_vectors(self) -> bool:
        """Whether class vectors are kept as a whole."""
        return self.vectors is not None

    @cached_property
    def positions(self) -> I64:
        """Positions of the rows before any was dropped; one array for all classes."""
        return np.arange(self.n) if self.rows is None else self.rows

    def read(self, rows: slice = ALL) -> Arrays:
        """Return scores and outcomes, or class vectors and classes, of some rows."""
        prob = self.prob
        label = self.label
        if rows is not ALL:
            prob = prob[rows]
            label = label[rows]
        if self.convert is None:
            return prob, label
        converted: Arrays = self.convert(prob, label)
        return converted

    def read_problem(self, k: int, rows: slice = ALL) -> Arrays:
        """Return the scores and outcomes of some rows of problem `k`."""
        prob, label = self.read(rows)
        if prob.ndim == 1:
            return prob, label
        return prob[:, k].astype(np.float64), (label == k).view(np.uint8)

    def log_odds(self, k: int, s: F64, rows: slice = ALL) -> F64 | None:
        """Return the log odds of some rows of problem `k`, where they are needed.

        They are where a score is 0, or so near to 1 that others may be equal by rounding alone.
        """
        if self.logits is None or not s.size or (s.max() <= NEAR_1 and s.min() > 0):
            return None
        column = k if self.setting.per_class else self.setting.column
        return log_odds_of(self.logits[rows], column)

    def read_vectors(self, rows: slice = ALL) -> Arrays:
        """Return the class vectors and classes of some rows, which must be there."""
        assert self.vectors is not None, "an estimator that needs no vectors asks for them"
        chosen = rows if self.rows is None else self.rows[rows]
        return self.vectors.prob[chosen], self.vectors.label[chosen]

    def where(self, rows: I64) -> "Problems":
        """Select rows of all problems."""
        v = None if self.v is None else self.v[rows]
        prob = self.prob[rows]
        label = self.label[rows]
        logits = None if self.logits is None else self.logits[rows]
        positions = self.positions[rows]
        return replace(self, prob=prob, label=label, v=v, rows=positions, logits=logits)

    def view(self, k: int = 0, rows: slice = ALL) -> Sample:
        """Return rows of problem `k` as a sample that is only read, without positions."""
        s, y = self.read_problem(k, rows)
        v = None if self.v is None else self.v[rows]
        log_odds = self.log_odds(k, s, rows)
        if self.vectors is None:
            return Sample(
                s, y, v, self.low, self.high, NO_ROWS, votes=self.votes, log_odds=log_odds
            )
        return Sample(
            s, y, v, self.low, self.high, rows=np.arange(y.size),
            vectors=Vectors(*self.read_vectors(rows)), votes=self.votes, log_odds=log_odds,
        )  # fmt: skip

    def sample(self, k: int, needs: str = RANKS) -> Sample:  # noqa: ARG002
        """Return problem `k` as a sample with arrays that an estimator may change."""
        s, y = self.read_problem(k)
        if np.may_share_memory(s, self.prob):
            s = s.copy()
        if np.may_share_memory(y, self.label):
            y = y.copy()
        return Sample(
            s, y, self.v, self.low, self.high, rows=self.positions, vectors=self.vectors,
            votes=self.votes, log_odds=self.log_odds(k, s),
        )  # fmt: skip

    def parts(self, rows: int, k: int = 0) -> Iterator[Sample]:
        """Yield problem `k` in parts of so many rows, as samples that are only read."""
        for start in range(0, self.n, rows):
            yield self.view(k, slice(start, start + rows))

    def problem(self, k: int) -> "Problems":
        """Return problem `k` as a source of its own."""
        return replace(one_problem(replace(self.sample(k), vectors=None)), origin=self.origin)


def log_odds_of(logits: NDArray[Any], column: int | None) -> F64:
    """Compute the log odds (n,) of a class, for None of the largest one of a row."""
    if logits.ndim == 1:
        log_odds = logits.astype(np.float64)
        if column is None:
            return np.abs(log_odds)
        return log_odds if column == 1 else -log_odds
    rows = np.arange(len(logits))
    chosen = logits.argmax(axis=1) if column is None else np.full(len(logits), column)
    others = logits.astype(np.float64)
    score = others[rows, chosen].copy()
    others[rows, chosen] = -np.inf
    with np.errstate(divide="ignore"):
        return np.asarray(score - np.logaddexp.reduce(others, axis=1))


def one_problem(sample: Sample) -> Problems:
    """Turn a sample into a problem without a copy; counts become weights."""
    return Problems(
        SETTINGS["binary"], sample.s, sample.y, sample.low, sample.high,
        v=sample.weight,
        rows=sample.rows, vectors=sample.vectors, votes=sample.votes, logits=sample.log_odds,
    )  # fmt: skip


def need_rows(source: Source, reader: str, argument: str = "y_true") -> Problems:
    """Return a source that keeps single rows; refuse any other to a reader."""
    if not isinstance(source, Problems):
        raise source.lack(ROWS, argument, reader)
    return source
