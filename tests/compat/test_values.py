"""Every function gives the values of plain loops, and of its library where that is installed.

The functions of torchmetrics, whose batches may be logits, are in `test_torchmetrics.py`, and the
error of runs, which parts equal scores by a sort, is in `test_quirks.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from fastece.compat import hle, netcal, relplot, robustness_metrics, sklearn
from fastece.compat import uncertainty_calibration as kumar
from helpers.compat_cases import (
    ONLY_QUICK,
    RANDOM_LABELS,
    SEEDS,
    binary_case,
    class_case,
    general_calibration_error,
    library,
    near,
    quietly,
    tolerance,
    until,
)
from oracles import reference_compat as reference

pytestmark = RANDOM_LABELS


class Drawn(NamedTuple):
    """One call of a function with random data.

    Attributes
    ----------
    name : str
        The function, which has this name in its library too.
    arguments, options : tuple, dict
        Its arguments, by position and by name.
    reference : callable
        Computes the value by plain loops.
    kind : type
        The type of the probabilities.
    power : float
        Roots are compared before they are taken: rounding decides the root of a sum of 0.
    has_value : bool
        Whether the library computes this value.
    refusal : str or None
        The message with which the library refuses the call.
    """

    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    reference: Callable[[], Any]
    kind: type
    power: float = 1
    has_value: bool = True
    refusal: str | None = None

    def value(self, module):
        """Call the function of a module."""
        return getattr(module, self.name)(*self.arguments, **self.options)


# --- netcal ---------------------------------------------------------------------------------


def clipped_scores(x, y, kind):
    """The scores of the problem, limited to [eps, 1 - eps] as netcal limits them."""
    tiny = float(np.finfo(kind).eps)
    scores, _ = reference.netcal_problem(x.tolist(), y.tolist(), tiny)
    return np.array(scores, dtype=kind)


def netcal_edges(scores, bins, equal_intervals):
    """The edges of netcal."""
    edges = np.linspace(0, 1, bins + 1)
    if not equal_intervals:
        edges[1:-1] = np.quantile(scores, edges[1:-1])
    return edges


def loses_rows(scores, edges, kind):
    """Does netcal count rows in one bin and average them in another, by edges of two types?"""
    bins_of_counts = np.searchsorted(edges, scores, "right")
    bins_of_means = np.searchsorted(edges.astype(kind), scores, "right")
    return kind is np.float32 and bool((bins_of_counts != bins_of_means).any())


def refusal_of_netcal(x, y, edges, equal_intervals, kind):
    """The message with which netcal refuses a case that has a value, or None."""
    labels = y if y.ndim == 1 else y.argmax(axis=1)
    if x.ndim == 2 and x.shape[1] > 2 and len(np.unique(labels)) <= 2:
        return "binary classification problem"
    if not equal_intervals and (np.diff(edges.astype(kind)) == 0).any():
        return "smallest edge difference"
    return None


def netcal_rows(make, seed):
    """Scores as a vector, one column or two, or class vectors; some labels are indicators."""
    rng, x, y, bins, kind = make(seed)
    k = x.shape[1] if x.ndim == 2 else 2
    if x.ndim == 1 and seed % 4 == 3:
        x = np.column_stack([1 - x, x])
    elif x.ndim == 1 and seed % 4 == 2:
        x = x[:, None]
    has_indicators = seed % 7 == 0 if make is binary_case else seed % 4 == 0 and k > 2
    if has_indicators and len(y) > 1:
        y = np.eye(k, dtype=int)[y]
    return rng, x, y, bins, kind


def draw_netcal(metric):
    def draw(make, seed):
        rng, x, y, bins, kind = netcal_rows(make, seed)
        options = {
            "bins": bins,
            "equal_intervals": bool(rng.random() < 0.6),
            "sample_threshold": int(rng.choice([0, 1, 1, 2, 5])),
        }
        scores = clipped_scores(x, y, kind)
        edges = netcal_edges(scores, bins, options["equal_intervals"])
        return Drawn(
            metric,
            (x, y),
            options,
            lambda: reference.netcal_error(metric, x.tolist(), y.tolist(), **options, kind=kind),
            kind,
            has_value=not loses_rows(scores, edges, kind),
            refusal=refusal_of_netcal(x, y, edges, options["equal_intervals"], kind),
        )

    return draw


class Measured:
    """The measures of netcal, whose options are of their classes, as functions."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, metric):
        kind = getattr(self.module, metric)
        return lambda x, y, **options: kind(**options).measure(x, y)


