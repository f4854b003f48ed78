"""What competes: estimators of the table, the user's own, and measuring nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fastece.data.sample import Sample
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.binned.estimator import Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.table import find_estimator, is_calibration_error
from fastece.resampling.engine import drawn_values
from fastece.typing import F64, I32

BINS: tuple[Any, ...] = (10, 30, "sqrt")
BANDWIDTHS: tuple[Any, ...] = ("silverman", 0.1, 0.033)
BINNED: dict[str, dict[str, Any]] = {
    "ece": {},
    "ece_a": {"edges": "quantile"},
    "ece_c": {"mapping": "convex"},
    "ece_ac": {"edges": "quantile", "mapping": "convex"},
}
BAYES, ZERO = "ece_bayes", "zero"


class Drawn(NamedTuple):
    """The drawn rows of one problem: as a sorted sample, and those (R, size) of each draw in it."""

    sample: Sample
    rows: I32


@dataclass(frozen=True)
class Contestant:
    """An estimator under the name that results show."""

    name: str
    estimator: Any

    def values(self, problems: Sequence[Drawn]) -> F64:
        """The mean over the problems (R,) of each draw: one problem, or one for every class."""
        values = [drawn_values(self.estimator, *drawn) for drawn in problems]
        return np.asarray(np.mean(values, axis=0))


class Zero:
    """The estimate 0, whatever the data: what it costs not to measure."""

    def prepare(self, sample: Sample, size: int) -> None:
        """No plan."""

    def subsets(self, plan: None, rows: I32) -> F64:  # noqa: ARG002
        """0 for every draw."""
        return np.zeros(len(rows))


def corrected() -> list[Contestant]:
    """The fifteen estimators of the paper as `fastece` defines them: all bins divide the support of
    the score, so that equal numbers of them mean equal widths. And the Bayesian curve."""
    binned = [
        Contestant(f"{name}_{bins}", Binned(n_bins=bins, score_range="support", **fields))
        for name, fields in BINNED.items()
        for bins in BINS
    ]
    densities = [Contestant(f"ece_kde_{h}", KDE(bandwidth=h)) for h in BANDWIDTHS]
    return [*binned, *densities, Contestant(BAYES, BayesCurve())]


def own(path: str) -> Contestant:
    """The user's own estimator, as "module:name": an object of the protocol, or a class or function
    that makes one without arguments."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise ValueError(f'estimator: must be "module:name", got {path!r}')
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # whatever a module does when it is imported
        raise ValueError(f"estimator: {path!r} was not found: {error}") from error
    if isinstance(found, type) or not hasattr(found, "evaluate"):
        if not callable(found):
            raise TypeError(f"estimator: {path!r} is no estimator, but {found!r}")
        try:
            found = found()
        except Exception as error:  # whatever happens in it
            raise TypeError(f"estimator: {path!r} makes none: {error!r}") from error
    estimator = find_estimator(found, {})
    if not is_calibration_error(estimator):
        raise ValueError(f"estimator: {path!r} is no calibration error, and these have a truth")
    return Contestant(name, estimator)
