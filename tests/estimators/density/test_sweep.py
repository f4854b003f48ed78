"""Many bandwidths of one sample."""

import numpy as np
import pytest

import fastece
from fastece import bandwidth_sweep, ece, kernels
from helpers.kde_cases import KERNELS

BANDWIDTHS = [0.3, 0.004, 0.02, 0.02, 2.0, 0.11]


def data(n=300, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.7), n)
    return np.array([rng.choice(n_classes, p=0.8 * row + 0.2 / n_classes) for row in p]), p


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_sweep_is_each_bandwidth_by_itself(kernel, norm):
    y, p = data()
    fields = {"kernel": kernel, "norm": norm}
    # A maximum at the edge of what counts jumps by what the grids are apart.
    slack = {"rel": 1e-3, "abs": 1e-6} if norm < np.inf else {"rel": 2e-2}
    for options in ({}, {"setting": "classwise"}, {"sample_weight": p[:, 0] + 0.1}):
        swept = bandwidth_sweep(y, p, BANDWIDTHS, **options, **fields)
        alone = [
            ece(y, p, estimator="ece_kde", bandwidth=h, **options, **fields) for h in BANDWIDTHS
        ]
        assert swept == pytest.approx(np.array(alone), **slack)


def test_scores_have_nodes_that_fit_each_bandwidth():
    rng = np.random.default_rng(1)
    s = rng.random(5000)
    y = rng.random(5000) < (s + 0.1 * np.sin(60 * s)).clip(0, 1)
    fields = {"kernel": "beta", "grid_step": 0.0003}
    small = [0.002, 0.003, 0.01]
    alone = [ece(y, s, estimator="ece_kde", bandwidth=h, **fields) for h in small]
    assert bandwidth_sweep(y, s, small, **fields) == pytest.approx(np.array(alone), rel=1e-3)


def test_classes_are_kept_if_asked_for():
    y, p = data(30)
    for kernel in ("gaussian", "beta"):
        fields = {"setting": "classwise", "kernel": kernel}
        each = bandwidth_sweep(y, p, [0.3, 0.2], average=None, **fields)
        assert each.shape == (3, 2)
        assert bandwidth_sweep(y, p, [0.3, 0.2], **fields) == pytest.approx(each.mean(0))
    assert bandwidth_sweep(y, p, [0.1], setting=1).shape == (1,)


def test_rows_are_binned_once(monkeypatch):
    y, p = data()
    calls = []
    spread = kernels.density.spread

    def counted(*arguments):
        calls.append(arguments)
        return spread(*arguments)

    monkeypatch.setattr(kernels.density, "spread", counted)
    bandwidth_sweep(y, p, np.geomspace(0.003, 0.5, 200))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("bandwidths", "options", "error", "message"),
    [
        ([0.1, 0.0], {}, ValueError, r"bandwidths: must be positive and finite; bandwidths\[1\]"),
        ([np.nan], {}, ValueError, "bandwidths"),
        ([np.inf], {}, ValueError, "bandwidths"),
        ([], {}, ValueError, "bandwidths"),
        ([[0.1]], {}, ValueError, "bandwidths"),
        (["0.1"], {}, TypeError, "bandwidths"),
        (0.1, {}, TypeError, "bandwidths"),
        ([1e-12], {}, ValueError, "bandwidth"),
        ([0.1], {"bandwidth": 0.2}, TypeError, "bandwidth"),
        ([0.1], {"estimator": "ece"}, TypeError, "estimator"),
        ([0.1], {"kernel": "box"}, ValueError, "kernel"),
    ],
)
def test_what_is_no_bandwidth_is_refused(bandwidths, options, error, message):
    y, p = data(20)
    with pytest.raises(error, match=message):
        fastece.bandwidth_sweep(y, p, bandwidths, **options)
