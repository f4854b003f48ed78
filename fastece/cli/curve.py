"""How often scores come true, as a table."""

import math
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastece.cli.inputs import read_data, read_file, score_range, title_of
from fastece.cli.page import Page, ends_of, facts, level_of, noted, table
from fastece.cli.targets import check_picture
from fastece.cli.terminal import progress
from fastece.estimators.table import find_estimator
from fastece.plot.pages import save_picture
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.report.pictures import curve_panels
from fastece.report.words import question


def run_curve(options: Namespace) -> Page:
    """``fastece curve FILE``."""
    path = options.plot and check_picture(options.plot)
    is_kde = options.estimator == "ece_kde"
    usual = {"bandwidth": "silverman", "kernel": "gaussian"}
    fields = {name: x for name in usual if (x := getattr(options, name)) != usual[name]}
    if fields and not is_kde:
        raise ValueError(f"--{min(fields)}: goes with --estimator ece_kde")
    with progress() as say:
        title = title_of(options.file)
        say(f"reading {title}")
        predictions = read_file(options.file, options)
        say("curve and its band" + (f", {options.resamples} resamples" if is_kde else ""))
        fields |= score_range(predictions) if is_kde else {}
        call = read_data(predictions, options, {"": find_estimator(options.estimator, fields)})
        curves = curves_of(call, options.seed)
        if path:
            save_picture(path, curve_panels(curves))
    values = {
        "title": title,
        "n": call.n,
        "note": predictions.note,
        "setting": call.setting,
        "n_resamples": curves[0].n_resamples,
        "confidence_level": call.level,
        "curves": [values_of(curve, options.at) for curve in curves],
    }
    page = Page(text_of(values, predictions.pairs), values)
    return page.with_file("plot", options.plot) if path else page


def values_of(curve: ReliabilityCurve, at: Sequence[float] | None) -> dict[str, Any]:
    """A curve at some scores, or at eleven from one end of its range to the other."""
    low, high = curve.score_range
    scores = np.linspace(low, high, 11) if at is None else np.asarray(at, np.float64)
    return {
        "setting": curve.setting, "value": curve.value, "estimator": curve.estimator,
        "bandwidth": curve.bandwidth,
        "points": [point(curve, float(score)) for score in scores],
    }  # fmt: skip


def point(curve: ReliabilityCurve, score: float) -> dict[str, Any]:
    """A curve at one score; None where there are no scores that could tell, or no resamples."""
    low, high = curve.score_range
    inside = low <= score <= high
    supported = inside and math.isfinite(curve(score))
    ends = curve.interval(score) if supported and curve.low is not None else (None, None)
    return {
        "score": score,
        "probability": float(curve(score)) if supported else None,
        "low": ends[0],
        "high": ends[1],
        "rows": float(np.interp(score, curve.score, curve.rows)) if inside else 0.0,
        "supported": supported,
    }


def text_of(values: dict[str, Any], pairs: bool) -> str:
    """The page as text."""
    is_posterior = values["curves"][0]["bandwidth"] is None
    known = {"rows": values["n"], "setting": question(values["setting"], pairs)}
    known |= noted(values)
    if values["n_resamples"]:
        known["intervals"] = f"percentile bootstrap, {values['n_resamples']} resamples"
    elif is_posterior:
        known["intervals"] = "quantiles of the posterior"
    lines = facts(values["title"], **known)
    wide = (
        [f"{100 * values['confidence_level']:g} % interval"] if is_posterior else level_of(values)
    )
    head = ["score", "comes true", *wide, "rows near it", ""]
    for curve in values["curves"]:
        bandwidth = curve["bandwidth"]
        lines += [
            "",
            f"{curve['estimator']}, setting {curve['setting']}: calibration error "
            f"{curve['value']:.5f}" + (f", bandwidth {bandwidth:.4g}" if bandwidth else ""),
            *table(head, [row_of(point, len(wide)) for point in curve["points"]]),
        ]
    return "\n".join(lines)


def row_of(point: dict[str, Any], ends: int) -> list[str]:
    """One line of the table as text, with a column of `ends` or without one."""
    cells, note = ["-"] * (1 + ends), "no scores"
    if point["supported"]:
        cells, note = [f"{point['probability']:.4f}"], ""
        cells += [ends_of(point, ".4f")] if ends else []
    return [f"{point['score']:.4f}", *cells, f"{point['rows']:.0f}", note]
