"""Validation of a risk model: rates, recalibration, curve, discrimination and net benefit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError, InputTypeError
from fastece.data.samples import scale_weights
from fastece.display.axes import new_axes
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import (
    ConfidenceInterval,
    Number,
    PValue,
    first_of,
    format_cell,
    format_p,
)
from fastece.display.pictures import draw_risks
from fastece.display.results import Record, Result, group_notes, sample_text
from fastece.estimators import risk
from fastece.estimators.bayes.cells import cells_of_rows
from fastece.estimators.bayes.curves import Curves
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.losses import LogLoss, infinite_rows
from fastece.estimators.risk import Logistic, NetBenefit, RiskRows
from fastece.kernels.types import F64
from fastece.resampling.arguments import add_groups, read_call
from fastece.resampling.bootstrap import Resampling, resample
from fastece.resampling.call import Call, compute_values
from fastece.resampling.draws import new_key
from fastece.resampling.groups import Groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Quantities in the corner of the picture, and bars of its histogram of predictions.
SHOWN, BARS = ("oe", "intercept", "slope", "c_statistic", "ici"), 40
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
# Ends of intervals of coefficients are looked for so far, in doubled standard errors.
MOST_DOUBLINGS = 30
# Each quantity by its attribute: its name in print, and what it is.
MEANINGS = {
    "events": ("events", "rows with the event, by weight"),
    "observed_rate": ("observed rate", "share of the rows that had the event"),
    "predicted_rate": ("predicted rate", "mean predicted probability"),
    "oe": ("O/E", "observed over predicted events: 1 is ideal, less is too much predicted"),
    "intercept": ("intercept", "calibration in the large, on the logit scale: 0 is ideal"),
    "slope": ("slope", "of the logit: 1 is ideal, less is too extreme predictions"),
    "slope_intercept": ("intercept at slope", "of the recalibration with that slope"),
    "recalibration_test": ("recalibration test", "of intercept 0 and slope 1, chi-squared"),
    "ici": ("ICI", "mean distance of the calibration curve from the predictions"),
    "e50": ("E50", "median of that distance"),
    "e90": ("E90", "distance that 90 % of the rows do not exceed"),
    "emax": ("Emax", "largest distance"),
    "spiegelhalter": ("Spiegelhalter z", "Brier score against that of a calibrated model"),
    "brier": ("Brier score", "mean squared error of the predictions: 0 is best"),
    "scaled_brier": ("scaled Brier", "1 is best, 0 is the observed rate for everyone"),
    "log_score": ("log score", "mean -log of the probability of the outcome: 0 is best"),
    "c_statistic": ("C statistic", "probability that an event has the higher prediction"),
}
ONE_OUTCOME = (
    "All outcomes are the same, so slope, C statistic and scaled Brier score are not defined, and "
    "the intercept is infinite."
)
SEPARATED = "A threshold separates events from the others, so the slope is infinite."
CONSTANT = "All predictions are the same, so there is no slope."
INFINITE_SCORE = "The outcome had the predicted probability 0 in {}: the log score is infinite."


@dataclass(frozen=True, eq=False)
class Quantity(Record):
    """One quantity of a validation.

    Attributes
    ----------
    value : float
        nan where it is not defined.
    confidence_interval : ConfidenceInterval or None
    p_value : float or None
        Of a test, or of the ideal value of the intercept, the slope and O/E.
    """

    value: float
    confidence_interval: ConfidenceInterval | None = None
    p_value: float | None = None


@dataclass(frozen=True, eq=False)
class DecisionPoint(Record):
    """Net benefit at one threshold.

    Attributes
    ----------
    threshold : float
        Rows with a score of at least this are treated.
    model, treat_all : float
        Net benefit of the model, and of treating everyone; that of treating no one is 0.
    low, high : float or None
        Confidence interval of the model's; None without replicates.
    """

    threshold: float
    model: float
    treat_all: float
    low: float | None = None
    high: float | None = None


# --- sampling variance ----------------------------------------------------------------------


class Law(NamedTuple):
    """How sums over rows vary: rows are independent, or groups of them are."""

    groups: Groups | None
    level: float

    def sums(self, terms: F64) -> F64:
        """Sum up the terms (n, ...) of each group, scaled for few groups."""
        if self.groups is None:
            return terms
        count = self.groups.count
        sums = np.zeros((count, *terms.shape[1:]))
        np.add.at(sums, self.groups.of_row, terms)
        return sums * math.sqrt(count / (count - 1))

    def deviation(self, terms: F64) -> float:
        """Compute the standard deviation of the sum of terms (n,) with mean 0."""
        return float(np.linalg.norm(self.sums(terms)))

    def quantile(self) -> float:
        """Return the normal quantile of the level; of groups, Student's."""
        if self.groups is None:
            return NormalDist().inv_cdf((1 + self.level) / 2)
        from scipy.special import stdtrit

        return float(stdtrit(self.groups.count - 1, (1 + self.level) / 2))

    def p_value(self, z: float) -> float:
        """Compute the two-sided p-value of a statistic in standard deviations."""
        if self.groups is None:
            return math.erfc(abs(z) / math.sqrt(2))
        from scipy.special import stdtr

        return float(2 * stdtr(self.groups.count - 1, -abs(z)))

    def quantity(
        self, value: float, terms: F64, scale: Callable[[float], float] | None = None,
        back: Callable[[float], float] | None = None, slope: float = 1.0,
        low: float = -math.inf, high: float = math.inf,
    ) -> Quantity:  # fmt: skip
        """Make a quantity with the influences (n,) of its rows, on a scale of this slope."""
        deviation = self.deviation(terms) * slope
        if not (0 < deviation < math.inf and math.isfinite(value)):
            return Quantity(value)
        middle, reach = scale(value) if scale else value, self.quantile() * deviation
        ends = [back(x) if back else x for x in (middle - reach, middle + reach)]
        return Quantity(value, ConfidenceInterval(max(ends[0], low), min(ends[1], high)))


