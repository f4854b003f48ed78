"""`canonical_error`: the reference, densities of scipy, laws, extremes and refusals."""

from dataclasses import FrozenInstanceError
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fastece import DirichletKDE, canonical_error
from fastece.estimators.table import ESTIMATORS
from helpers import canonical_cases as cases
from helpers.bad_input import CLASS_TRUE, ROWS, assert_refused
from helpers.canonical_cases import CLOSE, SETS, assert_near, near
from oracles import reference_canonical as oracle

BANDWIDTHS = [1e-5, 3e-4, 0.01, 0.1, 2.0]
norms = st.sampled_from([1.0, 2.0])


def test_the_table_holds_it_and_its_fields_have_defaults():
    assert ESTIMATORS["canonical"] == DirichletKDE() == DirichletKDE("likelihood", 1.0)
    assert DirichletKDE(bandwidth=0.1, norm=2).norm == 2.0
    assert len({DirichletKDE(0.1), DirichletKDE(), DirichletKDE()}) == 2
    assert "0.125" in str(DirichletKDE(0.125))
    assert DirichletKDE().needs_vectors
    with pytest.raises(FrozenInstanceError):
        DirichletKDE().norm = 2.0


# -- the reference ---------------------------------------------------------------------------------


@given(cases.vectors(), st.sampled_from(BANDWIDTHS), norms)
def test_any_class_vectors_equal_the_reference(data, bandwidth, norm):
    y, p, weight = data
    fields = {"bandwidth": bandwidth, "norm": norm}
    want = cases.expected_canonical(y, p, weight, **fields)
    got = canonical_error(y, p, sample_weight=weight, **fields)
    assert type(got) is float
    assert_near(got, want)


@given(cases.vectors(max_size=6))
def test_the_likelihood_chooses_as_the_reference_does(data):
    y, p, weight = data
    h, lead = oracle.likely_bandwidth(cases.as_rows(p), cases.as_list(weight))
    got = canonical_error(y, p, sample_weight=weight)
    if lead > 1e-6:  # else both are the likeliest
        assert_near(got, cases.expected_canonical(y, p, weight, bandwidth=h))


def test_every_bandwidth_of_the_grid_can_be_the_likeliest():
    found = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        spread = 10 ** rng.uniform(-5.5, -0.5)
        prob = rng.dirichlet(np.array([0.2, 0.3, 0.5]) / spread, 8)
        prob = prob * 0.99 + 0.01 / 3
        y = rng.integers(0, 3, len(prob))
        h, lead = oracle.likely_bandwidth(prob.tolist())
        found.add(h)
        assert lead > 1e-6
        assert_near(canonical_error(y, prob), canonical_error(y, prob, bandwidth=h), CLOSE, seed)
    assert len(found) > 4


def test_weights_count_on_both_sides_of_the_likelihood():
    # Those of the rows that are looked at, and those of the rows whose kernels are there: of these
    # data 11 and 8 would have another bandwidth without the latter and without the former.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        spread = 10 ** rng.uniform(-3, -1)
        p = rng.dirichlet(np.array([0.2, 0.3, 0.5]) / spread, 7)
        v, y = 10 ** rng.uniform(-3, 3, 7), np.arange(7) % 3
        h, lead = oracle.likely_bandwidth(p.tolist(), v.tolist())
        assert lead > 1e-6
        want = canonical_error(y, p, bandwidth=h, sample_weight=v)
        assert canonical_error(y, p, sample_weight=v) == near(want), seed


@pytest.mark.parametrize("name", SETS)
def test_corners_zeros_and_ties_equal_the_reference(name):
    y, p = SETS[name]
    weight = 0.5 + np.random.default_rng(len(p)).random(len(p))
    for bandwidth in (1e-5, 0.001, 0.1, 3.0):
        for norm, v in ((1.0, None), (2.0, weight)):
            fields = {"bandwidth": bandwidth, "norm": norm}
            got = canonical_error(y, p, sample_weight=v, **fields)
            assert_near(got, cases.expected_canonical(y, p, v, **fields), what=fields)
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
    h, p = 0.5, np.array([[0.0, 1.0], [0.25, 0.75], [0.75, 0.25]])
    y, want = np.array([0, 0, 1]), 0.0
    for j in range(3):
        log = np.log(np.maximum(p[j], 1e-5))
        others = [i for i in range(3) if i != j]
        k = [stats.dirichlet.pdf([0.5, 0.5], p[i] / h + 1) for i in others]
        k = [a * np.exp(p[i] / h @ (log - np.log(0.5))) for a, i in zip(k, others, strict=True)]
        r = np.array([sum(a for a, i in zip(k, others, strict=True) if y[i] == c) for c in (0, 1)])
        want += np.abs(r / sum(k) - p[j]).sum() / 3
    assert canonical_error(y, p, bandwidth=h) == near(want)


def test_a_thousand_classes():
    y, p = cases.draw(20, 1000, 6)
    few = slice(9)  # of the slow reference
    want = cases.expected_canonical(y[few], p[few], bandwidth=0.001)
    assert_near(canonical_error(y[few], p[few], bandwidth=0.001), want)
    chosen = [canonical_error(y, p, bandwidth=h) for h in oracle.BANDWIDTHS]
    assert np.abs(np.array(chosen) - canonical_error(y, p)).min() <= CLOSE


