"""What every study has, whether its distributions of scores are simulated or a user's files."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from fastece.checks.parameters import check_choice, check_integer
from fastece.data.sample import Sample
from fastece.typing import F64, I32

# The truth of each convention, the other one, and the error that estimators are ranked by.
CONVENTIONS = {
    "corrected": ("posterior", "labels", "p95_relative_error"),
    "published": ("labels", "posterior", "p95_absolute_error"),
}
# What random numbers are for.
MIXTURE, HOLDOUT, TRAINING, MODEL, DRAWS, INTERVALS = range(6)
# The least that a number may be; 1 where nothing is said.
LEAST = {"classes": 2, "train_size": 10, "holdout": 1000, "smallest": 2, "draws": 2, "seed": 0}


class Population(NamedTuple):
    """The rows of a distribution of scores, in one setting: a sample of one problem or of each
    class, what is known of hits in each of them (n,), their exact probabilities or the hits
    themselves, and how many bins the truth has."""

    setting: str
    samples: list[Sample]
    chances: list[F64]
    n_bins: int


class Arena(Protocol):
    """Parameters of a study, in a frozen dataclass: `fastece.study.Design` of simulated problems,
    `fastece.study.Predictions` of files. A distribution of scores is a named tuple, which says what
    it is as text and as columns of a table, and has a `file_name` for its results."""

    draws: int
    convention: Literal["corrected", "published"]
    estimators: tuple[str, ...]
    seed: int
    files: tuple[str, ...] = ()  # of the user, that scores come from

    def __post_init__(self: Any) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if isinstance(field.default, tuple):  # a list, as JSON has it
                object.__setattr__(self, name, checked_list(name, value))
            elif isinstance(field.default, int):
                check_integer(name, value, LEAST.get(name, 1), 2**31 - 1)
        for value in self.estimators:
            if not isinstance(value, str):
                raise TypeError(f'estimators: must be "module:name", got {value!r}')
        check_choice("convention", self.convention, list(CONVENTIONS))

    @property
    def distributions(self) -> list[Any]:
        """All distributions of scores."""

    def settings_of(self: Any, which: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Settings in which a distribution is measured."""
        return tuple(self.settings)

    def sizes_of(self: Any, which: Any) -> tuple[int, ...]:  # noqa: ARG002
        """Sizes of a distribution's evaluation sets, in increasing order."""
        return tuple(self.sizes)

    def populations(self, which: Any, seconds: dict[str, float]) -> Iterator[Population]:
        """What evaluation sets are drawn from, setting by setting; adds what it takes to the
        seconds of its kinds of work."""

    def rows(self, which: Any, size: int) -> I32:
        """The rows (draws, size) of the evaluation sets of one size."""

    def rng(self, purpose: int, *numbers: int) -> np.random.Generator:
        """The random numbers of one purpose, which depend on what is given alone."""
        return np.random.default_rng([self.seed, purpose, *numbers])

    def to_dict(self: Any) -> dict[str, Any]:
        """Plain Python values."""
        return asdict(self)


def checked_list(name: str, values: Any) -> tuple[Any, ...]:
    """Several values, each of them once; none, if they are estimators."""
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}: must be a list of some, got {values!r}")
    found = tuple(values)
    if isinstance(values, str) or not (found or name == "estimators"):
        raise ValueError(f"{name}: must be a list of some, got {values!r}")
    for value in found:
        if found.count(value) > 1:
            raise ValueError(f"{name}: has {value!r} twice")
    return found


@contextmanager
def add_time(seconds: dict[str, float], kind: str) -> Iterator[None]:
    """Add what the block takes to the seconds of its kind of work."""
    start = time.perf_counter()
    yield
    seconds[kind] = seconds.get(kind, 0.0) + time.perf_counter() - start
