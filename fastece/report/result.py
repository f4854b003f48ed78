"""The numbers of a report, and its sections."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from fastece import __version__
from fastece.decisions.threshold import Threshold
from fastece.display.axes import HEIGHT, new_figure
from fastece.display.axes import WIDTH as ACROSS
from fastece.display.documents import Cell, Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number, PValue, format_cell, format_p
from fastece.display.pages import Panel, draw_page, require_matplotlib
from fastece.display.pictures import draw_cumulative
from fastece.display.results import Record, Result, group_notes
from fastece.display.svg import to_svg
from fastece.display.writers import WIDTH, to_html, to_text
from fastece.files import write_file
from fastece.inference.direction import Direction
from fastece.inference.slices import Slices
from fastece.inference.validation import Validation
from fastece.reliability.curve import ReliabilityCurve
from fastece.reliability.decomposition import ScoreDecomposition
from fastece.reliability.diagram import ReliabilityDiagram
from fastece.report import words

# Slices in a table, those with the most evidence first, and classes if none are miscalibrated; the
# rest is counted.
MOST_LINES, FEW_CLASSES = 40, 3
DIAGRAM_TITLE = "Reliability diagram"
# Lines of the first page, and of its diagram with the head.
SCREEN, DIAGRAM = 30, 10


@dataclass(frozen=True, eq=False)
class ClassVectors(Record):
    """Errors of whole class vectors.

    Attributes
    ----------
    lines : list of dict
        An error each: name, value, the mean of a calibrated model, p_value, meaning. Without
        resamples there are neither a mean nor a p-value; empty where there is a note.
    n_resamples : int
        Replicates of each.
    note : str
        The reason for leaving them out, if any.
    """

    lines: list[dict[str, Any]]
    n_resamples: int
    note: str

    def evidence(self, level: float) -> list[str]:
        """Describe the evidence of miscalibration, if the stronger test rejects."""
        p_values = [line["p_value"] for line in self.lines if line["name"] == "skce"]
        return [f"class vectors are miscalibrated (skce, p = {format_p(p)})"
                for p in p_values if p is not None and p < 1 - level]  # fmt: skip


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
        Of the first error, by the Bayesian curve.
    n, n_effective : int, float
        Rows, and Kish's effective number of them where they have weights or groups.
    n_classes : int or None
        None where a file does not have it.
    accuracy, mean_confidence : float or None
        How often the most probable class is right, and its mean probability; None where a stream
        of another setting does not have them.
    setting : str
    n_resamples, confidence_level, seed
        Of the intervals; without resamples there are only posterior intervals, and no p-value.
    p_value : float or None
        Of `fastece.calibration_test`.
    components : tuple of rows or None
        The statistics of that test: name, statistic, p_value.
    measures : list of dict
        An error each: name, value, interval, p_value, estimator, bins and bandwidth.
    direction : Direction or None
        Error of scores that are too high and too low, and the mean gap.
    scores : list of dict
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
        What the reader of intervals must know.
    vectors : ClassVectors or None
        Errors of whole class vectors, with the test of each; None of fewer than three classes.
    validation : Validation or None
        Of a binary problem, or a single class, what `fastece.validate` gives.
    thresholds : list of Threshold or None
        Scores from which the most probable class is right in 90, 95 and 99 % of cases.
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
    measures: list[dict[str, Any]]
    direction: Direction | None
    scores: list[dict[str, Any]]
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
    pairs: bool = field(repr=False)
    note: str
    by: str
    event: str
    stream: dict[str, Any] | None
    _panels: list[Panel] = field(repr=False)
    _cumulative: Any = field(repr=False)  # arguments of `draw_cumulative`

    _derived = ("headline", "verdict", "value", "confidence_interval", "notes")

    def __repr__(self) -> str:
        return f"<Report({self.title!r}): {self.headline}>"

    @cached_property
    def _judgement(self) -> words.Judgement:
        """The judgement of the numbers."""
        interval, found = self.confidence_interval, self.direction
        off = self._off
        if found is None or interval is None:
            return words.judge_classes(*off["classes"], self.confidence_level, self.value)
        return words.judge(
            n=self.n_effective, setting="confidence" if self.pairs else self.setting,
            level=self.confidence_level, error=self.value, interval=interval, p_value=self.p_value,
            over=found.over, total=found.value, mean_gap=found.mean_gap,
            mean_gap_interval=found.mean_gap_interval, off=off,
            others=[] if self.vectors is None else self.vectors.evidence(self.confidence_level),
            rates=self._rates, event=self.event,
        )  # fmt: skip

    @property
    def _rates(self) -> tuple[float, float] | None:
        """The predicted and the observed rate of one event, if it is one."""
        if self.pairs or self.setting == "confidence" or len(self.diagrams) > 1:
            return None
        (diagram,) = self.diagrams
        share = diagram.count / max(float(diagram.count.sum()), 1e-300)
        rates = (float(share @ np.nan_to_num(x)) for x in (diagram.score, diagram.frequency))
        predicted, observed = rates
        return predicted, observed

    @property
    def _off(self) -> dict[str, tuple[int, int]]:
        """How many classes and slices are miscalibrated, and of how many, by name."""
        tables = {
            "predicted classes": self.predicted_classes, "classes": self.classes,
            "slices": self.slices,
        }  # fmt: skip
        return {name: (x.off, len(x)) for name, x in tables.items() if x}

    @property
    def headline(self) -> str:
        """The direction, the error, its interval and the p-value in one sentence."""
        return self._judgement.headline

    @property
    def verdict(self) -> str:
        """The verdict: "miscalibrated", "no sign", "unclear" or "too few rows"."""
        return self._judgement.verdict

    @property
    def value(self) -> float:
        """The first error."""
        return float(self.measures[0]["value"])

    @property
    def confidence_interval(self) -> ConfidenceInterval | None:
        """The interval of the first error."""
        low, high = self.measures[0]["low"], self.measures[0]["high"]
        return None if low is None else ConfidenceInterval(low, high)

    @property
    def notes(self) -> list[str]:
        """Sentences on the groups of rows, and on few of them."""
        return [words.OF_GROUPS] * (self.n_groups is not None) + group_notes(self.n_groups)

    def document(self) -> Document:
        """Describe the report, in the order in which it is read."""
        made = [
            sample(self), stream(self), errors(self), direction(self), scores(self),
            class_vectors(self), breakdown(self, self.predicted_classes, "predicted class"),
            breakdown(self, self.classes, "class"), breakdown(self, self.slices, "slice"),
            acting(self), *validation(self), pictures(self),
        ]  # fmt: skip
        sections = [section for section in made if section is not None]
        footer = f"fastece {__version__}; {self.n_resamples} replicates, seed {self.seed}."
        tone = words.TONES.get(self.verdict, "unclear")
        return Document(self.title, self.headline, sections, tone=tone, footer=footer)

    def _columns(self) -> dict[str, Any]:
        return {name: [line[name] for line in self.measures] for name in self.measures[0]}

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as one HTML page with pictures, and write it to a file.

        The diagram is first, and nothing is loaded. Needs matplotlib (``pip install
        fastece[report]``).
        """
        require_matplotlib("to_html")
        document = self.document()
        sections = sorted(document.sections, key=lambda section: section.title != DIAGRAM_TITLE)
        page = to_html(replace(document, sections=sections))
        if path is not None:
            write_file(path, page.encode())
        return page


