"""Percents, labels that are ignored, and rows without a forecast, in arrays."""

import re

import numpy as np
import pytest

import fastece
from fastece.streams import CalibrationMetric
from helpers.field_samples import plain_ece

RNG = np.random.default_rng(0)
N = 200
PERCENTS = RNG.integers(40, 100, N)
RIGHT = (RNG.random(N) < 0.8 * PERCENTS / 100).astype(int)
ERROR = plain_ece(RIGHT, PERCENTS / 100)


@pytest.mark.parametrize(
    "percents",
    [PERCENTS, PERCENTS.astype(np.float32), [f"{x} %" for x in PERCENTS], [*map(str, PERCENTS)],
     np.array([f"{x}%" for x in PERCENTS], object), [f"{x}%".encode() for x in PERCENTS]],
)  # fmt: skip
def test_percents_of_arrays_are_divided_by_an_option(percents):
    error = fastece.ece(RIGHT, percents, percent=True)
    assert error == pytest.approx(ERROR, abs=1e-7)
    assert fastece.reliability_diagram(RIGHT, percents, percent=True).value == pytest.approx(error)
    resampled = fastece.bootstrap(RIGHT, percents, percent=True, n_resamples=9, rng=0)
    assert resampled.value == pytest.approx(error)


# --- labels that are ignored ------------------------------------------------------------------

PROB = RNG.dirichlet([2, 1, 1, 1], 400)
LABELS = np.array([RNG.choice(4, p=p) for p in PROB])
LABELS[30:80] = 255
KEPT = LABELS != 255
GROUPS = np.arange(400) // 5
OPTIONS = {"n_resamples": 99, "rng": 0}
CALLS = [
    fastece.ece,
    lambda y, p, **k: fastece.ece(y, p, setting="classwise", average=None, **k).tolist(),
    fastece.brier_score,
    fastece.canonical_error,
    lambda y, p, **k: fastece.reliability_diagram(y, p, **k).value,
    lambda y, p, **k: fastece.bootstrap(y, p, **k, **OPTIONS).confidence_interval,
    lambda y, p, **k: fastece.estimate(y, p, **k, **OPTIONS).confidence_interval,
    lambda y, p, **k: fastece.calibration_test(y, p, **k, **OPTIONS).p_value,
    lambda y, p, **k: fastece.calibration_report(y, p, **k, n_resamples=0).n,
]


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [255, "ignored", np.nan, None])
def test_rows_of_an_ignored_label_are_as_if_they_were_not_there(ignored):
    labels = LABELS
    options = {"ignore_label": ignored}
    if ignored == "ignored":
        names = np.array(["a", "b", "c", "d"])
        labels = np.where(KEPT, names[LABELS % 4], ignored)
        options["labels"] = [*"abcd"]
    elif ignored is None:
        labels = np.where(KEPT, LABELS, None)
        options["ignore_label"] = np.nan
        options["labels"] = [0, 1, 2, 3]
    elif ignored != 255:
        labels = np.where(KEPT, LABELS, np.nan)
    for call in CALLS:
        assert call(labels, PROB, **options) == call(LABELS[KEPT], PROB[KEPT])


def test_groups_and_slices_belong_to_the_rows_that_are_kept():
    options = {"sample_weight": RNG.random(400), "groups": GROUPS, **OPTIONS}
    kept_options = {
        name: x[KEPT] if isinstance(x, np.ndarray) else x for name, x in options.items()
    }
    whole = fastece.estimate(LABELS, PROB, ignore_label=255, **options)
    kept = fastece.estimate(LABELS[KEPT], PROB[KEPT], **kept_options)
    assert whole.confidence_interval == kept.confidence_interval
    by = RNG.choice(["x", "y"], 400)
    whole = fastece.slices(LABELS, PROB, by=by, ignore_label=255, **OPTIONS)
    kept = fastece.slices(LABELS[KEPT], PROB[KEPT], by=by[KEPT], **OPTIONS)
    assert [(x.label, x.n, x.value) for x in whole.rows] == [
        (x.label, x.n, x.value) for x in kept.rows
    ]


def test_streams_metrics_and_monitors_leave_ignored_labels_out():
    expected = fastece.ece(LABELS[KEPT], PROB[KEPT])
    state = fastece.Accumulator(4)
    metric = CalibrationMetric(4, ignore_label=255)
    for start in range(0, 400, 40):
        rows = slice(start, start + 40)
        state.update(LABELS[rows], PROB[rows], ignore_label=255)
        if KEPT[rows].any():
            metric(PROB[rows], LABELS[rows])
    assert state.n == KEPT.sum()
    assert fastece.ece(state) == pytest.approx(expected, abs=1e-12)
    assert metric.compute() == pytest.approx(expected, abs=1e-12)
    whole = fastece.Monitor(n_classes=4).update(LABELS, PROB, ignore_label=255)
    kept = fastece.Monitor(n_classes=4).update(LABELS[KEPT], PROB[KEPT])
    assert (whole.n, whole.log_e_value) == (kept.n, kept.log_e_value)


def test_rows_without_a_forecast_have_a_hint_that_leaves_them_out():
    rng = np.random.default_rng(4)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    p[::7] = np.nan
    hint = "keep = ~np.isnan(y_prob), then pass y_true[keep] and y_prob[keep]"
    for call in (fastece.ece, fastece.Accumulator().update, fastece.estimate):
        with pytest.raises(ValueError, match=re.escape(hint)):
            call(y, p)
    keep = ~np.isnan(p)
    expected = plain_ece(np.delete(y, np.s_[::7]), np.delete(p, np.s_[::7]))
    assert fastece.ece(y[keep], p[keep]) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match=r"y_prob_b: .* keep = ~np.isnan\(y_prob_b\), "):
        fastece.compare(y[keep], p[keep], np.where(np.arange(keep.sum()) == 3, np.nan, p[keep]))
    with pytest.raises(ValueError, match=r"must be finite; y_prob\[1\] is inf$"):
        fastece.ece([0, 1], [0.2, np.inf])
