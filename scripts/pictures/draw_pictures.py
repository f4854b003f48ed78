"""Draw the pictures of the README and of pages of docs, into docs/pictures, in five seconds.

Pictures of models show simulated ones whose true hit rates are known, and are the same every time.
"""

import argparse
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import fastece
from fastece.display.axes import new_figure, settle_layout
from fastece.display.marks import BLACK, GREY
from fastece.recalibration import recalibrate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
BLUE = "#0072B2"
ORANGE = "#D55E00"
COLOURS = [BLUE, ORANGE, "#009E73", BLACK, "#F0E442"]
BINS = 5
# Inches. At this width letters can still be read on a phone.
WIDTH = 5.4
HEIGHT = 5.2


def small_model() -> tuple[Any, Any]:
    """Return hits and scores of 200 rows of an over-confident model."""
    rng = np.random.default_rng(4)
    p = rng.beta(1.4, 0.9, size=200)
    return rng.random(200) < truth_of(p), p


def truth_of(score: Any) -> Any:
    """Return the true hit rate of the small model at a score."""
    return 0.18 + 0.6 * score


def front_picture() -> "Figure":
    """Draw a random forest before and after temperature scaling, out of fold."""
    y, p = fastece.datasets.load("digits_random_forest")
    recalibrated = recalibrate(y, p, method="temperature")
    figure = new_figure((7.0, 4.4))
    for ax, title, probability in zip(
        figure.subplots(1, 2),
        ("A random forest: under-confident", "After temperature scaling"),
        (p, recalibrated),
        strict=True,
    ):
        fastece.reliability_plot(y, probability, ax=ax)
        ax.set_title(title, fontsize=10)
    return figure


def draw_frame(ax: "Axes", name: str, subtitle: str) -> None:
    """Draw the diagonal, the true curve and the rows, with an estimator as the title."""
    y, p = small_model()
    s = np.array([0.0, 1.0])
    ax.plot(s, s, color=GREY, linewidth=0.8)
    ax.plot(s, truth_of(s), color=BLACK, linewidth=0.9, linestyle=":")
    for hit, place in ((True, 1.03), (False, -0.03)):
        ax.plot(p[y == hit], np.full((y == hit).sum(), place), "|", color=GREY, markersize=4)
    ax.set(xlim=(0, 1), ylim=(-0.06, 1.06))
    ax.set_title(f'"{name}": {subtitle}', fontsize=9)
    ax.tick_params(labelsize=8)


def draw_bins(ax: "Axes", name: str, subtitle: str, n_bins: int = BINS) -> None:
    """Draw the bins of an estimator: shares of rows below, hit rates and their gaps above."""
    y, p = small_model()
    draw_frame(ax, name, subtitle)
    bins = "ece_a" if name == "ece_sweep" else name
    diagram = fastece.reliability_diagram(y, p, estimator=bins, n_bins=n_bins)
    score = np.linspace(0, 1, 1001)
    centres = (diagram.edges[1:] + diagram.edges[:-1]) / 2
    for b, is_bin in enumerate(np.eye(n_bins)):
        if name in ("ece_c", "ece_ac"):
            share = np.interp(score, centres, is_bin)
        else:
            share = (score > diagram.edges[b]) & (score <= diagram.edges[b + 1])
        # Neighbours have different greys.
        alpha = 0.25 if b % 2 == 0 else 0.5
        ax.fill_between(score, 0.18 * share, color=GREY, alpha=alpha, linewidth=0)
    ax.vlines(diagram.score, diagram.score, diagram.frequency, color=ORANGE, linewidth=2)
    ax.plot(diagram.score, diagram.frequency, "o", color=BLUE, markersize=5)


