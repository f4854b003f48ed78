"""Values of groups of rows, each of which is a table of its own."""

import numpy as np

from fastece.data.errors import InputError
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.base import Estimator, values_of_problems
from fastece.estimators.plain import plain_values_of_parts
from fastece.kernels.types import F64


def values_of_parts(
    estimator: Estimator, table: RowTable, per_class: bool = False, run: Map = map
) -> F64:
    """Compute the value (G,) of each part, or the values (G, K) of its classes."""
    if per_class and table.shares_are_drawn:
        rule = "must be 'macro' with {by} and 'top-label': groups may predict other classes"
        raise InputError("average", rule, value=None)
    order, offsets = table.order_by_part()
    if per_class:
        values = np.full((offsets.size - 1, table.n_problems), np.nan)
        others = np.arange(len(values))
    else:
        values = plain_values_of_parts(table, estimator, order, offsets)
        others = np.flatnonzero(np.isnan(values))
    for g in others:
        part = table.part(order[offsets[g] : offsets[g + 1]])
        of_part = values_of_problems(estimator, part, run)
        values[g] = of_part if per_class else part.average(of_part)
    return values
