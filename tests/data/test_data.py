"""Settings, problems, and how a caller's arrays are read: fast, or checked slowly if that fails."""

import re
import warnings

import numpy as np
import pytest
import reference

import fastece
from fastece.data import plain, reading
from fastece.data import scores as rows_reading
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from fastece.data.samples import Sample
from fastece.data.table import SETTINGS, Setting, class_count, find_setting, one_problem
from helpers import strategies as cases
from helpers.strategies import as_lists

# Labels are random, and of two of several classes alone.
pytestmark = pytest.mark.filterwarnings("ignore:.*are labels and columns in the same order")

SHAPES = {"binary": (), "confidence": (4,), "classwise": (4,)}
N = 1000


def data(setting, dtype="f8", label="i8", n=N):
    rng = np.random.default_rng(0)
    p = rng.random((n, *SHAPES[setting])).astype(dtype)
    if p.ndim == 2:
        p /= p.sum(axis=1, keepdims=True)
    return rng.integers(0, 2, n).astype(label), p


@pytest.fixture(params=SHAPES)
def given_data(request, monkeypatch):
    """A setting with data that are read in several slices."""
    monkeypatch.setattr(rows_reading, "MAX_ENTRIES_READ", 400)
    return request.param, *data(request.param)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("label", ["i8", "u1", "b1"])
@pytest.mark.parametrize("setting", SHAPES)
def test_the_fast_read_and_the_slow_check_find_the_same(setting, dtype, label, monkeypatch):
    y, p = data(setting, dtype, label, 100)
    fast = read_problems(y, p, ReadingOptions(setting=setting))
    read_arrays, tolerances = reading.read_arrays, []

    def fail_once(*arguments):
        tolerances.append(arguments[-2])
        return read_arrays(*arguments) if len(tolerances) > 1 else None

    monkeypatch.setattr(reading, "read_arrays", fail_once)
    slow = read_problems(y, p, ReadingOptions(setting=setting))
    assert tolerances == [rows_reading.QUICK_TOLERANCE, np.inf]
    assert fast.label.dtype == slow.label.dtype
    for a, b in zip(fast.samples(), slow.samples(), strict=True):
        assert (a.s.tolist(), a.y.tolist()) == (b.s.tolist(), b.y.tolist())


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


def test_rounding_outside_the_range_is_clipped(given_data):
    setting, y, p = given_data
    value = fastece.ece(y, p, setting=setting)
    changed = p.copy()
    changed[7] = np.where(np.arange(p[7].size) == 0, 1 + 5e-7, -3e-7).reshape(p[7].shape)
    kept, exact = changed.copy(), changed.clip(0, 1)
    assert fastece.ece(y, changed, setting=setting) == fastece.ece(y, exact, setting=setting)
    assert fastece.ece(y, changed, setting=setting) != value
    assert np.array_equal(changed, kept)


@pytest.mark.parametrize("setting", ["confidence", "classwise"])
def test_rows_that_do_not_sum_to_one_warn_once(setting):
    _, p = data(setting)
    y = p.argmax(axis=1)
    value = fastece.ece(y, p, setting=setting)
    p[N - 1] *= 0.9
    for n_jobs in (None, 2):
        with pytest.warns(UserWarning, match=re.escape(f"1 of {N} rows")) as caught:
            changed = fastece.ece(y, p, setting=setting, n_jobs=n_jobs)
        assert len(caught) == 1
        assert changed == pytest.approx(value, abs=1e-3)


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


def test_weights_of_zero_are_dropped(given_data):
    setting, y, p = given_data
    weight = np.ones(N)
    weight[::3] = 0
    kept = weight > 0
    expected = fastece.ece(y[kept], p[kept], setting=setting)
    value = fastece.ece(y, p, setting=setting, sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-12)


