"""Sums of a stream of files, from which a report is made without their rows."""

import csv
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.cli.inputs import (
    apply_options,
    class_numbers,
    data_of,
    estimators_of,
    file_options,
    slice_columns,
)
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.data.labels import LabelledRows, as_groups
from fastece.display.numbers import count_of
from fastece.files import FileCount, FilePredictions, FileSum
from fastece.files.cells import decode_labels, encode_texts
from fastece.inference.selections import MAX_NUMBERS, by_period
from fastece.metrics import ece
from fastece.report.inputs import LEAD
from fastece.streams.accumulator import Accumulator

# Files whose faults a page lists.
MAX_LISTED_FILES = 10
# Slices of a stream, each of which has sums of some megabytes.
MAX_SLICES = 200
HINT_WHOLE = "without {stream} one file of at most 10 million rows is read whole"


@dataclass(frozen=True)
class BatchRows:
    """Rows of a batch as an accumulator takes them."""

    y: NDArray[Any]
    prob: NDArray[Any]
    weights: NDArray[Any] | None
    counts: NDArray[Any] | None
    from_logits: bool

    def add_to(
        self, sums: Accumulator | None, setting: Any, rows: Any = slice(None)
    ) -> Accumulator:
        """Add some of the rows to sums, which are new ones in place of None."""
        if sums is None:
            has_vectors = self.prob.ndim > 1 and self.prob.shape[1] > 1
            n_classes = self.prob.shape[1] if has_vectors else None
            sums = Accumulator(n_classes, setting=setting, from_logits=self.from_logits)
        weights = None if self.weights is None else self.weights[rows]
        counts = None if self.counts is None else self.counts[rows]
        return sums.update(self.y[rows], self.prob[rows], weights, counts=counts)


def read_counts(predictions: FilePredictions) -> NDArray[Any] | None:
    """Return the counts of rows, which batches of a stream have as texts."""
    counts = predictions.others.get("counts")
    if counts is None or counts.dtype.kind not in "OUS":
        return counts
    try:
        return counts.astype(np.float64)
    except ValueError:
        raise InputError("counts", "must be whole numbers, and some are texts") from None


class StreamSums:
    """Sums of a stream: of all rows, of the top label, and of slices by each column.

    Attributes
    ----------
    first : FilePredictions or None
        The first rows, which show the columns and the number of classes.
    rows : Accumulator or None
        The sums of all rows.
    top : Accumulator or None
        The sums of the most probable class, where the setting is of single classes.
    slices : dict
        The sums of each slice by its label, for each argument that names a column of slices.
    """

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.columns_of_slices = slice_columns(options)
        self.first: FilePredictions | None = None
        self.rows: Accumulator | None = None
        self.top: Accumulator | None = None
        self.slices: dict[str, dict[Any, Accumulator]] = {
            argument: {} for argument in self.columns_of_slices
        }
        # Labels in the order of their numbers, which are the same in all batches.
        self.label_order: list[Any] | None = None

    def add(self, predictions: FilePredictions) -> None:
        """Add a batch; the first one sets the number of classes."""
        if self.first is not None and predictions.pairs != self.first.pairs:
            rule = "must have the kind of columns that the file before has"
            raise InputError("y_prob", rule)
        predictions = apply_options(predictions, self.options)
        data = data_of(predictions, self.options)
        data["labels"] = data["labels"] or self.label_order
        y, label_order = class_numbers(data)
        setting = "binary" if predictions.pairs else data["setting"]
        batch = BatchRows(
            y=y,
            prob=predictions.y_prob,
            weights=predictions.weights,
            counts=read_counts(predictions),
            from_logits=predictions.from_logits,
        )
        # Slices are checked before anything is added.
        positions = {argument: self.find_slices(predictions, argument) for argument in self.slices}
        self.rows = batch.add_to(self.rows, setting)
        if setting == "classwise" or isinstance(setting, int):
            # In these settings labels are classes, also where they are bools.
            of_classes = replace(batch, y=y.astype(np.int64))
            self.top = of_classes.add_to(self.top, "confidence")
        for argument, sums in self.slices.items():
            for label, rows in positions[argument].items():
                sums[label] = batch.add_to(sums.get(label), setting, rows)
        if label_order is not None and None not in label_order:
            self.label_order = label_order
        if self.first is None:
            self.first = predictions
            self.check_estimators(self.rows)

    def find_slices(self, predictions: FilePredictions, argument: str) -> dict[Any, Any]:
        """Find which rows of a batch are in each slice by a column."""
        values = predictions.others[argument]
        column = as_groups(values, len(values), argument)
        n_slices = len({*column.labels, *self.slices[argument]})
        if n_slices > MAX_SLICES:
            rule = f"must have at most {MAX_SLICES} different values in a stream"
            name = self.columns_of_slices[argument]
            raise InputError("by", rule, value=name, hint="take a column with fewer")
        return {label: column.position == k for k, label in enumerate(column.labels)}

    def check_estimators(self, rows: Accumulator) -> None:
        """Refuse estimators that the sums of a stream do not allow, by its first rows."""
        assert self.first is not None, "there are rows"
        if not rows.n:
            return
        for name, estimator in estimators_of(self.first, self.options).items():
            # Sums always have the first one, which takes longer.
            if name != LEAD:
                ece(rows, estimator=estimator)

    def merge_slices(self) -> dict[Any, Accumulator]:
        """Return the sums of each slice by its label.

        Strings are numbers if all labels of a column are written so.
        """
        merged: dict[Any, Accumulator] = {}
        for argument, sums_by_label in self.slices.items():
            column = self.columns_of_slices[argument]
            labels = decode_strings(list(sums_by_label))
            positions = np.arange(len(labels))
            periods = by_period(LabelledRows(positions, list(labels.values())), positions)
            labels = {
                label: periods.labels[k] for label, k in zip(labels, periods.position, strict=True)
            }
            numbers = set(labels.values())
            if len(numbers) > MAX_NUMBERS and not any(isinstance(x, str) for x in numbers):
                rule = f"must have at most {MAX_NUMBERS} different numbers in a stream"
                raise InputError("by", rule, value=column, hint=HINT_WHOLE)
            for label, sums in sums_by_label.items():
                key = labels[label]
                if argument != "by":
                    # There are several columns of slices.
                    key = f"{column} {key}"
                merged[key] = merged[key] + sums if key in merged else sums
        return merged


