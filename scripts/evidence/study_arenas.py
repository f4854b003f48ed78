"""Which estimator is closest to the truth in three arenas: the paper's distributions of scores,
other mixtures, and real networks.

Takes files of predictions, as `fastece study --predictions` does. Writes the medians over the
distributions as arenas.csv, which is notebooks/data/arenas.csv, and prints the best choices in
Markdown, those of README.md. Some twelve minutes of one core; the same command goes on where it
was.
"""

import argparse
import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.special import softmax

from fastece.study import Design, Predictions, StudyResult, run_study
from fastece.study.distributions import GaussianMixture
from fastece.study.summary import is_noise, summarise

SIZES = (100, 200, 500, 2000, 5000)
DRAWS = 80
SCALES = 8  # Gaussians that stand for one mode with heavy tails
RAREST = 0.1  # frequency of the rarest class, divided by that of the most frequent
NOISE = 0.2  # labels that are replaced by one that has nothing to do with the features


class Imbalanced(GaussianMixture):
    """Classes whose frequencies go down geometrically to a tenth."""

    @property
    def prior(self):
        """Frequency (K,) of each class."""
        prior = np.geomspace(1, RAREST, len(self.means))
        return prior / prior.sum()

    def sample(self, n, rng):
        """Of rows with equally frequent classes, those that are kept."""
        many = math.ceil(1.2 * n * len(self.means) * self.prior.max()) + 100
        x, y = super().sample(many, rng)
        kept = np.flatnonzero(rng.random(many) < self.prior[y] / self.prior.max())[:n]
        assert kept.size == n
        return x[kept], y[kept]

    def posterior(self, X):  # noqa: N803
        """Weighted by the frequencies."""
        logs = self.class_log_density(X) + np.log(self.prior)[:, None]
        with np.errstate(under="ignore"):
            return np.ascontiguousarray(softmax(logs, axis=0).T)


class LabelNoise(GaussianMixture):
    """One label in five is drawn from all classes, in training sets and in hold-outs."""

    def sample(self, n, rng):
        """Points and noisy classes."""
        x, y = super().sample(n, rng)
        other = rng.integers(len(self.means), size=n)
        return x, np.where(rng.random(n) < NOISE, other, y)

    def posterior(self, X):  # noqa: N803
        """Of noisy classes."""
        return (1 - NOISE) * super().posterior(X) + NOISE / len(self.means)


def heavy_tails(mixture):
    """Every mode as eight Gaussians, whose scales are quantiles of those behind Student's t with
    two degrees of freedom."""
    scale = 1 / np.sqrt(-np.log1p(-(np.arange(SCALES) + 0.5) / SCALES))
    factors = mixture.factors[:, :, None] * scale[:, None, None]
    shape = (len(mixture.means), -1, mixture.means.shape[-1])
    return GaussianMixture(
        np.repeat(mixture.means, SCALES, axis=1), factors.reshape(*shape, shape[-1])
    )


KINDS = {
    "paper": lambda mixture: mixture,
    "heavy tails": heavy_tails,
    "imbalanced": lambda mixture: Imbalanced(mixture.means, mixture.factors),
    "label noise": lambda mixture: LabelNoise(mixture.means, mixture.factors),
}


@dataclass(frozen=True)
class Mixtures(Design):
    """A design of mixtures of some kind, with the sizes of the table."""

    kind: str = "paper"

    @property
    def sizes(self):
        """Those of the table."""
        return SIZES

    def mixture(self, n_classes, n_features, number):
        """One of the kind."""
        return KINDS[self.kind](super().mixture(n_classes, n_features, number))


PAPER = Mixtures(
    mixtures=1, trainings=1, holdout=50_000, smallest=SIZES[0], largest=SIZES[-1], draws=DRAWS
)
FEW = replace(PAPER, classes=(2, 5), features=(5,))
OTHERS = [replace(FEW, kind=kind, seed=k) for k, kind in enumerate(KINDS) if kind != "paper"]
OTHERS.append(replace(FEW, train_size=10 * PAPER.train_size, seed=len(KINDS)))


def rows_of(arena: str, results: list[StudyResult]) -> list[dict[str, object]]:
    """The summary over the distributions of some studies."""
    values = pa.concat_tables([result.values for result in results])
    summary = summarise(values.filter(~is_noise(values)), results[0].design)
    names = ("setting", "n", "estimator", "p95_relative_error", "median_abs_log_ratio", "bias")
    return [
        {"arena": arena, **{name: row[name] for name in names}}
        for row in summary.to_pylist()
        if row["n"] in SIZES and row["estimator"] != "zero"
    ]


def best_of(rows: list[dict[str, object]]) -> str:
    """The best choice in each arena and setting, and the Bayesian curve, as a table."""
    cells: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for row in rows:
        cells.setdefault((row["setting"], row["n"], row["arena"]), []).append(row)
    lines = []
    for key, found in cells.items():
        best = sorted(found, key=lambda row: row["p95_relative_error"])[:3]
        mine = [row for row in found if row["estimator"] in ("ece_bayes", "ece_ac_10", "ece")]
        shown = [f"{row['estimator']} {row['p95_relative_error']:.0%}" for row in best + mine]
        lines.append("| " + " | ".join([*map(str, key), *shown]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the arenas, write the table and print the best."""
    parser = argparse.ArgumentParser(description="Which estimator is closest to the truth?")
    parser.add_argument("--out", type=Path, default=Path("arenas"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    arenas = {
        "paper": [PAPER],
        "other mixtures": OTHERS,
        "real networks": [Predictions(tuple(options.files), draws=DRAWS)],
    }
    rows = []
    for arena, designs in arenas.items():
        results = []
        for k, design in enumerate(designs):
            place = options.out / f"{arena}-{k}".replace(" ", "-")
            results.append(run_study(design, place, n_jobs=options.jobs, pictures=False))
            print(results[-1], flush=True)
        rows += rows_of(arena, results)
    with (options.out / "arenas.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{x:.4g}" if isinstance(x, float) else x for k, x in row.items()} for row in rows
        )
    print(best_of(rows))


if __name__ == "__main__":
    main()
