"""Reliability diagrams: the cells behind a calibration error."""

import math

import numpy as np
import pytest
import reference

import fastece
from fastece import reliability_diagram
from helpers import strategies as cases
from helpers.strategies import BINNINGS, RANGES, WEIGHTS, as_lists, fields_of

NAMES = ("edges", "count", "score", "frequency", "gap")
BELL = cases.score_sets()["bell"]
BINARY = cases.labels_for(BELL), BELL
CLASSES = cases.class_matrix(BELL)


def difference(result, problem, weight, fields):
    """The first attribute that is not the reference's, or None. A cell of next to no weight, left
    by the rounding of a share, has no mean worth comparing."""
    want = dict(zip(NAMES, reference.diagram(problem, weight, **fields), strict=True))
    solid = np.array(want["count"]) > 1e-9 * sum(want["count"])
    empty = np.array(want["count"]) == 0
    scale = sum(want["count"])
    if not np.allclose(result.edges, want["edges"], rtol=0, atol=1e-15):
        return "edges", result.edges, want["edges"]
    if not np.allclose(result.count / scale, np.array(want["count"]) / scale, rtol=0, atol=1e-12):
        return "count", result.count, want["count"]
    for name in NAMES[2:]:
        got = getattr(result, name)
        expected = np.array(want[name])
        if not np.isnan(got[empty]).all():
            return name, got, expected
        if not np.allclose(got[solid], expected[solid], rtol=0, atol=1e-12):
            return name, got, expected
    return None


@pytest.mark.parametrize("binning", BINNINGS, ids="-".join)
def test_diagrams_equal_the_reference(binning):
    for number, (name, scores) in enumerate(cases.score_sets().items()):
        true = cases.labels_for(scores)
        for turn, kind in enumerate(WEIGHTS):
            weight = cases.weights_for(kind, len(scores))
            score_range = RANGES[(number + turn) % 3]
            fields = {**fields_of(binning), "score_range": score_range}
            result = reliability_diagram(true, scores, sample_weight=weight, **fields)
            y, s, v = as_lists(true, scores, weight)
            mismatch = difference(result, (s, y, 0.0, 1.0), v, fields)
            assert mismatch is None, (name, kind, score_range)


@pytest.mark.parametrize("setting", ["confidence", "classwise", 1])
@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_c", "ece_ac"])
def test_diagrams_of_class_vectors_equal_the_reference(estimator, setting):
    fields = {
        "n_bins": 8,
        "edges": "quantile" if "a" in estimator[3:] else "uniform",
        "mapping": "convex" if estimator.endswith("c") else "hard",
        "score_range": "support",
    }
    results = reliability_diagram(
        *CLASSES, setting=setting, estimator=estimator, n_bins=8, score_range="support"
    )
    problems = reference.problems(*as_lists(*CLASSES), setting)
    if setting != "classwise":
        results = [results]
    assert isinstance(results, list)
    assert len(results) == len(problems)
    for result, problem in zip(results, problems, strict=True):
        assert difference(result, problem, None, fields) is None


def test_a_threshold_leaves_only_the_rows_above_it():
    result = reliability_diagram([0, 1, 1, 0], [0.2, 0.5, 0.6, 0.9], n_bins=2, threshold=0.5)
    assert result.count.tolist() == [0, 2]
    none = reliability_diagram([0, 1], [0.2, 0.5], n_bins=2, threshold=0.5)
    assert none.count.tolist() == [0, 0]
    assert np.isnan(none.gap).all()


def test_text_has_a_line_for_every_bin_with_rows_and_one_for_empty_neighbours():
    result = reliability_diagram([0, 1, 1], [0.1, 0.15, 0.9], n_bins=10, closed="left")
    bins = [line.split("  ")[1] for line in str(result).splitlines()[2:]]
    assert bins == ["[0.000, 0.100)", "[0.100, 0.200)", "[0.200, 0.900)", "[0.900, 1.000]"]
    result = reliability_diagram([0, 1], [0.25, 0.95], n_bins=10)
    bins = [line.split("  ")[1] for line in str(result).splitlines()[2:]]
    assert bins == ["[0.000, 0.200]", "(0.200, 0.300]", "(0.300, 0.900]", "(0.900, 1.000]"]


@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_c", "ece_ac"])
def test_logits_labels_and_float32_are_read_as_by_ece(estimator):
    logits = np.log(np.clip(CLASSES[1], 1e-9, 1)).astype(np.float32)
    names = [["a", "b", "c"][k] for k in CLASSES[0]]
    options = {"labels": ["a", "b", "c"], "from_logits": True, "estimator": estimator}
    result = reliability_diagram(names, logits, **options)
    used = result.count > 0
    mean = np.average(np.abs(result.gap[used]), weights=result.count[used])
    assert mean == pytest.approx(fastece.ece(names, logits, **options), abs=1e-12)


