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
from fastece.data.counted import CountedRows, read_table
from fastece.data.doubts import warn_of_contradiction
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import (
    as_labels,
    as_soft_labels,
    check_class_indices,
    hide_label,
    refuse_right_or_wrong,
)
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
    refuse_table_options,
)
from fastece.data.sources import (
    TOP_LABEL_SETTINGS,
    Problems,
    Source,
    class_count,
    find_setting,
)
from fastece.data.threads import Map
from fastece.kernels.types import F64


def read_source(
    y_true: Any, y_prob: Any, *, setting: Any = "auto", labels: Any = None, pos_label: Any = None,
    sample_weight: Any = None, counts: Any = None, from_logits: Any = False, soft: Any = False,
    votes: Any = None, percent: Any = False, ignore_label: Any = None, class_axis: Any = None,
    prob_name: str = "y_prob", vectors: bool = False,
    guess_logits: bool = False, run: Map = map,
) -> Source:  # fmt: skip
    """Return a source as it is, or read the caller's arrays as problems.

    Parameters
    ----------
    y_true : Source or array_like
        A source, such as an `Accumulator`, stands for all the arrays.
    y_prob, setting, labels, pos_label, sample_weight, counts, from_logits, soft, votes, percent, \
    ignore_label, class_axis
        As in `fastece.ece`.
    prob_name : str
        The caller's name of `y_prob`, for messages.
    vectors : bool
        Whether class vectors are kept as a whole, with the setting "auto".
    guess_logits : bool
        Whether numbers outside [0, 1] are read as logits.
    run : callable
        `map`, or the `map` of a pool of threads.

    Raises
    ------
    InputError, InputTypeError
        For data that are not as `fastece.ece` says, and for options beside a source.
    """
    has_options = not (
        labels is pos_label is votes is ignore_label is counts is class_axis is None
        and from_logits is soft is percent is False
    )
    has_own_rows = is_separate(setting)
    is_of_top_label = isinstance(setting, str) and setting in TOP_LABEL_SETTINGS
    if is_of_top_label and not isinstance(y_true, Source):
        refuse_right_or_wrong(y_true, y_prob, prob_name, from_logits, percent)
    if not (has_options or has_own_rows) and are_plain(y_true, y_prob):
        problems = plain_problems(
            y_true, y_prob, setting, sample_weight, with_vectors=vectors, run=run
        )
        if problems is not None:
            return problems
    if isinstance(y_true, Source):
        refuse_options(
            y_true, **{prob_name: y_prob}, labels=labels, pos_label=pos_label,
            sample_weight=sample_weight, counts=counts, from_logits=from_logits, soft=soft,
            votes=votes, percent=percent, ignore_label=ignore_label, class_axis=class_axis,
        )  # fmt: skip
        y_true.check_setting(setting)
        return y_true
    if class_axis is not None:
        axes = find_row_axes(prob_name, y_prob, class_axis)
        rows = flatten_rows(
            axes, y_true, y_prob, prob_name=prob_name, soft=soft, votes=votes,
            sample_weight=sample_weight, counts=counts,
        )  # fmt: skip
        with axes.naming_entries(prob_name):
            return read_source(
                **rows, setting=setting, labels=labels, pos_label=pos_label,
                from_logits=from_logits, percent=percent, ignore_label=ignore_label,
                prob_name=prob_name, vectors=vectors,
                guess_logits=guess_logits, run=run,
            )  # fmt: skip
    if has_own_rows:
        refuse_table_options(setting, counts=counts, soft=soft, votes=votes)
        index = containers.index_of(y_true, y_prob)
        containers.warn_of_index(prob_name, y_prob, index)
        containers.warn_of_index("sample_weight", sample_weight, index)
        read_separate = read_tasks if setting == "tasks" else read_predicted_classes
        return read_separate(
            read_problems, y_true, y_prob, labels=labels, pos_label=pos_label,
            sample_weight=sample_weight, from_logits=from_logits, percent=percent,
            ignore_label=ignore_label, prob_name=prob_name,
            guess_logits=guess_logits, run=run,
        )  # fmt: skip
    if counts is not None and (votes is not None or soft is not False):
        raise InputError("counts", "goes without {soft} and {votes}, as counts are of labels")
    return read_rows_or_table(
        y_true, y_prob, counts=counts, setting=setting, labels=labels, pos_label=pos_label,
        sample_weight=sample_weight, from_logits=from_logits, soft=soft, votes=votes,
        percent=percent, ignore_label=ignore_label, prob_name=prob_name, vectors=vectors,
        guess_logits=guess_logits, run=run,
    )  # fmt: skip


