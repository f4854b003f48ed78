"""ece, mce, sce, ace and tace against the plain-Python reference, to 1e-12."""

import tracemalloc
from dataclasses import dataclass
from math import fsum, inf, isqrt, nextafter

import numpy as np
import pytest
import reference

import fastece
from fastece import Binned
from helpers import strategies as cases
from helpers.kernel_forms import PLAIN
from helpers.strategies import BINNINGS, N_BINS, NORMS, RANGES, WEIGHTS, as_lists, fields_of

TOLERANCE = 1e-12
PROBLEM = {"binary": "binary", "confidence": "confidence", "class 1": 1, "classwise": "classwise"}
binnings = pytest.mark.parametrize("binning", BINNINGS, ids="-".join)


def same(value, expected):
    """Equal within the tolerance; nan equals nan only."""
    return np.allclose(value, expected, rtol=0, atol=TOLERANCE, equal_nan=True)


def mismatches(checks):
    """One line for each (name, value, expected) that is not the same."""
    return [f"{name}: {got} is not {want}" for name, got, want in checks if not same(got, want)]


def data_of(setting, scores, seed=0):
    """(y_true, y_prob) for a setting, from a list of scores."""
    if setting == "binary":
        return cases.labels_for(scores, seed), scores
    return cases.class_matrix(scores, seed)


def values_of(setting, data, weight, options, **fields):
    """The reference's value for each of several options; the cells are made once for all."""
    y_true, y_prob, weight = as_lists(*data, weight)
    cells_of_problems = [
        reference.cells(problem, weight, **fields)[1]
        for problem in reference.problems(y_true, y_prob, setting)
    ]
    values = []
    for option in options:
        errors = [reference.value(cells, **option) for cells in cells_of_problems]
        values.append(fsum(errors) / len(errors))
    return values


def value_by_norm(setting, data, weight, norms, **fields):
    """norm -> the reference's value."""
    values = values_of(setting, data, weight, [{"norm": p} for p in norms], **fields)
    return dict(zip(norms, values, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "binning"),
    [("confidence", BINNINGS[0]), ("class 1", BINNINGS[1]), ("classwise", BINNINGS[-1])],
)
def test_every_combination_equals_the_reference(setting, binning):
    checks = []
    # The support of all but the largest probability is [0, 1], the range of "unit".
    ranges = RANGES if setting == "confidence" else [r for r in RANGES if r != "support"]
    for name, scores in cases.score_sets().items():
        data = data_of(setting, scores)
        for kind in WEIGHTS:
            weight = cases.weights_for(kind, len(scores))
            for score_range in ranges:
                fields = {**fields_of(binning), "score_range": score_range}
                expected = value_by_norm(PROBLEM[setting], data, weight, NORMS, **fields)
                for p in NORMS:
                    got = fastece.ece(
                        *data, setting=PROBLEM[setting], sample_weight=weight, norm=p, **fields
                    )
                    checks.append(((name, kind, score_range, p), got, expected[p]))
    bad = mismatches(checks)
    assert not bad, f"{len(bad)} of {len(checks)}: {bad[:5]}"


@pytest.mark.parametrize(
    ("n_bins", "binning"), [(n, BINNINGS[i % len(BINNINGS)]) for i, n in enumerate(N_BINS)]
)
def test_every_number_of_bins_equals_the_reference(n_bins, binning):
    checks = []
    bins_of_sets = 7 if n_bins == "sqrt" else n_bins
    if bins_of_sets >= 50:
        bins_of_sets = 20
    sets = cases.score_sets(bins_of_sets)
    for i, (name, scores) in enumerate(sets.items()):
        data = data_of("binary", scores, seed=i)
        for kind in WEIGHTS:
            weight = cases.weights_for(kind, len(scores))
            fields = {**fields_of(binning), "n_bins": n_bins}
            expected = value_by_norm("binary", data, weight, (1.0, inf), **fields)
            for p in expected:
                got = fastece.ece(*data, sample_weight=weight, norm=p, **fields)
                checks.append(((name, kind, p), got, expected[p]))
    bad = mismatches(checks)
    assert not bad, f"{len(bad)} of {len(checks)}: {bad[:5]}"


