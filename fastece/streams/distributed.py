"""Streams counted by many workers, whose states are added up.

Which worker counts which rows, and in which order the states are added, changes no bit.
"""

import math
import os
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future
from functools import reduce
from typing import Any

from fastece.data.containers import as_array
from fastece.data.errors import InputError, InputTypeError
from fastece.streams.accumulator import Accumulator

COLUMNS = ("y_true", "y_prob", "sample_weight", "groups")
# States that one task adds up: more would wait for each other, fewer would travel more often.
FAN_IN = 8


def from_dask(
    y_true: Any, y_prob: Any, *, n_classes: int | None = None, sample_weight: Any = None,
    groups: Any = None, **options: Any,
) -> Accumulator:  # fmt: skip
    """Count all rows of dask collections with the active scheduler.

    Parameters
    ----------
    y_true : dask array or series, shape (n,)
        Labels, as `Accumulator.update` takes them.
    y_prob : dask array, series or frame, shape (n,) or (n, K)
        Probabilities. All columns of a row come to one worker.
    n_classes : int, optional
        K for class vectors of shape (n, K).
    sample_weight, groups : dask array or series, shape (n,), optional
        Weights and groups of the rows.
    **options
        Of `Accumulator`: `setting`, `n_cells`, `n_replicates`, `seed`, `from_logits`.

    Returns
    -------
    Accumulator
        The same bits as from one `update` with all rows.

    Raises
    ------
    TypeError
        An argument is not a dask collection.
    ValueError
        Collections have different numbers of rows, or some rows break a rule of
        `Accumulator.update`: the block is named in a note of the error.

    Notes
    -----
    Each block is one task: `update` of an empty state. Tasks that add eight states each lead to
    the answer, so no worker holds more than some blocks and some states. If a worker dies, dask
    runs its tasks again, and as no task changes the result of another, every row counts once.

    Blocks need not agree: they are cut again, like the blocks of `y_prob`. Blocks of a frame have
    unknown numbers of rows. These are computed first, which reads the data once more, if replicates
    need the positions of the rows or if the blocks cannot be paired.

    Examples
    --------
    >>> import dask.array as da
    >>> from fastece.streams.distributed import from_dask
    >>> y_true = da.from_array([0, 1, 1, 0], chunks=2)
    >>> y_prob = da.from_array([0.2, 0.6, 0.9, 0.4], chunks=3)
    >>> state = from_dask(y_true, y_prob)
    >>> state.n, round(state.ece(n_bins=10), 3)
    (4, 0.275)
    """
    import dask

    Accumulator(n_classes, **options)  # what is wrong with them is said here, not by a worker
    given = dict(zip(COLUMNS, (y_true, y_prob, sample_weight, groups), strict=True))
    arrays = {name: as_dask_array(name, x) for name, x in given.items() if x is not None}
    needs_rows = options.get("n_replicates", 0) > 0 and groups is None
    arrays = align(arrays, needs_rows)
    blocks = {name: blocks_of(array) for name, array in arrays.items()}
    count, add = dask.delayed(state_of, pure=False), dask.delayed(merged, pure=False)
    states, start = [], 0
    for i, size in enumerate(arrays["y_prob"].chunks[0]):
        columns = {name: parts[i] for name, parts in blocks.items()}
        states.append(count(columns, f"block {i}", start, n_classes, options))
        start += size if needs_rows else 0
    while len(states) > 1:
        states = [add(states[i : i + FAN_IN]) for i in range(0, len(states), FAN_IN)]
    state: Accumulator = states[0].compute()
    return state


def as_dask_array(name: str, value: Any) -> Any:
    """Return a dask array with all columns of a row in one block."""
    import dask
    import dask.array as da

    if hasattr(value, "to_dask_array"):  # which would make objects of strings and nullable numbers
        read = dask.delayed(as_array, pure=False)
        parts = [read(name, part) for part in value.to_delayed()]
        value = array_of(parts, [math.nan] * len(parts), value.shape[1:])
    if not isinstance(value, da.Array):
        kind = type(value).__name__
        raise InputTypeError(name, f"must be a dask array, series or frame, got {kind}")
    return value.rechunk({1: -1}) if value.ndim > 1 else value


def array_of(blocks: Sequence[Any], sizes: Sequence[float], columns: tuple[int, ...]) -> Any:
    """Make a dask array of delayed blocks of these numbers of rows."""
    import dask.array as da

    pairs = zip(blocks, sizes, strict=True)
    return da.concatenate([da.from_delayed(x, (size, *columns), object) for x, size in pairs])


