"""Canonical calibration: estimators of what all classes together are off by, from pairs of rows."""

from fastece.estimators.canonical.dirichlet import DirichletKDE as DirichletKDE
from fastece.estimators.canonical.skce import SKCE as SKCE
