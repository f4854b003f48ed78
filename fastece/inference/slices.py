"""Slices: calibration errors of selected rows, with intervals that hold simultaneously."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from fastece.data.errors import InputTypeError
from fastece.data.options import shows_options
from fastece.data.samples import scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import with_threads
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import (
    SHOWN_AS_ZERO,
    ConfidenceInterval,
    Number,
    PValue,
    outside_text,
    smallest_p,
)
from fastece.display.pictures import draw_slices
from fastece.display.results import MIN_GROUPS, Record, Result, group_notes, sample_text
from fastece.inference.estimate import INVERSION, POSTERIOR, Estimate, estimate_of
from fastece.inference.joint import joint_p_values
from fastece.inference.selections import (
    Selection,
    are_in_time,
    select_by_class,
    select_by_columns,
)
from fastece.inference.slice_errors import draw_errors
from fastece.inference.slice_tests import p_values_of_slices
from fastece.resampling.adaptive import ADAPTIVE
from fastece.resampling.arguments import (
    ResamplingKeywords,
    add_groups,
    check_single,
    read_call,
    require_calibration_error,
)
from fastece.resampling.calibration_test import calibration_result
from fastece.resampling.call import Call, common_fields
from fastece.resampling.draws import new_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Slices of fewer effective rows have a note in the table.
MIN_ROWS = 20
TOO_FEW = "too few rows"
# The note of slices of few groups, and its sentence where all rows together have enough of them.
FEW_GROUPS = "few groups"
FEW_GROUPS_OF_SLICES = (
    f"With fewer than {MIN_GROUPS} groups in a slice, how much its rows depend on each other is "
    "hardly known: its interval and p-value may be too sure."
)
# Remarks on a slice whose p-value and interval disagree on an error of 0, which a test finds before
# its size is known.
SIZE_UNCERTAIN = "size uncertain"
NOT_REJECTED = "test does not reject"
# The smallest p-value of replicates is at most the level of each slice over this number; else the
# upper end of its interval would be the largest error that there is.
P_VALUES_BELOW_LEVEL = 4
# Rows that are drawn for the tests of all slices at most, which takes some two seconds. Beyond it
# p-values come from Bayes factors; with other estimators they are adjusted by Holm's method.
MAX_DRAWN_ROWS = 2 * 10**9
# The cost of a test without any rows, in drawn rows.
ROWS_PER_TEST = 1000
# How p-values are adjusted.
MIN_P = "step-down min-p"
HOLM = "Holm"
# Slices that are printed.
MAX_LINES = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Record):
    """Calibration error of one slice of the rows.

    Attributes
    ----------
    label : str, int, float or bool
        The label of the slice, such as "(20, 35]" for numbers that are cut; with several columns
        their names come first, as in "age (20, 35], sex f". In tables of classes the class.
    n : int
        Rows of positive weight; for a class, the rows with this label.
    n_effective : float
        Kish's number of rows ``(sum w)^2 / sum w^2`` (Kish 1965, "Survey sampling", section 11.7),
        divided by the design effect of groups. All rows contribute to a class.
    events, predicted : float
        Weighted frequency of the event, and mean score: where `events` is smaller, scores are too
        high. For top labels these are the accuracy and the mean confidence. nan where a slice has a
        mean over classes.
    value : float
        The calibration error.
    low, high : float
        The interval, which holds simultaneously with the intervals of all slices.
    p_value : float
        P-value of the hypothesis that the slice is calibrated, adjusted for all slices: the
        probability that any calibrated slice has a p-value of at most alpha is at most alpha.
    raw_p_value : float
        The p-value of this slice alone.
    note : str
        "too few rows" for a slice with `n_effective` below 20; for a class "never the label" where
        `n` is 0; and "few groups" for a slice with fewer than 20 groups; else "".
    """

    label: Any
    n: int
    n_effective: float
    events: float
    predicted: float
    value: float
    low: float
    high: float
    p_value: float
    raw_p_value: float
    note: str

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """Ends `low` and `high` of the interval."""
        return ConfidenceInterval(self.low, self.high)


@dataclass(frozen=True, eq=False, kw_only=True)
class Slices(Result, Sequence[Slice]):
    """Calibration errors of all slices.

    A sequence of `Slice`, which `fastece.slices` returns: dates in the order of time, and else the
    one with the most evidence of miscalibration first.

    Attributes
    ----------
    rows : tuple of Slice
    confidence_level : float
        The level at which all intervals hold simultaneously.
    method : {"posterior", "test inversion"}
        The method of the intervals, as in `Estimate`.
    correction : {"step-down min-p", "Holm"}
        How p-values are adjusted: on draws that all slices share, or whatever they have in common.
    n : int
        Rows of positive weight.
    n_resamples : int
        Replicates of each slice; 0 where p-values come from Bayes factors.
    key : int
        The number that all draws depend on.
    estimator, setting : str
        The estimator with its parameters, and the setting that was used.
    """

    rows: tuple[Slice, ...]
    confidence_level: float
    method: str
    correction: str
    n: int
    n_resamples: int
    key: int
    estimator: str
    setting: str
    n_groups: int | None = None

    _derived = ("notes",)

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the table."""
        notes = group_notes(self.n_groups)
        if not notes and any(FEW_GROUPS in row.note for row in self):
            return [FEW_GROUPS_OF_SLICES]
        return notes

    @property
    def test(self) -> str:
        """The test that p-values come from."""
        if self.method == INVERSION:
            return "test of this error"
        return "adaptive test" if self.n_resamples else "Bayes factor"

    @property
    def off(self) -> int:
        """Number of slices that are miscalibrated by their joint p-values."""
        return sum(row.p_value <= 1 - self.confidence_level for row in self)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Slice: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Slice]: ...
    def __getitem__(self, index: int | slice) -> Slice | Sequence[Slice]:
        return self.rows[index]

    def document(self) -> Document:
        """Describe the slices with the most evidence."""
        title = f"{self.estimator}, setting {self.setting}: {sample_text(self)}"
        notes = [
            f"Joint intervals by {self.method} (Bonferroni), p-values by {self.test} "
            f"({self.correction}).",
            *self.notes,
        ]
        n_hidden = len(self) - MAX_LINES
        if n_hidden > 0:
            notes.insert(0, f"and {n_hidden} groups with less evidence")
        return Document(title, sections=[Section(table=self.table("group"), notes=notes)])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the error of each slice with its interval; needs matplotlib.

        The slices stand in the order of the table, with their rows in brackets. Filled points are
        slices that are miscalibrated by their joint p-value.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        title = f"{self.estimator}, setting {self.setting}"
        return draw_slices(self.rows, ax, self.confidence_level, title)

    def table(self, name: str, max_lines: int = MAX_LINES) -> Table:
        """Describe the first slices in a table whose first column is named `name`."""
        is_top = self.setting in ("confidence", "class vectors")
        means = ["accuracy", "confidence"] if is_top else ["observed", "predicted"]
        interval = f"joint {100 * self.confidence_level:g} % CI"
        head = [name, "rows", *means, "value", interval, "p-value", ""]
        rows = [self._table_row(row) for row in self.clearest(max_lines)]
        if not any(note for *_, note in rows):  # without notes they need no column
            return Table(head[:-1], [row[:-1] for row in rows])
        return Table(head, rows)

    def clearest(self, n: int) -> list[Slice]:
        """Return the n slices with the most evidence, in the order of the table."""
        evidence = [(math.isnan(row.p_value), row.p_value) for row in self.rows]
        order = sorted(range(len(self)), key=evidence.__getitem__)
        return [self.rows[k] for k in sorted(order[:n])]

    def order(self, n: int) -> str:
        """Describe the order of a table of the n slices with the most evidence."""
        if not are_in_time([row.label for row in self.rows]):
            return "most evidence first"
        return "in the order of time" if n >= len(self) else "the clearest in the order of time"

    def _table_row(self, row: Slice) -> tuple[Any, ...]:
        """Describe a slice in cells, with its remarks in the last one."""
        interval = row.confidence_interval
        numbers = [Number(number, interval) for number in (row.events, row.predicted, row.value)]
        remarks = [row.note, self._disagreement(row), outside_text(row.value, interval)]
        p_value = PValue(row.p_value, self.bound_of(row))
        note = "; ".join(filter(None, remarks))
        return (str(row.label), row.n, *numbers, interval, p_value, note)

    def _disagreement(self, row: Slice) -> str:
        """Write that a slice's p-value and interval disagree on an error of 0; "" if not."""
        alpha = 1 - self.confidence_level
        if row.low > SHOWN_AS_ZERO:
            return NOT_REJECTED if row.p_value > alpha else ""
        return SIZE_UNCERTAIN if row.p_value <= alpha else ""

    def bound_of(self, row: Slice) -> float | None:
        """Return the p-value of a slice if draws give no smaller one, and it is a bound."""
        smallest = smallest_p(self.n_resamples) if self.n_resamples else 0.0
        return row.p_value if row.raw_p_value <= smallest else None

    def _columns(self) -> dict[str, Any]:
        names = [name for name in Slice.__dataclass_fields__ if not name.startswith("_")]
        return {name: [getattr(row, name) for row in self] for name in names}


