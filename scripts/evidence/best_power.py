"""Power of the best test of calibration, which knows the curve, beside the tests of fastece.

The most powerful test of "calibrated" against one known curve rejects where the ratio of their
likelihoods is small (Neyman and Pearson 1933). The best test that does not know the side has the
largest mean power for the curve and for its mirror image at the diagonal. No test that has to find
the curve itself has more power than the first, nor than the second on both sides on average.

Writes ``best_power.csv`` in about three minutes.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from possible_widths import (
    LAW,
    LEVEL,
    Model,
    best_power,
    block_ratios,
    draw_outcomes,
    quantile_scores,
)
from power import line, moved, p_values, wave
from results import new_parser, write_table

from fastece import Monitor

SEED = 20261129
ROWS = 1000
SAMPLES = 1000
DRAWS = 20_000
# Rows of a batch of the monitor.
BATCH = 100
# Log odds, of the score 0.8, that slopes leave unchanged.
FIXED_LOGIT = 1.4
HEAD = (
    "curve", "error", "best test", "best, side unknown", "adaptive", "slope", "smooth", "ece",
    "Monitor",
)  # fmt: skip


def turned(slope: float) -> Callable[[Any], Any]:
    """Return a curve that is a line in log odds and leaves a score near the middle unchanged."""
    return line(FIXED_LOGIT * (1 - slope), slope)


def alternatives() -> list[Model]:
    """Return the curves of the table."""
    shifts = [Model(f"shift of -{d}", line(-d, 1)) for d in (0.15, 0.2, 0.3)]
    slopes = [Model(f"slope of {b} about 0.8", turned(b)) for b in (0.85, 0.75, 0.65)]
    bins = [Model(f"0.8 to 0.87 by -{d}", moved(0.8, 0.87, -d)) for d in (0.05, 0.08, 0.11)]
    waves = [Model(f"five waves of {d}", wave(5, d)) for d in (0.06, 0.085, 0.12)]
    return [*shifts, *slopes, *bins, *waves]


def ratio_of_calibrated(chances: tuple[Any, ...], rng: np.random.Generator) -> Any:
    """Draw likelihood ratios of a calibrated model to equally probable curves (CELLS,).

    The samples are drawn from the curves in turn.
    """
    score = quantile_scores()
    ratios = []
    for drawn_chance in chances:
        draws = draw_outcomes(drawn_chance, ROWS, DRAWS // len(chances), rng)
        to_calibrated = block_ratios(draws, score, 1)[:, 0]
        others = [block_ratios(draws, chance, 1)[:, 0] for chance in chances]
        ratios.append(to_calibrated / np.mean(others, axis=0))
    return np.concatenate(ratios)


def rejections(model: Model, number: int) -> list[bool]:
    """Draw a sample, and return which tests reject at 5 %."""
    rng = np.random.default_rng([SEED, number, *model.name.encode()])
    s = LAW.rvs(ROWS, random_state=rng)
    y = rng.random(ROWS) < model.curve(s)
    monitor = Monitor()
    for begin in range(0, ROWS, BATCH):
        monitor.update(y[begin : begin + BATCH], s[begin : begin + BATCH])
    return [*(p <= LEVEL for p in p_values(y, s, number)), monitor.alarm]


def table_rows() -> Iterator[list[str]]:
    """Yield the rows of the table."""
    score = quantile_scores()
    for model in alternatives():
        rng = np.random.default_rng([SEED, *model.name.encode()])
        chance = model.curve(score)
        mirrored = np.clip(2 * score - chance, 1e-9, 1 - 1e-9)
        best = best_power(ratio_of_calibrated((chance,), rng))
        best_of_both = best_power(ratio_of_calibrated((chance, mirrored), rng))
        ours = np.mean([rejections(model, number) for number in range(SAMPLES)], axis=0)
        percents = [f"{100 * x:.0f}" for x in (best, best_of_both, *ours)]
        yield [model.name, f"{np.abs(chance - score).mean():.4f}", *percents]


def main() -> None:
    """Write the table."""
    options = new_parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    write_table(options.out, "best_power", HEAD, table_rows())


if __name__ == "__main__":
    main()
