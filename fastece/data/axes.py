"""Arrays with a class axis, such as pixels (N, C, H, W), as class vectors (n, K) and labels (n,).

All axes but the one of the classes are rows, in the order of the labels. Nothing is copied where
the layout of the array allows a view.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastece.data.containers import as_array
from fastece.data.errors import InputError, rename_indices
from fastece.data.options import ReadingOptions
from fastece.data.parameters import check_integer

# Groups by the first axis of the labels, such as images.
FIRST_AXIS = "first_axis"


@dataclass(frozen=True)
class RowAxes:
    """The axes of the rows, which are all axes of the labels.

    Attributes
    ----------
    shape : tuple of int
        Shape of the labels.
    class_axis : int or None
        The axis of the probabilities that holds the classes, from 0; None for rows (n,).
    n_classes : int
        Length of that axis; 0 without it.
    """

    shape: tuple[int, ...]
    class_axis: int | None = None
    n_classes: int = 0

    @property
    def n(self) -> int:
        """Number of rows."""
        return math.prod(self.shape)

    @property
    def shape_with_classes(self) -> tuple[int, ...]:
        """Shape of the probabilities; masks of one class have labels of this shape too."""
        return (*self.shape[: self.class_axis], self.n_classes, *self.shape[self.class_axis :])

    def flatten_classes(self, name: str, prob: Any) -> Any:
        """Return class vectors (n, K), a tensor of torch as a tensor; perhaps a view.

        A single class, as in masks (N, 1, H, W), is the positive one: its probabilities are (n,).
        """
        if self.class_axis is None:
            return prob
        shape = (self.n,) if self.n_classes == 1 else (self.n, self.n_classes)
        if hasattr(prob, "movedim"):  # numpy has no bfloat16, whose rounding the reader allows for
            return prob.movedim(self.class_axis, -1).reshape(shape)
        array = as_array(name, prob)
        return np.moveaxis(array, self.class_axis, -1).reshape(shape)

    def flatten(self, name: str, values: Any) -> Any:
        """Return a value for each row (n,), such as labels or weights; None stays None."""
        if self.class_axis is None or values is None:
            return values
        array = as_array(name, values)
        has_class_axis = self.n_classes == 1 and array.shape == self.shape_with_classes
        if array.shape != self.shape and not has_class_axis:
            rule = f"must have shape {self.shape} with {{class_axis}}, as {{y_prob}} has rows"
            raise InputError(name, rule, value=array.shape)
        return array.reshape(self.n)

    def flatten_groups(self, groups: Any) -> Any:
        """Return the group of each row (n,), from one for each row or each first index."""
        is_first_axis = isinstance(groups, str) and groups == FIRST_AXIS
        if is_first_axis and self.class_axis is None:
            raise InputError("groups", f"{FIRST_AXIS!r} goes with {{class_axis}}")
        if self.class_axis is None or groups is None:
            return groups
        n_first = self.shape[0]
        array = np.arange(n_first) if is_first_axis else as_array("groups", groups)
        if array.shape == (n_first,):
            return np.repeat(array, self.n // max(n_first, 1))
        return self.flatten("groups", array)

    def naming_entries(self, prob_name: str) -> AbstractContextManager[None]:
        """Name entries of the caller's arrays in errors, not the rows made of them."""

        def index_of_caller(argument: str, index: tuple[int, ...]) -> tuple[int, ...]:
            row, *column = index
            entry = [int(i) for i in np.unravel_index(row, self.shape)]
            if argument == prob_name:
                entry[self.class_axis : self.class_axis] = column or [0]
            return tuple(entry)

        return rename_indices(index_of_caller)


def find_row_axes(name: str, prob: Any, class_axis: Any) -> RowAxes:
    """Find the axes of rows, all but `class_axis`; without it the first one."""
    if class_axis is None:
        return RowAxes((len(as_array(name, prob)),))
    shape: tuple[int, ...] = tuple(getattr(prob, "shape", ())) or as_array(name, prob).shape
    if len(shape) < 2:
        rule = f"must have at least 2 dimensions with {{class_axis}}, got shape {shape}"
        raise InputError(name, rule)
    rule = "an axis of {y_prob}"
    axis = check_integer("class_axis", class_axis, -len(shape), len(shape) - 1, rule) % len(shape)
    return RowAxes((*shape[:axis], *shape[axis + 1 :]), axis, shape[axis])


def flatten_rows(
    axes: RowAxes, y_true: Any, y_prob: Any, options: ReadingOptions, prob_name: str = "y_prob"
) -> tuple[Any, Any, ReadingOptions]:
    """Flatten the arrays of rows to (n,) and (n, K), those among the options too.

    Shares and votes are refused.
    """
    if options.soft is not False or options.votes is not None:
        raise InputError("class_axis", "goes without {soft} and {votes}")
    labels = axes.flatten("y_true", y_true)
    prob = axes.flatten_classes(prob_name, y_prob)
    flat_options = replace(
        options,
        sample_weight=axes.flatten("sample_weight", options.sample_weight),
        counts=axes.flatten("counts", options.counts),
        class_axis=None,
    )
    return labels, prob, flat_options
