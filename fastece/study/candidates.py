"""The candidates of a study: the paper's estimators, more of them, and constant zero.

To add one to every study, add it to `corrected`. A user adds one by its name: `import_estimator`.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.binned import Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.draws import Rows
from fastece.estimators.table import find_estimator
from fastece.kernels.types import F64
from fastece.study.design import StudyDesign
from fastece.study.published import PublishedBinned, mean_with_first_bandwidth

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
# The candidate that estimates 0 always.
ZERO = "zero"


def mean_over_problems(estimator: Any, problems: Sequence[Rows]) -> F64:
    """Compute the estimates (R,) of R draws, each a mean over the problems."""
    values = []
    for drawn in problems:
        plan = estimator.prepare(drawn.sample, drawn.rows.shape[1])
        values.append(estimator.values(plan, drawn))
    return np.asarray(np.mean(values, axis=0))


class Candidate(NamedTuple):
    """An estimator under test.

    Parameters
    ----------
    name : str
        Its name in results.
    estimator : Estimator
        See `fastece.estimators.protocol`.
    mean : function
        Computes the estimates (R,) from the estimator and from the drawn rows of one problem, or
        of every class.
    """

    name: str
    estimator: Any
    mean: Callable[[Any, Sequence[Rows]], F64] = mean_over_problems


class Constant:
    """The constant estimate 0: the cost of not measuring."""

    def prepare(self, sample: Sample, size: int) -> None:
        """Prepare nothing."""

    def values(self, plan: None, draws: Rows) -> F64:  # noqa: ARG002
        """Return 0 for every draw."""
        return np.zeros(len(draws.rows))


def candidates_of(design: StudyDesign) -> list[Candidate]:
    """Build the candidates: estimators of the convention, the user's own, and zero."""
    candidates = published() if design.convention == "published" else corrected()
    candidates += map(import_estimator, design.estimators)
    candidates.append(Candidate(ZERO, Constant()))
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
    densities = [
        Candidate(f"{DENSITY}_{h}", KDE(kernel="triweight", bandwidth=h), mean_with_first_bandwidth)
        for h in BANDWIDTHS
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
