"""A caller's data as problems: containers, labels, weights and values, all checked.

One fast pass checks all values; where it fails, a slow check builds the message.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers
from fastece.data.axes import find_row_axes, flatten_rows
from fastece.data.counted import read_counted_arrays
from fastece.data.doubts import warn_of_contradiction
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import (
    as_labels,
    as_soft_labels,
    check_class_indices,
    hide_label,
    read_parts,
    refuse_right_or_wrong,
)
from fastece.data.options import DEFAULT_OPTIONS, ReadingOptions
from fastece.data.parameters import check_flag
from fastece.data.plain import are_plain, plain_problems
from fastece.data.samples import Vectors
from fastece.data.scores import (
    MAX_ROWS_KEPT,
    NEARLY,
    class_vectors,
    read_arrays,
    read_rows,
)
from fastece.data.separate import (
    is_separate,
    read_predicted_classes,
    read_tasks,
    refuse_soft_labels,
)
from fastece.data.table import (
    TOP_LABEL_SETTINGS,
    RowTable,
    TableMaker,
    class_count,
    find_setting,
)
from fastece.data.threads import Map
from fastece.kernels.types import F64

NO_PARTS = "goes with ece and its relatives, bootstrap, estimate and calibration_test"


def read_table(
    y_true: Any, y_prob: Any, options: ReadingOptions = DEFAULT_OPTIONS, *,
    prob_name: str = "y_prob", vectors: bool = False, guess_logits: bool = False,
    takes_parts: bool = False, run: Map = map,
) -> RowTable:  # fmt: skip
    """Read the caller's arrays as a table, or take the table of their maker.

    Parameters
    ----------
    y_true : TableMaker or array_like
        A maker of tables, such as an `Accumulator`, stands for all the arrays.
    y_prob : array_like
        As in `fastece.ece`.
    options : ReadingOptions
    prob_name : str
        The caller's name of `y_prob`, for messages.
    vectors : bool
        Whether class vectors are kept as a whole, with the setting "auto".
    guess_logits : bool
        Whether numbers outside [0, 1] are read as logits.
    takes_parts : bool
        Whether the caller answers for each group of `by` by itself.
    run : callable
        `map`, or the `map` of a pool of threads.

    Raises
    ------
    InputError, InputTypeError
        For data that are not as `fastece.ece` says, and for options beside a table.
    """
    setting = options.setting
    if options.are_plain and are_plain(y_true, y_prob):
        problems = plain_problems(y_true, y_prob, setting, options.sample_weight, vectors, run)
        if problems is not None:
            return problems
    if isinstance(y_true, TableMaker):
        refuse_options(y_true, **{prob_name: y_prob}, **options.beside_setting)
        table = y_true.table(setting)
        if table.by is not None and not takes_parts:
            raise InputError("by", NO_PARTS)
        return table
    if isinstance(setting, str) and setting in TOP_LABEL_SETTINGS:
        refuse_right_or_wrong(y_true, y_prob, prob_name, options.from_logits, options.percent)
    has_own_rows = is_separate(setting)
    if options.by is not None:
        if not takes_parts:
            raise InputError("by", NO_PARTS)
        table = read_table(
            y_true, y_prob, replace(options, by=None), prob_name=prob_name, vectors=vectors,
            guess_logits=guess_logits, run=run,
        )  # fmt: skip
        axes = table.find_axes(prob_name, y_prob)
        containers.warn_of_index("by", options.by, containers.index_of(y_true, y_prob))
        return table.replace(by=read_parts(options.by, axes), axes=axes)
    if options.class_axis is not None:
        axes = find_row_axes(prob_name, y_prob, options.class_axis)
        labels, prob, flat_options = flatten_rows(axes, y_true, y_prob, options, prob_name)
        with axes.naming_entries(prob_name):
            table = read_table(
                labels, prob, flat_options, prob_name=prob_name, vectors=vectors,
                guess_logits=guess_logits, run=run,
            )  # fmt: skip
        return table.replace(axes=axes)
    if options.counts is not None and (options.votes is not None or options.soft is not False):
        raise InputError("counts", "goes without {soft} and {votes}, as counts are of labels")
    if has_own_rows:
        index = containers.index_of(y_true, y_prob)
        containers.warn_of_index(prob_name, y_prob, index)
        containers.warn_of_index("sample_weight", options.sample_weight, index)
        rules: dict[str, Any] = {"prob_name": prob_name, "guess_logits": guess_logits, "run": run}
        if setting == "tasks":
            refuse_soft_labels(options)
            return read_tasks(partial(read_problems, **rules), y_true, y_prob, options, prob_name)
        return read_predicted_classes(
            partial(read_rows_or_table, **rules), y_true, y_prob, options, prob_name
        )
    return read_rows_or_table(
        y_true, y_prob, options, prob_name=prob_name, vectors=vectors,
        guess_logits=guess_logits, run=run,
    )  # fmt: skip


def read_rows_or_table(
    y_true: Any, y_prob: Any, options: ReadingOptions, prob_name: str = "y_prob",
    vectors: bool = False, guess_logits: bool = False, run: Map = map,
) -> RowTable:  # fmt: skip
    """Read rows that count once, or several times where there are counts."""
    read = read_problems if options.counts is None else read_counted
    return read(y_true, y_prob, options, prob_name, vectors, guess_logits, run)


def refuse_options(table: TableMaker, **options: Any) -> None:
    """Refuse options that only arrays have, unless they are None or False."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputTypeError(name, f"goes with arrays, and here is {table!r}")


