"""The numbers of a report: errors and scores, with their intervals."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from fastece.checks.errors import InputError
from fastece.data.sample import Sample, increasing
from fastece.data.source import ROWS, Problems, Source
from fastece.document.numbers import format_p
from fastece.document.result import Record
from fastece.estimators.binned import Binned
from fastece.estimators.density import KDE
from fastece.estimators.table import ESTIMATORS, find_estimator, with_threads
from fastece.intervals.estimate import estimate_results, posterior_maker
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import diagrams_of
from fastece.report.words import ACCURACY_OF_SCORE, CLASS_VECTORS, SCORES
from fastece.resampling.arguments import Call
from fastece.resampling.bootstrap import bootstrap_results
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.labels import hits_and_misses

# The answer comes first, and its curve is beside the diagram; the test of calibration and the
# diagram are of the bins of the other.
LEAD, TEST = "ece_bayes", "ece"
ERRORS: dict[str, Any] = {
    **{name: ESTIMATORS[name] for name in (LEAD, TEST, "ece_a", "ece_c", "ece_ac", "ece_kde")},
    "mce": Binned(norm=math.inf),
}
Progress = Callable[[str], None]


def choose_errors(names: Iterable[Any], **fields: Any) -> dict[str, Any]:
    """Find estimators by name, `LEAD` and `TEST` first, with their own fields.

    Names are keys of the table, or "mce"; other objects are named by their text.
    """
    chosen = {str(name): ERRORS.get(name, name) if isinstance(name, str) else name
              for name in dict.fromkeys([LEAD, TEST, *names])}  # fmt: skip
    found = {}
    for name, row in chosen.items():
        estimator = find_estimator(row, {})
        own = {key: value for key, value in fields.items() if hasattr(estimator, key)}
        found[name] = find_estimator(estimator, own)
    return found


def scores_of(pairs: bool) -> dict[str, Any]:
    """List the scores by name.

    With hits and confidences alone there is no accuracy: it would be the accuracy of guessing
    whether a prediction is right.
    """
    return {name: ESTIMATORS[name] for name in SCORES if not pairs or name != "accuracy"}


# --- errors ---------------------------------------------------------------------------------


def measure_errors(call: Call, seed: int, progress: Progress) -> list[dict[str, Any]]:
    """Compute a line of numbers for each estimator of a call.

    Without resamples, and where rows are not kept, only posteriors have intervals.
    """
    lines, (source,) = {}, call.sources
    for name in call.estimators:
        progress(f"measuring {name}")
        lines[name] = measure_error(name, call)
    progress(f"intervals, {call.n_resamples} replicates of a calibrated model")
    has_rows = ROWS in source.has
    known = {
        name: row for name, row in call.estimators.items()
        if (has_rows or source.n_problems == 1)
        and (posterior_maker(row) is not None or (has_rows and call.n_resamples))
    }  # fmt: skip
    found = estimate_results(replace(call, estimators=known), rng=seed) if known else {}
    for name, answer in found.items():
        lines[name]["low"], lines[name]["high"] = answer.confidence_interval
        lines[name]["p_value"] = answer.p_value
    return list(lines.values())


def measure_error(name: str, call: Call) -> dict[str, Any]:
    """Compute the error of an estimator, or its mean over classes."""
    estimator = call.estimators[name]
    values, details = values_and_details(estimator, call)
    whole = ", class vectors" if call.uses_class_vectors(estimator) else ""
    return {
        "name": name, "value": float(call.average_of(np.asarray(values))), "low": None,
        "high": None, "p_value": None, "estimator": f"{estimator}{whole}", "n_bins": None,
        "occupied": None, "bandwidth": None, "rows_behind": None, "smoothing": None, **details,
    }  # fmt: skip


@singledispatch
def values_and_details(estimator: Any, call: Call) -> tuple[Any, dict[str, Any]]:
    """Return the value of each problem, and details of the estimator by name."""
    return estimator.point_values(call.sources[0]), {}


@values_and_details.register
def _(estimator: Binned, call: Call) -> tuple[Any, dict[str, Any]]:
    """Count the bins of all classes, and the bins that hold rows."""
    diagrams = diagrams_of(estimator, call.sources[0])
    count = np.concatenate([diagram.count for diagram in diagrams])
    bins = {"n_bins": count.size, "occupied": int(np.count_nonzero(count))}
    return [diagram.value for diagram in diagrams], bins


@values_and_details.register
def _(estimator: KDE, call: Call) -> tuple[Any, dict[str, Any]]:
    """Return the mean bandwidth, and the numbers behind a caution."""
    (source,) = call.sources
    curves = curves_of(replace(call.only(estimator), n_resamples=0), None)
    details = {"bandwidth": float(np.mean([curve.bandwidth for curve in curves]))}
    if ROWS in source.has:
        each = [error_of_smoothing(estimator, sample) for sample in source.samples()]
        details["smoothing"] = float(np.mean(each))
        details["rows_behind"] = float(np.median([rows_behind(curve) for curve in curves]))
    return [curve.value for curve in curves], details


def rows_behind(curve: ReliabilityCurve) -> float:
    """Count about how many rows, or fewer, half of the error of a curve rests on.

    None where no row is near and the curve does not exist.
    """
    low, high = curve.score_range
    error = np.nan_to_num(np.abs(curve.lce) * curve.density) * (high - low) / curve.score.size
    order, unseen = np.argsort(curve.rows), max(curve.value - float(error.sum()), 0.0)
    below = unseen + np.cumsum(error[order])
    half = below[-1] / 2
    return 0.0 if unseen > half else float(curve.rows[order][np.searchsorted(below, half)])


def error_of_smoothing(kde: KDE, sample: Sample) -> float:
    """Return the error that a density would show for a calibrated model."""
    twice = hits_and_misses(sample)
    order = increasing(twice.s)
    expected = np.where(twice.y == 1, twice.s, 1 - twice.s)[order]
    return kde.evaluate(kde.prepare(twice.where(order), sample.n), expected)


# --- scores ---------------------------------------------------------------------------------


def measure_scores(call: Call, seed: int) -> list[dict[str, Any]]:
    """Compute a line of numbers for each score of a call that its source allows.

    It has the interval of a bootstrap if there are resamples and rows.
    """
    (source,) = call.sources
    call = replace(call, estimators={k: x for k, x in call.estimators.items() if has(source, x)})
    if not call.n_resamples or ROWS not in source.has:
        values = {name: call.values(name)[0] for name in call.estimators}
        ends = dict.fromkeys(values, (None, None))
    else:
        results = bootstrap_results(call, method="percentile", rng=seed)
        values = {name: result.value for name, result in results.items()}
        ends = {name: tuple(result.confidence_interval) for name, result in results.items()}
    uses_class_vectors = source.setting.is_top or source.setting.name == "binary"
    meaning = SCORES if uses_class_vectors else {**SCORES, "accuracy": ACCURACY_OF_SCORE}
    return [
        {"name": name, "value": value, "low": ends[name][0], "high": ends[name][1],
         "meaning": meaning[name]}
        for name, value in values.items()
    ]  # fmt: skip


def has(source: Source, estimator: Any) -> bool:
    """Return whether a source has the data that an estimator needs."""
    try:
        source.needs_of(estimator)
    except InputError:
        return False
    return True


def mean_of_top(top: Source, pairs: bool) -> tuple[float, float]:
    """Return how often the most probable class is right, and its mean probability.

    Scores of label 1 up to one half are predictions of label 0.
    """
    if isinstance(top, Problems) and (pairs or top.setting.is_top):
        return tuple(float(np.average(x, weights=top.v)) for x in (top.label, top.prob))  # type: ignore[return-value]
    (diagram,) = diagrams_of(Binned(2, score_range="unit"), top)
    share = diagram.count / diagram.count.sum()
    hits, score = np.nan_to_num(diagram.frequency), np.nan_to_num(diagram.score)
    if diagram.setting.startswith("binary") and not pairs:
        hits[0], score[0] = 1 - hits[0], 1 - score[0]
    return float(share @ hits), float(share @ score)


# --- class vectors --------------------------------------------------------------------------

# Estimators that look at all pairs of rows, in seconds: of at most so many rows, and of so many
# classes that vectors of one sample lie near each other.
LEAST_CLASSES, MOST_CLASSES, MOST_ROWS = 3, 20, 20_000
# Pairs that all replicates together look at, about a second; but of 20 000 rows the bandwidth alone
# takes 4 s, and the fewest replicates of a test 10 s.
MOST_PAIRS, LEAST_REPLICATES = 10**9, 32


@dataclass(frozen=True, eq=False)
class ClassVectors(Record):
    """Errors of whole class vectors.

    Attributes
    ----------
    lines : list of dict
        An error each: name, value, the mean of a calibrated model, p_value, meaning. Without
        resamples there are neither a mean nor a p-value; empty where there is a note.
    n_resamples : int
        Replicates of each.
    note : str
        The reason for leaving them out, if any.
    """

    lines: list[dict[str, Any]]
    n_resamples: int
    note: str

    def evidence(self, level: float) -> list[str]:
        """Describe the evidence of miscalibration, if the stronger test rejects."""
        p_values = [line["p_value"] for line in self.lines if line["name"] == "skce"]
        return [f"class vectors are miscalibrated (skce, p = {format_p(p)})"
                for p in p_values if p is not None and p < 1 - level]  # fmt: skip


def measure_vectors(
    call: Call, read: Callable[..., Problems], seed: int, progress: Progress
) -> ClassVectors | None:
    """Compute errors of class vectors, if a call is about more than two classes."""
    (problems,) = call.models
    asks = problems.setting.is_top or problems.setting.per_class
    if not asks or problems.n_classes < LEAST_CLASSES:
        return None
    limits = {"classes": (problems.n_classes, MOST_CLASSES), "rows": (call.n, MOST_ROWS)}
    for name, (count, most) in limits.items():
        if count > most:
            other = 'fastece.calibration_test(y, p, estimator="skce") takes them'
            return ClassVectors([], 0, f"Left out: {count} {name}, of at most {most}; {other}.")
    if call.n < 2:
        return ClassVectors([], 0, "Left out: one row has no pairs.")
    progress("class vectors")
    # As many as a p-value that rejects needs.
    least = max(LEAST_REPLICATES, math.ceil(1 / (1 - call.level)))
    count = min(call.n_resamples, max(MOST_PAIRS // call.n**2, least))
    vectors = read(setting="auto", vectors=True)
    # The bandwidth that the likelihood chooses takes the longest.
    kde: Any = ESTIMATORS["canonical"]
    plan = with_threads(call.jobs, lambda run: kde.plan(vectors.sample(0), run))
    rows = {"canonical": replace(kde, bandwidth=plan.bandwidth), "skce": ESTIMATORS["skce"]}
    whole = replace(call, sources=[vectors], estimators=rows, n_resamples=count, average="macro")
    results = calibration_results(whole, seed) if count else {}
    lines = []
    for name, row in rows.items():
        found = results.get(name)
        value = found.value if found else float(row.point_values(vectors)[0])
        mean = float(np.mean(found.null_distribution)) if found else None
        p_value = found.p_value if found else None
        lines.append({
            "name": name, "value": value, "if_calibrated": mean, "p_value": p_value,
            "meaning": CLASS_VECTORS[name],
        })  # fmt: skip
    return ClassVectors(lines, count, "")
