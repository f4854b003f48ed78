"""The command ``curve``: how often scores come true, as a table."""

import math
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastece.checks.errors import InputError
from fastece.cli.inputs import read_data, read_file, score_range, title_of
from fastece.cli.page import Page, noted
from fastece.cli.targets import check_picture
from fastece.cli.terminal import show_progress
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import ConfidenceInterval, Number
from fastece.estimators.table import find_estimator
from fastece.files import Predictions
from fastece.plot.pages import save_picture
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.report.report import curve_panels
from fastece.report.words import question
from fastece.resampling.arguments import Call

# Fields of "ece_kde", and their usual values.
OF_DENSITIES = {"bandwidth": "silverman", "kernel": "gaussian"}
KEYS = ("score", "probability", "low", "high", "rows", "supported")


def run_curve(options: Namespace) -> Page:
    """Run ``fastece curve FILE``."""
    picture = options.plot and check_picture(options.plot)
    is_kde = options.estimator == "ece_kde"
    fields: dict[str, Any] = {
        name: x for name, usual in OF_DENSITIES.items() if (x := getattr(options, name)) != usual
    }
    if fields and not is_kde:
        raise InputError(min(fields), "goes with --estimator ece_kde")
    with show_progress() as progress:
        progress(f"reading {title_of(options.file)}")
        predictions = read_file(options.file, options)
        progress("curve and its band" + (f", {options.resamples} replicates" if is_kde else ""))
        fields |= score_range(predictions) if is_kde else {}
        call = read_data(predictions, options, {"": find_estimator(options.estimator, fields)})
        curves = curves_of(call, options.seed)
        if picture:
            save_picture(picture, curve_panels(curves))
    page = curve_page(curves, call, predictions, options)
    return page.with_file("plot", options.plot) if picture else page


def curve_page(
    curves: Sequence[ReliabilityCurve], call: Call, predictions: Predictions, options: Namespace
) -> Page:
    """Make the page of curves at some scores."""
    title, first = title_of(options.file), curves[0]
    facts = {"rows": call.n, "setting": question(call.setting, predictions.pairs)}
    facts |= noted(predictions.note)
    if first.n_resamples:
        facts["intervals"] = f"percentile bootstrap, {first.n_resamples} replicates"
    elif first.bandwidth is None:
        facts["intervals"] = "quantiles of the posterior"
    values = {
        "title": title, "n": call.n, "note": predictions.note, "setting": call.setting,
        "n_resamples": first.n_resamples, "confidence_level": call.level,
        "curves": [values_of(curve, options.at) for curve in curves],
    }  # fmt: skip
    level = f"{100 * call.level:g} % CI"
    sections = [section_of(curve, options.at, level) for curve in curves]
    return Page(Document(title, "", [Section(facts=facts), *sections]), values)


def scores_at(curve: ReliabilityCurve, at: Sequence[float] | None) -> list[float]:
    """Return the given scores, or eleven evenly spaced over the range."""
    found: list[float] = np.linspace(*curve.score_range, 11).tolist() if at is None else [*at]
    return found


def section_of(curve: ReliabilityCurve, at: Sequence[float] | None, level: str) -> Section:
    """Describe a curve in a table, as a section of a page."""
    rows = []
    for score in scores_at(curve, at):
        x = point(curve, score)
        interval = None if x["low"] is None else ConfidenceInterval(x["low"], x["high"])
        cells = [Number(score, form=".4f"), Number(x["probability"], form=".4f"), interval]
        rows.append([*cells, Number(x["rows"], form=".0f"), "" if x["supported"] else "no scores"])
    bandwidth = "" if curve.bandwidth is None else f", bandwidth {curve.bandwidth:.4g}"
    title = f"{curve.estimator}, setting {curve.setting}: calibration error {curve.value:.5f}"
    head = ["score", "comes true", level, "rows near it", ""]
    return Section(title + bandwidth, table=Table(head, rows))


def values_of(curve: ReliabilityCurve, at: Sequence[float] | None) -> dict[str, Any]:
    """Return the points of a curve at some scores as plain values."""
    return {
        "setting": curve.setting, "value": curve.value, "estimator": curve.estimator,
        "bandwidth": curve.bandwidth,
        "points": [point(curve, score) for score in scores_at(curve, at)],
    }  # fmt: skip


def point(curve: ReliabilityCurve, score: float) -> dict[str, Any]:
    """Return the point of a curve at one score.

    Its values are None where there are no scores near it, or no band.
    """
    low, high = curve.score_range
    inside = low <= score <= high
    supported = inside and math.isfinite(curve(score))
    ends = curve.interval(score) if supported and curve.low is not None else (None, None)
    probability = float(curve(score)) if supported else None
    rows = float(np.interp(score, curve.score, curve.rows)) if inside else 0.0
    return dict(zip(KEYS, (score, probability, *ends, rows, supported), strict=True))
