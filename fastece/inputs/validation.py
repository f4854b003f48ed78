"""Every check of the caller's input and every message about it.

A message names the argument, the rule, the first offending index and its value. Nothing here
compiles or imports numba, so bad input is refused in well under 10 ms. What comes out is a numpy
array, or an error.
"""

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ROW_SUM_TOLERANCE",
    "as_labels",
    "as_probabilities",
    "as_weights",
    "check_average",
    "check_choice",
    "check_class_indices",
    "check_flag",
    "check_integer",
    "check_jobs",
    "check_probabilities",
    "check_range",
    "check_real",
    "known",
    "plain",
    "shown",
]

# float32 softmax exceeds 1 by a few 1e-7; what is outside by no more than this is clipped.
TOLERANCE = 1e-6
# float64 scalars, so that a float32 array is compared as the float64 it equals
LOWEST, HIGHEST = np.float64(-TOLERANCE), np.float64(1 + TOLERANCE)
# Rows of a class vector further than this from summing to 1 are worth a warning.
ROW_SUM_TOLERANCE = 1e-3
# How the missing values of Python, numpy and pandas are written.
MISSING = {"None", "nan", "NaN", "NaT", "<NA>"}
NONE = np.empty(0, np.intp)
# Scanned at once: stays in the second-level cache, so that the second look costs nothing.
SCAN = 2**16


# --- parameters -----------------------------------------------------------------------------
# Each returns the value in Python's own type, so that what is computed and shown is the same
# whether a caller says 3, np.int64(3) or np.float32(3).


def known(names: Iterable[Any]) -> str:
    """The known names, for a message."""
    return "known: " + (", ".join(repr(name) for name in names) or "none")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}: got {value!r}; {known(choices)}")
    return str(value)


def check_integer(name: str, value: Any, low: int, high: int, kind: str = "an integer") -> int:
    """An integer from low to high; a bool or a float is none."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name}: must be {kind}, got {value!r}")
    if not low <= int(value) <= high:
        raise ValueError(f"{name}: must be {kind} from {low} to {high}, got {value!r}")
    return int(value)


def check_real(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """A real number from low to high; nan is none, inf only where `high` is infinite."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name}: must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if not low <= number <= high:
        raise ValueError(f"{name}: must be a number from {low:g} to {high:g}, got {value!r:.80}")
    return number


def check_flag(name: str, value: Any) -> bool:
    """True or False; a string such as "no" is neither."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: must be True or False, got {value!r}")
    return bool(value)


def check_range(name: str, value: Any, names: Sequence[str]) -> str | tuple[float, float]:
    """A named range, or a pair 0 <= low < high <= 1."""
    if isinstance(value, str):
        return check_choice(name, value, names)
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{name}: must be a pair (low, high), got {value!r}; {known(names)}")
    low, high = (check_real(name, end, 0.0, 1.0) for end in value)
    if not low < high:
        raise ValueError(f"{name}: low must be less than high, got {value!r}")
    return low, high


def check_jobs(n_jobs: Any) -> int:
    """Number of threads: None is 1, negative counts from the number of processors, -1 all."""
    if n_jobs is None:
        return 1
    jobs = check_integer("n_jobs", n_jobs, -(2**31), 2**31)
    if jobs == 0:
        raise ValueError("n_jobs: must be a positive number of threads, or -1 for all, got 0")
    return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)


def check_average(average: Any) -> None:
    """How values of classes are averaged."""
    if average is not None and (not isinstance(average, str) or average != "macro"):
        raise ValueError(f"average: got {average!r}; {known(['macro', None])}")


# --- containers -----------------------------------------------------------------------------


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Any accepted container as a numpy array, without a copy where there can be none."""
    if type(value) is np.ndarray:
        return value
    refuse_container(name, value)
    try:
        if hasattr(value, "detach") and hasattr(value, "resolve_neg"):
            return from_torch(value)
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        array = np.asarray(value)
        if array.dtype == object and is_nullable(value) and all(map(is_no_text, array.flat)):
            array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, RuntimeError, BufferError, LookupError) as error:
        raise ValueError(f"{name}: cannot be read as a numeric array: {error}") from error
    return array


