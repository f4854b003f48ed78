"""Samples, estimators with bins, and multiplicities of rows."""

from bisect import bisect_right
from dataclasses import fields
from math import inf

import numpy as np
import reference

from fastece import Binned
from fastece.data.samples import Sample
from fastece.estimators.table import ESTIMATORS
from helpers.strategies import as_lists

CALIBRATION_ERRORS = [  # the rows of the table that are calibration errors of binary problems
    name for name, row in ESTIMATORS.items() if row.is_calibration_error and not row.needs_vectors
]
FIELDS = [field.name for field in fields(Binned)]
R = 32


BINNED = {  # the rows of the table that are binned, and variants of every option
    **{name: estimator for name, estimator in ESTIMATORS.items() if isinstance(estimator, Binned)},
    "one bin": Binned(n_bins=1),
    "many bins": Binned(n_bins=100),
    "many quantiles": Binned(n_bins=40, edges="quantile"),
    "many quantiles, convex": Binned(n_bins=40, edges="quantile", mapping="convex"),
    "sqrt": Binned(n_bins="sqrt"),
    "sqrt quantiles": Binned(n_bins="sqrt", edges="quantile"),
    "sqrt quantiles, convex, norm 2": Binned("sqrt", edges="quantile", mapping="convex", norm=2),
    "left": Binned(n_bins=10, closed="left"),
    "left quantiles": Binned(n_bins=7, edges="quantile", closed="left"),
    "norm 3.5": Binned(norm=3.5),
    "mce": Binned(norm=inf),
    "mce of quantiles": Binned(edges="quantile", norm=inf),
    "mce of convex bins": Binned(mapping="convex", norm=inf),
    "mce of large bins": Binned(n_bins=5, norm=inf, min_count=3),
    "mce of no bins": Binned(n_bins=5, norm=inf, min_count=1e6),
    "support": Binned(score_range="support", edges="quantile"),
    "range": Binned(score_range=(0.25, 0.6)),
    "range, quantiles": Binned(score_range=(0.25, 0.6), edges="quantile", closed="left"),
    "range, convex": Binned(score_range=(0.25, 0.6), mapping="convex"),
    "ace": Binned(edges="quantile", bin_weights="equal"),
    "equal convex": Binned(mapping="convex", bin_weights="equal", norm=2),
    "threshold": Binned(threshold=0.4),
    "threshold, quantiles": Binned(threshold=0.4, edges="quantile", bin_weights="equal"),
    "threshold, sqrt": Binned(threshold=0.4, n_bins="sqrt"),
    "nothing above the threshold": Binned(threshold=1.0),
    "debiased square": Binned(debias=True, norm=2),
    "debiased quantiles": Binned(debias=True, edges="quantile", n_bins="sqrt"),
    "debiased square of quantiles": Binned(debias=True, edges="quantile", norm=2, closed="left"),
    "debiased, equal, threshold": Binned(debias=True, bin_weights="equal", threshold=0.3),
}


def sample_of(scores, true, weight=None, low=0.0, high=1.0):
    """The Sample of a binary problem, sorted by score as the estimators ask."""
    rows = np.argsort(scores, kind="stable").astype(np.int64)
    return Sample(
        s=np.asarray(scores, dtype=np.float64)[rows],
        y=np.asarray(true, dtype=np.uint8)[rows],
        v=None if weight is None else np.asarray(weight, dtype=np.float64)[rows],
        low=low,
        high=high,
        rows=rows,
    )


def repeated(sample, c, estimator):
    """The reference's value on rows repeated c times."""
    columns = (sample.s, sample.y, sample.v)
    s, y, v = as_lists(*(None if x is None else np.repeat(x, c) for x in columns))
    fields = {name: getattr(estimator, name) for name in FIELDS}
    return reference.error((s, y, sample.low, sample.high), v, **fields)


def draws(n, size, blocks_=1, seed=0):
    """Multinomial multiplicities (G, n, 32)."""
    rng = np.random.default_rng(seed)
    c = rng.multinomial(size, np.full(n, 1 / n), size=(blocks_, R)).swapaxes(1, 2)
    return np.ascontiguousarray(np.minimum(c, 255).astype(np.uint8))


def runs_of(u):
    """To which run of equal scores each row belongs, and where each begins."""
    begins = [i for i in range(len(u)) if i == 0 or u[i] != u[i - 1]]
    run = [bisect_right(begins, i) - 1 for i in range(len(u))]
    return np.array(run, np.int32), np.array([*begins, len(u)], np.int32)