@pytest.mark.slow
@pytest.mark.parametrize("binning", [BINNINGS[0], BINNINGS[-1]], ids="-".join)
def test_options_of_the_value_equal_the_reference(binning):
    checks = []
    options = [  # of the bins, and of the value of each
        ({}, [{"bin_weights": "equal"}, {"bin_weights": "equal", "norm": 2.0},
              {"norm": inf, "min_count": 2}, {"norm": inf, "min_count": 1e9}]),
        ({"threshold": 0.25}, [{}, {"bin_weights": "equal"}]),
        ({"threshold": 0.0, "n_bins": "sqrt"}, [{}]),
        ({"threshold": 1 / 3, "score_range": (0.2, 0.7)}, [{}]),
        ({"threshold": 0.1}, [{"norm": inf, "min_count": 1.7321}]),
    ]  # fmt: skip
    for name, scores in cases.score_sets().items():
        for kind in ("none", "integers", "random"):
            weight = cases.weights_for(kind, len(scores))
            for setting in PROBLEM.values():
                if setting != "binary" and (len(scores) > 60 or kind == "random"):
                    continue
                data = data_of(setting, scores)
                for of_bins, of_value in options:
                    fields = {**fields_of(binning), **of_bins}
                    expected = values_of(setting, data, weight, of_value, **fields)
                    for option, want in zip(of_value, expected, strict=True):
                        got = fastece.ece(
                            *data, setting=setting, sample_weight=weight, **fields, **option
                        )
                        checks.append(((name, kind, setting, of_bins, option), got, want))
    bad = mismatches(checks)
    assert not bad, f"{len(bad)} of {len(checks)}: {bad[:5]}"


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize(
    ("n_bins", "score_range"),
    [(5, (0.03, 0.3)), (49, "unit"), (256, (1 / 3, 1.0)), (1000, (0.1, 0.7))],
)
def test_every_edge_and_both_its_neighbours_fall_in_the_right_bin(n_bins, score_range, closed):
    # Counted bin by bin, because an error may hide a row in the wrong bin.
    edges = np.array(cases.edges_of(n_bins, score_range))
    for scores in (cases.around(edges), cases.around32(edges)):
        result = fastece.reliability_diagram(
            np.zeros(len(scores)), scores, n_bins=n_bins, score_range=score_range, closed=closed
        )
        exact = scores.astype(np.float64)
        passed = np.searchsorted(edges, exact, "left" if closed == "right" else "right")
        bins = np.clip(passed - 1, 0, n_bins - 1)
        np.testing.assert_array_equal(result.count, np.bincount(bins, minlength=n_bins))
        np.testing.assert_array_equal(result.edges, edges)


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("ulps", [1, 2, 5, 9])
def test_repeated_uniform_edges_are_searched_like_any_others(ulps, closed):
    # A range of fewer floats than bins: most edges coincide, and their bins are empty.
    low = 0.3
    high = low + ulps * np.spacing(low)
    for n_bins in (2, 3, 7, 10, 100):
        fields = {"n_bins": n_bins, "score_range": (low, high), "closed": closed}
        floats_of_range = np.clip(low + np.spacing(low) * np.arange(ulps + 1), low, high)
        scores = np.array([0.0, *floats_of_range, 1.0])  # 0 and 1 are moved to the ends
        true = np.zeros(len(scores), dtype=int)
        result = fastece.reliability_diagram(true, scores, **fields)
        problem = (scores.tolist(), true.tolist(), 0.0, 1.0)
        assert result.count.tolist() == reference.diagram(problem, **fields)[1], n_bins


def test_minus_zero_is_zero():
    plus = np.array([0.0, 0.0, 0.5, 0.9])
    minus = np.array([-0.0, 0.0, 0.5, 0.9])
    for dtype in (np.float64, np.float32):
        for binning in BINNINGS:
            for n_bins in (2, 3, 4, 8):
                fields = {**fields_of(binning), "n_bins": n_bins}
                got = fastece.ece([0, 1, -0.0, 1], minus.astype(dtype), **fields)
                assert got == fastece.ece([0, 1, 0, 1], plus.astype(dtype), **fields), fields
    assert fastece.ece([0, 1], [0.2, 0.5], sample_weight=[-0.0, 1.0]) == 0.5


