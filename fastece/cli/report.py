"""How well a classifier is calibrated, on one page."""

from argparse import Namespace
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.answer.estimate import estimate_results
from fastece.binned.estimator import Binned
from fastece.cli.inputs import LEAD, data_of, estimators_of, read_data, read_file
from fastece.cli.page import Page, ends_of, facts, level_of, question, table
from fastece.cli.pictures import report_panels
from fastece.cli.terminal import Say, progress
from fastece.estimators import direct_values
from fastece.inputs.files import Predictions
from fastece.kde.estimator import KDE
from fastece.plot.files import check_picture, save_picture
from fastece.protocol import Sample, increasing
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of, reliability_diagram
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import hits_and_misses
from fastece.resampling.rehearsal import compile_resampling

DEMO = "handwritten digits, a small neural network"
# A density of whose error half rests on fewer rows says nothing, nor does one of which more than
# this part would be there if every probability were right: half of it where scores are spread and
# calibrated, five sixths and more where they are heaped.
FEWEST_ROWS, MOST_SMOOTHING = 20, 2 / 3


def run_report(options: Namespace) -> Page:
    """``fastece report FILE``, and ``fastece demo``, which has no file: measure predictions with
    every estimator of the table, and draw them if that is asked."""
    path = options.plot and check_picture(options.plot)
    file = getattr(options, "file", None)
    title = DEMO if file is None else file
    with progress() as say:
        say(f"reading {title}")
        predictions = read_file(file, options)
        found = estimators_of(predictions, options.n_bins)
        call = read_data(predictions, options, {LEAD: found.pop(LEAD), **found})
        with compile_resampling(call.models[0], list(found.values()), rows=False, labels=True):
            measures, diagrams, p_value = measure(call, options.seed, say)
        values = {
            "title": title,
            **size_of(predictions, options),
            "setting": call.setting,
            "n_resamples": call.n_resamples,
            "confidence_level": call.level,
            "p_value": p_value,
            "measures": measures,
            "diagrams": [diagram.to_dict() for diagram in diagrams],
        }
        page = Page(text_of(values, diagrams, predictions.pairs), values)
        if not path:
            return page
        save_picture(path, report_panels(call, options.seed))
    return page.with_picture(options.plot)


def measure(
    call: Call, seed: int, say: Say
) -> tuple[list[dict[str, Any]], list[ReliabilityDiagram], float | None]:
    """The lines of the table, and of "ece" the diagrams and the p-value; no intervals and no
    p-value without resamples."""
    lines, results = {}, {}
    for name in call.estimators:
        say(f"measuring {name}")
        lines[name], results[name] = line_of(name, call)
    p_value = None
    if call.n_resamples:
        say(f"intervals, {call.n_resamples} replicates of a calibrated model")
        answers = estimate_results(call, rng=seed)
        for name, answer in answers.items():
            lines[name]["low"], lines[name]["high"] = answer.confidence_interval
        p_value = float(answers["ece"].p_value)
    return list(lines.values()), results["ece"], p_value


def line_of(name: str, call: Call) -> tuple[dict[str, Any], list[Any]]:
    """The error of an estimator, how many bins hold rows, or the bandwidth; and the diagrams or the
    curves that these are of. Class by class, errors and bandwidths are means and bins are added."""
    estimator, problems = call.estimators[name], call.models[0]
    results: list[Any] = []
    n_bins = occupied = bandwidth = rows = smoothing = None
    if isinstance(estimator, Binned):
        results = diagrams_of(estimator, problems)
        counts = np.concatenate([diagram.count for diagram in results])
        n_bins, occupied = counts.size, int(np.count_nonzero(counts))
    elif isinstance(estimator, KDE):
        results = curves_of(replace(call, estimators={"": estimator}, n_resamples=0), None)
        bandwidth = float(np.mean([curve.bandwidth for curve in results]))
        rows = float(np.median([rows_behind(curve) for curve in results]))
        smoothing = float(np.mean([error_of_smoothing(estimator, x) for x in problems.samples()]))
    values = np.array([result.value for result in results])
    values = values if results else direct_values(estimator, problems)
    return {
        "name": name, "low": None, "high": None, "value": float(call.average_of(values)),
        "estimator": str(estimator), "n_bins": n_bins, "occupied": occupied,
        "bandwidth": bandwidth, "rows_behind": rows, "smoothing": smoothing,
    }, results  # fmt: skip