# --- the first page -------------------------------------------------------------------------


def first_page(report: Report, most_lines: int) -> Document:
    """Describe the verdict, the main errors and the diagram on one screen."""
    sections = [Section("Sample", brief(report), notes=report.notes), answers(report)]
    of_classes = report.classes if len(report.diagrams) > 1 else None
    for found, name in ((of_classes, "class"), (report.slices, "slice")):
        part = breakdown(report, found, name, FEW_CLASSES)
        sections += [] if part is None else [replace(part, notes=[])]
    end = Section(notes=[*(report.stream or {}).get("notes", [])[:1], words.MORE])
    page = Document(report.title, report.headline, [*sections, end])
    used = sum(max(1, math.ceil(len(line) / WIDTH)) for line in to_text(page).splitlines())
    left = min(most_lines - used - 2, DIAGRAM) - 1  # but for its title and head
    if len(report.diagrams) == 1 and left > 1:
        table = report.diagrams[0].pool(left).table()
        sections.append(Section(DIAGRAM_TITLE, table=table))
    return replace(page, sections=[*sections, end])


def brief(report: Report) -> dict[str, Cell]:
    """Describe the rows, the direction and the classes, in a line each."""
    facts = {**getattr(stream(report), "facts", {}), **sample(report).facts}
    if (found := report.direction) is not None:
        over, under, gap = (format_cell(x) for x in (found.over, found.under, found.mean_gap))
        interval = format_cell(found.mean_gap_interval)
        facts["direction"] = f"too high {over}, too low {under}; mean gap {gap} {interval}"
    off = [f"{x} of {count} {name}" for name, (x, count) in report._off.items()]
    return {**facts, **({"miscalibrated": ", ".join(off)} if off else {})}


