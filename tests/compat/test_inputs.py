"""Lists, arrays of any layout and tensors give one value, and are not changed."""

import importlib
import re

import numpy as np
import pytest

from fastece.compat import netcal, sklearn
from fastece.compat.conventions import CONVENTIONS
from helpers.compat_cases import library

RNG = np.random.default_rng(20)
SCORES = RNG.integers(0, 33, 40) / 32
HITS = RNG.integers(0, 2, 40)
ROWS = RNG.multinomial(32, [0.4, 0.3, 0.2, 0.1], 40) / 32
LABELS = RNG.integers(0, 4, 40)

# Module, function of scores and labels, and whether it takes class vectors.
CALLS = {
    "binary": ("torchmetrics", lambda m, p, y: m.binary_calibration_error(p, y), False),
    "multiclass": ("torchmetrics", lambda m, p, y: m.multiclass_calibration_error(p, y, 4), True),
    "BinaryCalibrationError": (
        "torchmetrics",
        lambda m, p, y: m.BinaryCalibrationError()(p, y),
        False,
    ),
    "MulticlassCalibrationError": (
        "torchmetrics",
        lambda m, p, y: m.MulticlassCalibrationError(4)(p, y),
        True,
    ),
    "ECE": ("netcal", lambda m, p, y: m.ECE(10).measure(p, y), False),
    "MCE": ("netcal", lambda m, p, y: m.MCE(10).measure(p, y), True),
    "ACE": ("netcal", lambda m, p, y: m.ACE(5, equal_intervals=False).measure(p, y), True),
    "get_ece": ("uncertainty_calibration", lambda m, p, y: m.get_ece(p, y), True),
    "get_ece_em": ("uncertainty_calibration", lambda m, p, y: m.get_ece_em(p, y), True),
    "get_calibration_error": (
        "uncertainty_calibration",
        lambda m, p, y: m.get_calibration_error(p, y),
        True,
    ),
    "calibration_curve": (
        "sklearn",
        lambda m, p, y: np.concatenate(m.calibration_curve(y, p, strategy="quantile")),
        False,
    ),
    "binnedECE": ("relplot", lambda m, p, y: m.binnedECE(p, y), False),
    "tace": ("robustness_metrics", lambda m, p, y: m.tace(y, p), True),
    "ece": ("robustness_metrics", lambda m, p, y: m.ece(y, p), False),
    "calib_err": ("hle", lambda m, p, y: m.calib_err(p, y, beta=10), False),
    "calibration_error": ("hle", lambda m, p, y: m.calibration_error(y, p), False),
}


def forms(p, y):
    """The same numbers, exact in every type, as other containers."""
    read_only_p = p.copy()
    read_only_y = y.copy()
    read_only_p.flags.writeable = False
    read_only_y.flags.writeable = False
    tuples = tuple(map(tuple, p)) if p.ndim == 2 else tuple(p)
    return {
        "lists": (p.tolist(), y.tolist()),
        "tuples": (tuples, tuple(y)),
        "read-only": (read_only_p, read_only_y),
        "strided": (np.repeat(p, 2, axis=0)[::2], np.repeat(y, 3)[::3]),
        "columns": (np.asfortranarray(p), y.astype(np.int8)),
        "big endian": (p.astype(">f8"), y.astype(">i4")),
        "float32": (p.astype(np.float32), y.astype(np.uint8)),
        "float16": (p.astype(np.float16), y.astype(np.int32)),
        "whole floats": (p, y.astype(float)),
    }


@pytest.mark.parametrize("name", CALLS)
def test_values_do_not_depend_on_the_container(name):
    """Scores are multiples of 1/32, which no type rounds; edges of bins may be rounded."""
    package, call, is_matrix = CALLS[name]
    module = importlib.import_module(f"fastece.compat.{package}")
    p, y = (ROWS, LABELS) if is_matrix else (SCORES, HITS)
    want = call(module, p, y)
    for form, (scores, labels) in forms(p, y).items():
        before = np.array(scores), np.array(labels)
        got = call(module, scores, labels)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6, err_msg=form)
        np.testing.assert_array_equal(np.array(scores), before[0])
        np.testing.assert_array_equal(np.array(labels), before[1])


