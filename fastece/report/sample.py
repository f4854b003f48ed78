"""The part of a report on its rows: how many, of which classes, and how the test went."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastece.data.doubts import (
    IMPOSSIBLE_OUTCOME,
    describe_constant_scores,
    describe_foreign_labels,
    describe_repeats,
    impossible_rows,
)
from fastece.data.table import RowTable
from fastece.display.documents import Cell, Section
from fastece.display.numbers import (
    Number,
    equate_p,
    first_of,
    format_p,
    format_percents,
    smallest_p,
)
from fastece.display.results import group_notes
from fastece.estimators.binned import Binned
from fastece.estimators.density.plan import ROWS_AT_ONCE
from fastece.estimators.losses import mean_of
from fastece.kernels.types import F64
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.report.inputs import TEST, ReportInput, ReportNames
from fastece.report.words import question
from fastece.resampling.adaptive import AdaptiveTest
from fastece.resampling.calibration_test import calibration_results, sequential_results

GROUPS_NOTE = (
    "Rows of one group may depend on each other: intervals and p-values are those of whole groups."
)
COUNTS_NOTE = (
    "Rows of the table stand for so many independent rows as they count. Thresholds with a promise "
    "and errors of class vectors need each row by itself, so they are absent."
)
STREAM_NOTE = (
    "Rows were added up in cells of their score, and are not kept. Errors of equal-width bins "
    "whose edges are ends of cells (10, 12, 15, 16, 18, 20, 25, 30, 50 or 100 on [0, 1]) are "
    "exact; ranks of edges of equal-mass bins are exact to 1e-4 and the share of rows in their "
    "cell; densities to 0.2 %. Labels of tests are drawn by cell, with normal noise. Log loss, "
    "intervals of densities and groups need every row, so they are absent."
)
# Names in print of numbers of a stream; others have their own.
STREAM_NAMES = {"skipped": "rows skipped", "cut_files": "files cut off"}


@dataclass(frozen=True, kw_only=True)
class RowSummary:
    """Numbers that describe the rows of a report; `Report` has them as attributes.

    Attributes
    ----------
    n, n_effective : int, float
    n_groups, n_classes : int or None
    accuracy, mean_confidence : float or None
    rates : pair of float, or None
        Predicted and observed rate, where there is a single event.
    linear_slope : float or None
        Slope of the observed frequency over the predicted probability, where there is a single
        event: less than 1 where predictions are too extreme.
    setting : str
    pairs : bool
    total_weight : float or None
        Sum of the weights; None without weights.
    may_be_counts : bool
        Whether the weights are whole numbers, of which some are more than 1.
    n_table_rows : int or None
        Number of rows of a table with counts, of which there are `n` in all.
    doubts : tuple of str
        Sentences on signs that numbers mislead.
    """

    n: int
    n_effective: float
    n_groups: int | None
    n_classes: int | None
    accuracy: float | None
    mean_confidence: float | None
    rates: tuple[float, float] | None
    linear_slope: float | None
    setting: str
    pairs: bool
    total_weight: float | None = None
    may_be_counts: bool = False
    n_table_rows: int | None = None
    doubts: tuple[str, ...] = ()

    @property
    def hits(self) -> tuple[float, float] | None:
        """Accuracy and mean confidence, where top labels are measured."""
        if self.accuracy is None or self.mean_confidence is None:
            return None
        is_top_label = self.pairs or self.setting == "confidence"
        return (self.accuracy, self.mean_confidence) if is_top_label else None

    @property
    def notes(self) -> list[str]:
        """Sentences on signs that numbers mislead, on counts and on groups."""
        notes = [*self.doubts]
        if self.n_table_rows is not None:
            notes.append(COUNTS_NOTE)
        if self.n_groups is None:
            return notes
        return [*notes, GROUPS_NOTE, *group_notes(self.n_groups)]


@dataclass(frozen=True, kw_only=True)
class ReportTest:
    """The calibration test of a report; `Report` has its values as attributes.

    Attributes
    ----------
    n_resamples, confidence_level, seed
    p_value : float or None
    components : tuple of rows, or None
        The statistics of the test: name, statistic, p_value.
    """

    n_resamples: int
    confidence_level: float
    seed: int
    p_value: float | None
    components: tuple[Any, ...] | None

    @property
    def smallest_p_value(self) -> float:
        """The smallest p-value that the replicates can give."""
        return smallest_p(self.n_resamples)


# --- numbers --------------------------------------------------------------------------------


def summarize_rows(inputs: ReportInput) -> RowSummary:
    """Count the rows, and measure accuracy, mean confidence and rates."""
    call = inputs.call
    table = inputs.table
    single_bin = diagrams_of(Binned(1), table)[0]
    accuracy, confidence = measure_top_label(inputs)
    weights = weights_of(inputs)
    return RowSummary(
        n=call.n,
        n_effective=table.votes * float(single_bin.rows[0]) / call.design_effect,
        n_groups=call.n_groups,
        n_classes=count_classes(inputs),
        accuracy=accuracy,
        mean_confidence=confidence,
        rates=None if inputs.is_top_label else rates_of(inputs.diagrams),
        linear_slope=None if inputs.is_top_label else linear_slope_of(inputs.diagrams),
        setting=call.setting,
        pairs=inputs.data.pairs,
        total_weight=None if weights is None else float(weights.sum()),
        may_be_counts=call.counts is None and weights is not None and are_whole(weights),
        n_table_rows=None if call.counts is None else call.counts.size,
        doubts=describe_doubts(inputs),
    )


def describe_doubts(inputs: ReportInput) -> tuple[str, ...]:
    """Write a sentence for each sign that numbers mislead; a stream has none."""
    table = inputs.table
    if table.stream is not None:
        return ()
    sentences = []
    impossible = table.callers[np.any(impossible_rows(table), axis=0)]
    if impossible.size:
        rows = first_of(sorted({*impossible.tolist()}), inputs.data.row_name)
        sentences.append(IMPOSSIBLE_OUTCOME.format(rows))
    sentences.append(describe_constant_scores(table))
    if table.c is None:
        sentences.append(describe_rows_of_others(inputs))
        sentences.append("" if inputs.call.groups else describe_repeats(table))
    return tuple(sentence for sentence in sentences if sentence)


def describe_rows_of_others(inputs: ReportInput) -> str:
    """Write a sentence on labels of other rows, where labels are hard."""
    if inputs.table.votes > 1:
        return ""
    setting = "binary" if inputs.table.n_classes == 2 else "classwise"
    return describe_foreign_labels(inputs.read_rows(setting=setting))


def weights_of(inputs: ReportInput) -> F64 | None:
    """Return the weight (n,) of each row by all of its copies; None without weights."""
    if inputs.data.reading.sample_weight is None or not inputs.has_rows:
        return None
    if inputs.table.votes > 1:  # whose shares are weights too
        return None
    return inputs.table.samples(reads_only=True)[0].total_weights


def are_whole(weights: F64) -> bool:
    """Decide whether weights are whole numbers, of which some are more than 1."""
    return bool((weights == np.floor(weights)).all() and weights.max() > 1)


def count_classes(inputs: ReportInput) -> int | None:
    """Return the number of classes, None where a file does not have it."""
    if inputs.data.pairs:
        return inputs.data.n_classes
    if inputs.has_rows or inputs.data.top_label is None:
        return inputs.table.n_classes
    return inputs.data.top_label.table().n_classes


def measure_top_label(inputs: ReportInput) -> tuple[float | None, float | None]:
    """Measure the accuracy and the mean confidence, where the table has them."""
    table = inputs.table
    if table.c is None:
        rows = table if inputs.is_top_label else inputs.read_rows(setting="confidence")
        means = mean_of(rows.parts(ROWS_AT_ONCE), lambda part: np.stack([part.s, part.y]))
        confidence, accuracy = means.tolist()
        return accuracy, confidence
    if table.stream is None:
        top = table if inputs.is_top_label else inputs.read_rows(setting="confidence")
        sample = top.sample(0)
        share = sample.total_weights / sample.total_weights.sum()
        return float(share @ sample.y), float(share @ sample.s)
    if inputs.is_top_label or table.setting.name == "binary":
        return measure_stream(table, inputs.data.pairs)
    if inputs.data.top_label is not None:
        return measure_stream(inputs.data.top_label.table(), inputs.data.pairs)
    return None, None


def measure_stream(table: RowTable, pairs: bool) -> tuple[float, float]:
    """Measure the accuracy and the mean confidence from the sums of a stream."""
    (halves,) = diagrams_of(Binned(2, score_range="unit"), table)
    hits = np.nan_to_num(halves.frequency)
    score = np.nan_to_num(halves.score)
    if halves.setting.startswith("binary") and not pairs:
        # Scores of label 1 up to one half are predictions of label 0.
        hits[0] = 1 - hits[0]
        score[0] = 1 - score[0]
    share = halves.count / halves.count.sum()
    return float(share @ hits), float(share @ score)


def rates_of(diagrams: list[ReliabilityDiagram]) -> tuple[float, float] | None:
    """Compute the predicted and the observed rate, if there is a single event."""
    if len(diagrams) > 1:
        return None
    (diagram,) = diagrams
    share = diagram.count / max(float(diagram.count.sum()), 1e-300)
    predicted = float(share @ np.nan_to_num(diagram.score))
    observed = float(share @ np.nan_to_num(diagram.frequency))
    return predicted, observed


def linear_slope_of(diagrams: list[ReliabilityDiagram]) -> float | None:
    """Compute the slope of a line through the bins, if there is a single event."""
    if len(diagrams) > 1:
        return None
    (diagram,) = diagrams
    share = diagram.count / max(float(diagram.count.sum()), 1e-300)
    score = np.nan_to_num(diagram.score)
    distance = share * (score - share @ score)
    variance = float(distance @ score)
    return None if variance <= 0 else float(distance @ np.nan_to_num(diagram.frequency)) / variance


def run_test(inputs: ReportInput) -> ReportTest:
    """Run the adaptive test of calibration, where there is one."""
    call = inputs.call
    p_value = components = None
    n_resamples = 0
    if inputs.has_test:
        adaptive = call.with_estimator(AdaptiveTest(call.estimators[TEST].n_bins))
        test = sequential_results if inputs.options.is_sequential else calibration_results
        result = test(adaptive, inputs.seed)
        p_value = result.p_value
        components = result.components
        n_resamples = result.null_distribution.shape[-1]
    return ReportTest(
        n_resamples=n_resamples,
        confidence_level=call.level,
        seed=inputs.seed,
        p_value=p_value,
        components=components,
    )


# --- sections -------------------------------------------------------------------------------


def sample_section(names: ReportNames, rows: RowSummary, test: ReportTest) -> Section:
    """Describe the rows and the test."""
    facts: dict[str, Cell] = {"rows": rows.n}
    if rows.n_table_rows is not None:
        facts["counts"] = f"{rows.n} rows in {rows.n_table_rows} of the table"
    if rows.total_weight is not None:
        facts["weights"] = describe_weights(rows)
    if rows.n_groups is not None:
        by = f" by {names.groups}" if names.groups else ""
        facts["groups"] = f"{rows.n_groups}{by}"
    if round(rows.n_effective) != rows.n:
        facts["effective rows"] = f"{rows.n_effective:.0f} ({reason_of_effective(rows)}, Kish)"
    facts["classes"] = "not known" if rows.n_classes is None else rows.n_classes
    if rows.rates is not None:
        predicted, observed = format_percents(*rows.rates, places=2)
        facts["predicted rate"] = predicted
        facts["observed rate"] = observed
    elif rows.accuracy is not None:
        facts["accuracy"] = Number(rows.accuracy, form=".4f")
        facts["mean confidence"] = Number(rows.mean_confidence, form=".4f")
    facts["setting"] = question(rows.setting, rows.pairs)
    if test.p_value is not None and test.components is not None:
        smallest = test.smallest_p_value
        p_values = [f"{format_p(x.p_value, smallest)} ({x.name})" for x in test.components]
        p_value = equate_p(test.p_value, smallest)
        facts["test"] = f"{p_value}; p-values of its statistics: {', '.join(p_values)}"
    if names.note:
        facts["read as"] = names.note
    return Section("Sample", facts, notes=rows.notes)


def describe_weights(rows: RowSummary) -> str:
    """Write the sum of the weights, with the option for counts where they may be such."""
    text = f"{rows.total_weight:.10g} in {rows.n} rows"
    return f"{text}; if these are counts, use --counts" if rows.may_be_counts else text


def reason_of_effective(rows: RowSummary) -> str:
    """Name the reason why the effective number of rows is another one."""
    if rows.n_groups:
        return "groups"
    return "votes" if rows.n_effective > rows.n else "weights"


def stream_section(stream: dict[str, Any] | None) -> Section | None:
    """Describe a stream, and the questions that it leaves open."""
    if stream is None:
        return None
    counts = {name: x for name, x in stream.items() if isinstance(x, int) and x}
    facts = {STREAM_NAMES.get(name, name): x for name, x in counts.items()}
    return Section("Streamed", facts, notes=[*stream.get("notes", []), STREAM_NOTE])
