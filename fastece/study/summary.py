"""Tables of a study: single distributions, summaries and rankings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels.types import F64
from fastece.study.candidates import ZERO
from fastece.study.design import INTERVALS, StudyDesign
from fastece.study.runner import Outcome

if TYPE_CHECKING:
    import pyarrow as pa

KEY = ("setting", "estimator", "n")
# Resamples of the distributions behind the intervals, whose ends are known to a tenth of their
# length.
RESAMPLES, LEVEL = 400, 0.95
# A truth of less than three standard errors is mostly noise.
NOISE = 3


def errors_of(estimates: F64, truth: F64, suffix: str) -> dict[str, F64]:
    """Compute errors (settings, candidates, sizes) over the draws of estimates.

    The estimates have one more axis, of draws. The truth is (settings,).
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # below 0 is as far off as 0
        ratio = estimates / truth[:, None, None, None]
        distance = np.abs(np.log(np.maximum(ratio, 0.0)))
    return {
        f"p95_relative_error{suffix}": np.quantile(np.abs(ratio - 1), 0.95, axis=-1),
        f"median_abs_log_ratio{suffix}": np.median(distance, axis=-1),
    }


def distribution_table(
    design: StudyDesign, which: Any, names: Sequence[str], outcome: Outcome
) -> "pa.Table":
    """Make the table of one distribution: a row for each setting, estimator and size.

    Notes
    -----
    Columns n_classes, n_features, mixture, model, training, or number, file, n_rows, holds; then
    setting, estimator, n; truth and truth_labels, the debiased error and the one from 2000 bins of
    labels, and truth_se, the standard error of the first; mean and sd of the estimates;
    p95_relative_error and median_abs_log_ratio against the first truth, and with the suffix _labels
    against the second.
    """
    import pyarrow as pa

    estimates = outcome.estimates
    shape = estimates.shape[:3]
    exact, labels, error = outcome.truth.T
    columns: dict[str, Any] = {
        "setting": np.array(design.settings_of(which))[:, None, None],
        "estimator": np.array(names)[:, None],
        "n": np.array(design.sizes_of(which)),
        "truth": exact[:, None, None],
        "truth_labels": labels[:, None, None],
        "truth_se": error[:, None, None],
        "mean": estimates.mean(-1),
        "sd": estimates.std(-1, ddof=1),
        **errors_of(estimates, exact, ""),
        **errors_of(estimates, labels, "_labels"),
    }
    rows = {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    same = {name: np.full(rows["n"].size, value) for name, value in which._asdict().items()}
    return pa.table({**same, **rows})


def is_noise(values: "pa.Table") -> NDArray[np.bool_]:
    """Return whether each row's truth is mostly noise, below three standard errors."""
    return np.asarray(values["truth"].to_numpy() < NOISE * values["truth_se"].to_numpy())


def summarise(values: "pa.Table", design: StudyDesign, truth: str = "posterior") -> "pa.Table":
    """Summarise tables of distributions: a row for each setting, estimator and size n.

    The truth is the debiased one ("posterior") or the one from "labels". A row is over the
    distributions that have its setting and size.

    Notes
    -----
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

    suffix = "_labels" if truth == "labels" else ""
    setting_of, n_of = values["setting"].to_numpy(), values["n"].to_numpy()
    names = list(dict.fromkeys(values["estimator"].to_pylist()))
    tables = []
    for setting in dict.fromkeys(setting_of.tolist()):
        sizes = np.unique(n_of[setting_of == setting])
        found = []
        for size in sizes:
            rows = np.flatnonzero((setting_of == setting) & (n_of == size))
            found.append(measures_of(values.take(rows), names, design, suffix))
        key = np.full(len(names) * sizes.size, setting), np.repeat(names, sizes.size)
        columns = dict(zip(KEY, (*key, np.tile(sizes, len(names))), strict=True))
        for name in found[0]:
            columns[name] = np.stack([one[name] for one in found], axis=1).ravel()
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def measures_of(
    values: "pa.Table", names: Sequence[str], design: StudyDesign, suffix: str
) -> dict[str, F64]:
    """Compute the columns (E,) of `summarise` for one setting and one size."""

    def column(name: str) -> Any:
        return values[name].to_numpy().reshape(-1, len(names))

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
    out = {}
    draws = design.rng(INTERVALS).integers(len(exact), size=(RESAMPLES, len(exact)))
    outside = round(RESAMPLES * (1 - LEVEL) / 2)
    for name, of_each in medians.items():
        out[name] = np.median(of_each, axis=0)
        # Order statistics, nothing between two: medians may be infinite.
        found = np.sort(np.median(of_each[draws], axis=1), axis=0)
        out[f"{name}_low"], out[f"{name}_high"] = found[outside - 1], found[-outside]
    errors = np.where((np.array(names) == ZERO) | np.isnan(relative), np.inf, relative)
    is_best = (errors == errors.min(axis=1, keepdims=True)) & (errors < np.inf)
    out["best"] = (is_best / is_best.sum(axis=1, keepdims=True).clip(1)).mean(axis=0)
    return out


def ranking_of(summary: "pa.Table", measure: str = "p95_relative_error") -> "pa.Table":
    """Rank the estimators of each setting by one column of a summary, best first.

    Notes
    -----
    Columns setting, rank, estimator, mean_rank over the sizes, error_at_n for the smallest, a
    middle and the largest size n, nan where a setting has no such size, and the means over sizes of
    best and relative_bias. "zero" comes last, with the rank 0.
    """
    import pyarrow as pa

    settings, names, sizes = (list(dict.fromkeys(summary[k].to_pylist())) for k in KEY)
    sizes = sorted(sizes)
    three = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    real = np.array([name != ZERO for name in names])
    rows = []
    for setting in settings:
        mine = summary.take(np.flatnonzero(summary["setting"].to_numpy() == setting))
        columns = (mine[name].to_numpy() for name in (measure, "best", "relative_bias", "n"))
        error, best, bias, n = (column.reshape(len(names), -1) for column in columns)
        ranks = 1 + error[real].argsort(axis=0, kind="stable").argsort(axis=0)
        mean_rank = np.full(len(names), np.nan)
        mean_rank[real] = ranks.mean(axis=1)
        for rank, e in enumerate(np.argsort(mean_rank, kind="stable"), 1):
            at = dict(zip(n[e].tolist(), error[e].tolist(), strict=True))
            row = {"setting": setting, "rank": rank if real[e] else 0, "estimator": names[e]}
            row |= {"mean_rank": mean_rank[e]}
            row |= {f"error_at_{size}": at.get(size, np.nan) for size in three}
            rows.append(row | {"best": best[e].mean(), "relative_bias": bias[e].mean()})
    return pa.Table.from_pylist(rows)
