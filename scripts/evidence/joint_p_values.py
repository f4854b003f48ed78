"""Family-wise level and power of the joint p-values of slices.

``python scripts/evidence/joint_p_values.py [SAMPLES] [POWER]`` prints two tables. The first has for
calibrated models the percentage of samples in which any slice has a joint p-value of at most 5 %:
SAMPLES samples of each of twelve designs. The second has for models that are off in some slices the
percentage of these slices that are found, in POWER samples. "Bonferroni" multiplies the p-value of
each slice by the number of slices, and "Holm" by the number of slices that are left.
docs/explanation/tests.md has figures of fewer samples. A sample takes some 0.1 s.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastece.inference.joint_test import holm, joint_p_values
from fastece.inference.selections import select_by_class, select_by_columns
from fastece.resampling.arguments import add_groups, read_call

RNG = np.random.Generator
DRAWS = 999
LEVEL = 0.05


@dataclass(frozen=True)
class Sample:
    """Rows of one sample, with their slices.

    Attributes
    ----------
    y, p : arrays
        Labels, and scores (n,) or class vectors (n, K).
    by : dict of (n,) arrays, or None
        Columns whose values are slices. None: the classes are.
    groups, sample_weight : (n,) arrays or None
    predicted : bool
        Whether the slices are the predicted classes.
    """

    y: Any
    p: Any
    by: Any = None
    groups: Any = None
    sample_weight: Any = None
    predicted: bool = False


def expit(x: Any) -> Any:
    """Compute probabilities from log odds."""
    return 1 / (1 + np.exp(-x))


def p_values(sample: Sample, key: int) -> tuple[Any, Any, list[Any]]:
    """Compute the p-values of each slice alone, and of all together, with the labels of slices."""
    options = {"sample_weight": sample.sample_weight, "n_resamples": DRAWS, "n_jobs": 1}
    if sample.by is None and not sample.predicted:
        options["setting"] = "classwise"
    call = read_call(
        "slices", sample.y, {"y_prob": sample.p}, estimator="ece_bayes", **options
    )  # fmt: skip
    call = replace(add_groups(call, sample.groups, sample.p), average="macro")
    if sample.predicted:
        selections = select_by_columns(call, sample.p.argmax(1), sample.p)
    elif sample.by is None:
        selections = select_by_class(call)
    else:
        selections = select_by_columns(call, sample.by, sample.p, bins=None)
    result = joint_p_values(call, selections, key)
    return result.alone, result.joint, [each.label for each in selections]


# --- slices ---------------------------------------------------------------------------------


def disjoint(rng: RNG, count: int, rows: int) -> dict[str, Any]:  # noqa: ARG001
    """Return one column of `count` values, with so many rows each."""
    return {"a": np.repeat(np.arange(count), rows)}


def columns(rng: RNG, count: int, values: int, rows: int) -> dict[str, Any]:
    """Return independent columns of so many values."""
    return {f"c{k}": rng.integers(0, values, rows) for k in range(count)}


def windows(rng: RNG, count: int, rows: int) -> dict[str, Any]:  # noqa: ARG001
    """Return windows of so many rows, each of which shares half of its rows with the next.

    Two columns cut the rows: the windows of one begin where those of the other are half done.
    The first and the last window are halves.
    """
    half = rows // 2
    row = np.arange(half * (count + 1))
    return {"even": row // rows, "odd": (row + half) // rows}


def nested(rng: RNG, rows: int) -> dict[str, Any]:
    """Return a column cut into 2, 4 and 8 intervals."""
    age = rng.random(rows)
    return {f"in {k}": (age * k).astype(int) for k in (2, 4, 8)}


def unequal(rng: RNG, rows: int) -> dict[str, Any]:
    """Return a column of twelve values, of which some are rare."""
    shares = 0.7 ** np.arange(12)
    return {"a": rng.choice(12, rows, p=shares / shares.sum())}


def row_count(by: dict[str, Any]) -> int:
    """Return the number of rows of columns."""
    return int(next(iter(by.values())).size)


def calibrated(slices: Callable[[RNG], Any], law: Callable[[RNG, int], Any]) -> Any:
    """Return a function that draws a sample of a calibrated model."""

    def draw(rng: RNG) -> Sample:
        by = slices(rng)
        p = law(rng, row_count(by))
        return Sample(rng.random(p.size) < p, p, by)

    return draw


def uniform(rng: RNG, n: int) -> Any:
    """Draw uniform scores."""
    return rng.random(n)


def rare(rng: RNG, n: int) -> Any:
    """Draw scores of rare events."""
    return expit(rng.normal(-3.5, 1, n))


def softmax(rng: RNG, n: int, classes: int) -> tuple[Any, Any]:
    """Draw class vectors, and classes with these probabilities."""
    p = np.exp(rng.normal(0, 1.5, (n, classes)))
    p /= p.sum(1, keepdims=True)
    y = (p.cumsum(1) < rng.random((n, 1))).sum(1)
    return np.minimum(y, classes - 1), p


def classes(rng: RNG) -> Sample:
    """Draw a sample whose slices are ten classes, each against the rest."""
    return Sample(*softmax(rng, 1000, 10))


def predicted_classes(rng: RNG) -> Sample:
    """Draw a sample whose slices are the rows of each of six predicted classes."""
    return Sample(*softmax(rng, 1000, 6), predicted=True)


def weighted(rng: RNG) -> Sample:
    """Draw a sample with weights."""
    by = disjoint(rng, 10, 100)
    p = rng.random(1000)
    return Sample(rng.random(1000) < p, p, by, sample_weight=rng.gamma(2, 1, 1000))


def grouped(rng: RNG) -> Sample:
    """Draw 250 groups of four rows whose outcomes depend on each other by half; ten slices."""
    group = np.repeat(np.arange(250), 4)
    p = rng.random(1000)
    u = np.where(rng.random(1000) < 0.7, rng.random(250)[group], rng.random(1000))
    return Sample(u < p, p, {"site": group % 10}, groups=group)


LEVELS: dict[str, Callable[[RNG], Sample]] = {
    "10 slices of 100 rows": calibrated(lambda r: disjoint(r, 10, 100), uniform),
    "20 slices of 30 rows": calibrated(lambda r: disjoint(r, 20, 30), uniform),
    "12 slices of 3 to 310 rows": calibrated(lambda r: unequal(r, 1000), uniform),
    "20 slices, 5 columns of 4 values": calibrated(lambda r: columns(r, 5, 4, 1000), uniform),
    "1 column of 4 values, five times": calibrated(
        lambda r: {f"c{k}": x for x in [r.integers(0, 4, 1000)] for k in range(5)}, uniform
    ),
    "22 windows that overlap by half": calibrated(lambda r: windows(r, 20, 100), uniform),
    "intervals in intervals, 2 + 4 + 8": calibrated(lambda r: nested(r, 1000), uniform),
    "rare events, 10 slices of 200 rows": calibrated(lambda r: disjoint(r, 10, 200), rare),
    "10 classes": classes,
    "6 predicted classes": predicted_classes,
    "weights, 10 slices of 100 rows": weighted,
    "groups of 4 rows, 10 slices": grouped,
}


# --- power ----------------------------------------------------------------------------------


def shifted(by: dict[str, Any], is_off: Any, size: float) -> Callable[[RNG], Sample]:
    """Return a function that draws a sample whose log odds are shifted in some rows."""

    def draw(rng: RNG) -> Sample:
        n = row_count(by)
        logit = rng.normal(0, 1.2, n)
        return Sample(rng.random(n) < expit(logit + size * is_off), expit(logit), by)

    return draw


def off_slices(by: dict[str, Any], is_off: Any) -> list[str]:
    """Return the labels of slices of which at least half of the rows are off."""
    return [
        f"{name} {value}"
        for name, column in by.items()
        for value in np.unique(column)
        if is_off[column == value].mean() >= 0.5
    ]


def power_designs() -> dict[str, tuple[Any, list[str]]]:
    """Return for each design a function that draws a sample, and the labels of slices off."""
    rng = np.random.default_rng(5)
    ten = disjoint(rng, 10, 100)
    slice_of_row = ten["a"]
    overlap = windows(rng, 20, 100)
    row = np.arange(row_count(overlap))
    cross = columns(rng, 5, 4, 1000)
    cases = {
        "10 slices of 100 rows, 1 off": (ten, slice_of_row < 1, 0.9),
        "10 slices of 100 rows, 5 off": (ten, slice_of_row < 5, 0.9),
        "10 slices of 100 rows, all off": (ten, slice_of_row < 10, 0.9),
        "22 windows that overlap by half, 3 off": (overlap, (row >= 400) & (row < 600), 0.9),
        "22 windows that overlap by half, all off": (overlap, row >= 0, 0.9),
        "5 columns of 4 values, 1 off": (cross, cross["c0"] == 1, 0.6),
        "5 columns of 4 values, all off": (cross, row[:1000] >= 0, 0.5),
        "1 column of 10 values, five times, 1 off": (
            {f"c{k}": slice_of_row for k in range(5)}, slice_of_row < 1, 0.9,
        ),
    }  # fmt: skip
    return {
        name: (shifted(by, is_off, size), off_slices(by, is_off))
        for name, (by, is_off, size) in cases.items()
    }


def percent(x: Any) -> str:
    """Write a share in percent."""
    return f"{100 * float(np.mean(x)):.1f}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=int, nargs="?", default=2000)
    parser.add_argument("power", type=int, nargs="?", default=400)
    options = parser.parse_args()
    print("| % of samples with a false alarm at 5 % | joint | Bonferroni |\n|---|---:|---:|")
    for i, (name, draw) in enumerate(LEVELS.items()):
        rng = np.random.default_rng(i)
        alarms = []
        for key in range(options.samples):
            alone, joint, _ = p_values(draw(rng), key)
            alarms.append([joint.min() <= LEVEL, alone.size * alone.min() <= LEVEL])
        cells = " | ".join(map(percent, np.transpose(alarms)))
        print(f"| {name} | {cells} |", flush=True)
    print("\n| % of miscalibrated slices found | joint | Holm | Bonferroni |\n|---|---:|---:|---:|")
    for i, (name, (draw, off)) in enumerate(power_designs().items()):
        rng = np.random.default_rng(100 + i)
        found = []
        for key in range(options.power):
            alone, joint, labels = p_values(draw(rng), key)
            is_off = np.isin(labels, off)
            methods = (joint, holm(alone), alone.size * alone)
            found.append([np.mean(x[is_off] <= LEVEL) for x in methods])
        cells = " | ".join(map(percent, np.transpose(found)))
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