@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_c", "ece_ac"])
@pytest.mark.parametrize("setting", ["confidence", "classwise"])
def test_writing_to_a_diagram_changes_no_other(setting, estimator):
    def arrays_of(diagrams):
        diagrams = diagrams if isinstance(diagrams, list) else [diagrams]
        return [getattr(diagram, name) for diagram in diagrams for name in NAMES]

    def diagrams():
        return reliability_diagram(*CLASSES, setting=setting, estimator=estimator, n_bins=6)

    arrays = arrays_of(diagrams())
    copies = [array.copy() for array in arrays]
    value = fastece.ece(*CLASSES, setting=setting, estimator=estimator, n_bins=6)
    for i, array in enumerate(arrays):
        array[:] = 0.5
        for other, copy in zip(arrays[i + 1 :], copies[i + 1 :], strict=True):  # siblings
            np.testing.assert_array_equal(other, copy)
    for other, copy in zip(arrays_of(diagrams()), copies, strict=True):
        np.testing.assert_array_equal(other, copy)
    assert fastece.ece(*CLASSES, setting=setting, estimator=estimator, n_bins=6) == value


@pytest.mark.parametrize("binning", BINNINGS, ids="-".join)
def test_rows_equal_the_formula_of_kish(binning):
    for kind in WEIGHTS:
        for threshold in (None, 0.5):
            weight = cases.weights_for(kind, len(BELL))
            fields = {**fields_of(binning), "threshold": threshold}
            result = reliability_diagram(*BINARY, sample_weight=weight, **fields)
            assert not result.rows[result.count == 0].any()
            if weight is None:
                assert result.rows.tolist() == result.count.tolist()
            elif binning[:2] != ("quantile", "convex"):
                y, s, v = as_lists(*BINARY, weight)
                expected = np.array(reference.effective_rows((s, y, 0.0, 1.0), v, **fields))
                solid = result.count > 1e-9 * result.count.sum()
                assert result.rows[solid] == pytest.approx(expected[solid], rel=1e-9), kind


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_equal_the_formula_of_clopper_and_pearson(level):
    rows = [1, 1, 2, 7, 7, 7, 40, 40]
    hits = [0, 1, 1, 0, 3, 7, 1, 39]
    scores = np.repeat((np.arange(8) + 0.5) / 8, rows)
    labels = np.concatenate([np.arange(n) < k for n, k in zip(rows, hits, strict=True)])
    low, high = reliability_diagram(labels, scores, n_bins=8).interval(level)
    pairs = zip(hits, rows, strict=True)
    expected = np.array([reference.binomial_interval(k, n, level) for k, n in pairs])
    assert np.column_stack([low, high]) == pytest.approx(expected, abs=1e-9)


def test_empty_bins_have_no_interval_and_levels_are_checked():
    result = reliability_diagram([0, 1, 1], [0.1, 0.15, 0.9], n_bins=4)
    low, high = result.interval()
    for end in (low, high):
        assert np.isnan(end).tolist() == [False, True, True, False]
    assert (low <= result.frequency)[[0, 3]].all()
    assert (high >= result.frequency)[[0, 3]].all()
    with pytest.raises(ValueError, match="confidence_level: must be between 0 and 1"):
        result.interval(1.0)


def test_the_table_says_whether_it_counts_rows_or_weights():
    y = [0, 0, 1, 1]
    s = [0.2, 0.4, 0.6, 1.0]
    for weight, name in ((None, "rows"), (np.ones(4), "rows"), ([2, 1, 1, 5], "weight")):
        diagram = reliability_diagram(y, s, n_bins=2, sample_weight=weight)
        assert str(diagram).splitlines()[1].split()[:2] == ["bin", name]
    convex = reliability_diagram(y, s, n_bins=2, estimator="ece_ac")
    assert str(convex).splitlines()[1].split()[1] == "rows"


def test_the_floor_is_the_mean_error_of_binomial_hits():
    # The hits of equal scores are binomial: sum over all their numbers.
    s = np.array([0.0, 0.3, 0.62, 1.0])
    rows = np.array([3, 5, 12, 2])
    p = np.repeat(s, rows)
    expected = sum(
        math.comb(n, k) * x**k * (1 - x) ** (n - k) * abs(k - n * x)
        for x, n in zip(s, rows.tolist(), strict=True)
        for k in range(n + 1)
    )
    for options in ({}, {"edges": [0.0, 0.1, 0.4, 0.9, 1.0]}, {"score_range": "support"}):
        diagram = reliability_diagram(np.arange(22) % 2, p, **options)
        assert diagram.floor == pytest.approx(expected / 22, rel=1e-12)
        assert diagram.to_dict()["floor"] == diagram.floor
        assert diagram.to_dict()["n"] == diagram.n == 22
    others = {"norm": 2}, {"mapping": "convex"}, {"debias": True}, {"bin_weights": "equal"}
    for options in others:
        assert np.isnan(reliability_diagram(np.arange(22) % 2, p, **options).floor)


def test_large_weights_are_written_without_powers_of_ten():
    weight = np.array([27_632_840.6, 27_632_840.6, 1.5])
    diagram = reliability_diagram([0, 1, 1], [0.2, 0.2, 0.9], sample_weight=weight)
    text = str(diagram)
    assert " 55265681 " in text
    assert " 1.5 " in text