def test_equality_cuts_at_the_midpoint_and_otherwise_at_the_score():
    # n = 4, B = 2: C_2 = m_1 exactly. n = 3, B = 2: C_2 = 2 > 1.5, so the edge is u_2.
    even = fastece.reliability_diagram(
        [0, 1, 0, 1], [0.1, 0.2, 0.6, 0.9], n_bins=2, edges="quantile"
    )
    odd = fastece.reliability_diagram([0, 1, 0], [0.1, 0.2, 0.6], n_bins=2, edges="quantile")
    assert even.edges.tolist() == [0.0, 0.4, 1.0]
    assert odd.edges.tolist() == [0.0, 0.2, 1.0]
    assert odd.count.tolist() == [2, 1]


def test_decimal_weights_cut_evenly_in_spite_of_their_rounding():
    # 0.1 + 0.2 is not 0.3 in floating point, and ten times 0.1 is not 1.
    weight = [0.1, 0.2, 0.3]
    by_thirds = fastece.reliability_diagram(
        [0, 1, 0], [0.2, 0.4, 0.8], n_bins=2, edges="quantile", sample_weight=weight
    )
    assert by_thirds.edges[1] == reference.between(0.4, 0.8, "right")
    scores = (np.arange(10) + 1) / 16
    tenths = fastece.reliability_diagram(
        np.arange(10) % 2, scores, n_bins=10, edges="quantile", sample_weight=np.full(10, 0.1)
    )
    assert tenths.count == pytest.approx(np.full(10, 0.1))
    assert tenths.edges[1:-1] == pytest.approx((scores[:-1] + scores[1:]) / 2)


def test_equal_scores_stay_together_and_repeated_edges_give_empty_bins():
    scores = [0.0] * 8 + [0.5, 0.9]
    result = fastece.reliability_diagram([0, 1] * 5, scores, n_bins=5, edges="quantile")
    assert result.edges.tolist() == [0.0, 0.0, 0.0, 0.0, 0.25, 1.0]
    assert result.count.tolist() == [8, 0, 0, 0, 2]


@pytest.mark.parametrize("closed", ["right", "left"])
def test_a_cut_between_neighbouring_floats_separates_them(closed):
    # Their midpoint rounds to the even one of the two: below or above, depending on the pair.
    for low in (0.5, nextafter(0.5, 1), 0.3, nextafter(0.3, 1), 1 / 3, 0.999, nextafter(0.999, 1)):
        scores = [low, nextafter(low, 1)]
        fields = {"n_bins": 2, "edges": "quantile", "closed": closed}
        result = fastece.reliability_diagram([1, 0], scores, **fields)
        assert result.count.tolist() == [1, 1], (low, closed)
        assert fastece.ece([1, 0], scores, **fields) == pytest.approx(0.5, abs=1e-15)


def test_the_nearer_centre_gets_the_larger_share():
    # B = 2: centres 0.25 and 0.75; 0.375 is a quarter of the way, so three quarters stay.
    result = fastece.reliability_diagram([1], [0.375], n_bins=2, mapping="convex")
    assert result.count.tolist() == [0.75, 0.25]


def test_a_shared_centre_belongs_to_the_first_of_its_bins():
    # Quantile edges 0, .5, .5, .5, 1: the centres of bins 1 and 2 are both 0.5.
    fields = {"n_bins": 4, "edges": "quantile", "mapping": "convex"}
    result = fastece.reliability_diagram([0, 1, 0, 1], [0.5] * 4, **fields)
    assert result.edges.tolist() == [0.0, 0.5, 0.5, 0.5, 1.0]
    assert result.count.tolist() == [0, 4, 0, 0]
    assert np.isnan(result.score).tolist() == [True, False, True, True]