def test_other_layouts_are_read_to_the_same_bits(given_data):
    setting, y, p = given_data
    value = fastece.ece(y, p, setting=setting)
    frozen = p.copy()
    frozen.flags.writeable = False
    wide = np.repeat(p, 2, axis=0)[::2]
    for same in (frozen, np.asfortranarray(p), wide, p.astype(">f8"), p.astype("g")):
        for label in (y.astype("i4"), np.repeat(y, 2)[::2], y.astype(">i8"), y.astype("f8")):
            assert fastece.ece(label, same, setting=setting) == value


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("columns", [None, 2, 3])
@pytest.mark.parametrize("kept", [9, 90])
def test_scores_and_hits_are_those_of_the_definition(kept, columns, from_logits, monkeypatch):
    monkeypatch.setattr(rows_reading, "MAX_ENTRIES_READ", 30)
    for module in (rows_reading, reading):
        monkeypatch.setattr(module, "MAX_ROWS_KEPT", kept)
    rng = np.random.default_rng(1)
    p = rng.random(40) if columns is None else rng.dirichlet([1] * columns, 40)
    p = np.log(p / (1 - p)) if from_logits else p
    y = rng.integers(0, 2, 40)
    settings = ["confidence", "classwise", 0, 1, *(["binary"] if columns != 3 else [])]
    for setting in settings:
        for array in (p, p.astype("f4"), np.asfortranarray(p)):
            problems = read_problems(
                y, array, ReadingOptions(setting=setting, from_logits=from_logits)
            )
            expected = reference.problems(*as_lists(y, array), setting, None, from_logits)
            samples = problems.samples()
            assert len(samples) == len(expected)
            for sample, (scores, hits, low, high) in zip(samples, expected, strict=True):
                assert sample.s == pytest.approx(scores, abs=1e-15 if from_logits else 0)
                assert sample.y.tolist() == hits
                assert (sample.low, sample.high) == (low, high)


@pytest.mark.parametrize("y", [[1, 0, 1], [True, False, True], [1.0, 0.0, 1.0]])
def test_arrays_are_such_as_kernels_are_compiled_for(y):
    for p in (np.array([[0.3, 0.7]] * 3), np.array([0.2, 0.5, 0.9])):
        for array in (p, p.astype("f4"), p[::-1], p.astype(">f8"), np.asfortranarray(p)):
            frozen = array.copy()
            frozen.flags.writeable = False
            for setting in ("binary", "confidence", "classwise", 0):
                problems = read_problems(
                    y, frozen, ReadingOptions(setting=setting, sample_weight=[1, 0, 2])
                )
                assert problems.prob.dtype in ("f8", "f4")
                assert problems.label.dtype == ("u1" if problems.prob.ndim == 1 else "i8")
                for kept in (problems.prob, problems.label, problems.v):
                    assert kept.flags.carray


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


@pytest.mark.parametrize("label", ["?", "i1", "u4", "f8"])
@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_kde", "brier_score", "sharpness"])
def test_many_rows_are_read_part_by_part(estimator, label, monkeypatch):
    y, p = data("binary")
    for array in (p, p.astype("f4"), np.repeat(p, 2)[::2], np.column_stack([1 - p, p])):
        for setting in ("auto", 0, "confidence", "classwise"):
            if (label, setting, array.ndim) == ("?", "confidence", 1):
                continue  # bools beside one column say whether it was right, and are refused
            options = {"setting": setting, "estimator": estimator}
            monkeypatch.undo()
            expected = fastece.ece(y, array, **options)
            for module in (rows_reading, reading, plain):
                monkeypatch.setattr(module, "MAX_ROWS_KEPT", 9)
            assert fastece.ece(y.astype(label), array, **options) == pytest.approx(expected, 1e-12)


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
        (sample,) = read_problems(y, z, ReadingOptions(from_logits=True)).samples()
        assert sample.y.tolist() == [hit] * 20
        drawn = {"n_resamples": 40, "rng": 0, **options}
        result = fastece.bootstrap(y, z, **drawn)
        assert result.value == value
        assert result.bootstrap_distribution == pytest.approx(value, abs=1e-12)
        assert fastece.calibration_test(y, z, **drawn).value == value
        compared = fastece.compare(y, z, others, method="basic", **drawn)
        difference = value - fastece.ece(y, others, **options)
        assert compared.bootstrap_distribution == pytest.approx(difference, abs=1e-12)


@pytest.mark.parametrize("setting", ["binary", "confidence", "classwise", 1])
def test_logits_that_are_no_numbers_are_named(setting):
    y, z = np.zeros(5, np.int64), np.zeros(5 if setting == "binary" else (5, 3))
    for bad in (np.nan, np.inf):
        changed = z.copy()
        changed[(-1,) * z.ndim] = bad
        where = "4" if setting == "binary" else "4, 2"
        with pytest.raises(ValueError, match=re.escape(f"y_prob[{where}] is {bad}")):
            fastece.ece(y, changed, setting=setting, from_logits=True)
    if z.ndim == 2:
        z[3] = -np.inf
        with pytest.raises(ValueError, match="y_prob"):
            fastece.ece(y, z, setting=setting, from_logits=True)


TRUE, PROB = cases.class_matrix(cases.score_sets()["bell"])


