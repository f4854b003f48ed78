"""A study from its design to its tables and figures, in a folder where it can continue.

Finished work is not repeated, half-written files are not read, and results of another design or of
other code are never mixed with its own.
"""

import ast
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece import __version__
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import Number, to_plain
from fastece.display.results import Readable
from fastece.files import write_file
from fastece.resampling.arguments import check_workers
from fastece.study.candidates import ZERO, candidates_of
from fastece.study.design import CONVENTIONS, StudyDesign, holdout_of
from fastece.study.runner import run_distribution
from fastece.study.summary import distribution_table, is_noise, ranking_of, summarise

if TYPE_CHECKING:
    import pyarrow as pa

EXTRA = ("joblib", "matplotlib", "pyarrow", "sklearn", "threadpoolctl", "tqdm")
NEEDS = "the study needs scikit-learn, pyarrow and matplotlib: pip install 'fastece[study]'"
# Metadata of a table: seconds by kind of work.
SECONDS = b"seconds"
# Packages that numbers come from, and the module of this one that makes tables of them.
PACKAGES, TABLES = ("numpy", "scipy", "numba", "scikit-learn"), "study.summary"
# Ending of files that a killed process leaves.
UNFINISHED = ".part"
NOISE = "mostly noise: not counted"


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
        error = f"95th percentile over draws of |estimate - truth|{division}"
        best = "best and bias: how often, and how far off on average, over sizes"
        notes = [f"{error}, median over the distributions; rank: mean over sizes; {best}."]
        seconds = ", ".join(f"{kind} {value:.0f}" for kind, value in self.seconds.items())
        facts = {"seconds, all processes together": seconds, "files": str(self.folder)}
        errors = [name for name in self.ranking.column_names if name.startswith("error_at_")]
        columns = [("estimator", "estimator", ""), ("rank", "mean_rank", ".1f")]
        columns += [(f"n = {name.removeprefix('error_at_')}", name, ".2f") for name in errors]
        columns += [("best", "best", ".0%"), ("bias", "relative_bias", "+.0%")]
        rows = self.ranking.to_pylist()
        sections = [
            Section(setting, table=table_of([x for x in rows if x["setting"] == setting], columns))
            for setting in dict.fromkeys(row["setting"] for row in rows)
        ]
        # Of files all truths, of simulations those that are mostly noise.
        truths = [row for row in self.truths if design.files or row["is_noise"]]
        if truths:
            truths = [row | {"": NOISE if row["is_noise"] else ""} for row in truths]
            columns = [(name, name, "") for name in ("distribution", "setting")]
            columns += [("true error", "truth", ".4f"), ("standard error", "truth_se", ".4f")]
            table = table_of(truths, [*columns, ("", "", "")])
            sections.append(Section("true errors", table=table))
        sections.append(Section("run", facts=facts, notes=notes))
        extent = f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]}, {design.draws} draws"
        title = f"{len(design.distributions)} {kind}, {extent}, {self.evaluations:,} evaluations"
        title += f"; {design.convention} convention"
        return Document(title, sections=sections)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: everything but the rows of each distribution."""
        facts = {name: getattr(self, name) for name in ("evaluations", "seconds", "truths")}
        tables = {name: getattr(self, name).to_pylist() for name in ("summary", "ranking")}
        own = {"design": self.design.to_dict(), "folder": str(self.folder)}
        return dict(to_plain({**own, **facts, **tables}))

    def to_frame(self) -> Any:
        """Return the ranking as a `pandas.DataFrame`; needs pandas."""
        return self.ranking.to_pandas()


def table_of(rows: list[dict[str, Any]], columns: Sequence[tuple[str, str, str]]) -> Table:
    """Make a table of columns (head, key, format); text has no format."""
    cells = [
        [Number(row[key], form=form) if form else row[key] for _, key, form in columns]
        for row in rows
    ]
    return Table([head for head, *_ in columns], cells)


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

    check_workers(n_jobs, executor)
    candidates_of(design)  # refuses what is not found before anything is written
    folder = open_folder(Path(out), design)
    paths = {which: folder / "distributions" / which.file_name for which in design.distributions}
    todo = [which for which, path in paths.items() if not path.exists()]
    bar = tqdm(
        computed_tables(design, todo, n_jobs, executor), desc="distributions", total=len(paths),
        initial=len(paths) - len(todo), disable=None if progress else True,
    )  # fmt: skip
    with threadpool_limits(1):  # so that the first of several threads to end lifts no limit
        for which, table in bar:
            write_table(paths[which], table)
    holdout_of.cache_clear()
    result = write_summaries(design, folder, list(paths.values()))
    if pictures:
        from fastece.study.figures import curves_figure, save_figure

        *_, measure = CONVENTIONS[design.convention]
        pages = {"figure2": measure, "log_ratio": "median_abs_log_ratio", "bias": "relative_bias"}
        for name, drawn in pages.items():
            figure = curves_figure(result.summary, drawn)
            for kind in ("png", "svg"):
                save_figure(figure, folder / f"{name}.{kind}")
    return result


def open_folder(folder: Path, design: StudyDesign) -> Path:
    """Make the folder of a study with a note on its code, or compare its note."""
    note = json.dumps({**code_of(design), **design.to_dict()}, indent=1)
    path = folder / "study.json"
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        for name, value in json.loads(note).items():
            if found.get(name) != value:
                rule = f"{folder} holds a study with {name} {found.get(name)!r}, not {value!r}"
                raise InputError("out", f"{rule}: choose another folder, or remove this one")
    elif folder.exists() and not (
        folder.is_dir() and all(path.name.endswith(UNFINISHED) for path in folder.iterdir())
    ):
        raise InputError("out", f"{folder} exists, and holds no study")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, note.encode() + b"\n")
    (folder / "distributions").mkdir(exist_ok=True)
    return folder


def code_of(design: StudyDesign) -> dict[str, str]:
    """Collect versions and hashes of all sources and files that affect results."""
    versions = {"fastece": __version__} | {name: version(name) for name in PACKAGES}
    kinds = [kind.__module__.partition("fastece.")[2] for kind in type(design).__mro__]
    sources = {"fastece": package_hash([TABLES, *filter(None, kinds)])}
    for path in design.estimators:
        file = import_module(path.partition(":")[0]).__file__
        sources[path] = file_hash(file) if file else ""
    sources |= {path: file_hash(path) for path in design.files}
    found = {f"version of {name}": value for name, value in versions.items()}
    return found | {f"source of {name}": value for name, value in sources.items()}


def package_hash(modules: list[str], folder: Path = Path(__file__).parents[1]) -> str:
    """Hash modules of this package with all modules of it that they import."""
    found, todo = dict[str, str](), set(modules)
    while todo:
        name = todo.pop()
        base = folder.joinpath(*name.split("."))
        file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if not file.is_file():  # the name of something in a module
            continue
        found[name] = file_hash(file)
        todo |= imports_of(file.read_bytes()) - found.keys()
    return sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


@lru_cache(maxsize=256)  # to parse all takes a second
def imports_of(source: bytes) -> set[str]:
    """Name the modules of this package that a source may import, and names in them."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = {f"{x.module}{end}" for x in nodes for end in ("", *(f".{y.name}" for y in x.names))}
    return {name.removeprefix("fastece.") for name in names if name.startswith("fastece.")}


