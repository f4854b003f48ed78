"""Quantities of a validation: rates, recalibration, scores, discrimination, curve, net benefit.

Each function takes the rows of one problem and the law by which sums over them vary, and returns
quantities by the names of their attributes of `Validation`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fastece.data.samples import scale_weights
from fastece.display.numbers import ConfidenceInterval
from fastece.display.results import Record
from fastece.estimators.bayes.curves import HIGH_BELIEF, LOW_BELIEF, Curves, probabilities
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.bayes.posterior import Posterior
from fastece.estimators.risk import (
    BY_CURVE,
    Logistic,
    RiskRows,
    c_statistic,
    curve_probabilities,
    distance_quantiles,
    intercept,
    intercept_model,
    observed_over_expected,
    placements,
    scaled_brier,
    slope,
    slope_model,
)
from fastece.kernels.types import F64
from fastece.resampling.bootstrap import Resampling, resample
from fastece.resampling.call import Call, compute_values
from fastece.risk.variance import Quantity, SamplingLaw, wilson_interval

# Ends of intervals of coefficients are looked for up to this many doublings of a standard error.
MAX_DOUBLINGS = 30
# A variance matrix whose determinant is less than this share of its squared trace is singular.
SINGULAR = 1e-14


# --- rates ----------------------------------------------------------------------------------


def measure_rates(rows: RiskRows, law: SamplingLaw) -> dict[str, Quantity]:
    """Compute the observed and the predicted rate, and O/E."""
    share = rows.w / rows.w.sum()
    observed = float(share @ rows.y)
    predicted = float(share @ rows.s)
    interval = wilson_interval(observed, share * (rows.y - observed), law)
    return {
        "observed_rate": Quantity(observed, interval),
        "predicted_rate": law.quantity(predicted, share * (rows.s - predicted), low=0.0, high=1.0),
        "oe": measure_ratio(rows, law),
    }


def measure_ratio(rows: RiskRows, law: SamplingLaw) -> Quantity:
    """Compute O/E with an interval and a test on the log scale."""
    ratio = observed_over_expected(rows)
    expected = float(rows.w @ rows.s)
    if ratio == 0 and expected > 0:
        high = most_events_behind_none(rows, law) / expected
        return Quantity(ratio, ConfidenceInterval(0.0, high))
    if not 0 < ratio < math.inf:
        return Quantity(ratio)
    influences_on_log = rows.w * (rows.y - ratio * rows.s) / float(rows.w @ rows.y)
    log_ratio = law.quantity(math.log(ratio), influences_on_log)
    quantity = Quantity(ratio).with_interval_of(log_ratio, np.exp)
    standard_error = law.standard_error(influences_on_log)
    if not standard_error > 0:
        return quantity
    return replace(quantity, p_value=law.p_value(log_ratio.value / standard_error))


def most_events_behind_none(rows: RiskRows, law: SamplingLaw) -> float:
    """Compute the upper end of the mean number of events where none occurred.

    It is the largest ``sum W q`` over risks q of independent units, rows or groups with the weights
    W, for which no event has at least the probability ``alpha / 2 = prod(1 - q)``. For equal
    weights all risks are equal there, and this is the upper end of Clopper and Pearson (1934, "The
    use of confidence or fiducial limits illustrated in the case of the binomial"),
    ``n (1 - (alpha / 2)^(1 / n))``, and for many rows of Poisson's law, ``-log(alpha / 2)``. Risks
    that differ have a lower end. For unequal weights, the maximum is where ``W (1 - q)`` is the
    same for all units with a risk above 0.
    """
    from scipy.optimize import brentq

    if law.groups is None:
        weight = rows.w / rows.c
        n_units = rows.c
    else:
        weight_of_group = np.bincount(law.groups.of_row, weights=rows.w).astype(np.float64)
        weight = weight_of_group[weight_of_group > 0]
        n_units = np.ones(weight.size)
    log_share = np.log(weight / weight.max())
    total = -math.log((1 - law.level) / 2)

    def log_survival(shift: float) -> Any:
        """Compute ``-log(1 - q)`` of each unit, which is 0 for the lightest units."""
        return np.maximum(shift + log_share, 0.0)

    shift = brentq(lambda x: n_units @ log_survival(x) - total, 0.0, total, xtol=1e-300)
    return float((n_units * weight) @ -np.expm1(-log_survival(shift)))


# --- logistic recalibration -----------------------------------------------------------------


def measure_recalibration(rows: RiskRows, law: SamplingLaw) -> dict[str, Quantity]:
    """Compute the intercept, the slope with its intercept, and their joint test.

    Cox (1958, "Two further applications of a model for binary regression").
    """
    quantities = {
        "intercept": Quantity(intercept(rows)),
        "slope": Quantity(slope(rows)),
        "slope_intercept": Quantity(math.nan),
    }
    if rows.is_mixed:
        quantities["intercept"] = estimate_coefficient(intercept_model(rows), 0, 0.0, law)
    if math.isfinite(quantities["slope"].value):
        model = slope_model(rows)
        quantities["slope"] = estimate_coefficient(model, 1, 1.0, law)
        quantities["slope_intercept"] = estimate_coefficient(model, 0, 0.0, law)
    quantities["recalibration_test"] = joint_test(rows, law)
    return quantities


def estimate_coefficient(model: Logistic, j: int, null: float, law: SamplingLaw) -> Quantity:
    """Estimate a coefficient, with an interval and a test by its profile likelihood.

    Deviances are divided by a design effect: the variance of the coefficient with weighted rows or
    groups, over the variance by the likelihood.
    """
    beta, log_likelihood = model.fit()
    inverse = np.linalg.pinv(model.information(beta))
    variance_of_scores = model.variance_of_scores(beta)
    if law.groups is not None:
        residuals = model.w * model.residuals(beta)
        scores = law.independent_sums(model.x * residuals[:, None])
        variance_of_scores = scores.T @ scores
    value = float(beta[j])
    variance = float((inverse @ variance_of_scores @ inverse)[j, j])
    if not variance > 0:
        return Quantity(value)
    design_effect = variance / float(inverse[j, j])

    def signed_root(x: float) -> float:
        """Compute the root of the deviance of x, in standard errors."""
        deviance = 2 * (log_likelihood - model.profile(j, x)) / design_effect
        return math.sqrt(max(deviance, 0.0))

    limit = law.quantile()
    step = limit * math.sqrt(variance)
    low = find_crossing(signed_root, limit, value, -step)
    high = find_crossing(signed_root, limit, value, step)
    return Quantity(value, ConfidenceInterval(low, high), law.p_value(signed_root(null)))


def find_crossing(
    function: Callable[[float], float], limit: float, start: float, step: float
) -> float:
    """Find where a function that rises exceeds a limit; nan where it never does."""
    from scipy.optimize import brentq

    for k in range(MAX_DOUBLINGS):
        end = start + step * 2.0**k
        if function(end) > limit:
            # scipy's wrapper refers to itself and to a function, not to its arguments: the rows
            # behind a lambda would stay in memory until Python looks for cycles of references.
            return float(brentq(excess, start, end, args=(function, limit), xtol=1e-9))
    return math.nan


def excess(x: float, function: Callable[[float], float], limit: float) -> float:
    """Compute by how much a function of x exceeds a limit."""
    return function(x) - limit


def joint_test(rows: RiskRows, law: SamplingLaw) -> Quantity:
    """Test intercept 0 and slope 1 by a score test with two degrees of freedom.

    The variance of the scores is the one of a calibrated model; with groups, it is the variance
    between them, and the F law of few groups gives the p-value.
    """
    design = np.column_stack([np.ones(rows.s.size), rows.logit])
    scores = design * (rows.w * (rows.y - rows.s))[:, None]
    variance = (design.T * (rows.squares * rows.s * (1 - rows.s))) @ design
    if law.groups is not None:
        scores_of_groups = law.independent_sums(scores)
        variance = scores_of_groups.T @ scores_of_groups
    if not SINGULAR * np.trace(variance) ** 2 < np.linalg.det(variance):
        return Quantity(math.nan)
    total = scores.sum(axis=0)
    value = float(total @ np.linalg.solve(variance, total))
    if law.groups is None:
        return Quantity(value, p_value=math.exp(-value / 2))
    count = law.groups.count
    if count <= 2:
        return Quantity(value)
    from scipy.special import fdtrc

    f_value = value * (count - 2) / (2 * (count - 1))
    return Quantity(value, p_value=float(fdtrc(2, count - 2, f_value)))


# --- scores ---------------------------------------------------------------------------------


def spiegelhalter_test(rows: RiskRows, law: SamplingLaw) -> Quantity:
    """Test the Brier score against its mean for a calibrated model.

    ``z = sum w (y - s)(1 - 2 s) / sqrt(sum w^2 (1 - 2 s)^2 s (1 - s))`` (Spiegelhalter 1986,
    "Probabilistic prediction in patient management and clinical trials").
    """
    factors = 1 - 2 * rows.s
    terms = rows.w * factors * (rows.y - rows.s)
    if law.groups is None:
        standard_error = math.sqrt(float(rows.squares @ (factors**2 * rows.s * (1 - rows.s))))
    else:
        standard_error = law.standard_error(terms)
    if not standard_error > 0:
        return Quantity(math.nan)
    z = float(terms.sum()) / standard_error
    return Quantity(z, p_value=law.p_value(z))


def measure_brier(rows: RiskRows, law: SamplingLaw) -> dict[str, Quantity]:
    """Compute the Brier score B and the scaled one.

    The latter is ``1 - B / (r (1 - r))`` with the rate r of events.
    """
    share = rows.w / rows.w.sum()
    rate = float(share @ rows.y)
    squares = (rows.y - rows.s) ** 2
    brier = float(share @ squares)
    reference = rate * (1 - rate)
    influences = np.zeros(rows.s.size)
    if reference > 0:
        through_rate = brier * (1 - 2 * rate) / reference * (rows.y - rate)
        influences = share * (through_rate - (squares - brier)) / reference
    return {
        "brier": law.quantity(brier, share * (squares - brier), low=0.0, high=1.0),
        "scaled_brier": law.quantity(scaled_brier(rows), influences, high=1.0),
    }


def measure_log_score(rows: RiskRows, law: SamplingLaw) -> Quantity:
    """Compute the mean of minus the logarithm of the probability of the outcome."""
    with np.errstate(divide="ignore"):
        losses = -np.log(np.where(rows.y > 0, rows.s, 1 - rows.s))
    if not np.isfinite(losses).all():
        return Quantity(math.inf)
    share = rows.w / rows.w.sum()
    mean = float(share @ losses)
    return law.quantity(mean, share * (losses - mean), low=0.0)


def measure_discrimination(rows: RiskRows, law: SamplingLaw) -> Quantity:
    """Compute the C statistic with an interval on the logit scale.

    The variance is the one of DeLong, DeLong and Clarke-Pearson (1988, "Comparing the areas under
    two or more correlated receiver operating characteristic curves").
    """
    from scipy.special import expit, logit

    value = c_statistic(rows)
    if not 0 < value < 1:
        return Quantity(value)
    influences = placements(rows) - value
    for outcome in (0, 1):
        has_outcome = rows.y == outcome
        share = rows.w[has_outcome] / rows.w[has_outcome].sum()
        # 1 - 1 / m for m rows that count the same, as in an unbiased variance.
        correction = 1 - float(share @ (share / rows.c[has_outcome]))
        scale = 1 / math.sqrt(correction) if correction > 0 else math.nan
        influences[has_outcome] *= share * scale
    on_logit_scale = law.quantity(float(logit(value)), influences / (value * (1 - value)))
    return Quantity(value).with_interval_of(on_logit_scale, expit)


# --- the calibration curve ------------------------------------------------------------------


class CurveDistances(NamedTuple):
    """Distances between predictions and the calibration curve, and the curve itself.

    Attributes
    ----------
    quantities : dict of str to Quantity
        ICI, E50, E90 and Emax.
    curve : (4, G) float64 array
        Scores, mean probabilities and the ends of their pointwise intervals.
    """

    quantities: dict[str, Quantity]
    curve: F64


def measure_curve(call: Call) -> CurveDistances:
    """Compute ICI, E50, E90 and Emax of the Bayesian curve, with posterior intervals.

    Austin and Steyerberg (2019, "The Integrated Calibration Index (ICI) and related metrics").
    """
    sample, _ = scale_weights(call.tables[0].samples(reads_only=True)[0])
    posterior = BayesCurve().posterior([sample], call.design_effect)
    curves = Curves(posterior.problems[0].rows)
    quantities = measure_distances(posterior, curves, call.level)
    score, p = curve_probabilities(sample.sorted(), curves)
    tail = (1 - call.level) / 2
    ends = np.quantile(p, [tail, 1 - tail], axis=1)
    return CurveDistances(quantities, np.vstack([score, p.mean(axis=1), *ends]))


def measure_distances(posterior: Posterior, curves: Curves, level: float) -> dict[str, Quantity]:
    """Compute mean, median, 0.9 quantile and largest of the posterior mean distances.

    E50, E90 and Emax have intervals like ICI, from their values on drawn curves. Drawn curves are
    rougher than the mean of all, and their largest distances too large: a factor brings the mean
    of each quantity over the draws to its value.
    """
    weight = curves.rows.cells[0]

    def quantiles_of(p: F64) -> F64:
        return np.array([distance_quantiles(size, weight) for size in curves.gap_sizes(p).T]).T

    values = distance_quantiles(curves.distances(), weight)
    means = curves.posterior_mean(quantiles_of)
    scale = np.divide(values, means, out=np.ones(values.size), where=means > 0)
    drawn = np.minimum(quantiles_of(probabilities(curves.pool())) * scale[:, None], 1.0)
    low, high = curves.choose(LOW_BELIEF, HIGH_BELIEF)
    posteriors = {"ici": posterior}
    for name, value, errors in zip(BY_CURVE, values.tolist(), drawn, strict=True):
        posteriors[name] = replace(
            posterior,
            value=value,
            low_errors=np.sort(errors[low]),
            high_errors=np.sort(errors[high]),
            max_error=1.0,
            wrong_rows=None,
        )
    return {
        name: Quantity(each.value, ConfidenceInterval(*each.interval(level)))
        for name, each in posteriors.items()
    }


# --- net benefit ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DecisionPoint(Record):
    """Net benefit at one threshold.

    Attributes
    ----------
    threshold : float
        Rows with a score of at least this are treated.
    model, treat_all : float
        Net benefit of the model, and of treating everyone; treating no one has a net benefit of 0.
    low, high : float or None
        Confidence interval of the model's net benefit; None without replicates.
    """

    threshold: float
    model: float
    treat_all: float
    low: float | None = None
    high: float | None = None


def measure_net_benefits(call: Call, rows: RiskRows, key: int) -> list[DecisionPoint]:
    """Compute net benefits by threshold, with intervals by the percentile bootstrap.

    Vickers and Elkin (2006, "Decision curve analysis: a novel method for evaluating prediction
    models").
    """
    rate = float(np.average(rows.y, weights=rows.w))
    fields: dict[str, Any] = {}
    if call.n_resamples:
        fields = resample(call, Resampling("percentile", call.units.total, key))
    tail = (1 - call.level) / 2
    points = []
    for name, estimator in call.estimators.items():
        low = high = None
        if fields:
            replicates = fields[name]["bootstrap_distribution"]
            low, high = np.quantile(replicates, [tail, 1 - tail]).tolist()
        (value,) = compute_values(call, name)
        odds = estimator.threshold / (1 - estimator.threshold)
        treat_all = rate - (1 - rate) * odds
        points.append(DecisionPoint(estimator.threshold, value, treat_all, low, high))
    return points
