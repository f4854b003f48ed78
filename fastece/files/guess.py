"""Columns found by the cells of a file, where their names alone do not say how to read it."""

import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import SEPARATORS, label_text
from fastece.data.errors import BadArgumentError
from fastece.files.columns import Column, Texts, as_labels, as_numbers
from fastece.files.formats import is_piped, read_tables

# Names that columns of labels often have.
USUAL = ("label", "target", "y", "class", "truth", "outcome", "true_label", "event", "gold")
# Labels that need no positive one beside them.
TRUTH = {"0", "1", "true", "false", "True", "False"}
ROW_SUM = 1e-3


def distinct_words(column: Column) -> set[str]:
    """Find the distinct labels of a column as text; none if a cell is bad."""
    found = as_labels(column)
    if isinstance(found, Texts):
        return {*found.words}
    return set() if found is None or found.ndim > 1 else {*map(label_text, np.unique(found))}


def columns_of_labels(path: str, label: str, names: Sequence[str]) -> list[str]:
    """Read the labels of a file, and find the columns named after them."""
    words: set[str] = set()
    if label in names and not is_piped(path):
        with suppress(BadArgumentError):  # of what is to be read of the file in any case
            for table in read_tables(path, lambda _: ([label], []), (label,)):
                words |= distinct_words(table.columns[label])
    return class_columns([name for name in names if name != label], words)


def class_columns(names: Sequence[str], words: Collection[str]) -> list[str]:
    """Find the columns named after labels, all with one prefix or without.

    Numbers are no such labels, as features may be numbered too.
    """
    if all(word.isdecimal() for word in words):
        return []
    word, *_ = words
    heads = {name.removesuffix(word) for name in names if name.endswith(word)}
    heads = {x for x in heads if x[-1:] in {"", *SEPARATORS} and {x + y for y in words} <= {*names}}
    if len(heads) != 1:  # or several, one of which would be a guess
        return []
    (head,) = heads
    found = [name for name in names if (name.startswith(head) if head else name in words)]
    return found if len(found) > 1 else []


def suggest_options(path: str, label: str) -> str:
    """Write the options that would read a file, by its first rows; "" if none."""
    if is_piped(path):
        return ""
    table = next(iter(read_tables(path, lambda x: ([*dict.fromkeys(x.names)], []), (label, ","))))
    scores: dict[str, NDArray[Any]] = {}
    words: dict[str, set[str]] = {}
    for name, column in table.columns.items():
        x = np.asarray(as_numbers(column))
        is_score = x.dtype.kind == "f" and ((x >= 0) & (x <= 1)).all() and (x % 1 > 0).any()
        if is_score:
            scores[name] = x
        elif found := distinct_words(column):
            words[name] = found
    usual = (name for name in USUAL if name in words)
    few = (name for name, x in words.items() if 2 <= len(x) <= max(2, len(table.places) / 2))
    name = label if label in words else next(usual, next(few, ""))
    found, chosen = words.get(name, set()), [*scores]
    sums = sum(scores.values()) if all(x.ndim == 1 for x in scores.values()) else 0
    is_count = found <= {*map(str, range(len(scores)))}
    if classes := class_columns(chosen, found):
        chosen = classes
    elif not (is_count and np.allclose(sums, 1, rtol=0, atol=ROW_SUM)):
        chosen = chosen[: len(found) <= 2 or scores[chosen[0]].ndim == 2]
    if not name or not chosen:
        return ""
    options = ["--y-true", name] * (name != "y_true") + ["--y-prob", ",".join(chosen)]
    if len(chosen) == 1 and scores[chosen[0]].ndim == 1 and not found <= TRUTH:
        options += ["--pos-label", max(found)]
    return shlex.join(options)
