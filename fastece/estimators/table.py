"""The table of estimators, one row each, and how one of them is found."""

from collections.abc import Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from functools import lru_cache
from typing import Any, Literal, cast

from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import GroupKeyword, ReadingKeywords, RowKeywords
from fastece.data.parameters import list_names, unknown_option
from fastece.estimators.base import Estimator, UserEstimator
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.binned import Binned, Sweep
from fastece.estimators.canonical import SKCE, DirichletKDE
from fastece.estimators.cumulative import CumulativeError
from fastece.estimators.density.estimator import KDE
from fastece.estimators.losses import (
    Accuracy,
    BrierScore,
    Entropy,
    LogLoss,
    RankedProbabilityScore,
    Sharpness,
)
from fastece.estimators.risk import QUANTITIES, RiskStatistic
from fastece.estimators.selective import AREAS, SelectiveRisk
from fastece.estimators.smooth import MMCE, SmoothECE

ESTIMATORS: dict[str, Estimator] = {
    "ece": Binned(),
    "ece_a": Binned(edges="quantile"),
    "ece_c": Binned(mapping="convex"),
    "ece_ac": Binned(edges="quantile", mapping="convex"),
    "ece_kde": KDE(),
    "ece_bayes": BayesCurve(),
    "ece_debiased": Binned(debias=True),
    "ece_sweep": Sweep(),
    "smooth_ece": SmoothECE(),
    "mmce": MMCE(),
    "ecce_r": CumulativeError(),
    "ecce_mad": CumulativeError("max"),
    "canonical": DirichletKDE(),
    "skce": SKCE(),
    "brier_score": BrierScore(),
    "ranked_probability_score": RankedProbabilityScore(),
    "log_loss": LogLoss(),
    "accuracy": Accuracy(),
    "sharpness": Sharpness(),
    "entropy": Entropy(),
}


class RowEstimatorKeywords(RowKeywords, total=False):
    """Options of reading but the setting, and parameters of estimators."""

    n_bins: int | Literal["sqrt"]
    edges: Literal["uniform", "quantile"] | Sequence[float]
    mapping: Literal["hard", "convex"]
    closed: Literal["right", "left"]
    score_range: Literal["unit", "support"] | tuple[float, float]
    min_count: float
    bin_weights: Literal["mass", "equal"]
    threshold: float | None
    debias: bool
    norm: float
    bandwidth: float | str
    kernel: str
    scale: float | Literal["auto"]
    width: float | str
    statistic: Literal["range", "max"]
    form: Literal["unbiased", "biased"]
    clip: float | None


class EstimatorKeywords(RowEstimatorKeywords, ReadingKeywords, total=False):
    """Options of reading, and the parameters of the estimators of the table."""


class RowGroupedEstimatorKeywords(RowEstimatorKeywords, GroupKeyword, total=False):
    """The same as `RowEstimatorKeywords`, and groups of rows."""


class GroupedEstimatorKeywords(EstimatorKeywords, GroupKeyword, total=False):
    """The same as `EstimatorKeywords`, and groups of rows."""


# Names that functions take as well: statistics of the validation of a risk model, and of selective
# prediction.
STATISTICS: dict[str, Estimator] = {name: RiskStatistic(name) for name in QUANTITIES}
STATISTICS |= {name: SelectiveRisk(name) for name in AREAS}


def find_estimator(
    estimator: Any, fields: dict[str, Any], reader_options: Sequence[str] = ()
) -> Estimator:
    """Find the estimator of a name or an object, with some fields replaced.

    `reader_options` are named in the error for a field that there is not.
    """
    if isinstance(estimator, str):
        row: Any = ESTIMATORS.get(estimator) or STATISTICS.get(estimator)
        if row is None:
            hint = list_names(ESTIMATORS)
            raise InputError("estimator", "must be a known name", value=estimator, hint=hint)
        try:
            return cached_change(row, **fields) if fields else row
        except TypeError:
            # A value has no hash, or a check refuses it; without the cache, the check says so.
            return cast(Estimator, change(row, fields, reader_options))
    if isinstance(estimator, type) or not all(
        callable(getattr(estimator, name, None)) for name in ("prepare", "evaluate")
    ):
        rule = "must be a name or an object with prepare and evaluate"
        hint = list_names(ESTIMATORS)
        raise InputTypeError("estimator", rule, value=estimator, hint=hint)
    if fields:
        estimator = change(estimator, fields, reader_options)
    return estimator if isinstance(estimator, Estimator) else UserEstimator(estimator)


def change(estimator: Any, fields: dict[str, Any], reader_options: Sequence[str] = ()) -> Any:
    """Replace some fields of an estimator, as `find_estimator` does."""
    names = [f.name for f in dataclass_fields(estimator)] if is_dataclass(estimator) else []
    for name in fields:
        if name not in names:
            raise unknown_option(name, reader_options, type(estimator).__name__, names)
    return replace(estimator, **fields)


@lru_cache(maxsize=256, typed=True)
def cached_change(row: Estimator, /, **fields: Any) -> Estimator:
    """Return `change` of a row, cached for the next call: the checks take 10 us."""
    return cast(Estimator, change(row, fields))
