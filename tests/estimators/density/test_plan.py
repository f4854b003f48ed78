"""The density based error of replicates: multiplicities, blocks, drawn rows, resampling."""

from math import inf

import numpy as np
import pytest

from fastece import KDE, bootstrap, calibration_test
from helpers.kde_cases import KERNELS
from helpers.kde_helpers import (
    KDE_NAME,
    VARIANTS,
    close,
    kde,
    multiplicities,
    rows_of,
    same,
    samples,
    sizes,
    smooth,
)
from helpers.probes import Spy
from oracles import reference_kde as oracle


@pytest.mark.parametrize("name", [n for n, e in VARIANTS.items() if e.grid_step == "auto"])
def test_evaluate_is_brute_force_on_the_repeated_rows(name):
    estimator = VARIANTS[name]
    if estimator.norm == inf:
        pytest.skip("a maximum is not an integral")
    fields = {f: getattr(estimator, f) for f in ("bandwidth", "kernel", "norm", "score_range")}
    for case, sample in samples():
        for size in sizes(sample.n):
            c = multiplicities(sample.n, size, 1, seed=1)[:, 0].copy()
            y, s, w = rows_of(sample, c)
            want = oracle.kde_error((s, y, sample.low, sample.high), w, **fields)
            got = estimator.evaluate(estimator.prepare(sample, size), c)
            assert got == close(want), (case, size)


def test_a_draw_may_hold_one_row_very_often():
    sample = dict(samples())["spread"]
    c = np.zeros(sample.n, np.int64)
    c[7] = 1000
    for estimator in (KDE(), KDE(0.02)):
        value = estimator.evaluate(estimator.prepare(sample, 1000), c)
        want = kde(sample.y[7:8], sample.s[7:8], bandwidth=estimator.bandwidth)
        assert value == same(want, 1e-9)


def slack_of(estimator):
    """Ratios of small densities are not as exact as integrals."""
    return 1e-9 if estimator.norm == inf else 1e-12


def lanes_of(estimator, count):
    """Some of the lanes, the first and the last of blocks among them; a maximum takes long."""
    some = [0, 17, 31] if estimator.norm == inf else [0, 1, 5, 16, 26, 31]
    return sorted({*some, *(r for r in (32, 50, 63, 64, 95) if r < count)})


def samples_for(estimator):
    """`samples`; of the least bandwidth the grids for a maximum are so fine that it takes long."""
    slow = estimator.norm == inf and estimator.bandwidth == "silverman"
    return [x for x in samples() if not (slow and x[0].startswith(("constant", "one", "80")))]


def method_of(estimator, name):
    method = getattr(estimator, name, None)
    if method is None:
        pytest.skip(f"{name} is optional, and there is none")
    return method


@pytest.mark.parametrize("kernel", KERNELS)
def test_tiny_weights_are_weights(kernel):
    s = np.random.default_rng(3).random(40)
    y = (s > 0.4).astype(np.int64)
    weight = np.where(np.arange(40) < 39, 1e-310, 1.0)
    for size in (None, 2):
        found = bootstrap(
            y, s, **KDE_NAME, kernel=kernel, sample_weight=weight, n_resamples=64, rng=0, size=size
        )
        assert np.isfinite(found.bootstrap_distribution).all()


@pytest.mark.parametrize("fields", [{}, {"bandwidth": 0.05}, {"kernel": "beta"}, {"norm": 2}])
@pytest.mark.parametrize("weighted", [False, True])
def test_replicates_are_values_of_the_drawn_rows(fields, weighted):
    for n, size in ((120, None), (120, 45), (900, 20)):
        y, s = smooth(n)
        w = np.random.default_rng(9).random(n) + 0.1 if weighted else None
        options = {"sample_weight": w, "size": size, "n_resamples": 40, "rng": 11}
        result = bootstrap(y, s, **KDE_NAME, **options, **fields)
        spy = Spy()
        drawn = spy.rows(bootstrap(y, s, estimator=spy, **options).bootstrap_distribution)
        assert result.value == kde(y, s, w, **fields)
        for value, rows in list(zip(result.bootstrap_distribution, drawn, strict=True))[::7]:
            again = kde(y[rows], s[rows], None if w is None else w[rows], **fields)
            assert value == same(again, 1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "beta"])
def test_the_test_of_calibration_tells_calibrated_from_not(kernel):
    rng = np.random.default_rng(12)
    s = rng.beta(2, 2, 400)
    good, bad = rng.random(400) < s, rng.random(400) < s**2
    options = {**KDE_NAME, "kernel": kernel, "n_resamples": 199, "rng": 2}
    calibrated, off = (calibration_test(y, s, **options) for y in (good, bad))
    assert calibrated.value == kde(good, s, kernel=kernel)
    assert calibrated.null_distribution.shape == (199,)
    assert calibrated.p_value > 0.01
    assert off.p_value == pytest.approx(1 / 200)
    again = calibration_test(bad, s, n_jobs=2, **options)
    assert again.null_distribution.tolist() == same(off.null_distribution.tolist())
