"""How well a classifier is calibrated, on one page."""

import math
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np

from fastece.binned.estimator import Binned
from fastece.cli.inputs import data_of, read_demo, read_file, score_range
from fastece.cli.page import Page, as_list, ends_of, facts, level_of, question, setting_of, table
from fastece.cli.terminal import Say, progress
from fastece.estimators import ESTIMATORS, find_estimator
from fastece.inputs.files import Predictions
from fastece.kde.estimator import KDE
from fastece.plot.files import check_picture, save_picture
from fastece.problems.reading import read_problems
from fastece.reliability.curve import reliability_curve
from fastece.reliability.diagram import ReliabilityDiagram, reliability_diagram
from fastece.resampling.bootstrap import bootstrap
from fastece.resampling.calibration_test import calibration_test
from fastece.resampling.rehearsal import compile_resampling
from fastece.scores import ece

__all__ = ["estimators_of", "run_demo", "run_report"]

# Of the curve beside the diagram: enough for a band to look at.
BAND_RESAMPLES = 500


def run_report(options: Namespace) -> Page:
    """``fastece report FILE``."""
    return report_on(options.file, lambda: read_file(options.file, options), options)


def run_demo(options: Namespace) -> Page:
    """``fastece demo``."""
    return report_on("handwritten digits, a small neural network", read_demo, options)


def report_on(title: str, read: Callable[[], Predictions], options: Namespace) -> Page:
    """Measure predictions with every estimator of the table, and draw them if that is asked."""
    path = options.plot and check_picture(options.plot)
    with progress() as say:
        say(f"reading {title}")
        predictions = read()
        data, support = data_of(predictions, options), score_range(predictions)
        chance = {"confidence_level": options.confidence_level, "rng": options.seed}
        estimators = estimators_of(n_bins=options.n_bins, **support)
        problems = read_problems(**{k: v for k, v in data.items() if k != "n_jobs"})
        with compile_resampling(problems, list(estimators.values()), labels=True):
            diagrams = as_list(reliability_diagram(**data, estimator=estimators["ece"]))
            measures, p_value = measure(estimators, data, chance, options.resamples, say)
        values = {
            "title": title,
            **size_of(predictions, data),
            "setting": setting_of(diagrams),
            "n_resamples": options.resamples,
            "confidence_level": options.confidence_level,
            "p_value": p_value,
            "measures": measures,
            "diagrams": [diagram.to_dict() for diagram in diagrams],
        }
        page = Page(text_of(values, diagrams, predictions.pairs), values)
        if not path:
            return page
        results = diagrams
        if len(diagrams) == 1:
            count = min(options.resamples, BAND_RESAMPLES)
            say(f"band of the curve, {count} resamples")
            curve = reliability_curve(**data, **support, **chance, n_resamples=count)
            results = [*diagrams, curve]
        save_picture(path, title, results)
    return page.with_picture(options.plot)


def estimators_of(**fields: Any) -> dict[str, Any]:
    """Every estimator of the table, with those of the fields that it has, and "mce"."""
    estimators = {
        name: find_estimator(row, {k: v for k, v in fields.items() if hasattr(row, k)})
        for name, row in ESTIMATORS.items()
    }
    return {**estimators, "mce": find_estimator("ece", {**fields, "norm": math.inf})}


def size_of(predictions: Predictions, data: dict[str, Any]) -> dict[str, Any]:
    """Number of rows and of classes, and how often the predicted class is right."""
    pairs, shape = predictions.pairs, np.shape(predictions.y_prob)
    whole = {**data, "setting": "binary" if pairs else "confidence"}
    top = reliability_diagram(**whole, n_bins=1)
    return {
        "n": shape[0],
        "n_classes": predictions.classes if pairs else (*shape, 2)[1],
        "accuracy": float(top.frequency[0]),
        "mean_confidence": float(top.score[0]),
    }


def measure(
    estimators: dict[str, Any],
    data: dict[str, Any],
    chance: dict[str, Any],
    n_resamples: int,
    say: Say,
) -> tuple[list[dict[str, Any]], float | None]:
    """The lines of the table, and the p-value of "ece"; no intervals and none without resamples."""
    lines = []
    for name, estimator in estimators.items():
        say(f"measuring {name}")
        lines.append({"name": name, "low": None, "high": None, **value_of(estimator, data)})
    if not n_resamples:
        return lines, None
    say(f"bootstrap, {n_resamples} resamples")
    drawn = {**data, **chance, "n_resamples": n_resamples}
    results = bootstrap(**drawn, estimator=list(estimators.values()))
    for line, result in zip(lines, results.values(), strict=True):
        line["low"], line["high"] = result.confidence_interval
    say(f"calibration test, {n_resamples} resamples")
    return lines, float(calibration_test(**drawn, estimator=estimators["ece"]).p_value)


def value_of(estimator: Any, data: dict[str, Any]) -> dict[str, Any]:
    """The error, how many bins hold rows, or the bandwidth; class by class, errors and bandwidths
    are means and bins are added."""
    n_bins = occupied = bandwidth = None
    if isinstance(estimator, Binned):
        diagrams = as_list(reliability_diagram(**data, estimator=estimator))
        value = float(np.mean([diagram.value for diagram in diagrams]))
        counts = np.concatenate([diagram.count for diagram in diagrams])
        n_bins, occupied = counts.size, int(np.count_nonzero(counts))
    if isinstance(estimator, KDE):
        curves = as_list(reliability_curve(**data, estimator=estimator))
        value = ece(**data, estimator=estimator)
        bandwidth = float(np.mean([curve.bandwidth for curve in curves]))
    return {
        "value": value, "estimator": str(estimator), "n_bins": n_bins, "occupied": occupied,
        "bandwidth": bandwidth,
    }  # fmt: skip


def text_of(values: dict[str, Any], diagrams: list[ReliabilityDiagram], pairs: bool) -> str:
    """The page as text."""
    n_classes, count = values["n_classes"], values["n_resamples"]
    head = ["error", "value", *level_of(values), "filled bins", "estimator"]
    rows = [row_of(line, bool(count), len(diagrams) > 1) for line in values["measures"]]
    lines = [
        *facts(
            values["title"], rows=values["n"],
            classes="not known" if n_classes is None else n_classes,
            accuracy=f"{values['accuracy']:.4f}",
            mean_confidence=f"{values['mean_confidence']:.4f}",
            setting=question(values["setting"], pairs),
        ),
        "",
        *table(head, rows),
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


def row_of(line: dict[str, Any], has_interval: bool, is_mean: bool) -> list[str]:
    """One line of the table as text."""
    ends = [ends_of(line)] if has_interval else []
    bins = "-" if line["n_bins"] is None else f"{line['occupied']} of {line['n_bins']}"
    estimator = line["estimator"]
    if line["bandwidth"] is not None:
        estimator += f", {'mean ' if is_mean else ''}bandwidth {line['bandwidth']:.4g}"
    return [line["name"], f"{line['value']:.5f}", *ends, bins, estimator]
