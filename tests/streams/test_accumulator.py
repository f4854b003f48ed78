"""The values of an accumulator: exact values, sums of states, and refusals."""

import pickle
from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastece
from fastece import Accumulator
from fastece.streams import CalibrationMetric, from_batches
from helpers.bad_input import assert_refused
from helpers.field_samples import plain_ece
from helpers.layouts import frozen, strided
from helpers.resample_cases import same_bits
from helpers.strategies import binary
from helpers.stream_cases import (
    DTYPES,
    EXACT_BINS,
    SETTINGS,
    WEIGHTS,
    arrays,
    assert_same,
    binary_data,
    class_data,
    data_of,
    edge_scores,
    labels_of,
    part,
    same_arrays,
    state_of,
    weights_of,
)

EXACT = 1e-12
EXACT_FIELDS = [
    {},
    {"norm": 2},
    {"norm": inf},
    {"mapping": "convex"},
    {"mapping": "convex", "norm": 2},
    {"mapping": "convex", "norm": inf},
    {"bin_weights": "equal"},
    {"mapping": "convex", "bin_weights": "equal", "norm": 2},
    {"norm": inf, "min_count": 4},
    {"norm": 3.5, "score_range": "unit"},
]


def near(value, slack=EXACT):
    return pytest.approx(value, abs=slack, rel=0, nan_ok=True)


def assert_exact(state, y, p, setting, weight, n_bins, **fields):
    """The values of all classes, and their mean, equal the values of the data in memory."""
    for average in ("macro", None) if setting == "classwise" else ("macro",):
        seen = fastece.ece(state, n_bins=n_bins, average=average, **fields)
        options = {"setting": setting, "sample_weight": weight, "average": average}
        expected = fastece.ece(y, p, n_bins=n_bins, **options, **fields)
        assert np.shape(seen) == np.shape(expected)
        # The bin with the largest gap may have little weight, by which roundings are divided.
        slack = 10 * EXACT if fields.get("norm") == inf else EXACT
        assert seen == near(expected, slack), (n_bins, fields)


# Each setting with other weights.
every_setting = pytest.mark.parametrize(
    ("setting", "weights"),
    [("binary", "random"), ("confidence", "none"), ("classwise", "eighths"), (1, "integers")],
)


@every_setting
def test_uniform_bins_and_brier_scores_equal_the_data_in_memory(setting, weights):
    number = SETTINGS.index(setting) + WEIGHTS.index(weights)
    n_classes, y, p = data_of(setting, 300, DTYPES[number % 2])
    weight = weights_of(weights, len(y))
    state = state_of(y, p, weight, n_classes=n_classes, setting=setting)
    case = state, y, p, setting, weight
    for i, n_bins in enumerate(EXACT_BINS):
        assert_exact(*case, n_bins, **EXACT_FIELDS[(i + number) % len(EXACT_FIELDS)])
    assert_exact(*case, 10, threshold=0.3)
    assert_exact(*case, 15, threshold=7 / 15, mapping="convex")
    options = {"setting": setting, "sample_weight": weight}
    assert fastece.brier_score(state) == near(fastece.brier_score(y, p, **options))
    for fields in ({}, {"estimator": "ece_c"}, {"n_bins": 20, "min_count": 3}):
        assert fastece.mce(state, **fields) == near(fastece.mce(y, p, **options, **fields))


@pytest.mark.parametrize("n_bins", EXACT_BINS)
def test_scores_on_edges_and_beside_them_go_where_they_go_in_memory(n_bins):
    number = EXACT_BINS.index(n_bins)
    p = edge_scores(n_bins, DTYPES[number % 2])
    y = labels_of(p)
    state = state_of(y, p)
    for fields in ({}, {"mapping": "convex"}, EXACT_FIELDS[number], {"threshold": 1 / n_bins}):
        assert_exact(state, y, p, "binary", None, n_bins, **fields)
    diagram = fastece.reliability_diagram(y, p, n_bins=n_bins)
    assert np.array_equal(fastece.reliability_diagram(state, n_bins=n_bins).count, diagram.count)


