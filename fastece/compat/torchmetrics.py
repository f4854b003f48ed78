"""Calibration errors with the names, arguments and numbers of torchmetrics.

The functions have the names of ``torchmetrics.functional.classification``, classes the names of
``torchmetrics.classification``. Tensors are taken, and numpy arrays and lists as well. Functions
need neither torch nor torchmetrics, and their values are `numpy.float64`, so ``.item()`` works.

The classes are metrics of torchmetrics where it is installed: they have its states, which are added
up over processes, and its collections, checkpoints and Lightning take them. Without torchmetrics
they count batches in the same way, in one process.

Notes
-----
- Bins are closed at the left, and a sure model (score 1) has a bin of its own, so a score on an
  edge, such as 0.5, counts in another bin.
- A single value outside [0, 1], such as the 1.0000001 of a float32 softmax, makes the whole batch
  logits, without a word there and with a warning here.
- Sums are float32 there, added one by one, so that from some ten thousand rows on the sixth digit
  is off; here they are float64. Scores of two classes in float16 or bfloat16 are binned and added
  up in that precision there, which may move the second digit; here they are float32.
- What torchmetrics counts silently is refused here: nan, labels that are no class, no rows at all.
"""

import inspect
import math
import sys
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece.compat.conventions import CONVENTIONS, Convention, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.containers import as_array, as_real
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_integer
from fastece.estimators.binned import Bins, formula_of
from fastece.kernels import GAP, WEIGHT
from fastece.kernels.types import F64
from fastece.streams.metric import LoopMetric

Norm = Literal["l1", "l2", "max"]
Task = Literal["binary", "multiclass"]
TASKS = ("binary", "multiclass")
NORMS = {"l1": 1.0, "l2": 2.0, "max": math.inf}
NAMES = LIBRARIES["torchmetrics"]
MAX_CLASSES = 2**31 - 1
# The largest size of an ignored index.
MAX_INDEX = 2**63


def binary_calibration_error(
    preds: Any, target: Any, n_bins: int = 15, norm: Norm = "l1", ignore_index: int | None = None,
    validate_args: bool = True,  # noqa: ARG001
) -> np.float64:  # fmt: skip
    """Compute the calibration error of P(positive), as torchmetrics does.

    Parameters
    ----------
    preds : (N, ...) array_like of float
        Probabilities of class 1, or logits, if one of them is outside [0, 1].
    target : (N, ...) array_like of int
        0 or 1.
    n_bins : int, default 15
        Bins of equal width; scores of 1 have one more.
    norm : {"l1", "l2", "max"}
        Mean, root mean square or maximum of the gaps.
    ignore_index : int, optional
        Rows with this target are left out.
    validate_args : bool
        Kept for the sake of callers: arguments are always checked, which costs little.

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`, for nan, unknown labels, lengths that differ and no rows.

    Notes
    -----
    Unlike `fastece.ece`, a score on the edge of two bins, such as 0.5, counts in the upper one, and
    a score of 1 in a bin of its own: with scores that are rounded or voted, the second digit may
    differ. One score outside [0, 1] makes all of them logits.

    Examples
    --------
    >>> binary_calibration_error([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1], n_bins=2)
    np.float64(0.29)
    """
    return Batches(None, n_bins, norm, ignore_index).error(preds, target)


def multiclass_calibration_error(
    preds: Any, target: Any, num_classes: int, n_bins: int = 15, norm: Norm = "l1",
    ignore_index: int | None = None, validate_args: bool = True,  # noqa: ARG001
) -> np.float64:  # fmt: skip
    """Compute the calibration error of the top label, as torchmetrics does.

    Parameters
    ----------
    preds : (N, C, ...) array_like of float
        Probabilities of the classes, or logits, if one of them is outside [0, 1].
    target : (N, ...) array_like of int
        Classes from 0 to C - 1.
    num_classes : int
        C.
    n_bins, norm, ignore_index, validate_args
        As in `binary_calibration_error`, which has the errors and the bins too.

    Notes
    -----
    One number outside [0, 1], such as the 1.0000001 of a float32 softmax, makes all of them logits,
    which changes every score; here there is a warning then.

    Examples
    --------
    >>> preds = [[0.25, 0.20, 0.55], [0.55, 0.05, 0.40], [0.10, 0.30, 0.60], [0.90, 0.05, 0.05]]
    >>> multiclass_calibration_error(preds, [0, 1, 2, 0], 3, n_bins=3, norm="max").round(4)
    np.float64(0.2333)
    """
    return Batches(num_classes, n_bins, norm, ignore_index).error(preds, target)


