"""How a caller's arrays are read: to the problems of the definition, whatever their form."""

import re
import warnings
from functools import partial

import numpy as np
import pytest
import reference

import fastece
from fastece import kernels
from fastece.data import plain, reading
from fastece.data import scores as rows_reading
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from helpers.kernel_forms import PLAIN
from helpers.layouts import frozen, strided
from helpers.outcomes import outcome_of
from helpers.strategies import as_lists

# Labels are random, and of two of several classes alone.
pytestmark = pytest.mark.filterwarnings("ignore:.*are labels and columns in the same order")

SHAPES = {"binary": (), "confidence": (4,), "classwise": (4,)}
N = 1000


def data(setting, n=N):
    rng = np.random.default_rng(0)
    p = rng.random((n, *SHAPES[setting]))
    if p.ndim == 2:
        p /= p.sum(axis=1, keepdims=True)
    return rng.integers(0, 2, n), p


@pytest.fixture(params=SHAPES)
def given_data(request, monkeypatch):
    """A setting with data that are read in several slices."""
    monkeypatch.setattr(rows_reading, "MAX_ENTRIES_READ", 400)
    return request.param, *data(request.param)


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("columns", [None, 2, 3])
def test_problems_are_those_of_the_definition(columns, from_logits, monkeypatch):
    monkeypatch.setattr(rows_reading, "MAX_ENTRIES_READ", 30)
    for module in (rows_reading, reading):
        monkeypatch.setattr(module, "MAX_ROWS_KEPT", 9)
    rng = np.random.default_rng(1)
    p = rng.random(40) if columns is None else rng.dirichlet([1] * columns, 40)
    p = np.log(p / (1 - p)) if from_logits else p
    y = rng.integers(0, 2, 40)
    weight = rng.integers(0, 3, 40) / 2
    kept = np.flatnonzero(weight)
    for setting in ["confidence", "classwise", 0, 1, *(["binary"] if columns != 3 else [])]:
        for array in (p, p.astype("f4"), np.asfortranarray(p)):
            options = {"setting": setting, "from_logits": from_logits}
            expected = reference.problems(*as_lists(y, array), setting, None, from_logits)
            for rows, v in ((np.arange(40), None), (kept, weight)):
                table = read_problems(y, array, ReadingOptions(**options, sample_weight=v))
                assert table.n == rows.size
                assert table.positions is None or table.positions.tolist() == rows.tolist()
                samples = table.samples()
                assert len(samples) == len(expected) == table.n_problems
                for sample, (scores, hits, low, high) in zip(samples, expected, strict=True):
                    near = pytest.approx(np.take(scores, rows), abs=1e-15 if from_logits else 0)
                    assert sample.s == near
                    assert sample.y.tolist() == np.take(hits, rows).tolist()
                    assert (sample.low, sample.high) == (low, high)
                    assert sample.rows.tolist() == rows.tolist()
                    assert v is None or sample.v.tolist() == weight[rows].tolist()


@pytest.mark.parametrize("row", [0, N - 1])
@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_what_is_not_good_is_named_wherever_it_is(given_data, row, n_jobs):
    setting, y, p = given_data
    for array, name, bad in ((p, "y_prob", np.nan), (p, "y_prob", 1.5), (y, "y_true", 9)):
        kept = array[row].copy()
        array[row] = bad
        where = f"{row}, 0" if array.ndim == 2 else f"{row}"
        message = re.escape(f"{name}[{where}] is {bad}")
        for value_of in (fastece.ece, fastece.brier_score):
            with pytest.raises(ValueError, match=message) as caught:
                value_of(y, p, setting=setting, n_jobs=n_jobs)
            assert caught.value.__context__ is None
        array[row] = kept


@pytest.mark.slow
@pytest.mark.parametrize("row", [0, 2**21, 2**22])
def test_a_bad_row_is_found_wherever_it_is_among_millions(row):
    prob = np.full((2**22 + 1, 2), 0.5, np.float32)
    prob[row, 0] = 1.5
    with pytest.raises(ValueError, match=rf"y_prob\[{row}, 0\] is 1\.5"):
        fastece.ece(np.zeros(len(prob), np.int64), prob, setting="classwise")


