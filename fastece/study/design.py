"""Designs of studies: on simulated models, and on a user's own predictions."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from fastece.data.errors import BadArgumentError, InputError, InputTypeError, warn
from fastece.data.parameters import check_choice, check_integer
from fastece.data.reading import read_problems
from fastece.data.samples import Sample
from fastece.data.sources import SETTINGS, Problems
from fastece.files import read_predictions
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.draws import RowDraws, new_key
from fastece.study.distributions import MODELS, GaussianMixture, new_model, predicted

# The truth of each convention, the other one, and the error that estimators are ranked by.
CONVENTIONS = {
    "corrected": ("posterior", "labels", "p95_relative_error"),
    "published": ("labels", "posterior", "p95_absolute_error"),
}
# Purposes of random numbers.
MIXTURE, HOLDOUT, TRAINING, MODEL, DRAWS, INTERVALS = range(6)
# The least values of numbers that must be more than 1, or may be less.
LEAST = {"classes": 2, "train_size": 10, "holdout": 1000, "smallest": 2, "draws": 2, "seed": 0}
# Bins of the truth of a simulation: 1000 rows of a hold-out of 200 000 in each. With half or twice
# as many the truth changes by less than 2 % wherever it is above 0.02.
BINS = 200
# Sizes of evaluation sets where none are given: those up to a tenth of a file's rows.
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
PART = 10
# Settings of a file, by its content.
SETTINGS_OF = {
    "probabilities": ("binary",),
    "class vectors": ("confidence", "classwise"),
    "predictions": ("confidence",),
}
# Bins of the truth of a file, with a hundred rows or more in each from 4000 rows on: in fewer, a
# gap is mostly chance.
FILE_BINS, FEW_BINS, MANY_ROWS = 100, 40, 10_000


class Population(NamedTuple):
    """The rows of a distribution of scores in one setting.

    There is a sample of one problem or of each class; `chances` (n,) are the exact probabilities
    of the event in its rows, or the outcomes themselves; `n_bins` is for the truth.
    """

    setting: str
    samples: list[Sample]
    chances: list[F64]
    n_bins: int


@dataclass(frozen=True, kw_only=True)
class StudyDesign(ABC):
    """Parameters of a study, in a frozen dataclass.

    There is `fastece.study.Design` of simulated problems, and `fastece.study.Predictions` of files.
    A distribution of scores is a named tuple, which becomes text and columns of a table, and has a
    `file_name` for its results.
    """

    draws: int = 200
    convention: Literal["corrected", "published"] = "corrected"
    estimators: tuple[str, ...] = ()
    seed: int = 0

    files = tuple[str, ...]()  # of the user, that scores come from

    def __post_init__(self: Any) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if "tuple" in str(field.type) and value is not None:  # a list, as JSON has it
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


# -- simulated models ------------------------------------------------------------------------------


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
        """Name of the file of its results."""
        return "classes{}-features{}-mixture{}-{}-training{}.parquet".format(*self)


@dataclass(frozen=True)
class Design(StudyDesign):
    """A study of estimators on synthetic problems with known calibration error.

    Every combination of classes, features, mixtures, models and trainings is a distribution of
    scores. From the hold-out of each, `draws` evaluation sets of each size are drawn with
    replacement, the same for all estimators.

    Parameters
    ----------
    classes, features : tuple of int
        Numbers of classes, from 2 on, and of features.
    mixtures : int
        Random mixtures of each kind.
    models : tuple of str
        Names in `fastece.study.distributions.MODELS`.
    trainings, train_size : int
        Training sets of each mixture, and rows in each.
    holdout : int
        Rows that evaluation sets are drawn from, and the truth is taken from.
    smallest, largest, n_sizes : int
        Sizes of the evaluation sets: `n_sizes` of them, evenly spaced on a logarithmic scale.
    draws : int
        Evaluation sets of each size, at least 2.
    settings : tuple of str
        "confidence", "classwise".
    convention : {"corrected", "published"}
        The estimators, the truth and the measure as they are defined, or as the published code has
        them (`fastece.study.candidates`).
    estimators : tuple of str
        More estimators, as "module:name".
    seed : int
        Seed of everything random.

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
    settings: tuple[str, ...] = ("confidence", "classwise")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("classes", "features"):
            for value in getattr(self, name):
                check_integer(name, value, LEAST.get(name, 1), 1000)
        for value in self.models:
            check_choice("models", value, MODELS)
        for value in self.settings:
            check_choice("settings", value, [name for name in SETTINGS if name != "binary"])
        if self.largest < self.smallest or self.holdout < self.largest:
            rule = f"must be from smallest ({self.smallest}) to holdout ({self.holdout})"
            raise InputError("largest", rule, value=self.largest)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the evaluation sets, in increasing order."""
        spaced = np.geomspace(self.smallest, self.largest, self.n_sizes)
        return tuple(int(size) for size in np.unique(np.rint(spaced)))

    @property
    def distributions(self) -> list[Distribution]:
        """All distributions of scores, ordered by mixture."""
        mixtures, trainings = range(self.mixtures), range(self.trainings)
        cells = product(self.classes, self.features, mixtures, trainings, self.models)
        return [Distribution(k, d, i, model, t) for k, d, i, t, model in cells]

    def mixture(self, n_classes: int, n_features: int, number: int) -> GaussianMixture:
        """Draw one of the mixtures.

        A subclass may draw other problems in its place.
        """
        rng = self.rng(MIXTURE, n_classes, n_features, number)
        return GaussianMixture.draw(n_classes, n_features, rng)

    def populations(self, which: Distribution, seconds: dict[str, float]) -> Iterator[Population]:
        """Yield the hold-out with the predictions of a model, setting by setting."""
        with add_time(seconds, "hold-out"):
            mixture, x, y, posterior = holdout_of(self, *which[:3])
        numbers = (*which[:3], which.training)
        train = mixture.sample(self.train_size, self.rng(TRAINING, *numbers))
        seed = int(self.rng(MODEL, *numbers).integers(2**31))
        with add_time(seconds, "fitting"):
            model = new_model(which.model, seed).fit(*train)
        with add_time(seconds, "prediction"):
            prob = predicted(model, x, which.n_classes)
        for setting in self.settings:
            samples = read_problems(y, prob, setting=setting).samples()
            chances = list(np.ascontiguousarray(posterior.T))
            if setting == "confidence":
                chances = [posterior[np.arange(y.size), prob.argmax(1)]]
            yield Population(setting, samples, chances, BINS)

    def rows(self, which: Distribution, size: int) -> I32:
        """Draw rows of the hold-out with replacement: it is so large that few come twice."""
        model = MODELS.index(which.model)
        rng = self.rng(DRAWS, *which[:3], model, which.training, size)
        return RowDraws(new_key(rng), self.holdout, size).make(0, self.draws)


# One: the distributions of a mixture follow one another. With 2 000 000 rows one has 0.4 GB.
@lru_cache(maxsize=1)
def holdout_of(
    design: Design, n_classes: int, n_features: int, number: int
) -> tuple[GaussianMixture, F64, I64, F64]:
    """Draw a mixture, and rows of it with their classes and the exact posterior."""
    kind = (n_classes, n_features, number)
    mixture = design.mixture(*kind)
    x, y = mixture.sample(design.holdout, design.rng(HOLDOUT, *kind))
    return mixture, x, y, mixture.posterior(x)


PRESETS = {
    "quick": Design(
        classes=(2, 5), features=(2, 5), mixtures=1, trainings=1, holdout=20_000, n_sizes=6,
        draws=50,
    ),
    "paper": Design(),
}  # fmt: skip


def preset(name: str, **changes: Any) -> Design:
    """Return the design "quick" or "paper", changed where values are not None."""
    design = PRESETS[check_choice("preset", name, list(PRESETS))]
    return replace(design, **{k: v for k, v in changes.items() if v is not None})


# -- a user's predictions --------------------------------------------------------------------------


class PredictionFile(NamedTuple):
    """One distribution of scores: a file of predictions and its number.

    It holds "probabilities" of the positive class, "class vectors", or "predictions" with
    confidences.
    """

    number: int
    file: str
    n_rows: int
    holds: str

    def __str__(self) -> str:
        return self.file

    @property
    def file_name(self) -> str:
        """Name of the file of its results."""
        return f"file{self.number}-{Path(self.file).stem}.parquet"


@dataclass(frozen=True)
class Predictions(StudyDesign):
    """A study of estimators on files of predictions, as `fastece report` reads them.

    Every file is a distribution of scores. Evaluation sets are drawn from its rows without
    replacement, so that each is like the data of a user with few rows. The truth is the debiased
    error on all rows, ``sum_b W_b / n (2 |D| - E|N(D, d**2)|)`` over 100 bins of equal mass, or 40
    below 10 000 rows; it has a standard error.

    Parameters
    ----------
    files : tuple of str
        With a probability for each row (setting "binary"), class vectors ("confidence" and
        "classwise"), or true and predicted labels and confidences ("confidence", scores from 0).
    sizes : tuple of int, optional
        Rows of the evaluation sets; by default 50, 100, 200, 500, 1000, 2000 and 5000, up to a
        tenth of a file's rows. Larger ones share so many rows with the truth that errors look
        smaller than they are: by ``1 - sqrt(1 - n / rows)``, 5 % at a tenth.
    draws, convention, estimators, seed
        As in `Design`.
    y_true, y_prob : str, optional
        Columns of labels and of probabilities, several separated by commas, if not named as usual.

    Raises
    ------
    ValueError, TypeError, OSError
        For a parameter outside its range, and a file that cannot be read or has too few rows.

    Warns
    -----
    UserWarning
        Where a size is more than a tenth of a file's rows.

    Examples
    --------
    >>> from importlib.resources import as_file, files
    >>> from fastece.study import Predictions
    >>> with as_file(files("fastece") / "data" / "digits_neural_network.npz") as path:
    ...     digits = Predictions((str(path),))
    >>> [(digits.settings_of(which), digits.sizes_of(which)) for which in digits.distributions]
    [(('confidence', 'classwise'), (50, 100))]
    """

    files: tuple[str, ...]
    sizes: tuple[int, ...] | None = None
    y_true: str | None = None
    y_prob: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "files", tuple(map(str, self.files)))
        if self.sizes is not None:
            ordered = sorted(check_integer("sizes", size, 2, 2**31 - 1) for size in self.sizes)
            object.__setattr__(self, "sizes", tuple(ordered))
        for which in self.distributions:
            sizes, n = self.sizes_of(which), which.n_rows
            if not sizes:
                hint = f"it takes {PART * SIZES[0]}, or sizes of your own"
                raise InputError("files", f"{which} has {n} rows, too few to draw from", hint=hint)
            if sizes[-1] > n:
                raise InputError("sizes", f"{sizes[-1]} rows, but {which} has {n}")
            large = ", ".join(str(size) for size in sizes if PART * size > n)
            if large:
                rule = f"evaluation sets of {large} rows are more than a tenth of its {n}"
                warn(str(which), f"{rule}: errors look smaller than they are")

    @cached_property
    def distributions(self) -> list[PredictionFile]:
        """All files."""
        found = []
        for number, file in enumerate(self.files):
            holds, problems = self.read(file)
            found.append(PredictionFile(number, file, problems[-1].n, holds))
        return found

    def read(self, file: str) -> tuple[str, list[Problems]]:
        """Read the content of a file and its problems by setting; errors name it."""
        found = read_predictions(file, y_true=self.y_true, y_prob=self.y_prob)
        holds = "class vectors" if np.ndim(found.y_prob) == 2 else "probabilities"
        data = found.y_true, found.y_prob
        try:
            problems = [read_problems(*data, setting=setting) for setting in SETTINGS_OF[holds]]
        except BadArgumentError as error:
            error.place = error.place or Path(file).name
            raise
        return "predictions" if found.pairs else holds, problems

    def settings_of(self, which: PredictionFile) -> tuple[str, ...]:
        """Return the settings that suit the content of a file."""
        return SETTINGS_OF[which.holds]

    def sizes_of(self, which: PredictionFile) -> tuple[int, ...]:
        """Return the sizes of the design, or default sizes that suit a file's rows."""
        if self.sizes is not None:
            return self.sizes
        return tuple(size for size in SIZES if PART * size <= which.n_rows)

    def populations(self, which: PredictionFile, seconds: dict[str, float]) -> Iterator[Population]:
        """Yield all rows of a file, with outcomes in place of probabilities."""
        with add_time(seconds, "reading"):
            _, found = self.read(which.file)
        n_bins = FILE_BINS if which.n_rows >= MANY_ROWS else FEW_BINS
        for setting, problems in zip(self.settings_of(which), found, strict=True):
            samples = problems.samples()
            outcomes = [sample.y.astype(np.float64) for sample in samples]
            yield Population(setting, samples, outcomes, n_bins)

    def rows(self, which: PredictionFile, size: int) -> I32:
        """Draw rows of a file, none of them twice in a draw."""
        rng = self.rng(DRAWS, which.number, size)
        out = np.empty((self.draws, size), np.int32)
        for row in out:
            row[:] = rng.choice(which.n_rows, size, replace=False, shuffle=False)
        return out