def test_a_bin_of_negligible_weight_is_not_the_maximum_but_still_a_part_of_the_mean():
    true = [1, 1, 0]
    prob = [1.0, 1.0, 0.5]
    tiny = [1, 1, 1e-9]
    small = [1, 1, 1e-8]
    assert fastece.mce(true, prob, sample_weight=tiny) == 0.0
    assert fastece.mce(true, prob, sample_weight=small) == 0.5
    assert fastece.ece(true, prob, bin_weights="equal", sample_weight=tiny) == 0.0
    assert same(fastece.ece(true, prob, bin_weights="equal", sample_weight=small), 0.5 / 15)
    for norm in (1.0, 2.0, 3.5):
        want = (1e-9 / (2 + 1e-9)) ** (1 / norm) * 0.5
        assert same(fastece.ece(true, prob, norm=norm, sample_weight=tiny), want), norm


def test_a_large_norm_comes_close_to_the_maximum():
    # 0.8 ** 4000 is no longer a number, but (0.5 * 0.8 ** 4000) ** (1 / 4000) is.
    true = [0, 1]
    prob = [0.8, 0.9]
    previous = fastece.ece(true, prob)
    for norm in (2, 50, 1000, 4000, 1e6, 1e300):
        value = fastece.ece(true, prob, norm=norm)
        assert same(value, reference.ece(true, prob, norm=norm)), norm
        assert previous <= value <= fastece.mce(true, prob), norm
        equal = fastece.ece(true, prob, norm=norm, bin_weights="equal")
        assert same(equal, reference.ece(true, prob, norm=norm, bin_weights="equal")), norm
        previous = value


def test_min_count_is_in_units_of_the_weights_and_includes_equality():
    true = [0, 0, 1]
    prob = [0.1, 0.1, 0.5]
    assert same(fastece.mce(true, prob, min_count=1), 0.5)
    assert same(fastece.mce(true, prob, min_count=2), 0.1)
    assert np.isnan(fastece.mce(true, prob, min_count=2.5))
    assert same(fastece.mce(true, prob, min_count=2, sample_weight=[1, 1, 2]), 0.5)
    assert np.isnan(fastece.mce(true, prob, min_count=2, sample_weight=[0.5, 0.5, 0.5]))


def test_a_nan_class_makes_the_mean_nan_and_is_kept_without_it():
    true = [0, 1, 2, 2]
    prob = np.array([[0.9, 0.1, 0.0], [0.1, 0.7, 0.2], [0.1, 0.3, 0.6], [0.1, 0.5, 0.4]])
    options = {"setting": "classwise", "norm": inf, "min_count": 3}
    values = fastece.ece(true, prob, average=None, **options)
    want = reference.ece(*as_lists(true, prob), average=None, **options)
    assert np.isnan(want).tolist() == [False, True, True]
    assert same(values, want)
    assert np.isnan(fastece.ece(true, prob, **options))


def test_threshold_keeps_scores_strictly_above_and_an_empty_class_counts_zero():
    true = [1, 1, 0]
    prob = [0.5, 0.6, 0.4]
    assert same(fastece.ece(true, prob, threshold=0.5), 0.4)
    assert fastece.ece(true, prob, threshold=0.6) == 0.0
    rows = [[0.99, 0.01], [0.995, 0.005]]
    values = fastece.tace([0, 0], rows, average=None)
    assert same(values, [0.015 / 15, 0.0])  # two of fifteen ranges, gaps 0.01 and 0.005
    assert same(fastece.tace([0, 0], rows), values.mean())


def test_sqrt_counts_rows_of_positive_weight_before_the_threshold():
    rng = np.random.default_rng(5)
    prob = rng.random(40)
    true = cases.labels_for(prob)
    weight = np.where(np.arange(40) < 27, 2.5, 0.0)
    fields = {"n_bins": "sqrt", "threshold": 0.5, "sample_weight": weight}
    result = fastece.reliability_diagram(true, prob, **fields)
    assert len(result.count) == isqrt(27)
    five = {**fields, "n_bins": 5}
    assert fastece.ece(true, prob, **fields) == fastece.ece(true, prob, **five)


VGG_LIKE = cases.class_matrix(cases.score_sets()["bell"])


