"""The result of a study, as tables and as a document."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import Number, to_plain
from fastece.display.results import Readable
from fastece.study.candidates import ZERO
from fastece.study.design import StudyDesign

if TYPE_CHECKING:
    import pyarrow as pa

NOISE = "mostly noise: not counted"
PREFIX_OF_ERRORS = "error_at_"


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
        For each distribution and setting: "distribution", "setting", "truth", its standard error
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
        design = self.design
        sizes = sorted(set(self.values["n"].to_pylist()))
        extent = f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]}, {design.draws} draws"
        title = (
            f"{len(design.distributions)} {design.noun}, {extent}, {self.evaluations:,} "
            f"evaluations; {design.convention} convention"
        )
        sections = [*self._rankings(), *self._truths(), self._run()]
        return Document(title, sections=sections)

    def _rankings(self) -> list[Section]:
        """Make a section with the ranking of each setting."""
        keys = [name for name in self.ranking.column_names if name.startswith(PREFIX_OF_ERRORS)]
        sizes = [f"n = {key.removeprefix(PREFIX_OF_ERRORS)}" for key in keys]
        cells_of_setting: dict[str, list[list[Any]]] = {}
        for row in self.ranking.to_pylist():
            cells = [
                row["estimator"],
                Number(row["mean_rank"], form=".1f"),
                *(Number(row[key], form=".2f") for key in keys),
                Number(row["best"], form=".0%"),
                Number(row["relative_bias"], form="+.0%"),
            ]
            cells_of_setting.setdefault(row["setting"], []).append(cells)
        heads = ["estimator", "rank", *sizes, "best", "bias"]
        return [
            Section(setting, table=Table(heads, cells))
            for setting, cells in cells_of_setting.items()
        ]

    def _truths(self) -> list[Section]:
        """Make a section with the truths that the design shows, if there are any."""
        cells = [
            [
                row["distribution"],
                row["setting"],
                Number(row["truth"], form=".4f"),
                Number(row["truth_se"], form=".4f"),
                NOISE if row["is_noise"] else "",
            ]
            for row in self.truths
            if self.design.shows_all_truths or row["is_noise"]
        ]
        if not cells:
            return []
        heads = ["distribution", "setting", "true error", "standard error", ""]
        return [Section("true errors", table=Table(heads, cells))]

    def _run(self) -> Section:
        """Make the section about the run: its seconds, its folder, and a note on numbers."""
        division = " / truth" if self.design.convention == "corrected" else ""
        error = f"95th percentile over draws of |estimate - truth|{division}"
        best = "best and bias: how often, and how far off on average, over sizes"
        note = f"{error}, median over the distributions; rank: mean over sizes; {best}."
        seconds = ", ".join(f"{kind} {value:.1f}" for kind, value in self.seconds.items())
        facts = {"seconds, all processes together": seconds, "files": str(self.folder)}
        return Section("run", facts=facts, notes=[note])

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: everything except the rows of each distribution."""
        content = {
            "design": self.design.to_dict(),
            "folder": str(self.folder),
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "truths": self.truths,
            "summary": self.summary.to_pylist(),
            "ranking": self.ranking.to_pylist(),
        }
        return dict(to_plain(content))

    def to_frame(self) -> Any:
        """Return the ranking as a `pandas.DataFrame`; needs pandas."""
        return self.ranking.to_pandas()
