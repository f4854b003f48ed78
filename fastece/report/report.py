"""The report on the calibration of one model: its numbers, and what they come down to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import list_names
from fastece.checks.probabilities import as_probabilities
from fastece.data.problems import Problems, need_rows
from fastece.data.reading import read_problems
from fastece.data.source import Source
from fastece.decomposition.isotonic import ScoreDecomposition, isotonic_parts
from fastece.document.numbers import ConfidenceInterval
from fastece.estimators.binned.estimator import Binned
from fastece.intervals.direction import Direction, direction_of
from fastece.intervals.slices import (
    Group,
    Slices,
    groups_by,
    groups_by_class,
    groups_of_sources,
    slices_of,
)
from fastece.reliability.curve import curves_of
from fastece.reliability.diagram import diagrams_of
from fastece.report.measures import (
    ERRORS,
    LEAD,
    TEST,
    ClassVectors,
    Progress,
    choose_errors,
    mean_of_top,
    measure_errors,
    measure_scores,
    measure_vectors,
    scores_of,
)
from fastece.report.pictures import report_panels
from fastece.report.result import GroupedError, Report
from fastece.report.words import SCORES, Findings, Judgement, judge, judge_classes
from fastece.resampling.arguments import Call, add_groups, read_call, require_calibration_error
from fastece.resampling.bootstrap import bootstrap_results
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.draws import new_key

# Arguments that say how data are read.
READ = ("setting", "labels", "pos_label", "sample_weight", "from_logits")
# Others of `fastece.bootstrap`.
WORK = ("confidence_level", "n_jobs", "executor")


def calibration_report(
    y_true: Any, y_prob: Any = None, *, estimator: Any = tuple(ERRORS), by: Any = None,
    groups: Any = None, n_bins: Any = 15, title: str = "Calibration report",
    n_resamples: int = 1999, rng: Any = 0, **options: Any,
) -> Report:  # fmt: skip
    """Report everything about the calibration of one model: errors, direction, scores, slices.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.bootstrap`, with the same defaults: `setting`, `labels`, `pos_label`,
        `sample_weight`, `from_logits`, `confidence_level`, `n_jobs`, `executor`. Or an
        `Accumulator` alone; what its sums cannot answer is absent.
    estimator : str or object, or a list of them
        The errors to show, "mce" among them; "ece_bayes" and "ece" always come first.
    by : (n,) array_like, optional
        A label for each row: the errors of the slices are shown too, as by `fastece.slices`.
    groups : (n,) array_like, optional
        As in `fastece.bootstrap`: rows that belong together. "ece" is also shown with the interval
        and the test of whole groups.
    n_bins : int or "sqrt", default 15
        Bins of the estimators that have some.
    title : str
    n_resamples : int, default 1999
        Replicates behind intervals and p-values; with 0 there are only those of posteriors.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same report.

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
    >>> print(calibration_report(y, p).headline)
    Miscalibrated: probabilities too high by 0.100 (95 % CI 0.071 to 0.126); p = 0.0005.
    """
    for name in options:
        if name not in (*READ, *WORK):
            known = list_names([*READ, *WORK])
            raise InputTypeError(name, f"is no argument of calibration_report; {known}")
    names = estimator if isinstance(estimator, list | tuple) else [estimator]
    errors = choose_errors(names, n_bins=n_bins)
    data = {name: options.pop(name) for name in READ if name in options}
    data |= {"y_true": y_true, "y_prob": y_prob}
    return make_report(
        data, errors, by=by, groups=groups, title=title, n_resamples=n_resamples, rng=rng, **options
    )


def make_report(
    data: dict[str, Any], errors: dict[str, Any], *, title: str, rng: Any, by: Any = None,
    groups: Any = None, names: tuple[str, str] = ("", ""), pairs: bool = False,
    n_classes: int | None = None, note: str = "", top: Source | None = None,
    stream: dict[str, Any] | None = None, progress: Progress = lambda _: None, **options: Any,
) -> Report:  # fmt: skip
    """Make the report on `data`, arguments of `fastece.ece`.

    Parameters
    ----------
    errors : dict
        Estimators by name, the first two those of `LEAD` and `TEST`.
    names : tuple of str
        What `by` and `groups` are called.
    pairs, n_classes
        Whether rows are hits and confidences of predicted classes, and how many classes there are
        then, if that is known.
    top : Source, optional
        The rows of a stream in a setting that has the accuracy.
    stream : dict, optional
        What was read of a stream: facts by name, and "notes".
    note, progress
        As in `Report`; a function that takes the name of each step.
    options
        The others of `fastece.bootstrap`.
    """
    progress("reading")
    read = partial(read_problems, **data)
    data = {**data}
    y_true, y_prob = data.pop("y_true"), data.pop("y_prob", None)
    call = read_call(
        "calibration_report",
        y_true,
        {"y_prob": y_prob},
        0,
        estimator=list(SCORES),
        **data,
        **options,
    )
    (source,) = call.sources
    errors_call = replace(call, estimators=errors)
    require_calibration_error(errors_call, "a report")
    parts = check_parts(call, y_prob, by, groups)
    seed = int(rng) if isinstance(rng, Integral) and not isinstance(rng, bool) else new_key(rng)
    lead, key = call.only(errors[LEAD]), new_key(seed)
    rows = isinstance(source, Problems)
    per_class = source.setting.per_class
    measures = measure_errors(errors_call, seed, progress)
    progress("direction and scores")
    has_direction = rows or not per_class
    found = direction_of(lead, key) if has_direction else None
    vectors = measure_vectors(call, read, seed, progress) if rows and not pairs else None
    classes = class_table(lead, read, key, progress)
    slices = None
    if parts.slices is not None:
        progress(f"{len(parts.slices)} slices")
        slices = slices_of(lead, parts.slices, key)
    n = float(diagrams_of(Binned(1), source)[0].rows[0])
    setting = "confidence" if pairs else call.setting
    judgement = judge_numbers(measures, found, n, setting, call.level, vectors, classes, slices)
    if top is None and not (pairs or source.setting.is_top):
        is_array = isinstance(source, Problems)
        top = read(setting="confidence") if is_array else None if is_of_class(source) else source
    accuracy, confidence = (
        (None, None) if top is None and is_of_class(source) else mean_of_top(top or source, pairs)
    )
    return Report(
        title=title,
        headline=judgement.headline,
        verdict=judgement.verdict,
        n=call.n,
        n_effective=n,
        n_classes=n_classes if pairs else (top or source).n_classes,
        accuracy=accuracy,
        mean_confidence=confidence,
        setting=call.setting,
        n_resamples=call.n_resamples if rows else 0,
        confidence_level=call.level,
        seed=seed,
        p_value=measures[1]["p_value"],
        measures=measures,
        direction=found,
        scores=measure_scores(replace(call, estimators=scores_of(pairs)), seed),
        decomposition=decomposition_of(call) if rows else None,
        classes=classes,
        slices=slices,
        groups=measure_groups(parts.call, errors[TEST], seed, names[1]),
        vectors=vectors,
        diagrams=diagrams_of(errors[TEST], source),
        curve=None if per_class else curves_of(replace(lead, n_resamples=0), None)[0],
        pairs=pairs,
        note=note,
        by=names[0],
        stream={} if stream is None and not rows else stream,
        _panels=report_panels(errors_call, seed),
    )


@dataclass(frozen=True)
class Parts:
    """Rows of each slice, and the call whose groups are drawn; None where none were asked for."""

    slices: list[Group] | None
    call: Call | None


def check_parts(call: Call, y_prob: Any, by: Any, groups: Any) -> Parts:
    """Check the arguments that divide rows, before anything is computed."""
    slices = whole = None
    (source,) = call.sources
    if by is not None:
        if isinstance(by, Mapping):
            slices = groups_of_sources(by)
        else:
            need_rows(source, "the error of each slice", "by")
            slices = groups_by(call, by, len(as_probabilities(y_prob, "y_prob")))
    if groups is not None:
        need_rows(source, "the draw of whole groups", "groups")
        if not call.n_resamples:
            raise InputError("groups", "are drawn, so n_resamples must be at least 1")
        whole = add_groups(call, groups, y_prob)
    return Parts(slices, whole)


def is_of_class(source: Source) -> bool:
    """Whether a setting is about single classes, and so does not have the accuracy."""
    return source.setting.per_class or not (
        source.setting.is_top or source.setting.name == "binary"
    )


def judge_numbers(
    measures: list[dict[str, Any]], found: Direction | None, n: float, setting: str, level: float,
    vectors: ClassVectors | None, classes: Slices | None, slices: Slices | None,
) -> Judgement:  # fmt: skip
    """Judge a model by the numbers of its report."""
    first, test = measures[0], measures[1]
    off = count_off(classes=classes, slices=slices)
    if found is None:
        return judge_classes(*off["classes"], level, first["value"])
    return judge(Findings(
        n=n, setting=setting, level=level, error=first["value"],
        interval=ConfidenceInterval(first["low"], first["high"]), p_value=test["p_value"],
        over=found.over, total=found.value, mean_gap=found.mean_gap,
        mean_gap_interval=found.mean_gap_interval, off=off,
        others=[] if vectors is None else vectors.evidence(level),
    ))  # fmt: skip


def decomposition_of(call: Call) -> ScoreDecomposition:
    """Take the Brier score of the setting apart, class by class into means."""
    (problems,) = call.models
    binary = replace(problems, vectors=None)
    each = [isotonic_parts("brier", binary, k) for k in range(problems.n_problems)]
    values = ScoreDecomposition.named(np.mean(each, axis=0).tolist())
    return ScoreDecomposition(**values, rule="brier", n=call.n, setting=call.setting)


def class_table(
    call: Call, read: Callable[..., Problems], key: int, progress: Progress
) -> Slices | None:
    """Measure the classes, each against the rest, where the setting is about more than two.

    Those of a stream are known only where it was added up class by class.
    """
    (source,) = call.sources
    per_class = source.setting.per_class
    is_asked = per_class or (source.setting.is_top and isinstance(source, Problems))
    if source.n_classes == 2 or not is_asked:
        return None
    progress(f"{source.n_classes} classes")
    if isinstance(source, Problems):
        call = replace(call, sources=[read(setting="classwise")])
    return slices_of(call, groups_by_class(call), key)


def measure_groups(
    call: Call | None, estimator: Any, seed: int, column: str
) -> GroupedError | None:
    """Measure an error of rows whose groups are drawn as a whole."""
    if call is None:
        return None
    call = replace(call, estimators={TEST: estimator})
    found = bootstrap_results(call, rng=seed)[TEST]
    p_value = calibration_results(call, seed)[TEST].p_value
    count = call.n_groups or 0
    return GroupedError(column, count, TEST, found.value, found.confidence_interval, p_value)


def count_off(**tables: Slices | None) -> dict[str, tuple[int, int]]:
    """Count the rows of each table whose interval leaves out 0, and all of them."""
    known = {name: table for name, table in tables.items() if table is not None}
    return {name: (sum(row.low > 0 for row in x), len(x)) for name, x in known.items()}
