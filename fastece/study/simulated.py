"""Studies of models that are trained and tested on simulated problems."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.options import ReadingOptions
from fastece.data.parameters import check_choice, check_integer
from fastece.data.reading import read_problems
from fastece.data.table import SETTINGS
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.draws import RowLists, new_key
from fastece.study.design import Population, Purpose, StudyDesign
from fastece.study.distributions import MODELS, GaussianMixture, new_model, predicted

MIN_CLASSES = 2
MIN_FEATURES = 1
# The largest number of classes, and of features.
MAX_DIMENSION = 1000
# Bins of the truth: 1000 rows of a hold-out of 200 000 in each. With half or twice as many the
# truth changes by less than 2 % wherever it is above 0.02.
TRUTH_BINS = 200


class Distribution(NamedTuple):
    """One distribution of scores: a model, trained on one sample from one mixture.

    Parameters
    ----------
    n_classes, n_features : int
    mixture : int
        Number of the random mixture among those with these classes and features.
    model : str
        A name in `fastece.study.distributions.MODELS`.
    training : int
        Number of the training set.
    """

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

    @property
    def mixture_key(self) -> tuple[int, int, int]:
        """Numbers of classes and of features, and the number of the mixture among these."""
        return self.n_classes, self.n_features, self.mixture


class HoldOut(NamedTuple):
    """A mixture and rows drawn from it, which a model is tested on.

    Parameters
    ----------
    mixture : GaussianMixture
    x : (n, d) float64 array
    y : (n,) int64 array
        Classes.
    posterior : (n, K) float64 array
        Exact probability of each class.
    """

    mixture: GaussianMixture
    x: F64
    y: I64
    posterior: F64


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
        them (`fastece.study.published`).
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

    LISTS: ClassVar[tuple[str, ...]] = ("classes", "features", "models", "settings", "estimators")
    MIN_VALUES: ClassVar[dict[str, int]] = {
        "mixtures": 1,
        "trainings": 1,
        "train_size": 10,
        "holdout": 1000,
        "smallest": 2,
        "largest": 1,
        "n_sizes": 1,
        "draws": 2,
        "seed": 0,
    }

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
        for n_classes in self.classes:
            check_integer("classes", n_classes, MIN_CLASSES, MAX_DIMENSION)
        for n_features in self.features:
            check_integer("features", n_features, MIN_FEATURES, MAX_DIMENSION)
        for model in self.models:
            check_choice("models", model, MODELS)
        for setting in self.settings:
            check_choice("settings", setting, [name for name in SETTINGS if name != "binary"])
        if not self.smallest <= self.largest <= self.holdout:
            rule = f"must be from smallest ({self.smallest}) to holdout ({self.holdout})"
            raise InputError("largest", rule, value=self.largest)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the evaluation sets, in increasing order."""
        spaced = np.geomspace(self.smallest, self.largest, self.n_sizes)
        return tuple(int(size) for size in np.unique(np.rint(spaced)))

    def sizes_of(self, distribution: Distribution) -> tuple[int, ...]:  # noqa: ARG002
        """Return the sizes of the design, which all distributions have."""
        return self.sizes

    def settings_of(self, distribution: Distribution) -> tuple[str, ...]:  # noqa: ARG002
        """Return the settings of the design, in which all distributions are measured."""
        return tuple(self.settings)

    @property
    def distributions(self) -> list[Distribution]:
        """All distributions of scores, ordered by mixture."""
        combinations = product(
            self.classes, self.features, range(self.mixtures), range(self.trainings), self.models
        )
        return [
            Distribution(n_classes, n_features, mixture, model, training)
            for n_classes, n_features, mixture, training, model in combinations
        ]

    def mixture(self, n_classes: int, n_features: int, number: int) -> GaussianMixture:
        """Draw one of the mixtures.

        A subclass may draw other problems in its place.
        """
        rng = self.rng(Purpose.MIXTURE, n_classes, n_features, number)
        return GaussianMixture.draw(n_classes, n_features, rng)

    def populations(self, distribution: Distribution) -> Iterator[Population]:
        """Yield the hold-out with the predictions of a model, setting by setting."""
        holdout = draw_holdout(self, *distribution.mixture_key)
        numbers = (*distribution.mixture_key, distribution.training)
        x, y = holdout.mixture.sample(self.train_size, self.rng(Purpose.TRAINING, *numbers))
        model_seed = int(self.rng(Purpose.MODEL, *numbers).integers(2**31))
        model = new_model(distribution.model, model_seed).fit(x, y)
        prob = predicted(model, holdout.x, distribution.n_classes)
        for setting in self.settings:
            samples = read_problems(holdout.y, prob, ReadingOptions(setting=setting)).samples()
            chances = chances_of(setting, holdout.posterior, prob)
            yield Population(setting, samples, chances, TRUTH_BINS)

    def rows(self, distribution: Distribution, size: int) -> I32:
        """Draw rows of the hold-out with replacement: it is so large that few come twice."""
        model = MODELS.index(distribution.model)
        numbers = (*distribution.mixture_key, model, distribution.training, size)
        key = new_key(self.rng(Purpose.DRAWS, *numbers))
        return RowLists(key, self.holdout, size).make(0, self.draws)


def chances_of(setting: str, posterior: F64, prob: F64) -> list[F64]:
    """Return the exact probability (n,) of the event, for each problem of a setting."""
    if setting == "confidence":
        predicted_class = prob.argmax(1)
        return [posterior[np.arange(predicted_class.size), predicted_class]]
    return list(np.ascontiguousarray(posterior.T))


# One hold-out is kept, as the distributions of a mixture follow one another: with 2 000 000 rows it
# takes 0.4 GB.
@lru_cache(maxsize=1)
def draw_holdout(design: Design, n_classes: int, n_features: int, number: int) -> HoldOut:
    """Draw a mixture, and rows of it with their classes and the exact posterior."""
    mixture = design.mixture(n_classes, n_features, number)
    rng = design.rng(Purpose.HOLDOUT, n_classes, n_features, number)
    x, y = mixture.sample(design.holdout, rng)
    return HoldOut(mixture, x, y, mixture.posterior(x))


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
