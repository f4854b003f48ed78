"""A gate: whether calibration errors, or O/E, lie within the bounds that a caller allows.

Each part of the data (all rows, a slice, the increase over a baseline) has a number with an
interval. `judge` compares the interval to the bounds: it passes, it fails, or it cannot tell.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple, Unpack

from fastece.data.errors import InputError, InputTypeError, rename_arguments, warn_outside
from fastece.data.options import shows_options
from fastece.data.parameters import check_choice, check_integer, check_real
from fastece.data.samples import effective_rows, scale_weights
from fastece.display.documents import Document, Section
from fastece.display.numbers import ConfidenceInterval, Number, format_interval
from fastece.display.results import EstimatorResult, Record
from fastece.estimators import risk
from fastece.inference import compare, slices
from fastece.inference.selections import Selection, are_in_time, select_by_columns
from fastece.resampling import arguments
from fastece.resampling.arguments import ResamplingKeywords
from fastece.resampling.call import Call, common_fields
from fastece.resampling.draws import new_key
from fastece.risk.quantities import measure_ratio
from fastece.risk.variance import Quantity, SamplingLaw

# Verdicts.
PASSES = "passes"
FAILS = "fails"
CANNOT_TELL = "cannot tell"
NOT_JUDGED = "not judged"
IS_PASSED = {PASSES: True, CANNOT_TELL: None, FAILS: False}
JUNIT_TAGS = {
    PASSES: "system-out",
    FAILS: "failure",
    CANNOT_TELL: "skipped",
    NOT_JUDGED: "skipped",
}
# Labels of parts that are no slices.
ALL_ROWS = "all rows"
INCREASE = "increase over the baseline"
# The estimators behind a bound on the error, unless the caller names another, and on O/E.
ERROR = "ece_bayes"
RATIO = "oe"
# The least bound: no test set is large enough for a bound of 0.
MIN_BOUND = 1e-6
# The largest bound on O/E.
MAX_RATIO = 1e6
# With fewer events O/E cannot tell: its interval is too short, and up to 13 of 100 test sets at a
# bound would fail, where 5 are meant to.
MIN_EVENTS = 10
# The largest number of rows that is given as an answer, as of `fastece.rows_needed`.
MAX_ROWS_NEEDED = 10**9
# The answer has so many times as many rows as those with which the interval, as it is on average,
# just leaves out the bound: with these it does in some three of four samples.
ROWS_FACTOR = 2.0
# How well the middle of an interval is known, in halves of its width: a bound that is nearer counts
# as being so far from it.
MIN_DISTANCE = 0.2
# Characters that XML 1.0 does not have, not even escaped.
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, eq=False)
class Judgement(Record):
    """Verdict on one error: of all rows, of a slice, or its increase; or on one O/E.

    Attributes
    ----------
    label : str
        "all rows", "slice west" and the like, or "increase over the baseline".
    n : int
        Its rows of positive weight.
    value : float
        The error, the increase, or O/E; nan where it is not judged.
    confidence_interval : ConfidenceInterval
        Its interval, which holds at the same time as all others.
    bound : float
        The largest value that is allowed.
    least : float or None
        The least value that is allowed: ``1 / bound`` for O/E, None for an error.
    verdict : {"passes", "fails", "cannot tell", "not judged"}
    rows_needed : int or None
        About how many rows such as these would decide, where these cannot.
    line : str
        All of that as one line.
    """

    label: str
    n: int
    value: float
    confidence_interval: ConfidenceInterval
    bound: float
    least: float | None
    verdict: str
    rows_needed: int | None
    line: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Check(EstimatorResult):
    """Verdict on calibration errors or on O/E; the result of `fastece.check`.

    Attributes
    ----------
    passed : bool or None
        True where everything that is judged passes, False where something fails, else None: these
        rows cannot tell.
    line : str
        The verdict with the number that decides, as one line.
    rows_needed : int or None
        About how many rows such as these would decide; None where these do, and where no event
        occurred, or nothing varies, to tell it from.
    value, confidence_interval : float, ConfidenceInterval
        The error, or O/E, of all rows.
    confidence_level : float
        The level at which all intervals hold at the same time.
    rows : tuple of Judgement
        Judgements of all rows, of the slices, and of the increase over the baseline.

    Also ``n``, ``n_groups``, ``key``, ``estimator`` and ``setting``, as of `Estimate`.
    """

    passed: bool | None
    line: str
    rows_needed: int | None
    confidence_interval: ConfidenceInterval
    confidence_level: float
    rows: tuple[Judgement, ...]

    @property
    def _numbers(self) -> dict[str, Any]:
        return {"value": self.value, "confidence_interval": self.confidence_interval}

    def _rows(self) -> list[dict[str, Any]]:
        interval_name = f"joint {100 * self.confidence_level:g} % CI"
        value_name = "error" if self.rows[0].least is None else "O/E"
        return [
            {
                "part": row.label,
                "rows": row.n,
                value_name: Number(row.value, row.confidence_interval),
                interval_name: row.confidence_interval,
                "allowed": Number(row.bound, form="g") if row.least is None else allowed(row),
                "verdict": row.verdict,
                "rows_needed": row.rows_needed,
                "in_total": rows_in_total(row, self.n),
            }
            for row in self.rows
        ]

    def document(self) -> Document:
        """Describe the verdict in a line, and several parts in a table below."""
        table = self._table(self._rows()) if len(self.rows) > 1 else None
        return Document(self.line, sections=[Section(table=table, notes=self.notes)])

    def to_junit(self, title: str = "fastece check") -> str:
        """Return a JUnit XML file with a test case for each part.

        A part that these rows cannot judge, or that is not judged, is skipped.
        """
        from xml.etree import ElementTree

        tags = [JUNIT_TAGS[row.verdict] for row in self.rows]
        suite = ElementTree.Element(
            "testsuite",
            name=title,
            tests=f"{len(tags)}",
            failures=f"{tags.count('failure')}",
            errors="0",
            skipped=f"{tags.count('skipped')}",
        )
        for row, tag in zip(self.rows, tags, strict=True):
            case = ElementTree.SubElement(suite, "testcase", classname=title, name=row.label)
            ElementTree.SubElement(case, tag).text = row.line
        ElementTree.indent(suite)
        text = ElementTree.tostring(suite, encoding="unicode")
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
        return NOT_XML.sub(lambda match: repr(match[0])[1:-1], text)


# --- one part -------------------------------------------------------------------------------


class Part(NamedTuple):
    """An error, or O/E, with its interval, and the bounds that it is compared to.

    `least` is None for an error, which may be as small as it likes. `n_events` is for O/E, the
    effective number of events.
    """

    label: str
    n: int
    value: float
    interval: ConfidenceInterval
    bound: float
    least: float | None = None
    n_events: float = math.inf


def judge(part: Part, level: str, min_rows: int) -> Judgement:
    """Compare an interval, with its level in words, to its bounds.

    Fewer than `min_rows` rows cannot tell, nor can few events.
    """
    low, high = part.interval
    least = -math.inf if part.least is None else part.least
    rows_needed = None
    if least <= low and high <= part.bound:
        verdict = PASSES
    elif low > part.bound or high < least:
        verdict = FAILS
    else:
        verdict = CANNOT_TELL
        rows_needed = rows_to_decide(part)
    if part.n < min_rows:
        verdict = CANNOT_TELL
        rows_needed = max(min_rows, rows_needed or 0)
    # The interval of O/E without any event is exact.
    if 0 < part.n_events < MIN_EVENTS:
        verdict = CANNOT_TELL
        rows_needed = max(round_rows(part.n * MIN_EVENTS / part.n_events), rows_needed or 0)
    number = Number(part.value, part.interval)
    ends = format_interval(part.interval).strip("[]").replace(",", " to")
    line = f"{verdict}: {name_of(part)} {number} ({level} {ends}), {allowed(part)} allowed"
    return Judgement(
        label=part.label, n=part.n, value=part.value, confidence_interval=part.interval,
        bound=part.bound, least=part.least, verdict=verdict, rows_needed=rows_needed,
        line=" ".join(line.split()),
    )  # fmt: skip


def name_of(part: Part) -> str:
    """Name the number of a part in a line."""
    if part.label == INCREASE and part.least is None:
        return part.label
    name = "calibration error" if part.least is None else "O/E"
    return name if part.label == ALL_ROWS else f"{name} of {part.label}"


def allowed(part: Part | Judgement) -> str:
    """Describe the errors, or ratios, that are allowed."""
    if part.least is None:
        return f"at most {part.bound:g}"
    return f"{part.least:.4g} to {part.bound:g}"


def not_judged(slice_of_rows: Selection, bounds: "Bounds", min_rows: int) -> Judgement:
    """List a slice with too few rows."""
    label = name_slice(slice_of_rows.label)
    n = slice_of_rows.n
    return Judgement(
        label=label, n=n, value=math.nan,
        confidence_interval=ConfidenceInterval(math.nan, math.nan), bound=bounds.bound,
        least=bounds.least, verdict=NOT_JUDGED, rows_needed=None,
        line=f"not judged: {label} has {n} rows, fewer than {min_rows}",
    )  # fmt: skip


def name_slice(label: Any) -> str:
    """Name the slice of a label, or all rows where it is None."""
    return ALL_ROWS if label is None else f"slice {label}"


def rows_to_decide(part: Part) -> int | None:
    """Estimate how many rows make an interval leave out a bound that it holds.

    The half width h of an interval of n rows is taken to fall with the root of n around its middle,
    which lies at the distance d from the bound: with ``n (h / d)^2`` rows an end is at the bound.
    An interval of an error that begins at 0 becomes shorter from above alone:
    ``n (high / bound)^2``. Intervals of O/E are so on the log scale, where the bounds lie on both
    sides of 0; without an event it has no scale, and the answer is None.

    `fastece.rows_needed` answers other questions, by simulations of seconds: rows for an interval
    of a given width, or for a test to detect a given error. This number costs nothing.
    """
    low, high = part.interval
    bound = part.bound
    if not math.isfinite(low + high):
        return None
    if part.least is None and low == 0 < bound:
        return round_rows(ROWS_FACTOR * part.n * (high / bound) ** 2)
    if part.least is None:
        middle = (low + high) / 2
        half_width = (high - low) / 2
    elif low == 0:
        return None
    else:
        bound = math.log(bound)
        middle = abs(math.log(low) + math.log(high)) / 2
        half_width = (math.log(high) - math.log(low)) / 2
    distance = max(abs(bound - middle), MIN_DISTANCE * half_width)
    return round_rows(ROWS_FACTOR * part.n * (half_width / distance) ** 2)


def rows_in_total(row: Judgement, n: int) -> int | None:
    """Estimate the rows of a test set, like these n, that has the rows a part needs."""
    return None if row.rows_needed is None else round_rows(row.rows_needed * n / row.n)


def round_rows(rows: float) -> int:
    """Round a number of rows to two digits."""
    return int(float(f"{min(rows, MAX_ROWS_NEEDED):.2g}"))


# --- all parts ------------------------------------------------------------------------------


class Bounds(NamedTuple):
    """The bounds on the error or on O/E, and the one on the increase, if any.

    `least` is None for an error, as in `Part`.
    """

    bound: float
    least: float | None = None
    max_increase: float | None = None


def check_bounds(max_error: Any, max_ratio: Any, max_increase: Any, has_baseline: bool) -> Bounds:
    """Check the bound on the error or on O/E, and the one on the increase."""
    if max_ratio is not None:
        if max_error is not None:
            raise InputTypeError("max_ratio", "goes without {max_error}, as one number is judged")
        if has_baseline or max_increase is not None:
            raise InputTypeError("max_ratio", "goes without {baseline}, which is for errors")
        bound = check_real("max_ratio", max_ratio, 0.0, MAX_RATIO)
        if bound < 1 + MIN_BOUND:
            raise InputError("max_ratio", "must be greater than 1", value=max_ratio)
        return Bounds(bound, 1 / bound)
    if max_error is None:
        rule = "must be given: the largest error that is allowed"
        raise InputTypeError("max_error", rule, hint="{max_ratio} is a bound on O/E")
    if has_baseline != (max_increase is not None):
        raise InputTypeError("max_increase", "goes with {baseline}, which needs it too")
    if max_increase is not None:
        max_increase = check_real("max_increase", max_increase, -1.0, 1.0)
    return Bounds(check_real("max_error", max_error, MIN_BOUND, 1.0), None, max_increase)


def choose_estimator(estimator: Any, bounds: Bounds) -> Any:
    """Return the estimator that is judged: the caller's, or O/E where that is bounded."""
    arguments.check_single(estimator)
    is_ratio = estimator == risk.RiskStatistic(RATIO) or estimator == RATIO
    if bounds.least is None:
        if is_ratio:
            rule = "O/E is no error, as its ideal is 1"
            raise InputError("estimator", rule, hint="pass {max_ratio} in place of {max_error}")
        return estimator
    if not is_ratio and estimator != ERROR:
        raise InputError("estimator", "goes with {max_error}, as {max_ratio} is a bound on O/E")
    return RATIO


