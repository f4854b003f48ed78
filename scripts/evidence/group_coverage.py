"""Coverage of the 95 % intervals of ``estimate(groups=)``, and how often its test rejects a
calibrated model.

Scores and hit rates come from ``interval_coverage.py``: Beta(5, 1.5), and either a model that is
over-confident everywhere, with a true error of 0.06, or a calibrated one. A row is a hit where a
uniform number is less than its hit rate. The number is shared by the group with probability 0
("none"), 1/2 ("half") or 1 ("full"), and else drawn for the row alone. In every second simulation
all groups have the same number of rows; in the others their sizes follow a Pareto distribution with
exponent 1.2, up to 200 rows.

Writes ``group_coverage.csv``. Every simulation has its own seed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from interval_coverage import A, B, delta_of, outcome_probability
from results import new_parser, write_table

from fastece import estimate

# Numbers of groups, and mean numbers of rows of a group.
GROUPS = (40, 100, 400)
ROWS = (2, 5, 20)
SHARES = {"none": 0.0, "half": 0.5, "full": 1.0}
ERROR = 0.06
LEVEL = 0.95
SEED = 20250301
NAMES = ("ece_bayes", "ece")
HEAD = (
    "groups", "rows of each", *(f"{name}: {share}" for name in NAMES for share in SHARES),
    "ece_bayes without groups: full", *(f"test: {share}" for share in SHARES),
)  # fmt: skip


def sizes(rng: np.random.Generator, count: int, rows: int, equal: bool) -> Any:
    """Return how many rows each group has: about `rows` on average."""
    if equal:
        return np.full(count, rows)
    law = np.minimum(rng.pareto(1.2, count) + 1, 200)
    return np.maximum(np.rint(law * rows / law.mean()), 1).astype(int)


def simulate(rng: np.random.Generator, size: Any, share: float, error: float) -> tuple[Any, ...]:
    """Return labels, scores and groups of the rows."""
    group = np.repeat(np.arange(size.size), size)
    s = rng.beta(A, B, group.size)
    is_shared = rng.random(group.size) < share
    u = np.where(is_shared, rng.random(size.size)[group], rng.random(group.size))
    return u < outcome_probability(s, delta_of(error)), s, group


def one_simulation(count: int, rows: int, replicates: int, number: int) -> list[float]:
    """Return the share of models whose error each interval covers, and whether tests reject."""
    rng = np.random.default_rng([SEED, count, rows, number])
    size = sizes(rng, count, rows, number % 2 == 0)
    covered = []
    rejected = []
    options: dict[str, Any] = {"n_resamples": replicates, "rng": number, "estimator": [*NAMES]}
    for share in SHARES.values():
        covers = []
        for error in (0.0, ERROR):
            y, s, group = simulate(rng, size, share, error)
            estimates = estimate(y, s, groups=group, **options)
            results = [*(estimates[name] for name in NAMES), estimate(y, s)]
            intervals = [result.confidence_interval for result in results]
            covers.append([low <= error <= high for low, high in intervals])
            if error == 0:
                rejected.append(estimates["ece"].p_value <= 1 - LEVEL)
        covered.append(np.mean(covers, axis=0))
    covered_with_groups = np.transpose(covered)[: len(NAMES)]
    covered_without_groups = covered[-1][len(NAMES)]
    return [*covered_with_groups.ravel(), covered_without_groups, *rejected]


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    with ThreadPoolExecutor(options.jobs) as pool:
        for count in GROUPS:
            for rows in ROWS:
                one = partial(one_simulation, count, rows, options.resamples)
                means = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
                yield [f"{count}", f"{rows}", *(f"{100 * x:.1f}" for x in means)]


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", type=int, default=60)
    parser.add_argument("--resamples", type=int, default=499)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    write_table(options.out, "group_coverage", HEAD, table_rows(options))


if __name__ == "__main__":
    main()
