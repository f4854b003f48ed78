"""The parameters that all studies have, and the rows that a distribution of scores yields."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_choice, check_integer
from fastece.data.samples import Sample
from fastece.kernels.types import F64, I32

MAX_INTEGER = 2**31 - 1


class Convention(NamedTuple):
    """How estimates are compared with the truth.

    Parameters
    ----------
    truth, other_truth : {"posterior", "labels"}
        The truth of the summary, and the one of the second summary.
    measure : str
        The column of the summary that estimators are ranked by.
    """

    truth: str
    other_truth: str
    measure: str


CONVENTIONS = {
    "corrected": Convention("posterior", "labels", "p95_relative_error"),
    "published": Convention("labels", "posterior", "p95_absolute_error"),
}


class Purpose(IntEnum):
    """Purposes of the random numbers of a study, each with its own generators."""

    MIXTURE = 0
    HOLDOUT = 1
    TRAINING = 2
    MODEL = 3
    DRAWS = 4
    INTERVALS = 5


class Population(NamedTuple):
    """The rows of a distribution of scores in one setting, from which a study draws.

    Parameters
    ----------
    setting : str
    samples : list of Sample
        One problem, or one for each class.
    chances : list of (n,) float64 array
        For each problem the exact probability of the event in every row, or the outcomes.
    n_bins : int
        Number of bins of the truth.
    """

    setting: str
    samples: list[Sample]
    chances: list[F64]
    n_bins: int


@dataclass(frozen=True, kw_only=True)
class StudyDesign(ABC):
    """Parameters of a study, in a frozen dataclass.

    There are two kinds, `fastece.study.Design` and `fastece.study.Predictions`. A subclass has its
    parameters as fields, lists its distributions of scores, and yields the rows of each. A
    distribution is a named tuple with the property `file_name`; its text names it in messages.
    """

    # Parameters that are lists of distinct values, and the smallest values of those that are
    # integers.
    LISTS: ClassVar[tuple[str, ...]] = ("estimators",)
    MIN_VALUES: ClassVar[dict[str, int]] = {"draws": 2, "seed": 0}
    # The distributions of scores in texts.
    noun: ClassVar[str] = "distributions of scores"
    # Whether texts show all truths, or only those that are mostly noise.
    shows_all_truths: ClassVar[bool] = False

    draws: int = 200
    convention: Literal["corrected", "published"] = "corrected"
    estimators: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.LISTS:
            values = getattr(self, name)
            if values is not None:  # JSON has lists in place of tuples.
                object.__setattr__(self, name, check_list(name, values))
        for name, min_value in self.MIN_VALUES.items():
            check_integer(name, getattr(self, name), min_value, MAX_INTEGER)
        for value in self.estimators:
            if not isinstance(value, str):
                raise InputTypeError("estimators", 'must be "module:name"', value=value)
        check_choice("convention", self.convention, list(CONVENTIONS))

    @property
    @abstractmethod
    def distributions(self) -> list[Any]:
        """All distributions of scores."""

    @abstractmethod
    def settings_of(self, distribution: Any) -> tuple[str, ...]:
        """Return the settings in which a distribution is measured."""

    @abstractmethod
    def sizes_of(self, distribution: Any) -> tuple[int, ...]:
        """Return the sizes of a distribution's evaluation sets, in increasing order."""

    @abstractmethod
    def populations(self, distribution: Any) -> Iterator[Population]:
        """Yield the rows of a distribution, setting by setting."""

    @abstractmethod
    def rows(self, distribution: Any, size: int) -> I32:
        """Draw the rows (draws, size) of the evaluation sets of one size."""

    @property
    def input_files(self) -> tuple[str, ...]:
        """Files of the user that scores come from."""
        return ()

    def rng(self, purpose: int, *numbers: int) -> np.random.Generator:
        """Create the random generator of a purpose, seeded by the arguments alone."""
        return np.random.default_rng([self.seed, int(purpose), *numbers])

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain Python values."""
        return asdict(self)


def check_list(name: str, values: Any) -> tuple[Any, ...]:
    """Check a list of distinct values; only estimators may be an empty list."""
    rule = "must be a list of some"
    if not isinstance(values, Iterable):
        raise InputTypeError(name, rule, value=values)
    entries = tuple(values)
    is_empty = not entries and name != "estimators"
    if isinstance(values, str) or is_empty:
        raise InputError(name, rule, value=values)
    for value in entries:
        if entries.count(value) > 1:
            raise InputError(name, f"has {value!r} twice")
    return entries
