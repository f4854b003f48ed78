"""`fastece.compat.netcal` computes what netcal does."""

import numpy as np
import pytest

from fastece.compat import netcal as compat
from helpers.compat_cases import (
    FEW,
    SEEDS,
    binary_case,
    class_case,
    library,
    near,
    quietly,
    tolerance,
    until,
)
from oracles import reference_compat as reference

METRICS = ("ECE", "MCE", "ACE")


@pytest.fixture
def peer():
    library("netcal")
    return library("netcal.metrics")


def options(rng):
    """Equal intervals or mass, and the threshold."""
    return bool(rng.random() < 0.6), int(rng.choice([0, 1, 1, 2, 5]))


def binary_arguments(seed):
    """`(X, y, bins, equal_intervals, sample_threshold, kind)`: one column or two."""
    rng, scores, hits, n_bins, kind = binary_case(seed)
    shape = seed % 4
    x = scores if shape < 2 else scores[:, None]
    if shape == 3:
        x = np.column_stack([1 - scores, scores])
    y = np.eye(2, dtype=int)[hits] if seed % 7 == 0 and len(hits) > 1 else hits
    return x, y, n_bins, *options(rng), kind


def class_arguments(seed):
    """The same for class vectors, one in four with labels as indicators."""
    rng, x, labels, n_bins, kind = class_case(seed)
    k = x.shape[1]
    y = np.eye(k, dtype=int)[labels] if seed % 4 == 0 and k > 2 and len(labels) > 1 else labels
    return x, y, n_bins, *options(rng), kind


ARGUMENTS = pytest.mark.parametrize("arguments", [binary_arguments, class_arguments])


def ours(metric, x, y, *options):
    """The value of `measure`, all arguments of the constructor by position but `detection`."""
    bins, equal_intervals, sample_threshold = options
    return getattr(compat, metric)(bins, equal_intervals, False, sample_threshold).measure(x, y)


@FEW
@ARGUMENTS
@pytest.mark.parametrize("metric", METRICS)
def test_value_is_the_reference(metric, arguments, seeds):
    for seed in seeds:
        x, y, *rest, kind = arguments(seed)
        got = ours(metric, x, y, *rest)
        assert isinstance(got, np.float64)
        want = reference.netcal_error(metric, x.tolist(), y.tolist(), *rest, kind)
        near(got, want, 1e-12, seed)


def moved_scores(x, y, kind):
    """The scores of the problem, moved away from 0 and 1 as there."""
    tiny = float(np.finfo(kind).eps)
    return np.array(reference.netcal_problem(x.tolist(), y.tolist(), tiny)[0], dtype=kind)


def lost_rows(x, y, bins, equal_intervals, kind):
    """Are rows counted in one bin and averaged in another there, by edges of two types?"""
    if kind is np.float64:
        return False
    scores = moved_scores(x, y, kind)
    edges = np.linspace(0, 1, bins + 1)
    if not equal_intervals:
        edges[1:-1] = np.quantile(scores, edges[1:-1])
    counts, means = (np.searchsorted(e, scores, "right") for e in (edges, edges.astype(kind)))
    return bool((counts != means).any())


def refusal(x, y, bins, equal_intervals, kind):
    """The message with which netcal refuses a case that has a value."""
    labels = y if y.ndim == 1 else y.argmax(axis=1)
    if x.ndim == 2 and x.shape[1] > 2 and len(np.unique(labels)) <= 2:
        return "binary classification problem"
    if not equal_intervals:
        scores = moved_scores(x, y, kind)
        edges = np.quantile(scores, np.linspace(0, 1, bins + 1))
        edges[0], edges[-1] = 0, 1
        if (np.diff(edges.astype(kind)) == 0).any():
            return "smallest edge difference"
    return None


