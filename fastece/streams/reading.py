"""The rows of one batch of a stream, checked and read."""

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.arrays import as_array, as_real, contiguous
from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.labels import as_groups
from fastece.checks.probabilities import as_probabilities, row_sum_tolerance
from fastece.data.reading import NEARLY, native_scores, read_problems
from fastece.data.source import Problems
from fastece.kernels import NO_WEIGHTS
from fastece.streams.state import MIN_DRAWN_WEIGHT, MIN_WEIGHT, Settings, check_least
from fastece.typing import I64

# Entries of class vectors that are read twice: they stay in the second-level cache.
PIECE = 2**15


def read_batch(
    settings: Settings, y_true: Any, y_prob: Any, sample_weight: Any
) -> tuple[Problems, I64] | None:
    """Read the rows of a batch; None if all weights are 0.

    The second value is the sum of squared distances of class vectors from the true class, in two
    words.
    """
    prob = as_probabilities(y_prob)
    wanted = () if settings.n_classes is None else (settings.n_classes,)
    if prob.shape[1:] != wanted:
        shown = "(n,)" if settings.n_classes is None else f"(n, {settings.n_classes})"
        raise InputError(
            "y_prob", f"must have shape {shown}", value=prob.shape, hint="as {n_classes} says"
        )
    weight = None if sample_weight is None else as_real("sample_weight", sample_weight)
    if weight is None and settings.is_auto_vector and not settings.from_logits:
        found = read_vectors(settings, y_true, y_prob, prob)
        if found is not None:
            return found
    weightless = weight is not None and weight.shape == prob.shape[:1] and not weight.any()
    problems = read_problems(
        y_true, y_prob, setting=settings.setting, from_logits=settings.from_logits,
        sample_weight=None if weightless else sample_weight, vectors=settings.is_auto_vector,
    )  # fmt: skip
    if problems.labels is not None:
        raise InputError("y_true", "must hold class numbers in a stream, not other labels")
    if weight is not None:
        check_least(weight, MIN_DRAWN_WEIGHT if settings.n_replicates else MIN_WEIGHT)
    if weightless:
        return None
    words = np.zeros(2, np.int64)
    if problems.vectors is not None:
        rows, vectors, v = problems.positions, problems.vectors, kernels.weights(problems.v)
        kernels.reading.add_distances(vectors.prob[rows], vectors.label[rows], v, words)
    return problems, words


def read_vectors(
    settings: Settings, y_true: Any, y_prob: Any, prob: NDArray[Any]
) -> tuple[Problems, I64] | None:
    """Read class vectors without weights in one pass; None if one is invalid."""
    label = as_array("y_true", y_true)
    if label.dtype.kind not in "iub" or label.shape != prob.shape[:1]:
        return None
    n = len(prob)
    score, hit, words = np.empty(n), np.empty(n, np.uint8), np.zeros(2, np.int64)
    tolerance = NEARLY * row_sum_tolerance(y_prob, prob)
    p, y, k = native_scores(prob), contiguous(label, np.int64), prob.shape[1]
    step = max(1, PIECE // k)
    for start in range(0, n, step):
        part = slice(start, start + step)
        read_top_label: Any = kernels.reading.read_top_label
        if not read_top_label(p[part], y[part], False, tolerance, score[part], hit[part]):
            return None
        kernels.reading.add_distances(p[part], y[part], NO_WEIGHTS, words)
    return Problems(settings.row, score, hit, 1 / k, 1.0, k), words


def count_rows(y_true: Any, y_prob: Any) -> int:
    """Count the rows of a batch; a later check compares both arguments."""
    sizes = [len(x) if hasattr(x, "__len__") else 1 for x in (y_true, y_prob)]
    return 0 if sizes == [0, 0] else max(sizes)


def group_ids(groups: Any, n: int) -> I64:
    """Return a number of 64 bits for the group of each row, the same on any machine.

    3 and 3.0 are one group, "3" is another.
    """
    if not n:
        return np.empty(0, np.int64)
    numbers, labels = as_groups(groups, n, "groups")
    return np.array([group_id(label) for label in labels], np.int64)[numbers]


def group_id(label: Any) -> int:
    """Hash a label: a number, a bool or a string."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if not isinstance(label, str | int | float):
        rule = "must be numbers or strings in a stream, as others differ between processes"
        raise InputTypeError("groups", rule, value=label)
    digest = blake2b(repr(label).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
