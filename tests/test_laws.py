"""Laws of calibration errors, on whatever hypothesis finds."""

from itertools import pairwise
from math import inf

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import fastece
from helpers import strategies as cases

SLACK = 1e-12
norms = st.sampled_from([1.0, 2.0, 3.5, inf])


def near(value):
    return pytest.approx(value, abs=SLACK, nan_ok=True)


# -- the reference itself --------------------------------------------------------------------------


@given(cases.binary(), cases.binned_fields(), st.data())
def test_any_data_equal_the_reference(data, fields, draw):
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    norm = draw.draw(norms)
    want = reference.ece(*cases.as_lists(*data, weight), norm=norm, **fields)
    assert fastece.ece(*data, sample_weight=weight, norm=norm, **fields) == near(want)


@given(cases.multiclass(), cases.binned_fields(), st.sampled_from(["confidence", "classwise", 0]))
def test_any_class_vectors_equal_the_reference(data, fields, setting):
    want = reference.ece(*cases.as_lists(*data), setting=setting, **fields)
    assert fastece.ece(*data, setting=setting, **fields) == near(want)


# -- symmetries ------------------------------------------------------------------------------------


@given(cases.binary(), cases.binned_fields(), norms, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(data, fields, norm, random):
    true, prob = data
    order = list(range(len(true)))
    random.shuffle(order)
    value = fastece.ece(true, prob, norm=norm, **fields)
    assert fastece.ece(true[order], prob[order], norm=norm, **fields) == near(value)


@given(cases.multiclass(), cases.binned_fields(), st.permutations(range(3)))
def test_the_names_of_the_classes_do_not_matter(data, fields, order):
    true, prob = data
    moved = np.argsort(order)[true], prob[:, order]  # column j of the new matrix is column order[j]
    values = fastece.ece(true, prob, setting="classwise", average=None, **fields)
    new = fastece.ece(*moved, setting="classwise", average=None, **fields)
    assert new == near(values[order])
    macro = fastece.ece(true, prob, setting="classwise", **fields)
    assert fastece.ece(*moved, setting="classwise", **fields) == near(macro)
    assert fastece.ece(true, prob[:, order], labels=order, **fields) == near(
        fastece.ece(*moved, **fields)
    )
    ranked = np.sort(prob, axis=1)
    if (ranked[:, -1] > ranked[:, -2]).all():  # of tied maxima the first wins, in any order
        assert fastece.ece(*moved, **fields) == near(fastece.ece(true, prob, **fields))


@given(
    cases.binary(cases.dyadic()),
    cases.binned_fields(("hard",)),
    norms,
    st.sampled_from(["mass", "equal"]),
)
def test_exchanging_the_two_labels_mirrors_the_bins(data, fields, norm, bin_weights):
    true, prob = data
    other = {**fields, "closed": "left" if fields["closed"] == "right" else "right"}
    options = {"norm": norm, "bin_weights": bin_weights}
    value = fastece.ece(true, prob, **fields, **options)
    assert fastece.ece(1 - true, 1 - prob, **other, **options) == near(value)


@given(cases.binary(cases.dyadic()), st.sampled_from(["uniform", "quantile"]), st.integers(1, 12))
def test_exchanging_the_two_labels_mirrors_convex_shares(data, edges, n_bins):
    # A centre and its mirror image differ by a rounding error, hence norm 1, which is continuous.
    true, prob = data
    fields = {"edges": edges, "n_bins": n_bins, "mapping": "convex"}
    value = fastece.ece(true, prob, **fields)
    assert fastece.ece(1 - true, 1 - prob, **fields) == near(value)


@given(cases.binary(), cases.binned_fields(), norms)
def test_the_two_classes_of_a_binary_problem_are_one_problem_and_its_complement(data, fields, norm):
    true, prob = data
    first = fastece.ece(true, prob, setting=0, norm=norm, **fields)
    assert fastece.ece(1 - true, 1 - prob, norm=norm, **fields) == near(first)
    assert fastece.ece(true, prob, setting=1, norm=norm, **fields) == near(
        fastece.ece(true, prob, norm=norm, **fields)
    )


# -- weights ---------------------------------------------------------------------------------------


@given(cases.binary(), cases.binned_fields(), norms, st.data())
def test_integer_weights_are_repetitions(data, fields, norm, draw):
    true, prob = data
    weight = draw.draw(cases.integer_weights(len(true)))
    value = fastece.ece(true, prob, sample_weight=weight, norm=norm, **fields)
    repeated = np.repeat(true, weight), np.repeat(prob, weight)
    assert value == near(fastece.ece(*repeated, norm=norm, **fields))


@given(cases.multiclass(), cases.binned_fields(), st.data())
def test_integer_weights_are_repetitions_of_class_vectors(data, fields, draw):
    true, prob = data
    weight = draw.draw(cases.integer_weights(len(true)))
    repeated = np.repeat(true, weight), np.repeat(prob, weight, axis=0)
    for setting in ("confidence", "classwise"):
        value = fastece.ece(true, prob, sample_weight=weight, setting=setting, **fields)
        assert value == near(fastece.ece(*repeated, setting=setting, **fields))


@given(cases.binary(), cases.binned_fields(), norms, st.data())
def test_rows_of_weight_zero_are_dropped(data, fields, norm, draw):
    true, prob = data
    weight = draw.draw(cases.integer_weights(len(true)))
    kept = weight > 0
    for n_bins in (fields["n_bins"], "sqrt"):
        options = {**fields, "n_bins": n_bins, "norm": norm}
        value = fastece.ece(true, prob, sample_weight=weight, **options)
        rest = fastece.ece(true[kept], prob[kept], sample_weight=weight[kept], **options)
        assert value == near(rest)


@given(cases.binary(), cases.binned_fields(), norms, st.data())
def test_scaling_all_weights_changes_nothing(data, fields, norm, draw):
    true, prob = data
    weight = draw.draw(cases.integer_weights(len(true), smallest=1)).astype(float)
    scale = draw.draw(st.sampled_from([0.1, 3.0, 1e-9, 1e9, 1e-150, 1e150, 1e-300, 1e300]))
    for n_bins in (fields["n_bins"], "sqrt"):
        options = {**fields, "n_bins": n_bins, "norm": norm}
        value = fastece.ece(true, prob, sample_weight=weight, **options)
        scaled = fastece.ece(true, prob, sample_weight=weight * scale, **options)
        assert scaled == near(value)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1.7e308])
