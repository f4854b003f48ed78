"""`fastece.compat.hle`: errors of stated confidences, against plain loops."""

import numpy as np
import pytest

import fastece
from fastece.compat.conventions import CONVENTIONS
from fastece.compat.hle import calib_err, calibration_error
from oracles import reference_compat as reference


def answers(seed, n, levels=None):
    """Confidences, all different or with ties, and whether answers are right."""
    rng = np.random.default_rng(seed)
    s = rng.random(n) if levels is None else rng.integers(0, levels + 1, n) / levels
    return s, rng.random(n) < s**2


@pytest.mark.parametrize(("p", "power"), [("1", 1), ("2", 2), ("infty", "infty")])
@pytest.mark.parametrize(
    ("n", "beta"), [(1, 1), (5, 2), (99, 100), (250, 100), (830, 100), (40, 7)]
)
def test_runs_equal_the_reference(n, beta, p, power):
    s, y = answers(n, n)
    want = reference.calib_err(s.tolist(), y.tolist(), power, beta)
    got = calib_err(s, y, p, beta)
    assert isinstance(got, np.float64)
    assert got == pytest.approx(want, abs=1e-12)


def test_the_run_of_the_highest_confidences_is_left_out():
    s, y = answers(3, 300)
    surest = np.argsort(s)[200:]
    changed = y.copy()
    changed[surest] = ~y[surest]
    assert calib_err(s, y) == calib_err(s, changed)
    assert calib_err(*answers(4, 199)) == 0


def test_equal_confidences_are_in_the_order_of_the_sort_of_numpy():
    s, y = answers(5, 500, levels=4)
    order = np.argsort(s)
    apart = np.arange(500) * 1e-9  # no two are equal, in the same order
    spread = np.empty(500)
    spread[order] = s[order] * (1 - 1e-6) + apart
    assert calib_err(s, y) == pytest.approx(calib_err(spread, y), abs=1e-5)


def test_the_convention_has_the_last_run_too():
    s, y = answers(6, 730)
    binned = CONVENTIONS["hle"].binned(100, s, norm=2)
    assert len(binned.edges) == 8
    diagram = fastece.reliability_diagram(y, s, estimator=binned)
    assert diagram.count.tolist() == [100] * 6 + [130]
    last = np.argsort(s)[600:]
    square_of_last = 130 / 730 * (s[last].mean() - y[last].mean()) ** 2
    value = fastece.ece(y, s, estimator=binned)
    assert value**2 == pytest.approx(calib_err(s, y) ** 2 + square_of_last, abs=1e-12)
    assert len(CONVENTIONS["hle"].binned(100, s[:150]).edges) == 2


@pytest.mark.parametrize("n_bins", [1, 7, 10, 15])
def test_browse_comp_equals_the_reference(n_bins):
    for seed in range(20):
        s, y = answers(seed, 60, levels=[None, 10, 100][seed % 3])
        want = reference.browse_comp(s.tolist(), y.tolist(), n_bins)
        assert calibration_error(y, s, n_bins) == pytest.approx(want, abs=1e-12)


def test_browse_comp_of_whole_percents_is_the_usual_error():
    s = np.arange(101) / 100
    y = np.random.default_rng(7).random(101) < s
    assert calibration_error(y, s) == pytest.approx(fastece.ece(y, s, n_bins=10), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: calib_err([0.5, 1.5], [0, 1]), "confidence"),
        (lambda: calib_err([50, 95], [0, 1]), "confidence"),
        (lambda: calib_err([0.5, np.nan], [0, 1]), "confidence"),
        (lambda: calib_err([0.5, 0.9], [0, 2]), "correct"),
        (lambda: calib_err([0.5, 0.9], [0, 1], p="3"), "p"),
        (lambda: calib_err([0.5, 0.9], [0, 1], beta=0), "beta"),
        (lambda: calib_err([[0.5, 0.5]], [0]), "confidence"),
        (lambda: calibration_error([0, 1], [0.5, 0.9], num_bins=0.5), "num_bins"),
        (lambda: calibration_error([0, 1, 1], [0.5, 0.9]), "correct"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_argument(call, argument):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert caught.value.argument == argument