def test_rounding_outside_the_range_is_clipped(given_data):
    setting, y, p = given_data
    value = fastece.ece(y, p, setting=setting)
    changed = p.copy()
    changed[7] = np.where(np.arange(p[7].size) == 0, 1 + 5e-7, -3e-7).reshape(p[7].shape)
    kept, exact = changed.copy(), changed.clip(0, 1)
    assert fastece.ece(y, changed, setting=setting) == fastece.ece(y, exact, setting=setting)
    assert fastece.ece(y, changed, setting=setting) != value
    assert np.array_equal(changed, kept)


@pytest.mark.parametrize("total", [0.999, 1.001, 1 - 1e-3, 1 + 1e-3])
def test_a_sum_on_the_tolerance_warns_always_or_never(total):
    # Sums in another order are rounded otherwise: only one of them may decide.
    p = np.array([[0.25, 0.25, 0.25, total - 0.75]] * 3)
    for dtype in ("f8", "f4"):
        warned = []
        for options in ({}, {"n_jobs": 1}, {"setting": "classwise"}, {"setting": 1}):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fastece.ece([0, 1, 2], p.astype(dtype), **options)
            warned.append(len(caught))
        assert len(set(warned)) == 1


def test_scores_that_can_be_read_in_place_are_not_copied():
    y, p = data("binary")
    assert np.shares_memory(read_problems(y, p).prob, p)
    y, p = data("classwise")
    classwise = ReadingOptions(setting="classwise")
    assert np.shares_memory(read_problems(y, p, classwise).prob, p)
    narrow = np.full((2**18 + 1, 4), 0.25, np.float32)  # too many to be converted at once
    label = np.arange(len(narrow)) % 4
    assert np.shares_memory(read_problems(label, narrow, classwise).prob, narrow)


@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_kde", "brier_score", "log_loss"])
@pytest.mark.parametrize("n", [50, 2**18 + 1])
def test_float32_vectors_have_the_bits_of_the_same_numbers_as_float64(estimator, n):
    rng = np.random.default_rng(n)
    narrow = rng.dirichlet(np.ones(4), n).astype(np.float32)
    label = rng.integers(0, 4, n)
    for setting in ("auto", "classwise", 2):
        values = [
            fastece.ece(label, p, setting=setting, estimator=estimator)
            for p in (narrow, narrow.astype(np.float64))
        ]
        assert values[0] == values[1]


def test_bools_of_any_bytes_are_true_or_false():
    y = np.array([7, 0, 1], np.uint8).view(bool)
    p = np.array([0.2, 0.6, 0.9])
    for options in ({}, {"n_jobs": 1}, {"setting": "classwise"}):
        expected = fastece.ece(np.array([1, 0, 1]), p, **options)
        assert fastece.ece(y, p, **options) == expected


@pytest.mark.parametrize("measure", [fastece.sce, fastece.ace])
def test_more_cells_than_memory_are_refused(measure):
    p = np.random.default_rng(2).dirichlet([1] * 9, 10)
    with pytest.raises(
        ValueError, match=r"n_bins: must fit into memory: .* for 9 classes, got 16777216"
    ):
        measure(np.arange(10) % 9, p, n_bins=2**24)
    with pytest.raises(ValueError, match=re.escape("y_true[0] is 9")):
        measure(np.full(10, 9), p, n_bins=2**24)


def test_minus_infinity_among_logits_is_no_warning_with_any_labels():
    for labels in ([0.0, 1, 1], [0, 1, 1], [False, True, True]):
        value = fastece.ece(np.array(labels), [-np.inf, 1.0, 2.0], from_logits=True)
        assert value == fastece.ece(labels, 1 / (1 + np.exp([np.inf, -1.0, -2.0])))
    with pytest.raises(ValueError, match=re.escape("y_true[1] is 0.5")):
        fastece.ece([0.0, 0.5, 1], [-np.inf, 1.0, 2.0], from_logits=True)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("row", [[0.0, 1e-17, 0.0], [-1e-30, -1e-17, 0.0]])