def test_mce_is_norm_inf():
    for name, scores in cases.score_sets().items():
        data = data_of("binary", scores)
        for fields in ({}, {"edges": "quantile"}, {"mapping": "convex", "n_bins": 4}):
            assert fastece.mce(*data, **fields) == fastece.ece(*data, norm=inf, **fields), name
    assert fastece.mce(*VGG_LIKE, estimator="ece_a") == fastece.ece(
        *VGG_LIKE, estimator="ece_a", norm=inf
    )


@pytest.mark.parametrize("average", ["macro", None])
def test_sce_ace_and_tace_equal_the_definitions_of_nixon(average):
    equal = {"edges": "quantile", "bin_weights": "equal"}
    equivalents = [
        (fastece.sce, {}, {}),
        (fastece.sce, {"n_bins": 7}, {"n_bins": 7}),
        (fastece.ace, {}, equal),
        (fastece.ace, {"n_bins": 4}, {**equal, "n_bins": 4}),
        (fastece.tace, {}, {**equal, "threshold": 0.01}),
        (fastece.tace, {"threshold": 0.3, "n_bins": 5}, {**equal, "threshold": 0.3, "n_bins": 5}),
    ]
    weight = cases.weights_for("integers", len(VGG_LIKE[0]))
    for function, options, fields in equivalents:
        for v in (None, weight):
            got = function(*VGG_LIKE, average=average, sample_weight=v, **options)
            want = reference.ece(
                *as_lists(*VGG_LIKE, v), setting="classwise", average=average, **fields
            )
            assert same(got, want), (function.__name__, options)


def test_auto_is_binary_for_one_dimension_and_confidence_for_two():
    # Two bins as P(positive), gaps 0.9 and 0.1; one bin as top labels, gaps -0.9 and 0.1.
    true = [1, 1]
    prob = np.array([0.1, 0.9])
    two = np.column_stack([1 - prob, prob])
    for setting in ("auto", "binary"):
        assert same(fastece.ece(true, prob, setting=setting), 0.5)
    for setting in ("auto", "confidence"):
        assert same(fastece.ece(true, two, setting=setting), 0.4)


def test_one_dimension_stands_for_two_columns_in_every_setting_but_binary():
    for name, prob in cases.score_sets().items():
        true = cases.labels_for(prob)
        exact = prob.astype(np.float64)
        two = np.column_stack([1 - exact, exact])
        for setting in ("confidence", "classwise", 0, 1):
            for closed in ("right", "left"):
                got = fastece.ece(true, prob, setting=setting, n_bins=10, closed=closed)
                both = fastece.ece(true, two, setting=setting, n_bins=10, closed=closed)
                want = reference.ece(
                    *as_lists(true, prob), setting=setting, n_bins=10, closed=closed
                )
                assert same(got, want), (name, setting, closed)
                assert same(both, want), (name, setting, closed)


def test_the_first_maximum_wins():
    rows = [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.4, 0.2, 0.4]]
    assert same(fastece.ece([0, 1, 0], rows), 0.6)
    assert same(fastece.ece([1, 2, 2], rows), 0.4)
    assert same(fastece.ece([0, 0], [0.5, 0.5], setting="confidence"), 0.5)
    assert same(fastece.ece([1, 1], [0.5, 0.5], setting="confidence"), 0.5)
    assert same(fastece.ece([0, 0, 0], [0.5, 0.5, 0.5], setting="confidence", norm=2), 0.5)
    hits = fastece.reliability_diagram([0, 0, 1], [0.5] * 3, setting="confidence", n_bins=1)
    assert same(hits.frequency, [2 / 3])


def test_labels_give_the_class_order():
    true, prob = VGG_LIKE
    names = ["cat", "dog", "bird"]
    strings = [names[k] for k in true]
    numbers = np.array([30, 10, 20])[true]
    for setting in ("confidence", "classwise", 1):
        want = fastece.ece(true, prob, setting=setting)
        assert fastece.ece(strings, prob, labels=names, setting=setting) == want
        assert fastece.ece(numbers, prob, labels=[30, 10, 20], setting=setting) == want
        assert fastece.ece(np.array(strings), prob, labels=np.array(names), setting=setting) == want
        assert fastece.ece(np.array(strings, object), prob, labels=names, setting=setting) == want


