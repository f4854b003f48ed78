"""Canonical calibration: estimators of all classes together, from pairs of rows."""

from fastece.estimators.canonical.dirichlet import DirichletKDE as DirichletKDE
from fastece.estimators.canonical.skce import SKCE as SKCE