def test_the_argmax_is_that_of_the_logits_wherever_they_are_read(row, dtype):
    # The logits differ by less than their probabilities are rounded; all rows are the same, so
    # that every draw of them has the value of the data.
    z = np.tile(np.array(row, dtype), (20, 1))
    column = int(np.argmax(row))
    others = np.log(np.full((20, 3), [0.2, 0.3, 0.5]))
    for y in (np.full(20, column), np.full(20, (column + 1) % 3)):
        options = {"from_logits": True, "estimator": "ece", "n_bins": 1}
        value = fastece.ece(y, z, **options)
        hit = float(y[0] == column)
        top = reference.softmax(z[0].tolist())[column]
        assert value == pytest.approx(abs(hit - top), abs=1e-12)
        drawn = {"n_resamples": 40, "rng": 0, **options}
        result = fastece.bootstrap(y, z, **drawn)
        assert result.value == value
        assert result.bootstrap_distribution == pytest.approx(value, abs=1e-12)
        assert fastece.calibration_test(y, z, **drawn).value == value
        compared = fastece.compare(y, z, others, method="basic", **drawn)
        difference = value - fastece.ece(y, others, **options)
        assert compared.bootstrap_distribution == pytest.approx(difference, abs=1e-12)


@pytest.mark.parametrize("setting", ["binary", "confidence", "classwise", 1])
def test_an_estimator_cannot_write_into_the_callers_arrays(setting):
    class Careless:
        needs_sorted = False

        def prepare(self, sample, size):  # noqa: ARG002
            sample.s[:] = 0
            sample.y[:] = 9

        def evaluate(self, plan, c):  # noqa: ARG002
            return 0.0

    rng = np.random.default_rng(0)
    p = rng.random(10) if setting == "binary" else rng.dirichlet([1, 1, 1], 10)
    for y in (rng.integers(0, 2, 10), rng.integers(0, 2, 10).astype(np.uint8)):
        kept = y.copy(), p.copy()
        fastece.ece(y, p, setting=setting, estimator=Careless())
        assert np.array_equal(p, kept[1])
        assert np.array_equal(y, kept[0])


def test_problems_have_the_names_of_their_classes():
    names = ["ant", "bee", "cow"]
    y, p = np.arange(6) % 3, np.eye(3)[np.arange(6) % 3]

    def names_of(setting, labels):
        true = [labels[k] for k in y] if labels else y
        table = read_problems(true, p, ReadingOptions(setting=setting, labels=labels))
        return [table.name(k) for k in range(table.n_problems)]

    assert names_of("confidence", None) == names_of("confidence", names) == ["confidence"]
    assert names_of("classwise", None) == ["class 0", "class 1", "class 2"]
    assert names_of("classwise", names) == ["class 0 ('ant')", "class 1 ('bee')", "class 2 ('cow')"]
    assert names_of(np.int64(2), None) == ["class 2"]
    assert names_of(2, names) == ["class 2 ('cow')"]
    binary = read_problems(["n", "y"], [0.2, 0.7], ReadingOptions(labels=["n", "y"]))
    assert binary.name(0) == "binary ('y')"


# --- arrays are read as lists are -----------------------------------------------------------------

SETTINGS = {None: ["auto", "confidence", "classwise", 0], 3: ["auto", "classwise", 1]}


