"""How close the Bayesian curve's error comes to the truth, and how often its interval covers it.

Distributions of scores are those of the study (with any seed), or files of predictions.
Writes ``bayes_accuracy.csv`` and ``bayes_distributions.csv``; with files of predictions,
``bayes_networks.csv``.

    python scripts/evidence/bayes_accuracy.py --draws 40
    python scripts/evidence/bayes_accuracy.py --draws 100 --predictions resnet34.csv vgg16.npz
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from results import new_parser, write_table

from fastece import BayesCurve
from fastece.estimators.protocol import Sample
from fastece.resampling.problem import Problem
from fastece.study.candidates import BAYES, corrected
from fastece.study.estimation import drawn_rows
from fastece.study.prediction_files import Predictions
from fastece.study.simulated import Design
from fastece.study.truth import debiased_error

F64 = NDArray[np.float64]

SIZES = (30, 60, 100, 200, 500, 2000)
# Draws have at most this share of the rows, since all rows together define the true error.
MAX_SHARE_DRAWN = 0.1
LEVEL = 0.95
ERRORS = ("setting", "rows", "95th percentile", "median abs log", "bias", "coverage")
# The estimators of the paper.
FIFTEEN = [candidate for candidate in corrected() if candidate.name != BAYES]


class Arena(NamedTuple):
    """Problems on the same rows, and the mean of their true errors."""

    samples: list[Sample]
    truth: float
    name: str = ""


class Performance(NamedTuple):
    """How well the Bayesian curve and the study's fifteen estimators did on one arena."""

    errors: list[float]  # of the Bayesian curve, as `errors_of` returns them
    errors_of_others: F64  # (15, 2)
    bias: float
    coverage: float
    width: float  # mean width of the interval, relative to the true error
    above_zero: float  # share of intervals whose low end is above 0


def arenas_of(study: Design | Predictions) -> Iterator[tuple[str, Arena]]:
    """Yield the settings of a study with an arena for each of its distributions of scores."""
    for which in study.distributions:
        for setting, samples, chances, n_bins in study.populations(which):
            pairs = zip(samples, chances, strict=True)
            truths = [debiased_error(x.s, q, n_bins)[0] for x, q in pairs]
            yield setting, Arena(samples, float(np.mean(truths)), str(which))


def drawn(samples: list[Sample], rows: NDArray[np.int64]) -> list[Sample]:
    """Return the rows of a draw, in the same order for all problems."""
    selected = [sample.where(rows) for sample in samples]
    return [Sample(x.s, x.y, x.v, x.low, x.high, np.arange(x.n)) for x in selected]


def measure(arena: Arena, n: int, draws: int, seed: int) -> Performance:
    """Draw rows of an arena many times, and return how well all estimators did."""
    rng = np.random.default_rng([seed, n])
    rows = rng.integers(arena.samples[0].n, size=(draws, n))
    posteriors = [
        BayesCurve().posterior(drawn(arena.samples, rows_of_draw)) for rows_of_draw in rows
    ]
    ratio = np.array([posterior.value for posterior in posteriors]) / arena.truth
    low, high = np.array([posterior.interval(LEVEL) for posterior in posteriors]).T
    covers = (low <= arena.truth) & (arena.truth <= high)
    width = (high - low) / arena.truth
    problems = [drawn_rows(Problem(sample), rows.astype(np.int32)) for sample in arena.samples]
    ratio_of_others = (
        np.array([other.mean(other.estimator, problems) for other in FIFTEEN]) / arena.truth
    )
    return Performance(
        errors=errors_of(ratio),
        errors_of_others=np.array([errors_of(x) for x in ratio_of_others]),
        bias=float(ratio.mean() - 1),
        coverage=float(covers.mean()),
        width=float(width.mean()),
        above_zero=float((low > 0).mean()),
    )


def errors_of(ratio: F64) -> list[float]:
    """Return the 95th percentile of the relative error, and the median absolute log ratio."""
    logs = np.abs(np.log(np.maximum(ratio, 1e-9)))
    return [float(np.quantile(np.abs(ratio - 1), 0.95)), float(np.median(logs))]


class Tables(NamedTuple):
    """The rows of both tables."""

    errors: list[list[str]]
    distributions: list[list[str]]


def measure_setting(
    setting: str, arenas: Sequence[Arena], seed: int, draws: int, tables: Tables
) -> None:
    """Add a row of errors for each size, and the coverage of each arena, the lowest first.

    Errors and bias are medians over arenas; errors are divided by the smallest errors of any of
    the fifteen, chosen in hindsight. Coverage is a mean over arenas.
    """
    coverage: dict[str, list[str]] = {arena.name: [] for arena in arenas}
    means: dict[str, float] = dict.fromkeys(coverage, 0.0)
    for n in SIZES:
        large = [arena for arena in arenas if n <= MAX_SHARE_DRAWN * arena.samples[0].n]
        measured = [measure(arena, n, draws, seed) for arena in large]
        for arena in arenas:
            if arena not in large:
                coverage[arena.name].append("")
        for arena, performance in zip(large, measured, strict=True):
            coverage[arena.name].append(f"{100 * performance.coverage:.0f}")
            means[arena.name] += performance.coverage / len(SIZES)
        if not large:
            continue
        errors = np.median([x.errors for x in measured], axis=0)
        errors_of_others = np.median([x.errors_of_others for x in measured], axis=0)
        ratio = errors / errors_of_others.min(axis=0)
        bias = np.median([x.bias for x in measured])
        covers = np.mean([x.coverage for x in measured])
        tables.errors.append([
            setting, f"{n}", f"{ratio[0]:.2f}", f"{ratio[1]:.2f}", f"{bias:+.2f}",
            f"{100 * covers:.1f}",
        ])  # fmt: skip
        print(tables.errors[-1], flush=True)
    for name in sorted(coverage, key=means.__getitem__):
        tables.distributions.append([
            setting, name, f"{100 * means[name]:.0f}", *coverage[name]
        ])  # fmt: skip


def main() -> None:
    """Write the tables."""
    parser = new_parser(__doc__)
    parser.add_argument("--seed", type=int, default=5003, help="of the study's design")
    parser.add_argument("--draws", type=int, default=40, help="of each size")
    parser.add_argument("--predictions", nargs="+", metavar="FILE", help="instead of the study")
    options = parser.parse_args()
    study: Design | Predictions = Design(mixtures=1, trainings=1, holdout=60_000, seed=options.seed)
    if options.predictions:
        study = Predictions(tuple(options.predictions))
    arenas: dict[str, list[Arena]] = {}
    for setting, arena in arenas_of(study):
        arenas.setdefault(setting, []).append(arena)
    tables = Tables([], [])
    for setting, arenas_of_setting in arenas.items():
        measure_setting(setting, arenas_of_setting, options.seed, options.draws, tables)
    if options.predictions:
        write_table(options.out, "bayes_networks", ERRORS, tables.errors)
    else:
        write_table(options.out, "bayes_accuracy", ERRORS, tables.errors)
        head = ["setting", "distribution", "all sizes", *map(str, SIZES)]
        write_table(options.out, "bayes_distributions", head, tables.distributions)


if __name__ == "__main__":
    main()