@pytest.mark.parametrize("name", CALLS)
def test_values_of_tensors_equal_arrays(name):
    torch = library("torch")
    package, call, is_matrix = CALLS[name]
    module = importlib.import_module(f"fastece.compat.{package}")
    p, y = (ROWS, LABELS) if is_matrix else (SCORES, HITS)
    want = call(module, p, y)
    scores = torch.from_numpy(p.copy())
    labels = torch.from_numpy(y.copy())
    for tensor in (scores, scores.float(), scores.bfloat16(), scores.clone().requires_grad_()):
        got = call(module, tensor, labels)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6, err_msg=str(tensor.dtype))


# The names of the probabilities and of the labels in each library.
WORDS = {
    "torchmetrics": ("preds", "target"),
    "netcal": ("X", "y"),
    "uncertainty_calibration": ("probs", "labels"),
    "sklearn": ("y_prob", "y_true"),
    "relplot": ("f", "y"),
    "robustness_metrics": ("probs", "labels"),
    "hle": ("confidence", "correct"),
}


def spoilt(value, where, entry):
    """A copy with another entry in a row."""
    value = np.array(value, dtype=float)
    value[where] = entry
    return value


BAD = {
    "nan": lambda p, y: (spoilt(p, 3, np.nan), y),
    "infinite": lambda p, y: (spoilt(p, 3, np.inf), y),
    "label nan": lambda p, y: (p, spoilt(y, 3, np.nan)),
    "label half": lambda p, y: (p, spoilt(y, 3, 0.5)),
    "label large": lambda p, y: (p, spoilt(y, 3, 9)),
    "label negative": lambda p, y: (p, spoilt(y, 3, -2)),
    "short labels": lambda p, y: (p, y[:-1]),
    "short scores": lambda p, y: (p[:-1], y),
    "empty": lambda p, y: (p[:0], y[:0]),
    "words": lambda p, y: (np.full(p.shape, "a"), y),
    "complex": lambda p, y: (p + 1j, y),
    "four dimensions": lambda p, y: (np.expand_dims(p, tuple(range(p.ndim, 4))), y),
    "nothing": lambda p, y: (None, y),  # noqa: ARG005
    "no labels": lambda p, y: (p, None),  # noqa: ARG005
    "number": lambda p, y: (0.5, 1),  # noqa: ARG005
}


@pytest.mark.parametrize("name", CALLS)
def test_messages_have_the_words_of_the_library(name):
    for bad in BAD:
        check_words(name, bad)


def check_words(name, bad):
    package, call, is_matrix = CALLS[name]
    module = importlib.import_module(f"fastece.compat.{package}")
    p, y = (ROWS, LABELS) if is_matrix else (SCORES, HITS)
    if bad == "empty" and name.endswith("CalibrationError"):
        assert np.isnan(float(call(module, *BAD[bad](p, y))))  # a batch may have no rows
        return
    with pytest.raises((ValueError, TypeError)) as caught:
        call(module, *BAD[bad](p, y))
    words = set(re.findall(r"\w+", str(caught.value)))
    assert words & set(WORDS[package]), str(caught.value)
    assert not words & ({"y_true", "y_prob", "from_logits", "setting"} - set(WORDS[package])), str(
        caught.value
    )


