"""Classifiers whose calibration is measured: scikit-learn's, as they come."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def logistic_regression(seed: int) -> Any:  # noqa: ARG001
    """Logistic regression, linear in the features."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def gaussian_naive_bayes(seed: int) -> Any:  # noqa: ARG001
    """Gaussian naive Bayes."""
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def support_vector_classifier(seed: int) -> Any:  # noqa: ARG001
    """Support vector classifier whose scores are made probabilities by Platt's scaling on
    cross-validated scores, which scikit-learn offers in place of ``SVC(probability=True)``."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    return CalibratedClassifierCV(SVC(), ensemble=False)


def random_forest(seed: int) -> Any:
    """Random forest of 100 trees, whose probabilities are close to multiples of 0.01."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed)


MODELS: dict[str, Callable[[int], Any]] = {
    "logistic_regression": logistic_regression,
    "naive_bayes": gaussian_naive_bayes,
    "support_vectors": support_vector_classifier,
    "random_forest": random_forest,
}


def predicted(model: Any, x: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Probabilities (n, K) that a fitted model gives to all classes: 0 to those that it has not
    seen."""
    prob = model.predict_proba(x)
    if len(model.classes_) == n_classes:
        return np.ascontiguousarray(prob, np.float64)
    out = np.zeros((len(x), n_classes))
    out[:, model.classes_] = prob
    return out
