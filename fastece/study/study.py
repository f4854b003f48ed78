"""A study from its design to its tables and figures."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece.checks.errors import InputError
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import Number
from fastece.document.plain import to_plain
from fastece.document.result import Readable
from fastece.resampling.arguments import check_executor
from fastece.study.base import CONVENTIONS, StudyDesign
from fastece.study.candidates import ZERO, candidates_of
from fastece.study.design import holdout_of
from fastece.study.runner import run_distribution
from fastece.study.store import Store, code_of
from fastece.study.summary import distribution_table, is_noise, ranking_of, summarise, truths_in

if TYPE_CHECKING:
    import pyarrow as pa

EXTRA = ("joblib", "matplotlib", "pyarrow", "sklearn", "threadpoolctl", "tqdm")
NEEDS = "the study needs scikit-learn, pyarrow and matplotlib: pip install 'fastece[study]'"
# Metadata of a table: seconds by kind of work.
SECONDS = b"seconds"


@dataclass(frozen=True, eq=False)
class StudyResult(Readable):
    """The tables of a study.

    Attributes
    ----------
    design, folder : Design or Predictions, Path
        The design, and the folder of the files.
    values : pyarrow.Table
        A row for each distribution, setting, estimator and size: see
        `fastece.study.summary.distribution_table`.
    summary : pyarrow.Table
        A row for each setting, estimator and size, against the truth of the design's convention:
        see `fastece.study.summary.summarise`.
    ranking : pyarrow.Table
        The estimators of each setting, best first.
    truths : list of dict
        Of each distribution and setting: "distribution", "setting", "truth", its standard error
        "truth_se", and "is_noise": whether it is mostly noise, and so not in the summary.
    seconds : dict
        Seconds by kind of work, of all processes together.
    """

    design: StudyDesign
    folder: Path
    values: "pa.Table"
    summary: "pa.Table"
    ranking: "pa.Table"
    truths: list[dict[str, Any]]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def evaluations(self) -> int:
        """Number of values that were estimated, constant zeros apart."""
        names: list[str] = self.values["estimator"].to_pylist()
        return (len(names) - names.count(ZERO)) * self.design.draws

    def document(self) -> Document:
        """Describe the study: the ranking of each setting, and the truths of files."""
        design, sizes = self.design, sorted(set(self.values["n"].to_pylist()))
        kind = "files of predictions" if design.files else "distributions of scores"
        division = " / truth" if design.convention == "corrected" else ""
        notes = (
            f"95th percentile over draws of |estimate - truth|{division}, median over the "
            "distributions; rank: mean over sizes; best and bias: how often, and how far off on "
            "average, over sizes.",
        )
        seconds = ", ".join(f"{kind} {value:.0f}" for kind, value in self.seconds.items())
        facts = {"seconds, all processes together": seconds, "files": str(self.folder)}
        settings = dict.fromkeys(self.ranking["setting"].to_pylist())
        return Document(
            f"{len(design.distributions)} {kind}, {len(sizes)} sizes from {sizes[0]} to "
            f"{sizes[-1]}, {design.draws} draws, {self.evaluations:,} evaluations; "
            f"{design.convention} convention",
            sections=[
                *(Section(setting, table=self._ranking(setting)) for setting in settings),
                *self._truths(),
                Section("run", facts=facts, notes=notes),
            ],
        )

    def _ranking(self, setting: str) -> Table:
        """Make the table of one setting, best first."""
        errors = [name for name in self.ranking.column_names if name.startswith("error_at_")]
        head = ["estimator", "rank", *(f"n = {x.removeprefix('error_at_')}" for x in errors)]
        rows = [
            [
                row["estimator"],
                Number(row["mean_rank"] if row["rank"] else None, form=".1f"),
                *(Number(row[name], form=".2f") for name in errors),
                Number(row["best"], form=".0%"),
                Number(row["relative_bias"], form="+.0%"),
            ]
            for row in self.ranking.to_pylist()
            if row["setting"] == setting
        ]
        return Table([*head, "best", "bias"], rows)

    def _truths(self) -> list[Section]:
        """Make the table of true errors of files, or of noisy truths of simulations."""
        found = [row for row in self.truths if self.design.files or row["is_noise"]]
        head = ["distribution", "setting", "true error", "standard error", ""]
        rows = [
            [
                row["distribution"],
                row["setting"],
                Number(row["truth"], form=".4f"),
                Number(row["truth_se"], form=".4f"),
                "mostly noise: not counted" if row["is_noise"] else "",
            ]
            for row in found
        ]
        return [Section("true errors", table=Table(head, rows))] if rows else []

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: everything but the rows of each distribution."""
        found: dict[str, Any] = to_plain({
            "design": self.design.to_dict(),
            "folder": str(self.folder),
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "summary": self.summary.to_pylist(),
            "ranking": self.ranking.to_pylist(),
            "truths": self.truths,
        })  # fmt: skip
        return found

    def to_frame(self) -> Any:
        """Return the ranking as a `pandas.DataFrame`; needs pandas."""
        return self.ranking.to_pandas()


