"""The command ``curve``: how often scores come true, as a table."""

import math
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastece.checks.errors import InputError
from fastece.cli.inputs import describe_data, read_data, read_file, score_range, title_of
from fastece.cli.output import Page, Progress, save_picture
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import ConfidenceInterval, Number
from fastece.estimators.table import find_estimator
from fastece.reliability import ReliabilityCurve, curves_of
from fastece.report.report import curve_panels

KEYS = ("score", "probability", "low", "high", "rows", "supported")


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece curve FILE``."""
    is_kde, title = options.estimator == "ece_kde", title_of(options.file)
    fields = {x: getattr(options, x) for x in ("bandwidth", "kernel")}
    fields = {name: value for name, value in fields.items() if value is not None}
    if fields and not is_kde:
        raise InputError(min(fields), "goes with --estimator ece_kde")
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    progress("curve and its band" + (f", {options.resamples} replicates" if is_kde else ""))
    fields |= score_range(predictions) if is_kde else {}
    call = read_data(predictions, options, {"": find_estimator(options.estimator, fields)})
    curves = curves_of(call, options.seed)
    first, facts = curves[0], describe_data(call, predictions)
    if first.n_resamples:
        facts["intervals"] = f"percentile bootstrap, {first.n_resamples} replicates"
    elif first.bandwidth is None:
        facts["intervals"] = "quantiles of the posterior"
    points = [points_of(curve, options.at) for curve in curves]
    tables = [
        {"setting": curve.setting, "value": curve.value, "estimator": curve.estimator,
         "bandwidth": curve.bandwidth, "points": one}
        for curve, one in zip(curves, points, strict=True)
    ]  # fmt: skip
    values = {
        "title": title, "n": call.n, "note": predictions.note, "setting": call.setting,
        "n_resamples": first.n_resamples, "confidence_level": call.level, "curves": tables,
    }  # fmt: skip
    sections = [section_of(curve, one) for curve, one in zip(curves, points, strict=True)]
    description = Document(title, "", [Section(facts=facts), *sections])
    return Page(description, values, {"plot": lambda x: save_picture(x, curve_panels(curves))})


def points_of(curve: ReliabilityCurve, at: Sequence[float] | None) -> list[dict[str, Any]]:
    """Return the points of a curve at some scores, by default eleven over the range.

    Values are nan where there are no scores near it, or no band.
    """
    low, high = curve.score_range
    points = []
    for score in np.linspace(low, high, 11).tolist() if at is None else at:
        inside = low <= score <= high
        probability = curve(score) if inside else math.nan
        supported = math.isfinite(probability)
        ends = curve.interval(score) if supported and curve.low is not None else [math.nan] * 2
        rows = float(np.interp(score, curve.score, curve.rows)) if inside else 0.0
        values = (score, probability, *ends, rows, supported)
        points.append(dict(zip(KEYS, values, strict=True)))
    return points


def section_of(curve: ReliabilityCurve, points: Sequence[dict[str, Any]]) -> Section:
    """Describe the points of a curve in a table, as a section of a page."""
    rows = [
        [Number(x["score"], form=".4f"), Number(x["probability"], form=".4f"),
         ConfidenceInterval(x["low"], x["high"]), Number(x["rows"], form=".0f"),
         "" if x["supported"] else "no scores"]
        for x in points
    ]  # fmt: skip
    bandwidth = "" if curve.bandwidth is None else f", bandwidth {curve.bandwidth:.4g}"
    title = f"{curve.estimator}, setting {curve.setting}: calibration error {curve.value:.5f}"
    head = ["score", "comes true", f"{100 * curve.confidence_level:g} % CI", "rows near it", ""]
    return Section(title + bandwidth, table=Table(head, rows))
