"""Options of calls: each works by name where it is shown, and an unknown one is answered."""

import inspect
import pydoc
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

import fastece
from fastece import decisions, metrics
from fastece.data import parameters
from fastece.data.options import (
    DEFAULT_OPTIONS,
    GROUPED_NAMES,
    OPTION_NAMES,
    GroupedKeywords,
    ReadingOptions,
    reading_options,
    split_options,
)
from fastece.data.parameters import check_jobs
from fastece.estimators.table import ESTIMATORS, GroupedEstimatorKeywords

RNG = np.random.default_rng(3)
P = RNG.uniform(0.55, 0.95, 60)
Y = (RNG.random(60) < P).astype(int)
ONES = np.ones(60, np.int64)
WORDS = np.where(Y == 1, "yes", "no")
# The same rows, written so that each option is needed to read them.
WAYS = {
    "setting": (Y, np.column_stack([1 - P, P]), {"setting": 1}),
    "labels": (WORDS, P, {"labels": ["no", "yes"]}),
    "pos_label": (WORDS, P, {"pos_label": "yes"}),
    "sample_weight": (Y, P, {"sample_weight": 2.0 * ONES}),
    "counts": (Y, P, {"counts": ONES}),
    "from_logits": (Y, logit(P), {"from_logits": True}),
    "soft": (Y.astype(float), P, {"soft": True}),
    "votes": (Y, P, {"votes": ONES}),
    "percent": (Y, 100 * P, {"percent": True}),
    "ignore_label": (np.append(Y, 9), np.append(P, 0.5), {"ignore_label": 9}),
    "class_axis": (Y.reshape(6, 10), P.reshape(6, 1, 10), {"class_axis": 1}),
}
KDE = fastece.KDE()
ECCE = fastece.CumulativeError()
# Functions with other arguments that they need, and a number that they give.
FUNCTIONS = [
    *[
        (getattr(metrics, name), {}, float)
        for name in ("ece", "mce", "brier_score", "ranked_probability_score", "log_loss")
    ],
    *[(getattr(metrics, name), {}, float) for name in ("accuracy", "sharpness", "entropy")],
    (fastece.canonical_error, {}, float),
    (fastece.kernel_calibration_error, {}, float),
    (fastece.bootstrap, {"n_resamples": 9}, lambda result: result.value),
    (fastece.estimate, {}, lambda result: result.confidence_interval.high),
    (
        fastece.calibration_test,
        {"n_resamples": 9, "estimator": "ece"},
        lambda result: result.value,
    ),
    (fastece.direction, {"n_resamples": 9}, lambda result: result.over),
    (fastece.validate, {"n_resamples": 0}, lambda result: result.n),
    (fastece.check, {"max_error": 0.1}, lambda result: result.value),
    (
        decisions.assert_calibrated,
        {"max_error": 0.1, "when_unsure": "pass"},
        lambda result: result.value,
    ),
    (fastece.calibration_report, {"n_resamples": 0}, lambda report: report.measures[0].value),
    (fastece.reliability_diagram, {}, lambda diagram: diagram.value),
    (fastece.reliability_curve, {}, lambda curve: curve.value),
    (fastece.brier_decomposition, {}, lambda parts: parts.score),
    (fastece.score_decomposition, {}, lambda parts: parts.score),
    (decisions.choose_threshold, {"accuracy": 0.5}, lambda threshold: threshold.value),
    (decisions.risk_coverage, {}, lambda curve: curve.aurc),
    (KDE.bandwidth_sweep, {"bandwidths": [0.1]}, lambda values: values[0]),
    (ECCE.asymptotic_p_value, {}, float),
    (fastece.Accumulator().update, {}, fastece.ece),
    (decisions.Monitor().update, {}, lambda monitor: monitor.n),
]
# Functions that look at single rows refuse counts, with a sentence that says what to do.
SINGLE_ROWS = {
    "canonical_error", "kernel_calibration_error", "choose_threshold", "risk_coverage",
}  # fmt: skip


def name_of(value):
    return getattr(value, "__name__", None)


def new(function):
    """The function; a method of a new object, where its object keeps rows."""
    if name_of(function) == "update":
        return type(function.__self__)().update
    return function


