"""How often scores come true, as a table."""

import math
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastece.cli.inputs import read_data, read_file, score_range
from fastece.cli.page import Page, ends_of, facts, level_of, question, table
from fastece.cli.pictures import curve_panels
from fastece.cli.terminal import progress
from fastece.estimators import find_estimator
from fastece.plot.files import check_picture, save_picture
from fastece.reliability.curve import ReliabilityCurve, curves_of


def run_curve(options: Namespace) -> Page:
    """``fastece curve FILE``."""
    path = options.plot and check_picture(options.plot)
    is_kde = options.estimator == "ece_kde"
    usual = {"bandwidth": "silverman", "kernel": "gaussian"}
    fields = {name: x for name in usual if (x := getattr(options, name)) != usual[name]}
    with progress() as say:
        say(f"reading {options.file}")
        predictions = read_file(options.file, options)
        say("curve and its band" + (f", {options.resamples} resamples" if is_kde else ""))
        fields |= score_range(predictions) if is_kde else {}
        call = read_data(predictions, options, {"": find_estimator(options.estimator, fields)})
        curves = curves_of(call, options.seed)
        if path:
            save_picture(path, curve_panels(curves))
    values = {
        "title": options.file,
        "n": call.n,
        "setting": call.setting,
        "n_resamples": curves[0].n_resamples,
        "confidence_level": call.level,
        "curves": [values_of(curve, options.at) for curve in curves],
    }
    page = Page(text_of(values, predictions.pairs), values)
    return page.with_picture(options.plot) if path else page


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
    """A curve at one score. Where nothing can be said, the probability is the score itself; of a
    Bayesian curve None, as are its ends."""
    low, high = curve.score_range
    inside = low <= score <= high
    ends = (None, None) if curve.low is None else curve.interval(score) if inside else (0.0, 1.0)
    probability = float(curve(score)) if inside else score
    found: dict[str, Any] = {"probability": probability, "low": ends[0], "high": ends[1]}
    if curve.bandwidth is None and not (inside and math.isfinite(probability)):
        found = dict.fromkeys(found, None)
    return {
        "score": score,
        **found,
        "rows": float(np.interp(score, curve.score, curve.rows)) if inside else 0.0,
        "supported": inside and bool(np.interp(score, curve.score, curve.supported) == 1),
    }


def text_of(values: dict[str, Any], pairs: bool) -> str:
    """The page as text."""
    is_posterior = values["curves"][0]["bandwidth"] is None
    known = {"rows": values["n"], "setting": question(values["setting"], pairs)}
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
            *table(head, [row_of(point) for point in curve["points"]]),
        ]
    return "\n".join(lines)


def row_of(point: dict[str, Any]) -> list[str]:
    """One line of the table as text."""
    if point["probability"] is None:
        cells, note = ["-", "-"], "no scores"
    else:
        cells = [f"{point['probability']:.4f}"]
        if point["low"] is not None:
            cells.append(ends_of(point, ".4f"))
        note = "" if point["supported"] else "too few scores"
        cells = ["-"] * len(cells) if note else cells
    return [f"{point['score']:.4f}", *cells, f"{point['rows']:.0f}", note]
