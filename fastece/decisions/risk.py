"""The risk-coverage curve: how wrong the most confident rows are."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fastece.data.containers import as_probabilities, as_row_numbers, refuse_infinite
from fastece.data.options import shows_options
from fastece.data.samples import Sample
from fastece.display.axes import check_axes, new_axes, shorten, show_dollars
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number
from fastece.display.results import Result, group_notes, sample_text
from fastece.estimators.selective import RiskAreas
from fastece.kernels.types import F64
from fastece.resampling.arguments import (
    ResamplingKeywords,
    add_groups,
    read_call,
    require_one_problem,
)
from fastece.resampling.call import Call, bootstrap_values, make_problem
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import quantiles, tails_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The areas in the order in which `RiskAreas` computes them, with their meanings.
AREAS = {
    "aurc": "mean risk over all coverages: 0 is best",
    "e_aurc": "its excess over the best order of the same rows",
    "augrc": "mean over all coverages of the risk times the coverage: 0 is best",
}
# Coverages of the table.
TABLE_COVERAGES = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0])
# A coverage this much below one of the table, by rounding, is taken for it.
ROUNDING = 1e-12
# In place of a quantile of 0.
SMALL = 1e-300


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskCoverage(Result):
    """The risk-coverage curve and its areas, with intervals if there are replicates.

    Attributes
    ----------
    coverage, risk, threshold : (D,) float64 arrays
        For each of D distinct scores, `threshold`, from the highest down: the share of the weight
        of the rows with at least this score, and their mean loss.
    aurc, e_aurc, augrc : float
        Areas below the curve; the notes of `risk_coverage` define them.
    intervals : dict
        The interval of each area by its name; empty without replicates.
    n, n_groups : int, int or None
        Rows of positive weight, and groups of them.
    setting : str
        The setting used, never "auto".
    confidence_level, n_resamples : float, int
        Level and replicates of the intervals.
    """

    aurc: float
    e_aurc: float
    augrc: float
    intervals: Mapping[str, ConfidenceInterval]
    coverage: F64 = field(repr=False)
    risk: F64 = field(repr=False)
    threshold: F64 = field(repr=False)
    n: int
    n_groups: int | None
    setting: str
    confidence_level: float
    n_resamples: int

    @property
    def value(self) -> float:
        """The area `aurc`."""
        return self.aurc

    @property
    def confidence_interval(self) -> ConfidenceInterval | None:
        """The interval of `aurc`, if there is one."""
        return self.intervals.get("aurc")

    def document(self) -> Document:
        """Describe the areas, and the risk at some coverages, as two tables."""
        rows: list[list[Any]] = []
        for name, meaning in AREAS.items():
            interval = self.intervals.get(name)
            cells = [] if interval is None else [interval]
            rows.append([name, Number(getattr(self, name), interval), *cells, meaning])
        heads = [f"{100 * self.confidence_level:g} % CI"] if self.intervals else []
        areas = Table(["area", "value", *heads, ""], rows)
        shown = np.unique(np.searchsorted(self.coverage, TABLE_COVERAGES * (1 - ROUNDING)))
        columns = self._columns()
        numbers = [[Number(x) for x in column[shown]] for column in columns.values()]
        curve = Table([*columns], [*zip(*numbers, strict=True)])
        sections = [Section(table=areas, notes=group_notes(self.n_groups)), Section(table=curve)]
        title = f"Risk and coverage, setting {self.setting}: {sample_text(self)}"
        return Document(title, "", sections)

    def _columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("threshold", "coverage", "risk")}

    def plot(self, ax: "Axes | None" = None, *, label: str | None = None) -> "Axes":
        """Draw the risk over the coverage, beside others on the axes; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.
        label : str, optional
            Name of the model in the legend.

        Returns
        -------
        matplotlib Axes
        """
        check_axes(ax)
        ax = new_axes(1)[0] if ax is None else ax
        name = "" if label is None else f"{shorten(label)}, "
        ax.plot(self.coverage, self.risk, label=f"{name}AURC {self.aurc:.4f}")
        ax.set(xlabel="coverage", ylabel="risk of the most confident rows", xlim=(0, 1))
        show_dollars(ax.legend(fontsize="small"))
        return ax


def read_per_row(name: str, value: Any, y_prob: Any) -> F64 | None:
    """Read a finite number for each row, if there are any."""
    if value is None:
        return None
    array = as_row_numbers(name, value, len(as_probabilities(y_prob)))
    refuse_infinite(name, array)
    return array.astype(np.float64)


def risk_coverage_of(call: Call, key: int, score: F64 | None, loss: F64 | None) -> RiskCoverage:
    """Compute the curve of the only model of a call, and intervals of its areas."""
    data = require_one_problem(call)
    sample = data.view()
    if loss is not None:  # a loss belongs to a row of the caller
        sample = replace(sample, rows=data.positions)
    distinct_scores = None
    if score is not None:  # only the order of a caller's scores counts
        distinct_scores, rank = np.unique(score[data.positions], return_inverse=True)
        sample = replace(sample, s=rank / distinct_scores.size, log_odds=None)
    statistic = RiskAreas(loss)
    ordered = sample.sorted()
    plan = statistic.prepare(ordered, sample.n)
    once = np.ones(sample.n)
    areas = plan.areas(once)[:, 0]
    intervals = {}
    if call.n_resamples:
        ends = area_intervals(call, sample, statistic, areas, key)
        intervals = dict(zip(AREAS, ends, strict=True))
    n_scores = plan.starts.size - 1
    sums = plan.sums(once, 0, n_scores)[:, :, 0]
    weight, lost = np.cumsum(sums, axis=1)
    if distinct_scores is None:
        threshold = ordered.s[plan.order[plan.starts[:-1]]]
    else:
        threshold = distinct_scores[::-1]
    aurc, e_aurc, augrc = areas.tolist()
    return RiskCoverage(
        aurc=aurc, e_aurc=e_aurc, augrc=augrc, intervals=intervals, threshold=threshold,
        coverage=weight / weight[-1], risk=lost / weight, n=call.n, n_groups=call.n_groups,
        setting=call.setting, confidence_level=call.level, n_resamples=call.n_resamples,
    )  # fmt: skip


def area_intervals(
    call: Call, sample: Sample, statistic: RiskAreas, areas: F64, key: int
) -> list[ConfidenceInterval]:
    """Compute the interval of each area by the basic bootstrap.

    It is made on the log scale, unless there are losses below 0.
    """
    replicates = bootstrap_values(call, statistic, make_problem(call, sample), key)
    low, high = quantiles(replicates, tails_of(call.level)).T
    if statistic.losses is None or statistic.losses.min() >= 0:
        ends = log_basic_ends(areas, low, high)
    else:
        ends = np.array([2 * areas - high, 2 * areas - low])
    return [ConfidenceInterval(*pair) for pair in ends.T.tolist()]


def log_basic_ends(values: F64, low: F64, high: F64) -> F64:
    """Compute basic intervals (2, A) on the log scale from quantiles of replicates.

    The interval ``2 log v - log q`` of the logarithm of a value v, with the quantiles q, is ``v^2 /
    q``. Where the lower quantile is 0, the quantiles themselves are the ends.
    """
    squares = values**2
    ends = [squares / np.maximum(high, SMALL), squares / np.maximum(low, SMALL)]
    return np.where(low > 0, ends, [low, high])


@shows_options
def risk_coverage(
    y_true: Any, y_prob: Any = None, *, score: Any = None, loss: Any = None,
    n_resamples: int = 0, rng: Any = 0, groups: Any = None,
    **options: Unpack[ResamplingKeywords],
) -> RiskCoverage:  # fmt: skip
    """Compute the risk of the most confident rows at each coverage, and its areas.

    Parameters
    ----------
    y_true, y_prob : array_like
        As in `fastece.ece`: class vectors (n, K), of which the largest probability is the score, or
        confidences (n,), with whether each prediction was right. Probabilities (n,) of label 1 are
        predictions of either label with ``setting="confidence"``, and of label 1 without.
    score : (n,) array_like, optional
        Another confidence: any finite numbers, of which the greater ones are surer.
    loss : (n,) array_like, optional
        Another loss of each row than whether its prediction is wrong: any finite numbers.
    n_resamples : int, default 0
        Number of replicates behind intervals of the areas, such as 1999; 0 for no intervals.
    rng : None, int or numpy.random.Generator, default 0
        Seed of the replicates.
    groups : (n,) array_like, optional
        Rows with the same label belong together: whole groups are drawn.
    **options
        As in `fastece.bootstrap`: options of reading, `confidence_level`, `n_jobs` and `executor`.

    Returns
    -------
    RiskCoverage

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for scores and losses that are not one finite number a row, and for
        several problems.

    Notes
    -----
    With the loss L(c) of the share c of the weight that has the highest scores, the risk at the
    coverage c is ``L(c) / c`` (El-Yaniv and Wiener 2010, "On the foundations of noise-free
    selective classification"), and the areas are::

        aurc   = int_0^1 L(c) / c dc
        e_aurc = aurc - aurc of the same losses in increasing order
        augrc  = int_0^1 L(c) dc

    Geifman, Uziel and El-Yaniv (2019, "Bias-reduced uncertainty estimation for deep neural
    classifiers") define the first two, and Traub et al. (2024, "Overcoming common flaws in the
    evaluation of selective classification systems") the third. In the best order, a loss of 0 or 1
    with the mean r has the AURC ``r + (1 - r) log(1 - r)``. Rows of one score count with their mean
    loss, so L is linear there, and neither the order of such rows nor the scale of weights matters.

    Intervals are made by the basic bootstrap on the log scale, ``v^2 / q_hi`` to ``v^2 / q_lo``
    with the value v and quantiles q of the replicates, which holds skewed areas more often; the
    quantiles themselves where q_lo is 0, and on the plain scale where a loss is negative. Two
    models are compared by ``fastece.compare(y, p, q, estimator="aurc")``.

    Examples
    --------
    >>> from fastece.decisions import risk_coverage
    >>> curve = risk_coverage([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6])
    >>> curve.coverage.tolist()
    [0.25, 0.5, 0.75, 1.0]
    >>> curve.risk.round(3).tolist()
    [0.0, 0.0, 0.333, 0.25]
    >>> print(f"{curve.aurc:.4f} {curve.e_aurc:.4f} {curve.augrc:.4f}")
    0.1192 0.0849 0.0938
    """
    others = {**options, "estimator": "aurc", "n_resamples": n_resamples}
    call = read_call("risk_coverage", y_true, {"y_prob": y_prob}, 0, **others)
    call = add_groups(call, groups, y_prob)
    score = read_per_row("score", score, y_prob)
    loss = read_per_row("loss", loss, y_prob)
    return risk_coverage_of(call, new_key(rng), score, loss)
