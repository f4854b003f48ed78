"""Batches of a stream, read and checked before anything is added."""

import math
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import containers
from fastece.data.doubts import may_contradict
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import as_groups, hide_label, refuse_right_or_wrong
from fastece.data.options import ReadingOptions
from fastece.data.plain import are_plain, plain_problems
from fastece.data.reading import read_problems
from fastece.data.scores import NEARLY, read_top_label
from fastece.data.table import TOP_LABEL_SETTINGS, RowTable, as_lines
from fastece.kernels import NO_WEIGHTS
from fastece.kernels.types import F64, U8, U64
from fastece.streams.settings import Settings

# The smallest weight that sums do not lose, and the smallest one that groups do not lose.
MIN_WEIGHT = 2.0**-40
MIN_DRAWN_WEIGHT = 2.0**-20


class Batch(NamedTuple):
    """Rows of positive weight that have been checked.

    Attributes
    ----------
    problems : RowTable
    distance : (n,) float64 array
        Squared distance of each class vector from the true class; empty if it is not added up.
    """

    problems: RowTable
    distance: F64

    def columns(self) -> tuple[F64, U8]:
        """Return the scores and the outcomes (P, n) of each problem."""
        score, hit = as_lines(*self.problems.read_kept(), range(self.problems.n_problems))
        return containers.contiguous(score, np.float64), containers.contiguous(hit, np.uint8)


def read_batch(
    settings: Settings, y_true: Any, y_prob: Any, options: ReadingOptions
) -> Batch | None:
    """Read the rows of a batch; None if all weights are 0, or all labels are ignored."""
    y_prob = containers.without_shared_column("y_prob", y_prob, y_true)
    prob = containers.as_probabilities(y_prob)
    check_columns(settings, prob)
    if settings.setting in TOP_LABEL_SETTINGS:
        refuse_right_or_wrong(y_true, y_prob, "y_prob", options.from_logits)
    weight = None
    if options.sample_weight is not None:
        weight = containers.as_real("sample_weight", options.sample_weight)
    elif options.are_plain:
        batch = read_plain_batch(settings, y_true, y_prob, prob)
        if batch is not None:
            return batch
    ignored = options.ignore_label
    if ignored is not None and hide_label(y_true, ignored)[1].all():
        return None
    has_no_weight = weight is not None and weight.shape == prob.shape[:1] and not weight.any()
    if has_no_weight:
        options = replace(options, sample_weight=None)
    problems = read_problems(y_true, y_prob, options, vectors=settings.is_auto_vector)
    is_order_given = options.labels is not None or options.pos_label is not None
    if problems.labels is not None and not is_order_given:
        rule = "must hold class numbers in a stream, the positions of columns, not other labels"
        raise InputError("y_true", rule, hint="pass {labels}, in the order of the columns")
    if weight is not None:
        check_smallest_weight(settings, weight)
    if has_no_weight:
        return None
    if problems.vectors is None:
        return Batch(problems, NO_WEIGHTS)
    vectors = problems.vectors
    distance = np.empty(len(vectors.prob))
    read_top_label(vectors.prob, vectors.label, False, math.inf, map, distance)
    return Batch(problems, distance[problems.positions])


def check_columns(settings: Settings, prob: NDArray[Any]) -> None:
    """Refuse probabilities with another number of columns than the stream has."""
    columns = () if settings.n_classes is None else (settings.n_classes,)
    if prob.shape[1:] == columns:
        return
    shape = "(n,)" if settings.n_classes is None else f"(n, {settings.n_classes})"
    rule = f"must have shape {shape}"
    raise InputError("y_prob", rule, value=prob.shape, hint="as {n_classes} says")


def check_smallest_weight(settings: Settings, weight: F64) -> None:
    """Refuse weights that are too small for the detail of the sums."""
    smallest = MIN_DRAWN_WEIGHT if settings.n_replicates else MIN_WEIGHT
    containers.refuse_where(
        "sample_weight",
        f"must be 0 or at least {smallest:g}, as sums have so much detail",
        weight,
        lambda part: (part > 0) & (part < smallest),
        "multiply all weights by one number",
    )


def read_plain_batch(
    settings: Settings, y_true: Any, y_prob: Any, prob: NDArray[Any]
) -> Batch | None:
    """Read plain arrays without weights; None if a closer look is needed.

    `read_problems` gives the same rows, and takes 4 us longer.
    """
    if settings.is_auto_vector:
        return read_class_vectors(settings, y_true, y_prob, prob)
    if not are_plain(y_true, y_prob):
        return None
    problems = plain_problems(
        y_true, y_prob, settings.setting, sample_weight=None, with_vectors=False, run=map
    )
    return None if problems is None else Batch(problems, NO_WEIGHTS)


def read_class_vectors(
    settings: Settings, y_true: Any, y_prob: Any, prob: NDArray[Any]
) -> Batch | None:
    """Read class vectors without weights in one pass; None for a closer look."""
    if type(y_prob) is not np.ndarray and containers.column_names(y_prob):
        # The names of the columns may be the classes.
        return None
    label = containers.as_array("y_true", y_true)
    if label.dtype.kind not in "iub" or label.shape != prob.shape[:1]:
        return None
    if may_contradict(prob, label, from_logits=False):
        return None
    n_classes = prob.shape[1]
    distance = np.empty(label.size)
    tolerance = NEARLY * containers.row_sum_tolerance(y_prob, prob)
    rows = read_top_label(prob, label, False, tolerance, map, distance)
    if rows is None:
        return None
    score, hit = rows
    return Batch(RowTable(settings.row, score, hit, 1 / n_classes, 1.0, n_classes), distance)


def words_of_numbers(settings: Settings, first: int, n: int) -> U64:
    """Return a random word for each of `n` rows by its number in the stream."""
    words = np.empty(n, np.uint64)
    with np.errstate(over="ignore"):  # for kernels that are not compiled
        # Draws begin elsewhere.
        kernels.resampling.random_words(~np.uint64(settings.key), first, words)
    return words


def words_of_groups(settings: Settings, groups: Any, n: int) -> U64:
    """Return a random word for the group of each row, the same on any machine.

    3 and 3.0 are one group, "3" is another.
    """
    column = as_groups(groups, n, "groups")
    key = settings.key.to_bytes(8, "little")
    words = np.array([hash_label(label, key) for label in column.labels], np.uint64)
    return words[column.position]


def hash_label(label: Any, key: bytes) -> int:
    """Hash the label of a group, by a key, to an integer of 64 bits."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if not isinstance(label, str | int | float):
        rule = "must be numbers or strings in a stream, as others differ between processes"
        raise InputTypeError("groups", rule, value=label)
    digest = blake2b(repr(label).encode(), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little")
