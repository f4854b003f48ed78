"""Containers of numbers as numpy arrays, probabilities and logits among them.

`as_array` reads any accepted container, `as_real` numbers, `as_probabilities` probabilities or
logits; the functions named check and refuse look at their values. An error names the argument, the
rule, the first offending index and its value. Checks run over slices of the rows that fit into the
cache.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import Hint, InputError, InputTypeError, RowsWarning, warn
from fastece.kernels.types import F64, U8

# Entries that are looked at together: they stay in cache, so that a second look costs nothing.
SLICE = 2**16
# Kernels count rows in 32 bits.
MAX_ROWS = 2**31 - 1
# float32 softmax exceeds 1 by a few 1e-7; values outside by no more than this are clipped.
TOLERANCE = 1e-6
# float64 scalars, so that a float32 array is compared as the float64 that it equals.
LOWEST = np.float64(-TOLERANCE)
HIGHEST = np.float64(1 + TOLERANCE)
# Rows of a class vector further than this from summing to 1 are worth a warning.
ROW_SUM_TOLERANCE = 1e-3
# Twice the relative rounding of the short floats: a softmax rounds its divisor and its quotient.
SHORT_FLOATS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
# Rounding of an entry below the normal numbers of float16, in addition.
HALF_ROUNDING = 2.0**-25
# From this many rows on, logits that all lie in [0, 1] are a warning: ten standard normal ones do
# so with a probability of 2e-5.
MIN_ROWS_FOR_WARNING = 10
# Numbers up to it may be tiers, such as 1 to 5, and larger ones may be percentages.
MAX_TIER = 10
PERCENTAGES = "percentages: {percent}"
LOG_PROBABILITIES = "log-probabilities: np.exp of them"
# The largest number that is not infinite as a float64.
LARGEST_FLOAT = float(np.finfo(np.float64).max)
# Percents in a shorter float than float32 are divided as float64, which adds no rounding.
MIN_BYTES_OF_FLOAT = 4
# Two indexes that share more of their labels name the same rows. An index made anew, from 0, shares
# no more with the index of a random part of a table than the size of that part, up to 9 folds of
# 10.
MIN_SHARED = 0.9
# Ends of a prefix that the names of several columns share.
SEPARATORS = {*"_-.:/ "}
DIGITS = "0123456789"
# Attributes of pandas' intervals, periods, and times with a zone.
ATTRIBUTES_OF_LABELS = ("closed", "start_time", "isoformat")
# Which entries of an array break a rule.
Rule = Callable[[NDArray[Any]], NDArray[np.bool_]]


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Read any accepted container as a numpy array, where possible without a copy."""
    if type(value) is np.ndarray:
        return value
    is_tensor = hasattr(value, "detach") and hasattr(value, "resolve_neg")
    if not is_tensor:  # a tensor has nothing that is refused
        refuse_container(name, value)
    try:
        if is_tensor:
            return array_of_tensor(value)
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        array = np.asarray(value)
        has_missing = array.dtype == object and hasattr(value, "isna")
        has_labels = has_missing and any(map(is_label, array.flat))
        if has_missing and "object" not in dtypes_of(value) and not has_labels:
            # numbers of pandas, some of which are missing
            array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, RuntimeError, BufferError, LookupError) as error:
        raise InputError(name, f"cannot be read as a numeric array: {error}") from error
    return array


def array_of_tensor(tensor: Any) -> NDArray[Any]:
    """Read a tensor on any device; on the host, without a gradient, it is not copied.

    Most tensors are such, and torch refuses all others. To ask torch for all steps at once takes
    2 us a tensor, and twice that where other work has just run.
    """
    array: NDArray[Any]
    try:
        array = tensor.numpy()
    except (TypeError, RuntimeError):
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        if str(tensor.dtype) == "torch.bfloat16":  # numpy has none; every one is a float32
            tensor = tensor.float()
        array = tensor.numpy()
    return array


def dtypes_of(value: Any) -> list[str]:
    """Return the dtypes of a frame's columns, or the dtype of another container."""
    is_frame = getattr(value, "ndim", 1) == 2 and hasattr(value, "dtypes")
    return [str(t) for t in (value.dtypes if is_frame else [getattr(value, "dtype", "")])]


