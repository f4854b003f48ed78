"""A gate: whether calibration errors lie below the bounds that a caller allows."""

import math
import re
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from fastece.data.errors import InputTypeError, rename_arguments
from fastece.data.parameters import check_integer, check_real
from fastece.display.documents import Document, Section
from fastece.display.numbers import ConfidenceInterval, Number, format_interval
from fastece.display.results import EstimatorResult, Record
from fastece.inference import compare, estimate, rows_needed, slices
from fastece.resampling import arguments
from fastece.resampling.draws import new_key

PASSES, FAILS, UNSURE, SKIPPED = "passes", "fails", "cannot tell", "not judged"
PASSED = {PASSES: True, UNSURE: None, FAILS: False}  # what decides comes last
TAGS = {PASSES: "system-out", FAILS: "failure", UNSURE: "skipped", SKIPPED: "skipped"}
ALL, SLICE, INCREASE = "all rows", "slice {}", "increase over the baseline"
LINE, FEW = "{}: {} {} ({} {}), at most {:g} allowed", "not judged: {} has {} rows, fewer than {}"
MORE = "; about {} rows would tell, and there are {}"
XML, END = '<?xml version="1.0" encoding="UTF-8"?>', "</testsuite>\n"
SUITE = '<testsuite name="{}" tests="{}" failures="{}" errors="0" skipped="{}">'
CASE = '<testcase classname="{0}" name="{1}"><{2}>{3}</{2}></testcase>'
# Twice the rows at which the interval, as it is on average, no longer holds the bound: so that it
# does not in some three of four samples. The middle of an interval is not known to this part of
# half its width.
MARGIN, NEAREST = 2.0, 0.2
# No test set is large enough for a bound of 0.
LEAST_ERROR, MOST_ROWS = 1e-6, int(rows_needed.MOST_ANSWER)
# The models of a comparison are these arguments here.
MODELS = {"y_prob_a": "y_prob", "y_prob_b": "baseline"}
# Characters that XML 1.0 does not have, not even escaped.
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, eq=False)
class Judgement(Record):
    """Verdict on one error: of all rows, of a slice, or its increase.

    Attributes
    ----------
    label : str
        "all rows", "slice west" and the like, or "increase over the baseline".
    n : int
        Its rows of positive weight.
    value : float
        The error, or the increase; nan where it is not judged.
    confidence_interval : ConfidenceInterval
        Its interval, which holds at the same time as all others.
    bound : float
        The largest one that is allowed.
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
    verdict: str
    rows_needed: int | None
    line: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Check(EstimatorResult):
    """Verdict on the calibration errors of a model; the result of `fastece.check`.

    Attributes
    ----------
    passed : bool or None
        True where everything that is judged passes, False where something fails, else None: these
        rows cannot tell.
    line : str
        The verdict with the number that decides, as one line.
    rows_needed : int or None
        About how many rows such as these would decide; None where these do.
    value, confidence_interval : float, ConfidenceInterval
        The error of all rows.
    confidence_level : float
        Of all intervals at the same time.
    rows : tuple of Judgement
        Of all rows, of the slices, and of the increase over the baseline.

    Also ``n``, ``n_groups``, ``key``, ``estimator`` and ``setting``, as of `fastece.Estimate`.
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
        interval = f"{100 * self.confidence_level:g} % CI"
        return [
            {"part": x.label, "rows": x.n, "error": Number(x.value, x.confidence_interval),
             interval: x.confidence_interval, "allowed": Number(x.bound, form="g"),
             "verdict": x.verdict, "rows_needed": x.rows_needed} for x in self.rows
        ]  # fmt: skip

    def document(self) -> Document:
        """Describe the verdict in a line, and several parts in a table below."""
        table = self._table(self._rows()) if len(self.rows) > 1 else None
        return Document(self.line, sections=[Section(table=table, notes=self.notes)])

    def to_junit(self, title: str = "fastece check") -> str:
        """Return a JUnit XML file with a test case for each part.

        A part that these rows cannot judge, or that is not judged, is skipped.
        """
        name, tags = escape(title), [TAGS[x.verdict] for x in self.rows]
        suite = SUITE.format(name, len(tags), *map(tags.count, ("failure", "skipped")))
        texts = [(escape(x.label), TAGS[x.verdict], escape(x.line)) for x in self.rows]
        cases = [CASE.format(name, *text) for text in texts]
        text = "\n".join([XML, suite, *cases, END])
        return NOT_XML.sub(lambda found: repr(found[0])[1:-1], text)


# --- judging --------------------------------------------------------------------------------


def about(rows: float) -> int:
    """Round a number of rows to two digits."""
    return int(float(f"{min(rows, MOST_ROWS):.2g}"))


def rows_for(n: int, low: float, high: float, bound: float) -> int:
    """Estimate how many rows make an interval leave out a bound that it holds.

    Its width falls with the root of the number of rows. An interval that begins at 0 becomes
    shorter from above alone.
    """
    half = (high - low) / 2
    far = max(abs(bound - (low + high) / 2), NEAREST * half)
    return about(MARGIN * n * (high / bound if low == 0 < bound else half / far) ** 2)


def judge(level: str, label: str, n: int, value: float, interval: Any, bound: float) -> Judgement:
    """Compare an interval with the largest error that is allowed."""
    low, high = interval
    verdict = PASSES if high <= bound else FAILS if low > bound else UNSURE
    rows = rows_for(n, low, high, bound) if verdict == UNSURE and not math.isnan(low) else None
    name = {ALL: "calibration error", INCREASE: label}.get(label, f"calibration error of {label}")
    ends = format_interval(interval).strip("[]").replace(",", " to")
    line = LINE.format(verdict, name, Number(value, interval), level, ends, bound)
    return Judgement(label, n, value, interval, bound, verdict, rows, " ".join(line.split()))