@pytest.mark.slow
@given(
    data=binary(max_size=5),
    kind=st.sampled_from(WEIGHTS),
    n_bins=st.sampled_from(EXACT_BINS),
    fields=st.sampled_from(EXACT_FIELDS),
)
def test_a_few_rows_are_exact(data, kind, n_bins, fields):
    y, p = data
    weight = weights_of(kind, len(y))
    state = state_of(y, p, weight)
    assert_exact(state, y, p, "binary", weight, n_bins, **fields)
    assert fastece.brier_score(state) == near(fastece.brier_score(y, p, sample_weight=weight))
    assert state.n == len(y) - (0 if weight is None else np.count_nonzero(weight == 0))


def test_a_threshold_of_0_drops_scores_of_0():
    p = np.array([0.0, 1e-6, 0.0, 0.5])
    y = np.array([0, 1, 1, 1])
    assert_exact(state_of(y, p), y, p, "binary", None, 10, threshold=0)


def test_auto_is_binary_or_confidence():
    y, p = binary_data("spread", 50)
    assert fastece.ece(state_of(y, p)) == fastece.ece(state_of(y, p, setting="binary"))
    y, p = class_data(50)
    auto = state_of(y, p, n_classes=5)
    assert fastece.ece(auto) == fastece.ece(state_of(y, p, n_classes=5, setting="confidence"))
    assert fastece.ece(auto) == near(fastece.ece(y, p))
    # The Brier score of class vectors counts all of their entries.
    assert fastece.brier_score(auto) == near(fastece.brier_score(y, p))


@every_setting
def test_diagrams_equal_the_data_in_memory(setting, weights):
    n_classes, y, p = data_of(setting, 200)
    weight = weights_of(weights, len(y))
    state = state_of(y, p, weight, n_classes=n_classes, setting=setting)
    for estimator, n_bins in (("ece", 15), ("ece_c", 50)):
        seen = fastece.reliability_diagram(state, estimator=estimator, n_bins=n_bins)
        options = {"setting": setting, "sample_weight": weight}
        expected = fastece.reliability_diagram(y, p, estimator=estimator, n_bins=n_bins, **options)
        assert isinstance(seen, list) == isinstance(expected, list) == (setting == "classwise")
        seen, expected = (x if isinstance(x, list) else [x] for x in (seen, expected))
        assert len(seen) == len(expected)
        for a, b in zip(seen, expected, strict=True):
            assert np.array_equal(a.edges, b.edges)
            scale = max(1.0, b.count.sum())
            assert a.count == near(b.count, EXACT * scale)
            assert a.value == near(b.value)
            # Squares of weights are known by cells, not how they lie between two centres.
            assert a.rows == near(b.rows, (1e-6 if estimator == "ece" else 1e-3) * scale)
            # Means of bins of little weight divide roundings by this weight.
            is_heavy = b.count > 1e-3
            for name in ("score", "frequency", "gap"):
                assert getattr(a, name)[is_heavy] == near(getattr(b, name)[is_heavy], 1e-10), name
            assert np.array_equal(np.isnan(a.score), np.isnan(b.score))
            assert (a.setting, a.closed, a.estimator) == (b.setting, b.closed, b.estimator)


def test_logits_have_the_values_of_the_data_in_memory():
    rng = np.random.default_rng(0)
    for z, n_classes, setting in (
        (3 * rng.standard_normal(200), None, "binary"),
        (3 * rng.standard_normal((200, 4)), 4, "confidence"),
        (3 * rng.standard_normal((200, 4)), 4, "classwise"),
    ):
        y = rng.integers(0, n_classes or 2, 200)
        state = state_of(y, z, n_classes=n_classes, setting=setting, from_logits=True)
        assert fastece.ece(state) == near(fastece.ece(y, z, setting=setting, from_logits=True))


@pytest.mark.parametrize("setting", ["confidence", "classwise", 0, 1])
def test_one_column_stands_for_two_classes(setting):
    y, p = binary_data("spread", 60)
    state = state_of(y, p, setting=setting)
    assert_exact(state, y, p, setting, None, 10)