def refuse_container(name: str, value: Any) -> None:
    """Refuse containers whose missing or implied entries would have to be guessed."""
    module = type(value).__module__.partition(".")[0]
    if isinstance(value, np.ma.MaskedArray):
        masked = np.argwhere(np.ma.getmaskarray(value))
        if masked.size:
            index = tuple(map(int, masked[0]))
            raise InputTypeError(
                name, "masked entries are refused", index=index, value=value[index],
                hint="drop these rows first",
            )  # fmt: skip
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
    if array.ndim and len(array) > MAX_ROWS:
        raise InputError(name, f"must have at most {MAX_ROWS} rows", value=len(array))
    if array.dtype.kind == "V" and array.dtype.name == "bfloat16":  # of ml_dtypes, as in jax
        return array.astype(np.float32)
    if array.dtype.kind == "O":
        array = numbers_of_objects(name, array)
    if array.dtype.kind not in "fiub":
        rule = f"{what}, got dtype {array.dtype}"
        is_bad = elementwise(lambda x: not is_plain_number(x))
        refuse_where(name, rule, array, is_bad, error=InputTypeError)
        raise InputTypeError(name, rule)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # what float64 cannot hold is refused as infinite
            array = array.astype(np.float64)
    return array


def numbers_of_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Turn objects that are all numbers, or rows of as many numbers, into an array.

    Columns of pandas hold objects where a missing value was dropped, of decimal numbers, and of
    lists. Other objects stay as they are.
    """
    entries = array.ravel().tolist()
    if (
        array.ndim == 1
        and entries
        and all(isinstance(x, list | tuple | np.ndarray) for x in entries)
    ):
        n_first = len(entries[0])
        rule = f"must be rows of {n_first} numbers, as the first one is"
        refuse_where(name, rule, array, elementwise(lambda x: len(x) != n_first))
        return as_real(name, np.array(entries))
    if all(isinstance(x, bool | np.bool_) for x in entries):
        return array.astype(np.bool_)
    are_numbers = all(map(is_plain_number, entries))
    return array.astype(np.float64) if are_numbers else array


def is_plain_number(entry: Any) -> bool:
    """Return whether an object is a number that float64 holds, and is not missing."""
    is_number = isinstance(entry, Real | Decimal | np.bool_)
    if not is_number or isinstance(entry, np.timedelta64):
        return False
    number: Any = entry
    is_missing = number != number
    return not is_missing and bool(abs(number) <= LARGEST_FLOAT)


def as_row_numbers(name: str, value: Any, n: int) -> NDArray[Any]:
    """Read a number for each of n rows."""
    array = as_real(name, value)
    if array.shape != (n,):
        rule = f"must have shape ({n},) as {{y_prob}} has rows, got {array.shape}"
        raise InputError(name, rule)
    return array


def as_weights(value: Any, n: int, name: str = "sample_weight") -> F64 | None:
    """Read finite weights (n,), not negative and not all 0, or None."""
    if value is None:
        return None
    array = as_row_numbers(name, value, n)
    low, high = find_extremes(array)
    if not (low >= 0 and high < math.inf):
        refuse_infinite(name, array)
        refuse_where(name, "must not be negative", array, lambda part: part < 0)
    if high == 0:
        raise InputError(name, "must not all be 0")
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
    name: str, rule: str, array: NDArray[Any], is_bad: Rule, hint: Hint = "",
    error: type[InputError] | type[InputTypeError] = InputError,
) -> None:  # fmt: skip
    """Raise the error of the first entry that is bad, if there is one."""
    for start, part in row_slices(array):
        bad = is_bad(part)
        if bad.any():
            row, *column = (int(i) for i in np.argwhere(bad)[0])
            raise error(
                name, rule, index=(start + row, *column), value=part[(row, *column)], hint=hint,
                rows=count_bad_rows(array[start:], is_bad),
            )  # fmt: skip


def count_bad_rows(array: NDArray[Any], is_bad: Rule) -> int:
    """Count the rows with a bad entry."""
    parts = (is_bad(part) for _, part in row_slices(array))
    return sum(int(bad.reshape(len(bad), -1).any(1).sum()) for bad in parts)


def refuse_infinite(name: str, array: NDArray[Any], hint: Hint = "") -> None:
    """Raise the error of the first entry that is nan or infinite, if there is one."""
    refuse_where(name, "must be finite", array, lambda part: ~np.isfinite(part), hint)


def elementwise(rule: Callable[[Any], bool]) -> Rule:
    """Turn a rule about one object into a rule about an array of them."""
    return lambda array: np.array([rule(x) for x in array.flat], bool).reshape(array.shape)


def is_text(value: Any) -> bool:
    """Decide whether this is a string."""
    return isinstance(value, str | bytes)


def is_label(value: Any) -> bool:
    """Decide whether this is a string, or an interval, a period or a time of pandas."""
    return is_text(value) or any(hasattr(value, name) for name in ATTRIBUTES_OF_LABELS)


def are_whole(array: NDArray[Any]) -> bool:
    """Decide whether the first entries are numbers without a fraction, as labels are."""
    if array.dtype.kind not in "fiub":
        return False
    return bool((array[:SLICE] == np.trunc(array[:SLICE])).all())


# --- probabilities and logits ------------------------------------------------------------------


def as_probabilities(value: Any, name: str = "y_prob") -> NDArray[Any]:
    """Read probabilities or logits (n,) or (n, K), their values not yet checked."""
    array = as_real(name, value)
    if array.ndim not in (1, 2):
        hint: Hint = ""
        if array.ndim > 2:
            hint = (
                hint_of_list(name, array.shape),
                "for classes on axis 1 pass {class_axis_1}",
                f"pass np.moveaxis({name}, 1, -1).reshape(-1, {array.shape[1]}), and labels in one "
                "dimension",
                f"for labels of this shape pass np.ravel({{y_true}}) and np.ravel({name})",
            )
        raise InputError(name, f"must have 1 or 2 dimensions, got shape {array.shape}", hint=hint)
    if array.size == 0:
        raise InputError(name, f"is empty, shape {array.shape}")
    if array.ndim == 2 and array.shape[1] == 1:
        rule = f"one column, shape {array.shape}, is neither P(positive) nor a class vector"
        raise InputError(name, rule, hint=f"pass {name}[:, 0] for P(positive)")
    return array


def hint_of_list(name: str, shape: tuple[int, ...]) -> str:
    """Return a hint where arrays (n, 2) of yes/no tasks may come as a list."""
    if len(shape) != 3 or shape[2] != 2:
        return ""
    return f"for a list of arrays (n, 2) pass np.stack([q[:, 1] for q in {name}], 1) with {{tasks}}"


def without_shared_column(name: str, y_prob: Any, y_true: Any) -> Any:
    """Return predictions (n, 1) beside labels (n, 1) as (n,).

    Losses of one yes/no output take both so. Others stay: a column beside labels (n,) may be a
    mistake.
    """
    shape = getattr(y_prob, "shape", None) or as_array(name, y_prob).shape
    if shape[1:] == (1,) and as_array("y_true", y_true).shape == shape:
        return as_array(name, y_prob)[:, 0]
    return y_prob


def without_single_column(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array (n, 1) as (n,), and any other as it is."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def as_percents(value: Any, name: str = "y_prob") -> NDArray[Any]:
    """Read percents (n,) or (n, K) as probabilities; texts may have a sign %."""
    array = as_array(name, value)
    if array.dtype.kind in "OUST":
        array = numbers_of_texts(name, array)
    percents = as_probabilities(array, name)
    is_short = percents.dtype.itemsize < MIN_BYTES_OF_FLOAT
    shares: NDArray[Any] = percents.astype(np.float64 if is_short else percents.dtype) / 100
    return shares


def numbers_of_texts(name: str, array: NDArray[Any]) -> F64:
    """Read numbers of which some are texts, without their sign %."""
    numbers = np.empty(array.shape)
    for index, entry in np.ndenumerate(array):
        text = entry.decode() if isinstance(entry, bytes) else entry
        if isinstance(text, str):
            text = text.strip().removesuffix("%")
        try:
            numbers[index] = float(text)
        except (TypeError, ValueError) as error:
            raise InputTypeError(
                name, "must be percents", index=index, value=array[index]
            ) from error
    return numbers


def column_names(value: Any) -> list[str]:
    """Return the names of the columns of a data frame as text.

    The list is empty for anything else, and for names that only count from 0, such as 0, 1, 2 or
    p_0, p_1, p_2.
    """
    texts = all_column_names(value)
    return texts if texts and first_number(texts) != 0 else []


def all_column_names(value: Any) -> list[str]:
    """Return the names of the columns of a data frame as text; none for anything else."""
    names = getattr(value, "column_names", getattr(value, "columns", ()))  # first: pyarrow's
    return [] if callable(names) else [label_text(name) for name in names]


def without_prefix(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield names as they are, then without prefixes that all share: prob_cat is cat."""
    yield [*names]
    for cut in range(1, min(map(len, names), default=0)):
        if len({name[:cut] for name in names}) > 1:
            return
        if len(names) > 1 and names[0][cut - 1] in SEPARATORS:
            yield [name[cut:] for name in names]


