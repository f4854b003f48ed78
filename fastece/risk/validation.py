"""Validation of a risk model: rates, recalibration, curve, discrimination and net benefit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Unpack

import numpy as np

from fastece import __version__
from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import ReadingKeywords, shows_options
from fastece.data.parameters import check_real
from fastece.data.samples import scale_weights
from fastece.display.axes import check_axes, new_axes
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import (
    MIN_DECIMALS,
    ConfidenceInterval,
    Number,
    PValue,
    decimals,
    equate_p,
    first_of,
    format_cell,
    format_number,
    format_percents,
)
from fastece.display.pictures import draw_risks
from fastece.display.results import Result, group_notes, sample_text
from fastece.estimators.losses import LogLoss
from fastece.estimators.risk import NetBenefit, RiskRows, check_threshold, rows_of, slope_model
from fastece.kernels.types import F64
from fastece.resampling.arguments import add_groups, read_call
from fastece.resampling.call import Call, find_infinite_rows
from fastece.resampling.draws import new_key
from fastece.risk.quantities import (
    DecisionPoint,
    measure_brier,
    measure_curve,
    measure_discrimination,
    measure_log_score,
    measure_net_benefits,
    measure_rates,
    measure_recalibration,
    spiegelhalter_test,
)
from fastece.risk.variance import Quantity, SamplingLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Quantities in the corner of the picture.
IN_PICTURE = ("oe", "intercept", "slope", "c_statistic", "ici")
# Bars of the histogram of predictions.
N_BARS = 40
DEFAULT_THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


class Meaning(NamedTuple):
    """How a quantity is printed.

    Attributes
    ----------
    title : str
    text : str
        The definition, for readers.
    """

    title: str
    text: str


# Every quantity by its attribute of `Validation`, in the order of the printed table.
MEANINGS = {
    "events": Meaning("events", "rows with the event, by weight"),
    "observed_rate": Meaning("observed rate", "share of the rows that had the event"),
    "predicted_rate": Meaning("predicted rate", "mean predicted probability"),
    "oe": Meaning("O/E", "observed over predicted events: 1 is ideal, below it too many predicted"),
    "intercept": Meaning("intercept", "calibration in the large, on the logit scale: 0 is ideal"),
    "slope": Meaning("slope", "of the logit: 1 is ideal, below it predictions are too extreme"),
    "slope_intercept": Meaning(
        "recalibration intercept", "intercept of the recalibration with that slope"
    ),
    "recalibration_test": Meaning("joint test", "of intercept 0 and slope 1 together, chi-squared"),
    "ici": Meaning("ICI", "mean distance of the estimated curve from the predictions"),
    "e50": Meaning("E50", "median of that distance"),
    "e90": Meaning("E90", "distance that 90 % of the rows do not exceed"),
    "emax": Meaning("Emax", "largest distance"),
    "spiegelhalter": Meaning("Spiegelhalter z", "Brier score against that of a calibrated model"),
    "brier": Meaning("Brier score", "mean squared error of the predictions: 0 is best"),
    "scaled_brier": Meaning("scaled Brier", "1 is best, 0 is the observed rate for everyone"),
    "log_score": Meaning("log score", "mean -log of the probability of the outcome: 0 is best"),
    "c_statistic": Meaning("C statistic", "probability that an event has the higher prediction"),
}
# Formats of quantities without an interval that decides about their digits.
FORMS = {"events": "g", "recalibration_test": ".2f", "spiegelhalter": ".2f"}
BENEFIT_NOTE = (
    "Treating nobody has the net benefit 0. At a threshold the model helps where its net benefit "
    "is above 0 and above that of treating all."
)
EXACT_RATIO = "exact interval by Clopper and Pearson, as there are no events"
ONE_OUTCOME = (
    "All outcomes are the same, so slope, C statistic and scaled Brier score are not defined, and "
    "the intercept is infinite."
)
SEPARATED = "A threshold separates events from the others, so the slope is infinite."
CONSTANT = "All predictions are the same, or nearly so: there is no slope."
DECIDED_BY_CLIP = (
    "{} of {} predictions are 0 or 1; slope and intercept depend on the {:.2g} that stands for "
    "them (clip= or --clip chooses another)."
)
COEFFICIENTS = ("intercept", "slope", "slope_intercept")
NO_INTERVAL = "Rows, or groups of them, do not differ enough for intervals of intercept and slope."
# A slope depends on the probability that stands for 0 if so small a part of it moves the slope out
# of its interval.
SMALLER_CLIP = 0.1
INFINITE_SCORE = "The outcome had the predicted probability 0 in {}: the log score is infinite."


# --- the result -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Validation(Result):
    """The validation of a risk model.

    Each quantity has `value`, `confidence_interval` and `p_value`; the last two may be None.

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
        Sentences on quantities that are not defined, and on few groups.
    sentence : str
        Rates with O/E, the slope, and the joint test.
    """

    _derived: ClassVar[tuple[str, ...]] = ("sentence",)

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
    # (4, G) scores, probabilities, and the ends of their intervals.
    _curve: F64 = field(repr=False)
    # (2, N_BARS) weights of rows without and with the event, by predicted probability.
    _risks: F64 = field(repr=False)

    def document(self) -> Document:
        """Describe the quantities, and net benefit by threshold, as two tables."""
        title = f"Validation of the predicted probability of {self.event}: {sample_text(self)}"
        sections = [
            Section(table=self._quantity_table(), notes=self.notes),
            Section("Net benefit", table=self._net_benefit_table(), notes=[BENEFIT_NOTE]),
        ]
        return Document(title, self.sentence, sections)

    def _quantity_table(self) -> Table:
        """Make the table of all quantities."""
        rows = []
        for name, meaning in MEANINGS.items():
            quantity = getattr(self, name)
            interval = quantity.confidence_interval
            number = Number(quantity.value, interval, FORMS.get(name, ""))
            p_value = PValue(quantity.p_value)
            rows.append((meaning.title, number, interval, p_value, meaning.text))
        head = ("quantity", "value", self._interval_name, "p-value", "")
        return Table(head, rows, ("quantity", "value", "confidence_interval", "p_value", "meaning"))

    def _net_benefit_table(self) -> Table:
        """Make the table of net benefits by threshold."""
        rows = []
        for point in self.net_benefit:
            interval = None
            if point.low is not None and point.high is not None:
                interval = ConfidenceInterval(point.low, point.high)
            model = Number(point.model, interval)
            treat_all = Number(point.treat_all, interval)
            rows.append((Number(point.threshold, form="g"), model, interval, treat_all))
        return Table(("threshold", "model", self._interval_name, "treat all"), rows)

    @property
    def _interval_name(self) -> str:
        """Name of the columns of intervals."""
        return f"{100 * self.confidence_level:g} % CI"

    @property
    def sentence(self) -> str:
        """Rates with O/E, slope, and the joint test with its hypothesis, in a line.

        Quantities that are not defined are left out.
        """
        rates = self.predicted_rate.value, self.observed_rate.value
        predicted, observed = format_percents(*rates)
        parts = [f"{predicted} predicted, {observed} observed"]
        if math.isfinite(self.oe.value):
            parts[0] += f" ({', '.join(self._texts_of('oe'))})"
        if math.isfinite(self.slope.value):
            slope, *interval = self._texts_of("slope")
            parts.append(" ".join([slope, *(f"({text})" for text in interval)]))
        if self.recalibration_test.p_value is not None:
            p_value = equate_p(self.recalibration_test.p_value)
            parts.append(f"joint test of intercept 0 and slope 1: {p_value}")
        return f"{'; '.join(parts)}."

    def _texts_of(self, name: str) -> list[str]:
        """Write a quantity, and its interval if it has one, for a sentence."""
        quantity = getattr(self, name)
        interval = quantity.confidence_interval
        places = MIN_DECIMALS if interval is None else decimals(interval)
        texts = [f"{MEANINGS[name].title} {format_number(quantity.value, places)}"]
        if interval is not None:
            low, high = (format_number(end, places) for end in interval)
            texts.append(f"{self._interval_name} {low} to {high}")
        return texts

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the calibration curve, with the predictions below; needs matplotlib.

        The picture has the Bayesian curve with its pointwise interval, and O/E, intercept, slope, C
        statistic and ICI in the corner. Below is a histogram of the predictions, with events
        upwards and the others downwards.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; by default on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        check_axes(ax)
        lines = [self._line_of(name) for name in IN_PICTURE]
        ax = new_axes(1)[0] if ax is None else ax
        return draw_risks(ax, self._curve, self._risks, self.event, self._interval_name, lines)

    def _line_of(self, name: str) -> str:
        """Write a quantity with its interval, for the picture."""
        quantity = getattr(self, name)
        interval = quantity.confidence_interval
        line = f"{MEANINGS[name].title} {format_cell(Number(quantity.value, interval))}"
        return line if interval is None else f"{line} {format_cell(interval)}"

    def methods_text(self) -> str:
        """Write a paragraph for the methods section of a report, in the terms of TRIPOD."""
        level = f"{100 * self.confidence_level:g} %"
        has_groups = self.n_groups is not None
        sampling = ""
        if self.weighted:
            sampling += " Participants were weighted."
        if has_groups:
            sampling += (
                f" Standard errors allow for {self.n_groups} clusters (sandwich estimator, t law)."
            )
        interval_of_ratio = "interval on the log scale" if self.oe.value else EXACT_RATIO
        benefit = ""
        if self.n_resamples:
            benefit = f", with percentile intervals of {self.n_resamples} bootstrap samples"
            if has_groups:
                benefit += " of whole clusters"
        return (
            f"The predicted probability of {self.event} was validated in {self.n} participants, "
            f"with {self.events.value:g} events.{sampling} Calibration in the large was assessed "
            f"by the ratio of observed and expected events ({interval_of_ratio}) and by the "
            "intercept of a logistic model with the logit of the prediction as offset; weak "
            "calibration by the slope and intercept of logistic recalibration (Cox 1958), with "
            "profile-likelihood intervals, and by a score test of intercept 0 and slope 1 "
            "together, with two degrees of freedom; "
            "moderate calibration by a Bayesian calibration curve, summarised by ICI, E50, E90 and "
            "Emax (Austin and Steyerberg 2019) with posterior intervals. Overall performance was "
            "measured by the Brier score, raw and scaled, the logarithmic score and "
            "Spiegelhalter's test; discrimination by the C statistic with DeLong's interval on the "
            "logit scale; clinical utility by net benefit (Vickers and Elkin 2006)"
            f"{benefit}. Intervals have the level {level}. All were computed with "
            f"fastece {__version__}."
        )


# --- the call -------------------------------------------------------------------------------


def validation_of(call: Call, key: int, event: str, clip: float | None = None) -> Validation:
    """Compute the validation of the only model of a call with net benefits."""
    table = call.rows
    if table.n_problems > 1 or table.setting.is_top:
        rule = "must be binary or a class: a risk is that of one event"
        raise InputError("setting", rule, value=call.setting, hint="setting=1")
    sample, unit = scale_weights(table.samples(reads_only=True)[0])
    rows = rows_of(sample)._replace(chosen_clip=clip)
    law = SamplingLaw(call.clusters, call.level, call.counts)
    distances = measure_curve(call)
    quantities = {
        "events": Quantity(float(rows.w @ rows.y) * unit),
        **measure_rates(rows, law),
        **measure_recalibration(rows, law),
        **distances.quantities,
        "spiegelhalter": spiegelhalter_test(rows, law),
        **measure_brier(rows, law),
        "log_score": measure_log_score(rows, law),
        "c_statistic": measure_discrimination(rows, law),
    }
    highest_score = distances.curve[0, -1]
    return Validation(
        **quantities,
        net_benefit=measure_net_benefits(call, rows, key),
        event=event,
        n=call.n,
        n_groups=call.n_groups,
        confidence_level=call.level,
        n_resamples=call.n_resamples,
        weighted=sample.v is not None,
        notes=write_notes(call, rows, quantities),
        _curve=distances.curve,
        _risks=count_outcomes(rows, unit, highest_score),
    )


def count_outcomes(rows: RiskRows, unit: float, highest_score: float) -> F64:
    """Add up weights (2, N_BARS) without and with the event in bars of a histogram."""
    has_event = rows.y > 0
    weights = [
        np.histogram(
            rows.s[is_chosen],
            N_BARS,
            (0.0, highest_score),
            weights=rows.w[is_chosen] * unit,
        )[0]
        for is_chosen in (~has_event, has_event)
    ]
    return np.array(weights)


def write_notes(call: Call, rows: RiskRows, quantities: dict[str, Quantity]) -> list[str]:
    """Write a sentence on each quantity that is not finite, and on groups."""
    notes = []
    if not rows.is_mixed:
        notes.append(ONE_OUTCOME)
    elif math.isinf(quantities["slope"].value):
        notes.append(SEPARATED)
    if rows.are_constant:
        notes.append(CONSTANT)
    if any(lacks_interval(quantities[name]) for name in COEFFICIENTS):
        notes.append(NO_INTERVAL)
    if is_decided_by_clip(rows, quantities["slope"]):
        n_certain = int(rows.c[rows.is_certain].sum())
        notes.append(DECIDED_BY_CLIP.format(n_certain, int(rows.n), rows.clip))
    if math.isinf(quantities["log_score"].value):
        notes.append(
            INFINITE_SCORE.format(
                first_of(find_infinite_rows(call.with_estimator(LogLoss()), "", math.inf))
            )
        )
    return [*notes, *group_notes(call.n_groups)]


def lacks_interval(quantity: Quantity) -> bool:
    """Decide whether a quantity has a value, and an end that is not known."""
    interval = quantity.confidence_interval
    has_ends = interval is not None and math.isfinite(interval.low + interval.high)
    return math.isfinite(quantity.value) and not has_ends


def is_decided_by_clip(rows: RiskRows, slope: Quantity) -> bool:
    """Decide whether scores of 0 and 1 decide the slope, by a fit with a smaller clip."""
    interval = slope.confidence_interval
    if interval is None or not rows.is_certain.any():
        return False
    beta, _ = slope_model(rows, SMALLER_CLIP * rows.clip).fit()
    return not interval.low <= float(beta[1]) <= interval.high


def check_event(event: Any) -> str:
    """Return the checked name of an event, "" for None."""
    if event is not None and not isinstance(event, str):
        raise InputTypeError("event", "must be a name", value=event)
    return event or ""


def check_clip(clip: Any) -> float | None:
    """Return the checked probability that stands for 0, None for the default."""
    if clip is None:
        return None
    number = check_real("clip", clip, 0.0, 0.5)
    if not 0 < number < 0.5:
        raise InputError("clip", "must be greater than 0 and less than 0.5", value=clip)
    return number


def check_thresholds(thresholds: Any) -> list[NetBenefit]:
    """Return the net benefit at each of a caller's thresholds, in increasing order."""
    if thresholds is None:
        return [*map(NetBenefit, DEFAULT_THRESHOLDS)]
    if isinstance(thresholds, str) or not np.ndim(thresholds) or not len(thresholds):
        raise InputTypeError("thresholds", "must be a list of probabilities", value=thresholds)
    checked = {check_threshold("thresholds", x) for x in np.ravel(thresholds).tolist()}
    return [*map(NetBenefit, sorted(checked))]


