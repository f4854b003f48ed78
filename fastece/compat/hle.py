"""Calibration errors of stated confidences, as benchmarks of language models compute them.

`calib_err` is the error of Humanity's Last Exam (Phan et al. 2025),
``hle_eval/run_judge_results.py``, which took it from Hendrycks et al. (2019, "Deep anomaly
detection with outlier exposure"), and of many benchmarks that followed. `calibration_error` is the
error of BrowseComp in inspect-evals. None of their code is imported.

Notes
-----
- `calib_err`: Runs of 100 rows in the order of their confidences, the last with the rest as well;
  the root mean square of their gaps. The last run, of the surest answers, counts as if its gap were
  0: of 830 rows that is 130 of them, of fewer than 200 all. Equal confidences are parted in the
  order of numpy's sort, which depends on the processor. inspect-evals counts the last run too, so
  its `hle/cerr` is larger.
- `calibration_error`: Ten bins of equal width, closed at the right, and the mean of absolute gaps:
  of whole percents it is `ece(correct, confidence, n_bins=10)`.
- In both, an answer without a stated confidence has one of 100 %. OpenAI's simple-evals, which has
  BrowseComp and SimpleQA, computes no calibration error.
"""

from typing import Any, Literal

import numpy as np

from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.parameters import check_choice

NAMES = LIBRARIES["hle"]


def calib_err(
    confidence: Any, correct: Any, p: Literal["1", "2", "infty"] = "2", beta: int = 100
) -> np.float64:
    """Compute the calibration error of Humanity's Last Exam.

    Parameters
    ----------
    confidence : (n,) array_like of float
        Stated confidences, from 0 to 1.
    correct : (n,) array_like of int or bool
        Whether the answers are right.
    p : {"2", "1", "infty"}
        Root mean square, mean or largest of the gaps.
    beta : int, default 100
        Rows of a run.

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`.

    Notes
    -----
    ``(sum_b n_b / n |gap_b|**p)**(1/p)`` over all runs except the last, whose rows are still
    counted in n. To count the last run too, and to keep equal confidences together, use the row
    ``"hle"`` of `fastece.compat.conventions.CONVENTIONS`: ``binned(100, confidence, norm=2)`` is an
    estimator.

    Examples
    --------
    >>> calib_err([0.5, 0.6, 0.8, 0.9, 0.9, 1.0], [0, 1, 0, 1, 0, 0], beta=2).round(4)
    np.float64(0.2041)
    """
    check_choice("p", p, ["1", "2", "infty"])
    prob = NAMES.vector(confidence)
    beta = check_bins("beta", beta)
    sample = NAMES.read(correct, prob).view()
    n = sample.s.size
    run = np.minimum(np.arange(n) // beta, max(n // beta - 1, 0))
    # Ties are in the order of numpy's sort, as in the original.
    gaps_of_rows = (sample.y - sample.s)[np.argsort(sample.s)]
    size = np.bincount(run)
    gaps = np.abs(np.bincount(run, gaps_of_rows) / size)
    gaps_but_last = gaps[:-1]
    if p == "infty":
        return np.float64(gaps_but_last.max(initial=0.0))
    power = int(p)
    return np.float64((size[:-1] / n @ gaps_but_last**power) ** (1 / power))


def calibration_error(correct: Any, confidence: Any, num_bins: int = 10) -> np.float64:
    """Compute the calibration error of BrowseComp, as inspect-evals does.

    Parameters
    ----------
    correct, confidence
        As in `calib_err`, which has the errors too; there they are inside the scores of a log.
    num_bins : int, default 10
        Number of bins.

    Examples
    --------
    >>> calibration_error([0, 1, 0, 1], [0.5, 0.65, 0.8, 0.95]).round(4)
    np.float64(0.425)
    """
    prob = NAMES.vector(confidence)
    num_bins = check_bins("num_bins", num_bins)
    return CONVENTIONS["browse_comp"].value(correct, prob, num_bins)
