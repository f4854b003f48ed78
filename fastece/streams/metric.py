"""A calibration error during training, shaped like torchmetrics' metrics.

>>> from fastece.streams import CalibrationMetric
>>> metric = CalibrationMetric(n_bins=10)
>>> for preds, target in [([0.2, 0.6], [0, 1]), ([0.9, 0.4], [1, 0])]:
...     metric.update(preds, target)
>>> round(metric.compute(), 3)
0.275
"""

import copy
import sys
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastece.data.errors import InputTypeError
from fastece.display.axes import open_figure
from fastece.metrics import ece
from fastece.streams.accumulator import Accumulator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Width and height in inches of a picture of errors.
PLOT_SIZE = (4.0, 3.0)


class LoopMetric:
    """Base class of metrics of training loops, with the methods that such loops call.

    A subclass has `compute`.
    """

    def to(self, *args: Any, **options: Any) -> Self:  # noqa: ARG002
        """Return the metric as it is, since its sums stay on the host."""
        return self

    def clone(self) -> Self:
        """Return a copy with the same rows, which go their own ways from then on."""
        return copy.deepcopy(self)

    def plot(self, val: Any = None, ax: "Axes | None" = None) -> tuple[Any, "Axes"]:
        """Draw the error, or the errors of several epochs; needs matplotlib.

        Parameters
        ----------
        val : float or sequence of float, optional
            Results of `compute` or of batches; by default the error of all rows so far.
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.

        Returns
        -------
        matplotlib Figure and Axes
        """
        computed: Any = self.compute() if val is None else val  # type: ignore[attr-defined]
        errors = np.atleast_1d(np.asarray(computed, np.float64))
        if ax is None:
            ax = open_figure(PLOT_SIZE).subplots()
        ax.plot(np.arange(1, errors.size + 1), errors, marker="o")
        ax.set(xlabel="step", ylabel="calibration error", ylim=(0, None))
        ax.locator_params(axis="x", integer=True)
        ax.set_title(type(self).__name__)
        return ax.figure, ax


