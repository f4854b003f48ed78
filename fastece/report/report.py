"""The call that builds a report from its numbers, part by part."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import list_names
from fastece.checks.probabilities import as_probabilities
from fastece.data.reading import read_problems
from fastece.data.source import Problems, Source, need_rows
from fastece.decomposition import ScoreDecomposition, isotonic_parts
from fastece.estimators.binned import Binned
from fastece.intervals.direction import direction_of
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
from fastece.report.words import SCORES
from fastece.resampling.arguments import Call, add_groups, read_call, require_calibration_error
from fastece.resampling.bootstrap import bootstrap_results
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.draws import new_key

# Arguments that decide how data are read.
READ = ("setting", "labels", "pos_label", "sample_weight", "from_logits")
# Others of `fastece.bootstrap`.
WORK = ("confidence_level", "n_jobs", "executor")


def calibration_report(
    y_true: Any, y_prob: Any = None, *, estimator: Any = tuple(ERRORS), by: Any = None,
    groups: Any = None, n_bins: Any = 15, title: str = "Calibration report",
    n_resamples: int = 1999, rng: Any = 0, **options: Any,
) -> Report:  # fmt: skip
    """Report on the calibration of one model: errors, direction, scores, slices.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.bootstrap`, with the same defaults: `setting`, `labels`, `pos_label`,
        `sample_weight`, `from_logits`, `confidence_level`, `n_jobs`, `executor`. Or an
        `Accumulator` alone; results that its sums do not allow are absent.
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
        Replicates behind intervals and p-values; with 0 there are only posterior intervals.
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
    options
        Other options of `fastece.bootstrap`.
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
    call, scores = replace(call, estimators=errors), replace(call, estimators=scores_of(pairs))
    require_calibration_error(call, "a report")
    slices, whole = check_parts(call, y_prob, by, groups)
    seed = int(rng) if isinstance(rng, Integral) and not isinstance(rng, bool) else new_key(rng)
    lead, key = call.only(errors[LEAD]), new_key(seed)
    has_rows, per_class = isinstance(source, Problems), source.setting.per_class
    measures = measure_errors(call, seed, progress)
    progress("direction, scores, classes and slices")
    return Report(
        title=title,
        n=call.n,
        n_effective=float(diagrams_of(Binned(1), source)[0].rows[0]),
        **measure_top(source, read, top, pairs, n_classes),
        setting=call.setting,
        n_resamples=call.n_resamples if has_rows else 0,
        confidence_level=call.level,
        seed=seed,
        p_value=measures[1]["p_value"],
        measures=measures,
        direction=direction_of(lead, key) if has_rows or not per_class else None,
        scores=measure_scores(scores, seed),
        decomposition=decomposition_of(call) if has_rows else None,
        classes=class_table(lead, read, key),
        slices=None if slices is None else slices_of(lead, slices, key),
        groups=None if whole is None else measure_groups(whole, seed, names[1]),
        vectors=measure_vectors(call, read, seed, progress) if has_rows and not pairs else None,
        diagrams=diagrams_of(errors[TEST], source),
        curve=None if per_class else curves_of(replace(lead, n_resamples=0), None)[0],
        pairs=pairs,
        note=note,
        by=names[0],
        stream={} if stream is None and not has_rows else stream,
        _panels=report_panels(call, seed),
    )


def check_parts(
    call: Call, y_prob: Any, by: Any, groups: Any
) -> tuple[list[Group] | None, Call | None]:
    """Check the arguments that divide rows, before anything is computed.

    Returns the rows of each slice, and the call whose groups are drawn, if requested.
    """
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
        whole = add_groups(replace(call, estimators={TEST: call.estimators[TEST]}), groups, y_prob)
    return slices, whole


def measure_top(
    source: Source, read: Callable[..., Problems], top: Source | None, pairs: bool,
    n_classes: int | None,
) -> dict[str, Any]:  # fmt: skip
    """Measure the accuracy and the mean confidence, where the source has them."""
    is_top = pairs or source.setting.is_top
    if isinstance(source, Problems):
        top = source if is_top else read(setting="confidence")
    elif is_top or source.setting.name == "binary":
        top = source
    accuracy, confidence = (None, None) if top is None else mean_of_top(top, pairs)
    known = n_classes if pairs else (top or source).n_classes
    return {"n_classes": known, "accuracy": accuracy, "mean_confidence": confidence}


def decomposition_of(call: Call) -> ScoreDecomposition:
    """Decompose the Brier score of the setting; average its parts over classes."""
    (problems,) = call.models
    binary = replace(problems, vectors=None)
    each = [isotonic_parts("brier", binary, k) for k in range(problems.n_problems)]
    values = np.mean(each, axis=0).tolist()
    return ScoreDecomposition.of(values, rule="brier", n=call.n, setting=call.setting)


def class_table(call: Call, read: Callable[..., Problems], key: int) -> Slices | None:
    """Measure each class against the rest, if the setting has more than two.

    A stream has classes only if it was added up class by class.
    """
    (source,) = call.sources
    is_asked = source.setting.per_class
    if isinstance(source, Problems):
        if source.n_classes == 2 or not (is_asked or source.setting.is_top):
            return None
        call = replace(call, sources=[read(setting="classwise")])
    elif not is_asked:
        return None
    return slices_of(call, groups_by_class(call), key)


def measure_groups(call: Call, seed: int, column: str) -> GroupedError:
    """Measure an error of rows whose groups are drawn as a whole."""
    ((name, found),) = bootstrap_results(call, rng=seed).items()
    p_value = calibration_results(call, seed)[name].p_value
    interval = found.confidence_interval
    return GroupedError(column, call.n_groups or 0, name, found.value, interval, p_value)
