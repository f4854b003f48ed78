"""Calibration errors with the names, arguments and numbers of torchmetrics.

The functions have the names of ``torchmetrics.functional.classification``, classes the names of
``torchmetrics.classification``. Neither torch nor torchmetrics is imported; tensors are taken, and
numpy arrays and lists as well. Values are `numpy.float64`, so ``.item()`` works.

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

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.containers import as_array, as_real
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_choice, check_integer
from fastece.estimators.binned import Binned, Bins
from fastece.kernels import GAP, WEIGHT
from fastece.streams.metric import LoopMetric

Norm = Literal["l1", "l2", "max"]
Task = Literal["binary", "multiclass"]
NORMS = {"l1": 1.0, "l2": 2.0, "max": math.inf}
NAMES = LIBRARIES["torchmetrics"]
MAX_CLASSES = 2**31 - 1
# The largest size of an ignored index.
MAX_INDEX = 2**63


def binary_calibration_error(
    preds: Any, target: Any, n_bins: int = 15, norm: Norm = "l1", ignore_index: int | None = None,
    validate_args: bool = True,
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
    return BinaryCalibrationError(n_bins, norm, ignore_index, validate_args).error(preds, target)


def multiclass_calibration_error(
    preds: Any, target: Any, num_classes: int, n_bins: int = 15, norm: Norm = "l1",
    ignore_index: int | None = None, validate_args: bool = True,
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
    metric = MulticlassCalibrationError(num_classes, n_bins, norm, ignore_index, validate_args)
    return metric.error(preds, target)


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
    metric = CalibrationError(task, n_bins, norm, num_classes, ignore_index, validate_args)
    return metric.error(preds, target)


class BinaryCalibrationError(LoopMetric):
    """Calibration error of a binary model, batch by batch, as torchmetrics has it.

    It keeps sums over the bins and not the rows, so that memory does not grow. Each batch by itself
    is taken for probabilities or for logits.

    Parameters
    ----------
    n_bins, norm, ignore_index, validate_args
        As in `binary_calibration_error`, which has the errors too.

    Examples
    --------
    >>> metric = BinaryCalibrationError(n_bins=2)
    >>> metric.update([0.25, 0.25, 0.55], [0, 0, 1])
    >>> metric.update([0.75, 0.75], [1, 1])
    >>> metric.compute()
    np.float64(0.29)
    """

    num_classes: int | None = None
    convention = CONVENTIONS["torchmetrics_binary"]
    is_differentiable = False
    higher_is_better = False

    def __init__(
        self, n_bins: int = 15, norm: Norm = "l1", ignore_index: int | None = None,
        validate_args: bool = True,
    ) -> None:  # fmt: skip
        if ignore_index is not None:
            ignore_index = check_integer("ignore_index", ignore_index, -MAX_INDEX, MAX_INDEX)
        self.n_bins = n_bins
        self.norm = norm
        self.ignore_index = ignore_index
        self.validate_args = validate_args
        self.fields: dict[str, Any] = {"norm": NORMS[check_choice("norm", norm, tuple(NORMS))]}
        check_bins("n_bins", n_bins)
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self.bins: Bins | None = None
        self.binned: Binned | None = None

    def update(self, preds: Any, target: Any) -> None:
        """Count a batch; one without rows changes nothing.

        Arguments and errors are documented in the function of that name. All batches must be of one
        precision, which the edges of bins have too.
        """
        self.forward(preds, target)

    def forward(self, preds: Any, target: Any) -> np.float64:
        """Count a batch as `update`, and return its error alone, nan if it has no rows."""
        label, prob = self.read_batch(preds, target)
        if not label.size:
            return np.float64(np.nan)
        binned = self.convention.binned(self.n_bins, prob, **self.fields)
        if self.binned not in (None, binned):
            rule = "must be of the precision of batches before, which the edges of bins have too"
            raise InputError("preds", rule, value=prob.dtype, hint="convert all to one")
        bins = binned.bins(NAMES.read(label, prob, guess_logits=True), kinds=(GAP, WEIGHT))
        value = np.float64(binned.errors(bins)[0])
        if self.bins is not None:
            names = ("total", "gap", "weight")
            sums = {name: getattr(self.bins, name) + getattr(bins, name) for name in names}
            bins = bins._replace(**sums)
        self.binned = binned
        self.bins = bins
        return value

    __call__ = forward

    def compute(self) -> np.float64:
        """Compute the error of all rows since the last `reset`, at least one."""
        if self.binned is None or self.bins is None:
            rule = f"{type(self).__name__} has no rows yet"
            raise InputError("preds", rule, hint="call update first")
        return np.float64(self.binned.errors(self.bins)[0])

    def error(self, preds: Any, target: Any) -> np.float64:
        """Compute the error of a batch that is not counted."""
        label, prob = self.read_batch(preds, target)
        errors = self.convention.errors(label, prob, self.n_bins, guess_logits=True, **self.fields)
        return np.float64(errors[0])

    def read_batch(self, preds: Any, target: Any) -> tuple[NDArray[Any], NDArray[Any]]:
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


class MulticlassCalibrationError(BinaryCalibrationError):
    """Calibration error of the top label, batch by batch, as torchmetrics has it.

    Each batch by itself is taken for probabilities or for logits.

    Parameters
    ----------
    num_classes, n_bins, norm, ignore_index, validate_args
        As in `multiclass_calibration_error`, which has the errors too.

    Examples
    --------
    >>> metric = MulticlassCalibrationError(num_classes=3, n_bins=3)
    >>> metric([[0.25, 0.20, 0.55], [0.55, 0.05, 0.40]], [0, 1]).round(4)
    np.float64(0.55)
    >>> metric.update([[0.10, 0.30, 0.60], [0.90, 0.05, 0.05]], [2, 0])
    >>> metric.compute().round(4)
    np.float64(0.2)
    """

    convention = CONVENTIONS["torchmetrics"]

    def __init__(
        self, num_classes: int, n_bins: int = 15, norm: Norm = "l1",
        ignore_index: int | None = None, validate_args: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(n_bins, norm, ignore_index, validate_args)
        self.num_classes = check_integer("num_classes", num_classes, 2, MAX_CLASSES)


def CalibrationError(  # noqa: N802
    task: Task, n_bins: int = 15, norm: Norm = "l1",
    num_classes: int | None = None, ignore_index: int | None = None, validate_args: bool = True,
) -> BinaryCalibrationError:  # fmt: skip
    """Create the metric of a task, binary or multiclass.

    Parameters
    ----------
    task, n_bins, norm, num_classes, ignore_index, validate_args
        As in `calibration_error`, which has the errors too.

    Returns
    -------
    BinaryCalibrationError or MulticlassCalibrationError

    Examples
    --------
    >>> metric = CalibrationError(task="multiclass", num_classes=3)
    """
    if check_choice("task", task, ("binary", "multiclass")) == "binary":
        return BinaryCalibrationError(n_bins, norm, ignore_index, validate_args)
    if num_classes is None:
        raise InputError("num_classes", "is needed for task='multiclass'")
    return MulticlassCalibrationError(num_classes, n_bins, norm, ignore_index, validate_args)


class MetricCollection(Mapping[str, Any]):
    """Metrics that take the same batches, as torchmetrics has it.

    It takes the metrics of this module, `fastece.streams.CalibrationMetric`, and metrics of
    torchmetrics, whose own collection takes modules of torch alone.

    Parameters
    ----------
    metrics : sequence, or dict by name
        In a sequence, metrics have the names of their classes, which must differ.
    prefix, postfix : str, optional
        Texts before and after the names in results.

    Raises
    ------
    ValueError, TypeError
        For two metrics of one name, and for an object without `update` and `compute`.

    Examples
    --------
    >>> collection = MetricCollection({"l1": BinaryCalibrationError(n_bins=2)}, prefix="val_")
    >>> collection.update([0.25, 0.25, 0.55], [0, 0, 1])
    >>> {name: float(value.round(4)) for name, value in collection.compute().items()}
    {'val_l1': 0.3167}
    """

    def __init__(self, metrics: Any, prefix: str | None = None, postfix: str | None = None) -> None:
        self.prefix = prefix or ""
        self.postfix = postfix or ""
        self.metrics = metrics_by_name(metrics)

    def __getitem__(self, name: str) -> Any:
        return self.metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        return f"MetricCollection({self.metrics!r})"

    def update(self, preds: Any, target: Any) -> None:
        """Count a batch in every metric."""
        for metric in self.values():
            metric.update(preds, target)

    def forward(self, preds: Any, target: Any) -> dict[str, Any]:
        """Count a batch in every metric, and return the values of this batch by name."""
        return self._results(lambda metric: metric(preds, target))

    __call__ = forward

    def compute(self) -> dict[str, Any]:
        """Compute the value of every metric by name."""
        return self._results(lambda metric: metric.compute())

    def reset(self) -> None:
        """Forget all rows."""
        for metric in self.values():
            metric.reset()

    def to(self, *args: Any, **options: Any) -> "MetricCollection":
        """Move the metrics that have a device; ours stay on the host."""
        self.metrics = {name: metric.to(*args, **options) for name, metric in self.items()}
        return self

    def clone(self, prefix: str | None = None, postfix: str | None = None) -> "MetricCollection":
        """Return a copy of all metrics, perhaps with other names in results."""
        return MetricCollection(
            {name: metric.clone() for name, metric in self.items()},
            self.prefix if prefix is None else prefix,
            self.postfix if postfix is None else postfix,
        )

    def _results(self, value_of: Callable[[Any], Any]) -> dict[str, Any]:
        """Return a value of each metric by its name in results."""
        return {
            f"{self.prefix}{name}{self.postfix}": value_of(metric) for name, metric in self.items()
        }


def metrics_by_name(metrics: Any) -> dict[str, Any]:
    """Read metrics of a collection by their names."""
    if isinstance(metrics, Mapping):
        pairs = list(metrics.items())
    else:
        sequence = metrics if isinstance(metrics, Sequence) else [metrics]
        pairs = [(type(metric).__name__, metric) for metric in sequence]
    collected: dict[str, Any] = {}
    for name, metric in pairs:
        if not (hasattr(metric, "update") and hasattr(metric, "compute")):
            raise InputTypeError("metrics", "must have update and compute", value=metric)
        if name in collected:
            raise InputError("metrics", "must have different names", value=name, hint="pass a dict")
        collected[name] = metric
    return collected