def check_of(
    call: Call, groups: Sequence[Selection], bounds: Bounds, min_rows: Any, rng: Any
) -> Check:
    """Judge all rows of a call, groups of them, and the increase over another model.

    Parameters
    ----------
    call : Call
        One estimator on one model, or on a model and the baseline.
    groups : sequence of Selection
        The slices of the rows.
    bounds, min_rows, rng
        As in `fastece.check`.
    """
    is_ratio = bounds.least is not None
    if not is_ratio:
        arguments.require_calibration_error(call, "a gate")
    min_rows = check_integer("min_rows", min_rows, 1, MAX_ROWS_NEEDED)
    key = new_key(rng)
    large_groups = [group for group in groups if group.n >= min_rows]
    small_groups = [group for group in groups if group.n < min_rows]
    has_increase = bounds.max_increase is not None
    n_intervals = 1 + len(large_groups) + (1 if has_increase else 0)
    # All intervals hold at the same time, also the interval of the increase (Bonferroni).
    alpha = (1 - call.level) / n_intervals
    all_rows = Selection(None, call.n, call.n, lambda: call.tables[0])
    selections = [all_rows, *large_groups]
    if is_ratio:
        parts = ratios_of_rows(call, selections, alpha, bounds)
    else:
        parts = errors_of_rows(call, selections, alpha, bounds, key)
    if has_increase:
        parts.append(increase_over_baseline(call, alpha, bounds, rng))
    level = f"{100 * call.level:g} % CI"
    if groups or has_increase:
        level = f"joint {level}"
    judged = [judge(part, level, min_rows) for part in parts]
    decisive = max(judged, key=decisiveness)
    first = judged[0]
    return Check(
        passed=IS_PASSED[decisive.verdict], line=line_of_all(decisive, call.n),
        rows_needed=rows_in_total(decisive, call.n), value=first.value,
        confidence_interval=first.confidence_interval, confidence_level=call.level,
        rows=(*judged, *(not_judged(group, bounds, min_rows) for group in small_groups)),
        **common_fields(call, "", key),
    )  # fmt: skip


