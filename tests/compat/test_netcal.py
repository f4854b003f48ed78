"""`fastece.compat.netcal` gives the values of netcal."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from fastece.compat import netcal as compat
from helpers.compat_cases import (
    ONLY_QUICK,
    RANDOM_LABELS,
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

pytestmark = RANDOM_LABELS

METRICS = ("ECE", "MCE", "ACE")


@pytest.fixture
def peer():
    library("netcal")
    return library("netcal.metrics")


class Case(NamedTuple):
    """Data, arguments of a metric, and the type of its probabilities."""

    x: Any
    y: Any
    bins: int
    equal_intervals: bool
    sample_threshold: int
    kind: type

    def metric_of(self, module, name):
        """The metric of a module; its third argument, `detection`, stays False."""
        return getattr(module, name)(self.bins, self.equal_intervals, False, self.sample_threshold)

    @property
    def clipped_scores(self):
        """The scores of the problem, limited to [eps, 1 - eps] as netcal limits them."""
        tiny = float(np.finfo(self.kind).eps)
        scores, _ = reference.netcal_problem(self.x.tolist(), self.y.tolist(), tiny)
        return np.array(scores, dtype=self.kind)

    def loses_rows(self):
        """Does netcal count rows in one bin and average them in another, by edges of two types?"""
        if self.kind is np.float64:
            return False
        scores = self.clipped_scores
        edges = np.linspace(0, 1, self.bins + 1)
        if not self.equal_intervals:
            edges[1:-1] = np.quantile(scores, edges[1:-1])
        bins_of_counts = np.searchsorted(edges, scores, "right")
        bins_of_means = np.searchsorted(edges.astype(self.kind), scores, "right")
        return bool((bins_of_counts != bins_of_means).any())

    def refusal(self):
        """The message with which netcal refuses a case that has a value, or None."""
        labels = self.y if self.y.ndim == 1 else self.y.argmax(axis=1)
        if self.x.ndim == 2 and self.x.shape[1] > 2 and len(np.unique(labels)) <= 2:
            return "binary classification problem"
        if not self.equal_intervals:
            edges = np.linspace(0, 1, self.bins + 1)
            edges[1:-1] = np.quantile(self.clipped_scores, edges[1:-1])
            if (np.diff(edges.astype(self.kind)) == 0).any():
                return "smallest edge difference"
        return None


def draw_case(rng, x, y, n_bins, kind):
    """A case with equal intervals or masses, and with a threshold."""
    equal_intervals = bool(rng.random() < 0.6)
    sample_threshold = int(rng.choice([0, 1, 1, 2, 5]))
    return Case(x, y, n_bins, equal_intervals, sample_threshold, kind)


def binary_metric_case(seed):
    """A case with scores as a vector, one column or two; some labels are indicators."""
    rng, scores, hits, n_bins, kind = binary_case(seed)
    shape = seed % 4
    x = scores if shape < 2 else scores[:, None]
    if shape == 3:
        x = np.column_stack([1 - scores, scores])
    y = np.eye(2, dtype=int)[hits] if seed % 7 == 0 and len(hits) > 1 else hits
    return draw_case(rng, x, y, n_bins, kind)


def class_metric_case(seed):
    """A case with class vectors; one in four has labels as indicators."""
    rng, x, labels, n_bins, kind = class_case(seed)
    k = x.shape[1]
    y = np.eye(k, dtype=int)[labels] if seed % 4 == 0 and k > 2 and len(labels) > 1 else labels
    return draw_case(rng, x, y, n_bins, kind)


SHAPES = pytest.mark.parametrize("make", [binary_metric_case, class_metric_case])


@ONLY_QUICK
@SHAPES
@pytest.mark.parametrize("metric", METRICS)
def test_values_equal_the_reference(metric, make, seeds):
    for seed in seeds:
        case = make(seed)
        got = case.metric_of(compat, metric).measure(case.x, case.y)
        assert isinstance(got, np.float64)
        lists = case._replace(x=case.x.tolist(), y=case.y.tolist())
        want = reference.netcal_error(metric, **lists._asdict())
        near(got, want, 1e-12, seed)


def test_lists_of_arrays_need_batched_as_in_netcal():
    sets = [np.array([0.2, 0.7]), np.array([0.4, 0.9])]
    labels = [np.array([0, 1]), np.array([1, 1])]
    metric = compat.ECE(10)
    with pytest.raises(TypeError, match=r"X: is a list of arrays.*batched=True averages"):
        metric.measure(sets, labels)
    with pytest.raises(TypeError, match="X: must be a list of arrays"):
        metric.measure(np.array(sets), labels, batched=True)
    with pytest.raises(TypeError, match="y: must be a list of arrays"):
        metric.measure(sets, np.array(labels), batched=True)
    assert metric.measure(sets, labels, batched=True) == pytest.approx((0.25 + 0.35) / 2)


@SEEDS
@SHAPES
@pytest.mark.parametrize("metric", METRICS)
def test_values_equal_the_library(peer, metric, make, seeds):
    """Where netcal gives a value; where not, its error."""

    def compare(seed):
        case = make(seed)
        theirs = case.metric_of(peer, metric)
        message = case.refusal()
        if message is not None:
            with pytest.raises((RuntimeError, ValueError), match=message):
                quietly(theirs.measure, case.x, case.y)
            return False
        if case.loses_rows():
            return False
        got = case.metric_of(compat, metric).measure(case.x, case.y)
        want = quietly(theirs.measure, case.x, case.y)
        near(got, want, tolerance(case.kind, len(case.y)), seed)
        return True

    until(seeds, compare)


@pytest.mark.parametrize("equal_intervals", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_batched_data_give_the_mean(metric, equal_intervals):
    rng = np.random.default_rng(2)
    x = [rng.random(n) for n in (9, 30, 31)]
    y = [rng.integers(0, 2, n) for n in (9, 30, 31)]
    measure = getattr(compat, metric)(4, equal_intervals).measure
    values = [measure(scores, hits) for scores, hits in zip(x, y, strict=True)]
    for lists in ((x, y), (tuple(x), tuple(y))):
        assert measure(*lists, batched=True) == pytest.approx(np.mean(values), abs=1e-14)
    with pytest.raises(ValueError, match=r"X|y"):
        measure(x, y[:2], batched=True)
    with pytest.raises(ValueError, match=r"X|y"):
        measure([], [], batched=True)


def test_bins_may_be_a_list_of_one():
    x = [0.2, 0.6, 0.9]
    y = [0, 1, 1]
    want = compat.ECE(7).measure(x, y)
    assert compat.ECE((7,)).measure(x, y) == compat.ECE([7]).measure(x, y) == want
    with pytest.raises((ValueError, TypeError), match="bins"):
        compat.ECE((7, 7)).measure(x, y)


def test_detection_takes_confidences_alone():
    x = np.array([0.2, 0.6, 0.9])
    y = np.array([0, 1, 1])
    want = compat.ECE(10).measure(x, y)
    assert compat.ECE(10, detection=True).measure(x, y) == want
    assert compat.ECE(10, detection=True).measure(x[:, None], y) == want


def test_two_labels_of_three_classes_have_a_value(peer):
    """netcal refuses them."""
    x = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]])
    y = np.array([0, 1, 0, 1])
    with pytest.raises(RuntimeError, match="binary classification problem"):
        peer.ECE(10).measure(x, y)
    # 0.5 and 0.6 are in one bin: the edge of numpy is the float above 0.6.
    want = (abs(0.5 - 0.6) + 0.2 + 0.4) / 4
    assert compat.ECE(10).measure(x, y) == pytest.approx(want)


def test_equal_quantiles_make_empty_bins(peer):
    """netcal refuses equal edges."""
    x = np.array([0.2, 0.2, 0.2, 0.2, 0.9])
    y = np.array([0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match="smallest edge difference"):
        quietly(peer.ECE(3, equal_intervals=False).measure, x, y)
    case = Case(x.tolist(), y.tolist(), 3, False, 1, np.float64)
    want = reference.netcal_error("ECE", **case._asdict())
    got = compat.ECE(3, equal_intervals=False).measure(x, y)
    assert got == pytest.approx(want, abs=1e-14)
    assert got == pytest.approx(0.8 * 0.3 + 0.2 * 0.1)
    with pytest.raises(ValueError, match="smallest edge difference"):
        quietly(peer.ECE(3, equal_intervals=False).measure, x[:1], y[:1])
    assert compat.ECE(3, equal_intervals=False).measure(x[:1], y[:1]) == pytest.approx(0.2)


def test_float32_does_not_lose_rows(peer):
    """In netcal 0.9 in float32 is below the edge for counts, and on the edge for means."""
    x = np.array([0.2, 0.6, 0.9], dtype=np.float32)
    y = np.array([0, 1, 1])
    assert quietly(peer.ECE(10).measure, x, y) == pytest.approx(0.2, abs=1e-6)
    assert compat.ECE(10).measure(x, y) == pytest.approx(0.7 / 3, abs=1e-7)
