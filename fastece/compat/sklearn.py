"""scikit-learn's `calibration_curve`, by its name, arguments and numbers.

scikit-learn is not imported. Scorers and a display for scikit-learn are in `fastece.sklearn`.

Notes
-----
- `calibration_curve`: Five bins, and empty ones are left out, so that curves of two models may have
  different lengths. Edges are a float above `j / B` here and there: 0.3 of ten bins is in the bin
  below an edge of 0.30000000000000004.
- With `strategy="quantile"`, tied scores stay together, and bins that they leave empty are not
  returned.
"""

from typing import Any, Literal

from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.containers import as_array
from fastece.data.parameters import check_choice
from fastece.kernels.types import F64

NAMES = LIBRARIES["scikit-learn"]
STRATEGIES = {"uniform": "sklearn", "quantile": "sklearn_quantile"}


def calibration_curve(
    y_true: Any, y_prob: Any, *, pos_label: Any = None, n_bins: int = 5,
    strategy: Literal["uniform", "quantile"] = "uniform",
) -> tuple[F64, F64]:  # fmt: skip
    """Compute observed frequency and mean score of each bin, as scikit-learn does.

    Parameters
    ----------
    y_true : (n,) array_like
        Labels of two classes.
    y_prob : (n,) array_like of float
        Probability of the positive class.
    pos_label : label, optional
        The positive class; 1 if labels are 0 and 1, or -1 and 1.
    n_bins : int, default 5
        Number of bins.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of about as many rows each, between numpy's percentiles.

    Returns
    -------
    prob_true : (B,) float64 array
        Share of the positive class in each bin that has rows.
    prob_pred : (B,) float64 array
        Mean of their scores.

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`.

    Notes
    -----
    Unlike in `fastece.reliability_diagram`, bins without rows are left out, so that arrays of two
    models may have different lengths. Edges are ``j * (1 / n_bins)``, a float above the edges of
    fastece here and there: 0.3 of ten bins is below an edge of 0.30000000000000004.

    Examples
    --------
    >>> calibration_curve(["a", "b", "b"], [0.1, 0.9, 0.8], pos_label="b", n_bins=2)[0]
    array([0., 1.])
    """
    convention = CONVENTIONS[STRATEGIES[check_choice("strategy", strategy, tuple(STRATEGIES))]]
    label = as_array("y_true", y_true)
    prob = NAMES.vector(NAMES.columns(y_prob))
    if pos_label is None and label.dtype.kind in "if" and label.min(initial=0) == -1:
        pos_label = 1
    table = NAMES.read(label, prob, pos_label=pos_label)
    (bins,) = convention.bins(table, check_bins("n_bins", n_bins), prob.dtype)
    has_rows = bins.weight[0] > 0
    weight = bins.weight[0, has_rows]
    return bins.hits[0, has_rows] / weight, bins.score[0, has_rows] / weight
