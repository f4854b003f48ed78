"""Numbers found in print or worked out by hand, and real predictions."""

from math import inf
from pathlib import Path

import numpy as np
import pytest
import reference

import fastece

DATA = Path(__file__).parents[2] / "shared" / "data"

NINE_TRUE = [0, 1, 0, 0, 0, 0, 1, 1, 1]
NINE_PROB = [0.22, 0.64, 0.92, 0.42, 0.51, 0.15, 0.70, 0.37, 0.83]

TEN_TRUE = [0, 2, 3, 4, 2, 0, 1, 3, 3, 2]
TEN_PROB = [
    [0.25, 0.20, 0.22, 0.18, 0.15],
    [0.16, 0.06, 0.50, 0.07, 0.21],
    [0.06, 0.03, 0.80, 0.07, 0.04],
    [0.02, 0.03, 0.01, 0.04, 0.90],
    [0.40, 0.15, 0.16, 0.14, 0.15],
    [0.15, 0.28, 0.18, 0.17, 0.22],
    [0.07, 0.80, 0.03, 0.06, 0.04],
    [0.10, 0.05, 0.03, 0.75, 0.07],
    [0.25, 0.22, 0.05, 0.30, 0.18],
    [0.12, 0.09, 0.02, 0.17, 0.60],
]


def near(value):
    return pytest.approx(value, abs=1e-12)


def test_nine_points_read_as_top_label():
    assert fastece.ece(NINE_TRUE, NINE_PROB, setting="confidence", n_bins=5) == near(47 / 450)


def test_ten_points_of_five_classes_and_the_bins_that_give_the_printed_number():
    assert fastece.ece(TEN_TRUE, TEN_PROB, n_bins=5) == near(0.132)
    assert fastece.ece(TEN_TRUE, TEN_PROB, n_bins=3) == near(0.192)


def test_the_scores_one_and_zero_share_a_bin_with_their_neighbours():
    assert fastece.ece([1, 0], [0.95, 1.0], n_bins=10) == near(0.475)
    assert fastece.ece([1, 0], [0.0, 0.05], n_bins=10) == near(0.475)


def test_five_points_in_three_norms():
    true, prob = [0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75]
    assert fastece.ece(true, prob, n_bins=2) == near(0.29)
    assert fastece.ece(true, prob, n_bins=2, norm=2) == pytest.approx(0.29183328, abs=1e-8)
    assert fastece.ece(true, prob, n_bins=2, norm=inf) == near(0.95 / 3)
    assert fastece.mce(true, prob, n_bins=2) == pytest.approx(0.31666667, abs=5e-9)


def test_closed_decides_where_an_edge_goes():
    true, prob = [0, 0, 1], [0.5, 0.25, 0.75]
    assert fastece.ece(true, prob, n_bins=2) == near(1 / 3)
    assert fastece.ece(true, prob, n_bins=2, closed="left") == near(1 / 6)
    grid, hits = np.linspace(0.05, 0.95, 19), (np.arange(19) % 3 == 0).astype(int)
    assert fastece.ece(hits, grid, n_bins=10) == near(0.32631578947368417)
    assert fastece.ece(hits, grid, n_bins=10, closed="left") == pytest.approx(0.294737, abs=5e-7)


def real(name):
    """A file of real predictions, or a skip where it is not there."""
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not beside the repository")
    return DATA / name


def top_label(name):
    """(hit, confidence) of a CSV of true_label, pred_label, confidence."""
    true, predicted, confidence = np.loadtxt(real(name), delimiter=",", skiprows=1).T
    return true == predicted, confidence


@pytest.mark.parametrize(
    ("name", "published"),
    [("imagenet_resnet34.csv", 0.07798), ("cifar100_densenet40.csv", 0.21156)],
)
def test_real_top_label_predictions_give_the_published_error(name, published):
    hit, confidence = top_label(name)
    assert round(fastece.ece(hit, confidence, n_bins=15), 5) == published


@pytest.mark.slow
@pytest.mark.parametrize("name", ["imagenet_resnext101_32x8d.csv", "snacks.csv"])
def test_real_top_label_predictions_equal_the_reference(name):
    hit, confidence = (column[:10_000] for column in top_label(name))
    for estimator, fields in ESTIMATORS.items():
        want = reference.ece(hit.tolist(), confidence.tolist(), **fields)
        assert fastece.ece(hit, confidence, estimator=estimator) == near(want), estimator


ESTIMATORS = {
    "ece": {},
    "ece_a": {"edges": "quantile"},
    "ece_c": {"mapping": "convex"},
    "ece_ac": {"edges": "quantile", "mapping": "convex"},
}


@pytest.fixture(scope="module")
def cifar10():
    with np.load(real("cifar10_vgg16.npz")) as data:
        return data["labels"], data["probs"]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_real_class_vectors_equal_the_reference_in_every_setting(cifar10, estimator):
    labels, probs = (array[:2000] for array in cifar10)
    lists = labels.tolist(), probs.tolist()
    fields = ESTIMATORS[estimator]
    for setting in ("confidence", 0, 9):
        want = reference.ece(*lists, setting=setting, **fields)
        assert fastece.ece(labels, probs, setting=setting, estimator=estimator) == near(want), (
            setting
        )
    want = reference.ece(*lists, setting="classwise", average=None, **fields)
    options = {"setting": "classwise", "estimator": estimator}
    assert fastece.ece(labels, probs, average=None, **options) == near(want)
    assert fastece.ece(labels, probs, **options) == near(np.mean(want))
    hits = (labels == 3).astype(int)
    assert fastece.ece(hits, probs[:, 3], estimator=estimator) == near(
        fastece.ece(labels, probs, setting=3, estimator=estimator)
    )
