"""Results in a notebook: the numbers of their text, in a table whose texts are escaped."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import fastece
from fastece.document.result import Results

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
def test_notebooks_markdown_and_text_show_the_same(name):
    result = RESULTS[name]()
    title, rows, notes = parts_of(result)
    first, *lines = str(result).splitlines()
    assert first == title
    shown = ["".join("".join(row).split()) for row in rows]
    assert [*shown, *("".join(note.split()) for note in notes)] == [
        "".join(line.split()) for line in lines
    ]
    markdown = result.to_markdown()
    for row in rows:
        assert all(cell.split("[")[0].split("*")[0] in markdown for cell in row[1:])


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_json_and_data_frames(name):
    result = RESULTS[name]()
    json.dumps(result.to_dict(), allow_nan=False)
    assert len(result.to_frame()) >= 1


def test_what_is_in_tables_is_text():
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
    for found in (result, fastece.bootstrap(Y, P, estimator=Hostile(), n_resamples=9, rng=0)):
        text = found._repr_html_() + found.to_markdown()
        assert "<script" not in text.replace("\\<script", "")
        assert "<img" not in text.replace("\\<img", "")
        assert parts_of(found)[0] == str(found).splitlines()[0]
    assert label in parts_of(result)[0]


def test_no_results_are_an_empty_table():
    assert parts_of(Results()) == ("no results", [], [])
    assert (Results().to_dict(), len(Results().to_frame())) == ({}, 0)
