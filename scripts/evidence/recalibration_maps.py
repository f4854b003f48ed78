"""How near recalibration maps come to P(hit | score), by the number of rows they are fitted to.

On simulated models, as in `fastece study`: the exact probability of a hit of each row is known.
Scores have two settings, binary (models of two classes) and confidence (of 2, 5 and 7 classes),
with 36 distributions each. Every map is fitted to 10 samples of each size, and its error is the
mean of ``|map(s) - P(hit | s)|`` over new scores s.

Writes recalibration_maps.csv, which is notebooks/data/recalibration_maps.csv, prints the table of
docs/recalibration.md, and what fits have warned of; with --picture it draws the picture there. Some
three minutes of one core, with the same bits any time.
"""

import argparse
import csv
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from fastece.display.axes import new_figure
from fastece.display.marks import BLACK
from fastece.estimators.protocol import Sample
from fastece.kernels.types import F64
from fastece.recalibration import (
    BetaCalibration,
    CurveCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
)
from fastece.study import Design
from fastece.study.axes import MeasureCurve, draw_scales
from fastece.study.figures import draw_curve, save_figure
from fastece.study.styles import line_of
from fastece.study.truth import mean_of_folded

SIZES = (30, 60, 100, 200, 500, 1000, 2000, 5000)
DRAWS = 10
NEW_SCORES = 1000  # evenly among the ranks of the hold-out
BINS = 200  # of equal mass, as many as the study has for its truth
BENT = 0.01  # from monotone, of a truth that is far from it
# Settings, and the distributions of each: of two classes three mixtures of each kind.
DESIGNS = {
    "binary": Design(
        classes=(2,), mixtures=3, trainings=1, largest=SIZES[-1], draws=DRAWS,
        settings=("classwise",),
    ),
    "confidence": Design(
        mixtures=1, trainings=1, largest=SIZES[-1], draws=DRAWS, settings=("confidence",)
    ),
}  # fmt: skip
BAYES, KDE, DASHES = "#882255", "#009E73", (0, (4, 1.5))


class Map(NamedTuple):
    """What is compared: in words, what makes one to be fitted, and its line in the picture."""

    label: str
    make: Callable[[], Any] | None
    line: dict[str, Any]


MAPS = {
    "none": Map("no recalibration", None, line_of(BLACK, "", "-", True)),
    "temperature": Map("temperature", TemperatureScaling, line_of("#E69F00", "o", "-", True)),
    "platt": Map("Platt", PlattScaling, line_of("#D55E00", "s", "-", True)),
    "beta": Map("beta", BetaCalibration, line_of("#CC79A7", "^", "-", True)),
    "isotonic": Map("isotonic", IsotonicCalibration, line_of("#0072B2", "v", "-", True)),
    "histogram": Map("histogram binning", HistogramBinning, line_of("#56B4E9", "o", "-", False)),
    "scaling_binning": Map("scaling-binning", ScalingBinning, line_of("0.55", "s", "-", False)),
    "kde": Map(
        "curve of densities",
        partial(CurveCalibration, estimator="ece_kde", monotone=False),
        line_of(KDE, "D", DASHES, False),
    ),
    "kde_monotone": Map(
        "curve of densities, monotone",
        partial(CurveCalibration, estimator="ece_kde", monotone=True),
        line_of(KDE, "D", "-", True),
    ),
    "bayes": Map(
        "Bayesian curve",
        partial(CurveCalibration, estimator="ece_bayes", monotone=False),
        line_of(BAYES, "p", DASHES, False),
    ),
    "bayes_monotone": Map(
        "Bayesian curve, monotone",
        partial(CurveCalibration, estimator="ece_bayes", monotone=True),
        line_of(BAYES, "p", "-", True),
    ),
}


class Truth(NamedTuple):
    """New scores (G,), P(hit | s) at each of them, and its standard error."""

    score: F64
    chance: F64
    noise: F64

    def error(self, value: F64) -> float:
        """Mean of ``|value - P(hit | s)|``, without what the noise of the truth adds to it, as the
        study has it."""
        gap = np.abs(value - self.chance)
        return float(np.mean(2 * gap - mean_of_folded(gap, self.noise)))

    def log_loss(self, value: F64) -> float:
        """Expected log loss of predictions (G,)."""
        return -float(np.mean(xlogy(self.chance, value) + xlogy(1 - self.chance, 1 - value)))

    @property
    def bend(self) -> float:
        """The error of the nearest function that does not decrease."""
        return max(self.error(isotonic_regression(self.chance).x), 0.0)


def truth_of(s: F64, q: F64) -> Truth:
    """From scores (n,) and the exact probability of a hit of each row (n,): means of both in bins
    of equal mass, equal scores together, and lines between them."""
    order = np.argsort(s, kind="stable")
    s, q = s[order], q[order]
    _, bins, count = np.unique(
        np.searchsorted(s, s) * BINS // s.size, return_inverse=True, return_counts=True
    )
    at, mean = np.bincount(bins, s) / count, np.bincount(bins, q) / count
    variance = np.bincount(bins, (q - mean[bins]) ** 2) / (count * np.maximum(count - 1, 1))
    score = s[((np.arange(NEW_SCORES) + 0.5) * s.size / NEW_SCORES).astype(int)]
    # Between two bins each counts by how near it is.
    right = np.clip(np.searchsorted(at, score), 1, at.size - 1)
    share = np.clip((score - at[right - 1]) / (at[right] - at[right - 1]), 0, 1)
    chance = (1 - share) * mean[right - 1] + share * mean[right]
    noise = np.sqrt((1 - share) ** 2 * variance[right - 1] + share**2 * variance[right])
    return Truth(score, chance, noise)