# --- the slices of a call -------------------------------------------------------------------


def mean_outcome_and_score(table: RowTable) -> tuple[float, float]:
    """Compute the frequency of the event and the mean score; nan for several problems."""
    if table.n_problems > 1:
        return math.nan, math.nan
    sample, _ = scale_weights(table.samples(reads_only=True)[0])
    frequency = float(np.average(sample.y, weights=sample.total_weights))
    return frequency, float(np.average(sample.s, weights=sample.total_weights))


def can_test(call: Call, selections: Sequence[Selection], n_resamples: int) -> bool:
    """Return whether every slice can be tested by so many draws of labels."""
    table = call.tables[0]
    if not call.n_resamples or (table.stream is not None and table.n_problems > 1):
        return False
    n_rows = call.n if call.counts is None else call.counts.size
    sizes = [
        n_rows if selection.rows is None else selection.rows.size * table.n_problems
        for selection in selections
    ]
    drawn_rows = n_resamples * (sum(sizes) + ROWS_PER_TEST * len(selections))
    return drawn_rows <= MAX_DRAWN_ROWS


class SliceResult(NamedTuple):
    """Results of one slice: its estimate, and the p-value of a test if there is one.

    Attributes
    ----------
    estimate : Estimate
    p_value : float or None
    n_effective : float
    events, predicted : float
    """

    estimate: Estimate
    p_value: float | None
    n_effective: float
    events: float
    predicted: float

    @property
    def log_bayes_factor(self) -> float:
        """Evidence of a posterior against calibration, at least 0; 0 without a posterior.

        It exceeds ``log(1 / alpha)`` in at most a share alpha of calibrated samples, by Markov's
        inequality.
        """
        return max(float(getattr(self.estimate._parts[0], "log_bayes_factor", 0.0)), 0.0)

    @property
    def raw_p_value(self) -> float:
        """The p-value of the test, or else the inverse of the Bayes factor."""
        return math.exp(-self.log_bayes_factor) if self.p_value is None else self.p_value

    @property
    def evidence(self) -> float:
        """Minus the logarithm of the p-value."""
        return self.log_bayes_factor if self.p_value is None else -math.log(self.p_value)

    @property
    def rank(self) -> tuple[Any, ...]:
        """Key by which slices are sorted: most evidence first, and nan last."""
        low = self.estimate.confidence_interval.low
        evidence = self.evidence
        is_missing = math.isnan(evidence)
        return is_missing, -evidence, -self.log_bayes_factor, -low, -self.estimate.value


