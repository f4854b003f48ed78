"""Containers of numbers as numpy arrays, and errors about single entries.

A message names the argument, the rule, the first offending index and its value.
"""

import math
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import InputError, InputTypeError
from fastece.typing import F64, U8

# Entries that are looked at together: they stay in cache, so that a second look costs nothing.
SLICE = 2**16
# Kernels count rows in 32 bits.
MOST_ROWS = 2**31 - 1
# Which entries of an array break a rule.
Rule = Callable[[NDArray[Any]], NDArray[np.bool_]]


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Read any accepted container as a numpy array, where possible without a copy."""
    if type(value) is np.ndarray:
        return value
    refuse_container(name, value)
    try:
        if hasattr(value, "detach") and hasattr(value, "resolve_neg"):
            return from_torch(value)
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        array = np.asarray(value)
        has_missing = array.dtype == object and hasattr(value, "isna")
        if has_missing and "object" not in dtypes_of(value) and not any(map(is_text, array.flat)):
            # numbers of pandas, some of which are missing
            array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, RuntimeError, BufferError, LookupError) as error:
        raise InputError(name, f"cannot be read as a numeric array: {error}") from error
    return array


def from_torch(tensor: Any) -> NDArray[Any]:
    """Read a tensor on any device, with or without a gradient, as an array."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if str(tensor.dtype) == "torch.bfloat16":  # numpy has none; every one is a float32
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def dtypes_of(value: Any) -> list[str]:
    """Return the dtypes of a frame's columns, or the dtype of another container."""
    is_frame = getattr(value, "ndim", 1) == 2 and hasattr(value, "dtypes")
    return [str(t) for t in (value.dtypes if is_frame else [getattr(value, "dtype", "")])]


def refuse_container(name: str, value: Any) -> None:
    """Refuse containers whose missing or implied entries would have to be guessed."""
    module = type(value).__module__.partition(".")[0]
    if isinstance(value, np.ma.MaskedArray):
        raise InputTypeError(name, "masked arrays are refused", hint="drop the masked rows first")
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):
        raise InputTypeError(name, "sparse containers are refused", hint="pass .toarray()")
    if module == "dask" or type(value).__name__ == "LazyFrame":
        advice = "pass .compute() or .collect()"
        raise InputTypeError(name, "lazy containers are refused", hint=advice)
    if any(dtype.startswith("Sparse") for dtype in dtypes_of(value)):
        raise InputTypeError(name, "sparse columns are refused", hint="pass .sparse.to_dense()")
    if isinstance(value, str | bytes | dict | set) or not (
        hasattr(value, "__array__") or hasattr(value, "__dlpack__") or hasattr(value, "__len__")
    ):
        raise InputTypeError(name, f"must be an array, no {type(value).__name__}", value=value)


def as_real(name: str, value: Any, what: str = "must be real numbers") -> NDArray[Any]:
    """Read a container of integers, bools or floats that float64 can hold."""
    array = as_array(name, value)
    if array.ndim and len(array) > MOST_ROWS:
        raise InputError(name, f"must have at most {MOST_ROWS} rows", value=len(array))
    if array.dtype.kind == "V" and array.dtype.name == "bfloat16":  # of ml_dtypes, as in jax
        return array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        rule = f"{what}, got dtype {array.dtype}"
        is_bad = elementwise(lambda x: not isinstance(x, Real))
        refuse_where(name, rule, array, is_bad, error=InputTypeError)
        raise InputTypeError(name, rule)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # what float64 cannot hold is refused as infinite
            array = array.astype(np.float64)
    return array


def as_weights(value: Any, n: int, name: str = "sample_weight") -> F64 | None:
    """Read finite weights (n,), not negative and not all 0, or None."""
    if value is None:
        return None
    array = as_real(name, value)
    if array.shape != (n,):
        rule = f"must have shape ({n},) as {{y_prob}} has rows, got {array.shape}"
        raise InputError(name, rule)
    low, high = find_extremes(array)
    if not (low >= 0 and high < math.inf):
        refuse_infinite(name, array)
        refuse_where(name, "must not be negative", array, lambda part: part < 0)
    if high == 0:
        raise InputError(name, "the weights must not all be 0")
    return contiguous(array, np.float64)


def contiguous(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return a C-contiguous, writable array of a dtype; copy only if necessary.

    Kernels are compiled for each combination.
    """
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.writeable else array.copy()


def as_blocks(c: U8, n: int, width: int) -> U8:
    """Read counts (G, n, width) of n rows, as kernels take them unchecked."""
    if c.shape[1:] != (n, width):
        raise InputError("c", f"must have {n} rows of {width} counts, got {c.shape[1:]}")
    return contiguous(c, np.uint8)


def row_slices(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield slices of the rows with their first row, each small enough for the cache."""
    step = max(1, SLICE * len(array) // max(array.size, 1))
    for start in range(0, len(array), step):
        yield start, array[start : start + step]


def find_extremes(array: NDArray[Any]) -> tuple[float, float]:
    """Find the smallest and the largest entry; nan if there is one."""
    lows, highs = zip(*((part.min(), part.max()) for _, part in row_slices(array)), strict=True)
    return float(np.min(lows)), float(np.max(highs))


def refuse_where(
    name: str, rule: str, array: NDArray[Any], is_bad: Rule, hint: str = "",
    error: type[InputError] | type[InputTypeError] = InputError,
) -> None:  # fmt: skip
    """Raise the error of the first entry that is bad, if there is one."""
    for start, part in row_slices(array):
        bad = is_bad(part)
        if bad.any():
            row, *column = (int(i) for i in np.argwhere(bad)[0])
            later = (is_bad(part) for _, part in row_slices(array[start:]))
            rows = sum(int(b.reshape(len(b), -1).any(1).sum()) for b in later)
            index, value = (start + row, *column), part[(row, *column)]
            raise error(name, rule, index=index, value=value, hint=hint, rows=rows)


def refuse_infinite(name: str, array: NDArray[Any]) -> None:
    """Raise the error of the first entry that is nan or infinite, if there is one."""
    refuse_where(name, "must be finite", array, lambda part: ~np.isfinite(part))


def elementwise(rule: Callable[[Any], bool]) -> Rule:
    """Turn a rule about one object into a rule about an array of them."""
    return lambda array: np.array([rule(x) for x in array.flat], bool).reshape(array.shape)


def is_text(value: Any) -> bool:
    """Decide whether this is a string."""
    return isinstance(value, str | bytes)


def are_whole(array: NDArray[Any]) -> bool:
    """Decide whether the first numbers are integers, as labels are."""
    return bool((array[:SLICE] == np.trunc(array[:SLICE])).all())
