"""Scores on edges and beside them go into the bins that the table of conventions states."""

import importlib

import numpy as np
import pytest

import fastece
from helpers.compat_cases import library
from oracles import reference_compat as reference

PACKAGES = {"scikit-learn": "sklearn", "uncertainty-metrics": "robustness_metrics"}
BINS = [*range(1, 41), 49, 52, 64, 93, 99, 100, 117, 123, 150, 186, 198]
FEW_BINS = BINS[::4]


@pytest.fixture(scope="module")
def table():
    from fastece.compat.conventions import CONVENTIONS

    return CONVENTIONS


def module_of(convention):
    """The module of functions with a library's name."""
    name = PACKAGES.get(convention.library, convention.library).replace("-", "_")
    return importlib.import_module(f"fastece.compat.{name}")


def test_functions_of_the_table_exist(table):
    for convention in table.values():
        for function in convention.functions:
            assert callable(getattr(module_of(convention), function.split("(")[0]))


def beside(n_bins, kind):
    """Scores on the edges of several rules, and the three floats on either side."""
    j = np.arange(n_bins + 1)
    step = kind(1) / kind(n_bins)
    edges = np.concatenate([j / n_bins, j * (1.0 / n_bins), 1 - (n_bins - j) * (1.0 / n_bins)])
    scores = [edges.astype(kind), j.astype(kind) * step, kind(1) - (n_bins - j).astype(kind) * step]
    middle = np.unique(np.concatenate(scores))
    for _ in range(3):
        around = np.nextafter(middle, kind(-1)), np.nextafter(middle, kind(2))
        middle = np.unique(np.concatenate([middle, *around]))
    return middle[(middle >= 0) & (middle <= 1)]


def index(edges, scores, closed):
    """The bin of each score, by the definition."""
    place = np.searchsorted(edges, scores, "right" if closed == "left" else "left") - 1
    return place.clip(0, len(edges) - 2)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_edges_of_equal_width_separate_scores_like_the_libraries(table, kind):
    """Errors cannot show where a single score went, so the edges are compared."""
    for n_bins in BINS:
        scores = beside(n_bins, kind)
        even = np.array(reference.even_edges(n_bins))
        torch = np.array(reference.torch_edges(n_bins, kind))
        single = np.array(reference.torch_edges(n_bins, np.float32))
        width = kind(1.0 / n_bins)
        upper = np.arange(1, n_bins + 1) / n_bins
        want = {
            "torchmetrics_binary": np.searchsorted(torch, scores, "right") - 1,
            "torchmetrics": np.searchsorted(single, scores.astype(np.float32), "right") - 1,
            "netcal": np.minimum(np.searchsorted(even, scores, "right") - 1, n_bins - 1),
            "uncertainty_calibration": np.searchsorted(upper, scores, "left"),
            "sklearn": np.searchsorted(even[1:-1], scores, "left"),
            "browse_comp": np.searchsorted(even[1:-1], scores, "left"),
            "relplot": (scores / width).astype(int),
            "robustness_metrics": np.searchsorted(even[1:], scores, "right"),
        }
        for name, places in want.items():
            convention = table[name]
            binned = convention.binned(n_bins, scores)
            got = index(np.asarray(binned.edges), scores, binned.closed)
            assert (got == places).all(), (name, n_bins, scores[got != places][:3])


