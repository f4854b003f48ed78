"""Rows that are read by kernels that check as they read: once a kind of data is known."""

import re
import warnings

import numpy as np
import pytest

import fastece
from fastece.binned.single import CHUNK_SCORES
from fastece.kernels import reading
from fastece.problems import settings
from fastece.problems.settings import KNOWN_KINDS, read_problems

N = 2 * CHUNK_SCORES + 1000  # three slices of rows
KINDS = {"binary": (), "confidence": (4,), "classwise": (4,)}


def data(setting, dtype="f8", label="i8", n=N):
    rng = np.random.default_rng(0)
    p = rng.random((n, *KINDS[setting])).astype(dtype)
    if p.ndim == 2:
        p /= p.sum(axis=1, keepdims=True)
    return rng.integers(0, 2, n).astype(label), p


@pytest.fixture(params=KINDS)
def known(request):
    """A setting with data of a kind that has been read before."""
    setting = request.param
    y, p = data(setting)
    fastece.ece(y[:10], p[:10], setting=setting)
    assert not read_problems(y, p, setting=setting).is_checked
    return setting, y, p


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("label", ["i8", "u1", "b1"])
@pytest.mark.parametrize("setting", KINDS)
def test_a_kind_is_checked_first_and_read_fast_then(setting, dtype, label):
    y, p = data(setting, dtype, label, 100)
    KNOWN_KINDS.clear()
    assert read_problems(y, p, setting=setting).is_checked
    first = fastece.ece(y, p, setting=setting)
    problems = read_problems(y, p, setting=setting)
    assert not problems.is_checked
    assert fastece.ece(y, p, setting=setting) == first
    fast, slow = problems.chunk(3, 50), problems.checked.chunk(3, 50)
    assert slow.tolerance == np.inf > fast.tolerance
    assert np.array_equal(fast.prob, slow.prob)
    assert np.array_equal(fast.label, slow.label)


@pytest.mark.parametrize("row", [0, N - 1])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_found_while_reading_is_told_as_before(known, row, n_jobs):
    setting, y, p = known
    for array, name, bad in ((p, "y_prob", np.nan), (p, "y_prob", 1.5), (y, "y_true", 9)):
        kept = array[row].copy()
        array[row] = bad
        where = f"{row}, 0" if array.ndim == 2 else f"{row}"
        message = re.escape(f"{name}[{where}] is {bad}")
        with pytest.raises(ValueError, match=message) as caught:
            fastece.ece(y, p, setting=setting, n_jobs=n_jobs)
        assert caught.value.__context__ is None
        array[row] = kept


def test_rounding_outside_the_range_is_clipped_while_reading(known):
    setting, y, p = known
    value = fastece.ece(y, p, setting=setting)
    changed = p.copy()
    changed[7] = np.where(np.arange(p[7].size) == 0, 1 + 5e-7, -3e-7).reshape(p[7].shape)
    exact = changed.clip(0, 1)
    assert fastece.ece(y, changed, setting=setting) == fastece.ece(y, exact, setting=setting)
    assert fastece.ece(y, changed, setting=setting) != value


def test_rows_that_do_not_sum_to_one_warn_once_while_reading():
    for setting in ("confidence", "classwise"):
        y, p = data(setting)
        value = fastece.ece(y, p, setting=setting)
        p[N - 1] *= 0.9
        with pytest.warns(UserWarning, match=re.escape(f"1 of {N} rows")) as caught:
            changed = fastece.ece(y, p, setting=setting)
        assert len(caught) == 1
        assert changed == pytest.approx(value, abs=1e-3)


def test_weights_of_zero_are_dropped_before_anything_is_read(known):
    setting, y, p = known
    weight = np.ones(N)
    weight[::3] = 0
    kept = weight > 0
    expected = fastece.ece(y[kept], p[kept], setting=setting)
    assert fastece.ece(y, p, setting=setting, sample_weight=weight) == pytest.approx(
        expected, abs=1e-12
    )


