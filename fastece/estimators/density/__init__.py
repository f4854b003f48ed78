"""The error of a kernel density estimate."""

from fastece.estimators.density.estimator import KDE as KDE
