"""Displays: the diagram of the right problem, on the right axes."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import fastece
from fastece.sklearn import ReliabilityDisplay
from helpers.sklearn_cases import fitted

matplotlib.use("agg")


def assert_same_diagram(diagram, expected):
    for name in ("edges", "count", "frequency"):
        np.testing.assert_array_equal(getattr(diagram, name), getattr(expected, name))
    np.testing.assert_allclose(diagram.score, expected.score, rtol=0, atol=1e-15)
    assert diagram.setting == expected.setting
    assert diagram.estimator == expected.estimator


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.slow
def test_a_display_shows_the_diagram_of_the_second_class():
    data, model = fitted(2)
    display = ReliabilityDisplay.from_estimator(model, data.X, data.y, n_bins=8)
    prob = model.predict_proba(data.X)[:, 1]
    expected = fastece.reliability_diagram(data.y, prob, n_bins=8, labels=["ant", "bee"])
    assert_same_diagram(display.diagram, expected)
    assert display.diagram.setting == "binary ('bee')"
    assert display.name == "GaussianNB"
    assert display.figure_ is display.ax_.figure
    assert display.figure_.axes == [display.ax_]
    assert f"GaussianNB, ECE {expected.value:.3f}" in legend_of(display.ax_)
    drawn = {*display.ax_.lines, *display.ax_.collections, *display.ax_.patches}
    assert {*display.artists_} == drawn


@pytest.mark.slow
def test_a_display_of_several_classes_shows_the_top_label():
    data, model = fitted(3)
    display = ReliabilityDisplay.from_estimator(
        model, data.X, data.y, sample_weight=data.w, estimator="ece_a", n_bins=5
    )
    expected = fastece.reliability_diagram(
        data.y, model.predict_proba(data.X), estimator="ece_a", n_bins=5, sample_weight=data.w,
        labels=model.classes_,
    )  # fmt: skip
    assert_same_diagram(display.diagram, expected)
    of_cow = ReliabilityDisplay.from_estimator(model, data.X, data.y, setting=2)
    assert of_cow.diagram.setting == "class 2 ('cow')"


@pytest.mark.slow
@pytest.mark.parametrize("pos_label", ["ant", "bee"])
def test_a_display_shows_the_positive_label(pos_label):
    data, model = fitted(2)
    prob = model.predict_proba(data.X)[:, ["ant", "bee"].index(pos_label)]
    of_model = ReliabilityDisplay.from_estimator(model, data.X, data.y, pos_label=pos_label)
    display = ReliabilityDisplay.from_predictions(data.y, prob, pos_label=pos_label)
    assert_same_diagram(of_model.diagram, display.diagram)
    assert_same_diagram(
        display.diagram, fastece.reliability_diagram(data.y, prob, pos_label=pos_label)
    )
    assert display.name is None


def test_unknown_positive_labels_are_refused():
    for n_classes, words in ((2, "class 1, 'bee', got 'cow'"), (3, "needs P.positive. or 2 col")):
        data, model = fitted(n_classes)
        with pytest.raises(ValueError, match=words):
            ReliabilityDisplay.from_estimator(model, data.X, data.y, pos_label="cow")
    with pytest.raises(ValueError, match="pass pos_label="):
        ReliabilityDisplay.from_predictions(["a", "b"], [0.2, 0.7])


def test_two_models_share_axes():
    data, model = fitted(2)
    figure, ax = plt.subplots()
    first = ReliabilityDisplay.from_estimator(model, data.X, data.y, ax=ax, color="black")
    second = ReliabilityDisplay.from_estimator(
        GaussianNB(var_smoothing=1.0).fit(data.X, data.y), data.X, data.y, ax=ax, name="smooth"
    )
    assert first.ax_ is second.ax_ is ax
    assert first.figure_ is second.figure_ is figure
    assert figure.axes == [ax]
    names = [name for name in legend_of(ax) if ", ECE" in name]
    assert names == [
        f"GaussianNB, ECE {first.diagram.value:.3f}", f"smooth, ECE {second.diagram.value:.3f}"
    ]  # fmt: skip
    assert not {*first.artists_} & {*second.artists_}
    assert {*first.artists_, *second.artists_} == {*ax.lines, *ax.collections, *ax.patches}
    assert first.artists_[1].get_color() == "black"


@pytest.mark.slow
def test_a_display_is_drawn_again_with_other_options():
    data, model = fitted(2)
    display = ReliabilityDisplay.from_estimator(model, data.X, data.y)
    _, (left, right) = plt.subplots(1, 2)
    assert display.plot(left, name="again", band=False) is display
    assert display.ax_ is left
    assert any("again, ECE" in name for name in legend_of(left))
    assert not any("interval" in name for name in legend_of(left))
    display.plot(ax=right, legend=False)
    assert display.ax_ is right
    assert right.get_legend() is None
    assert display.name == "GaussianNB"


@pytest.mark.slow
def test_each_class_has_its_axes():
    data, model = fitted(3)
    display = ReliabilityDisplay.from_estimator(model, data.X, data.y, setting="classwise")
    expected = fastece.reliability_diagram(
        data.y, model.predict_proba(data.X), setting="classwise", labels=model.classes_
    )
    for diagram, of_class in zip(display.diagram, expected, strict=True):
        assert_same_diagram(diagram, of_class)
    assert display.ax_.shape == (3,)
    assert display.ax_.tolist() == display.figure_.axes
    for ax, diagram in zip(display.ax_, expected, strict=True):
        title = f"{diagram.setting} {diagram.value:.4f}"
        assert ax.get_title().replace(",", "").split() == title.split()
        assert {*ax.lines, *ax.collections, *ax.patches} <= {*display.artists_}
    display.plot(name="bayes")
    assert "bayes" in [text.get_text() for text in display.figure_.legends[0].get_texts()]
    for options in ({"ax": plt.gca()}, {"color": "red"}, {"legend": False}):
        with pytest.raises(ValueError, match="setting: 'classwise' fills a figure of its own"):
            display.plot(**options)