# --- quantities -----------------------------------------------------------------------------


def rates(rows: RiskRows, law: Law) -> dict[str, Quantity]:
    """Compute events, observed and predicted rates, and O/E."""
    s, y, w, _ = rows
    share = w / w.sum()
    observed, predicted, ratio = float(share @ y), float(share @ s), risk.BY_ROWS["oe"](rows)
    found = {"observed_rate": Quantity(observed, wilson(observed, share * (y - observed), law))}
    found["predicted_rate"] = law.quantity(predicted, share * (s - predicted), low=0.0, high=1.0)
    found["oe"] = Quantity(ratio)
    if 0 < ratio < math.inf:
        slope = 1 / float(w @ y)
        oe = law.quantity(ratio, w * (y - ratio * s), math.log, math.exp, slope)
        deviation = law.deviation(w * (y - ratio * s)) * slope
        p_value = law.p_value(math.log(ratio) / deviation) if deviation > 0 else None
        found["oe"] = Quantity(ratio, oe.confidence_interval, p_value)
    return found


def wilson(rate: float, terms: F64, law: Law) -> ConfidenceInterval:
    """Compute Wilson's interval of a rate, of as many rows as its variance is worth."""
    deviation, z = law.deviation(terms), law.quantile()
    n = rate * (1 - rate) / deviation**2 if deviation > 0 else float(terms.size)
    middle, room = rate + z * z / (2 * n), 1 + z * z / n
    reach = z * math.sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2)
    return ConfidenceInterval(max(middle - reach, 0.0) / room, min((middle + reach) / room, 1.0))


def coefficient(model: Logistic, j: int, null: float, law: Law) -> Quantity:
    """Estimate a coefficient, with an interval and a test by its profile likelihood.

    Deviances are divided by a design effect, the variance of weighted rows or groups over that of
    the likelihood.
    """
    beta, most = model.fit()
    inverse = np.linalg.pinv(model.information(beta))
    meat = model.information(beta, 2)
    if law.groups is not None:
        terms = law.sums(model.x * (model.w * (model.y - model.fitted(beta)))[:, None])
        meat = terms.T @ terms
    variance = float((inverse @ meat @ inverse)[j, j])
    effect, value = variance / float(inverse[j, j]), float(beta[j])
    if not (variance > 0 and effect > 0):
        return Quantity(value)

    def signed_root(x: float) -> float:
        return math.sqrt(max(2 * (most - model.profile(j, x)) / effect, 0.0))

    step = law.quantile() * math.sqrt(variance)
    ends = [crossing(signed_root, law.quantile(), value, sign * step) for sign in (-1, 1)]
    return Quantity(value, ConfidenceInterval(*ends), law.p_value(signed_root(null)))


def crossing(root: Callable[[float], float], limit: float, start: float, step: float) -> float:
    """Find where a function that rises from a start reaches a limit, or inf."""
    from scipy.optimize import brentq

    for k in range(MOST_DOUBLINGS):
        end = start + step * 2.0**k
        if root(end) > limit:
            return float(brentq(lambda x: root(x) - limit, start, end, xtol=1e-9))
    return math.copysign(math.inf, step)