def line_of_all(decisive: Judgement, n: int) -> str:
    """Write the line of the part that decides, with the rows that would if n cannot."""
    line = decisive.line
    needed = rows_in_total(decisive, n)
    if needed is None:
        if decisive.verdict == CANNOT_TELL and decisive.value == 0:
            line += "; without events it is not known how many rows would decide"
        return line
    if decisive.n == n:
        return f"{line}; about {needed} rows would decide, and there are {n}"
    return (
        f"{line}; about {needed} rows in total ({decisive.rows_needed} in this slice) would "
        f"decide, and there are {n} ({decisive.n})"
    )


def errors_of_rows(
    call: Call, selections: Sequence[Selection], alpha: float, bounds: Bounds, key: int
) -> list[Part]:
    """Estimate the error of all rows, which come first, and of each slice."""
    (estimator,) = call.estimators.values()
    # Posteriors need replicates for tests alone.
    n_resamples = 0 if estimator.posterior is not None else call.n_resamples
    # `slices_of` shares 1 minus the level among its groups.
    level = 1 - alpha * len(selections)
    one_model = replace(call, tables=call.tables[:1], level=level, n_resamples=n_resamples)
    rows = sorted(
        slices.slices_of(one_model, selections, key), key=lambda row: row.label is not None
    )
    if are_in_time([selection.label for selection in selections[1:]]):
        rows[1:] = sorted(rows[1:], key=attrgetter("label"))
    return [
        Part(name_slice(row.label), row.n, row.value, row.confidence_interval, bounds.bound)
        for row in rows
    ]