def slices_of(call: Call, selections: Sequence[Selection], key: int) -> Slices:
    """Compute the table of selections, most evidence first, or in the order of time."""
    ((name, estimator),) = call.estimators.items()
    alpha = (1 - call.level) / len(selections)
    has_posterior = estimator.posterior is not None
    n_resamples = max(call.n_resamples, count_replicates(call, selections))
    can_draw = can_test(call, selections, n_resamples)
    if has_posterior and not can_draw:
        n_resamples = 0
    call_of_slices = replace(call, average="macro", level=1 - alpha, n_resamples=n_resamples)
    tests_cells = has_posterior and can_draw
    shares_draws = can_draw and share_rows(call, selections)
    call_on_thread = replace(call_of_slices, workers=call.workers._replace(jobs=1))
    measure = partial(measure_slice, call_on_thread, key, tests_cells and not shares_draws)
    results = with_threads(call.workers.jobs, lambda run: [*run(measure, selections)])
    if tests_cells and shares_draws:
        alone, joint = p_values_of_slices(call_of_slices, selections, key)
        pairs = zip(results, alone.tolist(), strict=True)
        results = [result._replace(p_value=p_value) for result, p_value in pairs]
    else:
        alone = np.array([result.raw_p_value for result in results])
        errors = draw_errors(call_of_slices, selections, estimator, key) if shares_draws else None
        joint = joint_p_values(alone, errors)
    ranked = [
        (result.rank, make_slice(selection, result, p_value))
        for selection, result, p_value in zip(selections, results, joint.tolist(), strict=True)
    ]
    rows = [row for _, row in sorted(ranked, key=itemgetter(0))]
    if are_in_time([row.label for row in rows]):
        rows.sort(key=attrgetter("label"))
    fields = common_fields(call, name, key)
    fields |= {"confidence_level": call.level, "n_resamples": n_resamples}
    return Slices(
        rows=tuple(rows),
        method=POSTERIOR if has_posterior else INVERSION,
        correction=MIN_P if shares_draws else HOLM,
        **fields,
    )


