"""The table of conventions: the bins of other libraries, and their closed ends.

A convention is a rule for the edges of bins and the side on which bins are closed. `Binned` with
explicit edges takes any rule, so whatever takes an estimator takes a convention too:

>>> import fastece
>>> from fastece.compat.conventions import CONVENTIONS
>>> torch = CONVENTIONS["torchmetrics"].binned(10)
>>> fastece.ece([0, 1, 1], [0.2, 0.6, 1.0], estimator=torch)
0.20000000000000004
>>> result = fastece.bootstrap([0, 1, 1], [0.2, 0.6, 1.0], estimator=torch, rng=0)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.compat import edges
from fastece.compat.edges import Rule, Scores
from fastece.compat.names import LIBRARIES
from fastece.data.errors import InputError
from fastece.data.parameters import check_integer
from fastece.data.table import RowTable, one_problem
from fastece.estimators.binned import Binned, Bins, formula_of
from fastece.estimators.binned.layouts import hard_layout
from fastece.estimators.binned.sums import bins_of_layout
from fastece.estimators.plain import plain_value
from fastece.kernels import GAP, HITS, SCORE, WEIGHT
from fastece.kernels.types import F64

# More bins than anybody wants; their edges are a list of Python's floats.
MAX_BINS = 2**20
# Limit of numbers of rows.
MAX_ROWS = 2**31
# Bins that depend on no scores are kept up to this number.
MAX_KEPT_BINS = 4096
NO_SCORES = np.empty(0)


@dataclass(frozen=True, eq=False)
class Convention:
    """How functions of a library bin scores.

    Parameters
    ----------
    library : str
        Name of the package.
    functions : tuple of str
        Functions of the module of `fastece.compat` that use it.
    edges : callable
        Computes the edges from the number of bins and the scores, see `fastece.compat.edges`.
    closed : {"left", "right"}
        Bins ``[a, b)`` or ``(a, b]``.
    formula, ends, bad : str
        Descriptions for readers: of the edges; of the bins of the scores 0 and 1; of the library's
        treatment of scores that are nan or outside [0, 1].
    needs_scores : bool
        Whether edges depend on the scores.
    """

    library: str
    functions: tuple[str, ...]
    edges: Rule
    closed: Literal["left", "right"]
    formula: str
    ends: str
    bad: str
    needs_scores: bool = False

    def binned(self, n_bins: int, scores: Scores = NO_SCORES, **fields: Any) -> Binned:
        """Build the estimator: `Binned` with the edges of this convention.

        Parameters
        ----------
        n_bins : int
            The number as the library counts it; a bin for scores of 1 alone is one more.
        scores : (n,) array of float
            All scores, where edges depend on them; else only their dtype matters.
        **fields
            Other parameters of `Binned`, such as ``norm=2``.

        Raises
        ------
        ValueError, TypeError
            For an invalid number of bins, and for edges that depend on scores without any.
        """
        n_bins = check_bins("n_bins", n_bins)
        scores = np.asarray(scores)
        if self.needs_scores and not scores.size:
            raise InputError("scores", "are needed for edges that depend on them, got none")
        if self.needs_scores or n_bins > MAX_KEPT_BINS:
            edges_of_bins = self.edges(n_bins, scores).tolist()
            return Binned(edges=edges_of_bins, closed=self.closed, **fields)
        return fixed_bins(self, n_bins, scores.dtype, tuple(sorted(fields.items())))

    def value(self, label: Any, prob: NDArray[Any], n_bins: int) -> np.float64:
        """Compute the error of scores of one class."""
        value = plain_value(label, prob, self.binned(n_bins, prob))
        if value == value:  # not nan
            return np.float64(value)
        return np.float64(self.errors(label, prob, n_bins)[0])

    def errors(
        self, label: Any, prob: NDArray[Any], n_bins: int, setting: Any = "auto",
        guess_logits: bool = False, **fields: Any,
    ) -> F64:  # fmt: skip
        """Compute the error (K,) of each problem of a library's labels and probabilities.

        `setting` and `guess_logits` go to `read_problems`, `fields` are parameters of `Binned`.
        """
        names = LIBRARIES[self.library]
        table = names.read(label, prob, setting, guess_logits=guess_logits)
        if not self.needs_scores:
            return self.binned(n_bins, prob, **fields).point_values(table)
        formula = formula_of(**fields)
        errors = [formula.errors(bins) for bins in self.bins(table, n_bins, prob.dtype)]
        return np.concatenate(errors)

    def bins(
        self, table: RowTable, n_bins: int, dtype: np.dtype[Any], threshold: float | None = None,
        kinds: Sequence[int] = (GAP, WEIGHT, SCORE, HITS),
    ) -> Iterator[Bins]:  # fmt: skip
        """Add up the rows of each problem in its bins.

        Problems with the same bins come together. With a `threshold` only rows with a score greater
        than this exist, and where edges depend on scores, problems without any are left out. The
        library has the scores of the table in a `dtype`; `kinds` are the sums that are needed.
        """
        if not self.needs_scores:
            binned = self.binned(n_bins, np.empty(0, dtype), threshold=threshold)
            yield binned.bins(table, kinds=kinds)
            return
        for k in range(table.n_problems):
            sample = table.view(k)
            if threshold is not None:
                sample = sample.where(sample.s > threshold)
            if sample.n:
                scores: Scores = sample.s.astype(np.float32) if dtype == np.float32 else sample.s
                edges_of_bins = self.edges(n_bins, scores).astype(np.float64, copy=False)
                layout = hard_layout(edges_of_bins, edges_of_bins[1:-1], self.closed == "right")
                yield bins_of_layout(layout, one_problem(sample), kinds)


def check_bins(name: str, value: Any) -> int:
    """Check a number of bins."""
    return check_integer(name, value, 1, MAX_BINS)


@lru_cache(maxsize=256)
def fixed_bins(
    convention: Convention, n_bins: int, dtype: np.dtype[Any], fields: tuple[tuple[str, Any], ...]
) -> Binned:
    """Build the bins of a convention that ignores the scores, and cache them."""
    edges_of_bins = convention.edges(n_bins, np.empty(0, dtype)).tolist()
    return Binned(edges=edges_of_bins, closed=convention.closed, **dict(fields))


ALONE = "0 in the first bin, 1 in a bin of its own after the last"
INSIDE = "0 in the first bin, 1 in the last"
LOGITS = "one value outside makes all of them logits; nan counts somewhere"
CLIPPED = "clipped to [0, 1]; nan counts somewhere"
NEAREST = "counts in the nearest bin; nan in the last"
LAST = "counts in the first or the last bin"
REFUSED = "an error; nan is returned"

CONVENTIONS = {
    "torchmetrics": Convention(
        library="torchmetrics",
        functions=("multiclass_calibration_error", "MulticlassCalibrationError"),
        edges=edges.one_alone(edges.single_two_sided_steps),
        closed="left",
        formula="`torch.linspace` in float32, to which scores are rounded",
        ends=ALONE,
        bad=LOGITS,
    ),
    "torchmetrics_binary": Convention(
        library="torchmetrics",
        functions=("binary_calibration_error", "BinaryCalibrationError"),
        edges=edges.one_alone(edges.two_sided_steps),
        closed="left",
        formula="`torch.linspace` in the precision of the scores",
        ends=ALONE,
        bad=LOGITS,
    ),
    "netcal": Convention(
        library="netcal",
        functions=("ECE", "MCE", "ACE"),
        edges=edges.linspace,
        closed="left",
        formula="`j * (1 / B)`",
        ends=INSIDE,
        bad=CLIPPED,
    ),
    "netcal_quantile": Convention(
        library="netcal",
        functions=("ECE(equal_intervals=False)", "MCE", "ACE"),
        edges=partial(edges.quantiles, 1),
        closed="left",
        formula="quantiles of the scores by numpy, and 0 and 1",
        ends=INSIDE,
        bad=CLIPPED,
        needs_scores=True,
    ),
    "uncertainty_calibration": Convention(
        library="uncertainty-calibration",
        functions=("get_ece",),
        edges=edges.quotients,
        closed="right",
        formula="`j / B`",
        ends=INSIDE,
        bad=NEAREST,
    ),
    "uncertainty_calibration_quantile": Convention(
        library="uncertainty-calibration",
        functions=("get_ece_em", "get_calibration_error"),
        edges=edges.middles_of_groups,
        closed="right",
        formula="middles between neighbours of two groups of n // B scores",
        ends=INSIDE,
        bad=NEAREST,
        needs_scores=True,
    ),
    "uncertainty_calibration_discrete": Convention(
        library="uncertainty-calibration",
        functions=("get_calibration_error",),
        edges=edges.middles_of_scores,
        closed="right",
        formula="middles between all distinct scores",
        ends=INSIDE,
        bad=NEAREST,
        needs_scores=True,
    ),
    "sklearn": Convention(
        library="scikit-learn",
        functions=("calibration_curve",),
        edges=edges.linspace,
        closed="right",
        formula="`j * (1 / B)`",
        ends=INSIDE,
        bad=REFUSED,
    ),
    "sklearn_quantile": Convention(
        library="scikit-learn",
        functions=('calibration_curve(strategy="quantile")',),
        edges=partial(edges.quantiles, 100),
        closed="right",
        formula="percentiles of the scores by numpy, and 0 and 1",
        ends=INSIDE,
        bad=REFUSED,
        needs_scores=True,
    ),
    "relplot": Convention(
        library="relplot",
        functions=("binnedECE",),
        edges=edges.smallest_with_quotient,
        closed="left",
        formula="where `int(s / (1 / B))` changes",
        ends="0 in the first bin, 1 mostly in one of its own",
        bad="an error, or a bin further on",
    ),
    "robustness_metrics": Convention(
        library="uncertainty-metrics",
        functions=("gce", "ece", "sce"),
        edges=edges.one_alone(edges.linspace),
        closed="left",
        formula="`j * (1 / B)`",
        ends=ALONE,
        bad=LAST,
    ),
    "robustness_metrics_adaptive": Convention(
        library="uncertainty-metrics",
        functions=("gce", "rmsce", "ace", "tace"),
        edges=edges.order_statistics,
        closed="left",
        formula="the scores at the positions `round(j n / B)`",
        ends=INSIDE,
        bad=LAST,
        needs_scores=True,
    ),
    "hle": Convention(
        library="hle",
        functions=("calib_err",),
        edges=edges.middles_of_runs,
        closed="right",
        formula="between runs of 100 rows in order, which part equal scores; the last run counts 0",
        ends=INSIDE,
        bad="nan counts nowhere, outside somewhere",
        needs_scores=True,
    ),
    "browse_comp": Convention(
        library="hle",
        functions=("calibration_error",),
        edges=edges.linspace,
        closed="right",
        formula="`j * (1 / B)`, of BrowseComp in inspect-evals",
        ends=INSIDE,
        bad=LAST,
    ),
}
