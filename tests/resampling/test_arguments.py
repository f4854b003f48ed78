"""What is refused, and by which name."""

from inspect import signature
from math import nan

import numpy as np
import pytest

import fastece
from fastece.resampling.arguments import read_call
from fastece.resampling.bootstrap import resample
from helpers.resample_cases import (
    binary,
    two_models,
)

BAD = [
    *[("n_resamples", value) for value in (0, -1, 1.5, True, "many", None)],
    *[("size", value) for value in (0, -3, 2.5, True, "n")],
    *[("confidence_level", value) for value in (0, 1, 1.5, -0.1, nan, "high", None, True)],
    *[("method", value) for value in ("studentized", None, 3)],
    *[("rng", value) for value in ("seed", 1.5, -1, True)],
    *[("executor", value) for value in (object(), 3, "threads")],
    *[("n_jobs", value) for value in (0, 1.5)],
    *[("estimator", value) for value in ([], (), "nothing", ["ece", "nothing"], [3])],
    *[("bootstrap_result", value) for value in ("previous", 3, {})],
    *[("average", value) for value in ("micro", 1)],
    ("setting", "nothing"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_arguments_are_refused_by_name(name, value):
    true, a, b = two_models(10)
    options = {"n_resamples": 5, name: value}
    with pytest.raises((ValueError, TypeError), match=name):
        fastece.bootstrap(true, a, **options)
    with pytest.raises((ValueError, TypeError), match=name):
        fastece.compare(true, a, b, **options)
    if name not in {"size", "method", "bootstrap_result"} and not isinstance(value, list | tuple):
        with pytest.raises((ValueError, TypeError), match=name):
            fastece.calibration_test(true, a, **options)


def test_an_unknown_method_is_answered_with_those_that_are_known():
    result = fastece.bootstrap(*binary(20), n_resamples=10, rng=0)
    for call in (
        lambda: fastece.bootstrap(*binary(20), n_resamples=10, method="BC"),
        lambda: result.interval(method="BC"),
    ):
        with pytest.raises(ValueError, match=r"basic.*percentile.*bca"):
            call()
    for level in (0, 1, nan, "high"):
        with pytest.raises((ValueError, TypeError), match="confidence_level"):
            result.interval(level)


def test_bad_data_are_refused_by_name():
    true, a, b = two_models(10)
    bad = np.where(np.arange(10) == 3, 1.5, a)
    options = {"n_resamples": 5}
    with pytest.raises(ValueError, match=r"y_prob\[3\]"):
        fastece.bootstrap(true, bad, **options)
    with pytest.raises(ValueError, match=r"y_prob\[3\]"):
        fastece.calibration_test(true, bad, **options)
    with pytest.raises(ValueError, match=r"y_prob_a\[3\]"):
        fastece.compare(true, bad, b, **options)
    with pytest.raises(ValueError, match=r"y_prob_b\[3\]"):
        fastece.compare(true, a, bad, **options)
    with pytest.raises(ValueError, match="y_prob_b"):
        fastece.compare(true, a, b[:9], **options)
    with pytest.raises(ValueError, match=r"y_true\[0\]"):
        fastece.bootstrap([5, *true[1:]], a, **options)
    with pytest.raises(TypeError, match="n_bin"):
        fastece.bootstrap(true, a, n_bin=3, **options)


def test_everything_but_the_data_is_named():
    for call in (fastece.bootstrap, fastece.calibration_test):
        with pytest.raises(TypeError):
            call(*binary(5), "ece")
    with pytest.raises(TypeError):
        fastece.compare(*two_models(5), "ece")


def test_functions_that_pass_options_on_have_the_defaults_of_the_bootstrap():
    defaults = {
        name: option.default for name, option in signature(fastece.bootstrap).parameters.items()
    }
    passed = {}
    for function in (read_call, resample, fastece.compare, fastece.calibration_test):
        found = signature(function).parameters.values()
        passed |= {option.name: option.default for option in found if option.name in defaults}
        for option in found:
            # `compare` gives what makes honest intervals; the method of the test is another.
            own = "method" if function is fastece.calibration_test else "honest"
            if option.kind is option.KEYWORD_ONLY and option.name != own:
                assert option.default == defaults[option.name], (function, option.name)
    assert set(passed) | {"fields"} == set(defaults)
