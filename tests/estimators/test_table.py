"""The table of estimators, and their values on problems."""

import re

import numpy as np
import pytest

from fastece import Binned
from fastece.data.threads import with_threads
from fastece.estimators.table import ESTIMATORS, find_estimator
from helpers.probes import Mean


def test_estimators_are_found_by_name_or_given():
    for name, estimator in ESTIMATORS.items():
        assert find_estimator(name, {}) is find_estimator(estimator, {}) is estimator


def test_fields_replace_those_of_the_estimator():
    for estimator in ("ece_a", Binned(edges="quantile")):
        changed = find_estimator(estimator, {"n_bins": 7})
        assert changed == Binned(n_bins=7, edges="quantile")
    assert find_estimator("ece", {"n_bins": 7}) is find_estimator("ece", {"n_bins": 7})
    # 1, 1.0 and True are equal, and only one of them is a number of bins.
    assert find_estimator("ece", {"n_bins": 1}).n_bins == 1
    for n_bins in (1.0, True, [1]):
        with pytest.raises((TypeError, ValueError), match="n_bins"):
            find_estimator("ece", {"n_bins": n_bins})


def test_a_changed_table_is_seen(monkeypatch):
    find_estimator("ece", {"n_bins": 7})
    monkeypatch.setitem(ESTIMATORS, "ece", Binned(norm=2))
    assert find_estimator("ece", {"n_bins": 7}) == Binned(n_bins=7, norm=2)


@pytest.mark.parametrize(
    ("estimator", "fields", "message"),
    [
        ("eec", {}, "estimator: must be a known name, got 'eec'"),
        (Binned, {}, "estimator: must be a name or an object with prepare and evaluate"),
        (None, {}, "estimator: must be a name"),
        ("ece", {"bins": 7}, "bins: is not a parameter of the estimator Binned"),
        (Binned(), {"bins": 7}, "bins: is not a parameter of the estimator Binned"),
        (Mean(), {"n_bins": 7}, "n_bins: is not a parameter of the estimator Mean"),
    ],
)
def test_others_are_refused(estimator, fields, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        find_estimator(estimator, fields)


def test_one_thread_is_the_map_that_is_built_in():
    assert with_threads(1, lambda run: run) is map
    assert with_threads(3, lambda run: list(run(np.sqrt, [4.0, 9.0]))) == [2.0, 3.0]
