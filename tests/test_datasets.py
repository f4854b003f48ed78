"""Predictions that ship with fastece: their sizes, values and names, and how they were made."""

import re
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece import datasets

ROOT = Path(__file__).parents[1]
SHAPES = {
    "digits_random_forest": (1797, 10),
    "digits_network": (1797, 10),
    "breast_cancer": (569,),
}


def test_every_data_set_is_listed_with_its_shape():
    assert list(SHAPES) == list(datasets.FILES)
    shipped = {path.name for path in (ROOT / "fastece" / "data").glob("*.npz")}
    assert shipped == set(datasets.FILES.values())


@pytest.mark.parametrize("name", SHAPES)
def test_data_sets_are_labels_and_probabilities_of_classes_or_of_an_event(name):
    y, p = datasets.load(name)
    shape = SHAPES[name]
    assert p.shape == shape
    assert y.shape == shape[:1]
    n_classes = shape[1] if len(shape) == 2 else 2
    assert sorted({*y.tolist()}) == [*range(n_classes)]
    assert ((p >= 0) & (p <= 1)).all()
    if len(shape) == 2:
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert np.isfinite(fastece.log_loss(y, p))


def test_data_sets_have_fields_by_name():
    data = fastece.datasets.load("breast_cancer")
    assert data.y_true is data[0]
    assert data.y_prob is data[1]
    assert data.y_true.sum() == 212  # malignant


def test_changes_of_loaded_arrays_do_not_reach_the_next_load():
    datasets.load("breast_cancer").y_true[:] = 7
    assert datasets.load("breast_cancer").y_true.max() == 1


@pytest.mark.parametrize("name", ["iris", "digits_random_forest.npz", "", None, ["digits_network"]])
def test_other_names_are_refused_with_the_names_there_are(name):
    known = ", ".join(map(repr, SHAPES))
    message = f"name: must be a known name, got {name!r}; known: {known}"
    with pytest.raises(ValueError, match=re.escape(message)):
        datasets.load(name)


def test_tumours_are_predicted_as_their_script_does():
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.model_selection import StratifiedKFold
    from sklearn.naive_bayes import GaussianNB

    x, label = sklearn_datasets.load_breast_cancer(return_X_y=True)
    y, p = datasets.load("breast_cancer")
    assert ((label == 0) == y).all()
    train, test = next(StratifiedKFold(10, shuffle=True, random_state=0).split(x, label))
    model = GaussianNB().fit(x[train, :5], label[train])
    np.testing.assert_allclose(model.predict_proba(x[test, :5])[:, 0], p[test], atol=1e-9)
