"""Estimators that average over nearby scores with a kernel: densities, smooth gaps, pairs."""

from fastece.kde.estimator import KDE as KDE
from fastece.kde.mmce import MMCE as MMCE
from fastece.kde.smooth import SmoothECE as SmoothECE
