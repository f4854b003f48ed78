"""Binned estimators: uniform or equal-mass bins, hard or convex mapping, any norm."""

from fastece.binned.estimator import Binned as Binned
from fastece.binned.sweep import Sweep as Sweep