def test_labels_may_be_anything_that_can_be_compared():
    want = fastece.ece([1, 0, 1], [0.2, 0.5, 0.9])
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")
    for low, high in (days, (0.5, 1.5), (2**60, 2**60 + 1), (False, True), ("a", "bb"), (-1, 1)):
        assert fastece.ece([high, low, high], [0.2, 0.5, 0.9], labels=[low, high]) == want
        array = np.array([high, low, high])
        assert fastece.ece(array, [0.2, 0.5, 0.9], labels=np.array([low, high])) == want


def test_labels_of_another_kind_or_length_are_not_made_equal():
    for true, labels in ((["1", "2"], [1, 2]), ([1, 2], ["1", "2"]), (["a", "bbb"], ["a", "bb"])):
        with pytest.raises((ValueError, TypeError), match="y_true"):
            fastece.ece(np.array(true), [0.2, 0.5], labels=np.array(labels))


def test_string_labels_without_an_order_are_refused():
    true, prob = VGG_LIKE
    names = ["ant", "bee", "cow"]
    strings = [names[k] for k in true]
    assert fastece.ece(strings, prob, labels=names) == fastece.ece(true, prob)
    with pytest.raises(ValueError, match=r"found 'ant', 'bee', 'cow'; .*; pass labels="):
        fastece.ece(strings, prob)
    with pytest.raises(ValueError, match="which of the 2 columns"):
        fastece.ece(["n", "y"], [[0.9, 0.1], [0.1, 0.9]])


@pytest.mark.parametrize("setting", ["binary", "confidence", "classwise", 0])
def test_binary_logits_equal_the_reference(setting):
    rng = np.random.default_rng(6)
    logits = np.concatenate([4 * rng.standard_normal(80), [0.0, 1e4, -1e4, 700.0, -800.0, -np.inf]])
    true = (rng.random(86) < 0.5).astype(int)
    got = fastece.ece(true, logits, setting=setting, from_logits=True)
    assert same(got, reference.ece(*as_lists(true, logits), setting=setting, from_logits=True))


@pytest.mark.parametrize("setting", ["confidence", "classwise", 2])
def test_class_logits_equal_the_reference(setting):
    rng = np.random.default_rng(7)
    logits = 3 * rng.standard_normal((80, 4))
    logits[0] = [1e4, -1e4, 0.0, 1e4 - 1]
    logits[1] = [-1e4, -1e4 + 2, -1e4, -1e4]
    logits[2] = [0.5, -np.inf, 0.25, -np.inf]
    logits[3] = [-np.inf, -np.inf, -np.inf, 7.0]
    true = rng.integers(0, 4, 80)
    got = fastece.ece(true, logits, setting=setting, from_logits=True)
    assert same(got, reference.ece(*as_lists(true, logits), setting=setting, from_logits=True))


def test_finite_logits_may_be_of_any_size():
    rows = [[-1.7e308, 1.7e308], [1.7e308, -1.7e308]]
    single = [-1.7e308, 1.7e308]
    for setting in ("binary", "confidence", "classwise"):
        assert fastece.ece([1, 0], rows, setting=setting, from_logits=True) == 0.0
        assert fastece.ece([0, 1], single, setting=setting, from_logits=True) == 0.0


def test_float32_counts_do_not_saturate():
    # 2**24 + 1 is not a float32: one bin with more weight than that must still count every row.
    result = fastece.reliability_diagram(
        [0, 1], np.array([0.7, 0.7], dtype=np.float32), sample_weight=[2**24, 1], n_bins=1
    )
    assert result.count.tolist() == [2**24 + 1]