@pytest.mark.parametrize("name", [n for n, call in CALLS.items() if call[0] != "torchmetrics"])
def test_scores_outside_the_range_are_refused(name):
    """Beyond 1e-6 scores outside [0, 1] are refused; nearer ones are moved to its ends."""
    package, call, is_matrix = CALLS[name]
    module = importlib.import_module(f"fastece.compat.{package}")
    p, y = (ROWS.copy(), LABELS) if is_matrix else (SCORES.copy(), HITS)
    p[5] = np.eye(4)[1] if is_matrix else 1.0
    p[6] = np.eye(4)[2] if is_matrix else 0.0
    want = call(module, p, y)
    off = np.where(p == 0, -5e-7, np.where(p == 1, 1 + 5e-7, p))
    np.testing.assert_allclose(call(module, off, y), want, rtol=0, atol=1e-12)
    for entry in (1.01, -0.01):
        with pytest.raises(ValueError, match=rf"\b{WORDS[package][0]}\b"):
            call(module, spoilt(p, 7, entry), y)


# Module, function, its arguments, and the one that is named.
OPTIONS = [
    *(("torchmetrics", "binary_calibration_error", ([0.2, 0.4], [1, 0], *options), name)
      for options, name in [((0,), "n_bins"), ((2.5,), "n_bins"), ((5, "l3"), "norm"),
                         ((5, "l1", 1.5), "ignore_index")]),
    ("torchmetrics", "multiclass_calibration_error", ([[0.2, 0.8]], [1], 3), "preds"),
    ("torchmetrics", "multiclass_calibration_error", ([[0.2, 0.8]], [1], 1), "num_classes"),
    *(("netcal", "ECE", arguments, name)
      for arguments, name in [((0,), "bins"), ((2.5,), "bins"), ((True,), "bins"),
                              ((10, True, False, 1.5), "sample_threshold")]),
    ("uncertainty_calibration", "get_ece", (ROWS, LABELS, False, 15, "odd"), "mode"),
    ("uncertainty_calibration", "get_ece", (ROWS, LABELS, False, 0), "num_bins"),
    ("uncertainty_calibration", "get_ece_em", (ROWS, LABELS, False, 2.5), "num_bins"),
    ("uncertainty_calibration", "get_calibration_error", (ROWS, LABELS, 0.5, False), "p"),
    ("uncertainty_calibration", "get_calibration_error", (ROWS, LABELS, 3, True), "debias"),
    ("relplot", "binnedECE", (SCORES, HITS, 0), "nbins"),
    ("robustness_metrics", "ece", (LABELS, ROWS, 2.5), "num_bins"),
    *(("robustness_metrics", "gce", (LABELS, ROWS, *options), name)
      for options, name in [(("odd", True, False, "l1"), "binning_scheme"),
                         (("even", True, False, "l3"), "norm"),
                         (("even", True, False, "l1", 5, 0.0, 2), "datapoints_per_bin")]),
    *(("robustness_metrics", "rmsce", (LABELS, ROWS, 5, rows), "datapoints_per_bin")
      for rows in (0, 2.5)),
]  # fmt: skip


def test_options_outside_their_range_are_named():
    for package, function, arguments, name in OPTIONS:
        call = getattr(importlib.import_module(f"fastece.compat.{package}"), function)
        with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
            call(*arguments)


@pytest.mark.parametrize("options", [{"n_bins": 0}, {"n_bins": 2.5}, {"strategy": "odd"}])
def test_options_of_a_curve_are_named(options):
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        sklearn.calibration_curve(HITS, SCORES, **options)


@pytest.mark.parametrize(
    "options", [{"uncertainty": "mean"}, {"return_map": True}, {"return_num_samples": True},
                {"return_uncertainty_map": True}],
)  # fmt: skip
def test_options_that_only_netcal_has_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        netcal.ECE(10).measure(SCORES, HITS, **options)
    with pytest.raises(ValueError, match=r"\bX\b"):
        netcal.ECE(10, detection=True).measure(ROWS, LABELS)
    for x, y in ((ROWS, np.eye(3)[LABELS % 3]), (ROWS[:, :2], np.full(40, "a"))):
        with pytest.raises(ValueError, match=r"\by\b"):
            netcal.ECE(10).measure(x, y)


def test_edges_that_depend_on_scores_need_some():
    with pytest.raises(ValueError, match="scores: are needed for edges that depend on them"):
        CONVENTIONS["netcal_quantile"].binned(5)
