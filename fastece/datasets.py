"""Predictions that ship with fastece, for examples and first trials.

`load` returns them by name. They were made by cross-validation, so that no row was seen in
training; the scripts in ``scripts/data`` make them again. One adds a data set as a file in
``fastece/data`` and a row of `FILES`.
"""

from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.parameters import check_choice

# The file of each data set in fastece/data.
FILES = {
    "digits_random_forest": "digits_random_forest.npz",
    "digits_network": "digits_neural_network.npz",
    "breast_cancer": "breast_cancer.npz",
}


class Dataset(NamedTuple):
    """Labels and predicted probabilities of a model; it unpacks as ``y, p``.

    Attributes
    ----------
    y_true : (n,) array
        True classes from 0 to K - 1, or 1 where the event occurred and 0 where it did not.
    y_prob : (n, K) or (n,) array
        Predicted probabilities of the classes, or of the event.
    """

    y_true: NDArray[Any]
    y_prob: NDArray[Any]


def load(name: str) -> Dataset:
    """Load predictions that ship with fastece, as labels and probabilities.

    Parameters
    ----------
    name : str
        ``"digits_random_forest"``: 1797 handwritten digits in 10 classes, by a random forest of
        200 trees, which is under-confident. ``"digits_network"``: the same digits by a small neural
        network, which is nearly calibrated. ``"breast_cancer"``: 569 tumours, of which 212 are
        malignant, and the probabilities of that by Gaussian naive Bayes on five measurements, which
        are too extreme. All are from ten-fold cross-validation, and no row was seen in training.

    Returns
    -------
    Dataset
        A named tuple (y_true, y_prob).

    Raises
    ------
    ValueError
        If there is no data set of this name; the message lists the names.

    Notes
    -----
    The digits are the test set of Alpaydin and Kaynak (1998, "Optical Recognition of Handwritten
    Digits", doi:10.24432/C50P49), the tumours are from Wolberg, Mangasarian, Street and Street
    (1995, "Breast Cancer Wisconsin (Diagnostic)", doi:10.24432/C5DW2B), both as in scikit-learn.

    Examples
    --------
    >>> import fastece
    >>> y, p = fastece.datasets.load("digits_random_forest")
    >>> p.shape
    (1797, 10)
    >>> round(fastece.ece(y, p), 3)
    0.193
    >>> fastece.datasets.load("breast_cancer").y_true.mean().round(3)
    np.float64(0.373)
    """
    check_choice("name", name, list(FILES))
    file = files("fastece").joinpath("data", FILES[name])
    with file.open("rb") as stream, np.load(stream) as arrays:
        return Dataset(arrays["y_true"], arrays["y_prob"])
