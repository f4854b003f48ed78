"""A warning of a column of predictions that is named as the one of the labels."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import label_text, without_prefix
from fastece.data.errors import RowsWarning, warn_outside

# Words by which the name of a column shows that it holds predictions.
WORDS_OF_PREDICTIONS = frozenset({"pred", "predict", "predicted", "prediction", "hat", "yhat"})
# In fewer rows labels may well be the most probable classes.
MIN_ROWS = 10


def warn_of_predicted_labels(
    column: str, labels: NDArray[Any], y_prob: NDArray[Any], names: Sequence[str], place: str
) -> None:
    """Warn of labels that are the predicted class, from a column named so.

    Parameters
    ----------
    column : str
        The name of the column of labels.
    labels : ndarray, (n,)
    y_prob : ndarray, (n,) or (n, K)
    names : sequence of str
        Names of the columns of probabilities.
    place : str
        The file and the column, for the message.
    """
    words = set(re.split(r"[\W_]+", column.lower()))
    if words.isdisjoint(WORDS_OF_PREDICTIONS) or len(labels) < MIN_ROWS:
        return
    if are_predicted(labels, y_prob, names):
        rule = "is the most probable class in every row: it looks like the prediction"
        hint = "name the column of the true labels by {y_true}"
        warn_outside(RowsWarning("y_true", rule, place=place, hint=hint))


def are_predicted(labels: NDArray[Any], y_prob: NDArray[Any], names: Sequence[str]) -> bool:
    """Decide whether labels are the most probable class of all rows."""
    texts = np.array([label_text(x) for x in labels.tolist()])
    words = sorted(set(texts.tolist()))
    if y_prob.ndim == 1:
        sides = [texts == word for word in words]
        return len(words) == 2 and any(((y_prob > 0.5) == side).all() for side in sides)
    *_, classes = without_prefix(names)
    if len(classes) != y_prob.shape[1] or not set(words) <= set(classes):
        return False
    position_of = {name: k for k, name in enumerate(classes)}
    positions = np.array([position_of[text] for text in texts.tolist()])
    return bool((y_prob[np.arange(len(labels)), positions] == y_prob.max(axis=1)).all())
