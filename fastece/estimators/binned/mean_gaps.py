"""Mean gaps of whole problems: the values of most calls, by two calls of kernels.

This serves speed alone. With 100 rows `Binned.point_values` takes 2 us by it, and 8 us by
`sums.sum_bins` and `Binned.errors`. These give the same bits, since the kernel `mean_gaps` adds up
to 128 bins in the order of numpy.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastece import kernels
from fastece.data.errors import InvalidRowsError
from fastece.data.samples import scale_weights
from fastece.data.sources import RowTable
from fastece.estimators.binned.cell_sums import kind_array
from fastece.estimators.binned.float_grid import MIN_ROWS
from fastece.estimators.binned.layouts import BinRule, fixed_layout
from fastece.kernels import GAP
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from fastece.kernels.binning import GridFields
    from fastece.kernels.moments import EqualMassFields

# From so many scores on, threads and chunks of `sums` matter, and microseconds do not.
MAX_SCORES = MIN_ROWS - 1
GAPS = kind_array((GAP,))
NO_SCORES = np.empty(0)


class MeanGaps(NamedTuple):
    """The bins of one rule, as kernels take them to compute ``sum_b |D_b| / W``.

    Attributes
    ----------
    n_bins : int
    is_hard : bool
        Whether a score is in its bin alone.
    grid_fields : tuple or None
        The cells of fixed bins; None for bins of equal weight.
    rule_fields : tuple
        Range and kind of bins of equal weight.
    """

    n_bins: int
    is_hard: bool
    grid_fields: "GridFields | None"
    rule_fields: "EqualMassFields"

    def values(self, problems: RowTable) -> F64:
        """Compute the value (K,) of each problem."""
        prob, label = problems.read()
        n_problems = problems.n_problems
        weight: F64 = kernels.NO_WEIGHTS
        total = float(label.size)
        if problems.v is not None:
            scaled, _ = scale_weights(problems)
            weight = kernels.weights(scaled.v)
            total = float(weight.sum())
        sums = np.empty((1, n_problems, self.n_bins))
        value = np.empty(n_problems)
        moments = kernels.moments
        if self.grid_fields is None:
            edges = np.empty((n_problems, self.n_bins + 1))
            moments.equal_mass_moments(
                prob, label, weight, 0, self.rule_fields, kinds=GAPS, edges=edges, out=sums
            )
        elif self.is_hard and prob.ndim == 1 and weight.size == 0:
            if not moments.hard_moments(prob, label, self.grid_fields, sums):
                raise InvalidRowsError
        else:
            moments.cell_moments(
                prob, label, weight, self.grid_fields, -math.inf, GAPS, only=NO_SCORES, out=sums
            )
        moments.mean_gaps(sums, total, value)
        return value


def mean_gaps_of(rule: BinRule) -> MeanGaps | None:
    """Return the bins of a rule for kernels; None if these do not take them."""
    if rule.threshold > -math.inf or rule.n_bins > kernels.moments.MAX_BINS_AS_NUMPY:
        return None
    grid_fields = None
    if not rule.is_equal_mass:
        layout = fixed_layout(rule)
        if not layout.cells_are_bins:
            return None
        grid_fields = layout.grid_fields
    return MeanGaps(rule.n_bins, not rule.is_convex, grid_fields, rule.equal_mass_fields)
