"""What a study compares: distributions of scores, sizes, settings, estimators."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from fastece.inputs.parameters import check_choice, check_integer, list_names
from fastece.problems.settings import SETTINGS
from fastece.study.models import MODELS

# The truth of each convention, the other one, and the error that estimators are ranked by.
CONVENTIONS = {
    "corrected": ("posterior", "labels", "p95_relative_error"),
    "published": ("labels", "posterior", "p95_absolute_error"),
}
# The least that a number may be; 1 where nothing is said.
LEAST = {"classes": 2, "train_size": 10, "holdout": 1000, "smallest": 2, "draws": 2, "seed": 0}


class Distribution(NamedTuple):
    """One distribution of scores: a model, trained on one sample from one mixture."""

    n_classes: int
    n_features: int
    mixture: int
    model: str
    training: int

    def __str__(self) -> str:
        return "{} classes, {} features, mixture {}, {}, training {}".format(*self)

    @property
    def file_name(self) -> str:
        """Of its results."""
        return "classes{}-features{}-mixture{}-{}-training{}.parquet".format(*self)


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


@dataclass(frozen=True)
class Design:
    """A study of estimators on synthetic problems with known calibration error.

    Every combination of classes, features, mixtures, models and trainings is a distribution of
    scores. From the hold-out of each, `draws` evaluation sets of each size are drawn with
    replacement, which all estimators see.

    Parameters
    ----------
    classes, features : tuple of int
        Numbers of classes, from 2 on, and of features.
    mixtures : int
        Random mixtures of each kind.
    models : tuple of str
        Names in `fastece.study.models.MODELS`.
    trainings, train_size : int
        Training sets of each mixture, and rows in each.
    holdout : int
        Rows that evaluation sets are drawn from, and the truth is taken from.
    smallest, largest, n_sizes : int
        Sizes of the evaluation sets: so many, logarithmically from one to the other.
    draws : int
        Evaluation sets of each size, at least 2.
    settings : tuple of str
        "confidence", "classwise".
    convention : {"corrected", "published"}
        The estimators, the truth and the measure as they are defined, or as the published code has
        them (`fastece.study.published`).
    estimators : tuple of str
        More estimators, as "module:name".
    seed : int
        Of everything that is random.

    Raises
    ------
    ValueError, TypeError
        For a parameter outside its range.

    Notes
    -----
    Posocco and Bonnefoy (2021, "Estimating expected calibration errors", section 4).

    Examples
    --------
    >>> from fastece.study import Design
    >>> paper = Design()
    >>> len(paper.distributions), paper.sizes[:4], paper.sizes[-1]
    (540, (30, 35, 40, 47), 500)
    """

    classes: tuple[int, ...] = (2, 5, 7)
    features: tuple[int, ...] = (2, 5, 7)
    mixtures: int = 5
    models: tuple[str, ...] = MODELS
    trainings: int = 3
    train_size: int = 300
    holdout: int = 200_000
    smallest: int = 30
    largest: int = 500
    n_sizes: int = 20
    draws: int = 200
    settings: tuple[str, ...] = ("confidence", "classwise")
    convention: Literal["corrected", "published"] = "corrected"
    estimators: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if isinstance(field.default, tuple):  # a list, as JSON has it
                object.__setattr__(self, name, checked_list(name, value))
            elif isinstance(field.default, int):
                check_integer(name, value, LEAST.get(name, 1), 2**31 - 1)
        for name in ("classes", "features"):
            for value in getattr(self, name):
                check_integer(name, value, LEAST.get(name, 1), 1000)
        for value in self.models:
            check_choice("models", value, MODELS)
        for value in self.settings:
            check_choice("settings", value, [name for name in SETTINGS if name != "binary"])
        for value in self.estimators:
            if not isinstance(value, str):
                raise TypeError(f'estimators: must be "module:name", got {value!r}')
        check_choice("convention", self.convention, list(CONVENTIONS))
        if self.largest < self.smallest or self.holdout < self.largest:
            raise ValueError(
                f"largest: must be from smallest ({self.smallest}) to holdout ({self.holdout}), "
                f"got {self.largest}"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the evaluation sets, in increasing order."""
        spaced = np.geomspace(self.smallest, self.largest, self.n_sizes)
        return tuple(int(size) for size in np.unique(np.rint(spaced)))

    @property
    def distributions(self) -> list[Distribution]:
        """All distributions of scores; those of one mixture follow one another."""
        mixtures, trainings = range(self.mixtures), range(self.trainings)
        cells = product(self.classes, self.features, mixtures, trainings, self.models)
        return [Distribution(k, d, i, model, t) for k, d, i, t, model in cells]

    def rng(self, purpose: int, *numbers: int) -> np.random.Generator:
        """The random numbers of one purpose, which depend on what is given alone."""
        return np.random.default_rng([self.seed, purpose, *numbers])

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return asdict(self)


PRESETS = {
    "quick": Design(
        classes=(2, 5), features=(2, 5), mixtures=1, trainings=1, holdout=20_000, n_sizes=6,
        draws=50,
    ),
    "paper": Design(),
}  # fmt: skip


def preset(name: str, **changes: Any) -> Design:
    """The design "quick" or "paper", with some of the parameters of `Design` replaced: those of
    `changes` that are not None."""
    if name not in PRESETS:
        raise ValueError(f"preset: got {name!r}; {list_names(PRESETS)}")
    return replace(PRESETS[name], **{k: v for k, v in changes.items() if v is not None})