def find_netcal():
    library("netcal")
    return Measured(library("netcal.metrics"))


# --- uncertainty-calibration ----------------------------------------------------------------


def draw_kumar(name):
    def draw(make, seed):
        rng, probs, labels, n_bins, kind = make(seed)
        if name == "get_calibration_error":
            p = int(rng.choice([1, 2, 2, 3]))
            options = {"p": p, "debias": p < 3 and seed % 2 == 0}
        else:
            p = 1
            options = {"debias": seed % 5 == 0, "num_bins": n_bins}
        options["mode"] = str(rng.choice(["marginal", "top-label"]))
        precision = {} if name == "get_ece" else {"kind": kind}
        oracle = getattr(reference, name)
        return Drawn(
            name,
            (probs, labels),
            options,
            lambda: oracle(probs.tolist(), labels.tolist(), **options, **precision),
            kind,
            power=p,
            # The library draws normal numbers with debias and an exponent that is not 2.
            has_value=not (options["debias"] and p != 2),
        )

    return draw


# --- scikit-learn, relplot, BrowseComp -------------------------------------------------------

# Names of the two labels, and the one that is positive.
LABELS = [((0, 1), None), ((-1, 1), None), (("no", "yes"), "yes"), ((0, 1), 0), ((3, 7), 7)]


def draw_curve(make, seed):
    rng, y_prob, hits, n_bins, kind = make(seed)
    names, pos_label = LABELS[rng.integers(0, len(LABELS))]
    strategy = str(rng.choice(["uniform", "quantile"]))
    y_true = np.array(names)[hits]
    if y_true.dtype.kind == "U" and rng.random() < 0.5:
        y_true = y_true.astype(object)
    options = {"pos_label": pos_label, "n_bins": n_bins, "strategy": strategy}
    return Drawn(
        "calibration_curve",
        (y_true, y_prob),
        options,
        lambda: reference.calibration_curve(y_true.tolist(), y_prob.tolist(), **options, kind=kind),
        np.float64,  # its sums are float64 whatever the scores are
    )


def draw_relplot(make, seed):
    rng, f, y, n_bins, kind = make(seed)
    y = y.astype([np.int64, np.float64, bool, kind, np.uint8][rng.integers(0, 5)])
    return Drawn(
        "binnedECE",
        (f, y),
        {"nbins": n_bins},
        lambda: reference.binned_ece(f.tolist(), y.tolist(), n_bins, kind),
        kind,
    )


def draw_browse_comp(make, seed):
    _, s, y, n_bins, _ = make(seed)
    s = s.astype(float)
    return Drawn(
        "calibration_error",
        (y, s),
        {"num_bins": n_bins},
        lambda: reference.browse_comp(s.tolist(), y.tolist(), n_bins),
        np.float64,
    )


# --- uncertainty_metrics --------------------------------------------------------------------


def draw_gce(make, seed):
    rng, probs, labels, n_bins, kind = make(seed)
    if probs.ndim == 1 and seed % 3 == 0:
        probs = probs[:, None]
    options = {
        "binning_scheme": str(rng.choice(["even", "adaptive"])),
        "max_prob": bool(rng.integers(0, 2)),
        "class_conditional": bool(rng.integers(0, 2)),
        "norm": str(rng.choice(["l1", "l2"])),
        "num_bins": n_bins,
        "threshold": float(rng.choice([0.0, 0.0, 0.01, 0.5])),
        "datapoints_per_bin": None,
    }
    if options["binning_scheme"] == "adaptive" and rng.random() < 0.3:
        options["datapoints_per_bin"] = int(rng.choice([1, 2, 7, 100]))
    name = "gce" if seed % 5 else "general_calibration_error"
    return draw_general(name, labels, probs, options, options, kind)


def draw_general(name, labels, probs, options, options_of_gce, kind):
    """A call of a named error, which is `gce` with some options."""
    return Drawn(
        name,
        (labels, probs),
        options,
        lambda: reference.gce(labels.tolist(), probs.tolist(), **options_of_gce, kind=kind),
        np.float64,  # its sums are float64 whatever the scores are
        power=2 if options_of_gce["norm"] == "l2" else 1,
    )


