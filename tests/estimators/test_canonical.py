"""Canonical errors as numbers: the reference, densities of scipy, numpy, laws and refusals."""

from dataclasses import fields
from itertools import product
from math import exp, inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist, pdist

import fastece
from fastece import SKCE, DirichletKDE, canonical_error, ece, kernel_calibration_error
from helpers import canonical_cases as cases
from helpers.bad_input import CLASS_TRUE, ROWS, assert_refused
from helpers.canonical_cases import CLOSE, FORMS, KERNELS, SETS, assert_near, near, skce
from oracles import reference_canonical as oracle

NORMS = [1.0, 2.0]
FIXED = [DirichletKDE(h, norm=p) for h in (1e-5, 3e-4, 1e-3, 0.01, 0.1, 2.0, 3.0) for p in NORMS]
TWO_KERNELS = [DirichletKDE(h, norm=p) for h in (1e-4, 0.05) for p in NORMS]
WIDTHS = ["median", 1e-6, 0.01, 0.3, 1.0, 5.0]
SKCES = [SKCE(form, kernel, width) for form in FORMS for kernel in KERNELS for width in WIDTHS]


def test_the_row_of_the_table_is_the_function():
    y, p = cases.draw(40, 3)
    value = kernel_calibration_error(y, p)
    assert ece(y, p, estimator="skce") == ece(y, p, estimator=SKCE()) == value
    assert fastece.bootstrap(y, p, estimator="skce", n_resamples=3).value == value
    assert value == kernel_calibration_error(y, p, form="unbiased")


@pytest.mark.slow
@given(cases.vectors(), st.sampled_from(FIXED), st.sampled_from(SKCES))
def test_any_class_vectors_equal_the_reference(data, canonical, squared):
    y, p, weight = data
    for estimator in (canonical, squared):
        got = ece(y, p, estimator=estimator, sample_weight=weight)
        assert type(got) is float
        assert_near(got, cases.expected(estimator, y, p, weight))


@pytest.mark.slow
@given(cases.vectors(max_size=6))
def test_the_likelihood_chooses_as_the_reference_does(data):
    y, p, weight = data
    h, lead = oracle.likely_bandwidth(cases.as_rows(p), cases.as_list(weight))
    got = canonical_error(y, p, sample_weight=weight)
    if lead > 1e-6:  # else both are the likeliest
        assert_near(got, cases.expected_canonical(y, p, weight, bandwidth=h))


@pytest.mark.slow
def test_every_bandwidth_of_the_grid_can_be_the_likeliest():
    bandwidths = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        spread = 10 ** rng.uniform(-5.5, -0.5)
        prob = rng.dirichlet(np.array([0.2, 0.3, 0.5]) / spread, 8)
        prob = prob * 0.99 + 0.01 / 3
        y = rng.integers(0, 3, len(prob))
        h, lead = oracle.likely_bandwidth(prob.tolist())
        bandwidths.add(h)
        assert lead > 1e-6
        assert_near(canonical_error(y, prob), canonical_error(y, prob, bandwidth=h), CLOSE, seed)
    assert len(bandwidths) > 4


@pytest.mark.slow
def test_weights_count_on_both_sides_of_the_likelihood():
    # Weights of the rows that are looked at, and of the rows whose kernels are there: of these
    # data 11 and 8 would have another bandwidth without the latter and without the former.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        spread = 10 ** rng.uniform(-3, -1)
        p = rng.dirichlet(np.array([0.2, 0.3, 0.5]) / spread, 7)
        v = 10 ** rng.uniform(-3, 3, 7)
        y = np.arange(7) % 3
        h, lead = oracle.likely_bandwidth(p.tolist(), v.tolist())
        assert lead > 1e-6
        want = canonical_error(y, p, bandwidth=h, sample_weight=v)
        assert canonical_error(y, p, sample_weight=v) == near(want), seed


