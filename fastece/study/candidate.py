"""A candidate of a study: an estimator under test, with its name in results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastece.estimators.draws import Rows
from fastece.kernels.types import F64

# The candidate that estimates 0 always.
ZERO = "zero"


@dataclass(frozen=True)
class Candidate:
    """An estimator with its name in results.

    Parameters
    ----------
    name : str
    estimator : Estimator
        See `fastece.estimators.protocol`.
    """

    name: str
    estimator: Any

    def values(self, problems: Sequence[Rows]) -> F64:
        """Compute the estimates (R,) of R draws, each a mean over the problems.

        Parameters
        ----------
        problems : sequence of Rows
            The drawn rows of one problem, or of every class.
        """
        values = []
        for drawn in problems:
            size = drawn.rows.shape[1]
            plan = self.estimator.prepare(drawn.sample, size)
            values.append(self.estimator.values(plan, drawn))
        return np.asarray(np.mean(values, axis=0))


class Zero(Candidate):
    """The constant estimate 0: the cost of not measuring."""

    def values(self, problems: Sequence[Rows]) -> F64:
        """Return 0 for every draw."""
        return np.zeros(len(problems[0].rows))
