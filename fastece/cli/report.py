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
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of, reliability_diagram
from fastece.resampling.arguments import Call
from fastece.resampling.rehearsal import compile_resampling

DEMO = "handwritten digits, a small neural network"
# A density of whose error half rests on fewer rows says nothing.
FEWEST_ROWS = 20


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
    n_bins = occupied = bandwidth = rows = None
    if isinstance(estimator, Binned):
        results = diagrams_of(estimator, problems)
        counts = np.concatenate([diagram.count for diagram in results])
        n_bins, occupied = counts.size, int(np.count_nonzero(counts))
    elif isinstance(estimator, KDE):
        results = curves_of(replace(call, estimators={"": estimator}, n_resamples=0), None)
        bandwidth = float(np.mean([curve.bandwidth for curve in results]))
        rows = float(np.median([rows_behind(curve) for curve in results]))
    values = np.array([result.value for result in results])
    values = values if results else direct_values(estimator, problems)
    return {
        "name": name, "low": None, "high": None, "value": float(call.average_of(values)),
        "estimator": str(estimator), "n_bins": n_bins, "occupied": occupied,
        "bandwidth": bandwidth, "rows_behind": rows,
    }, results  # fmt: skip


def rows_behind(curve: ReliabilityCurve) -> float:
    """On about how many rows, or fewer, the curve rests where half of its error comes from."""
    error, order = np.abs(curve.lce) * curve.density, np.argsort(curve.rows)
    below = np.cumsum(error[order])
    return float(curve.rows[order][np.searchsorted(below, below[-1] / 2)])


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
    lines += [
        f"  {line['name']}: few rows carry it, as where scores are heaped: do not read this one"
        for line in values["measures"]
        if line["rows_behind"] is not None and line["rows_behind"] < FEWEST_ROWS
    ]
    return "\n".join([*lines, *(f"\n{diagram}" for diagram in diagrams)])


def row_of(line: dict[str, Any], is_mean: bool) -> list[str]:
    """One line of the table as text."""
    ends = [] if line["low"] is None else [ends_of(line)]
    bins = "-" if line["n_bins"] is None else f"{line['occupied']} of {line['n_bins']}"
    estimator = line["estimator"]
    if line["bandwidth"] is not None:
        estimator += f", {'mean ' if is_mean else ''}bandwidth {line['bandwidth']:.4g}"
    return [line["name"], f"{line['value']:.5f}", *ends, bins, estimator]
