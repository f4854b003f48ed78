"""Options of calls, and how many threads they may take."""

import numpy as np
import pytest

import fastece
from fastece.data import parameters
from fastece.data.parameters import check_jobs

Y, P = [0, 1, 1], [0.2, 0.6, 0.9]


def test_an_estimator_without_bins_has_no_diagram():
    class Brier:
        def prepare(self, sample, size):  # noqa: ARG002
            return sample

        def evaluate(self, plan, c):
            return float(np.average((plan.y - plan.s) ** 2, weights=c))

    assert fastece.ece(Y, P, estimator=Brier()) == pytest.approx((0.04 + 0.16 + 0.01) / 3)
    with pytest.raises(TypeError, match="a reliability diagram needs bins"):
        fastece.reliability_diagram(Y, P, estimator=Brier())
    with pytest.raises(TypeError, match="n_bins: is not a parameter of the estimator Brier"):
        fastece.ece(Y, P, estimator=Brier(), n_bins=3)


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


RNG = "perhaps rng= is meant"
# Functions by name, with what they say of the option `seed`.
CALLS = {
    "bootstrap": (lambda **x: fastece.bootstrap(Y, P, **x), RNG),
    "estimate": (lambda **x: fastece.estimate(Y, P, **x), RNG),
    "compare": (lambda **x: fastece.compare(Y, P, P, **x), RNG),
    "calibration_test": (lambda **x: fastece.calibration_test(Y, P, **x), RNG),
    "direction": (lambda **x: fastece.direction(Y, P, **x), RNG),
    "slices": (lambda **x: fastece.slices(Y, P, by=Y, **x), RNG),
    "rows_needed": (lambda **x: fastece.rows_needed(Y, P, width=0.1, **x), RNG),
    "reliability_curve": (lambda **x: fastece.reliability_curve(Y, P, **x), RNG),
    "reliability_diagram": (lambda **x: fastece.reliability_diagram(Y, P, **x), "known: "),
    "ece": (lambda **x: fastece.ece(Y, P, **x), "known: "),
    "mce": (lambda **x: fastece.mce(Y, P, **x), "known: "),
    "brier_score": (lambda **x: fastece.brier_score(Y, P, **x), "known: "),
    "scorer": (lambda **x: fastece.sklearn.scorer(**x), "known: "),
}


@pytest.mark.parametrize("function", CALLS)
def test_an_unknown_option_is_answered_with_those_of_the_function(function):
    call, remark = CALLS[function]
    for name in ("seed", "random_state"):
        start = rf"^{name}: is not a parameter of the estimator \w+, nor an option of {function}; "
        with pytest.raises(TypeError, match=start + remark) as error:
            call(**{name: 3})
        assert f"options of {function}: " in str(error.value)
    with pytest.raises(TypeError, match=r"perhaps setting= is meant") as error:
        call(settings=None)
    listed = str(error.value).partition(f"options of {function}: ")[2]
    taken = {word.strip("' ") for word in listed.split(",")}
    assert "setting" in taken
    assert ("sample_weight" in taken) == (function != "scorer")
    assert ("rng" in taken) == (remark == RNG)


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
