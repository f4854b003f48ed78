"""Pictures of cumulative gaps."""

import numpy as np
import pytest

import fastece
from fastece.display.marks import is_model
from fastece.display.pictures import BROWNIAN_QUANTILE, MAX_PATH_POINTS, distinct_labels
from fastece.estimators.cumulative import size_survival

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

RNG = np.random.default_rng(0)
P = RNG.random(300).round(2)
Y = RNG.random(300) < P**1.3
W = RNG.random(300) + 0.1


def draw(y, p, **options):
    ax = fastece.cumulative_plot(y, p, ax=Figure(layout="constrained").subplots(), **options)
    ax.figure.draw_without_rendering()
    return ax, [line.get_xydata().T for line in ax.get_lines() if is_model(line)]


def names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, W])
def test_the_path_is_the_cumulative_gap_and_its_slope_the_mean_gap(weight):
    ax, [(share, gap)] = draw(Y, P, sample_weight=weight)
    w = np.ones(P.size) if weight is None else weight
    scores = np.unique(P)
    below = scores[:, None] >= P
    assert share == pytest.approx(np.append(0, below @ w / w.sum()))
    assert gap == pytest.approx(np.append(0, below @ (w * (Y - P)) / w.sum()), abs=1e-12)
    value = fastece.ece(Y, P, estimator="ecce_r", sample_weight=weight)
    assert np.ptp(gap) == pytest.approx(value)
    (top,) = ax.child_axes
    ticks = [label.get_text() for label in top.get_xticklabels()]
    assert ticks[::4] == [f"{P.min():.2g}", f"{P.max():.2g}"]
    assert names(ax) == ["calibrated", f"range {value:.4f}", "95 % of calibrated models"]


@pytest.mark.slow
def test_two_models_have_two_lines_with_their_names():
    ax, paths = draw(Y, {"old_1": P, "$new": P**1.3})
    assert len(paths) == 2
    assert [name.partition(",")[0] for name in names(ax)[1:3]] == ["old_1", "$new"]
    ax, paths = draw(Y, P, setting="binary")
    assert ax is fastece.cumulative_plot(Y, P, ax=ax)  # beside the first


@pytest.mark.slow
def test_long_paths_keep_their_extremes():
    p = RNG.random(20_000)
    y = RNG.random(p.size) < p**1.2
    _, [(_, gap)] = draw(y, p)
    assert gap.size <= MAX_PATH_POINTS + 2
    assert np.ptp(gap) == pytest.approx(fastece.ece(y, p, estimator="ecce_r"))


@pytest.mark.slow
def test_a_stream_has_nearly_the_same_path():
    state = fastece.Accumulator(None).update(Y, P)
    _, [(share, gap)] = draw(state, None)
    _, [(exact_share, exact_gap)] = draw(Y, P)
    assert np.interp(exact_share, share, gap) == pytest.approx(exact_gap, abs=1e-3)


def test_the_band_is_that_of_brownian_motion():
    assert size_survival(BROWNIAN_QUANTILE) == pytest.approx(0.05, abs=1e-6)


def test_a_new_figure_is_made_and_bad_input_refused():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = fastece.cumulative_plot(Y, P)
    assert pyplot.gcf() is ax.figure
    pyplot.close(ax.figure)
    with pytest.raises(ValueError, match="y_prob: must have at least one model"):
        fastece.cumulative_plot(Y, {})
    with pytest.raises(ValueError, match="setting: must be that of one problem"):
        draw(Y, np.column_stack([1 - P, P]), setting="classwise")


def test_scores_above_a_path_have_labels_that_differ():
    assert distinct_labels([0.341, 0.9960, 0.99971, 0.99998, 1.0]) == [
        "0.341", "0.996", "0.99971", "0.99998", "1",
    ]  # fmt: skip
    assert distinct_labels([0.1, 0.25, 0.5, 0.75, 0.9]) == ["0.1", "0.25", "0.5", "0.75", "0.9"]
    assert distinct_labels([0.5, 1.0, 1.0, 1.0, 1.0]) == ["0.5", "1", "", "", ""]
    assert distinct_labels([0.5, 1 - 1e-9, 1.0]) == ["0.5", "1", ""]
