"""How near recalibration maps come to P(hit | score), by the number of rows they are fitted to.

Models are simulated, as in `fastece study`, so that the exact probability of a hit is known for
each row. There are two settings, binary (models of two classes) and confidence (of 2, 5 and 7
classes), with 36 distributions of scores each. Every map is fitted to 10 samples of each size, and
its error is the mean of ``|map(s) - P(hit | s)|`` over new scores s.

Writes all figures as notebooks/data/recalibration_maps.csv and the errors as
``recalibration_maps.csv``, and prints the warnings of fits; with --picture it draws the errors.
Takes about three minutes on one core; results are reproducible to the bit.
"""

import csv
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from results import new_parser, write_table
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
from fastece.study.figures import draw_axes, draw_curve, line_of, save_figure
from fastece.study.truth import mean_of_folded

DATA = Path(__file__).resolve().parents[2] / "notebooks" / "data" / "recalibration_maps.csv"
SIZES = (30, 60, 100, 200, 500, 1000, 2000, 5000)
DRAWS = 10
# Number of new scores, evenly among the ranks of the hold-out.
NEW_SCORES = 1000
# Number of bins of equal mass for the true curve; the study uses the same.
BINS = 200
# A true curve counts as bent if its distance from the nearest monotone one is larger.
MIN_BEND = 0.01
# Settings and their distributions: for two classes, three mixtures of each kind.
DESIGNS = {
    "binary": Design(
        classes=(2,), mixtures=3, trainings=1, largest=SIZES[-1], draws=DRAWS,
        settings=("classwise",),
    ),
    "confidence": Design(
        mixtures=1, trainings=1, largest=SIZES[-1], draws=DRAWS, settings=("confidence",)
    ),
}  # fmt: skip
BAYES = "#882255"
KDE = "#009E73"
DASHES = (0, (4, 1.5))


class Map(NamedTuple):
    """A recalibration map: its label, the function that makes one to fit, its line's style."""

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
        """Return the mean of ``|value - P(hit | s)|``, corrected for the noise of the truth.

        The correction is the study's.
        """
        gap = np.abs(value - self.chance)
        return float(np.mean(2 * gap - mean_of_folded(gap, self.noise)))

    def log_loss(self, value: F64) -> float:
        """Return the expected log loss of predictions (G,)."""
        return -float(np.mean(xlogy(self.chance, value) + xlogy(1 - self.chance, 1 - value)))

    @property
    def bend(self) -> float:
        """Distance from the nearest non-decreasing function."""
        return max(self.error(isotonic_regression(self.chance).x), 0.0)


def truth_of(s: F64, q: F64) -> Truth:
    """Return the true curve from scores (n,) and each row's exact probability of a hit (n,).

    The curve has the means of both in bins of equal mass, ties together, and lines between them.
    """
    order = np.argsort(s, kind="stable")
    s = s[order]
    q = q[order]
    _, bins, count = np.unique(
        np.searchsorted(s, s) * BINS // s.size, return_inverse=True, return_counts=True
    )
    mean_score = np.bincount(bins, s) / count
    mean_chance = np.bincount(bins, q) / count
    variance = np.bincount(bins, (q - mean_chance[bins]) ** 2) / (count * np.maximum(count - 1, 1))
    score = s[((np.arange(NEW_SCORES) + 0.5) * s.size / NEW_SCORES).astype(int)]
    # Linear interpolation between the two nearest bins.
    right = np.clip(np.searchsorted(mean_score, score), 1, mean_score.size - 1)
    left = right - 1
    distance = mean_score[right] - mean_score[left]
    share = np.clip((score - mean_score[left]) / distance, 0, 1)
    chance = (1 - share) * mean_chance[left] + share * mean_chance[right]
    noise = np.sqrt((1 - share) ** 2 * variance[left] + share**2 * variance[right])
    return Truth(score, chance, noise)


def problems(setting: str) -> Iterator[tuple[Any, Sample, Truth]]:
    """Yield a setting's distributions, each with its hold-out, from which samples are drawn, and
    its true curve."""
    design = DESIGNS[setting]
    for which in design.distributions:
        (population,) = design.populations(which)
        sample = population.samples[-1]
        yield which, sample, truth_of(sample.s, population.chances[-1])


def recalibrate(name: str, s: F64, y: Any, score: F64, messages: Counter[str]) -> F64:
    """Fit a map to rows, and return new scores after it. Warnings are counted in `messages`.

    Scores stay as they are where all labels are the same, since no map can be fitted.
    """
    make = MAPS[name].make
    if make is None:
        return score
    if y.min() == y.max():
        messages[f"{name}: not fitted, for all labels are the same"] += 1
        return score
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value: F64 = make().fit(s, y).transform(score)
    messages.update(f"{name}: {str(warning.message).partition(',')[0]}" for warning in caught)
    return value