def test_one_state_answers_many_questions_and_stays_as_it_is():
    y, p = binary_data("spread", 500)
    state = state_of(y, p)
    before = arrays(state)
    names = ("ece", "ece_a", "ece_c", "ece_ac", "ece_kde")
    values = [fastece.ece(state, estimator=name) for name in names]
    fastece.mce(state)
    fastece.brier_score(state)
    fastece.reliability_diagram(state)
    fastece.reliability_curve(state)
    assert values == [fastece.ece(state, estimator=name) for name in names]
    assert same_arrays(arrays(state), before)


def test_empty_and_weightless_batches_change_no_answer():
    y, p = binary_data("spread", 30)
    state = state_of(y, p)
    for rows in (np.zeros(0, int), np.array([0, 1])):
        before = state.copy()
        assert state.update(y[rows], p[rows], sample_weight=np.zeros(len(rows))) is state
        assert state.n == before.n == 30
        assert fastece.ece(state) == fastece.ece(before)
        assert fastece.brier_score(state) == fastece.brier_score(before)
    empty = state.copy().update(y[:0], p[:0])
    assert_same(empty, state)
    vectors = Accumulator(3).update(np.zeros(0, int), np.zeros((0, 3)))
    assert vectors == Accumulator(3)
    assert vectors.n == 0


def test_a_state_without_rows_has_no_value():
    for state in (Accumulator(), Accumulator(3), Accumulator(3, setting="classwise")):
        for function in (
            fastece.ece,
            fastece.mce,
            fastece.brier_score,
            fastece.reliability_diagram,
        ):
            assert_refused(lambda: function(state), ["(?i)no rows|empty|no weight"])  # noqa: B023


MAX_WEIGHT = 2.0**32  # of all rows together
MAX_SQUARES = 2.0**38  # the sum of the squares of all weights


def test_weights_add_up_to_the_limit_and_not_beyond():
    y = [1, 0]
    p = [0.25, 1.0]
    weight = np.sqrt([MAX_SQUARES / 2, MAX_SQUARES / 4])
    state = Accumulator().update(y, p, sample_weight=weight)
    assert fastece.ece(state) == near(fastece.ece(y, p, sample_weight=weight))
    assert fastece.brier_score(state) == near(fastece.brier_score(y, p, sample_weight=weight))
    before = arrays(state)
    for heavy in ([2.0**19, 0.0], [MAX_WEIGHT, MAX_WEIGHT], [1e300, 1e300], [1e-3, 2.0**63]):
        assert_refused(lambda heavy=heavy: state.update(y, p, sample_weight=heavy), ["weight"])
        assert same_arrays(arrays(state), before)
    assert_refused(
        lambda: Accumulator().update(y, p, sample_weight=[MAX_WEIGHT, 1]), ["sample_weight"]
    )
    for merge in (lambda: state + state, lambda: state.copy().merge(state)):
        assert_refused(merge, ["weight"])
    assert same_arrays(arrays(state), before)


def test_states_add_up_to_the_limit_and_not_beyond():
    y, p = binary_data("sharp", 2**16)
    state = state_of(y, p)
    first = fastece.ece(state)
    for _ in range(15):
        state = state + state
    before = arrays(state)
    assert state.n == MAX_WEIGHT / 2
    assert fastece.ece(state) == near(first)
    doubled = {name: array + array for name, array in before.items()}
    below = state + state_of(y[:-1], p[:-1])
    assert fastece.ece(below) == near(first, 1e-4)
    assert_refused(lambda: below + state, ["weight", r"4.29\d*e\+09|4294967296|2\^32"])
    assert_refused(lambda: below.update([1], [0.5], sample_weight=[MAX_WEIGHT / 2]), ["weight"])
    twice = {name: array + array for name, array in doubled.items()}
    assert_refused(lambda: Accumulator().load_state_dict(twice), ["weight|state"])