def align(arrays: dict[str, Any], needs_rows: bool) -> dict[str, Any]:
    """Cut the rows of all arrays at the same places."""
    import dask

    counts = {array.numblocks[0] for array in arrays.values()}
    unknown = [math.isnan(array.shape[0]) for array in arrays.values()]
    if all(unknown) and len(counts) == 1 and not needs_rows:
        return arrays  # in pairs; `update` refuses two blocks of different lengths
    if any(unknown):
        blocks = {name: blocks_of(array) for name, array in arrays.items()}
        lengths = {name: [dask.delayed(len)(x) for x in found] for name, found in blocks.items()}
        (sizes,) = dask.compute(lengths)  # all at once: what they are made from is made once
        arrays = {k: array_of(blocks[k], sizes[k], arrays[k].shape[1:]) for k in arrays}
    rows = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(rows.values())) > 1:
        raise InputError(", ".join(rows), "must have as many rows", value=[*rows.values()])
    return {name: array.rechunk({0: arrays["y_prob"].chunks[0]}) for name, array in arrays.items()}


def blocks_of(array: Any) -> list[Any]:
    """Return the blocks as delayed objects."""
    # Not optimized one by one: a common source of labels and probabilities is computed once.
    return list(array.to_delayed(optimize_graph=False).ravel())


def from_batches(
    batches: Iterable[tuple[Any, ...]], *, executor: Executor | None = None,
    n_classes: int | None = None, **options: Any,
) -> Accumulator:  # fmt: skip
    """Count all rows of batches with the workers of a pool.

    Parameters
    ----------
    batches : iterable of tuples
        `(y_true, y_prob)`, `(y_true, y_prob, sample_weight)` or
        `(y_true, y_prob, sample_weight, groups)`, as `Accumulator.update` takes them.
    executor : concurrent.futures.Executor, optional
        A pool of threads, processes or whatever has `submit`; without it, the caller's thread. It
        is left open. Twice as many batches as the machine has cores are in memory at a time.
    n_classes : int, optional
        K for class vectors of shape (n, K).
    **options
        Of `Accumulator`: `setting`, `n_cells`, `n_replicates`, `seed`, `from_logits`.

    Returns
    -------
    Accumulator
        The same bits as from one `update` with all rows.

    Raises
    ------
    ValueError, TypeError
        Some rows break a rule of `Accumulator.update`: the batch is named in a note of the error.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from fastece.streams.distributed import from_batches
    >>> batches = [([0, 1], [0.2, 0.6]), ([1, 0], [0.9, 0.4])]
    >>> with ThreadPoolExecutor(2) as pool:
    ...     state = from_batches(batches, executor=pool)
    >>> state.n, round(state.ece(n_bins=10), 3)
    (4, 0.275)
    """
    total = Accumulator(n_classes, **options)
    pending: deque[Future[Accumulator]] = deque()
    start = 0
    try:
        for i, batch in enumerate(batches):
            if not 2 <= len(batch) <= len(COLUMNS):
                rule = f"must be tuples of {', '.join(COLUMNS)}, the last two optional"
                raise InputError("batches", rule, index=i, value=f"a tuple of {len(batch)}")
            columns = dict(zip(COLUMNS, batch, strict=False))
            work = (columns, f"batch {i}", start, n_classes, options)
            start += len(batch[0])
            if executor is None:
                total.merge(state_of(*work))
                continue
            pending.append(executor.submit(state_of, *work))
            if len(pending) >= 2 * (os.cpu_count() or 1):
                total.merge(pending.popleft().result())
        while pending:
            total.merge(pending.popleft().result())
    finally:
        for future in pending:
            future.cancel()
    return total


def state_of(
    columns: dict[str, Any], place: str, start: int, n_classes: int | None, options: dict[str, Any]
) -> Accumulator:
    """Count the rows of one batch, whose first row has the number `start`."""
    try:
        return Accumulator(n_classes, **options).update(**columns, row_offset=start)
    except (ValueError, TypeError) as error:
        error.add_note(f"in {place}")
        raise


def merged(states: list[Accumulator]) -> Accumulator:
    """Add states up in a new one, and leave them unchanged for a task that reruns."""
    return reduce(Accumulator.merge, states[1:], states[0].copy())
