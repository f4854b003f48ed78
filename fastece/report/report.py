"""The call that makes a report: each part is measured by one function, in the order below."""

from dataclasses import replace
from typing import Any, Literal, Unpack

from fastece.data.axes import find_row_axes
from fastece.data.options import ReadingKeywords, reading_options, shows_options
from fastece.data.predictions import Predictions
from fastece.data.reading import refuse_options
from fastece.data.table import TableMaker
from fastece.inference.direction import Direction, direction_of
from fastece.inference.validation import check_event
from fastece.report.breakdown import measure_breakdowns, select_slices
from fastece.report.class_vectors import DECISIVE, VECTOR_ERRORS, has_class_vectors, measure_vectors
from fastece.report.errors import measure_errors
from fastece.report.inputs import (
    ERRORS,
    Progress,
    ReportData,
    ReportInput,
    ReportNames,
    ReportOptions,
    choose_errors,
    flatten_data,
    read_input,
)
from fastece.report.pictures import prepare_pictures
from fastece.report.result import Report
from fastece.report.sample import run_test, summarize_rows
from fastece.report.scores import decompose_brier_score, measure_scores
from fastece.report.thresholds import choose_thresholds
from fastece.report.validation import validate_rows
from fastece.report.verdict import NO_SIGN, UNCLEAR


@shows_options
def calibration_report(
    y_true: Any, y_prob: Any = None, *, estimator: Any = tuple(ERRORS), by: Any = None,
    groups: Any = None, n_bins: Any = 15, title: str = "Calibration report", event: Any = None,
    n_resamples: int | Literal["auto"] = 1999, confidence_level: float = 0.95, rng: Any = 0,
    n_jobs: int | None = None, executor: Any = None, **options: Unpack[ReadingKeywords],
) -> Report:  # fmt: skip
    """Report on the calibration of one model: errors, direction, scores, slices.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.bootstrap`, or an `Accumulator` alone; results that its sums do not allow are
        absent.
    estimator : str or object, or a list of them
        The errors to show, "mce" among them; "ece_bayes" and "ece" always come first.
    by : (n,) array_like, or a dict or data frame of several, optional
        A label or a number for each row: the errors of the slices are shown too, as by
        `fastece.slices`.
    groups : (n,) array_like, optional
        As in `fastece.estimate`: rows that belong together. All intervals and p-values then hold
        for whole groups.
    n_bins : int or "sqrt", default 15
        Bins of the estimators that have some.
    title : str
    event : str, optional
        Name of the event of a binary problem in the sentences, such as "readmission".
    n_resamples : int or "auto", default 1999
        Replicates behind intervals and p-values; with 0 there are only posterior intervals. "auto":
        1999, and more for the test until its p-value is known, as in `fastece.calibration_test`.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same report.
    confidence_level, n_jobs, executor
        As in `fastece.bootstrap`.

    Returns
    -------
    Report

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece` and `fastece.slices`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import calibration_report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(5, 1.5, size=1000)
    >>> y = rng.random(1000) < p - 0.5 * p * (1 - p)
    >>> for part in calibration_report(y, p).headline.split("; "):
    ...     print(part)
    Probabilities are too high: 76.9 % predicted, 66.7 % observed
    calibration error 0.100 (95 % CI 0.072 to 0.123)
    test of calibration: p <= 0.0005.
    """
    estimators = estimator if isinstance(estimator, list | tuple) else [estimator]
    reading = reading_options(options)
    if isinstance(y_true, Predictions):
        refuse_options(y_true, y_prob=y_prob, **reading.given)
        y_true, y_prob, reading = y_true.arrays
    report_options = ReportOptions(
        errors=choose_errors(estimators, n_bins=n_bins),
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        n_jobs=n_jobs,
        executor=executor,
    )
    names = ReportNames(title=title, event=check_event(event))
    data = ReportData(y_true=y_true, y_prob=y_prob, reading=reading, by=by, groups=groups)
    if reading.class_axis is None:
        return make_report(names, data, report_options)
    if isinstance(y_true, TableMaker):
        refuse_options(y_true, class_axis=reading.class_axis)
    axes = find_row_axes("y_prob", y_prob, reading.class_axis)
    with axes.naming_entries("y_prob"):
        return make_report(names, flatten_data(data, axes), report_options)


def make_report(
    names: ReportNames,
    data: ReportData,
    options: ReportOptions,
    progress: Progress = lambda _: None,
) -> Report:
    """Make the report on the rows of a model, or on the sums of a stream.

    Parameters
    ----------
    names : ReportNames
        Title and other names that the report shows.
    data : ReportData
        Rows, or sums, with slices and groups.
    options : ReportOptions
        Errors to show, draws, and how much to compute.
    progress : callable
        Takes the name of each step.

    Returns
    -------
    Report

    Raises
    ------
    ValueError, TypeError
        As in `calibration_report`.
    """
    progress("reading")
    return measure_parts(read_input(names, data, options, progress))


def measure_parts(inputs: ReportInput) -> Report:
    """Measure all parts of a report, one after another."""
    selections = select_slices(inputs)
    has_all = inputs.is_full and inputs.has_rows
    measures = measure_errors(inputs)
    test = run_test(inputs)
    pictures = prepare_pictures(inputs)
    inputs.progress("direction, scores, classes and slices")
    report = Report(
        measures=measures,
        direction=measure_direction(inputs),
        scores=measure_scores(inputs) if inputs.is_full else [],
        decomposition=decompose_brier_score(inputs) if has_all else None,
        validation=validate_rows(inputs) if has_all else None,
        thresholds=choose_thresholds(inputs) if has_all else None,
        stream=describe_stream(inputs),
        _names=inputs.names,
        _summary=summarize_rows(inputs),
        _test=test,
        _breakdowns=measure_breakdowns(inputs, selections),
        _pictures=pictures,
    )
    return add_class_vectors(report, inputs)


def measure_direction(inputs: ReportInput) -> Direction | None:
    """Measure the direction of the first error; all classes of a stream have none."""
    if not inputs.has_rows and inputs.table.setting.per_class:
        return None
    return direction_of(inputs.lead, inputs.key)


def describe_stream(inputs: ReportInput) -> dict[str, Any] | None:
    """Return the facts about a stream; they are empty where an accumulator came alone."""
    if inputs.has_rows:
        return inputs.data.stream
    return inputs.data.stream or {}


def add_class_vectors(report: Report, inputs: ReportInput) -> Report:
    """Measure all errors of class vectors, or the one that may change the verdict.

    They take most of the time of a report on ten classes.
    """
    if not has_class_vectors(inputs):
        return report
    if inputs.options.measures_all_vectors:
        return replace(report, vectors=measure_vectors(inputs, list(VECTOR_ERRORS)))
    if report.verdict in (NO_SIGN, UNCLEAR):
        return replace(report, vectors=measure_vectors(inputs, [DECISIVE]))
    return report
