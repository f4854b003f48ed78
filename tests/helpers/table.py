"""The estimators that the laws are about: the rows of the table, and variants of every option."""

from math import inf

import pytest

from fastece import (
    ESTIMATORS,
    KDE,
    MMCE,
    SKCE,
    BayesCurve,
    DirichletKDE,
    LogLoss,
    SelectiveRisk,
    SmoothECE,
    Sweep,
)
from helpers.samples import BINNED

AREAS = ("aurc", "e_aurc", "augrc")
CASES = {
    **ESTIMATORS,
    **{name: row for name, row in BINNED.items() if not row.min_count},  # in units of the weights
    "density of bandwidth 0.05": KDE(bandwidth=0.05),
    "density, norm 2": KDE(bandwidth=0.1, norm=2),
    "triweight": KDE(kernel="triweight"),
    "epanechnikov": KDE(kernel="epanechnikov", bandwidth=0.2),
    "beta kernel": KDE(kernel="beta", bandwidth=0.1),
    "curve, norm 2": BayesCurve(norm=2),
    "largest gap of the curve": BayesCurve(norm=inf),
    "sweep, norm 2": Sweep(norm=2),
    "smooth, scale 0.1": SmoothECE(scale=0.1),
    "mmce of width 0.1": MMCE(width=0.1),
    "canonical of bandwidth 0.1": DirichletKDE(bandwidth=0.1),
    "canonical, norm 2": DirichletKDE(bandwidth=0.02, norm=2),
    "skce, biased": SKCE(form="biased"),
    "skce, biased, gaussian": SKCE("biased", kernel="gaussian", width=0.3),
    "clipped log loss": LogLoss(clip=0.01),
    **{name: SelectiveRisk(name) for name in AREAS},
}
LOSSES = {
    "brier_score", "ranked_probability_score", "log_loss", "accuracy", "sharpness", "entropy",
    "clipped log loss", *AREAS,
}  # fmt: skip
# Errors of all classes at once.
VECTORS = {name for name in CASES if name.startswith(("canonical", "skce"))}
PAIRS = VECTORS | {"mmce", "mmce of width 0.1"}
ERRORS = [name for name in CASES if name not in LOSSES]
# Two copies of a row are more rows than one that counts twice.
COUNT_ROWS = {
    *(name for name in CASES if "debiased" in name or "sqrt" in name or "sweep" in name),
    *("ece_kde", "triweight", "ece_bayes", "curve, norm 2", "largest gap of the curve"),
    *(VECTORS - {"skce, biased, gaussian"}),
}


def variants_are_slow(names):
    """Cases of a parameter: quick ones for the rows of the table, slow ones for variants."""
    return [
        name if name in ESTIMATORS else pytest.param(name, marks=pytest.mark.slow) for name in names
    ]


every_estimator = pytest.mark.parametrize("name", variants_are_slow(CASES))
every_error = pytest.mark.parametrize("name", variants_are_slow(ERRORS))


def slack_of(name):
    """How far two values of one estimator may lie apart when sums are taken in another order."""
    if name in BINNED or name in LOSSES - {*AREAS}:
        return 1e-12
    return 1e-9
