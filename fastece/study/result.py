"""The result of a study, as tables and as a document."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import Number, to_plain
from fastece.display.results import Readable
from fastece.study.candidate import ZERO
from fastece.study.design import StudyDesign

if TYPE_CHECKING:
    import pyarrow as pa

NOISE = "mostly noise: not counted"
PREFIX_OF_ERRORS = "error_at_"


class Column(NamedTuple):
    """A column of a document.

    Parameters
    ----------
    head : str
    key : str
        The column of a pyarrow table, or the entry of a row.
    form : str
        Format of numbers; "" for text.
    """

    head: str
    key: str
    form: str = ""


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

    design: StudyDesign[Any]
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
        error_columns = [
            Column(f"n = {name.removeprefix(PREFIX_OF_ERRORS)}", name, ".2f")
            for name in self.ranking.column_names
            if name.startswith(PREFIX_OF_ERRORS)
        ]
        columns = [
            Column("estimator", "estimator"),
            Column("rank", "mean_rank", ".1f"),
            *error_columns,
            Column("best", "best", ".0%"),
            Column("bias", "relative_bias", "+.0%"),
        ]
        rows = self.ranking.to_pylist()
        sections = []
        for setting in dict.fromkeys(row["setting"] for row in rows):
            of_setting = [row for row in rows if row["setting"] == setting]
            sections.append(Section(setting, table=make_table(of_setting, columns)))
        return sections

    def _truths(self) -> list[Section]:
        """Make a section with the truths that the design shows, if there are any."""
        rows = [
            row | {"note": NOISE if row["is_noise"] else ""}
            for row in self.truths
            if self.design.shows_all_truths or row["is_noise"]
        ]
        if not rows:
            return []
        columns = [
            Column("distribution", "distribution"),
            Column("setting", "setting"),
            Column("true error", "truth", ".4f"),
            Column("standard error", "truth_se", ".4f"),
            Column("", "note"),
        ]
        return [Section("true errors", table=make_table(rows, columns))]

    def _run(self) -> Section:
        """Make the section about the run: its seconds, its folder, and a note on numbers."""
        division = " / truth" if self.design.convention == "corrected" else ""
        error = f"95th percentile over draws of |estimate - truth|{division}"
        best = "best and bias: how often, and how far off on average, over sizes"
        note = f"{error}, median over the distributions; rank: mean over sizes; {best}."
        seconds = ", ".join(f"{kind} {value:.0f}" for kind, value in self.seconds.items())
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


def make_table(rows: list[dict[str, Any]], columns: Sequence[Column]) -> Table:
    """Make a table of rows, with numbers in the format of their columns."""
    cells = [
        [
            Number(row[column.key], form=column.form) if column.form else row[column.key]
            for column in columns
        ]
        for row in rows
    ]
    return Table([column.head for column in columns], cells)
