"""`fastece.compat.robustness_metrics` computes the general calibration error of Nixon et al."""

import numpy as np
import pytest

from fastece.compat import robustness_metrics as compat
from helpers.compat_cases import (
    ONLY_QUICK,
    RANDOM_LABELS,
    SEEDS,
    binary_case,
    class_case,
    general_calibration_error,
    near,
    quietly,
)
from oracles import reference_compat as reference

pytestmark = RANDOM_LABELS


@pytest.fixture
def peer():
    return general_calibration_error()


def gce_arguments(case, seed):
    """`(labels, probs, options, kind)`: all switches."""
    rng, probs, labels, n_bins, kind = case(seed)
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
    return labels, probs, options, kind


NAMES = ("ece", "sce", "ace", "tace", "rmsce")
SHAPES = pytest.mark.parametrize("case", [binary_case, class_case])


@ONLY_QUICK
@SHAPES
def test_values_equal_the_reference(case, seeds):
    for seed in seeds:
        labels, probs, options, kind = gce_arguments(case, seed)
        got = compat.gce(labels, probs, **options)
        assert isinstance(got, np.float64)
        want = reference.gce(labels.tolist(), probs.tolist(), **options, kind=kind)
        is_exact = options["norm"] == "l1" or want > 1e-6
        near(got, want, 1e-12 if is_exact else 1e-8, seed)


@SEEDS
@SHAPES
def test_values_equal_the_library(peer, case, seeds):
    for seed in seeds:
        labels, probs, options, _kind = gce_arguments(case, seed)
        want = quietly(peer.gce, labels, probs, **options)
        near(compat.gce(labels, probs, **options), want, 1e-12, seed)


@SEEDS
@pytest.mark.parametrize("name", NAMES)
def test_named_errors_equal_the_library(peer, name, seeds):
    for seed in seeds:
        make = binary_case if seed % 4 == 0 else class_case
        _, probs, labels, n_bins, _kind = make(seed)
        for options in ({}, {"num_bins": n_bins}):
            want = quietly(getattr(peer, name), labels, probs, **options)
            near(getattr(compat, name)(labels, probs, **options), want, 1e-12, seed)


def test_named_errors_equal_gce_with_their_options():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 250)
    y = rng.integers(0, 3, 250)
    switches = "adaptive", False, True, "l1"
    assert compat.general_calibration_error(y, p, *switches) == compat.gce(y, p, *switches)
    assert compat.ace(y, p) == compat.gce(y, p, *switches)
    assert compat.ece(y, p) == compat.gce(y, p, "even", True, False, "l1")
    assert compat.sce(y, p) == compat.gce(y, p, "even", False, True, "l1")
    assert compat.tace(y, p) == compat.gce(y, p, *switches, threshold=0.01)
    assert compat.tace(y, p, 12, 0.2) == compat.gce(y, p, *switches, num_bins=12, threshold=0.2)
    assert compat.tace(y, p, 12, 0.0) == compat.ace(y, p, 12)
    rmsce = compat.gce(y, p, "adaptive", True, False, "l2", datapoints_per_bin=100)
    assert compat.rmsce(y, p) == rmsce
    rmsce = compat.gce(y, p, "adaptive", True, False, "l2", datapoints_per_bin=50)
    assert compat.rmsce(y, p, datapoints_per_bin=50) == rmsce
    rmsce = compat.gce(y, p, "adaptive", True, False, "l2", num_bins=9)
    assert compat.rmsce(y, p, num_bins=9, datapoints_per_bin=None) == rmsce
    lists = compat.ece(y.tolist(), p.tolist())
    assert lists == compat.ece(y, p)