@pytest.mark.parametrize("name", SETS)
def test_corners_zeros_and_ties_equal_the_reference(name):
    y, p = SETS[name]
    weight = 0.5 + np.random.default_rng(len(p)).random(len(p))
    for estimator, v in product([*FIXED, *SKCES], (None, weight)):
        got = ece(y, p, estimator=estimator, sample_weight=v)
        assert_near(got, cases.expected(estimator, y, p, v), what=estimator)
    h, lead = oracle.likely_bandwidth(cases.as_rows(p))
    assert lead > 1e-6 or len(p) == 2
    want = cases.expected_canonical(y, p, bandwidth=h)
    assert_near(canonical_error(y, p), want)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_kernels_are_densities_of_scipy(n_classes):
    y, p = cases.draw(15, n_classes, 3)
    p = p * 0.9 + 0.1 / n_classes
    weight = np.random.default_rng(1).random(15) + 0.1
    for h in (0.01, 0.2):
        density = np.array([[stats.dirichlet.pdf(q, row / h + 1) for row in p] for q in p])
        np.fill_diagonal(density, 0.0)
        share = density * weight
        share /= share.sum(axis=1, keepdims=True)
        gap = share @ np.eye(n_classes)[y] - p
        for norm in (1, 2):
            want = weight @ (abs(gap) ** norm).sum(axis=1) / weight.sum()
            got = canonical_error(y, p, bandwidth=h, norm=norm, sample_weight=weight)
            assert got == near(want, 1e-10)


def test_entries_below_the_floor_count_as_the_floor_of_the_row_that_is_looked_at():
    # Two classes: r at a row is the share of its neighbours by powers of max(entry, 1e-5).
    h = 0.5
    p = np.array([[0.0, 1.0], [0.25, 0.75], [0.75, 0.25]])
    y = np.array([0, 0, 1])
    want = 0.0
    for j in range(3):
        log = np.log(np.maximum(p[j], 1e-5))
        others = [i for i in range(3) if i != j]
        k = [stats.dirichlet.pdf([0.5, 0.5], p[i] / h + 1) for i in others]
        k = [a * np.exp(p[i] / h @ (log - np.log(0.5))) for a, i in zip(k, others, strict=True)]
        r = np.array([sum(a for a, i in zip(k, others, strict=True) if y[i] == c) for c in (0, 1)])
        want += np.abs(r / sum(k) - p[j]).sum() / 3
    assert canonical_error(y, p, bandwidth=h) == near(want)


@pytest.mark.slow
def test_a_thousand_classes():
    y, p = cases.draw(20, 1000, 6)
    first_rows = slice(9)  # of the slow reference
    want = cases.expected_canonical(y[first_rows], p[first_rows], bandwidth=0.001)
    assert_near(canonical_error(y[first_rows], p[first_rows], bandwidth=0.001), want)
    chosen = [canonical_error(y, p, bandwidth=h) for h in oracle.BANDWIDTHS]
    assert np.abs(np.array(chosen) - canonical_error(y, p)).min() <= CLOSE
    for form in FORMS:
        assert_near(skce(y, p, form), cases.expected_skce(y, p, form=form))


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_scores_are_the_two_columns(scores, random):
    s = np.array(scores)
    y = np.array([random.randrange(2) for _ in scores])
    for function, estimators in ((canonical_error, TWO_KERNELS), (kernel_calibration_error, SKCES)):
        for estimator in estimators:
            options = {field.name: getattr(estimator, field.name) for field in fields(estimator)}
            value = function(y, s, **options)
            assert value == function(y, np.column_stack([1 - s, s]), **options)
            assert_near(value, cases.expected(estimator, y, s))


def test_of_two_rows_each_says_what_the_other_was():
    y = np.array([0, 2])
    p = np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])
    want = (abs(np.eye(3)[2] - p[0]).sum() + abs(np.eye(3)[0] - p[1]).sum()) / 2
    weighted = abs(np.eye(3)[2] - p[0]).sum() * 0.75 + abs(np.eye(3)[0] - p[1]).sum() * 0.25
    for bandwidth in (1e-5, 0.1, "likelihood"):
        assert canonical_error(y, p, bandwidth=bandwidth) == near(want)
        got = canonical_error(y, p, bandwidth=bandwidth, sample_weight=[3, 1])
        assert got == near(weighted)


@pytest.mark.parametrize("function", [canonical_error, skce])
@pytest.mark.parametrize("weight", [None, [1.0], [0.0, 2.0, 0.0]])
def test_a_single_row_is_refused(weight, function):
    n = 1 if weight is None else len(weight)
    y, p = cases.draw(n, 3, 13)
    with pytest.raises(ValueError, match="row") as error:
        function(y, p, sample_weight=weight)
    assert str(error.value).count("\n") == 0


