"""How often the gate passes, and how often it fails, where the bound is the true error.

The curves and scores are the miscalibrated ones of `bayes_shapes.py`. Writes ``gate_alarms.csv``,
by size of the sample and level of the interval, in percent.

    python scripts/evidence/gate_alarms.py --draws 1000
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from bayes_shapes import POPULATION, SHAPES, draw_rows
from results import new_parser, write_table

from fastece import BayesCurve
from fastece.estimators.protocol import Sample

SIZES = (100, 500, 2000)
LEVELS = (0.9, 0.95, 0.98)
SCORES = ("uniform", "top label", "sharp")
SEED = 7
VERDICTS = ("passes", "fails")
FIGURES = ("mean", "largest", "kinds above 5 %")
HEAD = ("rows", "level", *(f"{verdict}: {x}" for verdict in VERDICTS for x in FIGURES))
# Smaller true errors are left out: no test set distinguishes them from 0.
MIN_ERROR = 0.002


def cells() -> Iterator[tuple[str, str, float]]:
    """Yield shapes, scores and true errors."""
    for name, shape in SHAPES.items():
        for scores in SCORES:
            s, chance = draw_rows(shape, scores, np.random.default_rng(SEED), POPULATION)
            truth = float(np.abs(chance - s).mean())
            if truth > MIN_ERROR:
                yield name, scores, truth


def alarms(name: str, scores: str, truth: float, n: int, draws: int) -> Any:
    """Return shares of samples (levels, 2) that pass, and that fail, at the bound."""
    counts = np.zeros((len(LEVELS), 2))
    for k in range(draws):
        rng = np.random.default_rng([SEED, n, k])
        s, chance = draw_rows(SHAPES[name], scores, rng, n)
        y = (rng.random(n) < chance).astype(np.uint8)
        posterior = BayesCurve().posterior([Sample(s, y, None, 0.0, 1.0, np.arange(n))])
        ends = [posterior.interval(level) for level in LEVELS]
        counts += [(high <= truth, low > truth) for low, high in ends]
    return counts / draws


def rows_of(shares: Any) -> Iterator[list[str]]:
    """Yield the rows of the table from shares (sizes, cells, levels, 2)."""
    for n, percent_of_size in zip(SIZES, 100 * np.asarray(shares), strict=True):
        for level, percent in zip(LEVELS, percent_of_size.swapaxes(0, 1), strict=True):
            row = [f"{n}", f"{100 * level:g}"]
            for x in percent.T:
                row += [f"{x.mean():.1f}", f"{x.max():.1f}", f"{(x > 5).sum()}"]
            yield row


def main() -> None:
    """Write the table, and print the cells of the usual level that are above 5 %."""
    parser = new_parser(__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    kinds = list(cells())
    shares = np.array([[alarms(*kind, n, options.draws) for kind in kinds] for n in SIZES])
    write_table(options.out, "gate_alarms", HEAD, rows_of(shares))
    usual_level = LEVELS.index(0.95)
    for n, percent_of_size in zip(SIZES, 100 * shares[:, :, usual_level], strict=True):
        for (name, scores, truth), percent in zip(kinds, percent_of_size, strict=True):
            if percent.max() > 5:
                print(n, name, scores, round(truth, 4), percent.round(1))


if __name__ == "__main__":
    main()
