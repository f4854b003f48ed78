"""`kernel_calibration_error`: the reference, numpy, unbiasedness, laws, extremes and refusals."""

from dataclasses import FrozenInstanceError
from itertools import product
from math import exp, inf, nan, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

import fastece
from fastece import SKCE, kernel_calibration_error
from fastece.estimators.table import ESTIMATORS
from helpers import canonical_cases as cases
from helpers.bad_input import CLASS_TRUE, ROWS, assert_refused
from helpers.canonical_cases import FORMS, KERNELS, SETS, assert_near, near, skce
from helpers.strategies import integer_weights
from oracles import reference_canonical as oracle

forms, kernels = st.sampled_from(FORMS), st.sampled_from(KERNELS)
widths = st.sampled_from(["median", 0.01, 0.3, 5.0])


def test_the_table_holds_it_and_its_fields_have_defaults():
    assert ESTIMATORS["skce"] == SKCE() == SKCE("biased", "exponential", "median")
    assert len({SKCE(width=0.1), SKCE(), SKCE()}) == 2
    assert "unbiased" in str(SKCE("unbiased"))
    assert SKCE().needs_vectors
    with pytest.raises(FrozenInstanceError):
        SKCE().width = 2.0


def test_defaults_are_unbiased_exponential_and_the_median():
    y, p = cases.draw(20, 3)
    value = kernel_calibration_error(y, p)
    same = {"form": "unbiased", "kernel": "exponential", "width": "median"}
    assert kernel_calibration_error(y, p, **same) == value
    assert fastece.ece(y, p, estimator=SKCE("unbiased")) == value
    assert fastece.ece(y, p, estimator="skce") == skce(y, p, "biased")


# -- the reference ---------------------------------------------------------------------------------


@given(cases.vectors(), forms, kernels, widths)
def test_any_class_vectors_equal_the_reference(data, form, kernel, width):
    y, p, weight = data
    fields = {"kernel": kernel, "width": width}
    got = skce(y, p, form, sample_weight=weight, **fields)
    assert type(got) is float
    assert_near(got, cases.expected_skce(y, p, weight, form=form, **fields))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_corners_zeros_and_ties_equal_the_reference(name, kernel):
    y, p = SETS[name]
    weight = 0.5 + np.random.default_rng(len(p)).random(len(p))
    for form, width, v in product(FORMS, ("median", 1e-6, 1.0), (None, weight)):
        fields = {"form": form, "kernel": kernel, "width": width}
        got = skce(y, p, sample_weight=v, **fields)
        assert_near(got, cases.expected_skce(y, p, v, **fields), what=fields)


