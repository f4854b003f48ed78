"""Probabilities for another base rate: Elkan's formula, EM in plain loops, and coverage."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit, softmax

from fastece import InputError, InputTypeError
from fastece.recalibration import PriorShift, load, recalibrate, save
from oracles.reference_recalibration import em_rates, profile, shifted

rates = st.floats(0.001, 0.999)


def mixture(rng, n, new, old, distance):
    """Class vectors (n, K), right where the base rates are `old`, of rows whose rates are `new`."""
    k = len(new)
    label = rng.choice(k, n, p=new)
    centre = distance / np.sqrt(2) * np.eye(k)
    z = centre[label] + rng.standard_normal((n, k))
    return softmax(np.log(old) - ((z[:, None] - centre) ** 2).sum(2) / 2, axis=1), label


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), rates, rates)
def test_two_classes_follow_elkans_formula(p, old, new):
    got = PriorShift(old=old, new=new).fit(p).transform(p)
    np.testing.assert_allclose(got, [shifted(x, old, new) for x in p], rtol=1e-9, atol=1e-12)
    pair = np.column_stack([1 - np.array(p), p])
    both = PriorShift(old=[1 - old, old], new=new).fit(pair).transform(pair)
    np.testing.assert_allclose(both[:, 1], got, rtol=1e-9, atol=1e-15)


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_shifts_can_be_undone_and_chained(k, seed):
    rng = np.random.default_rng(seed)
    p, old, middle, new = (rng.dirichlet(np.ones(k), n).squeeze() for n in (7, 1, 1, 1))

    def shift(x, a, b):
        return PriorShift(old=a, new=b).fit(x).transform(x)

    np.testing.assert_allclose(shift(p, old, old), p, rtol=1e-12)
    two = shift(shift(p, old, middle), middle, new)
    np.testing.assert_allclose(two, shift(p, old, new), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_rates_equal_the_em_algorithm(k, weighted):
    rng = np.random.default_rng(k)
    old = rng.dirichlet(np.full(k, 3.0))
    new = rng.dirichlet(np.full(k, 3.0))
    p, _ = mixture(rng, 300, new, old, 1.5)
    w = None
    if weighted:
        w = np.where(rng.random(300) < 0.2, 0.0, rng.exponential(size=300))
    model = PriorShift(old=old).fit(p, sample_weight=w)
    want = em_rates(p, old, np.ones(300) if w is None else w)
    got = [1 - model.new_, model.new_] if k == 2 else model.new_
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)
    z = np.log(p) + rng.standard_normal((300, 1))
    same = PriorShift(old=old, from_logits=True).fit(z, sample_weight=w)
    np.testing.assert_allclose(same.new_, model.new_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(same.transform(z), model.transform(p), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("k", "near"), [(2, 1e-6), (3, 0.1)])
def test_ends_of_intervals_lose_the_quantile_of_the_profile_likelihood(k, near):
    """With two classes exactly, with more nearly: the others move on a straight line."""
    rng = np.random.default_rng(1)
    old = np.full(k, 1 / k)
    p, _ = mixture(rng, 400, rng.dirichlet(np.full(k, 4.0)), old, 1.5)
    w = rng.exponential(size=400)
    model = PriorShift(old=old).fit(p, sample_weight=w)
    w = w * w.sum() / (w @ w)  # as many rows as the weights are worth
    ends = np.transpose(model.new_interval_).reshape(-1, 2)
    best = np.atleast_1d(model.new_)
    for j, pair in enumerate(ends):
        column = j if k > 2 else 1
        maximum = profile(p, old, w, column, best[j])
        for end in pair:
            lost = 2 * (maximum - profile(p, old, w, column, end))
            assert lost == pytest.approx(1.959964**2, rel=near)


def test_rates_of_0_and_1():
    none = PriorShift(old=0.5).fit([0.1, 0.2, 0.2, 0.3])
    assert none.new_ == none.new_interval_.low == 0
    assert 0.5 < none.new_interval_.high < 1
    assert none.transform([0.0, 0.5, 1.0]).tolist() == [0, 0, 0]  # impossible rows get the rates
    all_of_it = PriorShift(old=0.5).fit([0.9, 0.8, 0.7])
    assert all_of_it.new_ == all_of_it.new_interval_.high == 1
    assert 0 < all_of_it.new_interval_.low < 0.5
    sure = PriorShift(old=0.5).fit([1.0, 1.0, 0.0])
    assert sure.new_ == pytest.approx(2 / 3)
    alike = PriorShift(old=0.3).fit([0.3] * 5)  # rows that show nothing
    assert alike.new_interval_ == (0, 1)
    one = PriorShift(old=0.3).fit([0.4])
    assert (one.new_, one.new_interval_.high) == (1, 1)
    vertex = PriorShift(old=[0.4, 0.3, 0.3]).fit([[0.8, 0.1, 0.1]] * 30)
    assert vertex.new_.tolist() == [1, 0, 0]
    assert (vertex.new_interval_.low <= vertex.new_).all()
    assert vertex.new_interval_.low[0] > 0.8
    assert (vertex.new_interval_.high[1:] < 0.2).all()


def test_old_rates_come_from_labels():
    p = pd.DataFrame({"cow": [0.2, 0.5, 0.3], "cat": [0.3, 0.1, 0.6], "dog": [0.5, 0.4, 0.1]})
    y = ["dog", "cat", "cow"]
    model = PriorShift(new=[0.5, 0.25, 0.25]).fit(p, y, [1, 1, 2])
    assert model.old_.tolist() == [0.5, 0.25, 0.25]
    assert model.classes_ == ["cow", "cat", "dog"]
    np.testing.assert_allclose(model.transform(p), p, rtol=1e-15)
    assert np.isnan(model.new_interval_).all()
    rng = np.random.default_rng(0)
    p, label = mixture(rng, 500, [0.8, 0.2], [0.8, 0.2], 2)
    both = PriorShift().fit(p, label)
    assert both.old_ == pytest.approx(label.mean(), rel=1e-12)
    assert both.new_interval_.low < 0.2 < both.new_interval_.high
    assert PriorShift(old=0.2).fit(p, "not read").new_ == pytest.approx(both.new_, abs=0.05)
    folds = recalibrate(label, p, method=PriorShift(old=0.2, new=0.5))
    np.testing.assert_allclose(folds, PriorShift(old=0.2, new=0.5).fit(p).transform(p))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("options", [{}, {"new": True}])
def test_saved_maps_are_the_same(tmp_path, k, options):
    rng = np.random.default_rng(3)
    new = np.full(k, 1 / k) if options else None
    p, label = mixture(rng, 200, np.full(k, 1 / k), np.full(k, 1 / k), 1)
    model = PriorShift(new=new).fit(p, label)
    save(model, tmp_path / "a.json")
    again = load(tmp_path / "a.json")
    assert (again.transform(p) == model.transform(p)).all()
    np.testing.assert_array_equal(again.new_interval_, model.new_interval_)
    assert type(again.new_) is type(model.new_)


P = [0.2, 0.7]
RULE = "must be the rate of class 1"


@pytest.mark.parametrize(
    ("options", "data", "argument", "rule"),
    [
        ({"old": 0.0}, (P,), "old", "none of them 0"),
        ({"old": 1.0}, (P,), "old", RULE),
        ({"old": 1.5}, (P,), "old", RULE),
        ({"old": np.nan}, (P,), "old", RULE),
        ({"old": [0.5, 0.6]}, (P,), "old", RULE),
        ({"old": [[0.5, 0.5]]}, (P,), "old", RULE),
        ({"old": [0.5, 0.3, 0.2]}, (P,), "old", "all 2 classes"),
        ({"old": 0.5, "new": -0.1}, (P,), "new", RULE),
        ({"old": 0.5, "new": [0.5, 0.3, 0.2]}, (P,), "new", "all 2 classes"),
        ({"old": 0.5, "new": 0.2}, ([[0.2, 0.3, 0.5]],), "old", "all 3 classes"),
        ({"new": 0.2}, (P,), "y", "is needed"),
        ({"new": 0.2}, (P, [1, 1]), "y", "two classes"),
        ({"new": 0.2}, (P, [0, 2]), "y", "from 0 to 1"),
        ({"old": 0.2}, ([0.2, 1.7],), "X", "lie in"),
        ({"old": 0.2}, (P, None, [1, -1]), "sample_weight", "negative"),
    ],
)
def test_bad_arguments(options, data, argument, rule):
    with pytest.raises(InputError, match=rule) as caught:
        PriorShift(**options).fit(*data)
    assert caught.value.argument == argument


def test_other_bad_arguments():
    with pytest.raises(InputTypeError, match="old: must be real numbers"):
        PriorShift(old="half")
    for wrong in ({"old": True}, {"new": [True, False]}):
        with pytest.raises(InputError, match=RULE):
            PriorShift(**wrong)


def test_a_class_without_a_label_stays_away():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    with pytest.warns(UserWarning, match="no label is of class 0"):
        model = PriorShift().fit(p, 1 + np.arange(40) % 2)
    assert (model.old_[0], model.new_[0], model.new_interval_.low[0]) == (0, 0, 0)
    want = PriorShift(old=0.5).fit(p[:, 2] / p[:, 1:].sum(1))
    assert model.new_[2] == pytest.approx(want.new_, abs=1e-9)
    np.testing.assert_allclose(model.transform(p)[:, 0], 0)


def test_shifted_logits_keep_their_digits():
    z = np.array([-60.0, -3.0, 0.0, 40.0])
    model = PriorShift(old=0.5, new=0.01, from_logits=True).fit(z)
    np.testing.assert_allclose(model.transform(z), expit(z + logit(0.01)), rtol=1e-12)
    assert model.transform(z.astype(np.float32)).dtype == np.float32


@pytest.mark.slow
def test_intervals_cover():
    """Intervals of 95 % cover the rate of 90 to 99 % of 150 samples, more where they end at 0.

    If they cover 95 %, each of the seven shares is out of these bounds with probability 0.008.
    """
    for new, distance, n, highest in (
        ([0.9, 0.1], 1.5, 200, 0.99),
        ([0.5, 0.5], 0.7, 200, 0.99),
        ([0.7, 0.3], 3.0, 50, 0.99),
        ([0.98, 0.02], 1.5, 200, 1.0),
        ([0.5, 0.3, 0.2], 2.0, 300, 0.99),
    ):
        held = []
        old = np.full(len(new), 1 / len(new))
        truth = new[1] if len(new) == 2 else np.array(new)
        for seed in range(150):
            p, _ = mixture(np.random.default_rng([seed, n]), n, new, old, distance)
            low, high = PriorShift(old=old).fit(p).new_interval_
            held.append((low <= truth) & (truth <= high))
        coverage = np.mean(held, axis=0)
        assert (coverage >= 0.9).all(), (new, distance, coverage)
        assert (coverage <= highest).all(), (new, distance, coverage)
