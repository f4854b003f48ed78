"""Which estimator is closest to the truth in three arenas: the paper's distributions of scores,
other mixtures, and real networks.

Takes files of predictions, as `fastece study --predictions` does. Writes the medians over the
distributions as notebooks/data/arenas.csv, and the best of them as ``arenas_confidence.csv`` and
``arenas_classwise.csv``. Takes about twelve minutes on one core; after an interruption the same
command continues.
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from results import new_parser, write_table
from scipy.special import softmax

from fastece.study import Design, Predictions, StudyResult, run_study
from fastece.study.distributions import GaussianMixture
from fastece.study.summary import is_noise, summarise

SIZES = (100, 200, 500, 2000, 5000)
# The estimator that tables have beside the best of the others.
BAYES = "ece_bayes"
DATA = Path(__file__).resolve().parents[2] / "notebooks" / "data" / "arenas.csv"
# Arenas, and the columns of the tables.
ARENAS = {
    "paper": "simulated models of the paper",
    "other mixtures": "other simulated models",
    "real networks": "real networks",
}
DRAWS = 80
SCALES = 8  # Gaussians that make up one mode with heavy tails
RAREST = 0.1  # ratio of the frequencies of the rarest and the most frequent class
NOISE = 0.2  # share of labels that are replaced by a random one


class Imbalanced(GaussianMixture):
    """Classes whose frequencies decrease geometrically to a tenth."""

    @property
    def prior(self):
        """Frequency (K,) of each class."""
        prior = np.geomspace(1, RAREST, len(self.means))
        return prior / prior.sum()

    def sample(self, n, rng):
        """Draw rows with equally frequent classes, and select n with the right frequencies."""
        n_candidates = math.ceil(1.2 * n * len(self.means) * self.prior.max()) + 100
        x, y = super().sample(n_candidates, rng)
        is_accepted = rng.random(n_candidates) < self.prior[y] / self.prior.max()
        rows = np.flatnonzero(is_accepted)[:n]
        assert rows.size == n
        return x[rows], y[rows]

    def posterior(self, X):  # noqa: N803
        """Return the posterior, weighted by the frequencies of the classes."""
        logs = self.class_log_density(X) + np.log(self.prior)[:, None]
        with np.errstate(under="ignore"):
            return np.ascontiguousarray(softmax(logs, axis=0).T)


class LabelNoise(GaussianMixture):
    """One label in five is drawn from all classes, in training sets and in hold-outs."""

    def sample(self, n, rng):
        """Draw points and noisy classes."""
        x, y = super().sample(n, rng)
        other = rng.integers(len(self.means), size=n)
        return x, np.where(rng.random(n) < NOISE, other, y)

    def posterior(self, X):  # noqa: N803
        """Return the posterior of the noisy classes."""
        return (1 - NOISE) * super().posterior(X) + NOISE / len(self.means)


def heavy_tails(mixture):
    """Replace every mode by eight Gaussians, which approximate Student's t with two degrees of
    freedom by quantiles of its random scale."""
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
    """A design with mixtures of one kind and the sizes of the table."""

    kind: str = "paper"

    @property
    def sizes(self):
        """Numbers of rows in the table."""
        return SIZES

    def mixture(self, n_classes, n_features, number):
        """Return a mixture of the kind."""
        return KINDS[self.kind](super().mixture(n_classes, n_features, number))


PAPER = Mixtures(
    mixtures=1, trainings=1, holdout=50_000, smallest=SIZES[0], largest=SIZES[-1], draws=DRAWS
)
SMALL = replace(PAPER, classes=(2, 5), features=(5,))
OTHERS = [replace(SMALL, kind=kind, seed=k) for k, kind in enumerate(KINDS) if kind != "paper"]
OTHERS.append(replace(SMALL, train_size=10 * PAPER.train_size, seed=len(KINDS)))


def rows_of(arena: str, results: list[StudyResult]) -> list[dict[str, object]]:
    """Return the rows of the table for one arena: a summary over all its distributions."""
    values = pa.concat_tables([result.values for result in results])
    summary = summarise(values.filter(~is_noise(values)), results[0].design)
    names = ("setting", "n", "estimator", "p95_relative_error", "median_abs_log_ratio", "bias")
    return [
        {"arena": arena, **{name: row[name] for name in names}}
        for row in summary.to_pylist()
        if row["n"] in SIZES and row["estimator"] != "zero"
    ]


def table_rows(rows: list[dict[str, Any]], setting: str) -> Iterator[list[str]]:
    """Yield for each size the errors of `BAYES` and of the best other estimator, by arena."""
    for n in SIZES:
        line = [f"{n}"]
        for arena in ARENAS:
            found = {
                row["estimator"]: float(row["p95_relative_error"])
                for row in rows
                if (row["setting"], int(row["n"]), row["arena"]) == (setting, n, arena)
            }
            best = sorted(found, key=found.__getitem__)
            others = [name for name in best if name != BAYES]
            shown = [name for name in best if name in (BAYES, *others[:1])]
            cells = [f"{name} {100 * found[name]:.0f} %" for name in shown]
            line.append(", ".join(cells) or "too few rows to draw from")
        yield line


def main() -> None:
    """Run the arenas, and write their medians and the tables of the best."""
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the file of all medians")
    parser.add_argument("--work", type=Path, default=Path("arenas"), help="folder of the studies")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    designs_of = dict(
        zip(
            ARENAS, ([PAPER], OTHERS, [Predictions(tuple(options.files), draws=DRAWS)]), strict=True
        )
    )
    rows = []
    for arena, designs in designs_of.items():
        results = []
        for k, design in enumerate(designs):
            place = options.work / f"{arena}-{k}".replace(" ", "-")
            results.append(run_study(design, place, n_jobs=options.jobs, pictures=False))
            print(results[-1], flush=True)
        rows += rows_of(arena, results)
    with options.data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{x:.4g}" if isinstance(x, float) else x for k, x in row.items()} for row in rows
        )
    for setting in ("confidence", "classwise"):
        head = ["rows", *ARENAS.values()]
        write_table(options.out, f"arenas_{setting}", head, table_rows(rows, setting))


if __name__ == "__main__":
    main()