def rows_of(design: StudyDesign, which: Any, folders: list[str]) -> tuple[Any, "pa.Table"]:
    """Compute the table of one distribution, with its seconds, in one process.

    Modules of the user are searched in the caller's folders.
    """
    sys.path += [folder for folder in folders if folder not in sys.path]
    names = [candidate.name for candidate in candidates_of(design)]
    outcome = run_distribution(design, which)
    table = distribution_table(design, which, names, outcome)
    return which, table.replace_schema_metadata({SECONDS: json.dumps(outcome.seconds)})


def tables(
    design: StudyDesign, todo: list[Any], n_jobs: int | None, executor: Any
) -> Iterator[tuple[Any, "pa.Table"]]:
    """Yield the tables of some distributions, one after another."""
    if executor is None:
        from joblib import Parallel, delayed

        calls = (delayed(rows_of)(design, which, sys.path) for which in todo)
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
        return
    futures = [executor.submit(rows_of, design, which, sys.path) for which in todo]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


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
    try:
        for name in EXTRA:
            import_module(name)
    except ImportError as error:
        raise ImportError(NEEDS) from error
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm

    check_executor(executor, n_jobs)
    candidates_of(design)  # refuses what is not found before anything is written
    store = Store(Path(out), design, code_of(design))
    todo = [which for which in design.distributions if not store.has(which)]
    bar = tqdm(
        tables(design, todo, n_jobs, executor), desc="distributions",
        total=len(design.distributions), initial=len(design.distributions) - len(todo),
        disable=None if progress else True,
    )  # fmt: skip
    with threadpool_limits(1):  # so that the first of several threads to end lifts no limit
        for which, table in bar:
            store.write(which, table)
    holdout_of.cache_clear()
    result = write_tables(store, design)
    if pictures:
        write_pictures(store, result)
    return result


def write_tables(store: Store, design: StudyDesign) -> StudyResult:
    """Write every table from the tables of all distributions."""
    import pyarrow as pa

    truth, other, measure = CONVENTIONS[design.convention]
    found = [store.read(which) for which in design.distributions]
    times = [json.loads(table.schema.metadata[SECONDS]) for table in found]
    seconds = {kind: sum(one[kind] for one in times) for kind in times[0]}
    values = pa.concat_tables([table.replace_schema_metadata(None) for table in found])
    pairs = zip(design.distributions, found, strict=True)
    truths = [row for which, table in pairs for row in truths_in(which, table)]
    if all(row["is_noise"] for row in truths):
        rule = "{distribution}, {setting}: {truth:.4f}, with a standard error of {truth_se:.4f}"
        found_first = rule.format_map(truths[0])
        raise InputError("truth", f"is mostly noise, so nothing compares with it; {found_first}")
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
    """Write every figure, as PNG and SVG."""
    from fastece.study.figures import curves_figure, save_figure

    *_, error = CONVENTIONS[result.design.convention]
    measures = {"figure2": error, "log_ratio": "median_abs_log_ratio", "bias": "relative_bias"}
    for name, measure in measures.items():
        figure = curves_figure(result.summary, measure)
        for kind in ("png", "svg"):
            save_figure(figure, store.folder / f"{name}.{kind}")