def compare_functions(s, y, n_bins, kind):
    """The functions that have bins of equal width, against the reference."""
    from fastece.compat import netcal, relplot, robustness_metrics, sklearn, torchmetrics
    from fastece.compat import uncertainty_calibration as kumar

    scores = s.tolist()
    hits = y.tolist()
    equal_intervals = {"bins": n_bins, "equal_intervals": True, "sample_threshold": 1}
    sce = {
        "binning_scheme": "even",
        "max_prob": False,
        "class_conditional": True,
        "norm": "l1",
        "num_bins": n_bins,
        "threshold": 0.0,
        "datapoints_per_bin": None,
    }
    pairs = [
        (
            torchmetrics.binary_calibration_error(s, y, n_bins),
            reference.torch_binary(scores, hits, n_bins, "l1", None, kind),
        ),
        (
            netcal.ECE(n_bins).measure(s, y),
            reference.netcal_error("ECE", scores, hits, **equal_intervals, kind=kind),
        ),
        (
            kumar.get_ece(s, y, num_bins=n_bins),
            reference.get_ece(scores, hits, False, n_bins, "top-label"),
        ),
        (relplot.binnedECE(s, y, n_bins), reference.binned_ece(scores, hits, n_bins, kind)),
        (
            robustness_metrics.sce(y, s, n_bins),
            reference.gce(hits, scores, **sce, kind=kind),
        ),
    ]
    for got, want in pairs:
        assert got == pytest.approx(want, abs=1e-12), n_bins
    curve = sklearn.calibration_curve(y, s, n_bins=n_bins)
    want = reference.calibration_curve(hits, scores, None, n_bins, "uniform", kind)
    for got, values in zip(curve, want, strict=True):
        np.testing.assert_allclose(got, values, rtol=0, atol=1e-12, err_msg=str(n_bins))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_functions_use_these_bins(kind):
    """The same scores, with labels by chance, through the functions."""
    rng = np.random.default_rng(9)
    for n_bins in FEW_BINS:
        s = rng.permutation(beside(n_bins, kind))
        compare_functions(s, rng.integers(0, 2, len(s)), n_bins, kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_top_scores_of_torch_are_rounded_to_float32(kind):
    from fastece.compat import torchmetrics

    rng = np.random.default_rng(10)
    for n_bins in FEW_BINS:
        top = beside(n_bins, kind)
        top = rng.permutation(top[top > 0.5])
        rows = np.column_stack([top, 1 - top])
        y = rng.integers(0, 2, len(top))
        got = torchmetrics.multiclass_calibration_error(rows, y, 2, n_bins)
        want = reference.torch_multiclass(rows.tolist(), y.tolist(), n_bins, "l1", None)
        assert got == pytest.approx(want, abs=1e-7), n_bins


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_functions_cut_at_quantiles_like_the_reference(kind):
    """Where n - 1 is a multiple of B, quantiles are scores, up to the last digit of a share."""
    from fastece.compat import netcal, sklearn

    rng = np.random.default_rng(14)
    for n_bins in FEW_BINS:
        equal_masses = {"bins": n_bins, "equal_intervals": False, "sample_threshold": 1}
        for times in (1, 2, 3):
            s = rng.random(times * n_bins + 1).astype(kind)
            y = rng.integers(0, 2, len(s))
            scores = s.tolist()
            hits = y.tolist()
            got = netcal.MCE(n_bins, equal_intervals=False).measure(s, y)
            want = reference.netcal_error("MCE", scores, hits, **equal_masses, kind=kind)
            assert got == pytest.approx(want, abs=1e-12), n_bins
            curve = sklearn.calibration_curve(y, s, n_bins=n_bins, strategy="quantile")
            want = reference.calibration_curve(hits, scores, None, n_bins, "quantile", kind)
            for array, expected in zip(curve, want, strict=True):
                assert array == pytest.approx(expected, abs=1e-12), n_bins


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_quantiles_of_the_reference_equal_scikit_learn(kind):
    """The last digits of quantiles decide where scores on them go."""
    peer = library("sklearn.calibration").calibration_curve
    rng = np.random.default_rng(14)
    for n_bins in FEW_BINS:
        s = rng.random(3 * n_bins + 1).astype(kind)
        y = rng.integers(0, 2, len(s))
        want = peer(y, s, n_bins=n_bins, strategy="quantile")
        got = reference.calibration_curve(y.tolist(), s.tolist(), None, n_bins, "quantile", kind)
        for array, expected in zip(got, want, strict=True):
            assert array == pytest.approx(expected, abs=1e-12), n_bins


def test_conventions_are_estimators(table):
    """Functions that take an estimator take a row of the table."""
    from fastece.compat import netcal, relplot, torchmetrics

    rng = np.random.default_rng(11)
    s = rng.integers(0, 21, 300) / 20
    y = (rng.random(300) < s).astype(int)
    for name, value in (
        ("torchmetrics_binary", torchmetrics.binary_calibration_error(s, y, 10)),
        ("netcal", netcal.ECE(10).measure(s, y)),
        ("relplot", relplot.binnedECE(s, y, 10)),
    ):
        estimator = table[name].binned(10, s)
        assert fastece.ece(y, s, estimator=estimator) == pytest.approx(value, abs=1e-12)
        result = fastece.bootstrap(y, s, estimator=estimator, n_resamples=19, rng=0)
        assert result.value == pytest.approx(value, abs=1e-12)