def rows_behind(curve: ReliabilityCurve) -> float:
    """On about how many rows, or fewer, the curve rests where half of its error comes from: none
    where no row is near, so that there is no curve."""
    low, high = curve.score_range
    error = np.nan_to_num(np.abs(curve.lce) * curve.density) * (high - low) / curve.score.size
    order, unseen = np.argsort(curve.rows), max(curve.value - float(error.sum()), 0.0)
    below = unseen + np.cumsum(error[order])
    half = below[-1] / 2
    return 0.0 if unseen > half else float(curve.rows[order][np.searchsorted(below, half)])


def error_of_smoothing(kde: KDE, sample: Sample) -> float:
    """The error that a density would show if every score came true as often as it says."""
    twice = hits_and_misses(sample)
    order = increasing(twice.s)
    expected = np.where(twice.y == 1, twice.s, 1 - twice.s)[order]
    return kde.evaluate(kde.prepare(twice.where(order), sample.n), expected)


def notes_of(values: dict[str, Any]) -> list[str]:
    """Which lines of the table are not to be read, and why."""
    notes = []
    for line in values["measures"]:
        if line["rows_behind"] is None:
            continue
        why = ""
        if values["n"] < FEWEST_ROWS:
            why = f"there are fewer than {FEWEST_ROWS} rows"
        elif line["rows_behind"] < FEWEST_ROWS:
            why = "few rows carry it, as where scores are heaped"
        elif line["smoothing"] > MOST_SMOOTHING * line["value"]:
            why = f"smoothing alone makes {line['smoothing']:.5f}, as where scores are heaped"
        notes += [f"  {line['name']}: {why}: do not read this one"] * bool(why)
    return notes


def size_of(predictions: Predictions, options: Namespace) -> dict[str, Any]:
    """Number of rows and of classes, and how often the predicted class is right."""
    pairs, shape = predictions.pairs, np.shape(predictions.y_prob)
    data = data_of(predictions, options) | {"setting": "binary" if pairs else "confidence"}
    top = reliability_diagram(**data, n_bins=1)
    return {
        "n": shape[0],
        "n_classes": predictions.classes if pairs else (*shape, 2)[1],
        "accuracy": float(top.frequency[0]),
        "mean_confidence": float(top.score[0]),
    }


def text_of(values: dict[str, Any], diagrams: list[ReliabilityDiagram], pairs: bool) -> str:
    """The page as text."""
    n_classes, count = values["n_classes"], values["n_resamples"]
    head = ["error", "value", *level_of(values), "bins used", "estimator"]
    lines = [
        *facts(
            values["title"], rows=values["n"],
            classes="not known" if n_classes is None else n_classes,
            accuracy=f"{values['accuracy']:.4f}",
            mean_confidence=f"{values['mean_confidence']:.4f}",
            setting=question(values["setting"], pairs),
        ),
        "",
        *table(head, [row_of(line, len(diagrams) > 1) for line in values["measures"]]),
    ]  # fmt: skip
    if count:
        lines += [
            "",
            f"  intervals: {LEAD} by its posterior, others by test inversion; noise may lift a "
            "value above its own",
            f"  p-value {values['p_value']:.4f}: the chance of so large an ece if every "
            "probability were right",
        ]
    return "\n".join([*lines, *notes_of(values), *(f"\n{diagram}" for diagram in diagrams)])


def row_of(line: dict[str, Any], is_mean: bool) -> list[str]:
    """One line of the table as text."""
    ends = [] if line["low"] is None else [ends_of(line)]
    bins = "-" if line["n_bins"] is None else f"{line['occupied']} of {line['n_bins']}"
    estimator = line["estimator"]
    if line["bandwidth"] is not None:
        estimator += f", {'mean ' if is_mean else ''}bandwidth {line['bandwidth']:.4g}"
    return [line["name"], f"{line['value']:.5f}", *ends, bins, estimator]
