"""A study from its design to its tables and figures, in a folder where it can continue."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece.data.errors import InputError
from fastece.resampling.arguments import check_workers
from fastece.study.candidates import candidates_of
from fastece.study.design import CONVENTIONS, StudyDesign
from fastece.study.estimation import run_distribution
from fastece.study.folder import open_folder, write_table
from fastece.study.result import StudyResult
from fastece.study.simulated import draw_holdout
from fastece.study.summary import distribution_table, is_noise, ranking_of, summarise

if TYPE_CHECKING:
    import pyarrow as pa

EXTRA = ("joblib", "matplotlib", "pyarrow", "sklearn", "threadpoolctl", "tqdm")
NEEDS = "the study needs scikit-learn, pyarrow and matplotlib: pip install 'fastece[study]'"
# Metadata of a table: seconds by kind of work, as JSON.
SECONDS = b"seconds"
FIGURE_ENDINGS = ("png", "svg")


def run_study(
    design: StudyDesign, out: str | Path, *, n_jobs: int | None = None, executor: Any = None,
    progress: bool = True, pictures: bool = True,
) -> StudyResult:  # fmt: skip
    """Run the unfinished part of a study, and write its tables and figures.

    Parameters
    ----------
    design : Design or Predictions
        Of simulated models, or of files.
    out : path
        Folder of the results. A study that was interrupted there continues.
    n_jobs : int, optional
        Processes; -1 for one per core, None for one.
    executor : optional
        In place of processes: an object with ``submit``, whose futures have ``result`` and
        ``cancel``, as in `concurrent.futures`; such as a client of a cluster.
    progress : bool
        Show a bar, if stderr is a terminal.
    pictures : bool
        Draw the figures too, which takes some seconds.

    Returns
    -------
    StudyResult
        The same bits whatever `n_jobs` and `executor` are, and however often it was interrupted.

    Raises
    ------
    ValueError
        If `out` holds something else, or the results of another design, of other code or of files
        that have changed; if a user's estimator is not found, or fails; if every truth is mostly
        noise.
    ImportError
        Without the packages of the extra "study".

    Notes
    -----
    Files: values.parquet, summary.csv (against the truth of the convention), summary_posterior.csv
    or summary_labels.csv (against the other), ranking.csv, figure2, log_ratio and bias as PNG and
    SVG, timings.csv, study.json, and a folder with the finished distributions.

    Examples
    --------
    >>> import tempfile
    >>> from fastece.study import preset, run_study
    >>> design = preset(
    ...     "quick", classes=(2,), features=(2,), models=("naive_bayes",), holdout=2000, n_sizes=2,
    ...     draws=5,
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_study(design, folder, pictures=False)
    >>> result.summary.column_names[:4]
    ['setting', 'estimator', 'n', 'p95_relative_error']
    """
    import_extra()
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm

    check_workers(n_jobs, executor)
    candidates_of(design)  # Unknown estimators are refused before anything is written.
    folder = Path(out)
    open_folder(folder, design)
    paths = {
        distribution: folder / "distributions" / distribution.file_name
        for distribution in design.distributions
    }
    unfinished = [distribution for distribution, path in paths.items() if not path.exists()]
    bar = tqdm(
        compute_tables(design, unfinished, n_jobs, executor), desc="distributions",
        total=len(paths), initial=len(paths) - len(unfinished), disable=None if progress else True,
    )  # fmt: skip
    with threadpool_limits(1):  # Held here, as the first of several threads to end lifts its own.
        for distribution, table in bar:
            write_table(paths[distribution], table)
    draw_holdout.cache_clear()
    result = write_summaries(design, folder, list(paths.values()))
    if pictures:
        draw_figures(result)
    return result


def import_extra() -> None:
    """Import the packages of the extra, or raise an error on how to install them."""
    try:
        for name in EXTRA:
            import_module(name)
    except ImportError as error:
        raise ImportError(NEEDS) from error


def compute_tables(
    design: StudyDesign, distributions: list[Any], n_jobs: int | None, executor: Any
) -> Iterator[tuple[Any, "pa.Table"]]:
    """Yield distributions with their tables, by processes or an executor."""
    if executor is None:
        from joblib import Parallel, delayed

        calls = (delayed(compute_table)(design, each, sys.path) for each in distributions)
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
        return
    futures = [executor.submit(compute_table, design, each, sys.path) for each in distributions]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def compute_table(
    design: StudyDesign, distribution: Any, folders: list[str]
) -> tuple[Any, "pa.Table"]:
    """Compute the table of one distribution, with its seconds, in one process.

    Modules of the user are searched in the caller's folders.
    """
    sys.path += [folder for folder in folders if folder not in sys.path]
    names = [candidate.name for candidate in candidates_of(design)]
    estimates, truths, seconds = run_distribution(design, distribution)
    table = distribution_table(design, distribution, names, estimates, truths)
    return distribution, table.replace_schema_metadata({SECONDS: json.dumps(seconds)})


def write_summaries(design: StudyDesign, folder: Path, paths: list[Path]) -> StudyResult:
    """Write every table of a study from the tables of its distributions."""
    import pyarrow as pa
    from pyarrow import parquet

    convention = CONVENTIONS[design.convention]
    tables = [parquet.read_table(path) for path in paths]
    times = [json.loads(table.schema.metadata[SECONDS]) for table in tables]
    seconds = {kind: sum(time[kind] for time in times) for kind in times[0]}
    truths = list_truths(design, tables)
    values = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
    counted = values.filter(~is_noise(values))
    summary = summarise(counted, design, convention.truth)
    ranking = ranking_of(summary, convention.measure)
    other_summary = summarise(counted, design, convention.other_truth)
    write_table(folder / "values.parquet", values)
    write_table(folder / "summary.csv", summary)
    write_table(folder / f"summary_{convention.other_truth}.csv", other_summary)
    write_table(folder / "ranking.csv", ranking)
    write_table(folder / "timings.csv", pa.table({kind: [time] for kind, time in seconds.items()}))
    return StudyResult(
        design=design, folder=folder, values=values, summary=summary, ranking=ranking,
        truths=truths, seconds=seconds,
    )  # fmt: skip


def list_truths(design: StudyDesign, tables: list["pa.Table"]) -> list[dict[str, Any]]:
    """List the truth of each distribution and setting; refuse a study of noise alone."""
    truths = []
    for distribution, table in zip(design.distributions, tables, strict=True):
        settings = table.group_by(["setting", "truth", "truth_se"], use_threads=False).aggregate([])
        for row, noise in zip(settings.to_pylist(), is_noise(settings).tolist(), strict=True):
            truths.append({"distribution": str(distribution), **row, "is_noise": noise})
    if all(row["is_noise"] for row in truths):
        rule = "{distribution}, {setting}: {truth:.4f}, with a standard error of {truth_se:.4f}"
        first = rule.format_map(truths[0])
        raise InputError("truth", f"is mostly noise, so nothing compares with it; {first}")
    return truths


def draw_figures(result: StudyResult) -> None:
    """Draw the figures of a study into its folder."""
    from fastece.study.figures import curves_figure, save_figure

    measures = {
        "figure2": CONVENTIONS[result.design.convention].measure,
        "log_ratio": "median_abs_log_ratio",
        "bias": "relative_bias",
    }
    for name, measure in measures.items():
        figure = curves_figure(result.summary, measure)
        for ending in FIGURE_ENDINGS:
            save_figure(figure, result.folder / f"{name}.{ending}")