def paper_picture() -> "Figure":
    """Draw a diagram of two models, and one by isotonic regression, as papers have them."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 1.2, 1200)
    y = rng.random(1200) < p**1.5
    figure = new_figure((6.6, 4.1))
    left, right = figure.subplots(1, 2)
    fastece.reliability_plot(y, {"network": p, "scaled": p**1.5}, ax=left)
    fastece.reliability_plot(y, p, curve="isotonic", ax=right)
    return figure


def monitor_picture() -> "Figure":
    """Draw the e-value of the example in docs/how_to/monitor.md: odds are shifted from day 20."""
    rng = np.random.default_rng(0)
    monitor = fastece.Monitor()
    for day in range(30):
        z = rng.normal(-1, 1.5, 200)
        true_z = z + 0.5 if day >= 20 else z
        monitor.update(rng.random(200) < 1 / (1 + np.exp(-true_z)), 1 / (1 + np.exp(-z)))
    figure = new_figure((6.2, 3.4))
    monitor.plot(figure.subplots())
    return figure


def bins_picture() -> "Figure":
    """Draw hard and convex bins, of equal width and of equal mass."""
    figure = new_figure((WIDTH, HEIGHT))
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    draw_bins(axes[0, 0], "ece", "equal width")
    draw_bins(axes[0, 1], "ece_a", "equal mass")
    draw_bins(axes[1, 0], "ece_c", "shared by two")
    draw_bins(axes[1, 1], "ece_ac", "both")
    label(figure, "hit rate")
    return figure


def curves_picture() -> "Figure":
    """Draw curves, smoothed gaps, and bins whose number is chosen from the data."""
    y, p = small_model()
    figure = new_figure((WIDTH, HEIGHT))
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for ax, name, subtitle in (
        (axes[0, 0], "ece_kde", "density of hits / of all"),
        (axes[0, 1], "ece_bayes", "a smooth curve"),
    ):
        draw_frame(ax, name, subtitle)
        curve = fastece.reliability_curve(y, p, estimator=name)
        s = curve.score[curve.supported]
        probability = curve.probability[curve.supported]
        ax.plot(s, probability, color=BLUE, linewidth=1.6)
        ax.fill_between(s, s, probability, color=ORANGE, alpha=0.35, lw=0)
        if name == "ece_bayes":
            ax.fill_between(curve.score, curve.low, curve.high, color=BLUE, alpha=0.15, linewidth=0)
    draw_frame(axes[1, 0], "smooth_ece", "averaged gaps")
    score, gap = smoothed_gap(y, p)
    axes[1, 0].plot(score, score + gap, color=BLUE, linewidth=1.6)
    axes[1, 0].fill_between(score, score, score + gap, color=ORANGE, alpha=0.35, linewidth=0)
    sweep = fastece.ece(y, p, estimator="ece_sweep")
    values = [fastece.ece(y, p, estimator="ece_a", n_bins=n) for n in range(1, 30)]
    n_bins = 1 + int(np.argmin(np.abs(np.subtract(values, sweep))))
    draw_bins(axes[1, 1], "ece_sweep", "bins that still rise", n_bins)
    label(figure, "hit rate")
    return figure


def smoothed_gap(y: Any, p: Any) -> tuple[Any, Any]:
    """Return scores, and the smoothed gap whose integral is the smooth ECE."""
    h = fastece.ece(y, p, estimator="smooth_ece")
    score = np.linspace(0, 1, 1001)
    images = np.concatenate([p, p - 2, p + 2, -p, 2 - p])  # at 0 and 1 the kernel is reflected
    kernel = np.exp(-((score[:, None] - images) ** 2) / (2 * h**2)) / (h * np.sqrt(2 * np.pi))
    gap = kernel @ np.tile(y - p, 5) / p.size
    assert np.isclose(np.trapezoid(abs(gap), score), h, rtol=0.01)
    return score, gap


def bias_picture() -> "Figure":
    """Draw the mean error of calibrated models over their number of rows."""
    rng = np.random.default_rng(0)
    sizes = np.geomspace(50, 20_000, 10).astype(int)
    estimators = [("50 bins", fastece.Binned(50)), ("15 bins", fastece.Binned(15))]
    estimators += [("5 bins", fastece.Binned(5)), ("ece_bayes", fastece.BayesCurve())]
    values: dict[str, list[float]] = {name: [] for name, _ in estimators}
    for n in sizes:
        samples = rng.random((20, 2, n))
        for name, estimator in estimators:
            errors = [fastece.ece(u < p, p, estimator=estimator) for u, p in samples]
            values[name].append(float(np.mean(errors)))
    figure = new_figure((WIDTH, 3.2))
    ax = figure.subplots()
    for (name, errors), colour in zip(values.items(), COLOURS, strict=False):
        ax.plot(sizes, errors, "o-", markersize=3, color=colour, label=name)
    ax.set(xscale="log", xlabel="rows", ylabel="mean error of a calibrated model", ylim=(0, None))
    ax.legend(fontsize=8, frameon=False)
    return figure


def twisted(p: Any) -> Any:
    """Return the true probabilities of docs/reference/estimators.md; each class is calibrated."""
    return p * (1 + np.roll(p, -1, axis=1) - np.roll(p, -2, axis=1))


def canonical_picture() -> "Figure":
    """Draw a model whose classes are calibrated one by one, but not all at once.

    Arrows lead from predicted to true probabilities. Two tests have the distribution of their
    statistic for a calibrated model.
    """
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    i, j = np.mgrid[1:12, 1:12].reshape(2, -1)
    is_in_triangle = i + j < 12
    p = np.stack([i, j, 12 - i - j], axis=1)[is_in_triangle] / 12
    figure = new_figure((6.2, 3.2))
    grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1])
    left = figure.add_subplot(grid[:, 0])
    left.fill(*corners.T, facecolor="none", edgecolor=GREY, linewidth=0.8)
    predicted = p @ corners
    true = twisted(p) @ corners
    x, y = predicted.T
    to_x, to_y = true.T
    left.quiver(
        x, y, to_x - x, to_y - y, angles="xy", scale_units="xy", scale=1, color=ORANGE, width=0.007
    )
    left.plot(x, y, "o", color=BLUE, markersize=2.5)
    for k, corner in enumerate(corners):
        is_top = k == 2
        left.annotate(
            f"class {k}", corner, (0, 6 if is_top else -6), textcoords="offset points",
            ha="center", va="bottom" if is_top else "top", fontsize=8,
        )  # fmt: skip
    left.set(xlim=(-0.12, 1.12), ylim=(-0.12, 1.0), aspect="equal")
    left.axis("off")
    left.set_title("said, and what comes true", fontsize=9)
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=1000)
    y = np.array([rng.choice(3, p=row) for row in twisted(p)])
    for row, (name, title) in enumerate((("ece", "top label"), ("skce", "all classes at once"))):
        ax = figure.add_subplot(grid[row, 1])
        test = fastece.calibration_test(y, p, estimator=name, n_resamples=999, rng=0)
        ax.hist(test.null_distribution, 30, color=GREY, alpha=0.5)
        ax.axvline(test.value, color=ORANGE, linewidth=2)
        ax.set_title(f'"{name}", {title}: p = {test.p_value:.3g}', fontsize=9)
        ax.tick_params(labelsize=7)
        ax.set_yticks([])
        ax.locator_params(axis="x", nbins=4)
    return figure


def label(figure: "Figure", name: str) -> None:
    """Write the names of both axes, once for all panels."""
    figure.supxlabel("score", fontsize=9)
    figure.supylabel(name, fontsize=9)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as PNG with 96 colours, which is a quarter of the full size."""
    from PIL import Image  # which matplotlib needs

    settle_layout(figure)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    picture = Image.open(buffer).convert("RGB")
    picture.quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the pictures")
    folder = parser.parse_args().out
    save(front_picture(), folder / "front.png")
    save(monitor_picture(), folder / "monitor.png")
    save(paper_picture(), folder / "paper.png")
    save(bias_picture(), folder / "bias.png")
    save(bins_picture(), folder / "bins.png")
    save(curves_picture(), folder / "no_bins.png")
    save(canonical_picture(), folder / "canonical.png")


if __name__ == "__main__":
    main()
