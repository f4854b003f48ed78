"""Rows, weights and groups at the limits of sums of cells."""

import numpy as np
import pytest

import fastece
from fastece import Accumulator
from fastece.data.errors import InputError
from helpers.stream_cases import binary_data, class_data


@pytest.mark.parametrize("noise", [1e-12, 6e-8])
def test_ties_with_a_little_noise_count_as_ties(noise):
    rng = np.random.default_rng(0)
    tied = rng.integers(1, 10, 20_000) / 10
    p = tied + noise * rng.normal(size=tied.size)
    y = rng.random(tied.size) < tied
    state = Accumulator().update(y, p)
    for name in ("ece_bayes", "ece_a", "ece_kde"):
        assert fastece.ece(state, estimator=name) == pytest.approx(
            fastece.ece(y, p, estimator=name), abs=1e-3
        ), name
    assert fastece.estimate(state).confidence_interval.low == 0


@pytest.mark.slow
def test_a_group_with_the_largest_weight_does_not_overflow():
    state = Accumulator(n_replicates=320, seed=1)
    state.update([1, 0, 1, 0], [0.7] * 4, [30, 2, 30, 2], groups=[0, 0, 1, 1])
    for _ in range(26):
        state = state + state
    values = fastece.bootstrap(state).bootstrap_distribution
    assert values == pytest.approx(np.full(values.size, fastece.ece(state)))
    with pytest.raises(ValueError, match="sample_weight: the weights"):
        state + state


def test_squared_distances_fit_up_to_the_limit():
    state = Accumulator(3).update([0], [[0.0, 0.0, 1.0]])
    for _ in range(32):
        state = state + state
    assert fastece.brier_score(state) == 2


@pytest.mark.parametrize("weight", [1e-10, 1e-5])
def test_small_weights_are_weights(weight):
    state = Accumulator().update([0, 1, 1], [0.7, 0.2, 0.4], [weight] * 3)
    assert fastece.ece(state) == pytest.approx(fastece.ece([0, 1, 1], [0.7, 0.2, 0.4]), abs=1e-4)
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is 1e-14"):
        state.update([0, 1, 1], [0.1, 0.2, 0.3], [0, 1, 1e-14])
    with pytest.raises(ValueError, match="at least 9"):
        Accumulator(n_replicates=1, seed=0).update([1], [0.3], [1e-7])


@pytest.mark.slow
def test_a_few_groups_are_drawn_and_one_is_refused():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    options = {"n_replicates": 100, "seed": 0}
    state = Accumulator(**options).update(y, p, groups=np.arange(2000) % 5)
    for name in ("ece", "ece_kde", "brier_score"):
        result = fastece.bootstrap(state, estimator=name)
        assert result.bootstrap_distribution.size == 100
        assert np.isfinite(result.bootstrap_distribution).all()
    with pytest.raises(ValueError, match="groups: must be at least 2"):
        fastece.bootstrap(Accumulator(n_replicates=1, seed=0).update([1], [0.3]))


def test_settings_may_be_numbers_of_numpy():
    a = Accumulator(10, n_cells=900)
    b = Accumulator(np.int64(10), n_cells=np.int32(900))
    p = np.full((2, 10), 0.1)
    assert a.update([1, 2], p).merge(b.update([3, 4], p)).n == 4
    assert Accumulator(10, setting=np.int64(3)).merge(Accumulator(10, setting=3)).n == 0


def test_groups_3_and_3_point_0_are_equal_and_objects_are_refused():
    options = {"n_replicates": 64, "seed": 0}
    a = Accumulator(**options).update([1], [0.3], groups=[3])
    assert a == Accumulator(**options).update([1], [0.3], groups=np.array([3.0]))
    assert a == Accumulator(**options).update([1], [0.3], groups=np.array([np.int8(3)], object))
    assert a != Accumulator(**options).update([1], [0.3], groups=["3"])
    with pytest.raises(TypeError, match="groups: must be numbers or strings"):
        a.update([1], [0.3], groups=np.array([(1, 2), None], object)[:1])


CASES = {
    "binary": {},
    "weights": {},
    "light": {},
    "replicates": {"n_replicates": 33, "seed": 0},
    "vectors": {"n_classes": 4},
    "class-wise": {"n_classes": 4, "setting": "classwise"},
}


def state_of_case(case, n=200):
    """A state with rows; the weights of two cases are random powers of 10."""
    y, p = class_data(n, 4) if "n_classes" in CASES[case] else binary_data("spread", n)
    exponents = {"weights": (-2, 1), "light": (-11, -3)}.get(case)
    weight = None
    if exponents is not None:
        weight = 10 ** np.random.default_rng(0).uniform(*exponents, n)
    return Accumulator(**CASES[case], n_cells=90).update(y, p, weight)