@st.composite
def parted(draw):
    """A setting with replicates or without, its data, cuts into parts, and an order of these."""
    setting = draw(st.sampled_from(SETTINGS))
    n = draw(st.integers(1, 60))
    dtype = draw(st.sampled_from(DTYPES))
    n_classes, y, p = data_of(setting, n, dtype, seed=draw(st.integers(0, 5)))
    weight = weights_of(draw(st.sampled_from(WEIGHTS)), n)
    points = [0, *sorted(draw(st.lists(st.integers(0, n), max_size=6))), n]
    pieces = [*pairwise(points)]
    order = draw(st.permutations(range(len(pieces))))
    replicates = draw(st.sampled_from([{}, {"n_replicates": 8, "seed": 3, "n_cells": 900}]))
    options = {"n_classes": n_classes, "setting": setting, **replicates}
    return options, (y, p, weight), pieces, order


@pytest.mark.slow
@given(parted())
@settings(max_examples=40)
def test_any_cut_and_any_order_give_the_same_bits(case):
    options, data, pieces, order = case
    at_once = state_of(*data, **options)
    in_order = Accumulator(**options)
    for a, b in pieces:
        y, p, weight = (part(x, slice(a, b)) for x in data)
        in_order.update(y, p, sample_weight=weight)
    out_of_order = Accumulator(**options)
    states = []
    for a, b in (pieces[i] for i in order):
        y, p, weight = (part(x, slice(a, b)) for x in data)
        out_of_order.update(y, p, sample_weight=weight, row_offset=a)
        states.append(state_of(y, p, weight, row_offset=a, **options))
    merged = Accumulator(**options)
    for state in states:
        assert merged.merge(state) is merged
    middle = len(states) // 2
    sums = [
        sum(states),
        sum(states, Accumulator(**options)),
        sum(states[middle:]) + sum(states[:middle]),
    ]
    for state in (in_order, out_of_order, merged, *sums):
        assert_same(state, at_once)
    for name in ("ece", "ece_a"):
        assert same_bits(
            fastece.ece(merged, estimator=name, average=None),
            fastece.ece(at_once, estimator=name, average=None),
        )


@pytest.mark.parametrize("setting", SETTINGS)
def test_sums_are_new_states(setting):
    n_classes, y, p = data_of(setting, 50)
    options = {"n_classes": n_classes, "setting": setting}
    a = state_of(y[:20], p[:20], **options)
    b = state_of(y[20:], p[20:], **options)
    a_before = arrays(a)
    b_before = arrays(b)
    assert_same(a + b, b + a)
    assert_same(a + b, state_of(y, p, **options))
    assert_same(0 + a, a)
    assert 0 + a is not a
    assert_same(sum([a]), a)
    assert_same(a + Accumulator(**options), a)
    (0 + a).update(y, p)
    (a + b).update(y, p)
    sum([a, b]).merge(b)
    assert same_arrays(arrays(a), a_before)
    assert same_arrays(arrays(b), b_before)
    assert a != b
    assert a + b != a
    assert (a + b).n == 50


def test_a_state_equals_only_states():
    state = Accumulator()
    assert state != 0
    assert state != "state"
    assert state != Accumulator(2, setting="confidence")
    assert state == Accumulator()
    with pytest.raises(TypeError):
        state + 1
    with pytest.raises(TypeError):
        1 + state
    assert_refused(lambda: state.merge("state"), ["Accumulator"])
    for table in (state, fastece.Predictions([0, 1], [0.2, 0.9])):
        with pytest.raises(fastece.InputTypeError, match=r"^y_true: must be labels.*merge adds"):
            state.update(table)
    before = arrays(state)
    assert_refused(lambda: state.merge(state), ["^other: ", "twice"])
    assert same_arrays(arrays(state), before)


@pytest.mark.parametrize("setting", SETTINGS)
def test_copies_and_pickles_are_equal_and_apart(setting):
    n_classes, y, p = data_of(setting, 30)
    state = state_of(y, p, n_classes=n_classes, setting=setting)
    for other in (state.copy(), pickle.loads(pickle.dumps(state))):
        assert_same(other, state)
        assert same_bits(
            fastece.ece(other, estimator="ece_a"), fastece.ece(state, estimator="ece_a")
        )
        other.update(y, p)
        assert other != state
        assert other.n == 60
        assert state.n == 30


