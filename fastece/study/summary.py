"""Tables of a study: single distributions, summaries over them, and rankings.

To add a column to all tables of single distributions, add it to `distribution_table`; to add one to
summaries, with its median and interval, add it to `measures_of_distributions`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels.types import F64
from fastece.study.candidates import ZERO
from fastece.study.design import Purpose, StudyDesign
from fastece.study.truth import Truth

if TYPE_CHECKING:
    import pyarrow as pa

# Resamples of the distributions behind the intervals, whose ends are known to a tenth of their
# length.
N_RESAMPLES = 400
CONFIDENCE_LEVEL = 0.95
# The quantile over draws that a large error stands for.
ERROR_QUANTILE = 0.95
# A truth of less than so many standard errors is mostly noise.
MIN_STANDARD_ERRORS = 3
# Ending of columns that compare with the truth from labels.
SUFFIX_OF_TRUTH = {"posterior": "", "labels": "_labels"}


def distribution_table(
    design: StudyDesign,
    distribution: Any,
    names: Sequence[str],
    estimates: F64,
    truths: Sequence[Truth],
) -> "pa.Table":
    """Make the table of one distribution: a row for each setting, estimator and size.

    Parameters
    ----------
    design : StudyDesign
    distribution : object
        One of the distributions of the design.
    names : sequence of str
        The candidates.
    estimates : (settings, candidates, sizes, draws) float64 array
    truths : sequence of Truth
        The truth in each setting.

    Notes
    -----
    Columns n_classes, n_features, mixture, model, training, or number, file, n_rows, holds; then
    setting, estimator, n; truth and truth_labels, the debiased error and the one from 2000 bins of
    labels, and truth_se, the standard error of the first; mean and sd of the estimates;
    p95_relative_error and median_abs_log_ratio against the first truth, and with the suffix _labels
    against the second.
    """
    import pyarrow as pa

    shape = estimates.shape[:3]  # settings, candidates, sizes
    debiased = np.array([truth.debiased for truth in truths])
    from_labels = np.array([truth.from_labels for truth in truths])
    standard_error = np.array([truth.standard_error for truth in truths])
    columns: dict[str, Any] = {
        "setting": np.array(design.settings_of(distribution))[:, None, None],
        "estimator": np.array(names)[:, None],
        "n": np.array(design.sizes_of(distribution)),
        "truth": debiased[:, None, None],
        "truth_labels": from_labels[:, None, None],
        "truth_se": standard_error[:, None, None],
        "mean": estimates.mean(-1),
        "sd": estimates.std(-1, ddof=1),
        **errors_over_draws(estimates, debiased, ""),
        **errors_over_draws(estimates, from_labels, "_labels"),
    }
    columns = {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    n_rows = columns["n"].size
    fields = {name: np.full(n_rows, value) for name, value in distribution._asdict().items()}
    return pa.table({**fields, **columns})


def errors_over_draws(estimates: F64, truth: F64, suffix: str) -> dict[str, F64]:
    """Compute the columns of errors of estimates, over their draws.

    Parameters
    ----------
    estimates : (settings, candidates, sizes, draws) float64 array
    truth : (settings,) float64 array
    suffix : str
        Ending of the names of the columns.

    Returns
    -------
    dict
        Arrays (settings, candidates, sizes).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = estimates / truth[:, None, None, None]
        # A negative estimate is as far off as 0.
        log_distance = np.abs(np.log(np.maximum(ratio, 0.0)))
    relative_error = np.abs(ratio - 1)
    return {
        f"p95_relative_error{suffix}": np.quantile(relative_error, ERROR_QUANTILE, axis=-1),
        f"median_abs_log_ratio{suffix}": np.median(log_distance, axis=-1),
    }


def is_noise(values: "pa.Table") -> NDArray[np.bool_]:
    """Return whether each row's truth is mostly noise, below three standard errors."""
    standard_error = values["truth_se"].to_numpy()
    return np.asarray(values["truth"].to_numpy() < MIN_STANDARD_ERRORS * standard_error)


# -- summaries over distributions ------------------------------------------------------------------


