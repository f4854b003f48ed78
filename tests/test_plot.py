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


def test_band_is_a_bar_in_each_bin_that_holds_rows():
    from matplotlib import pyplot as plt

    rng = np.random.default_rng(0)
    p = rng.random(300) * 0.8
    y = rng.random(300) < p
    diagram = fastece.reliability_diagram(y, p, n_bins=10)
    band = fastece.calibration_test(y, p, n_bins=10, n_resamples=99, rng=0).band
    text = str(diagram)
    ax = diagram.plot(band=band)
    bars = ax.patches[10:]
    assert len(bars) == np.count_nonzero(diagram.count) == 8
    assert [bar.get_y() for bar in bars] == band.low[:8].tolist()
    tops = [bar.get_y() + bar.get_height() for bar in bars]
    assert tops == pytest.approx(band.high[:8].tolist())
    assert "95 % if calibrated" in [t.get_text() for t in ax.get_legend().get_texts()]
    assert str(diagram) == text
    plt.close(ax.figure)


def test_band_of_other_bins_is_refused(diagram):
    from matplotlib import pyplot as plt

    p = np.linspace(0, 1, 50)
    for n_bins in (5, 60):
        band = fastece.calibration_test(p > 0.5, p, n_bins=n_bins, n_resamples=9, rng=0).band
        with pytest.raises(ValueError, match="band: must be of the bins of the diagram, 10 of"):
            diagram.plot(band=band)
    assert not plt.get_fignums()
