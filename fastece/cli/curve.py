"""How often scores come true, as a table."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastece.cli.inputs import read_data, read_file, score_range
from fastece.cli.page import Page, ends_of, facts, level_of, question, table
from fastece.cli.terminal import progress
from fastece.estimators import find_estimator
from fastece.plot.files import check_picture, save_picture
from fastece.reliability.curve import ReliabilityCurve, curves_of


def run_curve(options: Namespace) -> Page:
    """``fastece curve FILE``."""
    path = options.plot and check_picture(options.plot)
    with progress() as say:
        say(f"reading {options.file}")
        predictions = read_file(options.file, options)
        say(f"curve and its band, {options.resamples} resamples")
        fields = {"bandwidth": options.bandwidth, "kernel": options.kernel}
        kde = find_estimator("ece_kde", {**fields, **score_range(predictions)})
        call = read_data(predictions, options, {"": kde})
        curves = curves_of(call, options.seed)
        if path:
            save_picture(path, options.file, curves)
    values = {
        "title": options.file,
        "n": call.n,
        "setting": call.setting,
        "n_resamples": call.n_resamples,
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
    """A curve at one score; where nothing can be said, the probability is the score itself."""
    low, high = curve.score_range
    inside = low <= score <= high
    ends = (None, None) if curve.low is None else curve.interval(score) if inside else (0.0, 1.0)
    return {
        "score": score,
        "probability": curve(score) if inside else score,
        "low": ends[0],
        "high": ends[1],
        "rows": float(np.interp(score, curve.score, curve.rows)) if inside else 0.0,
        "supported": inside and bool(np.interp(score, curve.score, curve.supported) == 1),
    }


def text_of(values: dict[str, Any], pairs: bool) -> str:
    """The page as text."""
    known = {"rows": values["n"], "setting": question(values["setting"], pairs)}
    if values["n_resamples"]:
        known["intervals"] = f"percentile bootstrap, {values['n_resamples']} resamples"
    lines = facts(values["title"], **known)
    head = ["score", "comes true", *level_of(values), "rows near it", ""]
    for curve in values["curves"]:
        lines += [
            "",
            f"{curve['estimator']}, setting {curve['setting']}: calibration error "
            f"{curve['value']:.5f}, bandwidth {curve['bandwidth']:.4g}",
            *table(head, [row_of(point) for point in curve["points"]]),
        ]
    return "\n".join(lines)


def row_of(point: dict[str, Any]) -> list[str]:
    """One line of the table as text."""
    cells = [f"{point['probability']:.4f}"]
    if point["low"] is not None:
        cells.append(ends_of(point, ".4f"))
    note = "" if point["supported"] else "too few scores"
    cells = ["-"] * len(cells) if note else cells
    return [f"{point['score']:.4f}", *cells, f"{point['rows']:.0f}", note]