class CalibrationMetric(LoopMetric):
    """The calibration error of all rows since the last `reset`, in constant memory.

    Parameters
    ----------
    n_classes : int, optional
        K for class vectors of shape (n, K); without it, a row is the probability of class 1.
    estimator : str or object, default "ece"
        The error to compute: a name of `fastece.ESTIMATORS`, or an estimator of your own.
    setting : str or int, default "auto"
        As in `fastece.ece`: "binary", "confidence", "classwise" or a class.
    from_logits : bool, default False
        Whether `preds` are logits rather than probabilities.
    labels, pos_label, ignore_label : optional
        As in `Accumulator.update`: the classes in order, the positive one of two, and a label whose
        rows are left out, such as 255 of pixels.
    class_axis : int, optional
        The axis of `preds` that holds the classes, 1 for pixels (N, C, H, W); `target` has the
        shape without it, or for one class, as in masks (N, 1, H, W), the same shape.
    n_cells : int, default 64800
        Cells of the state, see `Accumulator`.
    n_replicates, seed : int, optional
        Bootstrap replicates that are counted along, for `bootstrap(metric.accumulator)`. Processes
        that are added up later have to give `update` their own `row_offset`.
    **fields
        Parameters of the estimator, such as `n_bins=15` or `norm=2`.

    Attributes
    ----------
    accumulator : Accumulator
        The sums, for other results too: `reliability_diagram(metric.accumulator)`.

    Notes
    -----
    Arguments come as in torchmetrics, predictions first: the rest of fastece takes labels first.
    They may be torch tensors on any device, of any float type, bfloat16 too, with or without a
    gradient, or numpy arrays. Nothing of torch is needed unless `sync` is called.

    A batch is counted in whole or not at all, also when an interrupt such as Ctrl-C ends `update`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.streams import CalibrationMetric
    >>> metric = CalibrationMetric(n_classes=3, n_bins=10)
    >>> preds = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4], [0.1, 0.3, 0.6]])
    >>> round(metric(preds[:2], [0, 1]), 3), round(metric(preds[2:], [0, 2]), 3)  # each batch
    (0.25, 0.4)
    >>> round(metric.compute(), 3)  # all batches
    0.325
    """

    def __init__(
        self, n_classes: int | None = None, *, estimator: Any = "ece", setting: str | int = "auto",
        from_logits: bool = False, labels: Any = None, pos_label: Any = None,
        ignore_label: Any = None, class_axis: int | None = None, n_cells: int = 64800,
        n_replicates: int = 0, seed: int | None = None, **fields: Any,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.fields = fields
        self.row_options = {
            "labels": labels,
            "pos_label": pos_label,
            "ignore_label": ignore_label,
            "class_axis": class_axis,
        }
        self.source_options = {"setting": setting, "from_logits": from_logits}
        self.accumulator = Accumulator(
            n_classes, setting=setting, from_logits=from_logits, n_cells=n_cells,
            n_replicates=n_replicates, seed=seed,
        )  # fmt: skip

    def __repr__(self) -> str:
        fields = "".join(f", {name}={x!r}" for name, x in self.fields.items())
        return f"<CalibrationMetric({self.estimator!r}{fields}) of {self.accumulator!r}>"

    def update(
        self, preds: Any, target: Any, sample_weight: Any = None, row_offset: int | None = None,
        groups: Any = None, counts: Any = None,
    ) -> None:  # fmt: skip
        """Count the rows of a batch.

        Parameters
        ----------
        preds : array or tensor, shape (n,) or (n, K)
            Probabilities, or logits with `from_logits=True`. With `class_axis` of any shape.
        target : array or tensor, shape (n,)
            Labels 0..K-1. Beside `preds` of shape (n, 1) also (n, 1).
        sample_weight, row_offset, groups, counts : optional
            As in `Accumulator.update`.

        Raises
        ------
        ValueError, TypeError
            A row breaks a rule: nothing of the batch is counted.
        RuntimeError
            The metric holds the sum of several processes, see `sync`.
        """
        self.accumulator.update(
            target, preds, sample_weight, row_offset, groups, counts=counts, **self.row_options
        )

    def compute(self) -> float:
        """Return the error of all rows so far; nan with a warning if there are none.

        As in torchmetrics, so that a progress line may show it at any time.
        """
        if self.accumulator.n == 0:
            return warn_of_no_rows()
        return float(ece(self.accumulator, estimator=self.estimator, **self.fields))

    def __call__(self, preds: Any, target: Any, sample_weight: Any = None) -> float:
        """Count a batch and return its own error, as `forward` of torchmetrics."""
        before = self.accumulator.n
        self.update(preds, target, sample_weight)
        if self.accumulator.n == before:
            return warn_of_no_rows()
        options = {
            **self.source_options,
            **self.row_options,
            "sample_weight": sample_weight,
            "estimator": self.estimator,
        }
        return float(ece(target, preds, **options, **self.fields))

    def reset(self) -> None:
        """Forget all rows, as at the start of an epoch."""
        self.accumulator.reset()

    def merge(self, other: "CalibrationMetric") -> "CalibrationMetric":
        """Add the rows of another metric with the same options; return this metric.

        Sums do not know their rows: what is merged twice counts twice. A ValueError refuses the
        metric itself, a RuntimeError the sum of several processes, see `sync`.
        """
        if not isinstance(other, CalibrationMetric):
            kind = type(other).__name__
            raise InputTypeError("other", f"must be a CalibrationMetric, got {kind}")
        self.accumulator.merge(other.accumulator)
        return self

    def state_dict(self) -> dict[str, Any]:
        """Return the sums by name, to save or to add to other processes' sums.

        They are int64 tensors where torch has been imported, which ``torch.load`` reads with
        ``weights_only=True``, and arrays where it has not. After `sync` there is one more,
        "is_sum", and a metric that loads it takes no more rows.
        """
        state = self.accumulator.state_dict()
        torch = sys.modules.get("torch")
        return state if torch is None else {name: torch.from_numpy(state[name]) for name in state}

    def load_state_dict(self, state: dict[str, Any]) -> "CalibrationMetric":
        """Restore a saved state of a metric with the same options."""
        self.accumulator.load_state_dict(state)
        return self

    def sync(self, group: Any = None) -> "CalibrationMetric":
        """Replace the counts by their sum over all processes of `torch.distributed`.

        Every process has to call it, and then all of them `compute` the same bits. The sum, and
        what loads its state, takes no further rows, for the next sum would count the old ones once
        per process: `reset` first, or sum up a copy, `copy.deepcopy(metric).sync().compute()`, and
        go on with the metric.

        Parameters
        ----------
        group : torch.distributed.ProcessGroup, optional
            The processes; all by default. On a GPU for "nccl", on the host otherwise.

        Returns
        -------
        CalibrationMetric
            This metric.

        Raises
        ------
        RuntimeError
            The metric is such a sum already, or there are no processes: see
            `torch.distributed.init_process_group`.
        """
        import torch
        from torch import distributed

        state: dict[str, Any] = self.accumulator.state_dict()
        if "is_sum" in state:
            raise RuntimeError("sync: these are the rows of all processes; reset() first")
        if not distributed.is_initialized():
            raise RuntimeError("sync: call torch.distributed.init_process_group first")
        device = "cuda" if distributed.get_backend(group) == "nccl" else "cpu"
        for name, sums in state.items():
            tensor = torch.tensor(sums, device=device)  # a copy: a sum that fails changes nothing
            distributed.all_reduce(tensor, group=group)
            state[name] = tensor.cpu().numpy()
        return self.load_state_dict({**state, "is_sum": np.ones(1, np.int64)})


def warn_of_no_rows() -> float:
    """Return nan, as there is nothing to compute."""
    warnings.warn("CalibrationMetric: compute before any update is nan", stacklevel=3)
    return float("nan")