def recalibration(rows: RiskRows, law: Law) -> dict[str, Quantity]:
    """Compute the intercept, the slope with its intercept, and their joint test."""
    found = {"intercept": Quantity(risk.intercept(rows)), "slope": Quantity(risk.slope(rows))}
    found["slope_intercept"] = Quantity(math.nan)
    if rows.is_mixed:
        found["intercept"] = coefficient(risk.intercept_model(rows), 0, 0.0, law)
    if math.isfinite(found["slope"].value):
        model = risk.slope_model(rows)
        found["slope"] = coefficient(model, 1, 1.0, law)
        found["slope_intercept"] = coefficient(model, 0, 0.0, law)
    found["recalibration_test"] = joint_test(rows, law)
    return found


def joint_test(rows: RiskRows, law: Law) -> Quantity:
    """Test intercept 0 and slope 1 by their scores, with the variance of the model.

    Of groups with the variance between them, and the F law of few groups.
    """
    s, y, w, _ = rows
    x = np.column_stack([np.ones(s.size), rows.logit])
    terms = x * (w * (y - s))[:, None]
    meat = (x.T * (w * w * s * (1 - s))) @ x
    if law.groups is not None:
        sums = law.sums(terms)
        meat = sums.T @ sums
    if not 1e-14 * np.trace(meat) ** 2 < np.linalg.det(meat):
        return Quantity(math.nan)
    total = terms.sum(axis=0)
    value = float(total @ np.linalg.solve(meat, total))
    if law.groups is None:
        return Quantity(value, None, math.exp(-value / 2))
    from scipy.special import fdtrc

    count = law.groups.count
    p_value = fdtrc(2, count - 2, value * (count - 2) / (2 * (count - 1))) if count > 2 else None
    return Quantity(value, None, None if p_value is None else float(p_value))


def scores(rows: RiskRows, law: Law) -> dict[str, Quantity]:
    """Compute Spiegelhalter's z, the Brier score, raw and scaled, and the log score."""
    s, y, w, _ = rows
    share = w / w.sum()
    terms = w * (1 - 2 * s)
    sums = terms * (y - s)
    spread = math.sqrt(float(terms**2 @ (s * (1 - s))))
    if law.groups is not None:
        spread = law.deviation(sums)
    z = float(sums.sum()) / spread if spread > 0 else math.nan
    found = {"spiegelhalter": Quantity(z, None, law.p_value(z) if spread > 0 else None)}
    square, rate = (y - s) ** 2, float(share @ y)
    brier, room = float(share @ square), rate * (1 - rate)
    found["brier"] = law.quantity(brier, share * (square - brier), low=0.0, high=1.0)
    # The derivative of -B / B_0: by B, and by the rate.
    by_rate = brier * (1 - 2 * rate) / room * (y - rate) if room > 0 else 0 * y
    terms = share * (by_rate - (square - brier)) / room if room > 0 else 0 * y
    found["scaled_brier"] = law.quantity(risk.scaled_brier(rows), terms, high=1.0)
    with np.errstate(divide="ignore"):
        loss = -np.log(np.where(y > 0, s, 1 - s))
    mean = float(share @ loss) if np.isfinite(loss).all() else math.inf
    found["log_score"] = Quantity(mean)
    if math.isfinite(mean):
        found["log_score"] = law.quantity(mean, share * (loss - mean), low=0.0)
    return found


def discrimination(rows: RiskRows, law: Law) -> Quantity:
    """Compute the C statistic with DeLong's interval on the logit scale."""
    value = risk.c_statistic(rows)
    if not 0 < value < 1:
        return Quantity(value)
    terms = risk.placements(rows) - value
    for outcome in (0, 1):
        chosen = rows.y == outcome
        share = rows.w[chosen] / rows.w[chosen].sum()
        known = 1 - float(share @ share)  # 1 - 1 / m of m rows that count the same
        terms[chosen] *= share / math.sqrt(known) if known > 0 else math.nan
    logit = math.log(value / (1 - value))
    return law.quantity(
        value, terms, lambda _: logit, lambda x: 1 / (1 + math.exp(-x)), 1 / (value * (1 - value))
    )


