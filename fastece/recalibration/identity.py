"""No map: predictions as they are, so that every choice of a map can leave them alone."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fastece.data.scores import two_columns
from fastece.recalibration.calibrator import Calibrator
from fastece.recalibration.code import Program
from fastece.recalibration.outputs import LabelledOutputs, ModelOutputs
from fastece.recalibration.scaling import softmax_of


@dataclass(kw_only=True, eq=False)
class Identity(Calibrator):
    """No map: probabilities stay as they are.

    Parameters
    ----------
    from_logits : bool, default False
        Whether predictions are log odds or logits, whose probabilities are given.

    Attributes
    ----------
    n_classes_ : int

    Notes
    -----
    It is what other maps are compared with. Nothing is clipped: the log loss of a label of
    probability 0 is infinite.

    Examples
    --------
    >>> from fastece.recalibration import Identity
    >>> Identity().fit([0.2, 0.9], [0, 1]).transform([0.0, 0.3])
    array([0. , 0.3])
    """

    title = "no map"
    keeps_argmax = True

    def _fit(self, rows: LabelledOutputs) -> None:
        """Fit nothing."""

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        values = outputs.values
        if not outputs.from_logits:
            return values.copy()
        return softmax_of(two_columns(values, from_logits=True) if values.ndim == 1 else values)

    def _check_increasing(self) -> None:
        """Accept the map."""

    def _write_code(self, program: Program) -> None:
        program.add_probability()
        program.value("recalibrated", "p")

    def _write_code_of_classes(self, program: Program) -> None:
        if self.from_logits:
            program.softmax("recalibrated", "z")
        else:
            program.vector("recalibrated", "p[k]")
