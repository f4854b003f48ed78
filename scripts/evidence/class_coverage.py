"""Coverage of the interval of a mean over classes, for softmax models of 5 to 100 classes.

The logits of the true probabilities are normal. Models change them: by a temperature, in one class,
or by a random shift of each class. The true error is the mean over classes of the mean gap of 400
neighbours, with exact chances, in 100 000 other rows. Every simulation has its own seed.

Writes ``class_coverage.csv`` in about ten minutes.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from estimate_coverage import curve_truth
from results import new_parser, write_table

from fastece import estimate

SEED = 20261130
REFERENCE = 100_000
# Standard deviation of the logits.
SPREAD = 2.0
HEAD = ("model", "classes", "rows", "samples", "true error", "mean value", "coverage", "width")


class Size(NamedTuple):
    """Numbers of classes and rows, and of samples."""

    classes: int
    rows: int
    samples: int


SIZES = (Size(5, 500, 400), Size(5, 5000, 400), Size(10, 1000, 400), Size(30, 1000, 100),
         Size(100, 1000, 20))  # fmt: skip


def softmax(z: Any) -> Any:
    """Return the probabilities (n, K) of logits."""
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def one_class(z: Any) -> Any:
    """Return logits that are larger by 1 in the first class."""
    return z + np.eye(z.shape[1])[0]


def class_shifts(z: Any) -> Any:
    """Return logits with a random shift of each class."""
    return z + np.random.default_rng(SEED).normal(0, 0.4, z.shape[1])


def half_of_classes(z: Any) -> Any:
    """Return logits that are larger by 0.7 in the first half of the classes."""
    return z + np.where(np.arange(z.shape[1]) < z.shape[1] // 2, 0.7, 0.0)


# From true logits to logits of the model.
MODELS: dict[str, Callable[[Any], Any]] = {
    "calibrated": lambda z: z,
    "temperature 0.7": lambda z: z / 0.7,
    "temperature 1.4": lambda z: z / 1.4,
    "temperature 0.93": lambda z: z / 0.93,
    "one class off": one_class,
    "half of the classes off": half_of_classes,
    "random shifts": class_shifts,
}


def true_error(model: str, classes: int) -> float:
    """Compute the mean over classes of the true error."""
    if model == "calibrated":
        return 0.0
    z = np.random.default_rng([SEED, classes]).normal(0, SPREAD, (REFERENCE, classes))
    chances = softmax(z)
    scores = softmax(MODELS[model](z))
    errors = [curve_truth(s, chance) for s, chance in zip(scores.T, chances.T, strict=True)]
    return float(np.mean(errors))


def one_sample(model: str, size: Size, number: int) -> tuple[float, float, float]:
    """Draw a sample, and return the value of the mean error and the ends of its interval."""
    rng = np.random.default_rng([SEED, size.classes, size.rows, number, *model.encode()])
    z = rng.normal(0, SPREAD, (size.rows, size.classes))
    sums = softmax(z).cumsum(axis=1)
    y = (sums < rng.random((size.rows, 1))).sum(axis=1)
    p = softmax(MODELS[model](z))
    result = estimate(y.clip(0, size.classes - 1), p, setting="classwise", average="macro")
    return result.value, *result.confidence_interval


def table_rows() -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for size in SIZES:
        for model in MODELS:
            truth = true_error(model, size.classes)
            figures = [one_sample(model, size, number) for number in range(size.samples)]
            value, low, high = np.transpose(figures)
            covers = 100 * np.mean((low - 1e-9 <= truth) & (truth <= high + 1e-9))
            yield [
                model, f"{size.classes}", f"{size.rows}", f"{size.samples}", f"{truth:.5f}",
                f"{value.mean():.5f}", f"{covers:.1f}", f"{(high - low).mean():.5f}",
            ]  # fmt: skip


def main() -> None:
    """Write the table."""
    options = new_parser(__doc__).parse_args()
    write_table(options.out, "class_coverage", HEAD, table_rows())


if __name__ == "__main__":
    main()
