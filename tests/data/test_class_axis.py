"""Pixels with an axis of classes, images as groups."""

import numpy as np
import pytest

import fastece
from fastece.streams import CalibrationMetric
from helpers.field_samples import plain_ece

RNG = np.random.default_rng(0)
N, C, H, W = 12, 4, 6, 5
PROB = RNG.dirichlet(np.ones(C), (N, H, W)).transpose(0, 3, 1, 2).copy()
LABELS = np.array([RNG.choice(C, p=p) for p in PROB.transpose(0, 2, 3, 1).reshape(-1, C)])
LABELS = LABELS.reshape(N, H, W)
LABELS[:, :1] = 255
WEIGHTS = RNG.random((N, H, W))
COUNTS = RNG.integers(1, 5, (N, H, W))
KEPT = LABELS != 255
ROWS = np.moveaxis(PROB, 1, -1).reshape(-1, C)
IMAGES = np.repeat(np.arange(N), H * W)
SITES = np.arange(N) // 2
PIXELS = {"class_axis": 1, "ignore_label": 255}
FLAT = {"ignore_label": 255}
DRAWS = {"n_resamples": 49, "rng": 0}


def test_pixels_have_the_error_of_plain_numpy():
    prob = ROWS[KEPT.ravel()]
    error = plain_ece(prob.argmax(1) == LABELS[KEPT], prob.max(1))
    assert fastece.ece(LABELS, PROB, **PIXELS) == pytest.approx(error, abs=1e-12)
    state = fastece.Accumulator(C).update(LABELS, PROB, **PIXELS)
    assert fastece.ece(state) == pytest.approx(error, abs=1e-12)
    metric = CalibrationMetric(C, **PIXELS)
    for start in range(0, N, 4):
        metric(PROB[start : start + 4], LABELS[start : start + 4])
    assert metric.accumulator.n == KEPT.sum()
    assert metric.compute() == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda y, p, **k: fastece.ece(y, p, setting="classwise", average=None, **k).tolist(),
        lambda y, p, **k: fastece.brier_score(y, p, **k),
        lambda y, p, **k: fastece.canonical_error(y, p, **k),
        lambda y, p, **k: fastece.reliability_diagram(y, p, **k).value,
        lambda y, p, **k: fastece.brier_decomposition(y, p, **k).score,
        lambda y, p, **k: fastece.score_decomposition(y, p, **k).score,
        lambda y, p, **k: fastece.bootstrap(y, p, **k, **DRAWS).confidence_interval,
        lambda y, p, **k: fastece.estimate(y, p, **k, **DRAWS).confidence_interval,
        lambda y, p, **k: fastece.calibration_test(y, p, **k, **DRAWS).p_value,
        lambda y, p, **k: fastece.direction(y, p, **k, **DRAWS).to_dict(),
        lambda y, p, **k: fastece.compare(y, p, p[..., ::-1, :, :] if p.ndim == 4 else
            np.moveaxis(PROB[..., ::-1, :, :], 1, -1).reshape(-1, C), **k, **DRAWS).p_value,
        lambda y, p, **k: fastece.calibration_report(y, p, **k, n_resamples=9).to_dict(),
    ],
)  # fmt: skip
def test_pixels_equal_their_flattened_rows(call):
    """Values, intervals and tests are those of the rows, with weights too."""
    flat = call(LABELS.ravel(), ROWS, sample_weight=WEIGHTS.ravel(), **FLAT)
    assert repr(call(LABELS, PROB, sample_weight=WEIGHTS, **PIXELS)) == repr(flat)


def test_the_classes_may_be_on_any_axis():
    expected = fastece.ece(LABELS.ravel(), ROWS, **FLAT)
    for axis in (0, 1, 2, 3, -1):
        options = {"class_axis": axis, "ignore_label": 255}
        prob = np.moveaxis(PROB, 1, axis)
        assert fastece.ece(LABELS, prob, **options) == expected
        of_logits = fastece.ece(LABELS, np.log(prob), from_logits=True, **options)
        assert of_logits == pytest.approx(expected, abs=1e-12)


def test_pixels_take_counts_percents_and_lists():
    y = np.where(KEPT, LABELS, 0)
    flat = fastece.ece(y.ravel(), ROWS, counts=COUNTS.ravel())
    assert fastece.ece(y, PROB, class_axis=1, counts=COUNTS) == flat
    state = fastece.Accumulator(C).update(y, PROB, class_axis=1, counts=COUNTS)
    assert fastece.ece(state) == pytest.approx(flat, abs=1e-12)
    expected = fastece.ece(y.ravel(), ROWS)
    assert fastece.ece(y, 100 * PROB, class_axis=1, percent=True) == pytest.approx(expected)
    assert fastece.ece(y.tolist(), PROB.tolist(), class_axis=1) == expected


def test_tensors_of_short_floats_keep_their_rounding(recwarn):
    torch = pytest.importorskip("torch")
    prob = torch.tensor(PROB).bfloat16()
    labels = torch.tensor(LABELS)
    flat = fastece.ece(labels.ravel(), prob.movedim(1, -1).reshape(-1, C), **FLAT)
    assert fastece.ece(labels, prob, **PIXELS) == flat
    assert not recwarn.list


@pytest.mark.parametrize(
    ("groups", "of_rows"), [("first_axis", IMAGES), (SITES[IMAGES].reshape(N, H, W), SITES[IMAGES])]
)
def test_images_are_groups(groups, of_rows):
    for function in (fastece.bootstrap, fastece.calibration_test):
        pixels = function(LABELS, PROB, groups=groups, **PIXELS, **DRAWS)
        rows = function(LABELS.ravel(), ROWS, groups=of_rows, **FLAT, **DRAWS)
        assert pixels.to_dict() == rows.to_dict()