def calibration_error(
    preds: Any, target: Any, task: Task, n_bins: int = 15,
    norm: Norm = "l1", num_classes: int | None = None, ignore_index: int | None = None,
    validate_args: bool = True,
) -> np.float64:  # fmt: skip
    """Compute the calibration error of a task, as torchmetrics does.

    Parameters
    ----------
    preds, target, n_bins, norm, num_classes, ignore_index, validate_args
        As in the function of the task, which has the errors too; "multiclass" needs `num_classes`.
    task : {"binary", "multiclass"}
        `binary_calibration_error` or `multiclass_calibration_error`.

    Examples
    --------
    >>> calibration_error([0.25, 0.25, 0.55, 0.75], [0, 0, 1, 1], task="binary", n_bins=2).round(4)
    np.float64(0.3)
    """
    if check_choice("task", task, TASKS) == "binary":
        return binary_calibration_error(preds, target, n_bins, norm, ignore_index, validate_args)
    return multiclass_calibration_error(
        preds, target, check_task_classes(num_classes), n_bins, norm, ignore_index, validate_args
    )


def check_task_classes(num_classes: int | None) -> int:
    """Return the number of classes of the task "multiclass", which must be there."""
    if num_classes is None:
        raise InputError("num_classes", "is needed for task='multiclass'")
    return num_classes


# --- batches --------------------------------------------------------------------------------


class Sums(NamedTuple):
    """Sums over the rows of batches, which add up over batches and processes.

    Attributes
    ----------
    gap, weight : (B,) float64 arrays
        Sums of ``y - s``, and of rows, in each bin.
    rows : (2,) float64 array
        Number of rows in bins with edges of float32, and of float64.
    """

    gap: F64
    weight: F64
    rows: F64


