"""The protocol of estimators: the sample that one gets, and the methods that it has."""

from fastece.data.sample import Sample, Vectors
from fastece.estimators.base import Estimator, Parameters, Plan

__all__ = ["Estimator", "Parameters", "Plan", "Sample", "Vectors"]