def summarise(values: "pa.Table", design: StudyDesign, truth: str = "posterior") -> "pa.Table":
    """Summarise tables of distributions: a row for each setting, estimator and size n.

    Parameters
    ----------
    values : pyarrow.Table
        The tables of all distributions, one below the other.
    design : StudyDesign
    truth : {"posterior", "labels"}
        The debiased truth, or the one from labels.

    Notes
    -----
    A row is over the distributions that have its setting and size. It has the median over the
    distributions of p95_relative_error, the 95th percentile over draws of
    ``|estimate - truth| / truth``; of p95_absolute_error, the same without the division; of
    median_abs_log_ratio, the median over draws of ``|log(estimate / truth)|``; of bias, the mean
    over draws of ``estimate - truth``, relative_bias, the same divided by the truth, and sd, the
    standard deviation over draws. Each of them has its 95 % interval from resampled distributions,
    with the suffixes _low and _high. best is the share of the distributions where the estimator has
    the smallest p95_relative_error of all except "zero"; those that share a first place get equal
    parts of it.
    """
    import pyarrow as pa

    row_setting = values["setting"].to_numpy()
    row_size = values["n"].to_numpy()
    names = list(dict.fromkeys(values["estimator"].to_pylist()))
    tables = []
    for setting in dict.fromkeys(row_setting.tolist()):
        sizes = np.unique(row_size[row_setting == setting])
        summaries = []
        for size in sizes:
            rows = np.flatnonzero((row_setting == setting) & (row_size == size))
            summaries.append(summarise_size(values.take(rows), names, design, truth))
        n_rows = len(names) * sizes.size
        columns = {
            "setting": np.full(n_rows, setting),
            "estimator": np.repeat(names, sizes.size),
            "n": np.tile(sizes, len(names)),
        }
        for name in summaries[0]:
            columns[name] = np.stack([summary[name] for summary in summaries], axis=1).ravel()
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def summarise_size(
    values: "pa.Table", names: Sequence[str], design: StudyDesign, truth: str
) -> dict[str, F64]:
    """Compute the columns (E,) of `summarise` for one setting and one size."""
    measures = measures_of_distributions(values, len(names), SUFFIX_OF_TRUTH[truth])
    n_distributions = values.num_rows // len(names)
    rng = design.rng(Purpose.INTERVALS)
    resamples = rng.integers(n_distributions, size=(N_RESAMPLES, n_distributions))
    n_outside = round(N_RESAMPLES * (1 - CONFIDENCE_LEVEL) / 2)
    columns = {}
    for name, measure in measures.items():
        columns[name] = np.median(measure, axis=0)
        # The ends are order statistics, with nothing between two: medians may be infinite.
        medians = np.sort(np.median(measure[resamples], axis=1), axis=0)
        columns[f"{name}_low"] = medians[n_outside - 1]
        columns[f"{name}_high"] = medians[-n_outside]
    columns["best"] = share_of_first_places(measures["p95_relative_error"], names)
    return columns


def measures_of_distributions(values: "pa.Table", n_estimators: int, suffix: str) -> dict[str, F64]:
    """Compute the measures (distributions, E) whose medians a summary has.

    Parameters
    ----------
    values : pyarrow.Table
        The rows of one setting and one size, all estimators of a distribution together.
    n_estimators : int
        E.
    suffix : str
        Ending of the columns of the truth.
    """

    def column(name: str) -> Any:
        return values[name].to_numpy().reshape(-1, n_estimators)

    truth = column(f"truth{suffix}")
    relative_error = column(f"p95_relative_error{suffix}")
    bias = column("mean") - truth
    return {
        "p95_relative_error": relative_error,
        "p95_absolute_error": relative_error * truth,
        "median_abs_log_ratio": column(f"median_abs_log_ratio{suffix}"),
        "bias": bias,
        "relative_bias": bias / truth,
        "sd": column("sd"),
    }


def share_of_first_places(error: F64, names: Sequence[str]) -> F64:
    """Compute how often, as shares (E,), each estimator has the smallest error.

    Parameters
    ----------
    error : (distributions, E) float64 array
        Those who have the same smallest error share the place; nan and "zero" have none.
    names : sequence of str
    """
    competes = (np.array(names) != ZERO) & ~np.isnan(error)
    error = np.where(competes, error, np.inf)
    is_first = (error == error.min(axis=1, keepdims=True)) & (error < np.inf)
    n_first = is_first.sum(axis=1, keepdims=True).clip(1)
    return np.asarray((is_first / n_first).mean(axis=0))


# -- rankings --------------------------------------------------------------------------------------


def ranking_of(summary: "pa.Table", measure: str = "p95_relative_error") -> "pa.Table":
    """Rank the estimators of each setting by one column of a summary, best first.

    Notes
    -----
    Columns setting, rank, estimator, mean_rank over the sizes, error_at_n for the smallest, a
    middle and the largest size n, nan where a setting has no such size, and the means over sizes of
    best and relative_bias. "zero" comes last, with the rank 0.
    """
    import pyarrow as pa

    settings = list(dict.fromkeys(summary["setting"].to_pylist()))
    sizes = sorted(set(summary["n"].to_pylist()))
    shown_sizes = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    row_setting = summary["setting"].to_numpy()
    rows: list[dict[str, Any]] = []
    for setting in settings:
        of_setting = summary.take(np.flatnonzero(row_setting == setting))
        rows += rank_setting(of_setting, measure, shown_sizes)
    return pa.Table.from_pylist(rows)


def rank_setting(summary: "pa.Table", measure: str, shown_sizes: list[int]) -> list[dict[str, Any]]:
    """Make the rows of `ranking_of` for one setting."""
    names = list(dict.fromkeys(summary["estimator"].to_pylist()))

    def column(name: str) -> Any:
        return summary[name].to_numpy().reshape(len(names), -1)

    error = column(measure)
    sizes = column("n")[0].tolist()
    competes = np.array([name != ZERO for name in names])
    ranks = 1 + error[competes].argsort(axis=0, kind="stable").argsort(axis=0)
    mean_rank = np.full(len(names), np.nan)
    mean_rank[competes] = ranks.mean(axis=1)
    rows = []
    for rank, e in enumerate(np.argsort(mean_rank, kind="stable"), 1):  # nan comes last
        error_of_size = dict(zip(sizes, error[e].tolist(), strict=True))
        rows.append({
            "setting": summary["setting"][0].as_py(),
            "rank": rank if competes[e] else 0,
            "estimator": names[e],
            "mean_rank": mean_rank[e],
            **{f"error_at_{size}": error_of_size.get(size, np.nan) for size in shown_sizes},
            "best": column("best")[e].mean(),
            "relative_bias": column("relative_bias")[e].mean(),
        })  # fmt: skip
    return rows