def answers(report: Report) -> Section:
    """Describe the first error, the usual one, and the others."""
    usual = report.measures[1]
    used = words.USUAL.format(usual["occupied"], usual["n_bins"])
    texts, rows = [words.ANSWER, used, *[""] * (len(report.measures) - 2)], []
    for line, text in zip(report.measures, texts, strict=True):
        number, interval = with_interval(line["value"], line["low"], line["high"])
        floor = Number(line["floor"], interval)
        rows.append([line["name"], number, interval, floor, PValue(line["p_value"]), text])
    head = ["error", "value", ci(report), "chance alone", "p-value", ""]
    return Section("Calibration errors", table=Table(head, rows))


# --- sections -------------------------------------------------------------------------------


def ci(report: Report) -> str:
    """Name the column of intervals."""
    return f"{100 * report.confidence_level:g} % CI"


def with_interval(value: Any, low: Any, high: Any) -> list[Cell]:
    """Return the cells of a number and of its interval, if it has one."""
    interval = None if low is None else ConfidenceInterval(low, high)
    return [Number(value, interval), interval]


def sample(report: Report) -> Section:
    """Describe the rows."""
    facts: dict[str, Cell] = {"rows": report.n}
    if report.n_groups is not None:
        facts["groups"] = f"{report.n_groups}{report.groups and ' by '}{report.groups}"
    if round(report.n_effective) != report.n:
        why = "groups" if report.n_groups else ("weights", "votes")[report.n_effective > report.n]
        facts["effective rows"] = f"{report.n_effective:.0f} ({why}, Kish)"
    facts["classes"] = "not known" if report.n_classes is None else report.n_classes
    if report._rates is not None:
        predicted, observed = (f"{100 * rate:.2f} %" for rate in report._rates)
        facts["predicted rate"], facts["observed rate"] = predicted, observed
    elif report.accuracy is not None:
        facts["accuracy"] = Number(report.accuracy, form=".4f")
        facts["mean confidence"] = Number(report.mean_confidence, form=".4f")
    facts["setting"] = words.question(report.setting, report.pairs)
    if report.components is not None:
        each = ", ".join(f"{x.name} {format_p(x.p_value)}" for x in report.components)
        facts["test"] = f"p-value {format_p(report.p_value)}; of its statistics: {each}"
    if report.note:
        facts["read as"] = report.note
    return Section("Sample", facts, notes=report.notes)


def stream(report: Report) -> Section | None:
    """Describe a stream, and the questions that it leaves open."""
    if report.stream is None:
        return None
    known = {name: x for name, x in report.stream.items() if isinstance(x, int) and x}
    facts = {words.STREAM.get(name, name): x for name, x in known.items()}
    return Section("Streamed", facts, notes=[*report.stream.get("notes", []), words.OF_STREAM])


def errors(report: Report) -> Section:
    """Describe every requested error."""
    rows = []
    for line in report.measures:
        estimator = line["estimator"]
        if line["bandwidth"] is not None:
            mean = "mean " if len(report.diagrams) > 1 else ""
            estimator += f", {mean}bandwidth {line['bandwidth']:.4g}"
        numbers = with_interval(line["value"], line["low"], line["high"])
        floor, test = Number(line["floor"], numbers[1]), PValue(line["p_value"])
        rows.append([line["name"], *numbers, floor, test, estimator])
    head = ["error", "value", ci(report), "chance alone", "p-value", "estimator"]
    notes = [words.OF_ERRORS] if report.p_value is not None else []
    return Section("Calibration errors", table=Table(head, rows), notes=notes)


def direction(report: Report) -> Section | None:
    """Describe how much of the error is of scores that are too high, and too low."""
    found = report.direction
    if found is None:
        return None
    values = ((found.over, found.over_interval), (found.under, found.under_interval),
              (found.mean_gap, found.mean_gap_interval))  # fmt: skip
    rows = [
        [name, *with_interval(value, *(interval or (None, None))), meaning]
        for (name, meaning), (value, interval) in zip(words.PARTS.items(), values, strict=True)
    ]
    table = Table(["part", "value", ci(report), ""], rows)
    return Section("Direction", table=table, notes=[words.OF_DIRECTION])


