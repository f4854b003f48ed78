"""The density-based estimator."""

from fastece.kde.estimator import KDE

__all__ = ["KDE"]