DIFFERENT = [
    ({}, {"n_classes": 3}, "n_classes"),
    ({"n_classes": 4}, {"n_classes": 3}, "n_classes"),
    ({"n_classes": 3}, {"n_classes": 3, "setting": "classwise"}, "setting"),
    ({"n_classes": 3, "setting": 0}, {"n_classes": 3, "setting": 1}, "setting"),
    ({}, {"n_cells": 32400}, "n_cells"),
    ({}, {"n_replicates": 8, "seed": 0}, "n_replicates"),
    ({"n_replicates": 4, "seed": 0}, {"n_replicates": 8, "seed": 0}, "n_replicates"),
    ({"n_replicates": 8, "seed": 1}, {"n_replicates": 8, "seed": 2}, "seed"),
    ({}, {"from_logits": True}, "from_logits"),
]


@pytest.mark.parametrize(("options", "other_options", "name"), DIFFERENT)
def test_states_of_other_settings_do_not_add_up(options, other_options, name):
    for options_of_a, options_of_b in ((options, other_options), (other_options, options)):
        a = Accumulator(**options_of_a)
        b = Accumulator(**options_of_b)
        assert a != b
        before = arrays(a)
        assert_refused(lambda a=a, b=b: a + b, [name])
        assert_refused(lambda a=a, b=b: a.merge(b), [name])
        assert_refused(lambda a=a, b=b: a.load_state_dict(b.state_dict()), ["(?i)state|" + name])
        assert same_arrays(arrays(a), before)


@pytest.mark.parametrize("setting", SETTINGS)
def test_arrays_of_two_states_add_up(setting):
    n_classes, y, p = data_of(setting, 50)
    weight = weights_of("random", 50)
    options = {"n_classes": n_classes, "setting": setting}
    a = state_of(y[:20], p[:20], weight[:20], **options)
    b = state_of(y[20:], p[20:], weight[20:], **options)
    of_a = a.state_dict()
    of_b = b.state_dict()
    assert of_a.keys() == of_b.keys()
    for name, array in of_a.items():
        assert isinstance(name, str)
        assert type(array) is np.ndarray
        assert array.dtype == np.int64
        assert array.shape == of_b[name].shape
    summed = Accumulator(**options)
    assert summed.load_state_dict({name: of_a[name] + of_b[name] for name in of_a}) is summed
    assert_same(summed, a + b)
    assert fastece.ece(summed, estimator="ece_a") == fastece.ece(a + b, estimator="ece_a")
    before = arrays(a)
    Accumulator(**options).load_state_dict(of_a).update(y, p)
    for array in of_a.values():
        array += 1
    assert same_arrays(arrays(a), before)  # nothing is shared


def test_arrays_that_are_no_state_are_refused():
    state = state_of(*binary_data("spread", 30))
    before = arrays(state)
    name = next(iter(before))
    wrong_states = [
        {},
        {key: array for key, array in before.items() if key != name},
        {**before, name: before[name].ravel()[:-1]},
        {**before, name: before[name] + 0.5},
        {**before, "more": np.zeros(3, np.int64)},
    ]
    for wrong in wrong_states:
        assert_refused(lambda wrong=wrong: state.load_state_dict(wrong), ["(?i)state|array|key"])
        assert same_arrays(arrays(state), before)


def test_memory_is_fixed():
    for options in ({}, {"n_classes": 10}, {"n_classes": 1000}):
        state = Accumulator(**options)
        size = state.nbytes
        assert size < 1.5e6
        n_classes = options.get("n_classes")
        y, p = binary_data("spread", 999) if n_classes is None else class_data(50, n_classes)
        state.update(y, p)
        assert state.nbytes == size
        assert sum(array.nbytes for array in state.state_dict().values()) < 1.6e6
    assert Accumulator(7, setting="classwise").nbytes <= 7.1 * Accumulator().nbytes