def ratios_of_rows(
    call: Call, selections: Sequence[Selection], alpha: float, bounds: Bounds
) -> list[Part]:
    """Measure O/E of all rows, which come first, and of each slice."""
    table = call.rows
    if table.n_problems > 1 or table.setting.is_top:
        rule = "must be binary or a class: O/E is that of one event"
        raise InputError("setting", rule, value=call.setting, hint="setting=1")
    parts = []
    for selection in selections:
        groups = call.groups
        if groups is not None and selection.rows is not None:
            groups = groups.where(selection.rows)
        part_call = replace(call, tables=[selection.make_table()], groups=groups)
        sample, _ = scale_weights(part_call.rows.samples(reads_only=True)[0])
        rows = risk.rows_of(sample)
        law = SamplingLaw(part_call.clusters, 1 - alpha, part_call.counts)
        ratio = ratio_of_rows(rows, law)
        part = Part(
            label=name_slice(selection.label),
            n=selection.n,
            value=ratio.value,
            interval=ratio.confidence_interval or ConfidenceInterval(math.nan, math.nan),
            bound=bounds.bound,
            least=bounds.least,
            n_events=effective_rows(rows.w / rows.c, rows.c * rows.y) if rows.y.any() else 0.0,
        )
        parts.append(part)
    return parts


