"""A report on a stream: what sums of cells tell, and what they leave open."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fastece.document.result import Record
from fastece.estimators.binned.estimator import Binned
from fastece.estimators.density.estimator import KDE
from fastece.files import FileCount
from fastece.plot.pages import Panel
from fastece.reliability.curve import ReliabilityCurve
from fastece.reliability.diagram import ReliabilityDiagram
from fastece.report.measures import LEAD, SCORES, TEST
from fastece.report.sections import Section, errors, number_and_ends, picture, sample
from fastece.report.words import Findings, Judgement, judge, number, sentence
from fastece.report.writers import page_text
from fastece.resampling.intervals import ConfidenceInterval
from fastece.streams.accumulator import Accumulator

NOWHERE = ConfidenceInterval(math.nan, math.nan)
# Classes in the table, the clearest first.
MOST_ROWS = 10
APPROXIMATION = (
    "Rows were added up in cells of their score as they were read, and are not kept. Errors of "
    "bins of equal width whose edges are ends of cells (10, 12, 15, 16, 18, 20, 25, 30, 50 or 100 "
    "bins on [0, 1]) are exact to 1e-12; edges of bins of equal weight are right in rank to 1e-4 "
    "and the share of rows in their cell; densities are right to 0.2 %. Resamples, log loss and "
    "groups need all rows: fastece report without --stream."
)
# Files and reasons that are listed.
MOST_FILES = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamReport(Record):
    """The calibration of one model from a stream of its predictions.

    Attributes
    ----------
    title, headline, verdict, n, n_effective, n_classes, accuracy, mean_confidence, setting,
    n_resamples, confidence_level, measures, scores, diagrams, curve, pairs, note
        As in `fastece.report.report.Report`, without resamples.
    direction : dict
        Parts "over" and "under" of the error of the bins of "ece", and the "mean_gap".
    classes : list of dict or None
        Class by class: the error, its interval, and the rows of the class.
    stream : dict
        What was read: files, rows, batches, what was skipped, and why.
    """

    title: str
    headline: str
    verdict: str
    n: int
    n_effective: float
    n_classes: int | None
    accuracy: float
    mean_confidence: float
    setting: str
    n_resamples: int
    confidence_level: float
    measures: list[dict[str, Any]]
    direction: dict[str, float]
    scores: list[dict[str, Any]]
    classes: list[dict[str, Any]] | None
    diagrams: list[ReliabilityDiagram]
    curve: ReliabilityCurve | None
    pairs: bool = field(repr=False)
    note: str
    stream: dict[str, Any]

    def __str__(self) -> str:
        return page_text(self.title, self.headline, self.sections())

    def sections(self) -> list[Section]:
        """All sections, in the order in which they are read."""
        found = [sample(self), errors(self), direction(self), scores(self)]
        if self.classes is not None:
            found.append(classes(self))
        return [*found, stream(self), picture(self)]

    def panels(self) -> list[Panel]:
        """The diagram and the curve, or the diagram of each class."""
        results: list[Any] = [*self.diagrams, *([] if self.curve is None else [self.curve])]
        return [Panel({None: result.drawing()}) for result in results]


def make_stream_report(
    rows: Accumulator, top: Accumulator | None, estimators: dict[str, Any],
    files: Sequence[FileCount], *, title: str, level: float, pairs: bool = False,
    n_classes: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> StreamReport:  # fmt: skip
    """The report on rows that were added up.

    Parameters
    ----------
    rows, top : Accumulator
        The rows in the setting of the report, and where that does not tell how often the most
        probable class is right, in one that does.
    estimators : dict
        By name, the first two those of `LEAD` and `TEST`.
    files
        What was read.
    title, pairs, n_classes
        As in `Report`.
    level : float
        Of the intervals.
    say : callable
        Is told each step.
    """
    diagrams = as_list(rows.reliability_diagram(estimators[TEST]))
    setting = diagrams[0].setting if len(diagrams) == 1 else "classwise"
    measures = measure(rows, estimators, diagrams, level, say)
    table = class_table(rows, estimators[LEAD], diagrams, level) if len(diagrams) > 1 else None
    parts = direction_of(diagrams)
    accuracy, confidence = mean_of_top(rows if top is None else top, pairs)
    judgement = (
        judge_rows(rows, setting, measures[0], parts, level, pairs)
        if table is None
        else judge_classes(table, measures[0], level)
    )
    say("curve")
    curve = rows.reliability_curve(estimators[LEAD], confidence_level=level) if not table else None
    return StreamReport(
        title=title,
        headline=judgement.headline,
        verdict=judgement.verdict,
        n=rows.n,
        n_effective=effective_rows(rows),
        n_classes=n_classes,
        accuracy=accuracy,
        mean_confidence=confidence,
        setting=setting,
        n_resamples=0,
        confidence_level=level,
        measures=measures,
        direction=parts,
        scores=[
            {"name": "brier_score", "value": float(rows.brier_score()), "low": None, "high": None,
             "meaning": SCORES["brier_score"]}
        ],
        classes=table,
        diagrams=diagrams,
        curve=curve if isinstance(curve, ReliabilityCurve) else None,
        pairs=pairs,
        note="",
        stream=summary_of(files),
    )  # fmt: skip


def as_list(found: Any) -> list[Any]:
    """One result for each problem."""
    return found if isinstance(found, list) else [found]


def measure(
    rows: Accumulator, estimators: dict[str, Any], diagrams: list[ReliabilityDiagram],
    level: float, say: Callable[[str], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """A line for each estimator, as those of a report; one with a posterior has an interval, if it
    is not a mean over classes."""
    lines = []
    for name, estimator in estimators.items():
        say(f"measuring {name}")
        line: dict[str, Any] = {
            "name": name, "value": None, "low": None, "high": None, "p_value": None,
            "estimator": str(estimator), "n_bins": None, "occupied": None, "bandwidth": None,
            "rows_behind": None, "smoothing": None,
        }  # fmt: skip
        if hasattr(estimator, "posterior") and len(diagrams) == 1:
            answer = rows.estimate(estimator, confidence_level=level)
            line["value"] = answer.value
            line["low"], line["high"] = answer.confidence_interval
        else:
            line["value"] = float(rows.ece(estimator))
        if isinstance(estimator, Binned):
            count = np.concatenate(
                [diagram.count for diagram in as_list(rows.reliability_diagram(estimator))]
            )
            line["n_bins"], line["occupied"] = count.size, int(np.count_nonzero(count))
        elif isinstance(estimator, KDE):
            curves = as_list(rows.reliability_curve(estimator))
            line["bandwidth"] = float(np.mean([curve.bandwidth for curve in curves]))
        lines.append(line)
    return lines


def direction_of(diagrams: list[ReliabilityDiagram]) -> dict[str, float]:
    """The parts of the error of the bins whose scores are too high, and too low, and the hit rate
    less the mean score: of several classes the means."""
    gaps = np.array([np.nan_to_num(x.gap * x.count) / x.count.sum() for x in diagrams])
    return {
        "over": float(np.maximum(-gaps, 0.0).sum(1).mean()),
        "under": float(np.maximum(gaps, 0.0).sum(1).mean()),
        "mean_gap": float(gaps.sum(1).mean()),
    }


def mean_of_top(top: Accumulator, pairs: bool) -> tuple[float, float]:
    """How often the most probable class is right, and its mean probability. Scores of label 1 say
    label 0 up to one half."""
    (diagram,) = as_list(top.reliability_diagram(n_bins=2, score_range="unit"))
    share = diagram.count / diagram.count.sum()
    hits, score = np.nan_to_num(diagram.frequency), np.nan_to_num(diagram.score)
    if diagram.setting.startswith("binary") and not pairs:
        hits[0], score[0] = 1 - hits[0], 1 - score[0]
    return float(share @ hits), float(share @ score)


def effective_rows(rows: Accumulator) -> float:
    """Kish's effective number of rows."""
    return float(as_list(rows.reliability_diagram(n_bins=1))[0].rows[0])


