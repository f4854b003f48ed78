"""Fields of results, their text, and their plain values."""

import json
import pickle
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

import fastece
from fastece import Binned
from fastece.display.results import Results
from helpers.probes import Mean, OneBin
from helpers.resample_cases import binary, classes, near, two_models


def test_standard_error_and_bias_describe_the_distribution():
    result = fastece.bootstrap(*binary(60), n_resamples=100, rng=0)
    assert result.bootstrap_distribution.shape == (100,)
    assert result.bootstrap_distribution.dtype == np.float64
    assert type(result.standard_error) is type(result.bias) is float
    assert result.standard_error == near(np.std(result.bootstrap_distribution, ddof=1))
    assert result.bias == near(np.mean(result.bootstrap_distribution) - result.value)
    of_classes = fastece.bootstrap(
        *classes(60), n_resamples=100, rng=0, setting="classwise", average=None
    )
    assert of_classes.standard_error == near(
        np.std(of_classes.bootstrap_distribution, axis=1, ddof=1)
    )
    assert of_classes.bias == near(
        np.mean(of_classes.bootstrap_distribution, axis=1) - of_classes.value
    )


def test_results_hold_the_arguments_in_use():
    weight = np.array([0, 1, 2] * 10)
    options = {"confidence_level": 0.9, "method": "percentile", "sample_weight": weight}
    result = fastece.bootstrap(*binary(30), n_resamples=20, rng=3, **options)
    assert (result.confidence_level, result.method, result.n, result.size) == (
        0.9, "percentile", 20, 20,
    )  # fmt: skip
    assert result.confidence_interval == result.interval(0.9, "percentile")
    assert result.confidence_interval._fields == ("low", "high")
    default = fastece.bootstrap(*binary(30), n_resamples=20)
    assert (default.confidence_level, default.method) == (0.95, "basic")
    assert default.confidence_interval == default.interval()


def test_pickled_results_hold_no_data():
    result = fastece.bootstrap(*binary(20_000), n_resamples=10, rng=0)
    assert len(pickle.dumps(result)) < 3000


def test_results_are_frozen_and_become_plain_values():
    data = two_models(30)
    options = {"n_resamples": 20, "rng": 0}
    for result in (
        fastece.bootstrap(*data[:2], **options),
        fastece.compare(*data, **options),
        fastece.calibration_test(*data[:2], **options),
    ):
        with pytest.raises(FrozenInstanceError):
            result.value = 0.0
        assert json.loads(json.dumps(result.to_dict()))["value"] == result.value
        assert pickle.loads(pickle.dumps(result)).value == result.value
    of_classes = fastece.bootstrap(*classes(30), setting="classwise", average=None, **options)
    assert json.loads(json.dumps(of_classes.to_dict()))["value"] == of_classes.value.tolist()
    assert of_classes.to_frame()["value"].tolist() == of_classes.value.tolist()