def class_names(columns: Sequence[str]) -> list[str] | None:
    """Return names of columns to show for class indices; None for a mere count."""
    if not columns or first_number(columns) is not None:
        return None
    *_, names = without_prefix(columns)
    return names


def index_of(*values: Any) -> Any:
    """Return the index of the first series or frame of pandas; None without one."""
    indexes = (getattr(value, "index", None) for value in values)
    return next((index for index in indexes if hasattr(index, "isin")), None)


def warn_of_index(name: str, value: Any, index: Any) -> None:
    """Warn of an index that names the rows of `index` in another order.

    Indexes that share few labels, or have another number of levels, are read by position.
    """
    other = index_of(value)
    if index is other or index is None or other is None:
        return
    if len(index) != len(other) or index.nlevels != other.nlevels or index.equals(other):
        return
    shared = min(index.isin(other).mean(), other.isin(index).mean())
    if shared <= MIN_SHARED:
        return
    rule = "has the index of the labels in another order, and rows are read as they come"
    if shared < 1:
        rule = (
            f"has an index that shares {100 * shared:.3g} % of its labels with the other rows, and "
            "rows are read as they come"
        )
    warn(name, rule, hint="put both in one order with .loc", kind=RowsWarning)


def label_text(label: Any) -> str:
    """Write a label or a column's name as text: 1.0 is "1"."""
    is_whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label) if is_whole else label)


