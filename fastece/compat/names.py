"""Names of the arguments of other libraries, by which errors speak of them."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from fastece.data.containers import as_real, without_single_column
from fastece.data.errors import InputError, rename_arguments
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_table
from fastece.data.table import RowTable


class Names(NamedTuple):
    """A library's names of its arguments.

    Attributes
    ----------
    label, prob, first : str
        Names of the labels, of the probabilities and of the first argument.
    has_pos_label : bool
        Whether its functions take `pos_label`.
    """

    label: str
    prob: str
    first: str
    has_pos_label: bool = False

    @property
    def arguments(self) -> dict[str, str | None]:
        """Map fastece's arguments to the library's, or to None where it has none."""
        names: dict[str, str | None] = {
            "y_true": self.label,
            "y_prob": self.prob,
            "first": self.first,
            "labels": None,
            "from_logits": None,
            "percent": "divide by 100?",
            "ignore_label": None,
            "counts": None,
            "ignore_nan": None,
            "class_axis_1": None,
        }
        if not self.has_pos_label:
            names["pos_label"] = None
        return names

    def scores(self, value: Any) -> NDArray[Any]:
        """Convert probabilities to an array in the dtype that they have."""
        return as_real(self.prob, value)

    def columns(self, value: Any) -> NDArray[Any]:
        """Convert probabilities to an array as `scores`, one column (n, 1) to (n,)."""
        return without_single_column(self.scores(value))

    def vector(self, value: Any) -> NDArray[Any]:
        """Convert probabilities as `scores`, and refuse another shape than (n,)."""
        prob = self.scores(value)
        if prob.ndim != 1:
            raise InputError(self.prob, f"must have shape (n,), got {prob.shape}")
        return prob

    def read(
        self, label: Any, prob: Any, setting: Any = "auto", pos_label: Any = None,
        guess_logits: bool = False,
    ) -> RowTable:  # fmt: skip
        """Read labels and probabilities as problems; errors have the library's names."""
        options = ReadingOptions(setting=setting, pos_label=pos_label)
        with rename_arguments(self.arguments):
            return read_table(label, prob, options, prob_name=self.prob, guess_logits=guess_logits)


LIBRARIES = {
    "torchmetrics": Names("target", "preds", "preds"),
    "netcal": Names("y", "X", "X"),
    "uncertainty-calibration": Names("labels", "probs", "probs"),
    "scikit-learn": Names("y_true", "y_prob", "y_true", has_pos_label=True),
    "relplot": Names("y", "f", "f"),
    "uncertainty-metrics": Names("labels", "probs", "labels"),
    "hle": Names("correct", "confidence", "confidence"),
}
