"""Arguments as a library calls them: read, checked and measured as everywhere else."""

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.calls.scores import common_value
from fastece.checks.arrays import EntryError, as_real
from fastece.data.problems import Problems
from fastece.data.reading import read_problems
from fastece.data.sample import Sample
from fastece.estimators.binned import Binned

# What fastece says of arguments that these functions do not have.
OTHER_ARGUMENTS = {
    re.compile(r" \(logits: from_logits=True\)"): "",
    re.compile(r" \(labels= (names other classes|takes any labels)\)"): "",
    re.compile(r", or labels=\[negative, positive\]"): "",
    re.compile(r": pass labels=, in the order of .*"): ": pass class indices from 0",
    re.compile(r": pass pos_label="): ": pass 0 and 1",
}


class Names(NamedTuple):
    """What a library calls the labels and the probabilities, which of them comes first, and whether
    its function takes `pos_label`."""

    label: str
    prob: str
    first: str
    has_pos_label: bool = False

    def translate(self, error: Exception) -> Exception:
        """An error of fastece in the words of the library."""
        text = str(error)
        for hint, other in OTHER_ARGUMENTS.items():
            if not (self.has_pos_label and "pos_label" in hint.pattern):
                text = hint.sub(other, text)
        text = text.replace("y_true comes first", f"{self.first} comes first")
        error.args = (re.sub(r"\by_true\b", self.label, text).replace("y_prob", self.prob),)
        if isinstance(error, EntryError):
            error.name = {"y_true": self.label, "y_prob": self.prob}.get(error.name, error.name)
        return error

    def scores(self, value: Any) -> NDArray[Any]:
        """Probabilities as an array, in the dtype that they have."""
        return as_real(self.prob, value)

    def read(self, label: Any, prob: Any, setting: Any = "auto", **options: Any) -> Problems:
        """Weighted binary problems of these labels and probabilities."""
        try:
            return read_problems(label, prob, setting=setting, prob_name=self.prob, **options)
        except (ValueError, TypeError) as error:
            raise self.translate(error) from None

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