def switches(scheme, max_prob, by_class, norm, **others):
    """The options of `gce` behind a named error."""
    return {
        "binning_scheme": scheme,
        "max_prob": max_prob,
        "class_conditional": by_class,
        "norm": norm,
        "num_bins": 30,
        "threshold": 0.0,
        "datapoints_per_bin": None,
        **others,
    }


# Switches of each named error, and the options beside `num_bins` that it may be given.
NAMED = {
    "ece": (switches("even", True, False, "l1"), [{}]),
    "sce": (switches("even", False, True, "l1"), [{}]),
    "ace": (switches("adaptive", False, True, "l1"), [{}]),
    "tace": (
        switches("adaptive", False, True, "l1", threshold=0.01),
        [{}, {"threshold": 0.5}, {"threshold": 0.0}],
    ),
    "rmsce": (
        switches("adaptive", True, False, "l2", datapoints_per_bin=100),
        [{}, {"datapoints_per_bin": 7}, {"datapoints_per_bin": None}],
    ),
}


def draw_named(name):
    def draw(make, seed):
        rng, probs, labels, n_bins, kind = make(seed)
        behind, choices = NAMED[name]
        options = {**choices[rng.integers(0, len(choices))]}
        if rng.random() < 0.5:
            options["num_bins"] = n_bins
        return draw_general(name, labels, probs, options, behind | options, kind)

    return draw


# --- the law --------------------------------------------------------------------------------


class Function(NamedTuple):
    """A function: what draws its calls, its module, its library if any, and its data."""

    draw: Callable[[Any, int], Drawn]
    module: Any
    find_library: Callable[[], Any] | None
    cases: tuple[Any, ...] = (binary_case, class_case)


BINARY = (binary_case,)
FUNCTIONS = {
    **{
        name: Function(draw_netcal(name), Measured(netcal), find_netcal)
        for name in ("ECE", "MCE", "ACE")
    },
    **{
        name: Function(draw_kumar(name), kumar, lambda: library("calibration"))
        for name in ("get_ece", "get_ece_em", "get_calibration_error")
    },
    "calibration_curve": Function(
        draw_curve, sklearn, lambda: library("sklearn.calibration"), BINARY
    ),
    "binnedECE": Function(draw_relplot, relplot, lambda: library("relplot.metrics"), BINARY),
    "calibration_error": Function(draw_browse_comp, hle, None, BINARY),
    "gce": Function(draw_gce, robustness_metrics, general_calibration_error),
    **{
        name: Function(draw_named(name), robustness_metrics, general_calibration_error)
        for name in NAMED
    },
}
# Names of functions with the binary or the class vectors that they are given.
CALLS = [(name, make) for name, function in FUNCTIONS.items() for make in function.cases]
CALLS_OF_LIBRARIES = [call for call in CALLS if FUNCTIONS[call[0]].find_library is not None]


def compare(got, want, drawn, atol, seed):
    """The values agree, or both arrays of a curve; the message has the seed."""
    got = got if isinstance(got, tuple) else (got,)
    want = want if isinstance(want, tuple) else (want,)
    for value, expected in zip(got, want, strict=True):
        assert value.dtype == np.float64
        near(value**drawn.power, np.asarray(expected, float) ** drawn.power, atol, seed)


@ONLY_QUICK
@pytest.mark.parametrize(("name", "make"), CALLS)
def test_values_equal_the_reference(name, make, seeds):
    function = FUNCTIONS[name]
    for seed in seeds:
        drawn = function.draw(make, seed)
        compare(drawn.value(function.module), drawn.reference(), drawn, 1e-12, seed)


@SEEDS
@pytest.mark.parametrize(("name", "make"), CALLS_OF_LIBRARIES)
def test_values_equal_the_library(name, make, seeds):
    """Where the library has a value; where it refuses the call, its error."""
    function = FUNCTIONS[name]
    peer = function.find_library()

    def compare_seed(seed):
        drawn = function.draw(make, seed)
        if drawn.refusal is not None:
            with pytest.raises((RuntimeError, ValueError), match=drawn.refusal):
                quietly(drawn.value, peer)
            return False
        if not drawn.has_value:
            return False
        want = quietly(drawn.value, peer)
        atol = tolerance(drawn.kind, len(drawn.arguments[0]))
        compare(drawn.value(function.module), want, drawn, atol, seed)
        return True

    until(seeds, compare_seed)
