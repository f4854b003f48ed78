"""The result of `fastece.calibration_report`: a field for each number, and how it is shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from fastece import __version__
from fastece.decisions.threshold import Threshold
from fastece.display.documents import Cell, Document, Section
from fastece.display.numbers import ConfidenceInterval
from fastece.display.pages import Panel, require_page
from fastece.display.results import Record, Result
from fastece.display.writers import to_html
from fastece.files import write_file
from fastece.inference.direction import Direction
from fastece.inference.slices import Slices
from fastece.reliability.cumulative import CumulativeGaps
from fastece.reliability.curve import ReliabilityCurve
from fastece.reliability.decomposition import ScoreDecomposition
from fastece.reliability.diagram import ReliabilityDiagram
from fastece.report.inputs import ReportInput
from fastece.risk.validation import Validation

# An error is left out of texts if chance alone gives this share of its value, and more than the
# upper end of its interval.
OMITTED_SHARE = 0.8
# The verdicts.
TOO_FEW = "too few rows"
NO_SIGN = "no sign"
MISCALIBRATED = "miscalibrated"
UNCLEAR = "unclear"
# The section that a page shows first.
DIAGRAM_TITLE = "Reliability diagram"
# How a page colours a verdict; others are unclear.
TONES = {MISCALIBRATED: "bad", NO_SIGN: "good"}


# --- lines of its tables --------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorLine(Record):
    """One calibration error of a report.

    Attributes
    ----------
    name : str
    value : float
    low, high : float or None
        Interval, where there is one.
    p_value : float or None
        p-value of the test with this error alone.
    floor : float or None
        Mean error of a calibrated model.
    estimator : str
        The estimator with its parameters.
    n_bins, occupied : int or None
        Number of bins of all classes, and of those that hold rows.
    bandwidth : float or None
        Mean bandwidth over classes.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    floor: float | None = None
    estimator: str
    n_bins: int | None = None
    occupied: int | None = None
    bandwidth: float | None = None

    @property
    def is_noise(self) -> bool:
        """Whether chance alone explains the value, and is larger than the interval allows."""
        if self.floor is None or self.high is None:
            return False
        return self.floor > self.high and self.floor >= OMITTED_SHARE * self.value


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreLine(Record):
    """One score of a report.

    Attributes
    ----------
    name : str
    value : float
    low, high : float or None
        Interval, where there is one.
    meaning : str
    note : str or None
        For an infinite loss, the rows behind it; a key of the JSON only there.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    meaning: str
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values by name, without an absent note."""
        values = super().to_dict()
        if self.note is None:
            del values["note"]
        return values


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorLine(Record):
    """One error of class vectors.

    Attributes
    ----------
    name : str
    value : float
    if_calibrated : float or None
        Mean error of a calibrated model; None without resamples.
    p_value : float or None
    meaning : str
    """

    name: str
    value: float
    if_calibrated: float | None = None
    p_value: float | None = None
    meaning: str


@dataclass(frozen=True, eq=False)
class ClassVectors(Record):
    """Errors of whole class vectors.

    Attributes
    ----------
    lines : list of VectorLine
        Empty where there is a note.
    n_resamples : int
        Replicates of each.
    note : str
        The reason for leaving them out, if any.
    """

    lines: list[VectorLine] = field(default_factory=list)
    n_resamples: int = 0
    note: str = ""


