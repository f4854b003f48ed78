"""How often the intervals of `validate` cover the truth, on simulated risk models.

Logits of predictions are normal, and the true risk is a function of them. O/E, the slope and the C
statistic have their values in the population, of which a grid of quantiles stands for all; the
distances ICI, E50, E90 and Emax those at the rows of each sample. Writes ``validate_coverage.csv``:
the share of samples whose 95 % interval holds the truth, and the mean values of the distances.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from results import new_parser, write_table
from scipy.special import expit
from scipy.stats import norm

from fastece import ece, validate
from fastece.estimators.risk import distance_quantiles

F64 = NDArray[np.float64]
POPULATION = 200_000
# Attributes of a validation, and their names in the table.
STATISTICS = {"oe": "O/E", "slope": "slope", "c_statistic": "C"}
DISTANCES = {"ici": "ICI", "e50": "E50", "e90": "E90", "emax": "Emax"}


class Law(NamedTuple):
    """Normal logits of predictions, and the true risk at a logit."""

    mean: float
    deviation: float
    risk: Callable[[F64], F64]


LAWS = {
    "calibrated": Law(-2.3, 1.2, expit),
    "too extreme": Law(-2.3, 1.2, lambda x: expit(0.7 * x - 0.4)),
    "not extreme enough": Law(0.0, 2.0, lambda x: expit(1.6 * x)),
    "shifted": Law(-1.0, 1.0, lambda x: expit(x + 0.3)),
    "bent": Law(0.0, 1.5, lambda x: expit(x - 0.25 * x**2 + 0.3)),
}


def distances_at(x: F64, law: Law) -> list[float]:
    """Return ICI, E50, E90 and Emax of the true risk at logits (n,)."""
    distance = np.abs(law.risk(x) - expit(x))
    return [distance.mean(), *distance_quantiles(distance, np.ones(x.size))]


def population_values(law: Law) -> list[float]:
    """Return O/E, slope and C statistic of the population.

    Each quantile of the logits is a row of events and one of others, with the weights of the risk.
    """
    level = (np.arange(POPULATION) + 0.5) / POPULATION
    x = law.mean + law.deviation * norm.ppf(level)
    risk = law.risk(x)
    p = np.tile(expit(x), 2)
    y = np.repeat([1, 0], x.size)
    weight = np.concatenate([risk, 1 - risk])
    names = ("oe", "calibration_slope", "c_statistic")
    return [ece(y, p, estimator=name, sample_weight=weight) for name in names]


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table: a law and a number of rows each."""
    for name, law in LAWS.items():
        of_population = population_values(law)
        for rows in options.sizes:
            rng = np.random.default_rng(rows)
            holds, distances = [], []
            for _ in range(options.simulations):
                x = rng.normal(law.mean, law.deviation, rows)
                y = rng.random(rows) < law.risk(x)
                found = validate(y, expit(x), n_resamples=0)
                true_distances = distances_at(x, law)
                truth = [*of_population, *true_distances]
                quantities = [getattr(found, field) for field in (*STATISTICS, *DISTANCES)]
                ends = np.array([quantity.confidence_interval for quantity in quantities])
                holds.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
                values = [getattr(found, field).value for field in DISTANCES]
                distances.append(np.column_stack([true_distances, values]))
            shares = [f"{100 * share:.1f}" for share in np.mean(holds, axis=0)]
            means = [f"{mean:.3f}" for mean in np.mean(distances, axis=0).ravel()]
            yield [name, f"{rows}", *shares, *means]


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1200, 5000])
    options = parser.parse_args()
    head = ["true risk", "rows", *STATISTICS.values(), *DISTANCES.values()]
    for name in DISTANCES.values():
        head += [f"{name}: truth", f"{name}: mean"]
    write_table(options.out, "validate_coverage", head, table_rows(options))


if __name__ == "__main__":
    main()
