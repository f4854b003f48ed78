"""Tables of a study: of every distribution, over all of them, and who is best."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece.study.contestants import ZERO
from fastece.study.design import Design, Distribution
from fastece.study.runner import Outcome
from fastece.typing import F64

if TYPE_CHECKING:
    import pyarrow as pa

KEY = ("setting", "estimator", "n")
# Resamples of the distributions behind the intervals, whose ends are known to a tenth of their
# length; what makes them random is a purpose like those in `fastece.study.runner`.
RESAMPLES, INTERVALS = 400, 5
LEVEL = 0.95


def errors_of(estimates: F64, truth: F64, suffix: str) -> dict[str, F64]:
    """Measures (settings, contestants, sizes) of estimates (settings, contestants, sizes, draws)
    against the truth (settings,)."""
    ratio = estimates / truth[:, None, None, None]
    with np.errstate(divide="ignore"):  # below 0 is as far off as 0
        distance = np.abs(np.log(np.maximum(ratio, 0.0)))
    return {
        f"p95_relative_error{suffix}": np.quantile(np.abs(ratio - 1), 0.95, axis=-1),
        f"median_abs_log_ratio{suffix}": np.median(distance, axis=-1),
    }


def distribution_table(
    design: Design, which: Distribution, names: Sequence[str], outcome: Outcome
) -> "pa.Table":
    """What is kept of one distribution: a row for each setting, estimator and size.

    Columns n_classes, n_features, mixture, model, training, setting, estimator, n; truth and
    truth_labels, the truth from the posterior and from 2000 bins of labels; mean and sd of the
    estimates; p95_relative_error and median_abs_log_ratio against the first truth, and with the
    suffix _labels against the second.
    """
    import pyarrow as pa

    estimates = outcome.estimates
    shape = estimates.shape[:3]
    exact, labels = outcome.truth.T
    columns: dict[str, Any] = {
        "setting": np.array(design.settings)[:, None, None],
        "estimator": np.array(names)[:, None],
        "n": np.array(design.sizes),
        "truth": exact[:, None, None],
        "truth_labels": labels[:, None, None],
        "mean": estimates.mean(-1),
        "sd": estimates.std(-1, ddof=1),
        **errors_of(estimates, exact, ""),
        **errors_of(estimates, labels, "_labels"),
    }
    rows = {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    same = {name: np.full(rows["n"].size, value) for name, value in which._asdict().items()}
    return pa.table({**same, **rows})


def summarise(values: "pa.Table", design: Design, truth: str = "posterior") -> "pa.Table":
    """Every estimator's errors against the truth from the "posterior" or from "labels", given the
    tables of all distributions, one after the other: a row for each setting, estimator and size n.

    The median over the distributions of p95_relative_error, the 95th percentile over draws of
    ``|estimate - truth| / truth``; of p95_absolute_error, the same without the division; of
    median_abs_log_ratio, the median over draws of ``|log(estimate / truth)|``; of bias, the mean
    over draws of ``estimate - truth``, relative_bias, the same divided by the truth, and sd, the
    standard deviation over draws. Each of them has its 95 % interval from resampled distributions,
    with the suffixes _low and _high. best is the share of the distributions where the estimator has
    the smallest p95_relative_error of all but "zero"; those that share a first place get equal
    parts of it.
    """
    import pyarrow as pa

    shape = (len(design.distributions), len(design.settings), -1, len(design.sizes))

    def column(name: str) -> Any:
        return values[name].to_numpy().reshape(shape)

    suffix = "_labels" if truth == "labels" else ""
    exact = column(f"truth{suffix}")
    relative, bias = column(f"p95_relative_error{suffix}"), column("mean") - exact
    medians = {
        "p95_relative_error": relative,
        "p95_absolute_error": relative * exact,
        "median_abs_log_ratio": column(f"median_abs_log_ratio{suffix}"),
        "bias": bias,
        "relative_bias": bias / exact,
        "sd": column("sd"),
    }
    out = {name: column(name)[0].ravel() for name in KEY}
    for name, of_each in medians.items():
        out[name] = np.median(of_each, axis=0).ravel()
        low, high = resampled(design, of_each)
        out[f"{name}_low"], out[f"{name}_high"] = low.ravel(), high.ravel()
    out["best"] = share_of_best(relative, column("estimator")[0, 0, :, 0] == ZERO).ravel()
    return pa.table(out)


def resampled(design: Design, of_each: F64) -> F64:
    """Ends (2, ...) of the interval of a median over distributions (D, ...), by resampling them."""
    rng = design.rng(INTERVALS)
    draws = rng.integers(len(of_each), size=(RESAMPLES, len(of_each)))
    found = [np.median(of_each[draw], axis=0) for draw in draws]
    outside = round(RESAMPLES * (1 - LEVEL) / 2)
    # Order statistics, nothing between two: medians may be infinite.
    return np.sort(found, axis=0)[[outside - 1, -outside]]


def share_of_best(relative: F64, is_zero: NDArray[np.bool_]) -> F64:
    """How often each estimator has the smallest error (D, settings, estimators, sizes), those that
    measure nothing apart."""
    errors = np.where(is_zero[:, None] | np.isnan(relative), np.inf, relative)
    is_best = (errors == errors.min(axis=2, keepdims=True)) & (errors < np.inf)
    return np.asarray((is_best / is_best.sum(axis=2, keepdims=True).clip(1)).mean(axis=0))


def ranking_of(summary: "pa.Table", measure: str = "p95_relative_error") -> "pa.Table":
    """The estimators of each setting, best first, by one column of what `summarise` makes.

    Columns setting, rank, estimator, mean_rank over the sizes, error_at_n for the smallest, a
    middle and the largest size n, and the means over sizes of best and relative_bias. "zero" comes
    last, with the rank 0.
    """
    import pyarrow as pa

    settings, names, sizes = (list(dict.fromkeys(summary[k].to_pylist())) for k in KEY)
    shape = (len(settings), len(names), len(sizes))
    error, best, bias = (
        summary[name].to_numpy().reshape(shape) for name in (measure, "best", "relative_bias")
    )
    three = sorted({0, len(sizes) // 2, len(sizes) - 1})
    real = np.array([name != ZERO for name in names])
    rows = []
    for k, setting in enumerate(settings):
        ranks = 1 + error[k, real].argsort(axis=0, kind="stable").argsort(axis=0)
        mean_rank = np.full(len(names), np.nan)
        mean_rank[real] = ranks.mean(axis=1)
        for rank, e in enumerate(np.argsort(mean_rank, kind="stable"), 1):
            row = {"setting": setting, "rank": rank if real[e] else 0, "estimator": names[e]}
            row |= {"mean_rank": mean_rank[e]}
            row |= {f"error_at_{sizes[i]}": error[k, e, i] for i in three}
            rows.append(row | {"best": best[k, e].mean(), "relative_bias": bias[k, e].mean()})
    return pa.Table.from_pylist(rows)