def ratio_of_rows(rows: risk.RiskRows, law: SamplingLaw) -> Quantity:
    """Measure O/E with its interval, None where nothing varies."""
    if law.groups is not None and law.groups.count < 2:
        return Quantity(risk.observed_over_expected(rows))
    ratio = measure_ratio(rows, law)
    if ratio.value == math.inf:  # events that had no probability at all
        return Quantity(math.inf, ConfidenceInterval(math.inf, math.inf))
    return ratio


def increase_over_baseline(call: Call, alpha: float, bounds: Bounds, rng: Any) -> Part:
    """Compare the error of the model with the error of the baseline."""
    assert bounds.max_increase is not None
    with rename_arguments({"y_prob_a": "y_prob", "y_prob_b": "baseline"}):
        compare.check_same_classes(call)
        pair = compare.comparison_results(replace(call, level=1 - alpha), rng=rng)
    return Part(INCREASE, call.n, pair.value, pair.confidence_interval, bounds.max_increase)


def decisiveness(row: Judgement) -> tuple[int, float]:
    """Rank a judgement: the clearest failure decides, then the need of most rows."""
    if row.verdict == FAILS:
        low, high = row.confidence_interval
        if row.least is None:
            return 2, low - row.bound
        return 2, max(low / row.bound, row.least / high)
    if row.verdict == CANNOT_TELL:
        return 1, math.inf if row.rows_needed is None else row.rows_needed / row.n
    return 0, 0.0