@pytest.mark.parametrize(("function", "arguments", "number"), FUNCTIONS, ids=name_of)
def test_every_option_that_a_function_shows_works_by_name(function, arguments, number):
    name = function.__name__
    shown = set(OPTION_NAMES) & set(inspect.signature(function).parameters)
    assert shown >= {"labels", "ignore_label", "class_axis"}
    expected = number(new(function)(Y, P, **arguments))
    for option, (y, p, keywords) in WAYS.items():
        if option == "counts" and name in SINGLE_ROWS:
            with pytest.raises(ValueError, match=r"counts: must be left out .*; repeat the rows"):
                function(y, p, **arguments, **keywords)
        elif option in shown:
            value = number(new(function)(y, p, **arguments, **keywords))
            np.testing.assert_allclose(value, expected, 1e-9, err_msg=option)
        else:
            with pytest.raises(TypeError, match=f"^{option}: is not an option of {name}; "):
                function(y, p, **arguments, **keywords)


@pytest.mark.parametrize(
    ("function", "arguments"), [row[:2] for row in FUNCTIONS[:13]], ids=name_of
)
def test_one_group_of_rows_is_all_rows(function, arguments):
    if "by" not in inspect.signature(function).parameters:
        with pytest.raises(TypeError, match=f"^by: is not an option of {function.__name__}; "):
            function(Y, P, by=ONES, **arguments)
        return
    alone = function(Y, P, **arguments)
    (value,) = np.asarray(getattr(function(Y, P, by=ONES, **arguments), "value", [alone]))
    assert value == getattr(alone, "value", alone)


OTHER_FUNCTIONS = [
    (fastece.compare, (Y, P, P), {}),
    (fastece.slices, (Y, P), {"by": Y}),
    (fastece.rows_needed, (Y, P), {"width": 0.1}),
    (fastece.reliability_plot, (Y, P), {}),
    (fastece.cumulative_plot, (Y, P), {}),
]


def test_a_table_that_was_read_before_stands_for_both_arrays_in_every_function():
    table = fastece.Predictions(Y, 100 * P, percent=True)
    for function, arguments, number in FUNCTIONS:
        # Objects that keep rows take arrays; a report takes half a second, and has a test.
        if name_of(function) not in ("update", "calibration_report"):
            expected = pytest.approx(number(function(Y, P, **arguments)), rel=1e-12)
            assert number(function(table, **arguments)) == expected, function.__name__


def test_labels_come_first_and_all_else_goes_by_its_name():
    public = [getattr(fastece, name) for name in fastece.__all__]
    public += [getattr(decisions, name) for name in decisions.__all__]
    for function in filter(inspect.isfunction, public):
        parameters = inspect.signature(function).parameters.values()
        leading = [x.name for x in parameters if x.kind is x.POSITIONAL_OR_KEYWORD]
        assert leading in (
            ["y_true", "y_prob"],
            ["y_true", "y_prob_a", "y_prob_b"],
            ["estimator"],  # of check_estimator, which reads no rows
        ), function.__name__
        assert not any(x.kind is x.VAR_POSITIONAL for x in parameters), function.__name__


# Functions that answer have the seed 0; `bootstrap`, which gives draws, draws anew.
SEED_AND_RESAMPLES = {
    "bootstrap": (None, 9999),
    "calibration_report": (0, 1999),
    "calibration_test": (0, 1999),
    "check": (0, None),
    "compare": (0, 1999),
    "direction": (0, 1999),
    "estimate": (0, 1999),
    "reliability_curve": (0, 0),
    "reliability_plot": (0, None),
    "rows_needed": (0, None),
    "slices": (0, 1999),
    "validate": (0, 1999),
}


def test_answers_are_the_same_every_time_unless_a_seed_is_given():
    found = {}
    for name in fastece.__all__:
        function = getattr(fastece, name)
        parameters = inspect.signature(function).parameters if inspect.isfunction(function) else {}
        if "rng" in parameters:
            resamples = parameters.get("n_resamples")
            found[name] = (parameters["rng"].default, resamples and resamples.default)
    assert found == SEED_AND_RESAMPLES
    assert inspect.signature(fastece.rows_needed).parameters["power"].default == 0.8


@pytest.mark.parametrize(
    ("function", "rows", "arguments"),
    [*[(function, (Y, P), x) for function, x, _ in FUNCTIONS], *OTHER_FUNCTIONS],
    ids=name_of,
)
def test_an_unknown_option_names_the_nearest_and_lists_the_known(function, rows, arguments):
    parameters = inspect.signature(function).parameters.values()
    named = [x.name for x in parameters if x.kind is x.KEYWORD_ONLY]
    shown = [option for option in OPTION_NAMES if option in named]
    nearest = f"perhaps {shown[-1]}= is meant; "
    with pytest.raises(TypeError, match=f"^class_axes: is not .*{nearest}") as error:
        function(*rows, **arguments, class_axes=1)
    listed = re.findall(r"'(\w+)'", str(error.value).partition("; options of ")[2])
    assert [x for x in listed if x in OPTION_NAMES] == shown
    assert set(shown) <= set(listed)