def numbers_of(names: Sequence[str]) -> list[int] | None:
    """Find the numbers that end all names after one word, as p_1, p_2; else None."""
    word, *others = {name.rstrip(DIGITS) for name in names}
    ends = [name[len(word) :] for name in names]
    return None if others or "" in ends else list(map(int, ends))


def first_number(names: Sequence[str]) -> int | None:
    """Find the first number of names that count up, such as "p0", "p1", else None."""
    numbers = numbers_of(names)
    if numbers is None:
        return None
    first = numbers[0]
    return first if numbers == list(range(first, first + len(numbers))) else None


def check_order_of_numbers(
    label_columns: Sequence[str], columns: Sequence[str], prob_name: str
) -> None:
    """Refuse columns of labels that are numbered in another order than predictions."""
    if order_of_numbers(label_columns) != order_of_numbers(columns):
        listed = list(columns or label_columns)
        rule = f"must have its columns in the order of {prob_name}'s, one has {listed!r:.200}"
        raise InputError("y_true", rule, hint="put both in the order of their numbers")


def order_of_numbers(names: Sequence[str]) -> list[int]:
    """Find the order that sorts the numbers of columns; empty if they are sorted."""
    numbers = numbers_of(names) if names else None
    if numbers is None or numbers == sorted(numbers):
        return []
    return [int(k) for k in np.argsort(numbers)]


def row_sum_tolerance(value: Any, array: NDArray[Any]) -> float:
    """Return the tolerance for sums of rows, by the dtype they were read from."""
    kind = array.dtype.char
    # A bfloat16 is read as float32. Arrays of float32 are spared the text of a dtype, 3 us.
    may_be_short = kind == "e" or (kind == "f" and array is not value)
    if not may_be_short:
        return ROW_SUM_TOLERANCE
    dtype = str(getattr(value, "dtype", array.dtype)).rpartition(".")[2]
    if dtype not in SHORT_FLOATS:
        return ROW_SUM_TOLERANCE
    return float(ROW_SUM_TOLERANCE + SHORT_FLOATS[dtype] + HALF_ROUNDING * array.shape[-1])


def check_probabilities(
    array: NDArray[Any], from_logits: bool, name: str, tolerance: float
) -> bool:
    """Check probabilities or logits; return whether some have to be clipped."""
    if from_logits:
        rule = "logits must be finite or -inf"
        refuse_where(name, rule, array, lambda part: ~(part < math.inf), hint_of_gaps(name, array))
        if array.ndim == 2:
            rule = "a row of logits must not be all -inf"
            refuse_where(name, rule, array, lambda z: (z == -math.inf).all(axis=1, keepdims=True))
        return False
    low, high, off = scan_rows(array, tolerance)
    if not (low >= LOWEST and high <= HIGHEST):
        refuse_infinite(name, array, hint_of_gaps(name, array))
        rule = f"probabilities must lie in [0, 1] (tolerance {TOLERANCE:g})"
        hint = hint_at(array)
        refuse_where(name, rule, array, lambda p: (p < LOWEST) | (p > HIGHEST), hint)
    if off.size:
        total = float(array[off[0]].sum(dtype=np.float64))
        rule = f"{off.size} of {len(array)} rows do not sum to 1 (tolerance {tolerance:.2g})"
        rule += f"; the first is {name}[{off[0]}] with sum {total!r}"
        warn(name, rule, kind=RowsWarning)
    return low < 0 or high > 1