def count_replicates(call: Call, selections: Sequence[Selection]) -> int:
    """Count the replicates that the p-values of all different selections need."""
    n_slices = len(selections)
    if share_rows(call, selections):
        rows = (None if each.rows is None else each.rows.tobytes() for each in selections)
        problems = (each.problem for each in selections)
        n_slices = len(set(zip(rows, problems, strict=True)))
    return math.ceil(P_VALUES_BELOW_LEVEL * n_slices / (1 - call.level))


def share_rows(call: Call, selections: Sequence[Selection]) -> bool:
    """Return whether all selections have rows or problems of the table of a call."""
    has_rows = call.tables[0].stream is None
    are_of_it = (each.rows is not None or each.problem is not None for each in selections)
    return has_rows and all(are_of_it)


def measure_slice(call: Call, key: int, has_own_test: bool, selection: Selection) -> SliceResult:
    """Estimate the error of a selection, and perhaps test whether it is calibrated.

    With a posterior, the p-value comes from the adaptive test if there is one, and otherwise from
    the Bayes factor. Without a posterior it is the p-value of the estimate.
    """
    table = selection.make_table()
    groups = None if call.groups is None else call.groups.where(selection.rows)
    call = replace(call, tables=[table], groups=groups)
    (name,) = call.estimators
    estimate = estimate_of(call, name, key)
    p_value = estimate.p_value
    if has_own_test:
        p_value = calibration_result(call.with_estimator(ADAPTIVE), "", key).p_value
    events, predicted = mean_outcome_and_score(table)
    return SliceResult(
        estimate=estimate,
        p_value=p_value,
        n_effective=selection.n_effective / call.design_effect,
        events=events,
        predicted=predicted,
    )


def make_slice(selection: Selection, result: SliceResult, p_value: float) -> Slice:
    """Make the row of a selection, with its joint p-value."""
    note = selection.note
    if not note and result.n_effective < MIN_ROWS:
        note = TOO_FEW
    n_groups = result.estimate.n_groups
    if n_groups is not None and n_groups < MIN_GROUPS:
        note = f"{note}; {FEW_GROUPS}" if note else FEW_GROUPS
    low, high = result.estimate.confidence_interval
    return Slice(
        label=selection.label,
        n=selection.n,
        n_effective=result.n_effective,
        events=result.events,
        predicted=result.predicted,
        value=result.estimate.value,
        low=low,
        high=high,
        p_value=p_value,
        raw_p_value=result.raw_p_value,
        note=note,
    )


