"""The density-based estimator."""

from fastece.kde.estimator import KDE as KDE