class Batches:
    """The way in which batches are read, added up in bins, and become an error.

    Attributes
    ----------
    num_classes : int or None
        None for a binary model.
    n_bins, ignore_index : int, int or None
        As in the functions.
    norm : float
        As `Binned` has it.
    """

    def __init__(
        self, num_classes: int | None, n_bins: int, norm: str, ignore_index: int | None
    ) -> None:
        self.norm = NORMS[check_choice("norm", norm, tuple(NORMS))]
        self.n_bins = check_bins("n_bins", n_bins)
        if ignore_index is not None:
            ignore_index = check_integer("ignore_index", ignore_index, -MAX_INDEX, MAX_INDEX)
        if num_classes is not None:
            num_classes = check_integer("num_classes", num_classes, 2, MAX_CLASSES)
        self.ignore_index = ignore_index
        self.num_classes = num_classes

    @property
    def convention(self) -> Convention:
        """The row of the table of conventions."""
        return CONVENTIONS["torchmetrics_binary" if self.num_classes is None else "torchmetrics"]

    def read(self, preds: Any, target: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read targets (n,) and probabilities (n,) or (n, C) of a batch of any shape."""
        prob = as_real(NAMES.prob, preds)
        label = as_array(NAMES.label, target)
        if prob.dtype.kind != "f":
            raise InputError("preds", "must be floats", value=prob.dtype)
        classes = () if self.num_classes is None else (self.num_classes,)
        shape = (*label.shape[:1], *classes, *label.shape[1:])
        if prob.shape != shape:
            rule = f"must have shape {shape} for target {label.shape}"
            raise InputError("preds", rule, value=prob.shape)
        if label.ndim != 1:
            if classes and len(shape) > 2:
                prob = np.moveaxis(prob, 1, -1)
            prob = prob.reshape(-1, *classes)
            label = label.reshape(-1)
        if self.ignore_index is None:
            return label, prob
        is_counted = label != self.ignore_index
        return label[is_counted], prob[is_counted]

    def error(self, preds: Any, target: Any) -> np.float64:
        """Compute the error of a batch."""
        label, prob = self.read(preds, target)
        errors = self.convention.errors(label, prob, self.n_bins, guess_logits=True, norm=self.norm)
        return np.float64(errors[0])

    def sums(self, preds: Any, target: Any) -> Sums:
        """Add up a batch, which may have no rows."""
        label, prob = self.read(preds, target)
        if not label.size:
            return self.no_sums()
        table = NAMES.read(label, prob, guess_logits=True)
        (bins,) = self.convention.bins(table, self.n_bins, prob.dtype, kinds=(GAP, WEIGHT))
        rows = np.zeros(2)
        # Edges for top labels are float32 whatever the scores are.
        has_double_edges = self.num_classes is None and prob.dtype == np.float64
        rows[1 if has_double_edges else 0] = label.size
        return Sums(bins.gap[0], bins.weight[0], rows)

    def no_sums(self) -> Sums:
        """Return the sums of no rows; scores of 1 have a bin more."""
        n_bins = self.n_bins + 1
        return Sums(np.zeros(n_bins), np.zeros(n_bins), np.zeros(2))

    def add(self, sums: Sums, batch: Sums) -> Sums:
        """Add the sums of a batch to others, whose bins must have the same edges."""
        added = Sums(*(x + y for x, y in zip(sums, batch, strict=True)))
        self.check_precision(added)
        return added

    def check_precision(self, sums: Sums) -> None:
        """Refuse the sums of batches of both precisions."""
        if sums.rows.all():
            rule = "must be of the precision of batches before, which the edges of bins have too"
            raise InputError("preds", rule, hint="convert all to float32, or all to float64")

    def error_of(self, sums: Sums) -> np.float64:
        """Compute the error of some sums; nan without rows."""
        if not sums.rows.any():
            return np.float64(np.nan)
        bins = Bins([], 1.0, sums.rows.sum(keepdims=True), sums.gap[None], sums.weight[None])
        return np.float64(formula_of(norm=self.norm).errors(bins)[0])


# --- metrics --------------------------------------------------------------------------------


class BinaryCalibrationError(LoopMetric):
    """Calibration error of a binary model, batch by batch, as torchmetrics has it.

    It keeps sums over the bins and not the rows, so that memory does not grow. Each batch by itself
    is taken for probabilities or for logits.

    Parameters
    ----------
    n_bins, norm, ignore_index, validate_args
        As in `binary_calibration_error`, which has the errors too.

    Raises
    ------
    RuntimeError
        By `update`, `forward` and `compute` without torchmetrics, where `torch.distributed` has
        several processes: each would count its own part.

    Notes
    -----
    Where torchmetrics is installed, the object is a ``torchmetrics.Metric``, whose value is a
    tensor of float64. Its states are sums of float64, so the value is the same for any number of
    processes, and it may be wrapped, collected, merged, saved and logged as any other. A batch is
    counted in whole or not at all. It also takes the options of ``torchmetrics.Metric``.

    Examples
    --------
    >>> metric = BinaryCalibrationError(n_bins=2)
    >>> metric.update([0.25, 0.25, 0.55], [0, 0, 1])
    >>> metric.update([0.75, 0.75], [1, 1])
    >>> round(metric.compute().item(), 4)
    0.29
    """

    num_classes: int | None = None
    is_differentiable = False
    higher_is_better = False
    gap: Any
    weight: Any
    rows: Any

    def __new__(
        cls, n_bins: int = 15, norm: Norm = "l1", ignore_index: int | None = None,  # noqa: ARG004
        validate_args: bool = True, **kwargs: Any,  # noqa: ARG004
    ) -> Self:  # fmt: skip
        """Make a metric of torchmetrics, if it is installed."""
        metric: Self = new_metric(cls)
        return metric

    def __init__(
        self, n_bins: int = 15, norm: Norm = "l1", ignore_index: int | None = None,
        validate_args: bool = True,
    ) -> None:  # fmt: skip
        self.n_bins = n_bins
        self.norm = norm
        self.ignore_index = ignore_index
        self.validate_args = validate_args
        self.batches = Batches(self.num_classes, n_bins, norm, ignore_index)
        self.reset()

    def __reduce__(self) -> tuple[Any, ...]:
        """Describe a copy, which is made without arguments."""
        return new_metric, (type(self),), vars(self).copy()

    def reset(self) -> None:
        """Forget all rows."""
        self.gap, self.weight, self.rows = self.batches.no_sums()

    def update(self, preds: Any, target: Any) -> None:
        """Count a batch; one without rows changes nothing.

        Arguments and errors are documented in the function of that name. All batches must be of one
        precision, which the edges of bins have too.
        """
        self.forward(preds, target)

    def forward(self, preds: Any, target: Any) -> Any:
        """Count a batch as `update`, and return its error alone, nan if it has no rows."""
        refuse_processes(type(self).__name__)
        batch = self.batches.sums(preds, target)
        self.gap, self.weight, self.rows = self.batches.add(self.sums(), batch)
        return self.batches.error_of(batch)

    __call__ = forward

    def sums(self) -> Sums:
        """Return the sums of all rows since the last `reset`."""
        return Sums(self.gap, self.weight, self.rows)

    def compute(self) -> Any:
        """Compute the error of all rows since the last `reset`, at least one."""
        refuse_processes(type(self).__name__)
        return self.error()

    def error(self) -> np.float64:
        """Compute the error of `sums`, which must not be of no rows."""
        sums = self.sums()
        if not sums.rows.any():
            rule = f"{type(self).__name__} has no rows yet"
            raise InputError("preds", rule, hint="call update first")
        self.batches.check_precision(sums)
        return self.batches.error_of(sums)


class MulticlassCalibrationError(BinaryCalibrationError):
    """Calibration error of the top label, batch by batch, as torchmetrics has it.

    Each batch by itself is taken for probabilities or for logits.

    Parameters
    ----------
    num_classes, n_bins, norm, ignore_index, validate_args
        As in `multiclass_calibration_error`, which has the errors too. `BinaryCalibrationError` has
        the notes.

    Examples
    --------
    >>> metric = MulticlassCalibrationError(num_classes=3, n_bins=3)
    >>> round(metric([[0.25, 0.20, 0.55], [0.55, 0.05, 0.40]], [0, 1]).item(), 4)
    0.55
    >>> metric.update([[0.10, 0.30, 0.60], [0.90, 0.05, 0.05]], [2, 0])
    >>> round(metric.compute().item(), 4)
    0.2
    """

    def __new__(
        cls, num_classes: int, n_bins: int = 15, norm: Norm = "l1",  # noqa: ARG004
        ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any,  # noqa: ARG004
    ) -> Self:  # fmt: skip
        """Make a metric of torchmetrics, if it is installed."""
        metric: Self = new_metric(cls)
        return metric

    def __init__(
        self, num_classes: int, n_bins: int = 15, norm: Norm = "l1",
        ignore_index: int | None = None, validate_args: bool = True,
    ) -> None:  # fmt: skip
        self.num_classes = num_classes
        super().__init__(n_bins, norm, ignore_index, validate_args)


def CalibrationError(  # noqa: N802
    task: Task, n_bins: int = 15, norm: Norm = "l1",
    num_classes: int | None = None, ignore_index: int | None = None, validate_args: bool = True,
    **kwargs: Any,
) -> BinaryCalibrationError:  # fmt: skip
    """Create the metric of a task, binary or multiclass.

    Parameters
    ----------
    task, n_bins, norm, num_classes, ignore_index, validate_args
        As in `calibration_error`, which has the errors too.
    **kwargs
        As in `BinaryCalibrationError`.

    Returns
    -------
    BinaryCalibrationError or MulticlassCalibrationError

    Examples
    --------
    >>> metric = CalibrationError(task="multiclass", num_classes=3)
    """
    if check_choice("task", task, TASKS) == "binary":
        return BinaryCalibrationError(n_bins, norm, ignore_index, validate_args, **kwargs)
    classes = check_task_classes(num_classes)
    return MulticlassCalibrationError(classes, n_bins, norm, ignore_index, validate_args, **kwargs)


def refuse_processes(name: str) -> None:
    """Refuse a metric without torchmetrics in one of several processes."""
    distributed: Any = sys.modules.get("torch.distributed")  # without a group it may be left alone
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    if distributed.get_world_size() > 1:
        raise RuntimeError(
            f"{name}: counts one process alone without torchmetrics, and here are several: "
            "pip install torchmetrics, or use fastece.streams.CalibrationMetric and its sync()"
        )


# --- metrics of torchmetrics ----------------------------------------------------------------


def new_metric(kind: Any) -> Any:
    """Make an object of a class of this module, of torchmetrics if it is installed."""
    return object.__new__(torch_class(kind))


@lru_cache(maxsize=64)
def torch_class(kind: Any) -> Any:
    """Return a class of this module as one of torchmetrics, if that is installed."""
    try:
        import torch
        from torchmetrics import Metric
    except ImportError:
        return kind
    if issubclass(kind, Metric):
        return kind
    names_of_options = inspect.signature(kind.__init__).parameters

    class TorchMetric(Metric, kind):  # type: ignore[misc]
        """A calibration error whose sums are states of torchmetrics."""

        full_state_update = False
        plot_lower_bound = 0.0

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            options = {name: x for name, x in kwargs.items() if name in names_of_options}
            others = {name: x for name, x in kwargs.items() if name not in names_of_options}
            Metric.__init__(self, **others)
            kind.__init__(self, *args, **options)
            for name, sums in self.batches.no_sums()._asdict().items():
                self.add_state(name, torch.from_numpy(sums), dist_reduce_fx="sum")

        def __reduce__(self) -> tuple[Any, ...]:
            """Describe the object by the class that other processes find in its module."""
            return new_metric, (kind,), self.__getstate__()

        def sums(self) -> Sums:
            """Return the sums of all rows since the last `reset`, on the host."""
            states = (self.gap, self.weight, self.rows)
            return Sums(*(state.detach().cpu().double().numpy() for state in states))

        def count(self, batch: Sums) -> None:
            """Add the sums of a batch to the states."""
            for name, sums in self.batches.add(self.sums(), batch)._asdict().items():
                setattr(self, name, torch.from_numpy(sums).to(self.gap.device))

        def update(self, preds: Any, target: Any) -> None:
            """Count a batch; one without rows changes nothing."""
            self.count(self.batches.sums(preds, target))

        def forward(self, preds: Any, target: Any) -> Any:
            """Count a batch as `update`, and return its error alone, nan if it has no rows."""
            if self._is_synced or self.dist_sync_on_step:
                return super().forward(preds, target)
            batch = self.batches.sums(preds, target)
            self.count(batch)
            self._update_count += 1
            self._computed = None
            self._forward_cache = self.as_tensor(self.batches.error_of(batch))
            return self._forward_cache

        def compute(self) -> Any:
            """Compute the error of all rows since the last `reset`, at least one."""
            return self.as_tensor(self.error())

        def merge_state(self, incoming_state: Any) -> None:
            """Add the states of another metric, or a dict of them."""
            super().merge_state(incoming_state)
            self._computed = None

        def as_tensor(self, value: np.float64) -> Any:
            """Return a value as a tensor beside the states."""
            return torch.tensor(float(value), dtype=torch.float64, device=self.gap.device)

        plot = kind.plot

    TorchMetric.__name__ = kind.__name__
    TorchMetric.__qualname__ = kind.__qualname__
    TorchMetric.__module__ = kind.__module__
    TorchMetric.__doc__ = kind.__doc__
    return TorchMetric