@pytest.mark.parametrize("estimator", ["ece", "ece_ac"])
def test_a_million_rows_lose_no_digits(estimator):
    # Adding 0.1 a million times loses eleven digits of a 1e-12 that also decides equal masses.
    n = 1_000_000
    rng = np.random.default_rng(16)
    tenths = np.full(n, 0.1)
    misses = np.zeros(n, dtype=np.uint8)
    assert same(fastece.ece(misses, tenths, estimator=estimator), 0.1)
    assert same(fastece.ece(misses, tenths, estimator=estimator, sample_weight=tenths), 0.1)
    scores = rng.random(n)
    true = rng.random(n) < scores
    plain = fastece.reliability_diagram(true, scores, estimator=estimator, n_bins=10)
    weighted = fastece.reliability_diagram(
        true, scores, estimator=estimator, n_bins=10, sample_weight=tenths
    )
    assert np.array_equal(plain.edges, weighted.edges)
    assert same(weighted.gap, plain.gap)
    assert weighted.count == pytest.approx(plain.count / 10, rel=1e-12)


@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_c", "ece_ac"])
def test_two_jobs_give_the_same_bits_as_one(estimator):
    rng = np.random.default_rng(10)
    n = 300_000
    prob = rng.random(n)
    true = rng.random(n) < prob**1.1
    one = fastece.ece(true, prob, estimator=estimator, n_jobs=1)
    assert one == fastece.ece(true, prob, estimator=estimator, n_jobs=2)
    if estimator == "ece":
        bins = np.searchsorted(np.arange(16) / 15, prob, "left") - 1
        assert same(one, np.abs(np.bincount(bins, true - prob, 15)).sum() / n)


@pytest.mark.parametrize("estimator", ["ece_a", "ece_kde", "mmce"])
@pytest.mark.parametrize("has_weights", [False, True])
def test_classes_on_two_threads_have_the_bits_of_one(estimator, has_weights):
    rng = np.random.default_rng(11)
    prob = rng.dirichlet(np.ones(5), 400)
    true = rng.integers(0, 5, 400)
    options = {"setting": "classwise", "average": None, "estimator": estimator}
    options["sample_weight"] = rng.random(400) + 0.1 if has_weights else None
    one = fastece.ece(true, prob, n_jobs=1, **options)
    assert np.array_equal(fastece.ece(true, prob, n_jobs=2, **options), one)
    of_classes = [fastece.ece(true, prob, **{**options, "setting": k}) for k in range(5)]
    assert np.allclose(of_classes, one, rtol=1e-12, atol=0)


@pytest.mark.skipif(PLAIN, reason="two million rows")
def test_scores_are_not_copied_as_a_whole():
    p = np.linspace(0, 1, 2**21)
    y = np.zeros(p.size, np.uint8)
    fastece.ece(y, p)
    tracemalloc.start()
    fastece.ece(y, p)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.3 * p.nbytes


BINARY = np.array([0, 1, 1, 0]), np.array([0.2, 0.6, 0.9, 0.5])


def test_errors_of_a_users_subclass_are_used():
    @dataclass(frozen=True)
    class Double(Binned):
        def errors(self, bins):
            return 2 * super().errors(bins)

    assert fastece.ece(*BINARY, estimator=Double()) == 2 * fastece.ece(*BINARY)


def test_errors_of_a_users_subclass_get_gaps_and_weights():
    @dataclass(frozen=True)
    class Squared(Binned):
        def errors(self, bins):
            weight = bins.weight
            mean = np.divide(bins.gap, weight, out=np.zeros_like(weight), where=weight > 0)
            return np.sqrt((weight * mean**2).sum(-1) / weight.sum(-1))

    result = fastece.bootstrap(*BINARY, estimator=Squared(), n_resamples=64, rng=0)
    expected = fastece.bootstrap(*BINARY, estimator=Binned(norm=2), n_resamples=64, rng=0)
    assert result.value == pytest.approx(expected.value, rel=1e-12)
    distribution = pytest.approx(expected.bootstrap_distribution, rel=1e-12)
    assert result.bootstrap_distribution == distribution


@pytest.mark.parametrize("option", [{"average": 1}, {"n_jobs": 0}, {"from_logits": 1}])
def test_options_are_checked_for_plain_arrays_too(option):
    with pytest.raises((ValueError, TypeError), match=next(iter(option))):
        fastece.ece(*BINARY, **option)
