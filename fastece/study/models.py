"""Classifiers whose calibration is measured: scikit-learn's, as they come."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.typing import F64

MODELS = ("logistic_regression", "naive_bayes", "support_vectors", "random_forest")


def new_model(name: str, seed: int) -> Any:
    """One of the models, which is not yet fitted."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    models = {
        "logistic_regression": LogisticRegression(),
        "naive_bayes": GaussianNB(),
        # Platt's scaling on cross-validated scores, which scikit-learn offers in place of
        # ``SVC(probability=True)``.
        "support_vectors": CalibratedClassifierCV(SVC(), ensemble=False),
        # Of 100 trees, so that probabilities are close to multiples of 0.01.
        "random_forest": RandomForestClassifier(random_state=seed),
    }
    return models[name]


def predicted(model: Any, x: NDArray[Any], n_classes: int) -> F64:
    """Probabilities (n, K) that a fitted model gives to all classes: 0 to those that it has not
    seen."""
    out = np.zeros((len(x), n_classes))
    out[:, model.classes_] = model.predict_proba(x)
    return out