def from_torch(tensor: Any) -> NDArray[Any]:
    """A tensor on any device, with or without a gradient, as an array on the host."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if str(tensor.dtype) == "torch.bfloat16":  # numpy has none; every one is a float32
        tensor = tensor.float()
    array: NDArray[Any] = tensor.numpy()
    return array


def is_nullable(value: Any) -> bool:
    """Whether pandas made an object array of columns that are numbers or missing."""
    return (
        hasattr(value, "to_numpy") and hasattr(value, "isna") and "object" not in dtypes_of(value)
    )


def dtypes_of(value: Any) -> list[str]:
    """The dtype of each column of a frame, or the one of anything else that has one."""
    is_frame = getattr(value, "ndim", 1) == 2 and hasattr(value, "dtypes")
    return [str(t) for t in (value.dtypes if is_frame else [getattr(value, "dtype", "")])]


def refuse_container(name: str, value: Any) -> None:
    """Containers whose missing, implied or not yet computed entries would have to be guessed."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name}: masked arrays are refused; drop the masked rows first")
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):
        raise TypeError(f"{name}: sparse containers are refused; pass .toarray()")
    module = type(value).__module__.partition(".")[0]
    if module == "dask" or type(value).__name__ == "LazyFrame":
        raise TypeError(f"{name}: lazy containers are refused; pass .compute() or .collect()")
    if any(dtype.startswith("Sparse") for dtype in dtypes_of(value)):
        raise TypeError(f"{name}: sparse columns are refused; pass .sparse.to_dense()")
    if isinstance(value, str | bytes | dict | set) or not (
        hasattr(value, "__array__") or hasattr(value, "__dlpack__") or hasattr(value, "__len__")
    ):
        raise TypeError(f"{name}: must be an array, got {type(value).__name__} {value!r:.60}")


def parts(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Slices of the rows with their first row, each small enough to stay in cache."""
    step = max(1, SCAN * len(array) // max(array.size, 1))
    for start in range(0, len(array), step):
        yield start, array[start : start + step]


def refuse_where(
    name: str,
    rule: str,
    array: NDArray[Any],
    is_bad: Callable[[NDArray[Any]], NDArray[np.bool_]],
    hint: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise the error of the first entry that is bad, if there is one."""
    for start, part in parts(array):
        bad = is_bad(part)
        if bad.any():
            row, *column = (int(i) for i in np.argwhere(bad)[0])
            where = ", ".join(map(str, [start + row, *column]))
            raise error(f"{name}: {rule}; {name}[{where}] is {shown(part[(row, *column)])}{hint}")


def scan(array: NDArray[Any]) -> tuple[float, float]:
    """Smallest and largest entry; nan if there is one."""
    if array.size <= SCAN:
        return float(array.min()), float(array.max())
    lows, highs = zip(*((part.min(), part.max()) for _, part in parts(array)), strict=True)
    return float(np.min(lows)), float(np.max(highs))


def scan_rows(p: NDArray[Any]) -> tuple[float, float, NDArray[np.intp]]:
    """Smallest and largest entry, and the rows that do not sum to 1: one pass over memory."""
    ones = np.ones(p.shape[1], p.dtype if p.dtype.char in "fd" else np.float64)
    low, high, off = math.inf, -math.inf, []
    with np.errstate(invalid="ignore", over="ignore"):  # refused later, with a message
        for start, part in parts(p):
            low, high = np.minimum(low, part.min()), np.maximum(high, part.max())
            off.append(start + np.flatnonzero(np.abs(part @ ones - 1) > ROW_SUM_TOLERANCE))
    return float(low), float(high), np.concatenate(off)


def as_real(name: str, value: Any, what: str = "must be real numbers") -> NDArray[Any]:
    """A container of integers, bools or floats that float64 can hold; no copy of those."""
    array = as_array(name, value)
    if array.dtype.kind not in "fiub":
        rule = f"{what}, got dtype {array.dtype}"
        refuse_where(name, rule, array, each(is_no_number), error=TypeError)
        raise TypeError(f"{name}: {rule}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # what float64 cannot hold is refused as infinite
            array = array.astype(np.float64)
    return array


# --- data -----------------------------------------------------------------------------------


def as_probabilities(value: Any, name: str = "y_prob") -> NDArray[Any]:
    """Probabilities or logits (n,) or (n, K), their values not yet checked."""
    array = as_real(name, value)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name}: must have 1 or 2 dimensions, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name}: is empty, shape {array.shape}")
    if array.ndim == 2 and array.shape[1] == 1:
        raise ValueError(
            f"{name}: one column, shape {array.shape}, is neither P(positive) nor a class vector; "
            f"pass {name}[:, 0] for P(positive)"
        )
    return array


def check_probabilities(array: NDArray[Any], from_logits: bool, name: str = "y_prob") -> bool:
    """Whether some probabilities are to be clipped; an error for what is no probability."""
    if from_logits:
        check_logits(name, array)
        return False
    low, high, off = scan_rows(array) if array.ndim == 2 else (*scan(array), NONE)
    if not (low >= LOWEST and high <= HIGHEST):
        refuse_improbable(name, array)
    if off.size:
        warn_row_sums(name, array, off)
    return low < 0 or high > 1


