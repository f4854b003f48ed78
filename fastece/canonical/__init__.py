"""Canonical calibration: estimators of what all classes together are off by, from pairs of rows."""

from fastece.canonical.dirichlet import DirichletKDE as DirichletKDE
from fastece.canonical.skce import SKCE as SKCE