CALLS = {
    "bootstrap": lambda *data, **options: fastece.bootstrap(*data[:2], **options),
    "compare": lambda *data, **options: fastece.compare(*data, method="basic", **options),
    "calibration_test": lambda *data, **options: fastece.calibration_test(*data[:2], **options),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_several_results_are_a_table(call):
    options = {"n_resamples": 50, "rng": 0, "estimator": ["ece", Binned(n_bins=4)]}
    results = call(*two_models(40), **options)
    assert list(results) == ["ece", "Binned(n_bins=4)"]
    columns = results.to_dict()
    assert columns["name"] == list(results)
    lines = str(results).splitlines()
    assert "setting binary: 40 rows, 50 replicates" in lines[0]
    assert lines[1].split()[:2] == ["name", {"a": "a"}.get(list(columns)[1], "value")]
    for i, result in enumerate(results.values()):
        for name in ("value", "a", "b", "p_value", "bias"):
            if hasattr(result, name):
                assert columns[name][i] == getattr(result, name)
        if hasattr(result, "confidence_interval"):
            assert (columns["low"][i], columns["high"][i]) == result.confidence_interval
        assert lines[2 + i].split()[0] == list(results)[i]
    frame = results.to_frame()
    assert frame.equals(pd.DataFrame(columns))
    assert frame["name"].tolist() == list(results)


def test_tables_have_a_line_for_each_class():
    options = {"setting": "classwise", "average": None, "n_resamples": 20, "rng": 0}
    results = fastece.bootstrap(*classes(40), estimator=["ece", "ece_a"], **options)
    frame = results.to_frame()
    assert frame["class"].tolist() == [0, 1, 2] * 2
    assert frame["value"].tolist() == [*results["ece"].value, *results["ece_a"].value]
    assert len(str(results).splitlines()) == 8


def test_data_frames_without_pandas_raise_import_error(monkeypatch):
    results = fastece.bootstrap(*binary(20), estimator=["ece"], n_resamples=5, rng=0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame: needs pandas"):
        results.to_frame()


def test_estimators_without_a_text_are_named_by_their_class():
    options = {"n_resamples": 5, "rng": 0}
    several = [OneBin(), "ece", OneBin(), Mean()]
    results = fastece.bootstrap(*binary(20), estimator=several, **options)
    assert list(results) == ["OneBin", "ece", "OneBin 2", "Mean()"]
    for result in (
        results["OneBin"],
        fastece.bootstrap(*binary(20), estimator=OneBin(), **options),
    ):
        assert "OneBin" in result.estimator
        assert " at 0x" not in result.estimator


rng = np.random.default_rng(0)
P = rng.random(60)
Y = (rng.random(60) < P).astype(int)
SHARE = np.column_stack([P, 1 - P])


def parts_of(result):
    """The title, all cells, and the notes of a result in a notebook."""
    page = ET.fromstring(result._repr_html_().replace("<details>", ""))
    rows = [[cell.text or "" for cell in row] for row in page.iter("tr")]
    return page[0].text, rows, [note.text for note in page.iter("p")]


RESULTS = {
    "bootstrap": lambda: fastece.bootstrap(Y, P, n_resamples=32, rng=0),
    "list": lambda: fastece.bootstrap(Y, P, estimator=["ece", "ece_a"], n_resamples=32, rng=0),
    "compare": lambda: fastece.compare(Y, P, P**2, n_resamples=32, rng=0),
    "test": lambda: fastece.calibration_test(Y, P, n_resamples=32, rng=0),
    "estimate": lambda: fastece.estimate(Y, P, estimator="ece", n_resamples=99),
    "posterior": lambda: fastece.estimate(Y, P, estimator="ece_bayes"),
    "diagram": lambda: fastece.reliability_diagram(Y, P),
    "curve": lambda: fastece.reliability_curve(Y, P, estimator="ece_kde", n_resamples=32, rng=0),
    "bayes": lambda: fastece.reliability_curve(Y, P * 0.5, estimator="ece_bayes"),
    "slices": lambda: fastece.slices(Y, P, by=np.arange(60) % 3),
    "classes": lambda: fastece.direction(
        Y, SHARE[:, ::-1], setting="classwise", average=None, n_resamples=0
    ),
    "brier": lambda: fastece.brier_decomposition(Y, P),
    "isotonic": lambda: fastece.score_decomposition(Y, P),
    "alone": lambda: fastece.reliability_curve(Y, P, estimator="ece_kde"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_notebooks_markdown_and_text_show_equal_cells(name):
    result = RESULTS[name]()
    title, rows, notes = parts_of(result)
    first, *lines = str(result).splitlines()
    assert first == title
    cells = ["".join("".join(row).split()) for row in rows]
    assert [*cells, *("".join(note.split()) for note in notes)] == [
        "".join(line.split()) for line in lines
    ]
    markdown = result.to_markdown()
    for row in rows:
        assert all(cell.split("[")[0].split("*")[0] in markdown for cell in row[1:])


@pytest.mark.parametrize("name", RESULTS)
def test_texts_name_the_setting_and_the_estimator(name):
    result = RESULTS[name]()
    setting = "classwise" if name == "classes" else "binary"
    title, *lines = str(result).splitlines()
    assert f", setting {setting}:" in f", {title}"
    named = r"^\w+\(.*\), |^adaptive, |^Brier score by \w+"
    assert re.search(r"^ *ece +0" if name == "list" else named, "\n".join([title, *lines]), re.M)


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_json_and_data_frames(name):
    result = RESULTS[name]()
    json.dumps(result.to_dict(), allow_nan=False)
    assert len(result.to_frame()) >= 1


def test_tables_escape_markup():
    class Hostile(fastece.Binned):
        """An estimator with a name that would be a script."""

        def __str__(self) -> str:
            return "<script>alert('&')</script>"

    label = "<img src=x onerror=alert(1)>"
    groups = fastece.slices(Y, P, by=np.where(Y, label, "b"))
    assert "<img" not in groups._repr_html_()
    assert label in [row[0] for row in parts_of(groups)[1]]
    result = fastece.reliability_diagram(
        np.where(Y, label, "b"), SHARE, labels=["b", label], setting=1
    )
    for escaped in (result, fastece.bootstrap(Y, P, estimator=Hostile(), n_resamples=9, rng=0)):
        text = escaped._repr_html_() + escaped.to_markdown()
        assert "<script" not in text.replace("\\<script", "")
        assert "<img" not in text.replace("\\<img", "")
        assert parts_of(escaped)[0] == str(escaped).splitlines()[0]
    assert label in parts_of(result)[0]


def test_no_results_are_an_empty_table():
    assert parts_of(Results()) == ("no results", [], [])
    assert (Results().to_dict(), len(Results().to_frame())) == ({}, 0)