def refuse_improbable(name: str, p: NDArray[Any]) -> None:
    """The error for the first entry that is no probability."""
    refuse_where(name, "must be finite", p, lambda part: ~np.isfinite(part))
    labels = p.ndim == 1 and are_whole(p)
    hint = "it looks like labels: y_true comes first" if labels else "logits: from_logits=True"
    refuse_where(
        name,
        f"probabilities must lie in [0, 1] (tolerance {TOLERANCE:g})",
        p,
        lambda part: (part < LOWEST) | (part > HIGHEST),
        f" ({hint})",
    )


def check_logits(name: str, z: NDArray[Any]) -> None:
    """Finite, or -inf for a probability of 0, but not in a whole row."""
    low, high = scan(z)
    if not (low >= -math.inf and high < math.inf):
        refuse_where(name, "logits must be finite or -inf", z, lambda part: ~(part < math.inf))
    if low == -math.inf and z.ndim == 2:
        rule = "a row of logits must not be all -inf"
        refuse_where(name, rule, z, lambda part: (part == -math.inf).all(axis=1, keepdims=True))


def warn_row_sums(name: str, p: NDArray[Any], off: NDArray[np.intp]) -> None:
    """One warning for all rows that do not sum to 1."""
    total = float(p[off[0]].sum(dtype=np.float64))
    warnings.warn(
        f"{name}: {off.size} of {len(p)} rows do not sum to 1 (tolerance {ROW_SUM_TOLERANCE:g}); "
        f"the first is {name}[{off[0]}] with sum {total!r}",
        UserWarning,
        stacklevel=caller_level(),
    )


def caller_level() -> int:
    """The `stacklevel` that points a warning at the first frame outside this package."""
    level, frame = 1, sys._getframe(1)
    inside = {__name__.partition(".")[0], "functools"}
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in inside:
        level, frame = level + 1, frame.f_back
    return level


def as_weights(value: Any, n: int, name: str = "sample_weight") -> NDArray[np.float64] | None:
    """Checked weights (n,), or None."""
    if value is None:
        return None
    array = as_real(name, value)
    if array.shape != (n,):
        raise ValueError(f"{name}: must have shape ({n},) as y_prob has rows, got {array.shape}")
    low, high = scan(array)
    if not (low >= 0 and high < math.inf):
        refuse_where(name, "must be finite", array, lambda part: ~np.isfinite(part))
        refuse_where(name, "must not be negative", array, lambda part: part < 0)
    if high == 0:
        raise ValueError(f"{name}: the weights must not all be 0")
    return plain(array, np.float64)


def plain(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """C-contiguous, of this dtype and writable: kernels compile anew for each combination. No copy
    where it is so already."""
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.writeable else array.copy()


def as_labels(
    value: Any,
    n: int,
    n_classes: int,
    labels: Any,
    y_prob: NDArray[Any],
    name: str = "y_true",
    prob_name: str = "y_prob",
    pos_label: Any = None,  # noqa: ARG001
) -> tuple[NDArray[Any], list[Any] | None]:
    """Labels (n,): class indices, with the labels they stand for, or numbers not yet checked."""
    array = as_array(name, value if labels is None else one_by_one(value))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name}: must have shape (n,) or (n, 1), got {array.shape}{swapped(array, y_prob)}"
        )
    if array.size == 0:
        raise ValueError(f"{name}: is empty")
    if array.size != n:
        raise ValueError(f"{name}: has {array.size} rows, but {prob_name} has {n}")
    if labels is not None:
        order = class_order(labels, n_classes)
    elif array.dtype.kind in "OUST":
        order = sorted_strings(name, array, n_classes)
    else:
        return as_real(name, array, "must be integers, bools or strings"), None
    return label_positions(name, array, order), order


def check_class_indices(
    y: NDArray[Any], n_classes: int, y_prob: NDArray[Any], name: str = "y_true"
) -> NDArray[Any]:
    """Labels as integers or bools from 0 to K - 1."""
    if y.dtype.kind == "b":
        return np.not_equal(y.view(np.uint8), 0)  # bools made of other bytes are True
    low, high = scan(y)
    if y.dtype.kind == "f":
        if not (math.isfinite(low) and math.isfinite(high)):
            refuse_where(name, "must be finite", y, lambda part: ~np.isfinite(part))
        if any((part != np.trunc(part)).any() for _, part in parts(y)):
            rule, hint = "labels must be whole numbers", swapped(y, y_prob)
            refuse_where(name, rule, y, lambda part: part != np.trunc(part), hint)
    if low < 0 or high >= n_classes:
        rule, hint = f"labels must be from 0 to {n_classes - 1}", " (labels= names other classes)"
        refuse_where(name, rule, y, lambda part: (part < 0) | (part >= n_classes), hint)
    return y.astype(np.int64) if y.dtype.kind == "f" else y


def are_whole(array: NDArray[Any]) -> bool:
    """Whether the first numbers are whole, as labels are."""
    return bool((array[:SCAN] == np.trunc(array[:SCAN])).all())