def test_a_monitor_takes_pixels_in_the_order_of_the_labels():
    pixels = fastece.Monitor(n_classes=C).update(LABELS, PROB, **PIXELS)
    rows = fastece.Monitor(n_classes=C).update(LABELS.ravel(), ROWS, **FLAT)
    assert pixels.n == KEPT.sum()
    assert pixels.to_dict() == rows.to_dict()
    with pytest.raises(ValueError, match=r"y_prob\[3, 2, 1, 4\] is nan"):
        fastece.Monitor(n_classes=C).update(LABELS, BAD, **PIXELS)


def test_slices_have_the_shape_of_the_labels():
    by = RNG.choice(["x", "y"], (N, H, W))
    for columns, flat in ((by, by.ravel()), ({"side": by}, {"side": by.ravel()})):
        pixels = fastece.slices(LABELS, PROB, by=columns, **PIXELS, **DRAWS)
        rows = fastece.slices(LABELS.ravel(), ROWS, by=flat, **FLAT, **DRAWS)
        assert [(x.label, x.n, x.value) for x in pixels] == [(x.label, x.n, x.value) for x in rows]


def test_one_image_is_not_copied():
    from fastece.data.axes import find_row_axes

    for prob, axis in ((PROB[:1], 1), (np.moveaxis(PROB, 1, -1).copy(), -1), (ROWS.T, 0)):
        axes = find_row_axes("y_prob", prob, axis)
        assert np.shares_memory(axes.flatten_classes("y_prob", prob), prob)


def test_who_forgets_the_axis_is_told():
    calls = [
        fastece.ece,
        fastece.Accumulator(C).update,
        fastece.estimate,
        lambda y, p: CalibrationMetric(C)(p, y),
        fastece.Monitor(n_classes=C).update,
    ]
    for call in calls:
        with pytest.raises(ValueError, match="for classes on axis 1 pass class_axis=1"):
            call(LABELS, PROB)


BAD = PROB.copy()
BAD[3, 2, 1, 4] = np.nan


def test_groups_of_the_first_axis_need_the_axes():
    state = fastece.Accumulator(C, n_replicates=5, seed=0).update(
        LABELS, PROB, **PIXELS, groups=SITES
    )
    with pytest.raises(ValueError, match="groups: must be labels in a stream"):
        state.update(LABELS, PROB, **PIXELS, groups="first_axis")
    with pytest.raises(ValueError, match="groups: 'first_axis' goes with class_axis="):
        fastece.estimate(LABELS.ravel(), ROWS, **FLAT, groups="first_axis")


MASK_PROB = RNG.random((N, 1, H, W))
MASK = (RNG.random(MASK_PROB.shape) < MASK_PROB).astype(int)
MASK_ERROR = plain_ece(MASK.ravel(), MASK_PROB.ravel())
IN_COLUMNS = (MASK.reshape(-1, 1), MASK_PROB.reshape(-1, 1))


@pytest.mark.parametrize(
    ("labels", "prob", "options"),
    [
        (MASK, MASK_PROB, {"class_axis": 1}),
        (MASK[:, 0], MASK_PROB, {"class_axis": 1}),
        (np.moveaxis(MASK, 1, -1), np.moveaxis(MASK_PROB, 1, -1), {"class_axis": -1}),
        (*IN_COLUMNS, {}),
        (IN_COLUMNS[0].tolist(), IN_COLUMNS[1].tolist(), {}),
    ],
)
def test_masks_of_one_class_are_a_binary_problem(labels, prob, options):
    assert fastece.ece(labels, prob, **options) == pytest.approx(MASK_ERROR, abs=1e-12)
    metric = CalibrationMetric(**options)
    assert metric(prob, labels) == pytest.approx(MASK_ERROR, abs=1e-12)
    assert metric.compute() == pytest.approx(MASK_ERROR, abs=1e-12)


@pytest.mark.slow
def test_masks_have_groups_reports_and_indices_of_their_own():
    pixels = fastece.estimate(MASK, MASK_PROB, class_axis=1, groups="first_axis", **DRAWS)
    rows = fastece.estimate(MASK.ravel(), MASK_PROB.ravel(), groups=IMAGES, **DRAWS)
    assert pixels.to_dict() == rows.to_dict()
    columns = fastece.estimate(*IN_COLUMNS, groups=IMAGES, **DRAWS)
    assert columns.to_dict() == rows.to_dict()
    report = fastece.calibration_report(MASK, MASK_PROB, class_axis=1, n_resamples=0)
    assert report.n == MASK.size
    assert fastece.Monitor().update(MASK, MASK_PROB, class_axis=1).n == MASK.size
    bad = MASK_PROB.copy()
    bad[3, 0, 1, 4] = np.nan
    with pytest.raises(ValueError, match=r"y_prob\[3, 0, 1, 4\] is nan"):
        fastece.ece(MASK, bad, class_axis=1)
    with pytest.raises(ValueError, match=r"y_true: must have shape \(12, 6, 5\)"):
        fastece.ece(MASK[:, :, 0], MASK_PROB, class_axis=1)


def test_a_frame_of_one_column_has_no_names_of_classes():
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame({"outcome": MASK.ravel()})
    prob = pd.DataFrame({"probability": MASK_PROB.ravel()})
    each = fastece.estimate(labels, prob, setting="classwise", average=None, n_resamples=0)
    assert "probability" not in str(each)
    assert fastece.ece(labels, prob) == pytest.approx(MASK_ERROR, abs=1e-12)
