"""What classifiers of scikit-learn predict, and of which problem that is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.probabilities import as_probabilities


def class_probabilities(estimator: Any, X: Any) -> tuple[NDArray[Any], list[Any]]:  # noqa: N803
    """What a fitted classifier predicts for the rows of X: probabilities (n, K), and the labels of
    the columns."""
    kind = type(estimator).__name__
    try:
        predict = estimator.predict_proba
    except AttributeError as error:
        raise TypeError(
            f"estimator: must have predict_proba, {kind} has none; "
            "sklearn.calibration.CalibratedClassifierCV makes probabilities of decisions"
        ) from error
    found = predict(X)
    if not hasattr(estimator, "classes_"):
        raise TypeError(f"estimator: must have classes_, as classifiers do, {kind} has none")
    if any(map(np.ndim, estimator.classes_)):
        raise TypeError(f"estimator: must predict one label for each row, {kind} predicts several")
    classes = np.asarray(estimator.classes_)
    if classes.size == 1:
        raise ValueError(
            f"estimator: {kind} was fitted to rows of one class alone, {classes.tolist()}; "
            "stratified folds have rows of every class"
        )
    prob = as_probabilities(found, "predict_proba(X)")
    if prob.shape[1:] != classes.shape:
        raise ValueError(
            f"estimator: {kind}.predict_proba must give a column for each of {classes.size} "
            f"classes, got shape {prob.shape}"
        )
    return prob, classes.tolist()


def own_setting(setting: Any, labels: list[Any]) -> Any:
    """The setting for a classifier: "auto" is the binary problem of two classes, and the top label
    of more."""
    is_auto = isinstance(setting, str) and setting == "auto"
    return "binary" if is_auto and len(labels) == 2 else setting
