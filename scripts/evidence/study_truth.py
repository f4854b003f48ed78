"""How exact the true errors of the study are, from the usual hold-out and from a larger one.

Writes ``study_truth.csv``; takes about ten minutes and 2 GB.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from results import new_parser, write_table

from fastece.study import Design
from fastece.study.design import Population
from fastece.study.simulated import Distribution
from fastece.study.truth import truth_of

SIZES = (200_000, 2_000_000)
USUAL = [
    Distribution(number, number, 0, model, 0)
    for number in (2, 5, 7)
    for model in ("logistic_regression", "naive_bayes", "support_vectors", "random_forest")
]
# Distributions with the smallest true errors of the study.
SMALLEST = [
    Distribution(2, 5, 1, "support_vectors", 1),
    Distribution(2, 5, 4, "naive_bayes", 2),
    Distribution(2, 7, 2, "support_vectors", 0),
]


def truths(which: Distribution) -> Iterator[tuple[str, list[float]]]:
    """Yield the settings with their true errors, from the posterior and from labels for each size
    of the hold-out."""
    design = replace(Design(), holdout=SIZES[-1])
    for setting, samples, chances, n_bins in design.populations(which):
        errors: list[float] = []
        for size in SIZES:
            rows = np.arange(size)
            first_rows = [sample.where(rows) for sample in samples]
            population = Population(setting, first_rows, [q[:size] for q in chances], n_bins)
            truth = truth_of(population)
            errors += [truth.debiased, truth.from_labels]
        yield setting, errors


def table_rows() -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for which in [*USUAL, *SMALLEST]:
        for setting, errors in truths(which):
            kind = f"{which.n_classes}, {which.n_features}"
            yield [kind, which.model, setting, *(f"{error:.4f}" for error in errors)]


def main() -> None:
    """Write the table."""
    options = new_parser(__doc__).parse_args()
    kinds = [f"{kind}, {size:,}" for size in SIZES for kind in ("posterior", "labels")]
    head = ["classes, features", "model", "setting", *kinds]
    write_table(options.out, "study_truth", head, table_rows())


if __name__ == "__main__":
    main()
