"""Coverage of the 95 % intervals of ``estimate(votes=)``, and how often its test rejects a
calibrated model.

The scores and the hit rate are those of ``interval_coverage.py``: Beta(5, 1.5), and either a model
that is too sure everywhere, with a true error of 0.06, or a calibrated one. A vote is for the event
where a uniform number is less than the hit rate; each takes, with the probability 0 ("none"), 1/2
("half") or 1 ("full"), the number of its row, else one of its own. Widths are those of `ece` of the
calibrated model. "votes as rows" has every vote as a row of its own.

Prints the table of ``docs/soft_labels.md``. Every simulation has a seed of its own.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from interval_coverage import A, B, delta_of, line, outcome_probability

from fastece import calibration_test, estimate

ROWS, VOTES = (100, 400), (3, 10)
SHARES = {"none": 0.0, "half": 0.5, "full": 1.0}
ERROR, LEVEL, SEED = 0.06, 0.95, 20251125
NAMES = ("ece_bayes", "ece")
HEAD = (
    "rows", "votes", *(f"`{name}`: {share}" for name in NAMES for share in SHARES),
    "votes as rows: half", *(f"{name}: {share}" for name in ("width", "test") for share in SHARES),
)  # fmt: skip


def simulate(rng: np.random.Generator, rows: int, votes: int, share: float, error: float) -> Any:
    """Votes (rows, votes) and scores."""
    s = rng.beta(A, B, rows)
    own, shared = rng.random((rows, votes)), rng.random((rows, 1))
    u = np.where(rng.random((rows, votes)) < share, shared, own)
    return u < outcome_probability(s, delta_of(error))[:, None], s


def one_simulation(rows: int, votes: int, replicates: int, number: int) -> list[float]:
    """Shares of the models whose error each interval holds, widths, and whether tests reject."""
    rng = np.random.default_rng([SEED, rows, votes, number])
    covered, naive, widths, rejected = [], 0.0, [], []
    options: dict[str, Any] = {"n_resamples": replicates, "rng": number}
    for name, share in SHARES.items():
        held = []
        for error in (0.0, ERROR):
            y, s = simulate(rng, rows, votes, share, error)
            data: Any = {"y_true": y.sum(1), "y_prob": s, "votes": np.full(rows, votes)}
            found = estimate(**data, estimator=[*NAMES], **options)
            ends = [found[x].confidence_interval for x in NAMES]
            held.append([low <= error <= high for low, high in ends])
            if error == 0:
                test = calibration_test(**data, **options)
                rejected.append(test.p_value <= round(1 - LEVEL, 12))
                widths.append(ends[1].high)
            if name == "half":
                low, high = estimate(y.ravel(), np.repeat(s, votes)).confidence_interval
                naive += (low <= error <= high) / 2
        covered.append(np.mean(held, axis=0))
    return [*np.transpose(covered).ravel(), naive, *widths, *rejected]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=499)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(line(HEAD))
    print(line(["---:"] * len(HEAD)))
    with ThreadPoolExecutor(options.jobs) as pool:
        for rows in ROWS:
            for votes in VOTES:
                one = partial(one_simulation, rows, votes, options.resamples)
                means = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
                texts = [
                    f"{x:.3f}" if 7 <= i < 10 else f"{100 * x:.0f}" for i, x in enumerate(means)
                ]
                print(line([f"{rows}", f"{votes}", *texts]), flush=True)


if __name__ == "__main__":
    main()
