"""Columns that are named after the labels of a file, and the kinds of columns that it has."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from fastece.data.containers import SEPARATORS, label_text
from fastece.data.errors import BadArgumentError
from fastece.files.batches import Batch, ChosenColumns
from fastece.files.cells import RawColumn, Texts, read_label_column, read_number_column
from fastece.files.formats import read_batches
from fastece.files.paths import is_piped

BOOL_WORDS = {"true", "false", "True", "False", "TRUE", "FALSE"}


def find_class_columns(path: str, label: str, names: Sequence[str]) -> list[str]:
    """Read the labels of a file, and find the columns that are named after them."""
    if label not in names or is_piped(path):
        return []
    words: set[str] = set()
    # The fault of a broken file shows when its rows are read.
    with suppress(BadArgumentError):
        for batch in read_batches(path, lambda _: ChosenColumns([label], []), (label,)):
            words |= distinct_labels(batch.columns[label])
    return columns_named_after([name for name in names if name != label], words)


def distinct_labels(column: RawColumn) -> set[str]:
    """Find the distinct labels of a column as text; none if a cell is bad."""
    labels = read_label_column(column)
    if isinstance(labels, Texts):
        return set(labels.words)
    if labels is None or labels.ndim > 1:
        return set()
    return {label_text(label) for label in np.unique(labels)}


def columns_named_after(names: Sequence[str], labels: Collection[str]) -> list[str]:
    """Find the columns named after labels, all with one prefix or all without.

    Numbers are no such labels, as features may be numbered too.
    """
    if all(label.isdecimal() for label in labels):
        return []
    a_label = next(iter(labels))
    prefixes = {name.removesuffix(a_label) for name in names if name.endswith(a_label)}
    prefixes = {
        prefix
        for prefix in prefixes
        if (not prefix or prefix[-1] in SEPARATORS)
        and all(prefix + label in names for label in labels)
    }
    if len(prefixes) != 1:
        # To take one of several would be a guess.
        return []
    (prefix,) = prefixes
    if prefix:
        columns = [name for name in names if name.startswith(prefix)]
    else:
        columns = [name for name in names if name in labels]
    return columns if len(columns) > 1 else []


# --- kinds of columns -----------------------------------------------------------------------------


def read_first_columns(
    path: str, names: Sequence[str], header_names: Collection[str]
) -> Mapping[str, RawColumn]:
    """Read columns in the first rows of a file, if these can be read."""
    if is_piped(path):
        return {}
    with suppress(BadArgumentError, OSError):
        batches: Iterator[Batch] = read_batches(
            path, lambda _: ChosenColumns(list(names), []), header_names
        )
        return next(batches).columns
    return {}


def column_kind(column: RawColumn) -> str:
    """Describe the cells of a column."""
    number_column = read_number_column(column)
    if number_column is None:
        label_column = read_label_column(column)
        if label_column is None:
            return "mixed or missing"
        is_bool = isinstance(label_column, Texts) and set(label_column.words) <= BOOL_WORDS
        return "true or false" if is_bool else "text"
    numbers = np.asarray(number_column)
    if numbers.dtype.kind not in "biuf":
        return "neither text nor numbers"
    if numbers.ndim > 1:
        return f"{numbers.shape[1]} numbers each"
    if numbers.dtype.kind == "b":
        return "true or false"
    if np.isin(numbers, (0, 1)).all():
        return "0 or 1"
    if (numbers % 1 == 0).all():
        return "whole numbers"
    return "numbers from 0 to 1" if ((numbers >= 0) & (numbers <= 1)).all() else "numbers"