@shows_options
def validate(
    y_true: Any, y_prob: Any = None, *, event: str | None = None, thresholds: Any = None,
    confidence_level: float = 0.95, n_resamples: int = 1999, rng: Any = 0, groups: Any = None,
    clip: float | None = None, n_jobs: int | None = None, **options: Unpack[ReadingKeywords],
) -> Validation:  # fmt: skip
    """Validate a risk model: rates, recalibration, curve, discrimination, net benefit.

    Parameters
    ----------
    y_true, y_prob : (n,) array_like
        Whether the event came true, and its predicted probability, as in `fastece.ece`.
    event : str, optional
        Name of the event in the output, by default "the event".
    thresholds : sequence of float, optional
        Thresholds of the net benefit, greater than 0 and less than 1; by default nine from 0.01 to
        0.5.
    confidence_level : float, default 0.95
        The level of all intervals.
    n_resamples : int, default 1999
        Bootstrap samples behind the intervals of net benefits; 0 for none.
    rng : None, int or numpy.random.Generator, default 0
        Seed of the bootstrap.
    groups : (n,) array_like, optional
        Rows with the same label belong together, such as the visits of one patient or the patients
        of one hospital: variances are computed between whole groups.
    clip : float, optional
        For slope and intercepts, predictions below it count as it, and those above ``1 - clip`` as
        that. By default only predictions of 0 and 1 are moved, by ``1 / (2 n + 2)``, or less where
        another prediction is nearer.
    n_jobs, **options
        As in `fastece.ece`; the `setting` is "binary", or a class of class vectors.

    Returns
    -------
    Validation

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for thresholds outside (0, 1), a clip outside (0, 0.5), and for several
        events.

    Notes
    -----
    O/E has a normal interval on the log scale, with the variance ``sum w^2 (y - theta s)^2``;
    without any event it ends at the exact upper end of Clopper and Pearson (1934) over the expected
    events.
    Coefficients (Cox 1958, "Two further applications of a model for binary regression") have
    profile-likelihood intervals and p-values; with weights or groups, deviances are divided by the
    design effect. ICI, E50, E90 and Emax are mean, median, 0.9 quantile and maximum over the rows
    of the posterior mean of ``|c(s) - s|``, with intervals by drawn curves (Austin and Steyerberg
    2019, "The Integrated Calibration Index (ICI) and related metrics"); ICI has the value and the
    interval of `fastece.estimate`. Spiegelhalter's (1986) z is
    ``sum w (y - s)(1 - 2 s)`` over the root of ``sum w^2 (1 - 2 s)^2 s (1 - s)``. C has the
    variance of DeLong et al. (1988) on the logit scale. Net benefit was defined by Vickers and
    Elkin (2006). A quantity that is not defined is nan, with a sentence in `notes`. See
    ``docs/tutorials/risk_model.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import validate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 8, 1000)
    >>> validation = validate(rng.random(1000) < 0.8 * p, p, event="readmission", n_resamples=0)
    >>> for part in validation.sentence.split("; "):
    ...     print(part)
    19.2 % predicted, 16.8 % observed (O/E 0.88, 95 % CI 0.77 to 1.00)
    slope 0.99 (95 % CI 0.75 to 1.24)
    joint test of intercept 0 and slope 1: p = 0.13.
    """
    name = check_event(event)
    clip = check_clip(clip)
    call = read_call(
        "validate", y_true, {"y_prob": y_prob}, 0, estimator=check_thresholds(thresholds),
        confidence_level=confidence_level, n_resamples=n_resamples, n_jobs=n_jobs, **options,
    )  # fmt: skip
    call = add_groups(call, groups, y_prob)
    return validation_of(call, new_key(rng), name or "the event", clip)