def swapped(y: NDArray[Any], y_prob: NDArray[Any]) -> str:
    """A hint, where y_true looks like probabilities and y_prob like labels."""
    if y.dtype.kind != "f" or y.size == 0 or y.min() < 0 or y.max() > 1:
        return ""
    if y_prob.ndim == 1 and are_whole(y_prob):
        return "; y_true looks like probabilities and y_prob like labels: are they swapped?"
    return "; y_true looks like probabilities: y_true comes first"


def label_positions(name: str, y: NDArray[Any], order: list[Any]) -> NDArray[np.int64]:
    """Position of each label in the class order."""
    found = sorted_positions(y, order) if same_kind(y, order) else hashed_positions(name, y, order)
    if found.min() < 0:
        i = int(np.argmin(found))
        known_labels = ", ".join(map(shown, order[:20]))
        raise ValueError(f"{name}: not among labels=[{known_labels}]; {name}[{i}] is {shown(y[i])}")
    return found


def same_kind(y: NDArray[Any], order: list[Any]) -> bool:
    """Whether numpy compares the labels as Python does: all numbers, or all strings."""
    if y.dtype.kind in "biuf":
        return all(isinstance(label, Real) for label in order)
    return y.dtype.kind == "U" and all(isinstance(label, str) for label in order)


def sorted_positions(y: NDArray[Any], order: list[Any]) -> NDArray[np.int64]:
    """Position of each label, -1 where there is none, by bisection."""
    table = np.asarray(order)
    ranks = np.argsort(table, kind="stable")
    nearest = ranks[np.searchsorted(table[ranks], y).clip(max=table.size - 1)]
    return np.where(table[nearest] == y, nearest, -1)


def hashed_positions(name: str, y: NDArray[Any], order: list[Any]) -> NDArray[np.int64]:
    """Position of each label of any kind, -1 where there is none, by a dictionary."""
    try:
        position = {label: k for k, label in enumerate(order)}
        return np.array([position.get(value, -1) for value in y], np.int64)
    except TypeError as error:
        raise TypeError(f"{name}: labels must be hashable: {error}") from error


def one_by_one(value: Any) -> Any:
    """A list of labels as an object array: numpy would turn ["a", 1] into strings."""
    if not isinstance(value, list | tuple) or any(isinstance(x, list) for x in value):
        return value
    if all(type(x) is type(value[0]) for x in value) and isinstance(value[0], str | int | float):
        return value
    return np.fromiter(value, object, len(value))


def class_order(labels: Any, n_classes: int) -> list[Any]:
    """The caller's labels, one for each class."""
    order = list(as_array("labels", one_by_one(labels)).ravel())
    if len(order) != n_classes:
        raise ValueError(f"labels: must name {n_classes} classes, got {len(order)}: {order!r:.200}")
    for k, label in enumerate(order):
        if label in order[:k]:
            raise ValueError(f"labels: must be distinct; labels[{k}] is {shown(label)} again")
    return order


def sorted_strings(name: str, y: NDArray[Any], n_classes: int) -> list[Any]:
    """The sorted distinct labels, if they are strings and there is one for each class."""
    if y.dtype.kind == "O":
        refuse_where(name, "must not be missing", y, each(is_missing))
        rule, hint = "must be integers, bools or strings", " (labels= takes any labels)"
        refuse_where(name, rule, y, each(is_no_text), hint, TypeError)
    order = sorted(set(y.tolist()))
    if not str(order[0]).strip():
        i = y.tolist().index(order[0])
        raise ValueError(f"{name}: must not be blank; {name}[{i}] is {order[0]!r}")
    if len(order) != n_classes:
        raise ValueError(
            f"{name}: {len(order)} distinct labels for {n_classes} classes, so their order is "
            f"unknown: pass labels=, in the order of y_prob's columns; {name}[0] is {y[0]!r:.80}"
        )
    return order


def is_missing(value: Any) -> bool:
    """Whether this is a missing value of Python, numpy or pandas rather than a string."""
    return is_no_text(value) and str(value) in MISSING


def is_no_text(value: Any) -> bool:
    """Whether this is not a string."""
    return not isinstance(value, str | bytes)


def is_no_number(value: Any) -> bool:
    """Whether this is not a real number."""
    return not isinstance(value, Real)


def each(rule: Callable[[Any], bool]) -> Callable[[NDArray[Any]], NDArray[np.bool_]]:
    """A rule about one object as a rule about an array of them."""
    return lambda array: np.array([rule(x) for x in array.flat], bool).reshape(array.shape)


def shown(value: Any) -> str:
    """A value as it would be written in Python."""
    return f"{value.item() if isinstance(value, np.generic) else value!r:.80}"