def rank(row: Judgement) -> tuple[int, float]:
    """Rank a judgement: the clearest failure decides, then the need of most rows."""
    excess, needed = row.confidence_interval.low - row.bound, (row.rows_needed or math.inf) / row.n
    return [*PASSED].index(row.verdict), {UNSURE: needed, FAILS: excess}.get(row.verdict, 0.0)


def check_bounds(max_error: Any, max_increase: Any, has_baseline: bool) -> tuple[float, Any]:
    """Check the bounds, of which the second one goes with a baseline."""
    if has_baseline != (max_increase is not None):
        raise InputTypeError("max_increase", "goes with {baseline}, which needs it too")
    increase = max_increase and check_real("max_increase", max_increase, -1.0, 1.0)
    return check_real("max_error", max_error, LEAST_ERROR, 1.0), increase


def check_of(call: arguments.Call, groups: Any, bounds: Any, min_rows: Any, rng: Any) -> Check:
    """Judge all rows of a call, groups of them, and the increase over another."""
    arguments.require_calibration_error(call, "a gate")
    least = check_integer("min_rows", min_rows, 1, MOST_ROWS)
    (source, *others), (estimator,) = call.sources, call.estimators.values()
    whole = slices.Group(None, call.n, call.n, lambda: source, "")
    judged, key = [whole, *(x for x in groups if x.n >= least)], new_key(rng)
    # All intervals hold at the same time, that of the increase too (Bonferroni).
    alpha = (1 - call.level) / (len(judged) + len(others))
    level = f"{'joint ' * (len(groups) + len(others) > 0)}{100 * call.level:g} % CI"
    # Posteriors need replicates for tests alone.
    count = 0 if estimate.posterior_maker(estimator) else call.n_resamples
    own = replace(call, sources=[source], level=1 - alpha * len(judged), n_resamples=count)
    parts: list[Any] = [
        (ALL if x.label is None else SLICE.format(x.label), x.n, x.value, x.confidence_interval,
         bounds[0]) for x in slices.slices_of(own, judged, key)
    ]  # fmt: skip
    parts.sort(key=lambda part: part[0] != ALL)
    if others:
        with rename_arguments(MODELS):
            found = compare.comparison_results(replace(call, level=1 - alpha), rng=rng)
        parts.append((INCREASE, call.n, found.value, found.confidence_interval, bounds[1]))
    rows = [judge(level, *part) for part in parts]
    one = max(rows, key=rank)
    needed = one.rows_needed and about(one.rows_needed * call.n / one.n)
    few = [(SLICE.format(x.label), x.n) for x in groups if x.n < least]
    rest: Any = math.nan, ConfidenceInterval(math.nan, math.nan), bounds[0], SKIPPED, None
    rows += [Judgement(*x, *rest, FEW.format(*x, least)) for x in few]  # type: ignore[call-arg]
    return Check(
        passed=PASSED[one.verdict], line=one.line + MORE.format(needed, call.n) * bool(needed),
        rows_needed=needed, value=rows[0].value, confidence_interval=rows[0].confidence_interval,
        confidence_level=call.level, rows=tuple(rows), **call.facts("", key),
    )  # fmt: skip


def check(
    y_true: Any, y_prob: Any = None, *, max_error: float, baseline: Any = None,
    max_increase: float | None = None, estimator: Any = "ece_bayes", by: Any = None,
    bins: Any = 4, cross: bool = False, min_rows: int = slices.LEAST_ROWS, groups: Any = None,
    rng: Any = 0, **options: Any,
) -> Check:  # fmt: skip
    """Decide whether a calibration error is small enough, or more rows are needed.

    Parameters
    ----------
    y_true, y_prob, groups, **options
        As in `fastece.estimate`, with the same defaults, but no `average`: class by class it is
        the mean over classes that is judged. `confidence_level` is that of all intervals at the
        same time.
    max_error : float
        The largest error that is allowed, more than 0.
    baseline : array_like, optional
        Probabilities of another model for the same rows, such as the one that is in use.
    max_increase : float, optional
        By how much the error may exceed that of the baseline; below 0, by how much it must be
        smaller.
    estimator : str or object, default "ece_bayes"
        As in `fastece.estimate`.
    by, bins, cross
        As in `fastece.slices`: every slice has to pass too.
    min_rows : int, default 20
        Slices with fewer rows are listed, and not judged.
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
    10. ``docs/gate.md`` has what was measured.

    With slices and a baseline there are m intervals, each at the level ``1 - (1 -
    confidence_level) / m`` (Bonferroni): so all hold at the same time. That of the increase is that
    of `fastece.compare`.

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
      part      rows  error         95 % CI  allowed  verdict      rows needed
      all rows  3000  0.029      [0, 0.046]     0.05  passes                 -
      slice uk  1004  0.082  [0.053, 0.116]     0.05  fails                  -
      slice fr   970  0.039      [0, 0.085]     0.05  cannot tell         5600
      slice de  1026  0.026      [0, 0.074]     0.05  cannot tell         4500
    """
    if "average" in options:
        raise InputTypeError("average", "must be left out, as one error is judged")
    arguments.check_single(estimator)
    bounds = check_bounds(max_error, max_increase, baseline is not None)
    models = {"y_prob": y_prob, **({} if baseline is None else {"baseline": baseline})}
    call = arguments.read_call("check", y_true, models, estimator=estimator, **options)
    call = arguments.add_groups(call, groups, y_prob)
    first = replace(call, sources=call.sources[:1])
    parts = [] if by is None else slices.groups_by(first, by, y_prob, bins, cross)
    return check_of(call, parts, bounds, min_rows, rng)