def curve_distances(call: Call) -> tuple[dict[str, Quantity], F64]:
    """Compute ICI, E50, E90 and Emax of the Bayesian curve, with posterior intervals.

    And the curve: scores, mean probabilities and the ends of their intervals (4, G).
    """
    sample = scale_weights(call.models[0].samples()[0])[0]
    posterior = BayesCurve().posterior([sample], call.design_effect)
    ends = ConfidenceInterval(*posterior.interval(call.level))
    ordered = sample.sorted()
    counts, plain = ordered.counts, risk.rows_of(ordered)
    score, p = risk.curve_probabilities(
        ordered, Curves(cells_of_rows(ordered, counts).thinned(call.design_effect / sample.votes))
    )
    values = risk.mean_curve_gaps(ordered, plain, counts)
    draws = np.array(
        [risk.gap_sizes(np.interp(plain.s, score, one) - plain.s, plain.w) for one in p.T]
    )
    tail = (1 - call.level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    low, high = np.minimum(low, values), np.maximum(high, values)
    found = {"ici": Quantity(posterior.value, ends)}
    for name, *numbers in zip(risk.BY_CURVE, values, low, high, strict=True):
        value, *interval = map(float, numbers)
        found[name] = Quantity(value, ConfidenceInterval(*interval))
    return found, np.vstack([score, p.mean(axis=1), *np.quantile(p, [tail, 1 - tail], axis=1)])


def decision_curve(call: Call, rows: RiskRows, key: int) -> list[DecisionPoint]:
    """Compute net benefits by threshold, with intervals by the percentile bootstrap."""
    rate = float(np.average(rows.y, weights=rows.w))
    fields = resample(call, Resampling("percentile", call.n, key)) if call.n_resamples else {}
    points, tail = [], (1 - call.level) / 2
    for name, estimator in call.estimators.items():
        odds = estimator.threshold / (1 - estimator.threshold)
        ends: list[Any] = [None, None]
        if fields:
            drawn = fields[name]["bootstrap_distribution"]
            ends = np.quantile(drawn, [tail, 1 - tail]).tolist()
        (value,) = compute_values(call, name)
        points.append(DecisionPoint(estimator.threshold, value, rate - (1 - rate) * odds, *ends))
    return points


# --- the result -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Validation(Result):
    """The validation of a risk model.

    Each quantity has `value`, `confidence_interval` and `p_value`, the last two None where there is
    none.

    Attributes
    ----------
    events, observed_rate, predicted_rate, oe : Quantity
        Events by weight, their observed and predicted rate, and observed over predicted events.
    intercept : Quantity
        Calibration in the large: the intercept with the logit as offset.
    slope, slope_intercept, recalibration_test : Quantity
        Logistic recalibration, and the joint test of slope 1 and intercept 0.
    ici, e50, e90, emax : Quantity
        Distances between predictions and the calibration curve.
    spiegelhalter, brier, scaled_brier, log_score, c_statistic : Quantity
    net_benefit : list of DecisionPoint
    event : str
        Name of the event.
    n, n_groups, confidence_level, n_resamples : int, int or None, float, int
    weighted : bool
        Whether rows have weights.
    notes : list of str
        Sentences on what is not defined, and on few groups.
    """

    events: Quantity
    observed_rate: Quantity
    predicted_rate: Quantity
    oe: Quantity
    intercept: Quantity
    slope: Quantity
    slope_intercept: Quantity
    recalibration_test: Quantity
    ici: Quantity
    e50: Quantity
    e90: Quantity
    emax: Quantity
    spiegelhalter: Quantity
    brier: Quantity
    scaled_brier: Quantity
    log_score: Quantity
    c_statistic: Quantity
    net_benefit: Sequence[DecisionPoint]
    event: str
    n: int
    n_groups: int | None
    confidence_level: float
    n_resamples: int
    weighted: bool
    notes: Sequence[str]
    _curve: F64 = field(repr=False)  # (4, G): scores, probabilities, ends of their intervals
    _risks: F64 = field(repr=False)  # (2, BARS): weight of rows without and with the event

    def document(self) -> Document:
        """Describe the quantities, and net benefit by threshold, as two tables."""
        interval = f"{100 * self.confidence_level:g} % CI"
        rows = []
        for name, (title, meaning) in MEANINGS.items():
            one = getattr(self, name)
            ends = one.confidence_interval
            number = Number(one.value, ends, "g" if name == "events" else "")
            rows.append((title, number, ends, PValue(one.p_value), meaning))
        keys = ("quantity", "value", "confidence_interval", "p_value", "meaning")
        table = Table(("quantity", "value", interval, "p-value", ""), rows, keys)
        points = []
        for x in self.net_benefit:
            limits = None if x.low is None else ConfidenceInterval(x.low, x.high)
            numbers = (Number(x.model, limits), limits, Number(x.treat_all, limits))
            points.append((Number(x.threshold, form="g"), *numbers))
        curve = Table(("threshold", "model", interval, "treat all"), points)
        title = f"validation of the predicted probability of {self.event}: {sample_text(self)}"
        sections = [Section(table=table, notes=self.notes), Section("Net benefit", table=curve)]
        return Document(title, self.sentence, sections)

    @property
    def sentence(self) -> str:
        """Predicted and observed rates, in one sentence."""
        predicted, observed = (100 * x.value for x in (self.predicted_rate, self.observed_rate))
        p_value = self.recalibration_test.p_value
        test = "" if p_value is None else f", p = {format_p(p_value)}".replace("= <", "< ")
        return f"{predicted:.1f} % predicted, {observed:.1f} % observed{test}."

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the calibration curve, with the predictions below; needs matplotlib.

        The Bayesian curve with its pointwise interval, O/E, intercept, slope, C statistic and ICI
        in the corner, and below a histogram of the predictions with events up, the others down.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        lines = []
        for name in SHOWN:
            one, ends = getattr(self, name), getattr(self, name).confidence_interval
            interval = "" if ends is None else f" {format_cell(ends)}"
            lines.append(f"{MEANINGS[name][0]} {format_cell(Number(one.value, ends))}{interval}")
        level = f"{100 * self.confidence_level:g} % CI"
        ax = new_axes(1)[0] if ax is None else ax
        return draw_risks(ax, self._curve, self._risks, self.event, level, lines)

    def methods_text(self) -> str:
        """Write a paragraph for the methods section of a report, in the terms of TRIPOD."""
        level = f"{100 * self.confidence_level:g} %"
        sampling = "" if not self.weighted else " Participants were weighted."
        if self.n_groups is not None:
            sampling += (
                f" Standard errors allow for {self.n_groups} clusters (sandwich estimator, t law)."
            )
        benefit = "" if not self.n_resamples else (
            f", with percentile intervals of {self.n_resamples} bootstrap samples"
            + (" of whole clusters" if self.n_groups is not None else "")
        )  # fmt: skip
        return (
            f"The predicted probability of {self.event} was validated in {self.n} participants, "
            f"with {self.events.value:g} events.{sampling} Calibration in the large was assessed "
            "by the ratio of observed and expected events (interval on the log scale) and by the "
            "intercept of a logistic model with the logit of the prediction as offset; weak "
            "calibration by the slope and intercept of logistic recalibration (Cox 1958), with "
            "profile-likelihood intervals and a joint score test with two degrees of freedom; "
            "moderate calibration by a Bayesian calibration curve, summarised by ICI, E50, E90 and "
            "Emax with posterior intervals. Overall performance was measured by the Brier score, "
            "raw and scaled, the logarithmic score and Spiegelhalter's test; discrimination by the "
            "C statistic with DeLong's interval on the logit scale; clinical utility by net "
            f"benefit (Vickers and Elkin 2006){benefit}. Intervals have the level {level}."
        )


def notes_of(call: Call, rows: RiskRows, found: dict[str, Quantity]) -> list[str]:
    """Write a sentence on each thing that is not defined or infinite, and on groups."""
    notes = [] if rows.is_mixed else [ONE_OUTCOME]
    if rows.is_mixed and math.isinf(found["slope"].value):
        notes.append(SEPARATED)
    if rows.s.min() == rows.s.max():
        notes.append(CONSTANT)
    if math.isinf(found["log_score"].value):
        notes.append(INFINITE_SCORE.format(first_of(infinite_rows(call.models[0], LogLoss()))))
    return [*notes, *group_notes(call.n_groups)]


def check_event(event: Any) -> str:
    """Return the checked name of an event, "" for None."""
    if event is not None and not isinstance(event, str):
        raise InputTypeError("event", "must be a name", value=event)
    return event or ""


def check_thresholds(thresholds: Any) -> list[NetBenefit]:
    """Return a net benefit for each of some thresholds, in increasing order."""
    if thresholds is None:
        return [*map(NetBenefit, THRESHOLDS)]
    if isinstance(thresholds, str) or not np.ndim(thresholds) or not len(thresholds):
        raise InputTypeError("thresholds", "must be a list of probabilities", value=thresholds)
    checked = [risk.check_threshold("thresholds", x) for x in np.ravel(thresholds).tolist()]
    return [*map(NetBenefit, sorted({*checked}))]


def validation_of(call: Call, key: int, event: str) -> Validation:
    """Compute the validation of the only model of a call with net benefits."""
    if call.sources[0].n_problems > 1 or call.models[0].setting.is_top:
        rule, hint = "must be binary or a class: a risk is that of one event", "setting=1"
        raise InputError("setting", rule, value=call.setting, hint=hint)
    sample, unit = scale_weights(call.models[0].samples()[0])
    rows, law = risk.rows_of(sample), Law(call.clusters, call.level)
    found = {"events": Quantity(float(rows.w @ rows.y) * unit), **rates(rows, law)}
    distances, curve = curve_distances(call)
    found |= recalibration(rows, law) | distances | scores(rows, law)
    found["c_statistic"] = discrimination(rows, law)
    events = rows.y > 0
    risks = [np.histogram(rows.s[x], BARS, (0.0, curve[0, -1]), weights=rows.w[x] * unit)[0]
             for x in (~events, events)]  # fmt: skip
    return Validation(
        **found, net_benefit=decision_curve(call, rows, key), event=event, n=call.n,
        n_groups=call.n_groups, confidence_level=call.level, n_resamples=call.n_resamples,
        weighted=sample.v is not None, notes=notes_of(call, rows, found),
        _curve=curve, _risks=np.array(risks),
    )  # fmt: skip


def validate(
    y_true: Any, y_prob: Any, *, event: str | None = None, thresholds: Any = None,
    confidence_level: float = 0.95, n_resamples: int = 1999, rng: Any = 0, groups: Any = None,
    sample_weight: Any = None, **options: Any,
) -> Validation:  # fmt: skip
    """Validate a risk model: all that a report on predicted probabilities has.

    Parameters
    ----------
    y_true, y_prob : (n,) array_like
        Whether the event came true, and its predicted probability, as in `fastece.ece`.
    event : str, optional
        Name of the event in the output, by default "the event".
    thresholds : sequence of float, optional
        Of the net benefit, greater than 0 and less than 1; by default nine from 0.01 to 0.5.
    confidence_level : float, default 0.95
        Of all intervals.
    n_resamples : int, default 1999
        Bootstrap samples behind the intervals of net benefits; 0 for none.
    rng : None, int or numpy.random.Generator, default 0
        Seed of the bootstrap.
    groups : (n,) array_like, optional
        Rows with the same label belong together, such as those of one patient or hospital:
        variances are those of whole groups.
    sample_weight : (n,) array_like of float, optional
        As in `fastece.ece`.
    **options
        `setting` ("binary", or a class of class vectors), `labels`, `pos_label`, `from_logits` and
        `n_jobs`, as in `fastece.ece`.

    Returns
    -------
    Validation

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for thresholds outside (0, 1), and for several events.

    Notes
    -----
    O/E has a normal interval on the log scale, with the variance ``sum w^2 (y - theta s)^2``.
    Coefficients (Cox 1958, "Two further applications of a model for binary regression") have
    profile-likelihood intervals and p-values; with weights or groups, deviances are divided by the
    design effect. ICI is `fastece.estimate`'s value and interval; E50, E90 and Emax are of the mean
    curve, their intervals of its draws (Austin and Steyerberg 2019, "The Integrated Calibration
    Index (ICI) and related metrics"). Spiegelhalter's (1986) z is ``sum w (y - s)(1 - 2 s)`` over
    the root of ``sum w^2 (1 - 2 s)^2 s (1 - s)``; C has the variance of DeLong et al. (1988) on the
    logit scale. Net benefit: Vickers and Elkin (2006). What is not defined is nan, with a sentence
    in `notes`. See ``docs/validation.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import validate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 8, 1000)
    >>> found = validate(rng.random(1000) < 0.8 * p, p, event="readmission", n_resamples=0)
    >>> found.sentence
    '19.2 % predicted, 16.8 % observed, p = 0.13.'
    """
    name = check_event(event)
    call = read_call(
        "validate", y_true, {"y_prob": y_prob}, 0, estimator=check_thresholds(thresholds),
        confidence_level=confidence_level, n_resamples=n_resamples, sample_weight=sample_weight,
        **options,
    )  # fmt: skip
    call = add_groups(call, groups, y_prob)
    return validation_of(call, new_key(rng), name or "the event")
