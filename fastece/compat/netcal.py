"""Calibration errors with the names, arguments and numbers of netcal.

The classes of ``netcal.metrics`` for classification are here: ``ECE(bins).measure(X, y)``. netcal
is not imported.

Notes
-----
- Ten bins, closed at the left. Labels with at most two distinct values, also of a batch where by
  chance no more occur, make it the binary problem of the last column, of two columns too, and not
  the top label; of more columns netcal raises, and here the top label is measured.
- Bins of float32 scores are counted by other edges than they are averaged by, so that rows between
  the two, such as 0.9, are lost; here there is one edge. Where quantiles are scores, rows are
  lost more often.
- Quantiles that are equal, as tied scores make them, raise an error there; here the bins between
  them are empty.
- Object detection (`detection=True` with boxes), samples of Bayesian models (3-d `X`) and maps are
  not offered.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.compat.conventions import CONVENTIONS, MAX_ROWS, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.containers import as_array, refuse_where
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_flag, check_integer
from fastece.data.table import one_problem
from fastece.estimators.binned import Binned

NAMES = LIBRARIES["netcal"]


class Measure:
    """A measure of netcal: the formula of `Binned`, in the bins of a convention."""

    formula: Binned

    def __init__(
        self, bins: int = 10, equal_intervals: bool = True, detection: bool = False,
        sample_threshold: int = 1,
    ) -> None:  # fmt: skip
        is_single = isinstance(bins, tuple | list) and len(bins) == 1
        self.bins = bins[0] if is_single else bins  # type: ignore[index]
        self.equal_intervals = check_flag("equal_intervals", equal_intervals)
        self.detection = check_flag("detection", detection)
        self.sample_threshold = check_integer("sample_threshold", sample_threshold, 0, MAX_ROWS)
        self.convention = CONVENTIONS["netcal" if equal_intervals else "netcal_quantile"]
        check_bins("bins", self.bins)

    def measure(
        self, X: Any, y: Any, batched: bool = False, uncertainty: None = None,  # noqa: N803
        return_map: bool = False, return_num_samples: bool = False,
        return_uncertainty_map: bool = False,
    ) -> np.float64:  # fmt: skip
        """Compute the error.

        Parameters
        ----------
        X : (n,), (n, 1) or (n, K) array_like of float
            Probabilities of class 1, or of each class; a list of arrays with `batched`.
        y : (n,) or (n, K) array_like of int
            Classes, or a 1 in the column of the class; a list of arrays with `batched`.
        batched : bool
            Whether there are several sets of rows, whose errors are averaged.
        uncertainty, return_map, return_num_samples, return_uncertainty_map
            Only their default values.

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`; for labels other than 0 and 1 of a binary problem; for options that
            are not offered; for lists of arrays without `batched`, and other containers with it.
        """
        not_offered = {
            "uncertainty": uncertainty,
            "return_map": return_map,
            "return_num_samples": return_num_samples,
            "return_uncertainty_map": return_uncertainty_map,
        }
        for name, option in not_offered.items():
            if option is not None and option is not False:
                raise InputError(name, "is not offered", value=option, hint="use netcal for it")
        if not batched:
            if are_arrays(X) and are_arrays(y):
                rule = "is a list of arrays, which netcal refuses as well"
                raise InputTypeError("X", rule, hint="batched=True averages the errors of sets")
            return self.error(X, y)
        for name, sets in {"X": X, "y": y}.items():
            if not isinstance(sets, list | tuple):
                raise InputTypeError(name, "must be a list of arrays with {batched}", value=sets)
        if not len(X):
            raise InputError("X", "has no sets of rows")
        if len(X) != len(y):
            raise InputError("X", f"has {len(X)} sets of rows, but y has {len(y)}")
        return np.float64(np.mean([self.error(*rows) for rows in zip(X, y, strict=True)]))

    def error(self, X: Any, y: Any) -> np.float64:  # noqa: N803
        """Compute the error of one set of rows."""
        prob = NAMES.columns(X)
        if prob.ndim > 2:
            raise InputError("X", f"samples of models, shape {prob.shape}, are not offered")
        if self.detection and prob.ndim == 2:
            raise InputError("X", f"boxes {prob.shape} are not offered", hint="pass X[:, 0]")
        label = classes_of(as_array("y", y), 2 if prob.ndim == 1 else prob.shape[1])
        if prob.ndim == 2 and prob.shape[1] == 2 and np.unique(label).size < 3:
            prob = prob[:, 1]
        if type(self) is ECE and self.equal_intervals and self.sample_threshold < 2:
            return np.float64(self.convention.errors(label, prob, self.bins)[0])
        table = NAMES.read(label, prob)
        if self.convention.needs_scores:
            smallest = float(np.finfo(np.float32 if prob.dtype == np.float32 else np.float64).eps)
            sample = table.view()
            table = one_problem(replace(sample, s=sample.s.clip(smallest, 1 - smallest)))
        (bins,) = self.convention.bins(table, self.bins, prob.dtype)
        gap = np.where(bins.weight >= self.sample_threshold, bins.gap, 0.0)
        (value,) = self.formula.errors(bins._replace(gap=gap))
        if self.formula.bin_weights == "equal":  # netcal divides by the number of bins with rows
            value *= bins.gap.size / np.count_nonzero(bins.weight)
        return np.float64(value)


def are_arrays(sets: Any) -> bool:
    """Return whether a value is a list of arrays, such as one for each image."""
    return isinstance(sets, list | tuple) and all(
        isinstance(each, np.ndarray) and each.ndim > 0 for each in sets
    )


def classes_of(label: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Return the classes (n,) of labels, which may be columns with a 1."""
    if label.ndim != 2 or label.shape[1] == 1:
        return label
    if label.shape[1] != n_classes:
        raise InputError("y", f"must have {n_classes} columns as X", value=label.shape)
    refuse_where("y", "columns must hold 0 and 1", label, lambda part: (part != 0) & (part != 1))
    return label[:, 1] if n_classes == 2 else label.argmax(axis=1)


class ECE(Measure):
    """Expected calibration error, as netcal has it.

    Parameters
    ----------
    bins : int, default 10
        Number of bins.
    equal_intervals : bool, default True
        Bins of equal width; else of about as many rows each, between numpy's quantiles.
    detection : bool, default False
        Whether `y` states if a box is right: a binary problem, whatever labels occur.
    sample_threshold : int, default 1
        Bins of fewer rows count as if they had no gap.

    Notes
    -----
    Unlike `fastece.ece`, bins are closed at the left, and the measure depends on the labels that
    occur: with one or two of them it is the score of class 1, else the top label. A small batch may
    therefore be measured as another quantity than a large one.

    Examples
    --------
    >>> ECE(bins=2).measure([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1])
    np.float64(0.29)
    """

    formula = Binned()


class MCE(Measure):
    """Maximum calibration error, as netcal has it: the largest gap of any bin.

    Parameters
    ----------
    bins, equal_intervals, detection, sample_threshold
        As in `ECE`, which has the errors and the bins too.

    Notes
    -----
    The value is mostly the gap of the emptiest bin, and grows with the number of bins: give
    `sample_threshold`.

    Examples
    --------
    >>> MCE(bins=2).measure([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1]).round(4)
    np.float64(0.3167)
    """

    formula = Binned(norm=math.inf)


class ACE(Measure):
    """Average calibration error, as netcal has it: the mean gap of occupied bins.

    It is not the adaptive calibration error of Nixon et al. (2019), which is `fastece.ace`.

    Parameters
    ----------
    bins, equal_intervals, detection, sample_threshold
        As in `ECE`, which has the errors and the bins too.

    Notes
    -----
    Bins of few rows count as much as bins of many, so noise weighs more than in the ECE.

    Examples
    --------
    >>> ACE(bins=2).measure([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1]).round(4)
    np.float64(0.2833)
    """

    formula = Binned(bin_weights="equal")
