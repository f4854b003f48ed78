"""Distributions of scores whose truth is known: a model's predictions on rows of a mixture."""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastece.data.reading import read_problems
from fastece.data.sample import Sample
from fastece.study.arena import HOLDOUT, MODEL, TRAINING, add_time
from fastece.study.distributions import GaussianMixture
from fastece.study.models import new_model, predicted
from fastece.typing import F64, I64

if TYPE_CHECKING:
    from fastece.study.design import Design, Distribution


class Holdout(NamedTuple):
    """Rows of a mixture that evaluation sets are drawn from, with the exact posterior."""

    mixture: GaussianMixture
    x: F64
    y: I64
    posterior: F64


# One: the distributions of a mixture follow one another. With 2 000 000 rows one has 0.4 GB.
@lru_cache(maxsize=1)
def holdout_of(design: "Design", n_classes: int, n_features: int, number: int) -> Holdout:
    """The hold-out of a mixture."""
    kind = (n_classes, n_features, number)
    mixture = design.mixture(*kind)
    x, y = mixture.sample(design.holdout, design.rng(HOLDOUT, *kind))
    return Holdout(mixture, x, y, mixture.posterior(x))


def scores_of(
    design: "Design", which: "Distribution", holdout: Holdout, seconds: dict[str, float]
) -> F64:
    """Probabilities (n, K) that the model gives to the hold-out."""
    numbers = (*which[:3], which.training)
    x, y = holdout.mixture.sample(design.train_size, design.rng(TRAINING, *numbers))
    seed = int(design.rng(MODEL, *numbers).integers(2**31))
    with add_time(seconds, "fitting"):
        model = new_model(which.model, seed).fit(x, y)
    with add_time(seconds, "prediction"):
        return predicted(model, holdout.x, which.n_classes)


def problems_of(holdout: Holdout, prob: F64, setting: str) -> tuple[list[Sample], list[F64]]:
    """The problems of a setting, and the exact probability of a hit of each of their rows."""
    problems = read_problems(holdout.y, prob, setting=setting)
    samples = [problems.sample(k) for k in range(problems.n_problems)]
    if setting == "confidence":
        top = prob.argmax(1)
        return samples, [holdout.posterior[np.arange(top.size), top]]
    return samples, list(np.ascontiguousarray(holdout.posterior.T))
