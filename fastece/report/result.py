"""The result of `fastece.calibration_report`: its parts, and its sections in their order."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fastece import __version__
from fastece.decisions.threshold import Threshold
from fastece.display.documents import Document, Section
from fastece.display.numbers import ConfidenceInterval, to_plain
from fastece.display.pages import require_page
from fastece.display.results import Result
from fastece.display.writers import to_html
from fastece.files import write_file
from fastece.inference.direction import Direction
from fastece.inference.slices import Slices
from fastece.inference.validation import Validation
from fastece.reliability.curve import ReliabilityCurve
from fastece.reliability.decomposition import ScoreDecomposition
from fastece.reliability.diagram import ReliabilityDiagram
from fastece.report.breakdown import (
    Breakdowns,
    classes_section,
    predicted_classes_section,
    slices_section,
)
from fastece.report.class_vectors import ClassVectors, class_vectors_section
from fastece.report.direction import direction_section
from fastece.report.errors import ErrorLine, errors_section
from fastece.report.inputs import ReportNames
from fastece.report.pictures import DIAGRAM_TITLE, ReportPictures, diagram_section
from fastece.report.sample import ReportTest, RowSummary, sample_section, stream_section
from fastece.report.scores import ScoreLine, scores_section
from fastece.report.thresholds import thresholds_section
from fastece.report.validation import validation_sections
from fastece.report.verdict import TONES, ReportEvidence, Verdict, judge, judge_classes

# Keys of the dictionary, and so of the JSON of the command line, in their order.
REPORT_KEYS = (
    "title",
    "n",
    "n_effective",
    "n_classes",
    "accuracy",
    "mean_confidence",
    "setting",
    "n_resamples",
    "confidence_level",
    "seed",
    "p_value",
    "components",
    "measures",
    "direction",
    "scores",
    "decomposition",
    "classes",
    "slices",
    "predicted_classes",
    "n_groups",
    "groups",
    "vectors",
    "validation",
    "thresholds",
    "diagrams",
    "curve",
    "pairs",
    "note",
    "by",
    "event",
    "stream",
    "headline",
    "verdict",
    "value",
    "confidence_interval",
    "notes",
)


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

    measures: list[ErrorLine]
    direction: Direction | None
    scores: list[ScoreLine]
    decomposition: ScoreDecomposition | None
    vectors: ClassVectors | None = None
    validation: Validation | None
    thresholds: list[Threshold] | None
    stream: dict[str, Any] | None
    _names: ReportNames = field(repr=False)
    _summary: RowSummary = field(repr=False)
    _test: ReportTest = field(repr=False)
    _breakdowns: Breakdowns = field(repr=False)
    _pictures: ReportPictures = field(repr=False)

    def __repr__(self) -> str:
        return f"<Report({self.title!r}): {self.headline}>"

    # --- the verdict ------------------------------------------------------------------------

    @cached_property
    def _verdict(self) -> Verdict:
        """The judgement of the numbers."""
        direction = self.direction
        interval = self.confidence_interval
        if direction is None or interval is None:
            (classes,) = (parts for parts in self._breakdowns.off if parts.name == "class")
            return judge_classes(classes, self.value)
        vectors = self.vectors or ClassVectors()
        evidence = ReportEvidence(
            n=self.n_effective,
            setting="confidence" if self.pairs else self.setting,
            confidence_level=self.confidence_level,
            error=self.value,
            interval=interval,
            p_value=self.p_value,
            smallest_p_value=self._test.smallest_p_value,
            over=direction.over,
            total=direction.value,
            mean_gap=direction.mean_gap,
            mean_gap_interval=direction.mean_gap_interval,
            off=self._breakdowns.off,
            others=vectors.evidence(self.confidence_level),
            rates=self._summary.rates,
            linear_slope=self._summary.linear_slope,
            hits=self._summary.hits,
            event=self.event,
        )
        return judge(evidence)

    @property
    def headline(self) -> str:
        """Direction, error, interval and p-value in one sentence."""
        return self._verdict.headline

    @property
    def verdict(self) -> str:
        """The verdict: "miscalibrated", "no sign", "unclear" or "too few rows"."""
        return self._verdict.verdict

    # --- the sections -----------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """List the sections in the order in which they are read."""
        level = self.confidence_level
        sections = [
            replace(sample_section(self._names, self._summary, self._test), notes=self.notes),
            stream_section(self.stream),
            errors_section(self.measures, self._test, len(self.diagrams)),
            direction_section(self.direction),
            scores_section(self.scores, self.decomposition, level),
            class_vectors_section(self.vectors),
            predicted_classes_section(self._breakdowns),
            classes_section(self._breakdowns),
            slices_section(self._breakdowns),
            thresholds_section(self.thresholds, level),
            *validation_sections(self.validation, self.title),
            diagram_section(self._pictures, self.title),
        ]
        return [section for section in sections if section is not None]

    def document(self) -> Document:
        """Describe the report as a document: the headline, then all sections."""
        return Document(
            self.title,
            self.headline,
            self.sections(),
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values by name: nan as None, infinities as "inf" and "-inf"."""
        return {name: to_plain(getattr(self, name)) for name in REPORT_KEYS}

    def _columns(self) -> dict[str, Any]:
        names = [field.name for field in fields(ErrorLine)]
        return {name: [getattr(line, name) for line in self.measures] for name in names}

    # --- values of the parts ----------------------------------------------------------------

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
    def title(self) -> str:
        """Title of the report."""
        return self._names.title

    @property
    def by(self) -> str:
        """Name of the values of `by`, "" without one."""
        return self._names.by

    @property
    def groups(self) -> str:
        """Name of the labels of groups, "" without one."""
        return self._names.groups

    @property
    def event(self) -> str:
        """Name of the event that is predicted, "" without one."""
        return self._names.event

    @property
    def note(self) -> str:
        """Notes on how a file was read, if any."""
        return self._names.note

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._summary.n

    @property
    def n_effective(self) -> float:
        """Kish's effective number of rows."""
        return self._summary.n_effective

    @property
    def n_groups(self) -> int | None:
        """Number of groups of rows that belong together."""
        return self._summary.n_groups

    @property
    def n_classes(self) -> int | None:
        """Number of classes, None where a file does not have it."""
        return self._summary.n_classes

    @property
    def accuracy(self) -> float | None:
        """How often the most probable class is right."""
        return self._summary.accuracy

    @property
    def mean_confidence(self) -> float | None:
        """Mean probability of the most probable class."""
        return self._summary.mean_confidence

    @property
    def setting(self) -> str:
        """Setting, as in all results."""
        return self._summary.setting

    @property
    def pairs(self) -> bool:
        """Whether rows are hits and confidences of predicted classes."""
        return self._summary.pairs

    @property
    def notes(self) -> list[str]:
        """Sentences on signs that numbers mislead, on counts and on groups."""
        return [*self._summary.notes, *self._breakdowns.notes]

    @property
    def n_resamples(self) -> int:
        """Number of replicates behind intervals and p-values."""
        return self._test.n_resamples

    @property
    def confidence_level(self) -> float:
        """Confidence level of all intervals."""
        return self._test.confidence_level

    @property
    def seed(self) -> int:
        """Seed of all draws."""
        return self._test.seed

    @property
    def p_value(self) -> float | None:
        """Result of the calibration test."""
        return self._test.p_value

    @property
    def components(self) -> tuple[Any, ...] | None:
        """The statistics of the calibration test."""
        return self._test.components

    @property
    def classes(self) -> Slices | None:
        """Errors of the classes, one against the rest."""
        return self._breakdowns.classes

    @property
    def predicted_classes(self) -> Slices | None:
        """Errors of the rows of each predicted class."""
        return self._breakdowns.predicted_classes

    @property
    def slices(self) -> Slices | None:
        """Errors of the values of `by`."""
        return self._breakdowns.slices

    @property
    def diagrams(self) -> list[ReliabilityDiagram]:
        """The diagram of each problem."""
        return self._pictures.diagrams

    @property
    def curve(self) -> ReliabilityCurve | None:
        """The Bayesian curve, where there is one problem."""
        return self._pictures.curve
