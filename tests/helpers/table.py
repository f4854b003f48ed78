"""The estimators that the laws are about: the rows of the table, and variants of other ways."""

from math import inf

import pytest

from fastece import (
    ESTIMATORS,
    KDE,
    SKCE,
    BayesCurve,
    DirichletKDE,
    SelectiveRisk,
    SmoothECE,
)
from helpers.samples import BINNED

AREAS = ("aurc", "e_aurc", "augrc")
CASES = {
    **ESTIMATORS,
    "one bin": BINNED["one bin"],
    "left quantiles": BINNED["left quantiles"],
    "sqrt quantiles, convex, norm 2": BINNED["sqrt quantiles, convex, norm 2"],
    "mce": BINNED["mce"],
    "range, convex": BINNED["range, convex"],
    "threshold, quantiles": BINNED["threshold, quantiles"],
    "debiased square of quantiles": BINNED["debiased square of quantiles"],
    "density, norm 2": KDE(bandwidth=0.1, norm=2),
    "beta kernel": KDE(kernel="beta", bandwidth=0.1),
    "largest gap of the curve": BayesCurve(norm=inf),
    "smooth, scale 0.1": SmoothECE(scale=0.1),
    "canonical, norm 2": DirichletKDE(bandwidth=0.02, norm=2),
    "skce, biased, gaussian": SKCE("biased", kernel="gaussian", width=0.3),
    **{name: SelectiveRisk(name) for name in AREAS},
}
LOSSES = {
    *("brier_score", "ranked_probability_score", "log_loss", "accuracy", "sharpness", "entropy"),
    *AREAS,
}
# Errors of all classes at once.
VECTORS = {name for name in CASES if name.startswith(("canonical", "skce"))}
ERRORS = [name for name in CASES if name not in LOSSES]
# Two copies of a row are more rows than one that counts twice.
COUNT_ROWS = {
    *(name for name in CASES if "debiased" in name or "sqrt" in name or "sweep" in name),
    *("ece_kde", "ece_bayes", "largest gap of the curve"),
    *(VECTORS - {"skce, biased, gaussian"}),
}


every_estimator = pytest.mark.parametrize("name", CASES)
every_error = pytest.mark.parametrize("name", ERRORS)


def slack_of(name):
    """How far two values of one estimator may lie apart when sums are taken in another order."""
    if name in BINNED or name in LOSSES - {*AREAS}:
        return 1e-12
    return 1e-9