BAD_BATCHES = [
    ([0, 1, 1], [0.1, 0.2, nan], {}, ["y_prob", "2", "(?i)nan"]),
    ([0, 1, 1], [0.1, 1.5, 0.2], {}, ["y_prob", "1.5", r"\b1\b"]),
    ([0, 2, 1], [0.1, 0.5, 0.2], {}, ["y_true", r"\b2\b"]),
    ([0, 1], [0.1, 0.5, 0.2], {}, ["y_true|y_prob", "2", "3"]),
    ([0, 1, 1], [0.1, 0.5, 0.2], {"sample_weight": [1, -1, 1]}, ["sample_weight", "-1"]),
    ([0, 1, 1], [0.1, 0.5, 0.2], {"row_offset": -1}, ["row_offset", "-1"]),
    ([0, 1, 1], [0.1, 0.5, 0.2], {"row_offset": 1.5}, ["row_offset", "1.5"]),
]


@pytest.mark.parametrize(("y", "p", "options", "words"), BAD_BATCHES)
@pytest.mark.parametrize("n_replicates", [0, 4])
def test_a_bad_batch_changes_nothing(y, p, options, words, n_replicates):
    seed = 0 if n_replicates else None
    state = state_of(*binary_data("spread", 30), n_replicates=n_replicates, seed=seed)
    before = state.copy()
    arrays_before = arrays(state)
    assert_refused(lambda: state.update(y, p, **options), words)
    assert state == before
    assert same_arrays(arrays(state), arrays_before)
    good = binary_data("spread", 7, seed=1)
    assert_same(state.update(*good), before.update(*good))


def test_a_bad_row_at_the_end_of_a_long_batch_changes_nothing():
    y, p = binary_data("spread", 200_000)
    p[-1] = -0.5
    state = state_of(y[:10], p[:10])
    before = state.copy()
    assert_refused(lambda: state.update(y, p), ["y_prob", "199999", "-0.5"])
    assert_same(state, before)
    y, p = class_data(70_000, 3)
    y[-1] = 3
    state = state_of(y[:10], p[:10], n_classes=3, setting="classwise")
    before = state.copy()
    assert_refused(lambda: state.update(y, p), ["y_true", "69999", "3"])
    assert_same(state, before)


def test_class_vectors_must_have_the_number_of_classes():
    state = Accumulator(3)
    for p in ([[0.5, 0.5]], [[0.25] * 4], [0.5]):
        assert_refused(lambda p=p: state.update([0], p), ["y_prob", "3"])
    assert_refused(lambda: state.update([3], [[0.2, 0.3, 0.5]]), ["y_true", "3"])
    assert_refused(lambda: Accumulator().update([1], [[0.2, 0.3, 0.5]]), ["y_prob|n_classes"])
    frame = pytest.importorskip("pandas").DataFrame({"a": [0.2], "b": [0.3], "c": [0.5]})
    assert_refused(lambda: state.update(["a"], frame), ["y_true", "class numbers"])
    assert state == Accumulator(3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_classes": 1}, ["n_classes", "1"]),
        ({"n_classes": 2.5}, ["n_classes", "2.5"]),
        ({"n_classes": True}, ["n_classes", "True"]),
        ({"n_classes": "3"}, ["n_classes"]),
        ({"n_classes": 3, "setting": "binary"}, ["setting|n_classes", "binary"]),
        ({"n_classes": 3, "setting": 3}, ["setting", "3"]),
        ({"n_classes": 3, "setting": -1}, ["setting", "-1"]),
        ({"setting": "top"}, ["setting", "top", "classwise"]),
        ({"n_cells": 0}, ["n_cells", "0"]),
        ({"n_cells": 10.5}, ["n_cells", "10.5"]),
        ({"n_replicates": -1, "seed": 0}, ["n_replicates", "-1"]),
        ({"n_replicates": 2.5, "seed": 0}, ["n_replicates", "2.5"]),
        ({"n_replicates": 10}, ["seed"]),
        ({"n_replicates": 10, "seed": -1}, ["seed", "-1"]),
        ({"n_replicates": 10, "seed": "a"}, ["seed"]),
    ],
)
def test_wrong_settings_are_refused(options, words):
    assert_refused(lambda: Accumulator(**options), words)


