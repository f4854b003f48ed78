"""The call that builds a report, its numbers part by part, and its pictures."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, singledispatch
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from fastece.data.errors import InputError
from fastece.data.reading import read_problems
from fastece.data.sources import ROWS, Problems, Source, need_rows
from fastece.decisions.promises import Promise
from fastece.decisions.threshold import Threshold, threshold_of
from fastece.display.numbers import ConfidenceInterval
from fastece.display.pages import Panel
from fastece.estimators.binned import Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.density.plan import ROWS_AT_ONCE
from fastece.estimators.losses import infinite_rows, mean_of
from fastece.estimators.table import ESTIMATORS, find_estimator, with_threads
from fastece.inference import slices
from fastece.inference.direction import direction_of
from fastece.inference.estimate import estimate_results, posterior_maker
from fastece.inference.validation import (
    Law,
    Validation,
    check_event,
    check_thresholds,
    validation_of,
    wilson,
)
from fastece.reliability.cumulative import cumulative_of
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.decomposition import ScoreDecomposition, isotonic_parts
from fastece.reliability.diagram import diagrams_of
from fastece.report import words
from fastece.report.result import ClassVectors, Report
from fastece.report.words import ACCURACY_OF_SCORE, CLASS_VECTORS, NO_SIGN, SCORES, UNCLEAR
from fastece.resampling.adaptive import AdaptiveTest
from fastece.resampling.arguments import add_groups, read_call, require_calibration_error
from fastece.resampling.calibration_test import calibration_results, has_cells
from fastece.resampling.call import Call, average_classes, compute_values
from fastece.resampling.draws import new_key

# The answer comes first, and its curve is beside the diagram, which has the bins of the other.
LEAD, TEST = "ece_bayes", "ece"
ERRORS: dict[str, Any] = {
    **{name: ESTIMATORS[name] for name in (LEAD, TEST, "ece_a", "ece_c", "ece_ac", "ece_kde")},
    "mce": Binned(norm=math.inf),
}
Progress = Callable[[str], None]
Row = Callable[[int], str]


def choose_errors(names: Iterable[Any], **fields: Any) -> dict[str, Any]:
    """Find estimators by name, `LEAD` and `TEST` first, with their own fields.

    Names are keys of the table, or "mce"; other objects are named by their text.
    """
    found = {}
    for name in dict.fromkeys([LEAD, TEST, *names]):
        estimator = find_estimator(ERRORS.get(name, name) if isinstance(name, str) else name, {})
        own = {key: value for key, value in fields.items() if hasattr(estimator, key)}
        found[str(name)] = find_estimator(estimator, own)
    return found


def scores_of(pairs: bool) -> dict[str, Any]:
    """List the scores by name.

    With hits and confidences alone there is no accuracy: it would be the accuracy of guessing
    whether a prediction is right.
    """
    return {name: ESTIMATORS[name] for name in SCORES if not pairs or name != "accuracy"}


# --- the call ------------------------------------------------------------------------------

# Bins of pictures where one of the equal-width bins holds most rows.
EVEN = "ece_a"
# Rows of a validation, which takes 10 us and 100 bytes of memory a row, and of a path of gaps.
MOST_RISKS = 2 * 10**5
# How often predictions that act alone are to be right.
ACCURACIES = (0.9, 0.95, 0.99)
# Characters of the name of a file in a legend.
LONGEST = 20


def calibration_report(
    y_true: Any, y_prob: Any = None, *, estimator: Any = tuple(ERRORS), by: Any = None,
    groups: Any = None, n_bins: Any = 15, title: str = "Calibration report", event: Any = None,
    setting: Any = "auto", labels: Any = None, pos_label: Any = None, sample_weight: Any = None,
    from_logits: bool = False, soft: bool = False, votes: Any = None, n_resamples: int = 1999,
    confidence_level: float = 0.95, rng: Any = 0, n_jobs: int | None = None, executor: Any = None,
) -> Report:  # fmt: skip
    """Report on the calibration of one model: errors, direction, scores, slices.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits, soft, votes
        As in `fastece.bootstrap`, or an `Accumulator` alone; results that its sums do not allow are
        absent.
    estimator : str or object, or a list of them
        The errors to show, "mce" among them; "ece_bayes" and "ece" always come first.
    by : (n,) array_like, or a dict or data frame of several, optional
        A label or a number for each row: the errors of the slices are shown too, as by
        `fastece.slices`.
    groups : (n,) array_like, optional
        As in `fastece.estimate`: rows that belong together. All intervals and p-values are then
        those of whole groups.
    n_bins : int or "sqrt", default 15
        Bins of the estimators that have some.
    title : str
    event : str, optional
        Name of the event of a binary problem in the sentences, such as "readmission".
    n_resamples : int, default 1999
        Replicates behind intervals and p-values; with 0 there are only posterior intervals.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same report.
    confidence_level, n_jobs, executor
        As in `fastece.bootstrap`.

    Returns
    -------
    Report

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece` and `fastece.slices`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import calibration_report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(5, 1.5, size=1000)
    >>> y = rng.random(1000) < p - 0.5 * p * (1 - p)
    >>> for part in calibration_report(y, p).headline.split("; "):
    ...     print(part)
    Probabilities are too high: 76.9 % predicted, 66.7 % observed
    calibration error 0.100 (95 % CI 0.072 to 0.123)
    p = 0.0005.
    """
    names = estimator if isinstance(estimator, list | tuple) else [estimator]
    data = {
        "y_true": y_true, "y_prob": y_prob, "setting": setting, "labels": labels,
        "pos_label": pos_label, "sample_weight": sample_weight, "from_logits": from_logits,
        "soft": soft, "votes": votes,
    }  # fmt: skip
    return make_report(
        data, choose_errors(names, n_bins=n_bins), by=by, groups=groups, title=title, rng=rng,
        event=check_event(event),
        n_resamples=n_resamples, confidence_level=confidence_level, n_jobs=n_jobs,
        executor=executor,
    )  # fmt: skip


def make_report(
    data: dict[str, Any], errors: dict[str, Any], *, title: str, rng: Any, by: Any = None,
    groups: Any = None, names: tuple[str, str] = ("", ""), pairs: bool = False,
    n_classes: int | None = None, note: str = "", top: Source | None = None,
    stream: dict[str, Any] | None = None, progress: Progress = lambda _: None,
    is_full: bool = True, vectors: bool | None = None, event: str = "",
    row: Row = "y_prob[{}]".format, **options: Any,
) -> Report:  # fmt: skip
    """Build the report on `data`, arguments of `fastece.ece`.

    Parameters
    ----------
    errors : dict
        Estimators by name, `LEAD` and `TEST` first.
    names : tuple of str
        Names of `by` and `groups`.
    pairs, n_classes
        Whether rows are hits and confidences of predicted classes, and the number of classes then,
        if known.
    top : Source, optional
        The rows of a stream in a setting that has the accuracy.
    stream : dict, optional
        Facts about a stream by name, and "notes".
    note, progress
        As in `Report`; a function that takes the name of each step.
    is_full : bool
        Whether to compute everything, or only what the first page shows.
    vectors : bool, optional
        Whether to measure all errors of class vectors, as by default in full, or only the one that
        may decide.
    event : str
        As in `Report`.
    row : callable
        What notes call a row, from its number.
    options
        Other options of `fastece.bootstrap`.
    """
    progress("reading")
    read, y_prob = partial(read_problems, **data), data.get("y_prob")
    rows = {name: value for name, value in data.items() if name not in ("y_true", "y_prob")}
    options |= {**rows, "estimator": list(SCORES)}
    call = read_call("calibration_report", data["y_true"], {"y_prob": y_prob}, 0, **options)
    call, (source,) = add_groups(call, groups, y_prob), call.sources
    call, scores = replace(call, estimators=errors), replace(call, estimators=scores_of(pairs))
    require_calibration_error(call, "a report")
    parts, effect = check_parts(call, y_prob, by), call.design_effect
    seed = int(rng) if isinstance(rng, Integral) and not isinstance(rng, bool) else new_key(rng)
    lead, key = call.with_estimator(errors[LEAD]), new_key(seed)
    has_rows, per_class = isinstance(source, Problems), source.setting.per_class
    has_curve = is_full and not per_class
    has_path = has_curve and has_rows and call.n <= MOST_RISKS
    curve = curves_of(replace(lead, n_resamples=0), None)[0] if has_curve else None
    measures = measure_errors(call, seed, progress)
    # Without resamples, and of all classes of a stream, there is no test, nor a band of diagrams.
    has_test = call.n_resamples > 0 and (has_rows or source.n_problems == 1)
    adaptive = call.with_estimator(AdaptiveTest(errors[TEST].n_bins))
    test = calibration_results(adaptive, seed) if has_test else None
    panels = diagram_panels(call, [None], seed if has_test else None) if is_full else []
    panels += [] if curve is None else [Panel({None: curve.drawing()})]
    progress("direction, scores, classes and slices")
    classes, predicted = class_tables(lead, read, key)
    report = Report(
        title=title,
        n=call.n,
        n_effective=source.votes * float(diagrams_of(Binned(1), source)[0].rows[0]) / effect,
        **measure_top(source, read, top, pairs, n_classes),
        setting=call.setting,
        n_resamples=call.n_resamples if has_test else 0,
        confidence_level=call.level,
        seed=seed,
        p_value=None if test is None else test.p_value,
        components=test and test.components,
        measures=measures,
        direction=direction_of(lead, key) if has_rows or not per_class else None,
        scores=measure_scores(scores, row) if is_full else [],
        decomposition=decomposition_of(call) if is_full and has_rows else None,
        classes=classes,
        predicted_classes=predicted,
        slices=None if parts is None else slices.slices_of(lead, parts, key),
        n_groups=call.n_groups,
        groups=names[1],
        vectors=None,
        validation=None if pairs or not (is_full and has_rows) else validate_rows(call, key, event),
        thresholds=choose_thresholds(call, read, pairs) if is_full and has_rows else None,
        diagrams=diagrams_of(errors[TEST], source),
        curve=curve,
        pairs=pairs,
        note=note,
        by=names[0],
        event=event,
        stream={} if stream is None and not has_rows else stream,
        _panels=panels,
        _cumulative=cumulative_of(source) if has_path else None,
    )
    if has_rows and not pairs and (which := vectors_for(report, is_full, vectors)):
        report = replace(report, vectors=measure_vectors(call, read, seed, progress, which))
    return report


def vectors_for(report: Report, is_full: bool, vectors: bool | None) -> list[str]:
    """Choose errors of class vectors: all, or the one that may decide, or none.

    They take most of the time of a report on ten classes.
    """
    if is_full if vectors is None else vectors:
        return [*CLASS_VECTORS]
    return ["skce"] if report.verdict in (NO_SIGN, UNCLEAR) else []


def validate_rows(call: Call, key: int, event: str) -> Validation | None:
    """Validate a risk model, if the setting is of one event and rows are not too many."""
    setting = call.sources[0].setting
    if setting.is_top or setting.per_class or call.n > MOST_RISKS:
        return None
    points: dict[str, Any] = {str(point): point for point in check_thresholds(None)}
    return validation_of(
        replace(call, estimators=points), key, event or words.event_of(call.setting)
    )


def choose_thresholds(call: Call, read: Callable[..., Problems], pairs: bool) -> list[Threshold]:
    """Choose the scores from which the most probable class is right often enough."""
    (source,) = call.sources
    top = source if pairs or source.setting.is_top else read(setting="confidence")
    own = replace(call, sources=[top], estimators={"": ESTIMATORS["accuracy"]})
    return [threshold_of(own, Promise(x, None, call.level)) for x in ACCURACIES]


def check_parts(call: Call, y_prob: Any, by: Any) -> list[slices.Group] | None:
    """Check the labels of slices, and return the rows of each, if there are any."""
    if by is None:
        return None
    if isinstance(by, Mapping) and any(isinstance(x, Source) for x in by.values()):
        return slices.groups_of_sources(by)
    need_rows(call.sources[0], "the error of each slice", "by")
    return slices.groups_by(call, by, y_prob)


def decomposition_of(call: Call) -> ScoreDecomposition:
    """Decompose the Brier score of the setting; average its parts over classes."""
    (problems,) = call.models
    binary = replace(problems, vectors=None)
    each = [isotonic_parts("brier", binary, k) for k in range(problems.n_problems)]
    values = np.mean(each, axis=0).tolist()
    return ScoreDecomposition.of(values, rule="brier", n=call.n, setting=call.setting)


def class_tables(
    call: Call, read: Callable[..., Problems], key: int
) -> tuple[slices.Slices | None, slices.Slices | None]:
    """Measure each class against the rest, and the rows of each predicted class.

    The former of more than two classes, the latter if the predicted class is to be right. A stream
    has classes only if it was added up class by class.
    """
    (source,) = call.sources
    setting, has_rows = source.setting, isinstance(source, Problems)
    if not (setting.per_class or (has_rows and setting.is_top)):
        return None, None
    if has_rows and source.n_classes == 2:
        return None, None
    by_class = read(setting="classwise") if has_rows else source
    one = replace(call, sources=[by_class])
    classes = slices.slices_of(one, slices.groups_by_class(one), key)
    if not (setting.is_top and isinstance(by_class, Problems)):
        return classes, None
    return classes, slices.slices_of(call, slices.groups_by_prediction(call, by_class), key)


# --- errors ---------------------------------------------------------------------------------


def measure_errors(call: Call, seed: int, progress: Progress) -> list[dict[str, Any]]:
    """Compute a line of numbers for each estimator of a call.

    Without resamples only posteriors have intervals and a floor, of a stream those and bins,
    which is the mean error of a calibrated model.
    """
    lines, (source,) = {}, call.sources
    for name, estimator in call.estimators.items():
        progress(f"measuring {name}")
        values, details = values_and_details(estimator, call)
        whole = ", class vectors" if call.uses_class_vectors(estimator) else ""
        lines[name] = {
            "name": name, "value": float(average_classes(call, np.asarray(values))), "low": None,
            "high": None, "p_value": None, "floor": None, "estimator": f"{estimator}{whole}",
            "n_bins": None, "occupied": None, "bandwidth": None, **details,
        }  # fmt: skip
    progress(f"intervals, {call.n_resamples} replicates of a calibrated model")
    has_rows, count = ROWS in source.has, call.n_resamples
    known = {
        name: row for name, row in call.estimators.items()
        if (has_rows or source.n_problems == 1)
        and (posterior_maker(row) is not None or (count and (has_rows or has_cells(row))))
    }  # fmt: skip
    found = estimate_results(replace(call, estimators=known), rng=seed) if known else {}
    for name, answer in found.items():
        low, high = answer.confidence_interval
        floor, p_value = answer.floor.mean, answer.p_value
        lines[name] |= {"value": answer.value, "low": low, "high": high, "p_value": p_value}
        lines[name]["floor"] = None if np.isnan(floor) else floor
    return list(lines.values())


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
    """Return the mean bandwidth."""
    curves = curves_of(replace(call.with_estimator(estimator), n_resamples=0, groups=None), None)
    bandwidth = float(np.mean([curve.bandwidth for curve in curves]))
    return [curve.value for curve in curves], {"bandwidth": bandwidth}


# --- scores ---------------------------------------------------------------------------------


def measure_scores(call: Call, row: Row) -> list[dict[str, Any]]:
    """Compute a line of numbers for each score of a call that its source allows.

    Of an infinite one a note has the name that `row` gives the first row behind it.
    """
    (source,) = call.sources
    uses_class_vectors = source.setting.is_top or source.setting.name == "binary"
    meaning = SCORES if uses_class_vectors else {**SCORES, "accuracy": ACCURACY_OF_SCORE}
    lines = []
    for name, mean in call.estimators.items():
        if has(source, mean):
            (value,) = compute_values(call, name)
            has_interval = isinstance(source, Problems) and math.isfinite(value)
            ends = score_interval(call, name, value) if has_interval else None
            low, high = ends or (None, None)
            line = {"name": name, "value": value, "low": low, "high": high}
            line["meaning"] = meaning[name]
            if isinstance(source, Problems) and math.isinf(value):
                line["note"] = words.infinite_loss(name, infinite_rows(source, mean), row)
            lines.append(line)
    return lines


def score_interval(call: Call, name: str, value: float) -> ConfidenceInterval | None:
    """Compute the normal interval of a score, or Wilson's of an accuracy.

    Of groups with the variance of their sums. A mean square around the mean score moves with each
    row as if that mean were known.
    """
    (data,), mean, law = call.models, call.estimators[name], Law(call.clusters, call.level)
    numbers = [np.atleast_2d(mean.numbers(x))[0] for x in data.samples(reads_only=True)]
    share = np.full(data.n, 1 / data.n) if data.v is None else data.v / data.v.sum()
    terms = share * (np.mean(numbers, axis=0) - value)
    if name == "accuracy":
        return wilson(value, terms, law)
    return law.quantity(value, terms, low=0.0).confidence_interval


def has(source: Source, estimator: Any) -> bool:
    """Return whether a source has the data that an estimator needs."""
    try:
        source.needs_of(estimator)
    except InputError:
        return False
    return True


def measure_top(
    source: Source, read: Callable[..., Problems], top: Source | None, pairs: bool,
    n_classes: int | None,
) -> dict[str, Any]:  # fmt: skip
    """Measure the accuracy and the mean confidence, where the source has them."""
    is_top, is_binary = pairs or source.setting.is_top, source.setting.name == "binary"
    accuracy = confidence = None
    if isinstance(source, Problems):
        top = rows = source if is_top else read(setting="confidence")
        means = mean_of(rows.parts(ROWS_AT_ONCE), lambda part: np.stack([part.s, part.y]))
        confidence, accuracy = means.tolist()
    elif top := source if is_top or is_binary else top:
        (diagram,) = diagrams_of(Binned(2, score_range="unit"), top)
        hits, score = np.nan_to_num(diagram.frequency), np.nan_to_num(diagram.score)
        if diagram.setting.startswith("binary") and not pairs:
            # Scores of label 1 up to one half are predictions of label 0.
            hits[0], score[0] = 1 - hits[0], 1 - score[0]
        share = diagram.count / diagram.count.sum()
        accuracy, confidence = float(share @ hits), float(share @ score)
    known = n_classes if pairs else (top or source).n_classes
    return {"n_classes": known, "accuracy": accuracy, "mean_confidence": confidence}


# --- class vectors --------------------------------------------------------------------------

# Estimators that look at all pairs of rows, in seconds: of at most so many rows, and of so many
# classes that vectors of one sample lie near each other.
LEAST_CLASSES, MOST_CLASSES, MOST_ROWS = 3, 20, 20_000
# Pairs that all replicates together look at, about a second; but of 20 000 rows the bandwidth alone
# takes 4 s, and the fewest replicates of a test 10 s.
MOST_PAIRS, LEAST_REPLICATES = 10**9, 32


def measure_vectors(
    call: Call, read: Callable[..., Problems], seed: int, progress: Progress, names: Sequence[str]
) -> ClassVectors | None:
    """Compute errors of class vectors by name, if there are more than two classes."""
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
    names = [name for name in names if vectors.votes == 1 or name != "canonical"]
    rows: dict[str, Any] = {name: ESTIMATORS[name] for name in names}
    if "canonical" in rows:  # the bandwidth that the likelihood chooses takes the longest
        kde, sample = rows["canonical"], vectors.sample(0)
        plan = with_threads(call.workers.jobs, lambda run: kde.prepare(sample, sample.n, run))
        rows["canonical"] = replace(kde, bandwidth=plan.bandwidth)
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


# --- pictures of reports, comparisons and curves --------------------------------------------


def curve_panels(curves: Sequence[ReliabilityCurve]) -> list[Panel]:
    """Draw each curve; a single one with heaped scores over log odds too."""
    panels = [Panel({None: curve.drawing()}) for curve in curves]
    if len(panels) == 1 and panels[0].first.is_crowded:
        panels.append(panels[0]._replace(is_logit=True))
    return panels


def compare_panels(call: Call, paths: Mapping[str, str]) -> list[Panel]:
    """Draw all models on the same axes, for each class, named by letters and files."""
    files = {letter: Path(path).name for letter, path in paths.items()}
    short = {key: x if len(x) <= LONGEST else f"…{x[1 - LONGEST :]}" for key, x in files.items()}
    return diagram_panels(call, [f"{letter}: {x}" for letter, x in short.items()])


def diagram_panels(call: Call, names: Sequence[str | None], seed: int | None = None) -> list[Panel]:
    """Draw all models on the same axes, for each class; with a seed, their bands.

    Of a single problem with heaped scores, equal-mass bins over log odds are drawn too.
    """
    panels = bin_panels(call, TEST, names, seed)
    if len(panels) == 1 and any(x.is_crowded for x in panels[0].drawings.values()):
        panels += [panel._replace(is_logit=True) for panel in bin_panels(call, EVEN, names, seed)]
    return panels


def bin_panels(call: Call, bins: str, names: Sequence[str | None], seed: int | None) -> list[Panel]:
    """Draw the bins of all models of a call on the same axes, for each class."""
    estimator = call.estimators.get(bins, ESTIMATORS[bins])
    each = [*zip(*(diagrams_of(estimator, source) for source in call.sources), strict=True)]
    bands: Any = [True] * len(each)
    if seed is not None:
        found = calibration_results(call.with_estimator(estimator), seed).band
        bands = found if isinstance(found, list) else [found]
    return [
        Panel({name: x.drawing(band) for name, x in zip(names, models, strict=True)})
        for models, band in zip(each, bands, strict=True)
    ]