def file_hash(path: str | Path) -> str:
    """Hash a file."""
    return sha256(Path(path).read_bytes()).hexdigest()[:16]


def write_table(path: Path, table: "pa.Table") -> None:
    """Write a table as CSV or Parquet, by the ending of the file."""
    from pyarrow import csv, parquet

    file = io.BytesIO()
    if path.suffix == ".csv":
        csv.write_csv(table, file, csv.WriteOptions(quoting_style="needed"))
    else:
        parquet.write_table(table, file)
    write_file(path, file.getvalue())


def computed_tables(
    design: StudyDesign, todo: list[Any], n_jobs: int | None, executor: Any
) -> Iterator[tuple[Any, "pa.Table"]]:
    """Yield some distributions with their tables, one after another."""
    if executor is None:
        from joblib import Parallel, delayed

        calls = (delayed(distribution)(design, which, sys.path) for which in todo)
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
        return
    futures = [executor.submit(distribution, design, which, sys.path) for which in todo]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def distribution(design: StudyDesign, which: Any, folders: list[str]) -> tuple[Any, "pa.Table"]:
    """Compute the table of one distribution, with its seconds, in one process.

    Modules of the user are searched in the caller's folders.
    """
    sys.path += [folder for folder in folders if folder not in sys.path]
    names = [candidate.name for candidate in candidates_of(design)]
    outcome = run_distribution(design, which)
    table = distribution_table(design, which, names, outcome)
    return which, table.replace_schema_metadata({SECONDS: json.dumps(outcome.seconds)})


def write_summaries(design: StudyDesign, folder: Path, paths: list[Path]) -> StudyResult:
    """Write every table from the tables of all distributions."""
    import pyarrow as pa
    from pyarrow import parquet

    truth, other, measure = CONVENTIONS[design.convention]
    found = [parquet.read_table(path) for path in paths]
    times = [json.loads(table.schema.metadata[SECONDS]) for table in found]
    seconds = {kind: sum(one[kind] for one in times) for kind in times[0]}
    values = pa.concat_tables([table.replace_schema_metadata(None) for table in found])
    truths = []
    for which, table in zip(design.distributions, found, strict=True):
        columns = ["setting", "truth", "truth_se"]
        settings = table.group_by(columns, use_threads=False).aggregate([])
        for row, noise in zip(settings.to_pylist(), is_noise(settings).tolist(), strict=True):
            truths.append({"distribution": str(which), **row, "is_noise": noise})
    if all(row["is_noise"] for row in truths):
        rule = "{distribution}, {setting}: {truth:.4f}, with a standard error of {truth_se:.4f}"
        found_first = rule.format_map(truths[0])
        raise InputError("truth", f"is mostly noise, so nothing compares with it; {found_first}")
    known = values.filter(~is_noise(values))
    summary = summarise(known, design, truth)
    ranking = ranking_of(summary, measure)
    for name, table in {
        "values.parquet": values,
        "summary.csv": summary,
        f"summary_{other}.csv": summarise(known, design, other),
        "ranking.csv": ranking,
        "timings.csv": pa.table({kind: [x] for kind, x in seconds.items()}),
    }.items():
        write_table(folder / name, table)
    return StudyResult(design, folder, values, summary, ranking, truths, seconds)