def class_table(
    rows: Accumulator, estimator: Any, diagrams: list[ReliabilityDiagram], level: float
) -> list[dict[str, Any]]:
    """The error of each class, the clearest first, with intervals that hold all at once."""
    all_at_once = 1 - (1 - level) / len(diagrams)
    answer = rows.estimate(estimator, average=None, confidence_level=all_at_once)
    low, high = answer.confidence_interval
    hits = [float(np.nansum(x.count * x.frequency)) for x in diagrams]
    table = [
        {"label": k, "n": hits[k], "value": float(answer.value[k]), "low": float(low[k]),
         "high": float(high[k])}
        for k in range(len(diagrams))
    ]  # fmt: skip
    return sorted(table, key=lambda row: (-row["low"], -row["value"]))


def judge_rows(
    rows: Accumulator, setting: str, first: dict[str, Any], parts: dict[str, float], level: float,
    pairs: bool,
) -> Judgement:  # fmt: skip
    """The judgement of a report, from the posterior alone."""
    return judge(Findings(
        n=effective_rows(rows), setting="confidence" if pairs else setting, level=level,
        error=first["value"], interval=ConfidenceInterval(first["low"], first["high"]),
        p_value=None, n_resamples=0, over=parts["over"], total=parts["over"] + parts["under"],
        mean_gap=parts["mean_gap"], mean_gap_interval=NOWHERE, off={},
    ))  # fmt: skip