@shows_options
def check(
    y_true: Any, y_prob: Any = None, *, max_error: float | None = None,
    max_ratio: float | None = None, baseline: Any = None, max_increase: float | None = None,
    estimator: Any = ERROR, by: Any = None, bins: Any = 4, cross: bool = False,
    min_rows: int = slices.MIN_ROWS, groups: Any = None, rng: Any = 0,
    **options: Unpack[ResamplingKeywords],
) -> Check:  # fmt: skip
    """Decide whether a calibration error is small enough, or more rows are needed.

    For rare events, whose errors are always small, O/E is judged instead: `max_ratio`.

    Parameters
    ----------
    y_true, y_prob, groups, **options
        As in `fastece.estimate`, with the same defaults, without `average`: class by class, the
        mean over classes is judged. All intervals hold at the same time at `confidence_level`.
    max_error : float
        The largest error that is allowed, more than 0; in its place may be `max_ratio`.
    max_ratio : float, optional
        The largest ratio R of observed and expected events that is allowed, more than 1. O/E has to
        lie in ``[1 / R, R]``: with 1.25, four to five events expected for five to four observed.
    baseline : array_like, optional
        Probabilities of another model for the same rows, such as the one that is in use.
    max_increase : float, optional
        How much larger than the error of the baseline the error may be; below 0, how much smaller
        it must be. Both go with `max_error`.
    estimator : str or object, default "ece_bayes"
        As in `fastece.estimate`; it goes with `max_error`.
    by, bins, cross
        As in `fastece.slices`: every slice has to pass too.
    min_rows : int, default 20
        Slices with fewer rows are listed, and not judged. A data set with fewer rows cannot tell,
        whatever its interval is.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same verdict.

    Returns
    -------
    Check

    Raises
    ------
    ValueError, TypeError
        As in `fastece.estimate`, `fastece.slices` and `fastece.compare`; for bounds outside their
        range, and for one of `baseline` and `max_increase` without the other.

    Notes
    -----
    An error passes where its interval lies below the bound, ``high <= max_error``, and fails where
    it lies above, ``low > max_error``. Where it holds the bound, these rows cannot tell. With the
    interval of 95 %, each of the two mistakes at the bound is meant to happen in at most 5 of 100
    test sets: the upper end of an interval that begins at 0 is a bound of 95 % by itself, and each
    end of another one is one of 97.5 %. An interval of 90 % would let an error at the bound pass in
    10. Measurements are in ``docs/evidence/decisions.md``.

    O/E passes where its interval lies in ``[1 / max_ratio, max_ratio]``, fails where it lies
    outside, and otherwise these rows cannot tell. It has the interval of `fastece.validate`. With
    fewer than 10 events the rows cannot tell either, except that a model fails which expects many
    and has none: each of the two mistakes at a bound happens in some 5 of 100 test sets at most. A
    model with an O/E of 1 needs some 140 events to pass a bound of 1.25 in half of all test sets,
    and 41 for 1.5.

    With slices and a baseline there are m intervals, each at the level ``1 - (1 -
    confidence_level) / m`` (Bonferroni): so all hold at the same time. The interval of the increase
    is made by `fastece.compare`.

    `rows_needed` takes the width of an interval to fall with the root of the number of rows, around
    its middle, or for one that begins at 0 from above alone. It is twice the number at which the
    interval would just leave out the bound, and approximate: `fastece.rows_needed` simulates.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import check
    >>> rng = np.random.default_rng(0)
    >>> p, country = rng.random(3000), rng.choice(["de", "fr", "uk"], 3000)
    >>> y = rng.random(3000) < np.where(country == "uk", p**1.5, p)
    >>> check(y, p, max_error=0.05).passed
    True
    >>> print(check(y, p, max_error=0.05, by=country))
    fails: calibration error of slice uk 0.082 (joint 95 % CI 0.053 to 0.116), at most 0.05 allowed
      part      rows  error   joint 95 % CI  allowed  verdict      rows needed  in total
      all rows  3000  0.029      [0, 0.046]     0.05  passes                 -         -
      slice uk  1004  0.082  [0.053, 0.116]     0.05  fails                  -         -
      slice fr   970  0.039      [0, 0.085]     0.05  cannot tell         5600     17000
      slice de  1026  0.026      [0, 0.074]     0.05  cannot tell         4500     13000
    >>> risk = np.exp(rng.normal(-7.5, 0.8, 200_000))  # clicks of 0.08 % of the readers
    >>> click = rng.random(200_000) < 1.8 * risk
    >>> check(click, risk, max_error=0.001).passed
    True
    >>> print(check(click, risk, max_ratio=1.25))
    fails: O/E 1.87 (95 % CI 1.66 to 2.10), 0.8 to 1.25 allowed
    """
    if "average" in options:
        raise InputTypeError("average", "must be left out, as one error is judged")
    bounds = check_bounds(max_error, max_ratio, max_increase, baseline is not None)
    estimator = choose_estimator(estimator, bounds)
    models = {"y_prob": y_prob}
    if baseline is not None:
        models["baseline"] = baseline
    call = arguments.read_call("check", y_true, models, estimator=estimator, **options)
    call = arguments.add_groups(call, groups, y_prob)
    slices_of_rows: list[Selection] = []
    if by is not None:
        one_model = replace(call, tables=call.tables[:1])
        slices_of_rows = select_by_columns(one_model, by, y_prob, bins, cross)
    return check_of(call, slices_of_rows, bounds, min_rows, rng)


