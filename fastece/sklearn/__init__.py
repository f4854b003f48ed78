"""Calibration errors as scores of scikit-learn, reliability diagrams as displays.

>>> from fastece.sklearn import ece_scorer
>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.naive_bayes import GaussianNB
>>> X, y = load_breast_cancer(return_X_y=True)
>>> cross_val_score(GaussianNB(), X, y, scoring=ece_scorer).round(3)
array([-0.076, -0.082, -0.046, -0.052, -0.046])

scikit-learn itself is imported where it is needed: its extra is ``pip install fastece[sklearn]``.
"""

from fastece.sklearn.display import ReliabilityDisplay
from fastece.sklearn.scores import Scorer, ece_scorer, scorer

__all__ = ["ReliabilityDisplay", "Scorer", "ece_scorer", "scorer"]
