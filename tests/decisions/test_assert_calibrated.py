"""`assert_calibrated` passes, fails with the verdict, or only warns."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from fastece import check
from fastece.decisions import assert_calibrated
from helpers.bad_input import assert_refused


def data(power, n=1000):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return rng.random(n) < p**power, p


def test_a_pass_returns_the_check():
    y, p = data(1.0)
    result = assert_calibrated(y, p, max_error=0.1, when_unsure="fail", confidence_level=0.9)
    assert result.passed
    assert result.line == check(y, p, max_error=0.1, confidence_level=0.9).line


@pytest.mark.parametrize("when_unsure", ["warn", "fail", "pass"])
def test_a_failure_shows_the_check_and_where_to_look_next(when_unsure):
    y, p = data(2.5)
    with pytest.raises(AssertionError) as error:
        assert_calibrated(y, p, max_error=0.05, when_unsure=when_unsure)
    verdict, *_, hint = str(error.value).splitlines()
    assert verdict == check(y, p, max_error=0.05).line
    assert verdict.startswith("fails: ")
    assert "calibration_report" in hint


def test_slices_and_options_are_passed_on_to_the_check():
    y, p = data(2.5)
    text = np.where(y, "yes", "no")
    by = np.arange(1000) % 2
    options = {"pos_label": "yes", "sample_weight": np.ones(1000), "groups": np.arange(1000) // 2}
    with pytest.raises(AssertionError) as error:
        assert_calibrated(text, p, max_error=0.05, by=by, min_rows=10, **options)
    assert "slice 1" in str(error.value)


def test_a_bound_on_oe_may_take_the_place_of_one_on_the_error():
    y, p = data(1.0)
    assert assert_calibrated(y, p, max_ratio=1.25).passed
    with pytest.raises(AssertionError, match=r"^fails: O/E .* 0\.8 to 1\.25 allowed"):
        assert_calibrated(y, p / 2, max_ratio=1.25)


def test_rows_that_cannot_tell_warn_fail_or_pass():
    y, p = data(1.0, 100)
    with pytest.warns(UserWarning, match="cannot tell: .* about .* rows would decide") as caught:
        assert assert_calibrated(y, p, max_error=0.03).passed is None
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert assert_calibrated(y, p, max_error=0.03, when_unsure="pass").passed is None
    with pytest.raises(AssertionError, match=r"^cannot tell: "):
        assert_calibrated(y, p, max_error=0.03, when_unsure="fail")


def test_bad_input_is_refused_and_is_no_failed_assertion():
    y, p = data(1.0, 10)
    names = ["when_unsure", "'no'", "'warn', 'fail', 'pass'"]
    assert_refused(lambda: assert_calibrated(y, p, max_error=0.1, when_unsure="no"), names)
    assert_refused(lambda: assert_calibrated(y, p, max_error=7), ["max_error"])


@pytest.mark.slow
def test_assertions_need_no_pytest():
    code = "import sys, fastece.decisions; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