def test_states_do_not_depend_on_the_layout_of_rows():
    y, p = class_data(60)
    plain = state_of(y, p, n_classes=5)
    for rows in (np.asfortranarray(p), np.repeat(p, 2, axis=0)[::2], p.tolist()):
        assert_same(state_of(y.tolist(), rows, n_classes=5), plain)
    for labels in (y.astype(np.uint8), y.astype(float), y[:, None]):
        assert_same(state_of(labels, p, n_classes=5), plain)
    y, p = binary_data("spread", 60)
    for labels in (y == 1, y.astype(np.int8), y.astype(np.float32)):
        assert_same(state_of(labels, p), state_of(y, p))


@pytest.mark.parametrize("setting", ["auto", *SETTINGS])
@pytest.mark.parametrize(
    ("dtype", "options"), [(np.float32, {}), (np.float64, {"n_replicates": 4, "seed": 0})]
)
def test_plain_arrays_have_the_state_of_lists(setting, dtype, options):
    n_classes, y, p = data_of(setting, 300, dtype)
    options = {"n_classes": n_classes, "setting": setting, **options}
    expected = state_of(y.tolist(), p.tolist(), **options)
    for labels in (y, y.astype(np.uint8), frozen(y)):
        assert_same(state_of(labels, p, **options), expected)
    assert_same(state_of(y, strided(p), **options), expected)


def named_stream(n=600):
    """Labels of 0 and 1 as numbers and as texts, and probabilities of 1."""
    y, p = binary_data("bimodal", n)
    return y, np.where(y == 1, "yes", "no"), p


@pytest.mark.parametrize("options", [{"pos_label": "yes"}, {"labels": ["no", "yes"]}], ids=str)
def test_labels_may_be_texts_in_every_stream(options):
    y, texts, p = named_stream()
    whole = Accumulator().update(y, p)
    halves = [(texts[:300], p[:300]), (texts[300:], p[300:])]
    assert Accumulator().update(texts, p, **options) == whole
    assert from_batches(halves, **options) == whole
    metric = CalibrationMetric(**options)
    for labels, prob in halves:
        assert metric(prob, labels) == fastece.ece(labels, prob, **options)
    assert metric.accumulator == whole
    assert metric.clone().compute() == near(plain_ece(y, p))
    weights = np.arange(600) % 3
    weighted = Accumulator().update(texts, p, weights, **options)
    assert weighted == Accumulator().update(y, p, weights)
    counts = np.arange(600) % 5 + 1
    counted = Accumulator().update(texts, p, counts=counts, **options)
    ones = Accumulator().update(y, p, counts=counts, labels=[0, 1])
    assert counted == ones == Accumulator().update(y.repeat(counts), p.repeat(counts))


def test_a_stream_of_classes_by_name_may_lack_some_in_a_batch():
    y, p = class_data(60, 3)
    texts = np.array(["cat", "dog", "cow"])[y]
    stream = Accumulator(3)
    for k in range(3):
        stream.update(texts[y == k], p[y == k], labels=["cat", "dog", "cow"])
    texts[7] = "?"
    stream.update(texts[7:8], p[7:8], labels=["cat", "dog", "cow"], ignore_label="?")
    assert stream == Accumulator(3).update(y, p)
    grid = {"class_axis": 1, "labels": ["cat", "dog", "cow"]}
    texts = np.array(["cat", "dog", "cow"])[y].reshape(6, 10)
    pixels = np.moveaxis(p.reshape(6, 10, 3), -1, 1)
    assert Accumulator(3).update(texts, pixels, **grid) == stream


def test_texts_without_an_order_are_told_which_option_has_it():
    _, texts, p = named_stream(20)
    state = Accumulator()
    assert_refused(lambda: state.update(texts, p), ["y_true", "pass pos_label=, or labels="])
    assert_refused(lambda: state.update(texts, p, pos_label="Yes"), ["y_true", "'Yes'"])
    assert_refused(lambda: from_batches([(texts, p)], labels=["a", "b"]), ["y_true", "'a', 'b'"])
    assert state.n == 0