def scores(report: Report) -> Section:
    """Describe the scores, and the parts of the Brier score."""
    rows = [
        [line["name"], *with_interval(line["value"], line["low"], line["high"]), line["meaning"]]
        for line in report.scores
    ]
    notes, parts = [], report.decomposition
    if parts is not None:
        # By default class vectors are scored whole, and the top label's score is taken apart.
        is_part = not math.isclose(parts.score, report.scores[0]["value"], rel_tol=1e-9)
        notes.append(
            f"Brier score{' of the top label' if is_part else ''} {parts.score:.4f} = "
            f"miscalibration {parts.miscalibration:.4f} - discrimination "
            f"{parts.discrimination:.4f} + uncertainty {parts.uncertainty:.4f} (isotonic "
            "regression)."
        )
    notes += [line["note"] for line in report.scores if "note" in line]
    return Section("Scores", table=Table(["score", "value", ci(report), ""], rows), notes=notes)


def class_vectors(report: Report) -> Section | None:
    """Describe errors of whole class vectors."""
    found, title = report.vectors, "Class vectors"
    if found is None or found.note:
        return None if found is None else Section(title, notes=[found.note])
    rows = [
        [line["name"], line["value"], line["if_calibrated"], PValue(line["p_value"]),
         line["meaning"]]
        for line in found.lines
    ]  # fmt: skip
    notes = [words.OF_CLASS_VECTORS.format(found.n_resamples)] if found.n_resamples else []
    head = ["error", "value", "chance alone", "p-value", ""]
    return Section(title, table=Table(head, rows), notes=notes)


def acting(report: Report) -> Section | None:
    """Describe the scores from which predictions may act alone."""
    if report.thresholds is None:
        return None
    rows = [
        [f"{100 * x.required_accuracy:g} %", *x.table().rows[0][1:5]] for x in report.thresholds
    ]
    head = ["right in", *report.thresholds[0].table().head[1:5]]
    notes = [words.OF_THRESHOLDS.format(100 * report.confidence_level)]
    return Section("Which predictions may act alone", table=Table(head, rows), notes=notes)


def validation(report: Report) -> list[Section]:
    """Describe the validation of a risk model, with its picture."""
    found = report.validation
    if found is None:
        return []
    first, benefit = found.document().sections
    drawn = [partial(picture, found.plot, f"{report.title}: validation")]
    title = f"Validation of the predicted probability of {found.event}"
    shown = replace(first, title=title, notes=[found.sentence, *first.notes], pictures=drawn)
    return [shown, benefit]


def breakdown(
    report: Report, found: Slices | None, name: str, most: int = MOST_LINES
) -> Section | None:
    """Describe errors of classes, or of slices."""
    # Beside predicted classes, those against the rest are shown only if they are miscalibrated.
    is_beside = name == "class" and report.predicted_classes is not None
    if found is None or (is_beside and not found.off):
        return None
    # Slices were asked for by name; of classes, some are many.
    few = 0 if is_beside else FEW_CLASSES
    most = min(len(found) if name == "slice" else max(found.off, few), most)
    more = len(found) - most
    left = f"and {more} with less evidence; " * (more > 0)
    notes = [left + words.OF_SLICES.format(found.off, len(found), found.test)]
    titles = {"class": "Classes" + " against the rest" * is_beside}
    titles["predicted class"] = "Predicted classes"
    title = titles.get(name) or (f"Slices by {report.by}" if report.by else "Slices")
    return Section(f"{title}, most evidence first", table=found.table(name, most), notes=notes)


def pictures(report: Report) -> Section:
    """Show the diagrams as tables of bins, and as pictures."""
    tables = [(diagram.setting, diagram.table()) for diagram in report.diagrams]
    ((_, table), *others) = tables
    if others:
        rows = [[name, *row] for name, one in tables for row in one.rows]
        table = Table(["class", *table.head], rows)
    pages = [[panel] for panel in report._panels] if report.curve is not None else [report._panels]
    title = f"{report.title}: reliability diagram"

    def draw(page: list[Panel], key: str) -> str:
        return to_svg(draw_page(page), title, key)

    drawn = [partial(draw, page) for page in pages]
    if report._cumulative is not None:
        name = f"{report.title}: cumulative gap"
        drawn.append(partial(picture, lambda ax: draw_cumulative(ax, *report._cumulative), name))
    return Section(DIAGRAM_TITLE, table=table, pictures=drawn)


def picture(draw: Callable[[Any], Any], title: str, key: str) -> str:
    """Draw on new axes, and return them as SVG."""
    figure = new_figure((ACROSS, HEIGHT))
    draw(figure.subplots())
    return to_svg(figure, title, key)
