"""The protocol of estimators: the sample that one gets, and the methods that it has."""

from fastece.data.sample import Sample, Vectors
from fastece.estimators.base import (
    Chances,
    Counts,
    Estimator,
    Labels,
    Parameters,
    Plan,
    Rows,
    Statistic,
)

__all__ = [
    "Chances",
    "Counts",
    "Estimator",
    "Labels",
    "Parameters",
    "Plan",
    "Rows",
    "Sample",
    "Statistic",
    "Vectors",
]
