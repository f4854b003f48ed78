"""Maps of one score at a time: of two classes the second, of more each against the rest."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import warn
from fastece.data.sample import Sample
from fastece.recalibration.base import Calibrator, Parameter
from fastece.recalibration.rows import Predictions, Rows, Score, name_classes
from fastece.typing import F64

# What takes a sentence for the user.
Say = Callable[[str], None]


@dataclass(kw_only=True, eq=False)
class OneVsRest(Calibrator):
    """A method of binary problems: a subclass writes `_fit_one` and `_map_one`.

    Its fitted attributes are the parameters of the one problem of two classes, or a list with those
    of each class; numbers make an array. Mapped scores of more than two classes are divided by
    their sum; where all are 0 each class gets 1/K.
    """

    def _fit(self, rows: Rows) -> None:
        notes: dict[str, list[int]] = {}
        fitted = []
        for k, (score, sample) in enumerate(rows.problems()):
            fitted.append(self._fit_one(score, sample, partial(note_class, notes, k)))
        for text, found in notes.items():
            warn("X" if len(fitted) == 1 else f"X, {name_classes(found)}", text)
        for place, name in enumerate(self.PARAMETERS):
            values: Any = [parameters[place] for parameters in fitted]
            if len(values) == 1:
                (values,) = values
            elif isinstance(values[0], float):
                values = np.array(values)
            setattr(self, f"{name}_", values)

    def _map(self, predictions: Predictions) -> NDArray[Any]:
        fitted = [getattr(self, f"{name}_") for name in self.PARAMETERS]
        if predictions.n_classes == 2:
            return self._map_one(predictions.score(1), *fitted)
        p = np.empty((len(predictions.x), predictions.n_classes))
        for k, score in predictions.scores():
            p[:, k] = self._map_one(score, *(values[k] for values in fitted))
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p, 1.0) / np.where(total > 0, total, p.shape[1])

    @abstractmethod
    def _fit_one(self, score: Score, sample: Sample, say: Say) -> Sequence[float | F64]:
        """The parameters of one problem, in the order of `PARAMETERS`; `say` takes what a user has
        to be warned of."""

    @abstractmethod
    def _map_one(self, score: Score, *parameters: Any) -> F64:
        """Probabilities (n,) of a hit."""


@dataclass(kw_only=True, eq=False)
class PointsOneVsRest(OneVsRest):
    """A method whose map is linear between some points, and outside them that of the nearest."""

    PARAMETERS: ClassVar[dict[str, Parameter]] = {
        "score": Parameter("B", each=True, low=0.0, high=1.0, increasing=True),
        "value": Parameter("B", each=True, low=0.0, high=1.0),
    }

    def _map_one(self, score: Score, points: F64, value: F64) -> F64:
        return np.interp(score.s, points, value)


def note_class(notes: dict[str, list[int]], k: int, text: str) -> None:
    """Note that a sentence is about a class, too."""
    notes.setdefault(text, []).append(k)
