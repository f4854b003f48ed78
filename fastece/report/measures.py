"""The lines of a report: errors and scores, with their intervals."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.data.sample import Sample, increasing
from fastece.estimators.binned.estimator import Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.table import ESTIMATORS, direct_values, find_estimator
from fastece.intervals.estimate import estimate_results
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import diagrams_of
from fastece.resampling.arguments import Call
from fastece.resampling.bootstrap import bootstrap_results
from fastece.resampling.labels import hits_and_misses

# The answer comes first, and its curve is beside the diagram; the test of calibration and the
# diagram are of the bins of the other.
LEAD, TEST = "ece_bayes", "ece"
ERRORS: dict[str, Any] = {
    **{name: ESTIMATORS[name] for name in (LEAD, TEST, "ece_a", "ece_c", "ece_ac", "ece_kde")},
    "mce": Binned(norm=math.inf),
}
SCORES = {
    "brier_score": "mean squared distance of probabilities from what came true",
    "log_loss": "mean -log of the probability of what came true",
    "accuracy": "how often the most probable class is right",
    "sharpness": "variance of the score: how much the model tells apart",
    "entropy": "mean entropy of the probabilities: how much they leave open",
}
# A density of whose error half rests on fewer rows says nothing, nor does one of which more than
# this part would be there if every probability were right: half of it where scores are spread and
# calibrated, five sixths and more where they are heaped.
FEWEST_ROWS, MOST_SMOOTHING = 20, 2 / 3
Say = Callable[[str], None]


def choose_errors(names: Iterable[Any], **fields: Any) -> dict[str, Any]:
    """Estimators by name, those of `LEAD` and `TEST` first, with the fields that each of them has:
    rows of the table, "mce", and objects by what they print."""
    chosen = {str(name): ERRORS.get(name, name) if isinstance(name, str) else name
              for name in dict.fromkeys([LEAD, TEST, *names])}  # fmt: skip
    found = {}
    for name, row in chosen.items():
        estimator = find_estimator(row, {})
        own = {key: value for key, value in fields.items() if hasattr(estimator, key)}
        found[name] = find_estimator(estimator, own)
    return found


def scores_of(pairs: bool) -> dict[str, Any]:
    """The scores by name; of hits and confidences alone the accuracy would be that of the guess
    whether a prediction is right."""
    return {name: ESTIMATORS[name] for name in SCORES if not pairs or name != "accuracy"}


def measure_errors(call: Call, seed: int, say: Say) -> list[dict[str, Any]]:
    """A line for each estimator of a call; without resamples only posteriors have intervals."""
    lines = {}
    for name in call.estimators:
        say(f"measuring {name}")
        lines[name] = line_of(name, call)
    say(f"intervals, {call.n_resamples} replicates of a calibrated model")
    known = {
        name: row for name, row in call.estimators.items()
        if call.n_resamples or hasattr(row, "posterior")
    }  # fmt: skip
    for name, answer in estimate_results(replace(call, estimators=known), rng=seed).items():
        lines[name]["low"], lines[name]["high"] = answer.confidence_interval
        lines[name]["p_value"] = answer.p_value
    return list(lines.values())


def line_of(name: str, call: Call) -> dict[str, Any]:
    """The error of an estimator, how many bins hold rows, or the bandwidth. Class by class, errors
    and bandwidths are means and bins are added."""
    estimator, problems = call.estimators[name], call.models[0]
    results: list[Any] = []
    n_bins = occupied = bandwidth = rows = smoothing = None
    if isinstance(estimator, Binned):
        results = diagrams_of(estimator, problems)
        count = np.concatenate([diagram.count for diagram in results])
        n_bins, occupied = count.size, int(np.count_nonzero(count))
    elif isinstance(estimator, KDE):
        results = curves_of(replace(call.only(estimator), n_resamples=0), None)
        bandwidth = float(np.mean([curve.bandwidth for curve in results]))
        rows = float(np.median([rows_behind(curve) for curve in results]))
        smoothing = float(np.mean([error_of_smoothing(estimator, x) for x in problems.samples()]))
    whole = ", class vectors" if call.is_whole(estimator) else ""
    values = np.array([result.value for result in results])
    values = values if results else direct_values(estimator, problems)
    return {
        "name": name, "value": float(call.average_of(values)), "low": None, "high": None,
        "p_value": None, "estimator": f"{estimator}{whole}", "n_bins": n_bins, "occupied": occupied,
        "bandwidth": bandwidth, "rows_behind": rows, "smoothing": smoothing,
    }  # fmt: skip


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


def caution_of(line: dict[str, Any], n: int) -> str:
    """Why a line is not to be read, if it is not."""
    if line["rows_behind"] is None:
        return ""
    if n < FEWEST_ROWS:
        return f"there are fewer than {FEWEST_ROWS} rows"
    if line["rows_behind"] < FEWEST_ROWS:
        return "few rows carry it, as where scores are heaped"
    if line["smoothing"] > MOST_SMOOTHING * line["value"]:
        return f"smoothing alone makes {line['smoothing']:.2g}, as where scores are heaped"
    return ""


def measure_scores(call: Call, seed: int) -> list[dict[str, Any]]:
    """A line for each score of a call, with the interval of a bootstrap if there are resamples."""
    if not call.n_resamples:
        values = {name: call.values(name)[0] for name in call.estimators}
        ends = dict.fromkeys(values, (None, None))
    else:
        results = bootstrap_results(call, method="percentile", rng=seed)
        values = {name: result.value for name, result in results.items()}
        ends = {name: tuple(result.confidence_interval) for name, result in results.items()}
    (problems,) = call.models
    is_whole = problems.setting.is_top or problems.setting.name == "binary"
    meaning = SCORES if is_whole else {**SCORES, "accuracy": "how often a score above 1/2 is right"}
    return [
        {"name": name, "value": value, "low": ends[name][0], "high": ends[name][1],
         "meaning": meaning[name]}
        for name, value in values.items()
    ]  # fmt: skip
