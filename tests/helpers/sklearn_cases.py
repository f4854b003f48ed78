"""Data and models for tests of scorers and displays for scikit-learn."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB

NAMES = np.array(["bee", "ant", "cow"])  # not in the order of the text


class Data:
    """Rows of two or three classes with string labels, and weights."""

    def __init__(self, n_classes, n=240):
        rng = np.random.default_rng(n_classes)
        label = np.arange(n) % n_classes
        self.X = rng.normal(size=(n, 3)) + 0.8 * label[:, None]
        self.X[:, 2] = self.X[:, 1]  # counted twice, so that the model is too sure
        self.y = NAMES[label]
        self.w = rng.integers(0, 4, n) + 0.5


def fitted(n_classes):
    data = Data(n_classes)
    return data, GaussianNB().fit(data.X, data.y)


class Fixed(ClassifierMixin, BaseEstimator):
    """A model with the classes and the probabilities that it is given."""

    def __init__(self, classes, prob):
        self.classes = classes
        self.prob = prob

    def fit(self, X, y):  # noqa: ARG002, N803
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):  # noqa: ARG002, N803
        return self.prob


class Named(Fixed):
    @property
    def classes_(self):
        return self.classes
