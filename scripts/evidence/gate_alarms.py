"""How often the gate errs where the true error is the bound: it passes, or it fails.

The curves and scores of `bayes_shapes.py` that are not calibrated, with samples of some sizes: the
bound is the true error. Prints the table of docs/gate.md, by size and level of the interval.

    python scripts/evidence/gate_alarms.py --draws 1000
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from bayes_shapes import MANY, SHAPES, rows

from fastece import BayesCurve
from fastece.estimators.protocol import Sample

SIZES, LEVELS, SCORES, SEED = (
    (100, 500, 2000),
    (0.9, 0.95, 0.98),
    ("uniform", "top label", "sharp"),
    7,
)
# Errors that are hardly there: no test set tells them from 0.
LEAST = 0.002


def cells() -> Iterator[tuple[str, str, float]]:
    """Shapes, scores and true errors."""
    for name, shape in SHAPES.items():
        for scores in SCORES:
            s, chance = rows(shape, scores, np.random.default_rng(SEED), MANY)
            if (truth := float(np.abs(chance - s).mean())) > LEAST:
                yield name, scores, truth


def alarms(name: str, scores: str, truth: float, n: int, draws: int) -> Any:
    """Shares of samples (levels, 2) that pass, and that fail, at the bound."""
    found = np.zeros((len(LEVELS), 2))
    for k in range(draws):
        rng = np.random.default_rng([SEED, n, k])
        s, chance = rows(SHAPES[name], scores, rng, n)
        y = (rng.random(n) < chance).astype(np.uint8)
        posterior = BayesCurve().posterior([Sample(s, y, None, 0.0, 1.0, np.arange(n))])
        ends = [posterior.interval(level) for level in LEVELS]
        found += [(high <= truth, low > truth) for low, high in ends]
    return found / draws


def lines_of(found: Any) -> Iterator[str]:
    """The table, of shares (sizes, cells, levels, 2)."""
    head = "mean | largest | above 5 %"
    yield f"| rows | level | passes: {head} | fails: {head} |"
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|"
    for n, of_size in zip(SIZES, 100 * np.asarray(found), strict=True):
        for level, shares in zip(LEVELS, of_size.swapaxes(0, 1), strict=True):
            parts = [
                f"{x.mean():.1f} | {x.max():.1f} | {(x > 5).sum()} of {x.size}" for x in shares.T
            ]
            yield f"| {n} | {100 * level:g} % | {' | '.join(parts)} |"


def main() -> None:
    """Print the table, and the cells of the usual level that are above 5 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws, kinds = parser.parse_args().draws, [*cells()]
    found = np.array([[alarms(*kind, n, draws) for kind in kinds] for n in SIZES])
    print(*lines_of(found), sep="\n")
    for n, of_size in zip(SIZES, 100 * found[:, :, 1], strict=True):
        for (name, scores, truth), shares in zip(kinds, of_size, strict=True):
            if shares.max() > 5:
                print(n, name, scores, round(truth, 4), shares.round(1))


if __name__ == "__main__":
    main()
