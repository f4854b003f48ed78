"""Coverage of the 95 % intervals of ``estimate(votes=)``, and how often its test rejects a
calibrated model.

Scores and hit rates come from ``interval_coverage.py``: Beta(5, 1.5), and either a model that is
over-confident everywhere, with a true error of 0.06, or a calibrated one. A vote is for the event
where a uniform number is less than the hit rate. The number is shared by the row with probability 0
("none"), 1/2 ("half") or 1 ("full"), and else drawn for the vote alone. Widths are the width of the
interval of `ece` for the calibrated model. "votes as rows" takes every vote as a separate row.

Writes ``soft_coverage.csv``. Every simulation has its own seed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from interval_coverage import A, B, delta_of, outcome_probability
from results import new_parser, write_table

from fastece import calibration_test, estimate

ROWS = (100, 400)
VOTES = (3, 10)
SHARES = {"none": 0.0, "half": 0.5, "full": 1.0}
ERROR = 0.06
LEVEL = 0.95
SEED = 20251125
NAMES = ("ece_bayes", "ece")
# Columns of widths among the figures of a simulation, behind six coverages and the one of "votes as
# rows"; all other figures are percentages.
WIDTHS = range(7, 10)
HEAD = (
    "rows", "votes", *(f"{name}: {share}" for name in NAMES for share in SHARES),
    "votes as rows: half", *(f"{name}: {share}" for name in ("width", "test") for share in SHARES),
)  # fmt: skip


def simulate(rng: np.random.Generator, rows: int, votes: int, share: float, error: float) -> Any:
    """Return votes (rows, votes) and scores."""
    s = rng.beta(A, B, rows)
    u_of_vote = rng.random((rows, votes))
    u_of_row = rng.random((rows, 1))
    u = np.where(rng.random((rows, votes)) < share, u_of_row, u_of_vote)
    return u < outcome_probability(s, delta_of(error))[:, None], s


def one_simulation(rows: int, votes: int, replicates: int, number: int) -> list[float]:
    """Return the share of models whose error each interval covers, widths, and whether tests
    reject."""
    rng = np.random.default_rng([SEED, rows, votes, number])
    covered = []
    covered_by_votes_as_rows = 0.0
    widths = []
    rejected = []
    options: dict[str, Any] = {"n_resamples": replicates, "rng": number}
    for name, share in SHARES.items():
        covers = []
        for error in (0.0, ERROR):
            y, s = simulate(rng, rows, votes, share, error)
            data: Any = {"y_true": y.sum(1), "y_prob": s, "votes": np.full(rows, votes)}
            estimates = estimate(**data, estimator=[*NAMES], **options)
            intervals = [estimates[x].confidence_interval for x in NAMES]
            covers.append([low <= error <= high for low, high in intervals])
            if error == 0:
                test = calibration_test(**data, **options)
                rejected.append(test.p_value <= round(1 - LEVEL, 12))
                # The width above the true error, which is 0.
                widths.append(intervals[1].high)
            if name == "half":
                low, high = estimate(y.ravel(), np.repeat(s, votes)).confidence_interval
                if low <= error <= high:
                    covered_by_votes_as_rows += 1 / 2  # one of two models
        covered.append(np.mean(covers, axis=0))
    return [*np.transpose(covered).ravel(), covered_by_votes_as_rows, *widths, *rejected]


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    with ThreadPoolExecutor(options.jobs) as pool:
        for rows in ROWS:
            for votes in VOTES:
                one = partial(one_simulation, rows, votes, options.resamples)
                means = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
                texts = [
                    f"{x:.3f}" if i in WIDTHS else f"{100 * x:.0f}" for i, x in enumerate(means)
                ]
                yield [f"{rows}", f"{votes}", *texts]


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=499)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    write_table(options.out, "soft_coverage", HEAD, table_rows(options))


if __name__ == "__main__":
    main()
