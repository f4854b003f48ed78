"""The parts of a report on calibration errors, and on the direction of the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.display.documents import Cell, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number, PValue, outside_text, smallest_p
from fastece.estimators.base import values_of_problems
from fastece.inference.direction import direction_of
from fastece.inference.estimate import Estimate, estimate_results
from fastece.reliability.diagram import diagrams_of
from fastece.report.inputs import ReportInput
from fastece.report.result import ErrorLine, Report
from fastece.resampling.calibration_test import has_cells
from fastece.resampling.call import Call, average_classes

# The best estimate and the usual error come first, and are never left out.
N_MAIN_ERRORS = 2
# Parts in the table of a `Direction`, with their names and meanings in a report, whose readers
# know scores as probabilities. The error as a whole is in the table of errors.
DIRECTION_WORDS = {
    "over": ("too high", "error of probabilities above the observed frequency"),
    "under": ("too low", "error of probabilities below the observed frequency"),
    "mean gap": ("mean gap", "observed frequency minus mean predicted probability"),
}


# --- numbers --------------------------------------------------------------------------------


def measure_errors(inputs: ReportInput) -> dict[str, Any]:
    """Measure each error, with interval and test as far as the table allows them."""
    call = inputs.call
    progress = inputs.request.progress
    lines = []
    for name, estimator in call.estimators.items():
        progress(f"measuring {name}")
        lines.append(measure_error(estimator, name, call))
    progress(f"intervals, {call.n_resamples} replicates of a calibrated model")
    estimates = estimate_errors(call, inputs.seed)
    measures = [
        add_estimate(line, estimates[line.name]) if line.name in estimates else line
        for line in lines
    ]
    return {"measures": measures}


def measure_error(estimator: Any, name: str, call: Call) -> ErrorLine:
    """Measure an error without an interval, and details of its estimator.

    They are the bins of all classes and those that hold rows, or the mean bandwidth.
    """
    table = call.tables[0]
    if estimator.bins is not None:
        diagrams = diagrams_of(estimator, table)
        line = line_of(estimator, name, call, [diagram.value for diagram in diagrams])
        count = np.concatenate([diagram.count for diagram in diagrams])
        return replace(line, n_bins=count.size, occupied=int(np.count_nonzero(count)))
    line = line_of(estimator, name, call, values_of_problems(estimator, table))
    if estimator.bandwidths is None:
        return line
    return replace(line, bandwidth=float(np.mean(estimator.bandwidths(table))))


def line_of(estimator: Any, name: str, call: Call, values: Any) -> ErrorLine:
    """Make the line of an estimator from its value for each problem."""
    text = f"{estimator}"
    if call.uses_class_vectors(estimator):
        text += ", class vectors"
    return ErrorLine(
        name=name, value=float(average_classes(call, np.asarray(values))), estimator=text
    )


def estimate_errors(call: Call, seed: int) -> Mapping[str, Estimate]:
    """Estimate the errors that have an interval here, by name.

    Without resamples these are posteriors alone; for a stream, posteriors and bins of a single
    problem.
    """
    table = call.tables[0]
    has_rows = table.stream is None
    if not has_rows and table.n_problems > 1:
        return {}
    estimators = {
        name: estimator
        for name, estimator in call.estimators.items()
        if estimator.posterior is not None
        or (call.n_resamples and (has_rows or has_cells(estimator)))
    }
    if not estimators:
        return {}
    estimates: Mapping[str, Estimate] = estimate_results(
        replace(call, estimators=estimators), rng=seed
    )
    return estimates


def add_estimate(line: ErrorLine, estimate: Estimate) -> ErrorLine:
    """Add interval, p-value and the error by chance alone to the line of an error."""
    low, high = estimate.confidence_interval
    floor = estimate.floor.mean
    return replace(
        line,
        value=estimate.value,
        low=low,
        high=high,
        p_value=estimate.p_value,
        floor=None if np.isnan(floor) else floor,
    )


def measure_direction(inputs: ReportInput) -> dict[str, Any]:
    """Measure the direction of the first error; all classes of a stream have none."""
    inputs.request.progress("direction, scores, classes and slices")
    if not inputs.has_rows and inputs.table.setting.per_class:
        return {"direction": None}
    return {"direction": direction_of(inputs.lead, inputs.key)}


# --- sections -------------------------------------------------------------------------------


def describe_errors(report: Report) -> list[Section]:
    """Describe the errors with the parameters of their estimators."""
    lines, notes = without_noise(report.measures)
    texts = []
    for line in lines:
        text = line.estimator
        if line.bandwidth is not None:
            mean = "mean " if len(report.diagrams) > 1 else ""
            text += f", {mean}bandwidth {line.bandwidth:.4g}"
        texts.append(text)
    table = errors_table(report, lines, texts, "estimator")
    if report.p_value is not None:
        notes.append(
            "The intervals cover the true error; noise raises the estimates of binned errors, most "
            "of all of mce, even above their intervals. p-value: test of calibration with this "
            "error alone; the first sentence has that of the adaptive test, which also looks for "
            "slopes and curves."
        )
    return [Section("Calibration errors", table=table, notes=notes)]


def without_noise(lines: Sequence[ErrorLine]) -> tuple[list[ErrorLine], list[str]]:
    """Leave out errors that are noise, with a note; the first two always stay."""
    shown = [line for k, line in enumerate(lines) if k < N_MAIN_ERRORS or not line.is_noise]
    omitted = ", ".join(line.name for line in lines if line not in shown)
    if not omitted:
        return shown, []
    note = (
        f"Omitted as noise: {omitted}. Chance alone gives about the same value, above the interval "
        "(scores are saturated, or bins have few rows)."
    )
    return shown, [note]


def errors_table(
    report: Report, lines: Sequence[ErrorLine], texts: Sequence[str], title: str = ""
) -> Table:
    """Make the table of errors, whose last column has a text and a title of its own."""
    smallest = smallest_p(report.n_resamples)
    rows = []
    for line, text in zip(lines, texts, strict=True):
        number, interval = with_interval(line.value, line.low, line.high)
        floor = Number(line.floor, interval)
        p_value = PValue(line.p_value, smallest)
        text = "; ".join(filter(None, [text, outside_text(line.value, interval)]))
        rows.append([line.name, number, interval, floor, p_value, text])
    interval_name = name_interval(report.confidence_level)
    return Table(["error", "value", interval_name, "chance alone", "p-value", title], rows)


def name_interval(level: float) -> str:
    """Name the column of intervals."""
    return f"{100 * level:g} % CI"


def with_interval(value: Any, low: Any, high: Any) -> list[Cell]:
    """Return the cells of a number and of its interval, if it has one."""
    interval = None if low is None else ConfidenceInterval(low, high)
    return [Number(value, interval), interval]


def describe_direction(report: Report) -> list[Section]:
    """Describe how much of the error is of scores that are too high, and too low."""
    if report.direction is None:
        return []
    table = report.direction.document().sections[0].table
    assert table is not None
    rows = []
    for part, value, interval, _ in table.rows:
        if part in DIRECTION_WORDS:
            name, meaning = DIRECTION_WORDS[part]
            rows.append([name, value, interval, meaning])
    note = "Parts of ece_bayes; the lower ends of their intervals come from the mean gap."
    return [Section("Direction", table=Table(table.head, rows), notes=[note])]