@pytest.mark.parametrize(
    ("call", "remark"),
    [
        (fastece.bootstrap, "perhaps rng= is meant"), (fastece.estimate, "perhaps rng= is meant"),
        (fastece.reliability_curve, "perhaps rng= is meant"), (fastece.ece, "known: "),
        (fastece.reliability_diagram, "known: "),
        (lambda *_, **options: fastece.sklearn.scorer(**options), "known: "),
    ],
)  # fmt: skip
def test_names_of_seeds_elsewhere_are_answered_with_rng_where_there_is_one(call, remark):
    for name in ("seed", "random_state"):
        start = rf"^{name}: is not a parameter of the estimator \w+, nor an option of \w+; "
        with pytest.raises(TypeError, match=start + remark) as error:
            call(Y, P, **{name: 3})
        assert "; options of " in str(error.value)


def test_the_nearest_name_is_the_one_that_is_meant():
    for name, meant in {
        "nbins": "n_bins",
        "sample_weights": "sample_weight",
        "edge": "edges",
    }.items():
        with pytest.raises(TypeError, match=rf"^{name}: .*; perhaps {meant}= is meant; known: "):
            fastece.bootstrap(Y, P, **{name: 3})
    with pytest.raises(TypeError, match=r"nor an option of ece; known: 'n_bins', "):
        fastece.ece(Y, P, qqq=3)


def test_an_estimator_without_bins_has_no_diagram():
    class Brier:
        def prepare(self, sample, size):  # noqa: ARG002
            return sample

        def evaluate(self, plan, c):
            return float(np.average((plan.y - plan.s) ** 2, weights=c))

    assert fastece.ece(Y, P, estimator=Brier()) == pytest.approx(np.mean((Y - P) ** 2))
    with pytest.raises(TypeError, match="a reliability diagram needs bins"):
        fastece.reliability_diagram(Y, P, estimator=Brier())
    with pytest.raises(TypeError, match="n_bins: is not a parameter of the estimator Brier"):
        fastece.ece(Y, P, estimator=Brier(), n_bins=3)


def test_all_lists_of_options_are_one():
    assert GroupedKeywords.__optional_keys__ == {*GROUPED_NAMES}
    parameters = {field.name for x in ESTIMATORS.values() for field in fields(x)}
    assert GroupedEstimatorKeywords.__optional_keys__ == {*GROUPED_NAMES} | parameters
    text = pydoc.plain(pydoc.render_doc(fastece.ece))
    summary = text[text.index("Parameters\n") : text.index("Returns\n")]
    described = re.findall(r"^ {4}(\w+) : .*\n +(.*)\n", summary, re.MULTILINE)
    assert [name for name, _ in described if name in GROUPED_NAMES] == [*GROUPED_NAMES]
    page = Path(__file__).parents[2] / "docs" / "reference" / "input.md"
    rows = re.findall(r"^\| \[`(\w+)`\]\(#", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [*GROUPED_NAMES]


def test_a_call_without_options_makes_no_object():
    assert reading_options({}) is DEFAULT_OPTIONS
    assert split_options({})[0] is DEFAULT_OPTIONS
    assert split_options({"n_bins": 3}) == (DEFAULT_OPTIONS, {"n_bins": 3})
    options, others = split_options({"percent": True, "n_bins": 3, "labels": [1, 2]})
    assert others == {"n_bins": 3}
    assert repr(options) == repr(ReadingOptions(labels=[1, 2], percent=True))
    with pytest.raises(AttributeError):
        options.percent = False


# --- threads --------------------------------------------------------------------------------------


def test_jobs_are_counted_as_elsewhere(monkeypatch):
    assert check_jobs(None) == 1
    assert check_jobs(3) == 3
    monkeypatch.setattr(parameters, "processors", lambda: 4)
    assert [check_jobs(n) for n in (-1, -2, -(10**6))] == [4, 3, 1]


def test_processors_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {3 + pid, 5, 7}, raising=False)
    monkeypatch.delattr("os.process_cpu_count", raising=False)
    assert parameters.processors() == 3
    monkeypatch.setattr("os.process_cpu_count", lambda: 2, raising=False)
    assert parameters.processors() == 2
    monkeypatch.delattr("os.process_cpu_count")
    monkeypatch.delattr("os.sched_getaffinity")
    assert parameters.processors() == 64
