"""A study from its design to its tables and figures."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from fastece.resampling.arguments import check_executor
from fastece.study.arena import CONVENTIONS, Arena
from fastece.study.contestants import ZERO
from fastece.study.mixtures import holdout_of
from fastece.study.runner import contestants_of, run_distribution
from fastece.study.store import Store, code_of
from fastece.study.summary import distribution_table, is_noise, ranking_of, summarise, truths_in

if TYPE_CHECKING:
    import pyarrow as pa

EXTRA = ("joblib", "matplotlib", "pyarrow", "sklearn", "threadpoolctl", "tqdm")
NEEDS = "the study needs scikit-learn, pyarrow and matplotlib: pip install 'fastece[study]'"
# Metadata of a table: what it took.
SECONDS = b"seconds"


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found.

    Attributes
    ----------
    design, folder : Design or Predictions, Path
        What was asked, and where the files are.
    values : pyarrow.Table
        A row for each distribution, setting, estimator and size, as
        `fastece.study.summary.distribution_table` describes it.
    summary : pyarrow.Table
        A row for each setting, estimator and size, as `fastece.study.summary.summarise` describes
        it, against the truth of the design's convention.
    ranking : pyarrow.Table
        The estimators of each setting, best first.
    truths : list of dict
        Of each distribution and setting: "distribution", "setting", "truth", its standard error
        "truth_se", and "is_noise": whether it is mostly noise, and so not in the summary.
    seconds : dict
        What the work took, by kind, of all processes together.
    """

    design: Arena
    folder: Path
    values: "pa.Table"
    summary: "pa.Table"
    ranking: "pa.Table"
    truths: list[dict[str, Any]]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def evaluations(self) -> int:
        """Values that were estimated, constant zeros apart."""
        names: list[str] = self.values["estimator"].to_pylist()
        return (len(names) - names.count(ZERO)) * self.design.draws

    def __str__(self) -> str:
        design = self.design
        seconds = ", ".join(f"{kind} {value:.0f}" for kind, value in self.seconds.items())
        division = " / truth" if design.convention == "corrected" else ""
        sizes = sorted(set(self.values["n"].to_pylist()))
        what = "files of predictions" if design.files else "distributions of scores"
        # Those of simulated models are many, and known from the posterior.
        known = [row for row in self.truths if design.files or row["is_noise"]]
        truths = "".join(truth_text(row) + "\n" for row in known)
        return (
            f"{len(design.distributions)} {what}, {len(sizes)} sizes from {sizes[0]} to "
            f"{sizes[-1]}, {design.draws} draws, {self.evaluations:,} evaluations; "
            f"{design.convention} convention\n"
            f"{self._ranking_text()}\n\n{truths}"
            f"95th percentile over draws of |estimate - truth|{division}, median over the "
            "distributions; rank: mean over sizes;\n"
            "best, bias: how often, and how far off on average, over sizes.\n"
            f"seconds, all processes together: {seconds}\n"
            f"files: {self.folder}"
        )

    def _ranking_text(self) -> str:
        """The ranking, a table for each setting."""
        errors = self.ranking.column_names[4:-2]
        sizes = "  ".join(f"n = {name.rpartition('_')[2]:>4}" for name in errors)
        lines, setting = [], None
        for row in self.ranking.to_pylist():
            if row["setting"] != setting:
                setting = row["setting"]
                lines += ["", f"{setting:<10} rank  {'estimator':<20} {sizes}   best   bias"]
            rank = f"{row['mean_rank']:4.1f}" if row["rank"] else ""
            cells = "  ".join(f"{row[name]:8.2f}".replace("nan", "  -") for name in errors)
            lines.append(
                f"{rank:>15}  {row['estimator']:<20} {cells}  {row['best']:4.0%}  "
                f"{row['relative_bias']:+5.0%}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: everything but the rows of each distribution."""
        return {
            "design": self.design.to_dict(),
            "folder": str(self.folder),
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "summary": self.summary.to_pylist(),
            "ranking": self.ranking.to_pylist(),
            "truths": self.truths,
        }


def truth_text(row: dict[str, Any]) -> str:
    """One of a study's truths, in words."""
    noise = ", which is mostly noise: not counted" if row["is_noise"] else ""
    return (
        f"{row['distribution']}, {row['setting']}: the true error is {row['truth']:.4f}, with a "
        f"standard error of {row['truth_se']:.4f}{noise}"
    )


def rows_of(design: Arena, which: Any, folders: list[str]) -> tuple[Any, "pa.Table"]:
    """The table of one distribution, with what it took: what a worker does. It looks for modules of
    the user in the folders where the caller does."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    names = [contestant.name for contestant in contestants_of(design)]
    outcome = run_distribution(design, which)
    table = distribution_table(design, which, names, outcome)
    return which, table.replace_schema_metadata({SECONDS: json.dumps(outcome.seconds)})


def tables(
    design: Arena, todo: list[Any], n_jobs: int | None, executor: Any
) -> Iterator[tuple[Any, "pa.Table"]]:
    """The tables of some distributions, as they are finished."""
    if executor is None:
        from joblib import Parallel, delayed

        calls = (delayed(rows_of)(design, which, sys.path) for which in todo)
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
        return
    finished: SimpleQueue[Any] = SimpleQueue()
    futures = [executor.submit(rows_of, design, which, sys.path) for which in todo]
    try:
        for future in futures:
            future.add_done_callback(finished.put)
        for _ in futures:
            yield finished.get().result()
    finally:
        for future in futures:
            future.cancel()


def run_study(
    design: Arena, out: str | Path, *, n_jobs: int | None = None, executor: Any = None,
    progress: bool = True, pictures: bool = True,
) -> StudyResult:  # fmt: skip
    """Run what is not yet finished of a study, and write its tables and figures.

    Parameters
    ----------
    design : Design or Predictions
        Of simulated models, or of files.
    out : path
        Folder of the results. A study that was interrupted there goes on.
    n_jobs : int, optional
        Processes; -1 for one per core, None for one.
    executor : optional
        In place of processes: an object with ``submit``, whose futures have ``result``, ``cancel``
        and ``add_done_callback``, as in `concurrent.futures`; such as a client of a cluster.
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
    try:
        for name in EXTRA:
            import_module(name)
    except ImportError as error:
        raise ImportError(NEEDS) from error
    from tqdm import tqdm

    check_executor(executor, n_jobs)
    contestants_of(design)  # what is not found is said before anything is written
    store = Store(Path(out), design, code_of(design))
    todo = [which for which in design.distributions if not store.has(which)]
    bar = tqdm(
        tables(design, todo, n_jobs, executor), desc="distributions",
        total=len(design.distributions), initial=len(design.distributions) - len(todo),
        disable=None if progress else True,
    )  # fmt: skip
    for which, table in bar:
        store.write(which, table)
    holdout_of.cache_clear()
    result = write_tables(store, design)
    if pictures:
        write_pictures(store, result)
    return result


def write_tables(store: Store, design: Arena) -> StudyResult:
    """Every table, from those of all distributions."""
    import pyarrow as pa

    truth, other, measure = CONVENTIONS[design.convention]
    found = [store.read(which) for which in design.distributions]
    times = [json.loads(table.schema.metadata[SECONDS]) for table in found]
    seconds = {kind: sum(one[kind] for one in times) for kind in times[0]}
    values = pa.concat_tables([table.replace_schema_metadata(None) for table in found])
    pairs = zip(design.distributions, found, strict=True)
    truths = [row for which, table in pairs for row in truths_in(which, table)]
    if all(row["is_noise"] for row in truths):
        raise ValueError(f"truth: nothing to compare with. {truth_text(truths[0])}")
    known = values.filter(~is_noise(values))
    summary = summarise(known, design, truth)
    ranking = ranking_of(summary, measure)
    store.write_parquet("values.parquet", values)
    store.write_csv("summary.csv", summary)
    store.write_csv(f"summary_{other}.csv", summarise(known, design, other))
    store.write_csv("ranking.csv", ranking)
    store.write_csv("timings.csv", pa.table({kind: [x] for kind, x in seconds.items()}))
    return StudyResult(design, store.folder, values, summary, ranking, truths, seconds)


def write_pictures(store: Store, result: StudyResult) -> None:
    """Every figure, as PNG and SVG."""
    from fastece.study.figures import curves_figure, save_figure

    *_, error = CONVENTIONS[result.design.convention]
    measures = {"figure2": error, "log_ratio": "median_abs_log_ratio", "bias": "relative_bias"}
    for name, measure in measures.items():
        figure = curves_figure(result.summary, measure)
        for kind in ("png", "svg"):
            save_figure(figure, store.folder / f"{name}.{kind}")
