"""The call that makes a report, and the list of its parts."""

from dataclasses import replace
from typing import Any, Literal, Unpack

from fastece.data.axes import find_row_axes
from fastece.data.options import ReadingKeywords, reading_options, shows_options
from fastece.data.predictions import Predictions
from fastece.data.reading import refuse_options
from fastece.data.table import TableMaker
from fastece.report.breakdown import (
    describe_classes,
    describe_slices,
    measure_classes,
    measure_slices,
)
from fastece.report.class_vectors import describe_vectors, measure_vectors
from fastece.report.errors import (
    describe_direction,
    describe_errors,
    measure_direction,
    measure_errors,
)
from fastece.report.inputs import (
    ERRORS,
    ReportRequest,
    choose_errors,
    flatten_request,
    read_input,
)
from fastece.report.pictures import describe_diagrams, measure_diagrams
from fastece.report.practice import (
    choose_thresholds,
    describe_thresholds,
    describe_validation,
    validate_rows,
)
from fastece.report.result import Part, Report
from fastece.report.sample import describe_sample, measure_sample
from fastece.report.scores import describe_scores, measure_scores
from fastece.report.verdict import judge
from fastece.risk.validation import check_event

# They are measured, and then read, in this order.
PARTS = (
    Part(measure_sample, describe_sample),
    Part(measure_errors, describe_errors),
    Part(measure_direction, describe_direction),
    Part(measure_scores, describe_scores),
    Part(measure_vectors, describe_vectors),
    Part(measure_classes, describe_classes),
    Part(measure_slices, describe_slices),
    Part(choose_thresholds, describe_thresholds),
    Part(validate_rows, describe_validation),
    Part(measure_diagrams, describe_diagrams),
)


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
    request = ReportRequest(
        y_true=y_true,
        y_prob=y_prob,
        reading=reading,
        by=by,
        groups=groups,
        errors=choose_errors(estimators, n_bins=n_bins),
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        n_jobs=n_jobs,
        executor=executor,
        title=title,
        event=check_event(event),
    )
    if reading.class_axis is None:
        return make_report(request)
    if isinstance(y_true, TableMaker):
        refuse_options(y_true, class_axis=reading.class_axis)
    axes = find_row_axes("y_prob", y_prob, reading.class_axis)
    with axes.naming_entries("y_prob"):
        return make_report(flatten_request(request, axes))


def make_report(request: ReportRequest) -> Report:
    """Measure all parts of a report on rows or on a stream, and judge the model.

    Raises
    ------
    ValueError, TypeError
        As in `calibration_report`.
    """
    inputs = read_input(request)
    values: dict[str, Any] = {}
    for part in PARTS:
        values |= part.measure(inputs)
    report = Report(**values, headline="", verdict="", _parts=PARTS)
    verdict, headline = judge(report)
    return replace(report, verdict=verdict, headline=headline)