WEIGHTS = "must add up to the weights of the fine cells"
ENDS = "must not be farther from the middle of a cell than its ends"
SQUARES = "must belong to squares of the weights of the cell"
SECOND_WORDS = "must be the second words of at most as many rows"


COUNTED = "must count the rows of positive weight too"
# Sums of a state with replicates, with one number that they cannot have, and what is said of it.
DAMAGED = [
    ("fine", (0, 5, 0), -3, "must be weights that are not below 0"),
    ("fine", (0, 5, 0), 2**61, "must"),
    ("coarse", (0, 5, 0), 2**60, ENDS),
    ("coarse", (0, 5, 2), -1, ENDS),
    ("coarse", (0, 5, 2), 2**40, ENDS),
    ("coarse", (0, 5, 3), 2**40, SQUARES),
    ("coarse", (0, 5, 3), -(2**61), SQUARES),
    ("coarse", (0, 5, 4), -(2**63), SECOND_WORDS),
    ("coarse", (0, 5, 6), 2**63 - 1, SECOND_WORDS),
    ("groups", (0, 5, 3), -(2**50), "must be weights that are not below 0"),
    ("groups", (0, 5, 3), 2**50, WEIGHTS),
    ("totals", (0,), 300, COUNTED),
    ("totals", (0,), 0, "must add up to a weight"),
    ("totals", (1,), 2**62, COUNTED),
    ("totals", (2,), 2, "must have one row of the number 0"),
    ("totals", (3,), 7, "must have groups for all rows or for none"),
    ("totals", (4,), 1, "must belong to squared distances of at most 0"),
    ("totals", (5,), 2**62, SECOND_WORDS),
    ("totals", (6,), -(2**62), SECOND_WORDS),
    ("totals", (7,), 0, "must be at least one state"),
    ("totals", (8,), 5, "must have the settings of this accumulator"),
]
# Where two numbers contradict each other, the other one is named.
OTHERS = {
    ("totals", (0,), 300): ("totals", (1,), 200), ("fine", (0, 5, 0), 2**61): None,
    ("coarse", (0, 5, 3), -(2**61)): None, ("coarse", (0, 5, 4), -(2**63)): None,
    ("groups", (0, 5, 3), 2**50): None, ("totals", (0,), 0): None, ("totals", (4,), 1): None,
}  # fmt: skip


@pytest.mark.parametrize(("name", "place", "value", "rule"), DAMAGED)
def test_a_damaged_number_is_named(name, place, value, rule):
    sums = state_of_case("replicates").state_dict()
    sums[name][place] = value
    with pytest.raises(InputError, match=rule) as error:
        Accumulator(**CASES["replicates"], n_cells=90).load_state_dict(sums)
    named = OTHERS.get((name, place, value), (name, place, value))
    if named:
        name, place, value = named
        assert error.value.argument == f"state[{name!r}]"
        assert (error.value.index, error.value.value) == (place, value)


def test_a_damaged_state_without_rows_is_refused():
    for name, place, value in (("coarse", (0, 3, 3), -1), ("totals", (2,), 1)):
        sums = Accumulator(n_cells=90).state_dict()
        sums[name][place] = value
        with pytest.raises(InputError, match="must"):
            Accumulator(n_cells=90).load_state_dict(sums)


def test_what_is_no_state_is_refused():
    for wrong in (None, [1], 5):
        with pytest.raises(InputError, match="must be arrays by name"):
            Accumulator().load_state_dict(wrong)


def damaged(state, rng):
    """The sums of a state with one or two wrong words, mostly in place of words that are not 0."""
    sums = state.state_dict()
    for _ in range(rng.integers(1, 3)):
        flat = sums[rng.choice([name for name in sums if sums[name].size])].reshape(-1)
        used = np.flatnonzero(flat)
        i = rng.choice(used) if used.size and rng.random() < 0.7 else rng.integers(flat.size)
        one_bit = np.int64(1) << int(rng.integers(63))
        random_word = rng.integers(-(2**62), 2**62)
        flat[i] = (flat[i] ^ one_bit, random_word, -flat[i])[rng.integers(3)]
    return sums


@pytest.mark.parametrize("count", [15, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
def test_a_damaged_state_is_refused_or_answers(case, count):
    state = state_of_case(case)
    rng = np.random.default_rng(count)
    refused = 0
    for _ in range(count):
        try:
            read = Accumulator(**CASES[case], n_cells=90).load_state_dict(damaged(state, rng))
        except ValueError:
            refused += 1
            continue
        for name in ("ece", "ece_c", "ece_kde", "ece_a", "brier_score"):
            assert np.isfinite(fastece.ece(read, estimator=name)), name
        fastece.reliability_diagram(read)
        if case != "class-wise":
            fastece.estimate(read)
        if case == "replicates":
            fastece.bootstrap(read)
    assert refused > count / 2