# --- assertions -----------------------------------------------------------------------------


class CheckKeywords(ResamplingKeywords, total=False):
    """The keywords of `fastece.check` beside its first bound."""

    max_ratio: float | None
    baseline: Any
    max_increase: float | None
    estimator: Any
    by: Any
    bins: Any
    cross: bool
    min_rows: int
    groups: Any
    rng: Any


@shows_options
def assert_calibrated(
    y_true: Any, y_prob: Any = None, *, max_error: float | None = None, when_unsure: str = "warn",
    **options: Unpack[CheckKeywords],
) -> Check:  # fmt: skip
    """Raise an AssertionError where an error, or O/E, is not within its bounds.

    Parameters
    ----------
    y_true, y_prob, max_error, **options
        As in `fastece.check`; `max_ratio` may take the place of `max_error`.
    when_unsure : {"warn", "fail", "pass"}, default "warn"
        Where the rows cannot tell: issue a UserWarning with the number of rows that would, raise
        an AssertionError, or do nothing.

    Returns
    -------
    Check
        The result of `fastece.check`.

    Raises
    ------
    AssertionError
        Where it fails. The message is the text of the check.
    ValueError, TypeError
        As in `fastece.check`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.decisions import assert_calibrated
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> assert_calibrated(y, p, max_error=0.05).passed
    True
    >>> try:
    ...     assert_calibrated(y, p**2, max_error=0.05)
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    fails: calibration error 0.168 (95 % CI 0.148 to 0.187), at most 0.05 allowed
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    check_choice("when_unsure", when_unsure, ("warn", "fail", "pass"))
    result = check(y_true, y_prob, max_error=max_error, **options)
    is_unsure = result.passed is None
    if result.passed is False or (is_unsure and when_unsure == "fail"):
        hint = "fastece.calibration_report(y_true, y_prob) shows where the model is off."
        raise AssertionError(f"{result}\n\n{hint}")
    if is_unsure and when_unsure == "warn":
        warn_outside(str(result))
    return result