@shows_options
def slices(
    y_true: Any, y_prob: Any = None, *, by: Any = None, estimator: Any = "ece_bayes",
    n_resamples: int = 1999, rng: Any = 0, bins: Any = 4, cross: bool = False,
    groups: Any = None, **options: Unpack[ResamplingKeywords],
) -> Slices:  # fmt: skip
    """Estimate the calibration error of each slice of the rows.

    The slice with the most evidence is the first; dates are in the order of time.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.estimate`, with the same defaults, but without `average`: class by class, a
        slice has the mean over classes. All intervals hold simultaneously at `confidence_level`.
    by : (n,) array_like, or a dict or data frame of such columns, optional
        The slice of each row: numbers, strings, intervals of `pandas.qcut` or any other hashable
        values, none of them missing. A column with more than 20 different numbers is cut into
        intervals, unless it is a category of pandas; more than 20 different dates, or texts such as
        2026-01-31, are put into months, quarters or years. Each column of a dict or a data frame
        has its own slices, such as "age (20, 35]" and "sex f", in one table. With
        ``setting="classwise"`` and without `by`, the slices are the classes, each against the rest
        on all rows.
    estimator : str or object, default "ece_bayes"
        As in `fastece.ece`.
    n_resamples : int, default 1999
        Replicates for the tests; with many different slices G there are more,
        ``4 G / (1 - confidence_level)``.
    rng : None, int or numpy.random.Generator, default 0
        Seed of the tests: the same seed gives the same result.
    bins : int, sequence of float or None, default 4
        Number of intervals of equal weight that such a column is cut into, fewer where many of its
        numbers are equal; or the edges at which every column of numbers is cut, of which the first
        and the last may be infinite. The first interval includes both of its ends, the others their
        upper end. With None every number, and every date, is a slice.
    cross : bool, default False
        Whether the slices are the combinations of all columns that occur, such as
        "age (20, 35], sex f".
    groups : (n,) array_like, optional
        As in `fastece.estimate`: rows that belong together, in one slice or in several.

    Returns
    -------
    Slices
        A sequence of `Slice`, which prints as a table.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.estimate`; for labels that are missing or not one a row, and for numbers
        outside the edges.

    Notes
    -----
    With G slices, each interval is the interval of `fastece.estimate` on the rows of the slice at
    the level ``1 - (1 - confidence_level) / G`` (Bonferroni). The intervals therefore cover all
    true errors simultaneously at `confidence_level`, whichever rows the slices share.

    With an estimator that has a posterior, the p-value comes from the adaptive test of
    `fastece.calibration_test`. The outcomes of all rows are drawn once, and every slice is tested
    on its part of each draw. The joint p-value is adjusted by step-down min-p (Westfall and Young
    1993, "Resampling-based multiple testing", algorithm 2.8): with the raw p-values
    ``p_1 <= ... <= p_G`` of the data, and those of draw r among all draws, ``p_i(r)``, it is

    ``max_{j <= k} (1 + #{r: min_{i >= j} p_i(r) <= p_j}) / (n_resamples + 1)``.

    Draws with the same raw p-value are ordered by the geometric mean of the p-values of the three
    statistics. So slices that share rows cost less than their number, and a column that is named
    five times costs nothing. The probability that a calibrated slice has a joint p-value of at most
    alpha is at most alpha, whatever the other slices are. With `groups`, the dependence of outcomes
    is estimated from all rows.

    The test may reject where the interval still begins at 0, as it takes less evidence to show that
    there is an error than to measure it: the table then says "size uncertain". For streams, and
    where the tests would take more than some seconds, the p-value is the inverse of the Bayes
    factor, which is valid by Markov's inequality and conservative. These p-values share no draws,
    so they are adjusted as Holm (1979, "A simple sequentially rejective multiple test procedure")
    does: the j-th smallest is multiplied by ``G - j + 1``. With other estimators, the raw p-value
    is the one of `fastece.estimate`, and the interval begins at 0 exactly where it exceeds ``(1 -
    confidence_level) / G``. The joint p-value is adjusted by step-down min-p too: p_i(r) is the
    share of draws in which the error of slice i is as large as in draw r. Errors of small slices by
    other estimators are inflated by noise, so they cannot be compared with errors of large slices;
    the errors of the default can, except near 0, where small slices look worse: compare intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import slices
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.random(3000), rng.choice(["north", "south", "west"], 3000)
    >>> y = rng.random(3000) < np.where(site == "west", p**1.5, p)
    >>> table = slices(y, p, by=site)
    >>> print(table)
    BayesCurve(), setting binary: 3000 rows
      group  rows  observed  predicted  value   joint 95 % CI   p-value
      west   1004     0.402      0.488  0.082  [0.055, 0.114]  <=0.0015
      south   970     0.520      0.497  0.039      [0, 0.077]      0.23
      north  1026     0.508      0.507  0.026      [0, 0.065]      0.43
      Joint intervals by posterior (Bonferroni), p-values by adaptive test (step-down min-p).
    >>> table[0].label
    'west'

    Numbers are cut at their quartiles, and a column of a data frame or a dict is named.

    >>> age = rng.integers(18, 91, 3000)
    >>> print(slices(y, p, by={"age": age, "site": site}, bins=2))
    BayesCurve(), setting binary: 3000 rows
      group         rows  observed  predicted  value   joint 95 % CI   p-value
      site west     1004     0.402      0.488  0.082  [0.053, 0.118]  <=0.0025
      age [18, 54]  1517     0.473      0.503  0.038      [0, 0.075]     0.037  size uncertain
      site south     970     0.520      0.497  0.039      [0, 0.089]      0.31
      site north    1026     0.508      0.507  0.026      [0, 0.079]      0.65
      age (54, 90]  1483     0.479      0.492  0.026      [0, 0.073]      0.65
      Joint intervals by posterior (Bonferroni), p-values by adaptive test (step-down min-p).
    >>> slices(y, p, by={"age": age, "site": site}, bins=2, cross=True)[0].label
    'age [18, 54], site west'
    """
    if "average" in options:
        raise InputTypeError("average", "must be left out, as a slice has one value")
    check_single(estimator)
    call = read_call(
        "slices", y_true, {"y_prob": y_prob}, estimator=estimator, n_resamples=n_resamples,
        **options,
    )  # fmt: skip
    call.tables[0].need_shared_rows("slices")
    require_calibration_error(call, "slices")
    call = add_groups(call, groups, y_prob)
    if by is None:
        selections = select_by_class(call)
    else:
        selections = select_by_columns(call, by, y_prob, bins, cross)
    return slices_of(call, selections, new_key(rng))
