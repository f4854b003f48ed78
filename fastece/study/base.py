"""The base of study designs, on simulated scores or on a user's files."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any, Literal, NamedTuple

import numpy as np

from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import check_choice, check_integer
from fastece.data.sample import Sample
from fastece.typing import F64, I32

# The truth of each convention, the other one, and the error that estimators are ranked by.
CONVENTIONS = {
    "corrected": ("posterior", "labels", "p95_relative_error"),
    "published": ("labels", "posterior", "p95_absolute_error"),
}
# Purposes of random numbers.
MIXTURE, HOLDOUT, TRAINING, MODEL, DRAWS, INTERVALS = range(6)
# The least values of numbers that must be more than 1, or may be less.
LEAST = {"classes": 2, "train_size": 10, "holdout": 1000, "smallest": 2, "draws": 2, "seed": 0}


class Population(NamedTuple):
    """The rows of a distribution of scores in one setting.

    There is a sample of one problem or of each class; `chances` (n,) are the exact probabilities
    of the event in its rows, or the outcomes themselves; `n_bins` is for the truth.
    """

    setting: str
    samples: list[Sample]
    chances: list[F64]
    n_bins: int


class StudyDesign(ABC):
    """Parameters of a study, in a frozen dataclass.

    There is `fastece.study.Design` of simulated problems, and `fastece.study.Predictions` of files.
    A distribution of scores is a named tuple, which becomes text and columns of a table, and has a
    `file_name` for its results.
    """

    draws: int
    convention: Literal["corrected", "published"]
    estimators: tuple[str, ...]
    seed: int
    files: tuple[str, ...] = ()  # of the user, that scores come from

    def __post_init__(self: Any) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if isinstance(field.default, tuple):  # a list, as JSON has it
                object.__setattr__(self, name, check_list(name, value))
            elif isinstance(field.default, int):
                check_integer(name, value, LEAST.get(name, 1), 2**31 - 1)
        for value in self.estimators:
            if not isinstance(value, str):
                raise InputTypeError("estimators", 'must be "module:name"', value=value)
        check_choice("convention", self.convention, list(CONVENTIONS))

    @property
    @abstractmethod
    def distributions(self) -> list[Any]:
        """All distributions of scores."""

    @abstractmethod
    def populations(self, which: Any, seconds: dict[str, float]) -> Iterator[Population]:
        """Yield the rows of a distribution, setting by setting; record seconds spent.

        The seconds are added up by kind of work.
        """

    @abstractmethod
    def rows(self, which: Any, size: int) -> I32:
        """Draw the rows (draws, size) of the evaluation sets of one size."""

    def settings_of(self: Any, which: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Return the settings in which a distribution is measured."""
        return tuple(self.settings)

    def sizes_of(self: Any, which: Any) -> tuple[int, ...]:  # noqa: ARG002
        """Return the sizes of a distribution's evaluation sets, in increasing order."""
        return tuple(self.sizes)

    def rng(self, purpose: int, *numbers: int) -> np.random.Generator:
        """Create the random generator for a purpose, seeded by the arguments alone."""
        return np.random.default_rng([self.seed, purpose, *numbers])

    def to_dict(self: Any) -> dict[str, Any]:
        """Return the parameters as plain Python values."""
        return asdict(self)


def check_list(name: str, values: Any) -> tuple[Any, ...]:
    """Check a list of distinct values; only estimators may be an empty list."""
    if not isinstance(values, Iterable):
        raise InputTypeError(name, "must be a list of some", value=values)
    found = tuple(values)
    if isinstance(values, str) or not (found or name == "estimators"):
        raise InputError(name, "must be a list of some", value=values)
    for value in found:
        if found.count(value) > 1:
            raise InputError(name, f"has {value!r} twice")
    return found


@contextmanager
def add_time(seconds: dict[str, float], kind: str) -> Iterator[None]:
    """Add the time that the block takes to the seconds of its kind of work."""
    start = time.perf_counter()
    yield
    seconds[kind] = seconds.get(kind, 0.0) + time.perf_counter() - start
