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
