"""Binned estimators: uniform or equal-mass bins, hard or convex mapping, any norm."""

from fastece.estimators.binned.estimator import Binned as Binned
from fastece.estimators.binned.sweep import Sweep as Sweep