def read_counted(
    y_true: Any, y_prob: Any, options: ReadingOptions, prob_name: str = "y_prob",
    vectors: bool = False, guess_logits: bool = False, run: Map = map,
) -> RowTable:  # fmt: skip
    """Check a table whose rows count several times, and read it.

    The parameters are as in `read_table`. Counts of events become rows with labels.
    """
    table = read_counted_arrays(y_true, y_prob, options, prob_name)
    with table.naming_rows():
        problems = read_problems(
            table.y_true, table.y_prob, replace(options, sample_weight=table.sample_weight),
            prob_name, vectors, guess_logits, run,
        )  # fmt: skip
    return problems.replace(c=table.counts[problems.positions], origin=table.origin)


def read_problems(
    y_true: Any, y_prob: Any, options: ReadingOptions = DEFAULT_OPTIONS,
    prob_name: str = "y_prob", vectors: bool = False, guess_logits: bool = False, run: Map = map,
) -> RowTable:  # fmt: skip
    """Check the caller's data and read them as problems, each row once.

    Rows of weight 0 and rows of the ignored label are dropped. The parameters are as in
    `read_table`. A row with a soft label becomes several rows, with a label each.
    """
    from_logits = check_flag("from_logits", options.from_logits)
    is_soft = check_flag("soft", options.soft) or options.votes is not None
    scores = containers.without_shared_column(prob_name, y_prob, y_true)
    if check_flag("percent", options.percent):
        if from_logits:
            raise InputError("percent", "goes without {from_logits}")
        prob = containers.as_percents(scores, prob_name)
    else:
        prob = containers.as_probabilities(scores, prob_name)
    chosen = find_setting(options.setting, prob.shape)
    n_rows = len(prob)
    n_classes = class_count(prob.shape)
    columns = containers.column_names(scores)
    names = containers.class_names(columns)
    order = None
    is_ignored = None
    if is_soft and options.ignore_label is not None:
        raise InputError("ignore_label", "goes with hard labels, not {soft} ones")
    if is_soft:
        if options.labels is not None or options.pos_label is not None:
            raise InputError("labels", "names hard labels, as {pos_label} does, not {soft} ones")
        origin, label, share = as_soft_labels(y_true, options.votes, prob, prob_name, columns)
    else:
        y = y_true
        if options.ignore_label is not None:
            y, is_ignored = hide_label(y_true, options.ignore_label)
            if is_ignored.size and is_ignored.all():
                rule = f"has no label other than {options.ignore_label!r}, which is ignored"
                raise InputError("y_true", rule)
        label, order = as_labels(y, prob, prob_name, columns, options.labels, options.pos_label)
        if order is not None:
            names = None
    index = containers.index_of(y_true, y_prob)
    containers.warn_of_index(prob_name, y_prob, index)
    containers.warn_of_index("sample_weight", options.sample_weight, index)
    containers.warn_of_index("votes", options.votes, index)
    weights = containers.as_weights(options.sample_weight, n_rows)
    tolerance = containers.row_sum_tolerance(y_prob, prob)
    if from_logits:
        containers.warn_if_probabilities(prob, tolerance, prob_name)
    if is_soft:
        if containers.check_probabilities(prob, from_logits, prob_name, tolerance):
            prob = prob.clip(0.0, 1.0)
        prob = prob[origin]
        tolerance = math.inf  # rows have been checked, once each
        weights = share if weights is None else share * weights[origin]
        weights = None if (weights == 1).all() else weights
    arrays = None
    if label.dtype.kind != "f":
        arrays = read_arrays(chosen, prob, label, from_logits, NEARLY * tolerance, run)
    if arrays is None:
        from_logits = from_logits or (guess_logits and containers.are_logits(prob, prob_name))
        if containers.check_probabilities(prob, from_logits, prob_name, tolerance):
            prob = prob.clip(0.0, 1.0)
        if order is None:
            label = check_class_indices(label, n_classes, prob)
        arrays = read_arrays(chosen, prob, label, from_logits, math.inf, run)
    assert arrays is not None, "what the slow check lets pass can be read"
    is_kept = kept_rows(weights, is_ignored)
    if not is_soft:
        rows = slice(None) if is_kept is None or is_kept.all() else is_kept
        warn_of_contradiction(prob[rows], label[rows], from_logits, order or names, prob_name)
    problems = RowTable(
        chosen, *arrays, low=1 / n_classes if chosen.is_top else 0.0, high=1.0,
        n_classes=n_classes, v=weights, labels=order, names=names,
        logits=prob if from_logits else None,
    )  # fmt: skip
    is_auto = isinstance(options.setting, str) and options.setting == "auto"
    if vectors and prob.ndim == 2 and is_auto:
        problems.vectors = Vectors(
            class_vectors(prob, from_logits), containers.contiguous(label, np.int64)
        )
    if label.size > MAX_ROWS_KEPT:
        problems.convert = partial(read_rows, chosen, from_logits=from_logits)
    if is_kept is not None and not is_kept.all():
        problems = problems.where(np.flatnonzero(is_kept))
    if len(prob) > n_rows:
        n_labelled = np.unique(origin[problems.positions]).size
        problems = problems.replace(origin=origin, votes=problems.n / n_labelled)
    return problems


def kept_rows(
    weights: F64 | None, is_ignored: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Find the rows (n,) with a weight whose label is not ignored; None for all."""
    if weights is None:
        return None if is_ignored is None else ~is_ignored
    is_kept = weights > 0
    if is_ignored is None:
        return is_kept
    is_kept &= ~is_ignored
    if not is_kept.any():
        raise InputError("sample_weight", "must not all be 0 where labels are not ignored")
    return is_kept
