"""A report as sections, which every form of it shows: text, Markdown, HTML."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastece.report.measures import caution_of
from fastece.report.words import decimals, ends, floor_of, number, p_text, question
from fastece.resampling.intervals import ConfidenceInterval

if TYPE_CHECKING:
    from fastece.report.report import Report
    from fastece.streams.report import StreamReport

# Classes and groups in a table, the clearest first: those that are off, at least a few, at most so
# many; the rest is counted.
FEW_ROWS, MOST_ROWS = 3, 10


@dataclass(frozen=True)
class Section:
    """One part of a report.

    Attributes
    ----------
    title : str
    facts : dict
        Values by what they are, as text.
    head, rows : sequences of str
        A table, whose last column is of texts; without rows there is none.
    notes : sequence of str
        Sentences below.
    results : sequence
        Diagrams and curves: a picture, or in a text their bins.
    """

    title: str
    facts: dict[str, str]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()
    results: Sequence[Any] = ()


def sections_of(report: "Report") -> list[Section]:
    """All sections, in the order in which they are read."""
    made = [
        sample(report), errors(report), direction(report), scores(report), vectors(report),
        breakdown(report.classes, "class", "Classes, the clearest case first"),
        breakdown(report.slices, "group", "Groups, the clearest case first"), picture(report),
    ]  # fmt: skip
    return [section for section in made if section is not None]


def level_of(result: Any) -> str:
    """The head of a column of intervals."""
    return f"{100 * result.confidence_level:g} % interval"


def number_and_ends(value: float, low: float | None, high: float | None) -> list[str]:
    """A number and its interval, if it has one, with as many digits as that is worth."""
    if low is None or high is None:
        return [number(value), "-"]
    interval = ConfidenceInterval(low, high)
    return [number(value, decimals(interval)), ends(interval)]


def sample(report: "Report | StreamReport") -> Section:
    """What was measured on."""
    facts = {"rows": f"{report.n}"}
    if round(report.n_effective) != report.n:
        facts["rows, by weight"] = f"{report.n_effective:.0f} (Kish's effective number)"
    facts["classes"] = "not known" if report.n_classes is None else f"{report.n_classes}"
    facts["accuracy"] = f"{report.accuracy:.4f}"
    facts["mean confidence"] = f"{report.mean_confidence:.4f}"
    facts["setting"] = question(report.setting, report.pairs)
    if report.note:
        facts["read as"] = report.note
    return Section("Sample", facts)


def errors(report: "Report | StreamReport") -> Section:
    """Every error that was asked for, with its interval."""
    head = ["error", "value", level_of(report), "p-value", "bins used", "estimator"]
    rows, notes = [], []
    for line in report.measures:
        numbers = number_and_ends(line["value"], line["low"], line["high"])
        numbers.append(p_text(line["p_value"], floor_of(report.n_resamples)))
        bins = "-" if line["n_bins"] is None else f"{line['occupied']} of {line['n_bins']}"
        estimator = line["estimator"]
        if line["bandwidth"] is not None:
            mean = "mean " if len(report.diagrams) > 1 else ""
            estimator += f", {mean}bandwidth {line['bandwidth']:.4g}"
        rows.append([line["name"], *numbers, bins, estimator])
    if report.n_resamples:
        notes.append(
            "Intervals hold the true error; noise lifts values of bins, most of all of mce, even "
            "above their own. p-value: how often chance alone shows as much if the model is "
            "calibrated; the first sentence has that of ece."
        )
    notes += [
        f"{line['name']}: {why}: do not read this one."
        for line in report.measures
        if (why := caution_of(line, report.n))
    ]
    return Section("Calibration errors", {}, head, rows, notes)


def direction(report: "Report") -> Section:
    """How much of the error is of scores that are too high, and of those that are too low."""
    found = report.direction
    rows = [
        [what, *number_and_ends(value, *(interval or (None, None))), meaning]
        for what, value, interval, meaning in (
            ("too high", found.over, found.over_interval, "error of scores above the hit rate"),
            ("too low", found.under, found.under_interval, "error of scores below it"),
            ("mean gap", found.mean_gap, found.mean_gap_interval, "hit rate less mean score"),
        )
    ]
    note = "Parts of ece_bayes. Their low ends are what the mean gap alone shows."
    return Section("Direction", {}, ("", "value", level_of(report), ""), rows, [note])


def scores(report: "Report") -> Section:
    """Proper scores, which judge calibration and sharpness together, and the parts of Brier's."""
    head = ["score", "value", level_of(report), ""]
    rows = [
        [line["name"], *number_and_ends(line["value"], line["low"], line["high"]), line["meaning"]]
        for line in report.scores
    ]
    parts = report.decomposition
    # By default class vectors are scored whole, and what is taken apart is the top label's score.
    is_part = not math.isclose(parts.score, report.scores[0]["value"], rel_tol=1e-9)
    notes = [
        f"Brier score{' of the top label' if is_part else ''} {parts.score:.4f} = miscalibration "
        f"{parts.miscalibration:.4f} - discrimination {parts.discrimination:.4f} + uncertainty "
        f"{parts.uncertainty:.4f}, by isotonic regression."
    ]
    notes += [
        f"{line['name']}: what came true had the probability 0; fastece.log_loss can clip that"
        for line in report.scores
        if math.isinf(line["value"])
    ]
    return Section("Proper scores", {}, head, rows, notes)


def breakdown(found: Any, what: str, title: str) -> Section | None:
    """Errors of classes or of groups."""
    if found is None:
        return None
    off = sum(row.low > 0 for row in found)
    shown = found[: min(max(off, FEW_ROWS), MOST_ROWS)]
    head = [what, "rows", "error", level_of(found), "p-value", ""]
    rows = [
        [
            str(row.label), f"{row.n}", *number_and_ends(row.value, row.low, row.high),
            p_text(row.p_value), row.note,
        ]
        for row in shown
    ]  # fmt: skip
    more = len(found) - len(shown)
    notes = [
        f"{off} of {len(found)} are off: their interval leaves out 0. All intervals hold at once, "
        "and p-values, bounds from Bayes factors, allow for their number."
    ]
    return Section(
        title, {}, head, rows, [*([f"and {more} that are less clear"] * (more > 0)), *notes]
    )


def vectors(report: "Report") -> Section | None:
    """Errors of all classes at once."""
    found, title = report.vectors, "All classes at once"
    if found is None:
        return None
    if found.note:
        return Section(title, {}, notes=[found.note])
    head = ["error", "value", "if calibrated", "p-value", ""]
    rows = [
        [
            line["name"], number(line["value"]), number(line["if_calibrated"]),
            p_text(line["p_value"], floor_of(found.n_resamples)), line["meaning"],
        ]
        for line in found.lines
    ]  # fmt: skip
    note = (
        "Top label and single classes can be right where this is not. If calibrated: the mean of "
        f"{found.n_resamples} samples of labels drawn as the vectors say; chance alone makes that."
    )
    return Section(title, {}, head, rows, [note] * (found.n_resamples > 0))


def picture(report: "Report | StreamReport") -> Section:
    """The diagram, and the curve beside it."""
    results = [*report.diagrams, *([] if report.curve is None else [report.curve])]
    return Section("Scores and what came true", {}, results=results)
