"""The test of Hosmer and Lemeshow: squared gaps of ten groups over their binomial variances."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastece.data.parameters import check_flag
from fastece.estimators.binned import Binned, Bins
from fastece.kernels import GAP, SCORE, SQUARE, WEIGHT
from fastece.kernels.types import F64, I64


@dataclass(frozen=True)
class HosmerLemeshow:
    """Statistic of Hosmer and Lemeshow, for `fastece.calibration_test` alone.

    With the rows n_g, the events O_g and the expected events ``E_g = sum_i s_i`` of a group, it is
    ``sum_g (O_g - E_g)**2 / (E_g (1 - E_g / n_g))``: Hosmer and Lemeshow (1980, "Goodness of fit
    tests for the multiple logistic regression model", equation 1). With weights, a variance is
    multiplied by ``sum_i w_i**2 / sum_i w_i``, so that their scale does not matter.

    Attributes
    ----------
    n_bins : int or "sqrt"
        Number of groups of equal size; tied scores are in one group.
    fitted_here : bool
        Whether the model was fitted to these rows, which takes 2 degrees of freedom.
    """

    n_bins: Any = 10
    fitted_here: bool = False

    is_calibration_error: ClassVar = True
    needs_vectors: ClassVar = False
    native: ClassVar = ()

    def __post_init__(self) -> None:
        check_flag("fitted_here", self.fitted_here)

    @property
    def binned(self) -> Binned:
        """The groups, as bins of equal mass."""
        return Binned(self.n_bins, edges="quantile")

    @property
    def kinds(self) -> tuple[int, ...]:
        """The sums over a group that the statistic needs."""
        return GAP, WEIGHT, SCORE, SQUARE

    def errors(self, bins: Bins) -> F64:
        """Compute the statistic (K,) from sums over the groups of K problems.

        A group whose outcomes are certain contributes nothing if they came, and makes the
        statistic infinite otherwise.
        """
        weight_of_event = 1.0 if bins.square is None else ratio(bins.square, bins.weight)
        variance = bins.score * (1 - ratio(bins.score, bins.weight)) * weight_of_event
        with np.errstate(divide="ignore", over="ignore"):
            terms = np.divide(
                bins.gap**2, variance, out=np.zeros_like(bins.gap), where=bins.gap != 0
            )
        return np.asarray(terms.sum(-1))

    def degrees_of_freedom(self, bins: Bins) -> I64:
        """Count the groups (K,) that have rows, less 2 if the model was fitted to them."""
        n_groups = (bins.weight > 0).sum(-1)
        return np.asarray(n_groups - 2 if self.fitted_here else n_groups)

    def __str__(self) -> str:
        fitted = ", fitted_here=True" if self.fitted_here else ""
        return f"Hosmer-Lemeshow(n_bins={self.n_bins}{fitted})"


def ratio(part: F64, total: F64) -> F64:
    """Divide sums over groups, of which empty ones have 0."""
    return np.divide(part, total, out=np.zeros_like(total), where=total > 0)


def chi_squared_p_value(statistic: F64, degrees_of_freedom: I64) -> F64:
    """Return the probability of a larger value; nan without degrees of freedom."""
    from scipy.special import chdtrc

    has_freedom = degrees_of_freedom > 0
    return np.asarray(chdtrc(np.where(has_freedom, degrees_of_freedom, np.nan), statistic))
