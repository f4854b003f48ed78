"""Evidence in the first rows of a file for the meaning of its columns, as sentences of an error.

A file whose columns have other names than ours is refused: to choose columns for it would be a
guess, and a prediction taken for the label, or a feature for the probability, gives a wrong number
without a word. The sentences show facts that the rows prove, and leave the choice to the reader.
A new kind of evidence is a function of `FirstRows` in `describe_evidence`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import MAX_TIER, first_number, label_text
from fastece.files.cells import RawColumn, Texts, read_label_column, read_number_column
from fastece.files.class_columns import columns_named_after
from fastece.kernels.types import F64

# Columns of a file that are looked at.
MAX_COLUMNS = 50
# Fewer rows prove nothing: of ten rows, a column that is no prediction may equal one by chance.
MIN_ROWS = 10
# Different values that labels have at most.
MAX_LABELS = 1000
# Names that a sentence lists.
MAX_LISTED = 5
# Sentences of an error.
MAX_SENTENCES = 4
# How far a sum of rounded shares may be from 1.
SUM_TOLERANCE = 0.011
# Probabilities of the predicted class are at least 1 / K, except for rounding.
CONFIDENCE_TOLERANCE = 1e-3


class FirstRows(NamedTuple):
    """The first rows of a file, by column.

    Attributes
    ----------
    n : int
        Number of rows.
    numbers : dict
        Columns of numbers (n,) that are not all 0 or 1.
    labels : dict
        Columns of repeated texts or whole numbers, as texts (n,).
    """

    n: int
    numbers: dict[str, F64]
    labels: dict[str, NDArray[np.str_]]

    @property
    def words(self) -> str:
        """The rows in a sentence."""
        return f"in each of the first {self.n} rows"


class ClassVectors(NamedTuple):
    """Columns of a number for each class, with names of classes and numbers (n, K)."""

    columns: list[str]
    classes: list[str]
    numbers: F64


def describe_evidence(columns: Mapping[str, RawColumn], label: str) -> list[str]:
    """Describe the evidence in the first rows, given the name of the column of labels."""
    rows = read_first_rows(columns)
    if rows.n < MIN_ROWS:
        return []
    vectors = find_class_vectors(rows, label)
    if vectors is not None:
        sentences = [*describe_unit(rows, vectors), *describe_predictions(rows, vectors)]
    else:
        sentences = [*describe_confidences(rows)] or [*compare_means(rows, label)]
        sentences += describe_percents(rows)
    return sentences[:MAX_SENTENCES]


def read_first_rows(columns: Mapping[str, RawColumn]) -> FirstRows:
    """Read columns as numbers, as labels, or as both."""
    n = min(map(len_of, columns.values()), default=0)
    numbers: dict[str, F64] = {}
    labels: dict[str, NDArray[np.str_]] = {}
    for name, column in columns.items():
        if len_of(column) != n:
            continue
        number_column = read_number_column(column)
        if number_column is not None:
            array = np.asarray(number_column)
            if array.ndim > 1 or array.dtype.kind not in "biuf":
                continue
            if not np.isin(array, (0, 1)).all():
                numbers[name] = array.astype(np.float64)
            if array.dtype.kind == "f" and not (array == np.trunc(array)).all():
                continue
            texts = np.array([label_text(x) for x in array.tolist()])
        else:
            label_column = read_label_column(column)
            if not isinstance(label_column, Texts):
                continue
            texts = label_column.strings()
        if 1 < len(set(texts.tolist())) <= min(MAX_LABELS, n - 1):
            labels[name] = texts
    return FirstRows(n, numbers, labels)


def len_of(column: RawColumn) -> int:
    """Count the rows of a column."""
    return len(column.codes) if isinstance(column, Texts) else len(column)


# --- a number for each class ----------------------------------------------------------------------


def find_class_vectors(rows: FirstRows, label: str) -> ClassVectors | None:
    """Find columns of numbers that are named after labels, are numbered, or sum to 1."""
    names = list(rows.numbers)
    labels = {label: rows.labels[label]} if label in rows.labels else rows.labels
    for texts in labels.values():
        columns = columns_named_after(names, set(texts.tolist()))
        if columns:
            return class_vectors(rows, columns)
    for word in dict.fromkeys(name.rstrip("0123456789") for name in names):
        columns = [name for name in names if name.rstrip("0123456789") == word != name]
        if len(columns) > 1 and first_number(columns) is not None:
            return class_vectors(rows, columns)
    shares = [name for name, x in rows.numbers.items() if ((x >= 0) & (x <= 1)).all()]
    if len(shares) > 1:
        vectors = class_vectors(rows, shares)
        if have_sum(vectors.numbers, 1.0):
            return vectors
    return None


def class_vectors(rows: FirstRows, columns: Sequence[str]) -> ClassVectors:
    """Make class vectors of columns, named without the prefix that they share."""
    numbers = np.column_stack([rows.numbers[name] for name in columns])
    return ClassVectors(list(columns), without_shared_prefix(columns), numbers)


def without_shared_prefix(names: Sequence[str]) -> list[str]:
    """Return names without the letters that all of them begin with."""
    n_shared = 0
    for k in range(1, min(map(len, names))):
        if len({name[:k] for name in names}) > 1:
            break
        # A number keeps all of its digits: p10 and p11 are 10 and 11.
        if not names[0][k - 1].isdecimal():
            n_shared = k
    return [name[n_shared:] for name in names]


def have_sum(numbers: F64, total: float) -> bool:
    """Decide whether all rows are shares of a total."""
    is_near = np.abs(numbers.sum(axis=1) - total) <= SUM_TOLERANCE * total
    return bool((numbers >= 0).all() and is_near.all())


def describe_unit(rows: FirstRows, vectors: ClassVectors) -> Iterator[str]:
    """Describe whether class vectors are shares, percents or logits."""
    names = list_names(vectors.columns)
    if have_sum(vectors.numbers, 1.0):
        yield f"{names} sum to 1 {rows.words}"
    elif have_sum(vectors.numbers, 100.0):
        yield f"{names} sum to 100 {rows.words}: {{percent}} reads percents"
    elif (vectors.numbers < 0).any():
        yield f"{names} are below 0 in some rows: {{from_logits}} reads logits"


def describe_predictions(rows: FirstRows, vectors: ClassVectors) -> Iterator[str]:
    """Describe which column is the prediction, and which others may hold the labels."""
    columns = [
        name for name, texts in rows.labels.items() if set(texts.tolist()) <= set(vectors.classes)
    ]
    predictions = [
        name
        for name in columns
        if are_top_classes(rows.labels[name].tolist(), vectors.numbers, vectors.classes)
    ]
    others = [name for name in columns if name not in predictions]
    if predictions:
        sentence = f"{list_names(predictions)} is the most probable class {rows.words}, so it is "
        sentence += "the prediction"
        if others:
            verb = "are" if len(others) == 1 else "may be"
            sentence += f", and the labels {verb} {list_names(others)}"
        yield sentence


def are_top_classes(texts: Sequence[str], numbers: NDArray[Any], classes: Sequence[str]) -> bool:
    """Decide whether the classes of all rows have the largest of the numbers (n, K)."""
    number_of = {name: k for k, name in enumerate(classes)}
    label = np.array([number_of[text] for text in texts])
    return bool((numbers[np.arange(len(label)), label] == numbers.max(axis=1)).all())


# --- one column of probabilities ------------------------------------------------------------------


def describe_confidences(rows: FirstRows) -> Iterator[str]:
    """Describe two columns of the same labels beside a column of confidences."""
    for first, second in permutations(rows.labels, 2):
        words = set(rows.labels[first].tolist())
        is_same = words >= set(rows.labels[second].tolist())
        if not is_same:
            continue
        lowest = 1 / len(words) - CONFIDENCE_TOLERANCE
        for name, x in rows.numbers.items():
            if name not in (first, second) and lowest <= x.min() and x.max() <= 1:
                yield (
                    f"{first} and {second} hold the same labels, and {name} is at least "
                    f"{1 / len(words):.3g} {rows.words}: if it is the probability of the predicted "
                    "label, name them true_label,pred_label,confidence in their order"
                )
                return


def compare_means(rows: FirstRows, label: str) -> Iterator[str]:
    """Compare the means of probabilities between the rows of two labels."""
    shares = {name: x for name, x in rows.numbers.items() if ((x >= 0) & (x <= 1)).all()}
    labels = {label: rows.labels[label]} if label in rows.labels else rows.labels
    for name, texts in labels.items():
        words = sorted(set(texts.tolist()))
        candidates = {key: x for key, x in shares.items() if key != name}
        if len(words) != 2 or not candidates:
            continue
        made_of = next((key for key, x in candidates.items() if is_split(texts, words, x)), None)
        if made_of is not None and name != label:
            yield (
                f"{name} splits the rows by a threshold of {made_of}, so it looks like the "
                "prediction"
            )
            continue
        word = higher_label(texts, words, candidates)
        is_word = texts == word
        listed = [
            f"{key} {x[is_word].mean():.2f} against {x[~is_word].mean():.2f}"
            for key, x in [*candidates.items()][:MAX_LISTED]
        ]
        yield f"means where {name} is {word}, against other rows: {', '.join(listed)}"


def is_split(texts: NDArray[np.str_], words: Sequence[str], numbers: F64) -> bool:
    """Decide whether all numbers of one label are above all of the other."""
    first = numbers[texts == words[0]]
    second = numbers[texts == words[1]]
    return bool(first.max() < second.min() or second.max() < first.min())


def equal_top_label(labels: NDArray[Any], prob: NDArray[Any], classes: Sequence[str]) -> bool:
    """Decide whether labels are the most probable class of all rows."""
    if len(labels) < MIN_ROWS:
        return False
    texts = np.array([label_text(x) for x in labels.tolist()])
    words = sorted(set(texts.tolist()))
    if prob.ndim == 1:
        sides = [texts == word for word in words]
        return len(words) == 2 and any(((prob > 0.5) == side).all() for side in sides)
    return set(words) <= set(classes) and are_top_classes(texts.tolist(), prob, classes)


def higher_label(
    texts: NDArray[np.str_], words: Sequence[str], candidates: Mapping[str, F64]
) -> str:
    """Return the label whose rows have the higher numbers, where these differ most.

    Labels 0 and 1 have their usual meaning: it is 1.
    """
    first, second = words
    if (first, second) == ("0", "1"):
        return second
    gaps = [x[texts == second].mean() - x[texts == first].mean() for x in candidates.values()]
    return second if max(gaps, key=abs) > 0 else first


def describe_percents(rows: FirstRows) -> Iterator[str]:
    """Describe single columns that may hold percents."""
    for name, x in rows.numbers.items():
        is_percent = (x >= 0).all() and MAX_TIER < x.max() <= 100 and not (x == np.trunc(x)).all()
        if is_percent:
            yield f"{name} goes up to {x.max():.4g}: {{percent}} reads percents"
            return


def list_names(names: Sequence[str]) -> str:
    """List some names, and show whether there are more."""
    listed = ", ".join(names[:MAX_LISTED])
    return f"{listed}, ..." if len(names) > MAX_LISTED else listed
