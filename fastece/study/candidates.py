"""The candidates of a study: the paper's estimators, more of them, and constant zero.

To add one to every study, add it to `corrected`. A user adds one by its name: `import_estimator`.
"""

from importlib import import_module
from typing import Any

from fastece.data.errors import InputError
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.binned import Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.table import find_estimator
from fastece.study.candidate import ZERO, Candidate, Zero
from fastece.study.design import StudyDesign
from fastece.study.published import PublishedBinned, SharedBandwidth

# The paper's fifteen estimators: four kinds of bins with three numbers of them, and densities with
# three bandwidths.
BIN_NUMBERS: tuple[Any, ...] = (10, 30, "sqrt")
BINNED_FIELDS: dict[str, dict[str, Any]] = {
    "ece": {},
    "ece_a": {"edges": "quantile"},
    "ece_c": {"mapping": "convex"},
    "ece_ac": {"edges": "quantile", "mapping": "convex"},
}
DENSITY = "ece_kde"
BANDWIDTHS: tuple[Any, ...] = ("silverman", 0.1, 0.033)
# The Bayesian curve, which the paper does not have.
BAYES = "ece_bayes"


def candidates_of(design: StudyDesign[Any]) -> list[Candidate]:
    """Build the candidates: estimators of the convention, the user's own, and zero."""
    candidates = published() if design.convention == "published" else corrected()
    candidates += map(import_estimator, design.estimators)
    candidates.append(Zero(ZERO, None))
    names = [candidate.name for candidate in candidates]
    for name in names:
        if names.count(name) > 1:
            raise InputError("estimator", f"the name {name!r} is taken")
    return candidates


def corrected() -> list[Candidate]:
    """Build the paper's fifteen estimators as corrected, and the Bayesian curve.

    All bins divide the support of the score, so that equal numbers of them mean equal widths.
    """
    binned = [
        Candidate(f"{kind}_{n_bins}", Binned(n_bins, score_range="support", **fields))
        for kind, fields in BINNED_FIELDS.items()
        for n_bins in BIN_NUMBERS
    ]
    densities = [Candidate(f"{DENSITY}_{h}", KDE(bandwidth=h)) for h in BANDWIDTHS]
    return [*binned, *densities, Candidate(BAYES, BayesCurve())]


def published() -> list[Candidate]:
    """Build the paper's fifteen estimators as the published code has them."""
    # Bins of `ece` alone are on [0, 1], whatever the support is.
    unit = [Candidate(f"ece_{n_bins}", Binned(n_bins, closed="left")) for n_bins in BIN_NUMBERS]
    binned = [
        Candidate(f"{kind}_{n_bins}", PublishedBinned(n_bins, **fields))
        for kind, fields in BINNED_FIELDS.items()
        for n_bins in BIN_NUMBERS
        if kind != "ece"
    ]
    densities: list[Candidate] = [
        SharedBandwidth(f"{DENSITY}_{h}", KDE(kernel="triweight", bandwidth=h)) for h in BANDWIDTHS
    ]
    return [*unit, *binned, *densities]


def import_estimator(path: str) -> Candidate:
    """Import a user's estimator "module:name".

    It is an object with `prepare` and `evaluate`, or a class or function that returns one without
    arguments.

    Raises
    ------
    ValueError, TypeError
        Where it is not found, cannot be made, or is no calibration error.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise InputError("estimator", 'must be "module:name"', value=path)
    try:
        attribute = getattr(import_module(module), name)
        made = attribute() if callable(attribute) else attribute
    except Exception as error:  # A user's module may raise anything.
        raise InputError("estimator", f"{path!r} was not found, or not made: {error!r}") from error
    estimator = find_estimator(made, {})
    if not estimator.is_calibration_error:
        raise InputError("estimator", f"{path!r} is no calibration error, and these have a truth")
    return Candidate(name, estimator)