def test_other_layouts_are_read_to_the_same_bits(known):
    setting, y, p = known
    value = fastece.ece(y, p, setting=setting)
    frozen = p.copy()
    frozen.flags.writeable = False
    wide = np.repeat(p, 2, axis=0)[::2]
    for same in (frozen, np.asfortranarray(p), wide, p.astype(">f8"), p.astype("g")):
        assert fastece.ece(y.astype("i4"), same, setting=setting) == value
        assert fastece.ece(np.repeat(y, 2)[::2], same, setting=setting) == value


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("columns", [None, 2, 3])
def test_a_slice_and_a_sample_hold_the_same_bits(columns, from_logits):
    rng = np.random.default_rng(1)
    p = rng.random(40) if columns is None else rng.dirichlet([1] * columns, 40)
    p = np.log(p / (1 - p)) if from_logits else p
    y = rng.integers(0, 2, 40)
    for setting in ("confidence", "classwise", 0, 1):
        for dtype in ("f8", "f4"):
            problems = read_problems(y, p.astype(dtype), setting=setting, from_logits=from_logits)
            rows = problems.chunk(0, 40)
            score, hit = np.empty(rows.prob.size), np.empty(rows.prob.size, np.uint8)
            assert reading.read(rows.prob, rows.label, rows.tolerance, score, hit)
            score, hit = score.reshape(40, -1), hit.reshape(40, -1)
            for k in range(problems.n_problems):
                assert score[:, k].tolist() == problems.sample(k).s.tolist()
                assert hit[:, k].tolist() == problems.sample(k).y.tolist()


def test_an_estimator_cannot_write_into_the_callers_scores():
    class Careless:
        needs_sorted = False

        def prepare(self, sample, size):  # noqa: ARG002
            sample.s[:] = 0

        def evaluate(self, plan, c):  # noqa: ARG002
            return 0.0

    y, p = data("binary", n=10)
    kept = p.copy()
    fastece.ece(y, p, estimator=Careless())
    assert np.array_equal(p, kept)


def test_minus_infinity_among_logits_is_no_warning_with_any_labels():
    for labels in ([0.0, 1, 1], [0, 1, 1], [False, True, True]):
        value = fastece.ece(np.array(labels), [-np.inf, 1.0, 2.0], from_logits=True)
        assert value == fastece.ece(labels, 1 / (1 + np.exp([np.inf, -1.0, -2.0])))
    with pytest.raises(ValueError, match=re.escape("y_true[1] is 0.5")):
        fastece.ece([0.0, 0.5, 1], [-np.inf, 1.0, 2.0], from_logits=True)


@pytest.mark.parametrize("total", [0.999, 1.001, 1 - 1e-3, 1 + 1e-3])
def test_a_sum_on_the_tolerance_warns_always_or_never(total):
    p = np.array([[0.25, 0.25, 0.25, total - 0.75]] * 3)
    for dtype in ("f8", "f4"):
        warned = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fastece.ece([0, 1, 2], p.astype(dtype))
            warned.append(len(caught))
        assert warned[0] == warned[1]


@pytest.mark.parametrize("setting", ["confidence", 1])
@pytest.mark.parametrize("from_logits", [False, True])
def test_class_vectors_are_converted_a_few_at_a_time(monkeypatch, setting, from_logits):
    y, p = data("confidence", n=200)
    p = np.log(p) if from_logits else p
    for array in (p, p.astype("f4"), np.asfortranarray(p)):
        options = {"setting": setting, "from_logits": from_logits, "estimator": "ece_ac"}
        whole = fastece.ece(y, array, **options)
        with monkeypatch.context() as patch:
            patch.setattr(settings, "CONVERTED", 30)
            assert fastece.ece(y, array, **options) == whole


def test_bools_of_any_bytes_are_true_or_false():
    y = np.array([7, 0, 1], np.uint8).view(bool)
    assert fastece.ece(y, [0.2, 0.6, 0.9]) == fastece.ece([1, 0, 1], [0.2, 0.6, 0.9])


@pytest.mark.parametrize("measure", [fastece.sce, fastece.ace])
def test_more_cells_than_memory_are_refused(measure):
    p = np.random.default_rng(2).dirichlet([1] * 9, 10)
    for _ in range(2):  # before and after the kind of data is known
        with pytest.raises(ValueError, match="n_bins: 16777216 bins for each of 9 classes"):
            measure(np.arange(10) % 9, p, n_bins=2**24)
        with pytest.raises(ValueError, match=re.escape("y_true[0] is 9")):
            measure(np.full(10, 9), p, n_bins=2**24)
        measure(np.arange(10) % 9, p)