def hint_of_gaps(name: str, array: NDArray[Any]) -> str:
    """Return a hint that leaves out rows without a forecast, if there are some."""
    if not np.isnan(array).any():
        return ""
    of_row = ".any(1)" if array.ndim > 1 else ""
    rows = f"{{y_true}}[keep] and {{{name}}}[keep]"
    return f"rows without a forecast: {{keep}} ~np.isnan({{{name}}}){of_row}, then pass {rows}"


def scan_rows(p: NDArray[Any], tolerance: float) -> tuple[float, float, NDArray[np.intp]]:
    """Find the extremes, and the rows (of K) that do not sum to 1, in one pass."""
    if p.ndim == 1:
        return *find_extremes(p), np.empty(0, np.intp)
    ones = np.ones(p.shape[1], p.dtype if p.dtype.char in "fd" else np.float64)
    lows = []
    highs = []
    rows_off = []
    with np.errstate(invalid="ignore", over="ignore"):  # refused later, with a message
        for start, part in row_slices(p):
            lows.append(part.min())
            highs.append(part.max())
            rows_off.append(start + np.flatnonzero(np.abs(part @ ones - 1) > tolerance))
    return float(np.min(lows)), float(np.max(highs)), np.concatenate(rows_off)


def hint_at(p: NDArray[Any]) -> Hint:
    """Guess the meaning of finite numbers that are not probabilities."""
    low, high = find_extremes(p)
    if p.ndim == 2:
        sums = p[:100].sum(axis=1, dtype=np.float64)
        is_percent = low >= 0 and high <= 100 and bool(np.allclose(sums, 100, atol=1))
    else:
        is_percent = low >= 0 and MAX_TIER < high <= 100
    if p.ndim == 1 and are_whole(p):
        percents = [PERCENTAGES] if is_percent else []
        return ("it looks like labels: {first} comes first", *percents)
    if p.ndim == 2:
        is_logit = low < LOWEST or high > 2
    else:
        is_logit = low < 0 < high and (low < -1 or high > 1)
    if p.ndim == 1 and high <= 0:
        return LOG_PROBABILITIES
    if is_percent:
        # Decimal odds are 1 or more.
        return PERCENTAGES if p.ndim == 2 or low < 1 else f"{PERCENTAGES}; decimal odds: 1 / odds"
    return "logits: {from_logits}" if is_logit else ""


def warn_if_probabilities(z: NDArray[Any], tolerance: float, name: str = "y_prob") -> None:
    """Warn of logits that all lie in [0, 1], in rows that sum to 1.

    Logits that are all equal cause no warning. The first few rows nearly always decide. One column
    of log-probabilities has no positive number, and most of them are above log(1/2), as logits
    hardly ever are.
    """
    if len(z) < MIN_ROWS_FOR_WARNING:
        return
    if z.ndim == 1 and z.min() < z.max() <= 0 and np.median(z) > math.log(0.5):
        rule = "no value is above 0, and most probabilities would be from 1/3 to 1/2"
        warn(name, rule, hint=LOG_PROBABILITIES, kind=RowsWarning)
        return
    for rows in (z[:MIN_ROWS_FOR_WARNING], z):
        low, high, off = scan_rows(rows, tolerance)
        if not (low >= 0 and high <= 1) or off.size:
            return
    if low < high:
        sums = " and rows sum to 1" if z.ndim == 2 else ""
        rule = f"all values are in [0, 1]{sums}: probabilities, but {{from_logits}}?"
        warn(name, rule, kind=RowsWarning)


def are_logits(p: NDArray[Any], name: str = "y_prob") -> bool:
    """Decide whether a number is outside [0, 1]; some libraries then assume logits.

    Warn if that may be due to rounding.
    """
    low, high = find_extremes(p)
    outside = low < 0 or high > 1
    if outside and low >= LOWEST and high <= HIGHEST:
        rule = f"goes from {low!r} to {high!r}: taken for logits, since [0, 1] does not hold it"
        hint = "clip probabilities to [0, 1]"
        warn(name, f"{rule}, but rounding may be the reason", hint=hint)
    return outside