class Measured(NamedTuple):
    """Figures of all maps in a setting: axes are distributions, sizes, maps and draws."""

    error: F64
    log_loss_ratio: F64  # log loss divided by the log loss of P(hit | s)
    bend: F64  # (distributions,), distance of each true curve from monotone


def measure(setting: str, messages: Counter[str]) -> Measured:
    """Fit all maps to all samples of a setting, and return their figures."""
    errors = []
    ratios = []
    bends = []
    for which, sample, truth in problems(setting):
        smallest_log_loss = truth.log_loss(truth.chance)
        error = np.empty((len(SIZES), len(MAPS), DRAWS))
        ratio = np.empty_like(error)
        for i, n in enumerate(SIZES):
            for k, rows in enumerate(DESIGNS[setting].rows(which, n)):
                for j, name in enumerate(MAPS):
                    value = recalibrate(name, sample.s[rows], sample.y[rows], truth.score, messages)
                    error[i, j, k] = truth.error(value)
                    ratio[i, j, k] = truth.log_loss(value) / smallest_log_loss
        errors.append(error)
        ratios.append(ratio)
        bends.append(truth.bend)
        print(f"{setting}: {which}: {bends[-1]:.3f} from monotone", flush=True)
    return Measured(np.array(errors), np.array(ratios), np.array(bends))


def rows_of(setting: str, measured: Measured) -> Iterator[dict[str, object]]:
    """Yield the rows of the CSV file.

    `standard_error` refers to other samples from the same distributions. `nearest` counts the
    distributions where the map has the smallest error. `error_bent` and `error_monotone` are means
    over distributions whose true curve is bent by more than `MIN_BEND`, and over the others.
    """
    error = measured.error
    ratio = measured.log_loss_ratio
    mean_error = error.mean(axis=-1)
    is_bent = measured.bend > MIN_BEND
    noise = np.sqrt((error.var(axis=-1, ddof=1) / DRAWS).sum(axis=0)) / len(error)
    best = mean_error.argmin(axis=2)
    for i, n in enumerate(SIZES):
        for j, name in enumerate(MAPS):
            yield {
                "setting": setting,
                "n": n,
                "map": name,
                "error": f"{mean_error[:, i, j].mean():.5f}",
                "standard_error": f"{noise[i, j]:.5f}",
                "error_bent": f"{mean_error[is_bent, i, j].mean():.5f}",
                "error_monotone": f"{mean_error[~is_bent, i, j].mean():.5f}",
                "nearest": int((best[:, i] == j).sum()),
                "log_loss_ratio": f"{np.median(ratio[:, i, j]):.4f}",
                "infinite_log_loss": f"{np.isinf(ratio[:, i, j]).mean():.4f}",
            }


def table_rows(rows: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the errors of each map by the number of rows."""
    for setting in DESIGNS:
        error = {(row["n"], row["map"]): row["error"] for row in rows if row["setting"] == setting}
        for name, recalibration_map in MAPS.items():
            errors = (f"{float(error[n, name]):.3f}" for n in SIZES)
            yield [setting, recalibration_map.label, *errors]


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the errors of all maps by the number of rows, a panel for each setting.

    Shaded areas reach two standard errors to either side.
    """
    figure = new_figure((9.4, 5.4))
    axes = figure.subplots(1, len(DESIGNS), sharey=True)
    for ax, (setting, design) in zip(axes, DESIGNS.items(), strict=True):
        draw_axes(ax, is_log=True)
        for name, recalibration_map in MAPS.items():
            rows_of_map = [row for row in rows if (row["setting"], row["map"]) == (setting, name)]
            n, error, noise = (
                np.array([float(row[key]) for row in rows_of_map])
                for key in ("n", "error", "standard_error")
            )
            line = recalibration_map.line | {"label": recalibration_map.label}
            draw_curve(ax, n, error, error - 2 * noise, error + 2 * noise, line)
        classes = ", ".join(map(str, design.classes))
        ax.set_title(f"{setting}: {len(design.distributions)} models of {classes} classes")
        ax.set_xlabel("rows that the map is fitted to")
    axes[0].set_ylabel("mean |map(s) - P(hit | s)|")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4,
        fontsize="small", frameon=False, handlelength=2.9,
    )  # fmt: skip
    save_figure(figure, path)


def main() -> None:
    """Measure, and write both tables and the picture."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the file of all figures")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="with matplotlib")
    options = parser.parse_args()
    messages: Counter[str] = Counter()
    rows: list[dict[str, object]] = []
    for setting in DESIGNS:
        rows += rows_of(setting, measure(setting, messages))
    with options.data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    head = ["setting", "map", *map(str, SIZES)]
    write_table(options.out, "recalibration_maps", head, table_rows(rows))
    if options.picture:
        draw(rows, options.picture)
    for message, count in sorted(messages.items()):
        print(f"{count} times {message}")


if __name__ == "__main__":
    main()