# --- the report -----------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of a report.

    Attributes
    ----------
    measure : callable
        Takes a `ReportInput`, and returns fields of `Report` by name.
    describe : callable
        Takes a `Report`, and returns the sections that show these fields, none where they are
        absent.
    """

    measure: Callable[[ReportInput], dict[str, Any]]
    describe: Callable[["Report"], list[Section]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Report(Result):
    """The calibration of one model: the result of `fastece.calibration_report`.

    Attributes
    ----------
    title : str
    headline : str
        One sentence with the error, its interval, its direction and the p-value.
    verdict : str
        "miscalibrated"; "no sign" of it, if chance explains everything; "unclear", if interval,
        test, mean gap, classes and slices disagree; "too few rows".
    value, confidence_interval : float, ConfidenceInterval or None
        The first error, by the Bayesian curve.
    n, n_effective : int, float
        Rows, and Kish's effective number of them where they have weights or groups.
    n_classes : int or None
        None where a file does not have it.
    accuracy, mean_confidence : float or None
        How often the most probable class is right, and its mean probability; None where a stream
        of another setting does not have them.
    setting : str
    n_resamples, confidence_level, seed
        Options of the intervals; without resamples there are only posterior intervals, and no
        p-value.
    p_value : float or None
        Result of `fastece.calibration_test`.
    components : tuple of rows or None
        The statistics of that test: name, statistic, p_value.
    measures : list of ErrorLine
        An error each: name, value, interval, p_value, floor, estimator, bins and bandwidth.
    direction : Direction or None
        Error of scores that are too high and too low, and the mean gap.
    scores : list of ScoreLine
        A score each: name, value, interval, meaning.
    decomposition : ScoreDecomposition or None
        Parts of the Brier score of the setting, or their means over classes.
    classes, slices : Slices or None
        Errors of the classes, one against the rest, and of the values of `by`.
    predicted_classes : Slices or None
        Errors of the rows of each predicted class, where the question is whether it is right.
    n_groups : int or None
        Number of groups of rows that belong together, None without any.
    groups : str
        Name of their labels, "" without one.
    notes : list of str
        Sentences on signs that numbers mislead, on counts and on groups.
    vectors : ClassVectors or None
        Errors of whole class vectors, with the test of each; None with fewer than three classes.
    validation : Validation or None
        For a binary problem or a single class, the result of `fastece.validate`.
    thresholds : list of Threshold or None
        Scores from which the most probable class, of a binary problem label 1, is right in 90, 95
        and 99 % of cases.
    diagrams : list of ReliabilityDiagram
        For each problem of the setting.
    curve : ReliabilityCurve or None
        The Bayesian curve, where there is one problem.
    pairs : bool
        Whether rows are hits and confidences of predicted classes, without the other classes.
    note : str
        Notes on how a file was read, if any.
    by : str
        Name of the values of `by`, "" without one.
    event : str
        Name of the event that is predicted, "" without one.
    stream : dict or None
        Facts about a stream, whose rows were added up and not kept.
    """

    title: str
    n: int
    n_effective: float
    n_classes: int | None
    accuracy: float | None
    mean_confidence: float | None
    setting: str
    n_resamples: int
    confidence_level: float
    seed: int
    p_value: float | None
    components: tuple[Any, ...] | None
    measures: list[ErrorLine]
    direction: Direction | None
    scores: list[ScoreLine]
    decomposition: ScoreDecomposition | None
    classes: Slices | None
    slices: Slices | None
    predicted_classes: Slices | None
    n_groups: int | None
    groups: str
    vectors: ClassVectors | None
    validation: Validation | None
    thresholds: list[Threshold] | None
    diagrams: list[ReliabilityDiagram]
    curve: ReliabilityCurve | None
    pairs: bool
    note: str
    by: str
    event: str
    stream: dict[str, Any] | None
    headline: str
    verdict: str
    _parts: Sequence[Part] = field(repr=False)
    # Numbers of copies and weights, which texts alone show.
    _copies: Mapping[str, Cell] = field(repr=False)
    _notes_on_rows: list[str] = field(repr=False)
    _notes_on_classes: list[str] = field(repr=False)
    # Numbers of the pictures: the panels, which a first page lacks; the diagram of ten equal-mass
    # bins of a single event, most of whose predictions lie in a few bins of equal width; and the
    # cumulative gaps, where all rows are there.
    _panels: Sequence[Panel] = field(repr=False)
    _deciles: ReliabilityDiagram | None = field(repr=False)
    _cumulative: CumulativeGaps | None = field(repr=False)

    _derived: ClassVar[tuple[str, ...]] = ("value", "confidence_interval", "notes")

    def __repr__(self) -> str:
        return f"<Report({self.title!r}): {self.headline}>"

    @property
    def value(self) -> float:
        """The first error."""
        return float(self.measures[0].value)

    @property
    def confidence_interval(self) -> ConfidenceInterval | None:
        """The interval of the first error."""
        first = self.measures[0]
        return None if first.low is None else ConfidenceInterval(first.low, first.high)

    @property
    def notes(self) -> list[str]:
        """Sentences on signs that numbers mislead, on counts and on groups."""
        return [*self._notes_on_rows, *self._notes_on_classes]

    def document(self) -> Document:
        """Describe the report as a document: the headline, then the sections of all parts."""
        return Document(
            self.title,
            self.headline,
            [section for part in self._parts for section in part.describe(self)],
            tone=TONES.get(self.verdict, "unclear"),
            footer=f"fastece {__version__}; {self.n_resamples} replicates, seed {self.seed}.",
        )

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as one HTML page with pictures, and write it to a file.

        The diagram is first, and nothing is loaded. Needs jinja2 and matplotlib
        (``pip install 'fastece[report]'``).
        """
        require_page("to_html")
        document = self.document()
        sections = sorted(document.sections, key=lambda section: section.title != DIAGRAM_TITLE)
        page = to_html(replace(document, sections=sections))
        if path is not None:
            write_file(path, page.encode())
        return page

    def _columns(self) -> dict[str, Any]:
        names = [field.name for field in fields(ErrorLine)]
        return {name: [getattr(line, name) for line in self.measures] for name in names}