@SEEDS
@ARGUMENTS
@pytest.mark.parametrize("metric", METRICS)
def test_value_is_the_library(peer, metric, arguments, seeds):
    """Where netcal gives a value; where not, its error."""

    def compare(seed):
        x, y, bins, equal_intervals, threshold, kind = arguments(seed)
        theirs = getattr(peer, metric)(bins, equal_intervals, False, threshold)
        message = refusal(x, y, bins, equal_intervals, kind)
        if message is not None:
            with pytest.raises((RuntimeError, ValueError), match=message):
                quietly(theirs.measure, x, y)
            return False
        if lost_rows(x, y, bins, equal_intervals, kind):
            return False
        got = ours(metric, x, y, bins, equal_intervals, threshold)
        near(got, quietly(theirs.measure, x, y), tolerance(kind, len(y)), seed)
        return True

    until(seeds, compare)


@pytest.mark.parametrize("equal_intervals", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_batched_is_the_mean(metric, equal_intervals):
    rng = np.random.default_rng(2)
    x, y = [rng.random(n) for n in (9, 30, 31)], [rng.integers(0, 2, n) for n in (9, 30, 31)]
    values = [ours(metric, a, b, 4, equal_intervals, 1) for a, b in zip(x, y, strict=True)]
    measure = getattr(compat, metric)(4, equal_intervals).measure
    for lists in ((x, y), (tuple(x), tuple(y))):
        assert measure(*lists, batched=True) == pytest.approx(np.mean(values), abs=1e-14)
    with pytest.raises(ValueError, match=r"X|y"):
        measure(x, y[:2], batched=True)
    with pytest.raises(ValueError, match=r"X|y"):
        measure([], [], batched=True)


def test_bins_may_be_a_list_of_one():
    x, y = [0.2, 0.6, 0.9], [0, 1, 1]
    want = compat.ECE(7).measure(x, y)
    assert compat.ECE((7,)).measure(x, y) == compat.ECE([7]).measure(x, y) == want
    with pytest.raises((ValueError, TypeError), match="bins"):
        compat.ECE((7, 7)).measure(x, y)


def test_detection_of_confidences_alone():
    x, y = np.array([0.2, 0.6, 0.9]), np.array([0, 1, 1])
    want = compat.ECE(10).measure(x, y)
    assert compat.ECE(10, detection=True).measure(x, y) == want
    assert compat.ECE(10, detection=True).measure(x[:, None], y) == want


def test_two_labels_of_more_classes(peer):
    x = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]])
    y = np.array([0, 1, 0, 1])
    with pytest.raises(RuntimeError, match="binary classification problem"):
        peer.ECE(10).measure(x, y)
    # 0.5 and 0.6 are in one bin: the edge of numpy is the float above 0.6.
    want = (abs(0.5 - 0.6) + 0.2 + 0.4) / 4
    assert compat.ECE(10).measure(x, y) == pytest.approx(want)


def test_equal_quantiles(peer):
    """Equal edges are an error there, empty bins here."""
    x, y = np.array([0.2, 0.2, 0.2, 0.2, 0.9]), np.array([0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match="smallest edge difference"):
        quietly(peer.ECE(3, equal_intervals=False).measure, x, y)
    want = reference.netcal_error("ECE", x.tolist(), y.tolist(), 3, False, 1, np.float64)
    got = compat.ECE(3, equal_intervals=False).measure(x, y)
    assert got == pytest.approx(want, abs=1e-14)
    assert got == pytest.approx(0.8 * 0.3 + 0.2 * 0.1)
    with pytest.raises(ValueError, match="smallest edge difference"):
        quietly(peer.ECE(3, equal_intervals=False).measure, x[:1], y[:1])
    assert compat.ECE(3, equal_intervals=False).measure(x[:1], y[:1]) == pytest.approx(0.2)


def test_float32_loses_rows_there(peer):
    """0.9 in float32 is below the edge by which rows are counted, and on that of the means."""
    x, y = np.array([0.2, 0.6, 0.9], dtype=np.float32), np.array([0, 1, 1])
    assert quietly(peer.ECE(10).measure, x, y) == pytest.approx(0.2, abs=1e-6)
    assert compat.ECE(10).measure(x, y) == pytest.approx(0.7 / 3, abs=1e-7)
