"""Pictures are drawn on the axes that are given and change nothing else."""

import numpy as np
import pytest

import fastece

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture
def diagram():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    return fastece.reliability_diagram(rng.random(300) < p**1.5, p, n_bins=10)


def test_diagram_draws_what_it_holds_on_the_given_axes(diagram):
    from matplotlib import pyplot as plt

    before = dict(matplotlib.rcParams)
    figure, (left, right) = plt.subplots(1, 2)
    assert diagram.plot(ax=right) is right
    assert not left.has_data()
    line = right.get_lines()[-1]
    assert line.get_xdata().tolist() == diagram.score.tolist()
    assert line.get_ydata().tolist() == diagram.frequency.tolist()
    assert len(right.patches) == 10
    heights = [bar.get_height() for bar in right.patches]
    assert np.argmax(heights) == np.argmax(diagram.count)
    assert dict(matplotlib.rcParams) == before
    plt.close(figure)


def test_without_axes_a_figure_is_made(diagram):
    from matplotlib import pyplot as plt

    ax = diagram.plot()
    assert ax.get_xlabel() == "mean score"
    assert f"{diagram.value:.4f}" in ax.get_title()
    plt.close(ax.figure)