def problems(setting: str) -> Iterator[tuple[Any, Sample, Truth]]:
    """The distributions of a setting: the hold-out that samples are drawn from, and its truth."""
    design = DESIGNS[setting]
    for which in design.distributions:
        (population,) = design.populations(which, {})
        sample, chance = population.samples[-1], population.chances[-1]
        yield which, sample, truth_of(sample.s, chance)


def mapped(name: str, s: F64, y: Any, score: F64, said: Counter[str]) -> F64:
    """New scores after a map that was fitted to some rows. Hits or misses alone are nothing to fit
    to, so that scores stay as they are. What a fit warns of is counted."""
    make = MAPS[name].make
    if make is None:
        return score
    if y.min() == y.max():
        said[f"{name}: not fitted, for all labels are the same"] += 1
        return score
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value: F64 = make().fit(s, y).transform(score)
    said.update(f"{name}: {str(one.message).partition(',')[0]}" for one in caught)
    return value


def measure(setting: str, said: Counter[str]) -> tuple[F64, F64]:
    """Errors, and log losses divided by that of P(hit | s): (2, distributions, sizes, maps, draws);
    how far each truth (distributions,) is from monotone."""
    found, bends = [], []
    for which, sample, truth in problems(setting):
        least = truth.log_loss(truth.chance)
        one = np.empty((2, len(SIZES), len(MAPS), DRAWS))
        for i, n in enumerate(SIZES):
            for k, rows in enumerate(DESIGNS[setting].rows(which, n)):
                for j, name in enumerate(MAPS):
                    value = mapped(name, sample.s[rows], sample.y[rows], truth.score, said)
                    one[:, i, j, k] = truth.error(value), truth.log_loss(value) / least
        found.append(one)
        bends.append(truth.bend)
        print(f"{setting}: {which}: {bends[-1]:.3f} from monotone", flush=True)
    return np.stack(found, axis=1), np.array(bends)


def rows_of(setting: str, found: F64, bends: F64) -> Iterator[dict[str, object]]:
    """The lines of the table. The standard error is that of other samples from the same
    distributions; `nearest` are the distributions where the map has the smallest error, and
    `error_bent` and `error_monotone` the means over those whose truth is and is not `BENT`."""
    error, ratio = found
    each, bent = error.mean(axis=-1), bends > BENT
    noise = np.sqrt((error.var(axis=-1, ddof=1) / DRAWS).sum(axis=0)) / len(error)
    best = each.argmin(axis=2)
    for i, n in enumerate(SIZES):
        for j, name in enumerate(MAPS):
            yield {
                "setting": setting,
                "n": n,
                "map": name,
                "error": f"{each[:, i, j].mean():.5f}",
                "standard_error": f"{noise[i, j]:.5f}",
                "error_bent": f"{each[bent, i, j].mean():.5f}",
                "error_monotone": f"{each[~bent, i, j].mean():.5f}",
                "nearest": int((best[:, i] == j).sum()),
                "log_loss_ratio": f"{np.median(ratio[:, i, j]):.4f}",
                "infinite_log_loss": f"{np.isinf(ratio[:, i, j]).mean():.4f}",
            }


def lines_of(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The errors as a table of Markdown, the smallest of each size in bold."""
    yield f"| setting | map | {' | '.join(map(str, SIZES))} |"
    yield "|---|---|" + "---:|" * len(SIZES)
    for setting in DESIGNS:
        found = {(row["n"], row["map"]): row["error"] for row in rows if row["setting"] == setting}
        for name, (label, *_) in MAPS.items():
            cells = []
            for n in SIZES:
                least = min(found[n, other] for other in MAPS)
                mark = "**" if found[n, name] == least else ""
                cells.append(f"{mark}{float(found[n, name]):.3f}{mark}")
            yield f"| {setting} | {label} | {' | '.join(cells)} |"


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Errors of all maps by the number of rows, a panel for each setting; shaded, two standard
    errors to either side."""
    figure = new_figure((9.4, 5.4))
    panels: list[dict[str, MeasureCurve]] = []
    axes = figure.subplots(1, len(DESIGNS), sharey=True)
    for ax, (setting, design) in zip(axes, DESIGNS.items(), strict=True):
        curves: dict[str, MeasureCurve] = {}
        for place, (name, (label, _, line)) in enumerate(MAPS.items()):
            mine = [row for row in rows if (row["setting"], row["map"]) == (setting, name)]
            n, error, noise = (
                np.array([float(row[key]) for row in mine])
                for key in ("n", "error", "standard_error")
            )
            curves[name] = MeasureCurve(n, error, error - 2 * noise, error + 2 * noise)
            draw_curve(curves[name], ax, place, line | {"label": label})
        panels.append(curves)
        classes = ", ".join(map(str, design.classes))
        ax.set_title(f"{setting}: {len(design.distributions)} models of {classes} classes")
        ax.set_xlabel("rows that the map is fitted to")
    axes[0].set_ylabel("mean |map(s) - P(hit | s)|")
    draw_scales(axes, panels, is_log=True)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4,
        fontsize="small", frameon=False, handlelength=2.9,
    )  # fmt: skip
    save_figure(figure, path)


def main() -> None:
    """Measure, and write the table and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("recalibration_maps.csv"))
    parser.add_argument("--picture", type=Path, metavar="FILE", help="with matplotlib")
    options = parser.parse_args()
    said: Counter[str] = Counter()
    rows: list[dict[str, object]] = []
    for setting in DESIGNS:
        rows += rows_of(setting, *measure(setting, said))
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    if options.picture:
        draw(rows, options.picture)
    for line in lines_of(rows):
        print(line)
    for words, count in sorted(said.items()):
        print(f"{count} times {words}")


if __name__ == "__main__":
    main()
