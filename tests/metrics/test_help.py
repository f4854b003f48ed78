"""Names, help and objects of the package in a console."""

import pydoc
from types import ModuleType

import numpy as np
import pytest

import fastece
from fastece import ESTIMATORS
from fastece.streams import CalibrationMetric

RNG = np.random.default_rng(0)
P = RNG.random(500)
Y = (RNG.random(500) < P).astype(int)


def test_dir_shows_the_public_names_alone():
    modules = [x for x in dir(fastece) if x not in fastece.__all__]
    assert {*fastece.__all__} <= {*dir(fastece)}
    assert all(isinstance(getattr(fastece, name), ModuleType) for name in modules)
    assert not [name for name in dir(fastece) if name.startswith("_")]


def test_help_lists_every_estimator_of_the_table():
    text = pydoc.plain(pydoc.render_doc(fastece.ece))
    notes = text[text.index("Notes\n") : text.index("Examples\n")]
    lines = [line.strip() for line in notes.splitlines() if line.strip().startswith('- "')]
    assert [line.partition(": ")[0] for line in lines] == [
        f'- "{name}", {estimator}' for name, estimator in ESTIMATORS.items()
    ]


def test_objects_are_readable_in_a_console():
    metric = CalibrationMetric(estimator="ece_a", n_bins=10)
    metric.update(P, Y)
    assert str(metric) == repr(metric)
    assert repr(metric).startswith("<CalibrationMetric('ece_a', n_bins=10) of <Accumulator(): 500 ")
    report = fastece.calibration_report(Y, P, n_resamples=0, title="a model")
    assert repr(report) == f"<Report('a model'): {report.headline}>"
    curve = fastece.reliability_curve(Y, P)
    assert len(repr(curve)) < 1000
    diagrams = fastece.reliability_diagram(Y, np.column_stack([1 - P, P]), setting="classwise")
    assert len(repr(diagrams)) < 250
    assert "array" not in repr(diagrams)


def test_a_display_is_readable_in_a_console():
    display = pytest.importorskip("fastece.sklearn").ReliabilityDisplay
    diagram = fastece.reliability_diagram(Y, P)
    text = f"<ReliabilityDisplay('a'): error {diagram.value:.4f}>"
    assert repr(display(diagram, name="a")) == text
    diagrams = fastece.reliability_diagram(Y, np.column_stack([1 - P, P]), setting="classwise")
    assert repr(display(diagrams)).count(".") == 2