@pytest.mark.parametrize(("n", "n_classes"), [(64, 2), (330, 9), (1200, 4)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_are_those_of_numpy(n, n_classes, kernel):
    # More rows than a tile or a vector of a kernel has, and multiples of both.
    y, p = cases.draw(n, n_classes, 1)
    v = np.random.default_rng(0).random(n) + 0.1
    gap, distance = np.eye(n_classes)[y] - p, cdist(p, p)
    width = np.median(pdist(p[:1000]))
    scaled = distance / width
    k = np.exp(-scaled if kernel == "exponential" else -(scaled**2) / 2)
    h = k * (gap @ gap.T)
    total, same = v @ h @ v, v**2 @ np.diag(h)
    assert skce(y, p, "biased", kernel=kernel, sample_weight=v) == near(total / v.sum() ** 2)
    pairs = v.sum() ** 2 - (v**2).sum()
    assert_near(skce(y, p, kernel=kernel, sample_weight=v), (total - same) / pairs)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_narrow_floats_are_the_float64_they_equal(dtype):
    y, p = cases.draw(15, 5, 2)
    narrow = p.astype(dtype)
    for form, kernel in product(FORMS, KERNELS):
        fields = {"form": form, "kernel": kernel}
        got = skce(y, narrow, **fields)
        assert_near(got, cases.expected_skce(y, narrow, **fields))
        assert skce(y, narrow.astype("f8"), **fields) == near(got)


def test_logits_are_their_softmax():
    rng = np.random.default_rng(3)
    z, y = rng.normal(size=(12, 4)) * 3, rng.integers(0, 4, 12)
    z[3, 1] = -inf
    p = np.array([reference.softmax(row) for row in z.tolist()])
    for form in FORMS:
        got = skce(y, z, form, from_logits=True)
        assert_near(got, cases.expected_skce(y, p, form=form))


def test_a_thousand_classes():
    y, p = cases.draw(20, 1000, 4)
    for form in FORMS:
        assert_near(skce(y, p, form), cases.expected_skce(y, p, form=form))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.randoms(use_true_random=False), forms)
def test_scores_are_the_two_columns(scores, random, form):
    s = np.array(scores)
    y = np.array([random.randrange(2) for _ in scores])
    for width in ("median", 0.3):
        value = skce(y, s, form, width=width)
        assert value == skce(y, np.column_stack([1 - s, s]), form, width=width)
        assert_near(value, cases.expected_skce(y, s, form=form, width=width))


def test_two_classes_are_a_kernel_of_scores():
    # (e_y - p) . (e_z - q) is twice (y - s)(z - t), |p - q| is sqrt(2) |s - t|.
    y, p = cases.draw(40, 2, 5)
    s = p[:, 1]
    k = np.exp(-sqrt(2) * abs(s[:, None] - s) / 0.3)
    want = 2 * (y - s) @ k @ (y - s) / 40**2
    assert skce(y, s, "biased", width=0.3) == near(want)


# -- the width -------------------------------------------------------------------------------------


def test_the_median_is_of_the_first_thousand_rows_of_positive_weight():
    y, p = cases.draw(1150, 3, 6)
    p[1000:] = np.eye(3)[y[1000:]]
    width = np.median(pdist(p[:1000]))
    assert abs(width - np.median(pdist(p))) > 1e-3
    assert skce(y, p) == near(skce(y, p, width=width))
    weight = np.ones(1150)
    weight[:150] = 0
    width = np.median(pdist(p[150:]))
    value = skce(y, p, width=width, sample_weight=weight)
    assert skce(y, p, sample_weight=weight) == near(value)


@pytest.mark.parametrize("n", [3, 4, 10])
def test_weights_do_not_change_the_median(n):
    y, p = cases.draw(n, 3, 7)
    width, weight = np.median(pdist(p)), np.arange(1, n + 1)
    assert oracle.median_width(p.tolist()) == near(width)
    for form in FORMS:
        value = skce(y, p, form, width=width, sample_weight=weight)
        assert skce(y, p, form, sample_weight=weight) == near(value)


@pytest.mark.parametrize("kernel", KERNELS)
def test_of_width_0_rows_are_alike_where_they_are_equal(kernel):
    p = np.array([[0.3, 0.3, 0.4]] * 7 + [[0.25, 0.35, 0.4], [0.5, 0.25, 0.25]])
    y = np.arange(9) % 3
    assert np.median(pdist(p)) == 0
    gap = np.eye(3)[y] - p
    h = (gap @ gap.T) * (cdist(p, p) == 0)
    assert skce(y, p, "biased", kernel=kernel) == near(h.sum() / 81)
    assert skce(y, p, kernel=kernel) == near((h.sum() - np.trace(h)) / 72)
    assert_near(skce(y, p, kernel=kernel), cases.expected_skce(y, p, form="unbiased"))
    equal = np.tile(p[0], (9, 1))
    gap = np.eye(3)[y] - equal
    assert skce(y, equal, "biased", kernel=kernel) == near((gap.sum(0) ** 2).sum() / 81)


def test_equal_rows_are_at_a_distance_of_exactly_0():
    # A distance from squares and products would be off by 1e-8 and more.
    y, p = cases.draw(30, 7, 8)
    p = np.repeat(p[:10], 3, axis=0)
    gap = np.eye(7)[y] - p
    for kernel in KERNELS:
        got = skce(y, p, "biased", kernel=kernel, width=1e-9)
        want = ((gap @ gap.T) * np.kron(np.eye(10), np.ones((3, 3)))).sum() / 900
        assert got == near(want)


# -- what it estimates -----------------------------------------------------------------------------


def test_by_hand():
    p, y = np.array([[0.5, 0.5], [0.75, 0.25]]), np.array([0, 1])
    k = exp(-sqrt(2) / 4 / 0.5)
    h = k * (0.5 * -0.75 + -0.5 * 0.75)
    own = 0.5**2 * 2 + 0.75**2 * 2
    assert skce(y, p, width=0.5) == near(h)
    assert skce(y, p, "biased", width=0.5) == near((own + 2 * h) / 4)
    assert skce(y, p, width=0.5, sample_weight=[3, 1]) == near(h)
    weighted = (9 * 0.5 + 1.125 + 6 * h) / 16
    assert skce(y, p, "biased", width=0.5, sample_weight=[3, 1]) == near(weighted)
    k = exp(-(1 / 8) / (2 * 0.5**2))
    assert skce(y, p, width=0.5, kernel="gaussian") == near(k * -0.75)


def test_without_error_it_is_0():
    y = np.arange(12) % 3
    for form in FORMS:
        assert skce(y, np.eye(3)[y], form) == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_mean_over_all_labels_is_the_true_value(kernel):
    # Every vector of labels with its probability: no chance in it.
    p, q = cases.draw(4, 3, 9)[1], cases.draw(4, 3, 10)[1]
    v = np.array([1.0, 2.0, 0.5, 1.5])
    fields = {"kernel": kernel, "width": 0.4, "sample_weight": v}
    means = dict.fromkeys(FORMS, 0.0)
    for y in product(range(3), repeat=4):
        chance = np.prod(q[np.arange(4), y])
        for form in FORMS:
            means[form] += chance * skce(np.array(y), p, form, **fields)
    gaps, lists = oracle.gaps_from(p.tolist(), q.tolist()), p.tolist()
    terms = oracle.pair_terms(lists, gaps, kernel, 0.4)
    assert means["unbiased"] == near(oracle.mean_of_pairs(terms, v.tolist(), range(4)))
    # The biased form adds the variance of each row to its own term.
    own = v**2 @ (1 - (q**2).sum(axis=1)) / v.sum() ** 2
    truth = oracle.skce_truth(lists, q.tolist(), kernel, 0.4, v.tolist())
    assert means["biased"] == near(truth + own)


def test_the_unbiased_forms_are_right_on_average():
    # Five vectors, each with its chance, and what then comes true. False alarm of each form: that
    # of a normal law beyond 4 standard errors, 6e-5.
    rng = np.random.default_rng(11)
    place, chance = rng.dirichlet(np.ones(3), 5), np.array([0.1, 0.3, 0.2, 0.25, 0.15])
    true = rng.dirichlet(np.ones(3), 5) * 0.4 + place * 0.6
    k = np.exp(-cdist(place, place) / 0.3)
    truth = chance @ (k * ((true - place) @ (true - place).T)) @ chance
    values = {form: [] for form in FORMS}
    for _ in range(1800):
        which = rng.choice(5, 10, p=chance)
        y = cases.labels_from(true[which], rng)
        for form, found in values.items():
            found.append(skce(y, place[which], form, width=0.3))
    for form, found in values.items():
        error = np.std(found, ddof=1) / sqrt(len(found))
        if form == "biased":
            own = chance @ (1 + (place**2).sum(1) - 2 * (true * place).sum(1))
            assert abs(np.mean(found) - (0.9 * truth + 0.1 * own)) < 4 * error
            assert np.mean(found) - truth > 8 * error
        else:
            assert abs(np.mean(found) - truth) < 4 * error, form


# -- laws ------------------------------------------------------------------------------------------


@given(cases.vectors(), kernels, st.data())
@settings(max_examples=30)
def test_copies_are_rows_to_the_unbiased_form(data, kernel, draw):
    y, p, _ = data
    weight = draw.draw(integer_weights(len(y), smallest=1))
    fields = {"kernel": kernel, "width": 0.3}
    total, gap = weight.sum(), np.eye(p.shape[1])[y] - p
    own, each = (gap**2).sum(axis=1), skce(y, p, "biased", sample_weight=weight, **fields)
    weighted = (each * total**2 - weight**2 @ own) / (total**2 - (weight**2).sum())
    assert_near(skce(y, p, sample_weight=weight, **fields), weighted)
    again = np.repeat(y, weight), np.repeat(p, weight, axis=0)
    copies = (each * total**2 - weight @ own) / (total**2 - total)
    assert_near(skce(*again, **fields), copies)


# -- few rows --------------------------------------------------------------------------------------


def test_the_biased_form_of_one_row_is_its_own_term():
    y, p = np.array([1]), np.array([[0.5, 0.25, 0.25]])
    assert skce(y, p, "biased") == near(0.25 + 0.5625 + 0.0625)
    assert skce(y, p, "biased", width=0.1, kernel="gaussian", sample_weight=[7]) == near(0.875)


@pytest.mark.parametrize("weight", [None, [0.0, 2.0, 0.0]])
def test_a_single_row_has_no_pair(weight):
    n = 1 if weight is None else len(weight)
    y, p = cases.draw(n, 3, 16)
    with pytest.raises(ValueError, match="row") as error:
        skce(y, p, "unbiased", sample_weight=weight)
    assert str(error.value).count("\n") == 0


# -- refusals --------------------------------------------------------------------------------------

REFUSED = [
    *(("width", value) for value in (-1, -1e-9, nan, inf, True, "x", None, [0.1])),
    *(("kernel", value) for value in ("x", "", None, 3)),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=repr)
def test_a_bad_field_is_refused_by_name(name, value):
    for call in (
        lambda: kernel_calibration_error(CLASS_TRUE, ROWS, **{name: value}),
        lambda: SKCE(**{name: value}),
    ):
        assert_refused(call, [f"^{name}: "])


@pytest.mark.parametrize("value", ["x", None, 3, "ece"])
def test_a_bad_form_is_refused_by_name(value):
    known = ["'?biased", "unbiased"]
    assert_refused(
        lambda: kernel_calibration_error(CLASS_TRUE, ROWS, form=value),
        ["^form: ", *known],
    )
    assert_refused(lambda: SKCE(form=value), ["^form: ", *known])


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_any_number_of_threads_gives_the_same_bits(form):
    y, p = cases.shifted(3000, 4, 18)
    weight = np.random.default_rng(0).random(3000)
    for options in ({}, {"kernel": "gaussian", "width": 0.2, "sample_weight": weight}):
        values = {skce(y, p, form, n_jobs=jobs, **options) for jobs in (1, 2, 3)}
        assert len(values) == 1