@pytest.mark.parametrize("setting", ["confidence", "classwise", 0, 2])
def test_samples_are_the_problems_of_the_definition(setting):
    problems = read_problems(TRUE, PROB, ReadingOptions(setting=setting))
    expected = reference.problems(*as_lists(TRUE, PROB), setting)
    samples = problems.samples()
    assert len(samples) == len(expected) == problems.n_problems
    for sample, (scores, hits, low, high) in zip(samples, expected, strict=True):
        assert (sample.s.tolist(), sample.y.tolist()) == (scores, hits)
        assert (sample.low, sample.high) == (low, high)
        assert (sample.s.dtype, sample.y.dtype) == (np.float64, np.uint8)
        assert sample.rows.tolist() == list(range(len(TRUE)))
        assert sample.v is None
        assert sample.n == problems.n == len(TRUE)


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


def test_rows_of_weight_0_are_gone_and_positions_stay():
    weight = np.arange(len(TRUE)) % 3 * 0.5
    kept = np.flatnonzero(weight)
    for setting in ("confidence", "classwise", 1):
        problems = read_problems(TRUE, PROB, ReadingOptions(setting=setting, sample_weight=weight))
        whole = read_problems(TRUE, PROB, ReadingOptions(setting=setting))
        assert problems.n == kept.size
        assert problems.positions.tolist() == kept.tolist()
        for k in range(problems.n_problems):
            sample, before = problems.sample(k), whole.sample(k)
            assert sample.s.tolist() == before.s[kept].tolist()
            assert sample.y.tolist() == before.y[kept].tolist()
            assert sample.v.tolist() == weight[kept].tolist()
            assert sample.rows.tolist() == problems.positions.tolist()


def test_problems_have_the_names_of_their_classes():
    names = ["ant", "bee", "cow"]
    true = [names[k] for k in TRUE]

    def names_of(setting, labels):
        problems = read_problems(
            true if labels else TRUE, PROB, ReadingOptions(setting=setting, labels=labels)
        )
        return [problems.name(k) for k in range(problems.n_problems)]

    assert names_of("confidence", None) == names_of("confidence", names) == ["confidence"]
    assert names_of("classwise", None) == ["class 0", "class 1", "class 2"]
    assert names_of("classwise", names) == ["class 0 ('ant')", "class 1 ('bee')", "class 2 ('cow')"]
    assert names_of(2, None) == ["class 2"]
    assert names_of(2, names) == ["class 2 ('cow')"]
    binary = read_problems(["n", "y"], [0.2, 0.7], ReadingOptions(labels=["n", "y"]))
    assert binary.name(0) == "binary ('y')"


def test_the_problem_of_a_sample_has_its_arrays():
    s, y, v = np.array([0.2, 0.7]), np.array([0, 1], np.uint8), np.array([1.0, 2.0])
    sample = Sample(s, y, v, 0.5, 1.0, np.array([3, 5]))
    problems = one_problem(sample)
    assert problems.prob is s
    assert problems.label is y
    assert problems.v is v
    assert (problems.low, problems.high, problems.n_problems) == (0.5, 1.0, 1)
    again = problems.sample(0)
    assert again.s.tolist() == s.tolist()
    assert again.s is not s
    assert again.rows.tolist() == [3, 5]


def test_the_top_label_alone_has_a_support_of_its_own():
    assert [name for name, row in SETTINGS.items() if row.is_top] == ["confidence"]
    assert [name for name, row in SETTINGS.items() if row.per_class] == ["classwise"]
    assert not find_setting(0, (5, 3)).is_top


def test_a_class_index_is_one_class_against_the_rest():
    for index in (2, np.int64(2), np.uint8(2)):
        assert find_setting(index, (5, 3)) == Setting("class 2", column=2)
    assert find_setting(1, (5,)) == Setting("class 1", column=1)


def test_probabilities_of_the_positive_class_are_of_two_classes():
    assert (class_count((5,)), class_count((5, 2)), class_count((5, 7))) == (2, 2, 7)


@pytest.mark.parametrize(
    ("setting", "shape", "message"),
    [
        ("top", (5,), "setting: must be a known name, got 'top'"),
        (None, (5,), "setting: must be a known name, got None"),
        (True, (5, 3), "setting: must be a known name, got True"),
        (1.0, (5, 3), "setting: must be a known name, got 1.0"),
        (3, (5, 3), "setting: "),
        (-1, (5, 3), "setting: "),
        (2, (5,), "setting: "),
        ("binary", (5, 3), "setting: 'binary' needs P(positive) or 2 columns"),
    ],
)
def test_other_settings_are_refused(setting, shape, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        find_setting(setting, shape)


@pytest.mark.slow
@pytest.mark.parametrize("row", [0, 2**21, 2**22])
def test_a_bad_row_is_found_wherever_it_is_among_millions(row):
    prob = np.full((2**22 + 1, 2), 0.5, np.float32)
    prob[row, 0] = 1.5
    with pytest.raises(ValueError, match=rf"y_prob\[{row}, 0\] is 1\.5"):
        fastece.ece(np.zeros(len(prob), np.int64), prob, setting="classwise")
