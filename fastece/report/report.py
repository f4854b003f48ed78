"""The report on the calibration of one model: what was measured, and what it comes down to."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from fastece.checks.parameters import list_names
from fastece.checks.probabilities import as_probabilities
from fastece.data.problems import Problems
from fastece.data.reading import read_problems
from fastece.decomposition.isotonic import ScoreDecomposition, isotonic_parts
from fastece.document.result import Record
from fastece.estimators.bayes.curves import effective_count
from fastece.intervals.direction import Direction, direction_of
from fastece.intervals.slices import Group, Slices, groups_by, groups_by_class, slices_of
from fastece.plot.pages import Panel
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.report.classes import AllClasses, measure_classes
from fastece.report.measures import (
    ERRORS,
    LEAD,
    SCORES,
    TEST,
    Say,
    choose_errors,
    measure_errors,
    measure_scores,
    scores_of,
)
from fastece.report.pictures import report_panels
from fastece.report.words import Findings, judge
from fastece.resampling.arguments import Call, read_call, require_calibration_error
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import ConfidenceInterval

# Arguments that say how data are read.
READ = ("setting", "labels", "pos_label", "sample_weight", "from_logits")
# Others of `fastece.bootstrap`.
WORK = ("confidence_level", "n_jobs", "executor")


@dataclass(frozen=True, eq=False, kw_only=True)
class Report(Record):
    """The calibration of one model: what `fastece.calibration_report` gives.

    Attributes
    ----------
    title : str
    headline : str
        One sentence with the error, its interval, its direction and the p-value.
    verdict : str
        "miscalibrated"; "no sign" of it, where chance explains all; "unclear", where interval,
        test, mean gap, classes and groups do not agree; "too few rows".
    n, n_effective : int, float
        Rows, and Kish's effective number of them where they have weights.
    n_classes : int or None
        None where a file does not tell.
    accuracy, mean_confidence : float
        How often the most probable class is right, and its mean probability.
    setting : str
    n_resamples, confidence_level, seed
        Of the intervals; without resamples there are none, and no p-value.
    p_value : float or None
        Of `fastece.calibration_test` with the bins of "ece".
    measures : list of dict
        An error each: name, value, interval, p_value, estimator, bins and bandwidth.
    direction : Direction
        Error of scores that are too high and too low, and the mean gap.
    scores : list of dict
        A proper score each: name, value, interval, meaning.
    decomposition : ScoreDecomposition
        Parts of the Brier score of the setting, or their means over classes.
    classes, slices : Slices or None
        Errors of the classes, one against the rest, and of the groups of `by`.
    vectors : AllClasses or None
        Errors of whole class vectors, with the test of each; None of fewer than three classes.
    diagrams : list of ReliabilityDiagram
        For each problem of the setting.
    curve : ReliabilityCurve or None
        The Bayesian curve, where there is one problem.
    pairs : bool
        Whether rows are hits and confidences of predicted classes, without the other classes.
    note : str
        How a file was read, where there is something to say about that.
    """

    title: str
    headline: str
    verdict: str
    n: int
    n_effective: float
    n_classes: int | None
    accuracy: float
    mean_confidence: float
    setting: str
    n_resamples: int
    confidence_level: float
    seed: int
    p_value: float | None
    measures: list[dict[str, Any]]
    direction: Direction
    scores: list[dict[str, Any]]
    decomposition: ScoreDecomposition
    classes: Slices | None
    slices: Slices | None
    vectors: AllClasses | None
    diagrams: list[ReliabilityDiagram]
    curve: ReliabilityCurve | None
    pairs: bool = field(repr=False)
    note: str
    _panels: list[Panel] = field(repr=False)

    def _repr_html_(self) -> str:
        from fastece.report.writers import to_fragment

        return to_fragment(self)

    def __str__(self) -> str:
        from fastece.report.writers import to_text

        return to_text(self)

    def to_markdown(self) -> str:
        """The report as Markdown, without pictures."""
        from fastece.report.writers import to_markdown

        return to_markdown(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as one HTML page with its pictures, which loads nothing; written to a file, if
        one is given. Needs jinja2 and matplotlib (``pip install fastece[report]``)."""
        from fastece.report.writers import to_html

        page = to_html(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


def calibration_report(
    y_true: Any, y_prob: Any, *, estimator: Any = tuple(ERRORS), by: Any = None, n_bins: Any = 15,
    title: str = "Calibration report", n_resamples: int = 1000, rng: Any = 0, **options: Any,
) -> Report:  # fmt: skip
    """Everything about the calibration of one model: errors, direction, scores, classes, groups.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.bootstrap`, with the same defaults: `setting`, `labels`, `pos_label`,
        `sample_weight`, `from_logits`, `confidence_level`, `n_jobs`, `executor`.
    estimator : str or object, or a list of them
        The errors to show, "mce" among them; "ece_bayes" and "ece" always come first.
    by : (n,) array_like, optional
        A label for each row: the errors of the groups are shown too, as by `fastece.slices`.
    n_bins : int or "sqrt", default 15
        Bins of the estimators that have some.
    title : str
    n_resamples : int, default 1000
        Replicates behind intervals and p-values; with 0 there are none.
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
    >>> report = calibration_report(y, p)
    >>> print(report.headline)  # doctest: +NORMALIZE_WHITESPACE
    Off, its probabilities too high, by 0.100 (95 % interval 0.071 to 0.126); chance alone would
    show as large an ECE in fewer than 1 of 1000 samples of a calibrated model.
    """
    for name in options:
        if name not in (*READ, *WORK):
            known = list_names([*READ, *WORK])
            raise TypeError(f"{name}: is no argument of calibration_report; {known}")
    names = estimator if isinstance(estimator, list | tuple) else [estimator]
    errors = choose_errors(names, n_bins=n_bins)
    data = {name: options.pop(name) for name in READ if name in options}
    data |= {"y_true": y_true, "y_prob": y_prob}
    return make_report(
        data, errors, by=by, title=title, n_resamples=n_resamples, rng=rng, **options
    )


def make_report(
    data: dict[str, Any], errors: dict[str, Any], *, title: str, rng: Any, by: Any = None,
    pairs: bool = False, n_classes: int | None = None, note: str = "", say: Say = lambda _: None,
    **options: Any,
) -> Report:  # fmt: skip
    """The report on `data`, arguments of `fastece.ece`.

    Parameters
    ----------
    errors : dict
        Estimators by name, the first two those of `LEAD` and `TEST`.
    pairs, n_classes
        Whether rows are hits and confidences of predicted classes, and how many classes there are
        then, if that is known.
    note, say
        As in `Report`; a function that is told each step.
    options
        The others of `fastece.bootstrap`.
    """
    say("reading")
    read = partial(read_problems, **data)
    data = {**data}
    y_true, models = data.pop("y_true"), {"y_prob": data.pop("y_prob")}
    call = read_call(
        "calibration_report", y_true, models, 0, estimator=list(SCORES), **data, **options
    )
    (problems,), seed = call.models, int(rng) if isinstance(rng, Integral) else new_key(rng)
    key = new_key(seed)
    rows = len(as_probabilities(models["y_prob"], "y_prob"))
    groups = None if by is None else groups_by(call, by, rows)
    top = problems if pairs or problems.setting.is_top else read(setting="confidence")
    lead, errors_call = call.only(errors[LEAD]), replace(call, estimators=errors)
    require_calibration_error(errors_call, "a report")
    measures = measure_errors(errors_call, seed, say)
    first, test = measures[0], measures[1]
    say("direction and scores")
    direction = direction_of(lead, key)
    classes = class_table(lead, read, key, say)
    slices = table_of(lead, groups, key, say)
    vectors = None if pairs else measure_classes(call, read, seed, say)
    n = effective_count(problems.v, call.n)
    judgement = judge(Findings(
        n=n, setting="confidence" if pairs else call.setting, level=call.level,
        error=first["value"], interval=ConfidenceInterval(first["low"], first["high"]),
        p_value=test["p_value"], n_resamples=call.n_resamples, over=direction.over,
        total=direction.error, mean_gap=direction.mean_gap,
        mean_gap_interval=direction.mean_gap_interval,
        off=count_off(classes=classes, groups=slices),
        others=[] if vectors is None else vectors.objections(call.level),
    ))  # fmt: skip
    panels = report_panels(errors_call, seed)
    per_class = problems.setting.per_class
    curve = None if per_class else curves_of(lead, None)[0]
    return Report(
        title=title,
        headline=judgement.headline,
        verdict=judgement.verdict,
        n=call.n,
        n_effective=n,
        n_classes=n_classes if pairs else top.n_classes,
        accuracy=mean_of(top, top.label),
        mean_confidence=mean_of(top, top.prob),
        setting=call.setting,
        n_resamples=call.n_resamples,
        confidence_level=call.level,
        seed=seed,
        p_value=test["p_value"],
        measures=measures,
        direction=direction,
        scores=measure_scores(replace(call, estimators=scores_of(pairs)), seed),
        decomposition=decomposition_of(call),
        classes=classes,
        slices=slices,
        vectors=vectors,
        diagrams=diagrams_of(errors[TEST], problems),
        curve=curve,
        pairs=pairs,
        note=note,
        _panels=panels,
    )


def mean_of(problems: Problems, x: Any) -> float:
    """The weighted mean of numbers (n,) of the rows."""
    return float(np.average(x, weights=problems.v))


def decomposition_of(call: Call) -> ScoreDecomposition:
    """The parts of the Brier score of the setting, class by class their means."""
    (problems,) = call.models
    binary = replace(problems, vectors=None)
    each = [isotonic_parts("brier", binary, k) for k in range(problems.n_problems)]
    values = ScoreDecomposition.named(np.mean(each, axis=0).tolist())
    return ScoreDecomposition(**values, rule="brier", n=call.n, setting=call.setting)


def class_table(call: Call, read: Callable[..., Problems], key: int, say: Say) -> Slices | None:
    """The classes, each against the rest, where the setting asks about all of more than two."""
    (problems,) = call.models
    if problems.n_classes == 2 or not (problems.setting.is_top or problems.setting.per_class):
        return None
    call = replace(call, sources=[read(setting="classwise")])
    return table_of(call, groups_by_class(call), key, say)


def count_off(**tables: Slices | None) -> dict[str, tuple[int, int]]:
    """How many rows of each table, where there is one, have an interval that leaves out 0, and how
    many there are."""
    known = {what: table for what, table in tables.items() if table is not None}
    return {what: (sum(row.low > 0 for row in x), len(x)) for what, x in known.items()}


def table_of(call: Call, groups: list[Group] | None, key: int, say: Say) -> Slices | None:
    """The errors of some groups."""
    if groups is None:
        return None
    say(f"{len(groups)} groups")
    return slices_of(call, groups, key)
