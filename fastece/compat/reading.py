"""Arguments as a library calls them: read, checked and measured as everywhere else."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.calls.common import common_value
from fastece.checks.arrays import as_real
from fastece.checks.errors import rename_arguments
from fastece.data.problems import Problems
from fastece.data.reading import read_problems
from fastece.data.sample import Sample
from fastece.estimators.binned import Binned


class Names(NamedTuple):
    """What a library calls the labels and the probabilities, which of them comes first, and whether
    its function takes `pos_label`."""

    label: str
    prob: str
    first: str
    has_pos_label: bool = False

    @property
    def arguments(self) -> dict[str, str | None]:
        """The library's names of fastece's arguments, None of those that it does not have."""
        names = {"y_true": self.label, "y_prob": self.prob, "first": self.first}
        absent = ("labels", "from_logits") + (() if self.has_pos_label else ("pos_label",))
        return {**names, **dict.fromkeys(absent)}

    def scores(self, value: Any) -> NDArray[Any]:
        """Probabilities as an array, in the dtype that they have."""
        return as_real(self.prob, value)

    def read(self, label: Any, prob: Any, setting: Any = "auto", **options: Any) -> Problems:
        """Weighted binary problems of these labels and probabilities."""
        with rename_arguments(self.arguments):
            return read_problems(label, prob, setting=setting, prob_name=self.prob, **options)

    def error(
        self, label: Any, prob: Any, binned: Binned, setting: Any = "auto", **options: Any
    ) -> np.float64:
        """The error of a single problem."""
        value = common_value(binned, label, prob, setting)
        if value != value:
            (value,) = binned.direct(self.read(label, prob, setting, **options))
        return np.float64(value)


def without_column(prob: NDArray[Any]) -> NDArray[Any]:
    """Probabilities of shape (n, 1) as (n,), those of class 1; others as they are."""
    return prob[:, 0] if prob.ndim == 2 and prob.shape[1] == 1 else prob


def scores_of(sample: Sample, prob: NDArray[Any]) -> NDArray[Any]:
    """Scores in the dtype of the probabilities that they are of."""
    return sample.s.astype(np.float32) if prob.dtype == np.float32 else sample.s