@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_c", "ece_ac"])
def test_weights_at_the_ends_of_floating_point_change_nothing(estimator, scale):
    scores = cases.score_sets()["bell"]
    true = cases.labels_for(scores)
    for fields in ({}, {"norm": 2.0}, {"norm": inf}, {"bin_weights": "equal"}):
        value = fastece.ece(true, scores, estimator=estimator, **fields)
        weight = np.full(len(scores), scale)
        scaled = fastece.ece(true, scores, estimator=estimator, sample_weight=weight, **fields)
        assert scaled == near(value), fields


@given(cases.binary(), cases.binned_fields(), norms)
def test_equal_weights_are_no_weights(data, fields, norm):
    weight = np.full(len(data[0]), 0.1)
    value = fastece.ece(*data, norm=norm, **fields)
    assert fastece.ece(*data, sample_weight=weight, norm=norm, **fields) == near(value)


# -- inequalities ----------------------------------------------------------------------------------


@given(cases.binary(), cases.binned_fields(), norms, st.sampled_from(["mass", "equal"]))
def test_errors_lie_between_zero_and_one(data, fields, norm, bin_weights):
    value = fastece.ece(*data, norm=norm, bin_weights=bin_weights, **fields)
    assert -SLACK <= value <= 1 + SLACK


@given(cases.binary(), cases.binned_fields(("hard",)), st.data())
def test_errors_grow_with_the_norm(data, fields, draw):
    # Jensen, for bins of at least one part in a thousand: the maximum leaves none of them out.
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    fields = {**fields, "sample_weight": weight}
    values = [fastece.ece(*data, norm=p, **fields) for p in (1, 1.5, 2, 7, inf)]
    assert all(a <= b + SLACK for a, b in pairwise(values)), values


@given(
    cases.binary(),
    st.sampled_from([b for b in cases.BINNINGS if b[1] == "hard"]),
    st.sampled_from([1, 2, 3, 5, 10, 15, 49]),
    st.sampled_from([2, 3, 7]),
    st.data(),
)
def test_merging_neighbouring_bins_never_raises_the_error(data, binning, n_bins, finer, draw):
    # j / B and (2 j) / (2 B) are the same float, and so are j W / B and 2 j W / 2 B: bins nest.
    fields = cases.fields_of(binning)
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    for score_range in ("unit", (0.2, 0.7)):
        options = {**fields, "sample_weight": weight, "score_range": score_range}
        coarse = fastece.ece(*data, n_bins=n_bins, **options)
        assert coarse <= fastece.ece(*data, n_bins=finer * n_bins, **options) + SLACK


@given(cases.binary(), cases.binned_fields(), st.data())
def test_the_error_is_at_least_the_gap_between_the_means(data, fields, draw):
    # One bin is the coarsest merging of all; shares sum to 1, so this holds for convex ones too.
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    true, prob = data
    gap = abs(np.average(true - prob, weights=weight))
    assert fastece.ece(*data, sample_weight=weight, **fields) >= gap - SLACK
    one = {**fields, "n_bins": 1}
    assert fastece.ece(*data, sample_weight=weight, **one) == near(gap)


@given(cases.binary(), cases.binned_fields())
def test_a_classifier_that_is_always_right_and_sure_has_no_error(data, fields):
    true, _ = data
    assert fastece.ece(true, true.astype(float), **fields) == 0.0
    assert fastece.ece(true, 1.0 - true, n_bins=1, mapping="convex") == near(
        abs(np.mean(2 * true - 1))
    )
