"""Results in a notebook: the numbers of their text, in a table whose texts are escaped."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import fastece
from fastece.resampling.results import Results

rng = np.random.default_rng(0)
P = rng.random(60)
Y = (rng.random(60) < P).astype(int)
SHARE = np.column_stack([P, 1 - P])


def cells_of(result):
    """The caption, and the cells of every row."""
    table = ET.fromstring(result._repr_html_())
    assert table.tag == "table"
    caption, *rows = table
    assert {cell.tag for cell in rows[0]} <= {"th"}
    assert {cell.tag for row in rows[1:] for cell in row} <= {"td"}
    return caption.text, [[cell.text or "" for cell in row] for row in rows]


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
def test_tables_hold_what_the_text_does(name):
    result = RESULTS[name]()
    title, rows = cells_of(result)
    first, *lines = str(result).splitlines()
    assert first == title
    assert len({len(row) for row in rows}) == 1
    assert ["".join("".join(row).split()) for row in rows] == ["".join(x.split()) for x in lines]


def test_what_is_said_below_the_numbers_spans_the_table():
    direction = fastece.direction(Y, P, n_resamples=0)
    many = fastece.slices(np.tile(Y, 2), np.tile(P, 2), by=np.arange(120) // 2)
    for result, note in (
        (direction, "verdict: unclear"),
        (many, "and 20 groups with less evidence"),
    ):
        *_, head, last = ET.fromstring(result._repr_html_())
        assert (last[0].text, last[0].get("colspan")) == (note, str(len(head)))
        assert str(result).splitlines()[-1].strip() == note


def test_what_is_in_tables_is_text():
    class Hostile(fastece.Binned):
        """An estimator with a name that would be a script."""

        def __str__(self) -> str:
            return "<script>alert('&')</script>"

    label = "<img src=x onerror=alert(1)>"
    groups = fastece.slices(Y, P, by=np.where(Y, label, "b"))
    assert "<img" not in groups._repr_html_()
    assert label in [row[0] for row in cells_of(groups)[1]]
    result = fastece.reliability_diagram(
        np.where(Y, label, "b"), SHARE, labels=["b", label], setting=1
    )
    for found in (result, fastece.bootstrap(Y, P, estimator=Hostile(), n_resamples=9, rng=0)):
        text = found._repr_html_()
        assert "<script" not in text
        assert "<img" not in text
        assert cells_of(found)[0] == str(found).splitlines()[0]
    assert label in cells_of(result)[0]


def test_no_results_are_an_empty_table():
    assert cells_of(Results()) == ("no results", [[]])