def class_vectors(n, n_classes, seed=0):
    """Labels and class vectors, some of them with tied maxima; or scores for None."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes or 2, 0.3), n)
    prob[::5] = 1 / (n_classes or 2)
    return rng.integers(0, n_classes or 2, n), prob if n_classes else prob[:, 1].copy()


def changed(array, value):
    """A copy with another last entry."""
    array = array.copy()
    array[(-1,) * array.ndim] = value
    return array


@pytest.mark.parametrize("n_classes", SETTINGS)
def test_bad_plain_arrays_are_refused_as_lists_are(n_classes):
    y, p = class_vectors(4, n_classes)
    calls = [(y, changed(p, bad)) for bad in (np.nan, np.inf, -1e-9, 1 + 5e-7, 1.5, -0.5)]
    calls += [(changed(y, bad), p) for bad in (2, 3, 255, -1, 2**62)]
    calls += [(y, p * 1.01), (y, p * 0.5), (y[:2], p), (y, p[:2])]
    n_errors = 0
    for label, prob in calls:
        outcome = outcome_of(lambda y=label, p=prob: fastece.ece(y, p))
        assert outcome == outcome_of(lambda y=label, p=prob: fastece.ece(y.tolist(), p.tolist()))
        n_errors += isinstance(outcome[0], tuple)
    assert n_errors > 9


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, -np.inf])
def test_bad_weights_of_plain_arrays_are_named(bad):
    y, p = class_vectors(9, None)
    weight = changed(np.ones(9), bad)
    with pytest.raises(ValueError, match=r"sample_weight\[8\] is"):
        fastece.ece(y, p, sample_weight=weight)
    with pytest.raises(ValueError, match="sample_weight: must not all be 0"):
        fastece.ece(y, p, sample_weight=np.zeros(9))


def test_other_settings_are_refused_for_plain_arrays_as_for_lists():
    for n_classes in SETTINGS:
        y, p = class_vectors(9, n_classes)
        for setting in ("binary", "confidence", 0, 2, -1, True, None, "top", 1.0, ["auto"]):
            outcome = outcome_of(lambda y=y, p=p, s=setting: fastece.ece(y, p, setting=s))
            assert outcome == outcome_of(
                lambda y=y, p=p, s=setting: fastece.ece(y.tolist(), p.tolist(), setting=s)
            )


@pytest.mark.parametrize("n_classes", SETTINGS)
def test_arrays_of_other_kinds_have_the_same_value_and_compile_nothing(n_classes):
    y, p = class_vectors(50, n_classes)
    reading = kernels.reading
    for label in (y, y.astype("u1")):
        for dtype in ("f8", "f4"):
            fastece.ece(label, p.astype(dtype))
    used = [reading.read_binary, reading.read_top_label]
    n_compiled = [] if PLAIN else [len(kernel.signatures) for kernel in used]
    value = fastece.ece(y, p)
    shifted = np.frombuffer(b" " + p.tobytes(), np.uint8)[1:].view(p.dtype).reshape(p.shape)
    for same in (
        frozen(p), strided(p), p[::-1][::-1], np.asfortranarray(p), shifted, p.astype(">f8"),
        p.astype("g"), p.tolist(),
    ):  # fmt: skip
        for label in (y, frozen(y), strided(y), y.astype(">i8"), y.tolist()):
            assert fastece.ece(label, same) == value
    for dtype in ("i1", "i2", "i4", "u2", "u4", "u8", "q", "f4", "f8"):
        assert fastece.ece(y.astype(dtype), p) == value
    if not PLAIN:
        assert [len(kernel.signatures) for kernel in used] == n_compiled


@pytest.mark.parametrize("n_classes", SETTINGS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_arrays_of_any_layout_have_the_results_of_lists(dtype, n_classes):
    """Values, weights and warnings, in every setting, for labels of any type."""
    y, p = class_vectors(60, n_classes)
    p = p.astype(dtype)
    weight = np.arange(1.0, 61)
    lays = [
        np.array,
        frozen,
        strided,
        np.asfortranarray,
        lambda x: x.astype(x.dtype.newbyteorder()),
    ]
    for k, label in enumerate((y, y.astype("u1"), y.astype("i2"), y.astype("u8"), y > 0)):
        lay = lays[k]
        for setting in SETTINGS[n_classes]:
            options = {"setting": setting, "average": None}
            for v in (None, weight):
                arrays, lists = (lay(label), lay(p)), (label.tolist(), p.tolist())
                (value, caught), (expected, warned) = (
                    outcome_of(partial(fastece.ece, *rows, **options, sample_weight=v))
                    for rows in (arrays, lists)
                )
                assert caught == warned
                np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("estimator", ["ece", "ece_kde", "brier_score", "sharpness"])
def test_many_rows_are_read_part_by_part(estimator, monkeypatch):
    y, p = data("binary")
    for array in (p, p.astype("f4"), strided(p), np.column_stack([1 - p, p])):
        for setting in ("auto", 0, "confidence", "classwise"):
            options = {"setting": setting, "estimator": estimator}
            monkeypatch.undo()
            expected = fastece.ece(y, array, **options)
            for module in (rows_reading, reading, plain):
                monkeypatch.setattr(module, "MAX_ROWS_KEPT", 9)
            assert fastece.ece(y, array, **options) == pytest.approx(expected, 1e-12)
