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
STATES_PER_TASK = 8


def from_dask(
    y_true: Any, y_prob: Any, *, n_classes: int | None = None, sample_weight: Any = None,
    groups: Any = None, counts: Any = None, labels: Any = None, pos_label: Any = None,
    ignore_label: Any = None, **options: Any,
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
    sample_weight, groups, counts : dask array or series, shape (n,), optional
        Weights, groups and counts of the rows.
    labels, pos_label, ignore_label : optional
        As in `Accumulator.update`, for all blocks.
    **options
        Options of `Accumulator`: `setting`, `n_cells`, `n_replicates`, `seed`, `from_logits`.

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
    >>> from fastece import ece
    >>> from fastece.streams import from_dask
    >>> y_true = da.from_array([0, 1, 1, 0], chunks=2)
    >>> y_prob = da.from_array([0.2, 0.6, 0.9, 0.4], chunks=3)
    >>> state = from_dask(y_true, y_prob)
    >>> state.n, round(ece(state, n_bins=10), 3)
    (4, 0.275)
    """
    import dask

    Accumulator(n_classes, **options)  # bad options are refused here and not by a worker
    columns = {
        "y_true": y_true,
        "y_prob": y_prob,
        "sample_weight": sample_weight,
        "groups": groups,
        "counts": counts,
    }
    arrays = {name: as_dask_array(name, x) for name, x in columns.items() if x is not None}
    needs_rows = options.get("n_replicates", 0) > 0 and groups is None
    arrays = align(arrays, needs_rows)
    blocks = {name: blocks_of(array) for name, array in arrays.items()}
    reading = {"labels": labels, "pos_label": pos_label, "ignore_label": ignore_label}
    count = dask.delayed(count_batch, pure=False)
    states = []
    first_row = 0
    for i, size in enumerate(arrays["y_prob"].chunks[0]):
        batch = {name: blocks_of_column[i] for name, blocks_of_column in blocks.items()}
        states.append(count(batch, f"block {i}", first_row, n_classes, options, reading))
        if needs_rows:
            first_row += size
    total: Accumulator = add_in_tree(states).compute()
    return total


def add_in_tree(states: list[Any]) -> Any:
    """Add delayed states up in tasks of some states each, until one is left."""
    import dask

    add = dask.delayed(merge_all, pure=False)
    while len(states) > 1:
        states = [
            add(states[i : i + STATES_PER_TASK]) for i in range(0, len(states), STATES_PER_TASK)
        ]
    return states[0]


def as_dask_array(name: str, value: Any) -> Any:
    """Return a dask array with all columns of a row in one block."""
    import dask
    import dask.array as da

    if hasattr(value, "to_dask_array"):  # which would make objects of strings and nullable numbers
        read = dask.delayed(as_array, pure=False)
        blocks = [read(name, block) for block in value.to_delayed()]
        value = array_of(blocks, [math.nan] * len(blocks), value.shape[1:])
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

    n_blocks = {array.numblocks[0] for array in arrays.values()}
    is_unknown = [math.isnan(array.shape[0]) for array in arrays.values()]
    if all(is_unknown) and len(n_blocks) == 1 and not needs_rows:
        return arrays  # in pairs; `update` refuses two blocks of different lengths
    if any(is_unknown):
        blocks = {name: blocks_of(array) for name, array in arrays.items()}
        lengths = {name: [dask.delayed(len)(x) for x in column] for name, column in blocks.items()}
        # All at once, so that the data that they come from are made once.
        (sizes,) = dask.compute(lengths)
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
    n_classes: int | None = None, labels: Any = None, pos_label: Any = None,
    ignore_label: Any = None, **options: Any,
) -> Accumulator:  # fmt: skip
    """Count all rows of batches with the workers of a pool.

    Parameters
    ----------
    batches : iterable of tuples
        `(y_true, y_prob)`, `(y_true, y_prob, sample_weight)` or
        `(y_true, y_prob, sample_weight, groups)`, as `Accumulator.update` takes them.
    executor : concurrent.futures.Executor, optional
        A pool of threads or processes, or any object with `submit`; without it, the caller's
        thread. It is left open. Twice as many batches as the machine has cores are in memory at a
        time.
    n_classes : int, optional
        K for class vectors of shape (n, K).
    labels, pos_label, ignore_label : optional
        As in `Accumulator.update`, for all batches.
    **options
        Options of `Accumulator`: `setting`, `n_cells`, `n_replicates`, `seed`, `from_logits`.

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
    >>> from fastece import ece
    >>> from fastece.streams import from_batches
    >>> batches = [([0, 1], [0.2, 0.6]), ([1, 0], [0.9, 0.4])]
    >>> with ThreadPoolExecutor(2) as pool:
    ...     state = from_batches(batches, executor=pool)
    >>> state.n, round(ece(state, n_bins=10), 3)
    (4, 0.275)
    """
    reading = {"labels": labels, "pos_label": pos_label, "ignore_label": ignore_label}
    total = Accumulator(n_classes, **options)
    pending: deque[Future[Accumulator]] = deque()
    max_pending = 2 * (os.cpu_count() or 1)
    first_row = 0
    try:
        for i, batch in enumerate(batches):
            columns = name_columns(batch, i)
            work = (columns, f"batch {i}", first_row, n_classes, options, reading)
            first_row += len(batch[0])
            if executor is None:
                total.merge(count_batch(*work))
                continue
            pending.append(executor.submit(count_batch, *work))
            if len(pending) >= max_pending:
                total.merge(pending.popleft().result())
        while pending:
            total.merge(pending.popleft().result())
    finally:
        for future in pending:
            future.cancel()
    return total


def name_columns(batch: tuple[Any, ...], index: int) -> dict[str, Any]:
    """Return the columns of a batch by name, or refuse too few or too many of them."""
    if not 2 <= len(batch) <= len(COLUMNS):
        rule = f"must be tuples of {', '.join(COLUMNS)}, the last two optional"
        raise InputError("batches", rule, index=index, value=f"a tuple of {len(batch)}")
    return dict(zip(COLUMNS, batch, strict=False))


def count_batch(
    columns: dict[str, Any],
    place: str,
    first_row: int,
    n_classes: int | None,
    options: dict[str, Any],
    reading: dict[str, Any],
) -> Accumulator:
    """Count the rows of one batch, whose first row has the number `first_row`.

    An error has a note with the place of the batch.
    """
    try:
        state = Accumulator(n_classes, **options)
        return state.update(**columns, row_offset=first_row, **reading)
    except (ValueError, TypeError) as error:
        error.add_note(f"in {place}")
        raise


def merge_all(states: list[Accumulator]) -> Accumulator:
    """Add states up in a new one, and leave them unchanged for a task that reruns."""
    return reduce(Accumulator.merge, states[1:], states[0].copy())
