"""Predictions of several models on the same rows, which a column of ids may pair."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.cli.inputs import read_file
from fastece.data.containers import label_text
from fastece.data.errors import InputError
from fastece.files import FilePredictions
from fastece.kernels.types import I64

# Columns among which one that identifies rows is looked for, at most: each is read as text.
MAX_COLUMNS = 50
# Arguments whose columns are no names of rows.
MEASURED = ("y_true", "y_prob", "sample_weight")
LINE_BY_LINE = "rows paired line by line, as no column shows which belong together"
HINT_HITS = "name the column 'correct' if it says whether each model was right"


class ModelFile(NamedTuple):
    """The file of a model, and the options that it is read with."""

    path: str
    options: Namespace


def read_same_rows(files: Sequence[ModelFile], id_column: str | None) -> list[FilePredictions]:
    """Read the predictions of each model, all on the rows of the first.

    Rows are paired by the column of ids, or by a column that all files have and that identifies
    their rows, if its values are in another order; otherwise line by line.
    """
    first, *others = (read_file(file.path, file.options) for file in files)
    paired = [first]
    for file, other in zip(files[1:], others, strict=True):
        has_own_rows = file.path != files[0].path
        paired.append(pair_rows(first, other, id_column) if has_own_rows else other)
    for other in paired[1:]:
        check_same_rows(first, other)
    return paired


def pair_rows(
    first: FilePredictions, other: FilePredictions, id_column: str | None
) -> FilePredictions:
    """Bring the rows of a file into the order of the first, if a column pairs them."""
    if id_column is not None:
        order = find_order(id_cells(first, id_column), id_cells(other, id_column))
        if order is None:
            rule = f"must have the same values in {first.file} and {other.file}, each once"
            raise InputError("id", rule, value=id_column)
        return order_rows(other, order, id_column)
    names_of_other = free_names(other)
    names = [name for name in free_names(first) if name in names_of_other][:MAX_COLUMNS]
    cells = first.read_columns(names)
    other_cells = other.read_columns(names)
    same = [name for name in names if np.array_equal(cells[name], other_cells[name])]
    orders = find_orders(cells, other_cells, [name for name in names if name not in same])
    if not orders:
        # Lines belong together that have the same cells, or the same labels, compared later.
        common_columns = [first.label, *(cells[name] for name in same)]
        if any(map(have_several_values, common_columns)):
            return other
        return with_note(other, LINE_BY_LINE)
    name, order = next(iter(orders.items()))
    orders |= find_orders(cells, other_cells, same)
    for other_name, other_order in orders.items():
        if not np.array_equal(order, other_order):
            rule = f"the columns {name} and {other_name} pair the rows differently"
            hint = "{id} names the one that identifies them"
            raise InputError("b", rule, place=other.file, hint=hint)
    return order_rows(other, order, name)


def free_names(predictions: FilePredictions) -> list[str]:
    """List the columns of a file that hold no labels, predictions or weights."""
    assert predictions.table is not None, "rows are from a file"
    taken = {name for argument in MEASURED for name in predictions.columns.get(argument, [])}
    return [name for name in predictions.table.names_to_keep() if name not in taken]


def id_cells(predictions: FilePredictions, id_column: str) -> NDArray[Any]:
    """Return the column of ids."""
    if id_column not in free_names(predictions):
        rule = f"no column {id_column!r} beside labels and predictions"
        raise InputError("id", rule, place=predictions.file)
    return predictions.read_columns([id_column])[id_column]


def find_orders(
    expected: Mapping[str, NDArray[Any]], cells: Mapping[str, NDArray[Any]], names: Sequence[str]
) -> dict[str, I64]:
    """Find the order of a file's rows by each column that identifies them."""
    orders = {name: find_order(expected[name], cells[name]) for name in names}
    return {name: order for name, order in orders.items() if order is not None}


def find_order(expected: NDArray[Any], cells: NDArray[Any]) -> I64 | None:
    """Find where each expected cell is; None unless both have the same, each once."""
    if len(expected) != len(cells):
        return None
    position_of = {label_text(cell): k for k, cell in enumerate(cells.tolist())}
    texts = [label_text(cell) for cell in expected.tolist()]
    if len(position_of) < len(cells) or position_of.keys() != set(texts):
        return None
    return np.array([position_of[text] for text in texts], np.int64)


def order_rows(predictions: FilePredictions, order: I64, name: str) -> FilePredictions:
    """Bring rows into an order, with a note of the column that it is from."""
    if np.array_equal(order, np.arange(len(order))):
        return predictions
    return with_note(predictions.select(order), f"rows paired by the column {name}")


def with_note(predictions: FilePredictions, note: str) -> FilePredictions:
    """Return predictions with one more note."""
    return replace(predictions, note="; ".join(filter(None, [predictions.note, note])))


def have_several_values(cells: NDArray[Any]) -> bool:
    """Decide whether the cells of a column differ."""
    return bool((cells != cells[0]).any())


def check_same_rows(first: FilePredictions, other: FilePredictions) -> None:
    """Refuse two files that differ in labels, weights, votes or counts, row by row."""
    if first.pairs != other.pairs:
        rule = f"must have the kind of columns that {first.file} has"
        hint = "only one of them has labels and confidences of the predicted class"
        raise InputError("b", rule, place=other.file, hint=hint)
    if len(first.label) != len(other.label):
        rule = f"must have the rows of {first.file}, which has {len(first.label)}"
        raise InputError("b", rule, value=len(other.label), place=other.file)
    labels = (first.label, other.label)
    if not (has_single_outcomes(first) and has_single_outcomes(other)):
        # Shares and counts become rows by their outcomes, which all models then have in common.
        labels = (first.y_true, other.y_true)
    columns: dict[str, tuple[Any, Any]] = {
        "labels": labels,
        "weights": (first.weights, other.weights),
        "votes": (first.others.get("votes"), other.others.get("votes")),
        "counts": (first.others.get("counts"), other.others.get("counts")),
    }
    for name, (expected, got) in columns.items():
        values = zip(np.ravel(expected).tolist(), np.ravel(got).tolist(), strict=True)
        for k, (expected_value, value) in enumerate(values):
            if expected_value != value:
                where = f"which has {expected_value!r} in {first.row(k)}"
                rule = f"must have the {name} of {first.file}, {where}"
                place = f"{other.file}: {other.row(k)}"
                hints = ["{id} names a column that identifies the rows of both files"]
                if name == "labels" and not first.hits and np.ndim(first.y_prob) == 1:
                    hints.append(HINT_HITS)
                raise InputError("b", rule, value=value, place=place, hint=tuple(hints))


def has_single_outcomes(predictions: FilePredictions) -> bool:
    """Decide whether each row has one outcome, and no share or count of several."""
    if not predictions.others.keys().isdisjoint({"votes", "counts"}):
        return False
    y = predictions.y_true
    return y.dtype.kind not in "iuf" or bool(np.isin(y, (0, 1)).all())
