"""How well a classifier is calibrated, on one page."""

from argparse import Namespace
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.binned.estimator import Binned
from fastece.cli.inputs import data_of, estimators_of, read_data, read_file
from fastece.cli.page import Page, ends_of, facts, level_of, question, table
from fastece.cli.terminal import Say, progress
from fastece.estimators import direct_values
from fastece.inputs.files import Predictions
from fastece.kde.estimator import KDE
from fastece.plot.files import check_picture, save_picture
from fastece.reliability.curve import curves_of
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of, reliability_diagram
from fastece.resampling.arguments import Call
from fastece.resampling.bootstrap import resample
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.rehearsal import compile_resampling
from fastece.resampling.results import BootstrapResult

DEMO = "handwritten digits, a small neural network"
# Of the curve beside the diagram: enough for a band to look at.
BAND_RESAMPLES = 500


def run_report(options: Namespace) -> Page:
    """``fastece report FILE``, and ``fastece demo``, which has no file: measure predictions with
    every estimator of the table, and draw them if that is asked."""
    path = options.plot and check_picture(options.plot)
    file = getattr(options, "file", None)
    title = DEMO if file is None else file
    with progress() as say:
        say(f"reading {title}")
        predictions = read_file(file, options)
        call = read_data(predictions, options, estimators_of(predictions, options.n_bins))
        rows = list(call.estimators.values())
        with compile_resampling(call.models[0], rows, labels=True):
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
        results: list[Any] = [*diagrams]
        if len(diagrams) == 1:
            count = min(call.n_resamples, BAND_RESAMPLES)
            say(f"band of the curve, {count} resamples")
            kde = {"": call.estimators["ece_kde"]}
            results += curves_of(replace(call, estimators=kde, n_resamples=count), options.seed)
        save_picture(path, title, results)
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
        say(f"bootstrap, {call.n_resamples} resamples")
        for name, result in resample(call, BootstrapResult, rng=seed).items():
            lines[name]["low"], lines[name]["high"] = result.confidence_interval
        say(f"calibration test, {call.n_resamples} resamples")
        only = replace(call, estimators={"": call.estimators["ece"]})
        p_value = float(calibration_results(only, seed).p_value)
    return list(lines.values()), results["ece"], p_value


def line_of(name: str, call: Call) -> tuple[dict[str, Any], list[Any]]:
    """The error of an estimator, how many bins hold rows, or the bandwidth; and the diagrams or the
    curves that these are of. Class by class, errors and bandwidths are means and bins are added."""
    estimator, problems = call.estimators[name], call.models[0]
    results: list[Any] = []
    n_bins = occupied = bandwidth = None
    if isinstance(estimator, Binned):
        results = diagrams_of(estimator, problems)
        counts = np.concatenate([diagram.count for diagram in results])
        n_bins, occupied = counts.size, int(np.count_nonzero(counts))
    elif isinstance(estimator, KDE):
        results = curves_of(replace(call, estimators={"": estimator}, n_resamples=0), None)
        bandwidth = float(np.mean([curve.bandwidth for curve in results]))
    values = np.array([result.value for result in results])
    values = values if results else direct_values(estimator, problems)
    return {
        "name": name, "low": None, "high": None, "value": float(call.average_of(values)),
        "estimator": str(estimator), "n_bins": n_bins, "occupied": occupied,
        "bandwidth": bandwidth,
    }, results  # fmt: skip


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
    head = ["error", "value", *level_of(values), "filled bins", "estimator"]
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
            f"  intervals: basic bootstrap, {count} resamples; chance makes an error larger, and "
            "they take that off",
            f"  p-value {values['p_value']:.4f}: the chance of so large an ece if every "
            "probability were right",
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