def decode_strings(labels: list[Any]) -> dict[Any, Any]:
    """Read strings among labels as numbers or bools, if all of them are written so."""
    texts = [label for label in labels if isinstance(label, str)]
    (decoded,) = decode_labels([encode_texts(texts)])
    values = dict(zip(texts, decoded.tolist(), strict=True))
    return {label: values.get(label, label) for label in labels}


# --- files ----------------------------------------------------------------------------------------


def read_stream(
    paths: Sequence[str], title: str, sums: StreamSums, options: Namespace, progress: Progress
) -> list[FileCount]:
    """Add up the rows of files, show the progress, and return the counts of each file."""

    def show() -> None:
        n_rows = sum(file.rows for file in reading.files)
        n_files = len(reading.files)
        progress(f"{n_rows} rows of {title} read, file {n_files} of {len(paths)}")

    reading = FileSum(sums.add, options.on_error == "skip", show)
    labels = next(csv.reader([options.labels or ""]), [])
    if options.pos_label:
        labels.append(options.pos_label)
    for path in paths:
        reading.add_file(path, **file_options(options), labels=labels)
    return reading.files


def describe_files(files: Sequence[FileCount]) -> dict[str, Any]:
    """Count the rows that were read and skipped, in all and by file."""
    notes = [describe_skipped(file) for file in files if file.reason]
    notes += [file.note for file in files if file.note]
    n_more = len(notes) - MAX_LISTED_FILES
    if n_more > 0:
        notes = [*notes[:MAX_LISTED_FILES], f"and in {n_more} more files (--json has them all)"]
    return {
        "files": len(files),
        "rows": sum(file.rows for file in files),
        "batches": sum(file.batches for file in files),
        "skipped": sum(file.skipped for file in files),
        "cut_files": sum(file.is_cut for file in files),
        "notes": notes,
        "by_file": [asdict(file) for file in files],
    }


def describe_skipped(file: FileCount) -> str:
    """Write how much of a file was skipped, and the first reason."""
    parts = []
    if file.skipped:
        parts.append(count_of(file.skipped, "row"))
    if file.is_cut:
        parts.append("the rest, which cannot be read")
    return f"skipped {' and '.join(parts)}; first: {file.reason}"