def judge_classes(table: list[dict[str, Any]], first: dict[str, Any], level: float) -> Judgement:
    """The judgement of classes one by one."""
    off = sum(row["low"] > 0 for row in table)
    said = f"{off} of {len(table)} classes are off" if off else "no class is shown to be off"
    return Judgement(
        "miscalibrated" if off else "no sign",
        sentence(f"{said} ({100 * level:g} % intervals, all at once); the mean error is "
                 f"{number(first['value'], 4)}."),
    )  # fmt: skip


def summary_of(files: Sequence[FileCount]) -> dict[str, Any]:
    """What was read and what was not, in all and by file."""
    return {
        "files": len(files),
        "rows": sum(file.rows for file in files),
        "batches": sum(file.batches for file in files),
        "skipped": sum(file.skipped for file in files),
        "cut_files": sum(file.is_cut for file in files),
        "by_file": [asdict(file) for file in files],
        "approximation": APPROXIMATION,
    }


# --- sections -------------------------------------------------------------------------------


def direction(report: StreamReport) -> Section:
    """How much of the error is of scores that are too high, and of those that are too low."""
    rows = [
        ["too high", number(report.direction["over"]), "error of scores above the hit rate"],
        ["too low", number(report.direction["under"]), "error of scores below it"],
        ["mean gap", number(report.direction["mean_gap"]), "hit rate less mean score"],
    ]
    return Section("Direction", {}, ("", "value", ""), rows, ["Parts of ece, bin by bin."])


def scores(report: StreamReport) -> Section:
    """The proper score that sums tell."""
    rows = [[line["name"], number(line["value"]), line["meaning"]] for line in report.scores]
    return Section("Proper scores", {}, ("score", "value", ""), rows)


def classes(report: StreamReport) -> Section:
    """The classes that are the clearest cases."""
    table = report.classes or []
    head = ["class", "rows", "error", f"{100 * report.confidence_level:g} % interval", ""]
    rows = [
        [str(x["label"]), f"{x['n']:.7g}", *number_and_ends(x["value"], x["low"], x["high"]), ""]
        for x in table[:MOST_ROWS]
    ]
    off, more = sum(row["low"] > 0 for row in table), len(table) - len(rows)
    notes = [f"and {more} that are less clear"] * (more > 0)
    notes.append(
        f"{off} of {len(table)} are off: their interval leaves out 0. All intervals hold at once."
    )
    return Section("Classes, the clearest case first", {}, head, rows, notes)


def stream(report: StreamReport) -> Section:
    """What was read, what was skipped, and what it approximates."""
    found = report.stream
    facts = {name: f"{found[name]}" for name in ("files", "rows", "batches")}
    faulty = [file for file in found["by_file"] if file["reason"]]
    if faulty:
        parts = [some(found["skipped"], "row")] if found["skipped"] else []
        parts += [f"the rest of {some(found['cut_files'], 'file')}"] if found["cut_files"] else []
        facts["skipped"] = " and ".join(parts)
    notes = [APPROXIMATION]
    for file in faulty[:MOST_FILES]:
        rest = ["the rest, which cannot be read"] if file["is_cut"] else []
        rows = [some(file["skipped"], "row")] if file["skipped"] else []
        notes.append(f"skipped {' and '.join(rows + rest)}; first: {file['reason']}")
    if len(faulty) > MOST_FILES:
        notes.append(f"and in {len(faulty) - MOST_FILES} more files (--json has them all)")
    return Section("Streamed", facts, notes=notes)


def some(count: int, what: str) -> str:
    """So many rows, or files."""
    return f"{count} {what}{'' if count == 1 else 's'}"
