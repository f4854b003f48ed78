"""The design of a study on simulated models: distributions, sizes, settings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from fastece.checks.errors import InputError
from fastece.checks.parameters import check_choice, check_integer
from fastece.data.reading import read_problems
from fastece.data.sample import Sample
from fastece.data.source import SETTINGS
from fastece.resampling.draws import RowDraws, new_key
from fastece.study.base import (
    DRAWS,
    HOLDOUT,
    LEAST,
    MIXTURE,
    MODEL,
    TRAINING,
    Population,
    StudyDesign,
    add_time,
)
from fastece.study.distributions import MODELS, GaussianMixture, new_model, predicted
from fastece.typing import F64, I32, I64

# Bins of the truth: 1000 rows of a hold-out of 200 000 in each. With half or twice as many the
# truth changes by less than 2 % wherever it is above 0.02.
BINS = 200


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


class Holdout(NamedTuple):
    """Rows of a mixture that evaluation sets are drawn from, with the exact posterior."""

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
    draws: int = 200
    settings: tuple[str, ...] = ("confidence", "classwise")
    convention: Literal["corrected", "published"] = "corrected"
    estimators: tuple[str, ...] = ()
    seed: int = 0

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
            holdout = holdout_of(self, *which[:3])
        prob = scores_of(self, which, holdout, seconds)
        for setting in self.settings:
            yield Population(setting, *problems_of(holdout, prob, setting), BINS)

    def rows(self, which: Distribution, size: int) -> I32:
        """Draw rows of the hold-out with replacement: it is so large that few come twice."""
        model = MODELS.index(which.model)
        rng = self.rng(DRAWS, *which[:3], model, which.training, size)
        return RowDraws(new_key(rng), self.holdout, size).rows(0, self.draws)


# One: the distributions of a mixture follow one another. With 2 000 000 rows one has 0.4 GB.
@lru_cache(maxsize=1)
def holdout_of(design: Design, n_classes: int, n_features: int, number: int) -> Holdout:
    """Draw the hold-out of a mixture."""
    kind = (n_classes, n_features, number)
    mixture = design.mixture(*kind)
    x, y = mixture.sample(design.holdout, design.rng(HOLDOUT, *kind))
    return Holdout(mixture, x, y, mixture.posterior(x))


def scores_of(
    design: Design, which: Distribution, holdout: Holdout, seconds: dict[str, float]
) -> F64:
    """Fit the model, and predict probabilities (n, K) of the hold-out."""
    numbers = (*which[:3], which.training)
    x, y = holdout.mixture.sample(design.train_size, design.rng(TRAINING, *numbers))
    seed = int(design.rng(MODEL, *numbers).integers(2**31))
    with add_time(seconds, "fitting"):
        model = new_model(which.model, seed).fit(x, y)
    with add_time(seconds, "prediction"):
        return predicted(model, holdout.x, which.n_classes)


def problems_of(holdout: Holdout, prob: F64, setting: str) -> tuple[list[Sample], list[F64]]:
    """Return the problems of a setting, and the exact probability of each event."""
    problems = read_problems(holdout.y, prob, setting=setting)
    samples = problems.samples()
    if setting == "confidence":
        top = prob.argmax(1)
        return samples, [holdout.posterior[np.arange(top.size), top]]
    return samples, list(np.ascontiguousarray(holdout.posterior.T))


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
