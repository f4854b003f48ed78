"""Folds of rows for `recalibrate`: drawn so that classes are spread, or groups stay together."""

from typing import Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.labels import as_groups
from fastece.data.parameters import check_integer
from fastece.kernels.types import I64
from fastece.resampling.draws import new_key


class Folds(NamedTuple):
    """Folds of rows, and the groups that they keep together.

    Parameters
    ----------
    n_folds : int
    of_row : (n,) int64 array
        The fold of each row, from 0 to n_folds - 1.
    group : (n,) int64 array
        The group of each row; without groups, each row is one of its own.
    """

    n_folds: int
    of_row: I64
    group: I64


def draw_folds(label: I64, cv: Any, groups: Any, rng: Any) -> Folds:
    """Draw the fold of each row.

    Parameters
    ----------
    label : (n,) int64 array
        Classes. Without groups, every fold gets its share of each, and as many rows as the others,
        within one.
    cv : int
        Number of folds.
    groups : array_like (n,) or None
        Rows of one group stay in one fold; folds have about equally many rows.
    rng : None, int or numpy.random.Generator
    """
    n_folds = check_integer("cv", cv, 2, label.size)
    generator = np.random.default_rng(new_key(rng))
    shuffled_rows = generator.permutation(label.size)
    if groups is None:
        fold_of_row = deal_rows(label, n_folds, shuffled_rows)
        return Folds(n_folds, fold_of_row, np.arange(label.size))
    group = as_groups(groups, label.size, "groups").position
    rows_of_group = np.bincount(group)
    n_groups = rows_of_group.size
    if n_groups < n_folds:
        raise InputError("cv", f"must be at most the {n_groups} groups there are", value=n_folds)
    fold_of_group = pack_groups(rows_of_group, n_folds, generator.permutation(n_groups))
    return Folds(n_folds, fold_of_group[group], group)


def deal_rows(label: I64, n_folds: int, shuffled_rows: I64) -> I64:
    """Deal rows to the folds in turn, like cards, class by class."""
    by_class = shuffled_rows[np.argsort(label[shuffled_rows], kind="stable")]
    fold = np.empty(label.size, np.int64)
    fold[by_class] = np.arange(label.size) % n_folds
    return fold


def pack_groups(rows_of_group: I64, n_folds: int, shuffled_groups: I64) -> I64:
    """Put each group, the largest first, into the fold with the fewest rows so far."""
    fold_of_group = np.empty(rows_of_group.size, np.int64)
    rows_of_fold = np.zeros(n_folds)
    largest_first = shuffled_groups[np.argsort(-rows_of_group[shuffled_groups], kind="stable")]
    for group in largest_first:
        fold = rows_of_fold.argmin()
        fold_of_group[group] = fold
        rows_of_fold[fold] += rows_of_group[group]
    return fold_of_group