# -- two classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0.005, 0.1])
def test_two_classes_are_beta_kernels(bandwidth):
    y, p = cases.draw(40, 2, 7)
    s = p[:, 1] * 0.98 + 0.01
    a, b = s / bandwidth + 1, (1 - s) / bandwidth + 1
    kernel = stats.beta.pdf(s[:, None], a, b)
    np.fill_diagonal(kernel, 0.0)
    total, hits = kernel.sum(axis=1), kernel @ y
    gap = abs(hits / total - s)
    for norm in (1, 2):
        options = {"bandwidth": bandwidth, "norm": norm}
        assert canonical_error(y, s, **options) == near(2 * np.mean(gap**norm), 1e-10)
        two = np.column_stack([1 - s, s])
        assert canonical_error(y, two, **options) == near(canonical_error(y, s, **options))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), norms, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_scores_are_the_two_columns(scores, norm, random):
    s = np.array(scores)
    y = np.array([random.randrange(2) for _ in scores])
    for bandwidth in (1e-4, 0.05):
        options = {"bandwidth": bandwidth, "norm": norm}
        value = canonical_error(y, s, **options)
        assert value == canonical_error(y, np.column_stack([1 - s, s]), **options)
        assert_near(value, cases.expected_canonical(y, s, **options))


# -- laws ------------------------------------------------------------------------------------------


def test_a_weight_is_no_repetition():
    # A row leaves itself out, whatever it weighs; a copy of it is another row.
    y, p = cases.draw(10, 3, 10)
    weight = np.random.default_rng(3).integers(1, 4, 10)
    value = canonical_error(y, p, bandwidth=0.01, sample_weight=weight)
    assert_near(value, cases.expected_canonical(y, p, weight, bandwidth=0.01))
    again = np.repeat(y, weight), np.repeat(p, weight, axis=0)
    repeated = canonical_error(*again, bandwidth=0.01)
    assert_near(repeated, cases.expected_canonical(*again, bandwidth=0.01))
    assert abs(repeated - value) > 0.01


# -- few rows, equal rows, far rows ----------------------------------------------------------------


def test_of_two_rows_each_says_what_the_other_was():
    y, p = np.array([0, 2]), np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])
    want = (abs(np.eye(3)[2] - p[0]).sum() + abs(np.eye(3)[0] - p[1]).sum()) / 2
    weighted = abs(np.eye(3)[2] - p[0]).sum() * 0.75 + abs(np.eye(3)[0] - p[1]).sum() * 0.25
    for bandwidth in (1e-5, 0.1, "likelihood"):
        assert canonical_error(y, p, bandwidth=bandwidth) == near(want)
        got = canonical_error(y, p, bandwidth=bandwidth, sample_weight=[3, 1])
        assert got == near(weighted)


@pytest.mark.parametrize("bandwidth", [1e-5, 0.1, "likelihood"])
def test_of_equal_rows_each_says_what_the_others_were(bandwidth):
    y = np.array([0, 0, 1, 2, 2, 2])
    for row in ([0.5, 0.3, 0.2], [1.0, 0.0, 0.0]):
        p = np.tile(row, (6, 1))
        want = np.mean([abs(np.eye(3)[np.delete(y, j)].mean(0) - row).sum() for j in range(6)])
        assert canonical_error(y, p, bandwidth=bandwidth) == near(want, CLOSE)


def test_far_rows_hear_the_nearest_alone():
    # At a bandwidth of 1e-5 every density but one underflows, if not all of them.
    p = np.array([[0.9, 0.1], [0.88, 0.12], [0.5, 0.5], [0.1, 0.9], [0.0, 1.0]])
    y = np.array([0, 1, 1, 0, 1])
    got = canonical_error(y, p, bandwidth=1e-5)
    assert np.isfinite(got)
    assert_near(got, cases.expected_canonical(y, p, bandwidth=1e-5))
    near_ones = abs(np.eye(2)[[1, 0]] - p[:2]).sum()
    logs = oracle.log_densities(p.tolist(), 1e-5)
    assert max(logs[2][i] for i in (0, 1, 3, 4)) < -1000
    assert got * 5 > near_ones


@pytest.mark.parametrize("weight", [None, [1.0], [0.0, 2.0, 0.0]])
def test_a_single_row_is_refused(weight):
    n = 1 if weight is None else len(weight)
    y, p = cases.draw(n, 3, 13)
    with pytest.raises(ValueError, match="row") as error:
        canonical_error(y, p, sample_weight=weight)
    assert str(error.value).count("\n") == 0


# -- refusals --------------------------------------------------------------------------------------

REFUSED = [
    *(("bandwidth", value) for value in (0, 0.0, -0.1, nan, inf, True, "x", None, [0.1])),
    *(("norm", value) for value in (3, 1.5, 0, -1, nan, inf, True, "two", None)),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=repr)
def test_a_bad_field_is_refused_by_name(name, value):
    for call in (
        lambda: canonical_error(CLASS_TRUE, ROWS, **{name: value}),
        lambda: DirichletKDE(**{name: value}),
    ):
        assert_refused(call, [f"^{name}: "])


def test_the_message_lists_what_is_known():
    assert_refused(lambda: canonical_error(CLASS_TRUE, ROWS, bandwidth="x"), ["likelihood", "'x'"])
    assert_refused(lambda: canonical_error(CLASS_TRUE, ROWS, norm=3), ["1", "2", "got 3"])


# -- threads ---------------------------------------------------------------------------------------