REFUSED = {
    "bandwidth": (canonical_error, DirichletKDE, 0, 0.0, -0.1, nan, inf, True, "x", None, [0.1]),
    "norm": (canonical_error, DirichletKDE, 3, 1.5, 0, -1, nan, inf, True, "two", None),
    "form": (kernel_calibration_error, SKCE, "x", None, 3, "ece"),
    "width": (kernel_calibration_error, SKCE, -1, -1e-9, nan, inf, True, "x", None, [0.1]),
    "kernel": (kernel_calibration_error, SKCE, "x", "", None, 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_field_is_refused_by_name(name):
    function, estimator, *values = REFUSED[name]
    for field in ({name: value} for value in values):
        assert_refused(lambda field=field: function(CLASS_TRUE, ROWS, **field), [f"^{name}: "])
        assert_refused(lambda field=field: estimator(**field), [f"^{name}: "])


@pytest.mark.parametrize(("n", "n_classes"), [(64, 2), (330, 9), (1200, 4)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_are_those_of_numpy(n, n_classes, kernel):
    # More rows than a tile or a vector of a kernel has, and multiples of both.
    y, p = cases.draw(n, n_classes, 1)
    v = np.random.default_rng(0).random(n) + 0.1
    gap = np.eye(n_classes)[y] - p
    distance = cdist(p, p)
    width = np.median(pdist(p[:1000]))
    scaled = distance / width
    k = np.exp(-scaled if kernel == "exponential" else -(scaled**2) / 2)
    h = k * (gap @ gap.T)
    total = v @ h @ v
    same = v**2 @ np.diag(h)
    assert skce(y, p, "biased", kernel=kernel, sample_weight=v) == near(total / v.sum() ** 2)
    pairs = v.sum() ** 2 - (v**2).sum()
    assert_near(skce(y, p, kernel=kernel, sample_weight=v), (total - same) / pairs)


@pytest.mark.slow
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


def test_by_hand():
    p = np.array([[0.5, 0.5], [0.75, 0.25]])
    y = np.array([0, 1])
    k = exp(-sqrt(2) / 4 / 0.5)
    h = k * (0.5 * -0.75 + -0.5 * 0.75)
    own_terms = 0.5**2 * 2 + 0.75**2 * 2
    assert skce(y, p, width=0.5) == near(h)
    assert skce(y, p, "biased", width=0.5) == near((own_terms + 2 * h) / 4)
    assert skce(y, p, width=0.5, sample_weight=[3, 1]) == near(h)
    weighted = (9 * 0.5 + 1.125 + 6 * h) / 16
    assert skce(y, p, "biased", width=0.5, sample_weight=[3, 1]) == near(weighted)
    k = exp(-(1 / 8) / (2 * 0.5**2))
    assert skce(y, p, width=0.5, kernel="gaussian") == near(k * -0.75)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_mean_over_all_labels_is_the_true_value(kernel):
    # Every vector of labels with its probability: no chance in it.
    p = cases.draw(4, 3, 9)[1]
    q = cases.draw(4, 3, 10)[1]
    v = np.array([1.0, 2.0, 0.5, 1.5])
    fields = {"kernel": kernel, "width": 0.4, "sample_weight": v}
    means = dict.fromkeys(FORMS, 0.0)
    for y in product(range(3), repeat=4):
        chance = np.prod(q[np.arange(4), y])
        for form in FORMS:
            means[form] += chance * skce(np.array(y), p, form, **fields)
    gaps = oracle.gaps_from(p.tolist(), q.tolist())
    lists = p.tolist()
    terms = oracle.pair_terms(lists, gaps, kernel, 0.4)
    assert means["unbiased"] == near(oracle.mean_of_pairs(terms, v.tolist(), range(4)))
    # The biased form adds the variance of each row to its own_terms term.
    own_terms = v**2 @ (1 - (q**2).sum(axis=1)) / v.sum() ** 2
    truth = oracle.skce_truth(lists, q.tolist(), kernel, 0.4, v.tolist())
    assert means["biased"] == near(truth + own_terms)


def test_the_biased_form_of_one_row_is_its_own_term():
    y = np.array([1])
    p = np.array([[0.5, 0.25, 0.25]])
    assert skce(y, p, "biased") == near(0.25 + 0.5625 + 0.0625)
    assert skce(y, p, "biased", width=0.1, kernel="gaussian", sample_weight=[7]) == near(0.875)