def read_rows_or_table(
    y_true: Any, y_prob: Any, *, counts: Any = None, **options: Any
) -> Problems | CountedRows:
    """Read rows that count once, or several times where there are counts."""
    if counts is None:
        return read_problems(y_true, y_prob, **options)
    return read_counted(y_true, y_prob, counts=counts, **options)


def refuse_options(source: Source, **options: Any) -> None:
    """Refuse options that only arrays have, unless they are None or False."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputTypeError(name, f"goes with arrays, and here is {source!r}")


def read_counted(
    y_true: Any, y_prob: Any, *, counts: Any, sample_weight: Any = None, labels: Any = None,
    pos_label: Any = None, ignore_label: Any = None, prob_name: str = "y_prob", **options: Any,
) -> CountedRows:  # fmt: skip
    """Check a table whose rows count several times, and read it.

    The other options are as in `read_problems`. Counts of events become rows with labels.
    """
    has_labels = not (labels is pos_label is ignore_label is None)
    table = read_table(
        y_true, y_prob, sample_weight, counts, has_labels=has_labels, prob_name=prob_name
    )
    with table.naming_rows():
        problems = read_problems(
            table.y_true, table.y_prob, sample_weight=table.sample_weight, labels=labels,
            pos_label=pos_label, ignore_label=ignore_label, prob_name=prob_name, **options,
        )  # fmt: skip
    rows = problems.positions
    callers = rows if table.origin is None else table.origin[rows]
    return CountedRows(problems, table.counts[rows], callers)


def read_problems(
    y_true: Any, y_prob: Any, *, setting: Any = "auto", labels: Any = None, pos_label: Any = None,
    sample_weight: Any = None, from_logits: bool = False, guess_logits: bool = False,
    soft: bool = False, votes: Any = None, percent: bool = False, ignore_label: Any = None,
    prob_name: str = "y_prob", vectors: bool = False, run: Map = map,
) -> Problems:  # fmt: skip
    """Check the caller's data and read them as problems.

    Rows of weight 0 and rows of the ignored label are dropped. The options have the meaning that
    they have in `read_source`. A row with a soft label becomes several rows, with a label each.
    """
    from_logits = check_flag("from_logits", from_logits)
    is_soft = check_flag("soft", soft) or votes is not None
    scores = containers.without_shared_column(prob_name, y_prob, y_true)
    if check_flag("percent", percent):
        if from_logits:
            raise InputError("percent", "goes without {from_logits}")
        prob = containers.as_percents(scores, prob_name)
    else:
        prob = containers.as_probabilities(scores, prob_name)
    chosen = find_setting(setting, prob.shape)
    n_rows = len(prob)
    n_classes = class_count(prob.shape)
    columns = containers.column_names(scores)
    names = containers.class_names(columns)
    order = None
    is_ignored = None
    if is_soft and ignore_label is not None:
        raise InputError("ignore_label", "goes with hard labels, not {soft} ones")
    if is_soft:
        if labels is not None or pos_label is not None:
            raise InputError("labels", "names hard labels, as {pos_label} does, not {soft} ones")
        origin, label, share = as_soft_labels(y_true, votes, prob, prob_name, columns)
    else:
        y = y_true
        if ignore_label is not None:
            y, is_ignored = hide_label(y_true, ignore_label)
            if is_ignored.size and is_ignored.all():
                rule = f"has no label other than {ignore_label!r}, which is ignored"
                raise InputError("y_true", rule)
        label, order = as_labels(y, prob, prob_name, columns, labels, pos_label)
        if order is not None:
            names = None
    index = containers.index_of(y_true, y_prob)
    containers.warn_of_index(prob_name, y_prob, index)
    containers.warn_of_index("sample_weight", sample_weight, index)
    containers.warn_of_index("votes", votes, index)
    weights = containers.as_weights(sample_weight, n_rows)
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
    problems = Problems(
        chosen, *arrays, low=1 / n_classes if chosen.is_top else 0.0, high=1.0,
        n_classes=n_classes, v=weights, labels=order, names=names,
        logits=prob if from_logits else None,
    )  # fmt: skip
    if vectors and prob.ndim == 2 and isinstance(setting, str) and setting == "auto":
        problems.vectors = Vectors(
            class_vectors(prob, from_logits), containers.contiguous(label, np.int64)
        )
    if label.size > MAX_ROWS_KEPT:
        problems.convert = partial(read_rows, chosen, from_logits=from_logits)
    if is_kept is not None and not is_kept.all():
        problems = problems.where(np.flatnonzero(is_kept))
    if len(prob) > n_rows:
        n_labelled = np.unique(origin[problems.positions]).size
        problems = replace(problems, origin=origin, votes=problems.n / n_labelled)
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
