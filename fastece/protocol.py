"""The protocol of estimators: the sample they receive, and their methods."""

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
