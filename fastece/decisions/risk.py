"""The risk-coverage curve: how wrong the most confident rows are."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fastece.data.containers import as_probabilities, as_row_numbers, refuse_infinite
from fastece.display.axes import new_axes, shorten
from fastece.display.documents import Document, Section, Table
from fastece.display.legends import draw_legend
from fastece.display.numbers import ConfidenceInterval, Number
from fastece.display.results import Result, group_notes, sample_text
from fastece.estimators.selective import AREAS, RiskAreas
from fastece.kernels.types import F64
from fastece.resampling.arguments import Call, add_groups, read_call
from fastece.resampling.draws import new_key
from fastece.resampling.results import quantiles, tails_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEANINGS = {
    "aurc": "mean risk over all coverages: 0 is best",
    "e_aurc": "its excess over the best order of the same rows",
    "augrc": "mean over all coverages of the risk times the coverage: 0 is best",
}
# Coverages of the table.
SHOWN = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0])
# In place of a quantile of 0.
TINY = 1e-300


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskCoverage(Result):
    """The risk-coverage curve, its areas and their intervals.

    Attributes
    ----------
    coverage, risk, threshold : (D,) float64 arrays
        For each of D distinct scores, `threshold`, from the highest down: the share of the weight
        of the rows with at least this score, and their mean loss.
    aurc, e_aurc, augrc : float
        Areas below the curve, as `fastece.SelectiveRisk` defines them.
    intervals : dict
        The interval of each area by its name; empty without replicates.
    n, n_groups, setting, confidence_level, n_resamples
        Rows and groups of them, setting, and level and replicates of the intervals.
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
        rows = []
        for name, meaning in MEANINGS.items():
            interval = self.intervals.get(name)
            rows.append((name, Number(getattr(self, name), interval), interval, meaning))
        areas = Table(("area", "value", f"{100 * self.confidence_level:g} % CI", ""), rows)
        places = np.unique(np.searchsorted(self.coverage, SHOWN * (1 - 1e-12)))
        curve = zip(*(map(Number, x[places]) for x in self._columns().values()), strict=True)
        title = f"Risk and coverage, setting {self.setting}: {sample_text(self)}"
        first = Section(table=areas, notes=group_notes(self.n_groups))
        return Document(title, "", [first, Section(table=Table([*self._columns()], [*curve]))])

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
        ax = new_axes(1)[0] if ax is None else ax
        name = "" if label is None else f"{shorten(label)}, "
        ax.plot(self.coverage, self.risk, label=f"{name}AURC {self.aurc:.4f}")
        ax.set(xlabel="coverage", ylabel="risk of the most confident rows", xlim=(0, 1))
        draw_legend(ax)
        return ax


def read_numbers(name: str, value: Any, y_prob: Any) -> F64 | None:
    """Read a finite number for each row, if there are any."""
    if value is None:
        return None
    array = as_row_numbers(name, value, len(as_probabilities(y_prob)))
    refuse_infinite(name, array)
    return array.astype(np.float64)


def curve_of(call: Call, key: int, score: F64 | None, loss: F64 | None) -> RiskCoverage:
    """Compute the curve of the only model of a call, and intervals of its areas."""
    data, areas, values = call.only_problem(), RiskAreas(loss), None
    sample = replace(data.view(), rows=data.positions) if loss is not None else data.view()
    if score is not None:  # any numbers, of which the ranks count
        values, place = np.unique(score[data.positions], return_inverse=True)
        sample = replace(sample, s=place / values.size)
    ordered, once = sample.sorted(), np.ones(sample.n)
    plan = areas.prepare(ordered, sample.n)
    found, ends = plan.areas(once), {}
    if call.n_resamples:
        problems, draws = [call.problem(sample)], call.draws(key, call.n)
        (drawn,) = call.replicates([areas], problems, draws, call.n, 0, call.n_resamples)
        q = quantiles(drawn, tails_of(call.level))
        pairs = 2 * found - q[:, ::-1]
        if loss is None or loss.min() >= 0:  # on the log scale, as these are skewed
            pairs = np.where(q[:, :1] > 0, (found**2 / np.maximum(q, TINY))[:, ::-1], q)
        ends = dict(zip(AREAS, map(ConfidenceInterval, *pairs.T.tolist()), strict=True))
    weight, lost = np.cumsum(plan.sums(once, 0, plan.starts.size - 1)[:, :, 0], axis=1)
    threshold = ordered.s[plan.order[plan.starts[:-1]]] if values is None else values[::-1]
    return RiskCoverage(
        **dict(zip(AREAS, found[:, 0].tolist(), strict=True)), intervals=ends, threshold=threshold,
        coverage=weight / weight[-1], risk=lost / weight, n=call.n, n_groups=call.n_groups,
        setting=call.setting, confidence_level=call.level, n_resamples=call.n_resamples,
    )  # fmt: skip


def risk_coverage(
    y_true: Any, y_prob: Any = None, *, score: Any = None, loss: Any = None, rng: Any = 0,
    groups: Any = None, **options: Any,
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
    rng : None, int or numpy.random.Generator, default 0
        Seed of the replicates behind the intervals.
    groups : (n,) array_like, optional
        Rows with the same label belong together: whole groups are drawn.
    **options
        `n_resamples` (by default 1999, 0 for no intervals), `confidence_level`, `setting`,
        `labels`, `pos_label`, `sample_weight`, `from_logits`, `n_jobs` and `executor`, as in
        `fastece.bootstrap`.

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
    With L(c) the loss of the share c of the weight with the highest scores, the risk is ``L(c) /
    c``. Rows of one score count with their mean loss, so L is linear there, and neither the order
    of such rows nor the scale of weights matters: see `fastece.SelectiveRisk`. The best order, of
    which `e_aurc` is the excess, is that of increasing losses. Intervals are those of the basic
    bootstrap on the log scale, ``v^2 / q_hi`` to ``v^2 / q_lo`` with the value v and quantiles q of
    the replicates, which holds skewed areas more often; the quantiles themselves where q_lo is 0,
    and on the plain scale where a loss is negative. Two models are compared by
    ``fastece.compare(y, p, q, estimator="aurc")``. El-Yaniv and Wiener (2010, "On the foundations
    of noise-free selective classification").

    Examples
    --------
    >>> from fastece.decisions import risk_coverage
    >>> found = risk_coverage([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6], n_resamples=0)
    >>> found.coverage.tolist()
    [0.25, 0.5, 0.75, 1.0]
    >>> found.risk.round(3).tolist()
    [0.0, 0.0, 0.333, 0.25]
    >>> print(f"{found.aurc:.4f} {found.e_aurc:.4f} {found.augrc:.4f}")
    0.1192 0.0849 0.0938
    """
    call = read_call("risk_coverage", y_true, {"y_prob": y_prob}, 0, estimator="aurc", **options)
    call = add_groups(call, groups, y_prob)
    score, loss = read_numbers("score", score, y_prob), read_numbers("loss", loss, y_prob)
    return curve_of(call, new_key(rng), score, loss)
