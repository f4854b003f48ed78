"""Family-wise level and power of the joint p-values of slices, and of several models.

``python scripts/evidence/joint_p_values.py [SAMPLES] [POWER]`` writes four tables, ``joint_*.csv``.
The first has for calibrated models the percentage of samples in which any slice has a joint p-value
of at most 5 %: SAMPLES samples of each of fourteen designs. The second has for models that are off
in some slices the percentage of these slices that are found, in POWER samples. The third and the
fourth are the same for several models that are compared with the first: models with equal errors,
and models of which some are worse. "Bonferroni" multiplies the p-value of each slice, or of each
comparison, by their number, and "Holm" by the number that are left. A sample takes some 0.1 s;
``--design NAME`` runs the designs whose names begin like this.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from results import new_parser, write_table
from scipy import stats

from fastece import compare
from fastece import slices as fastece_slices
from fastece.inference.joint import joint_p_values
from fastece.inference.selections import select_by_class, select_by_columns
from fastece.inference.slice_tests import p_values_of_slices
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
    estimator : str
        The estimator of the slices' errors.
    """

    y: Any
    p: Any
    by: Any = None
    groups: Any = None
    sample_weight: Any = None
    predicted: bool = False
    estimator: str = "ece_bayes"


def expit(x: Any) -> Any:
    """Compute probabilities from log odds."""
    return 1 / (1 + np.exp(-x))


def p_values(sample: Sample, key: int) -> tuple[Any, Any, list[Any]]:
    """Compute the p-values of each slice alone, and of all together, with the labels of slices."""
    options = {"sample_weight": sample.sample_weight, "n_resamples": DRAWS, "n_jobs": 1}
    if sample.estimator != "ece_bayes":
        table = fastece_slices(
            sample.y, sample.p, by=sample.by, bins=None, estimator=sample.estimator, rng=key,
            **options,
        )  # fmt: skip
        alone = np.array([row.raw_p_value for row in table])
        joint = np.array([row.p_value for row in table])
        return alone, joint, [row.label for row in table]
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
    alone, joint = p_values_of_slices(call, selections, key)
    return alone, joint, [each.label for each in selections]


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


def with_ece(draw: Callable[[RNG], Sample]) -> Callable[[RNG], Sample]:
    """Return a function that draws the same samples for the estimator "ece"."""
    return lambda rng: replace(draw(rng), estimator="ece")


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
    "ece, 10 slices of 100 rows": with_ece(calibrated(lambda r: disjoint(r, 10, 100), uniform)),
    "ece, 20 slices, 5 columns of 4 values": with_ece(
        calibrated(lambda r: columns(r, 5, 4, 1000), uniform)
    ),
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


# --- several models -------------------------------------------------------------------------

# Standard deviation of the noise with which each model sees the hidden risk.
NOISE = 0.7
ROWS_OF_MODELS = 500


@dataclass(frozen=True)
class Models:
    """Models that see a hidden normal risk z with noise, and whose probits are shifted.

    Attributes
    ----------
    shifts : tuple of float
        The shift of each model. Models whose shifts differ in sign alone have equal errors.
    twins : float
        Correlation of the noise of the last two models; others are independent.
    estimator : str
    """

    shifts: tuple[float, ...]
    twins: float = 0.0
    estimator: str = "ece_bayes"

    def draw(self, rng: RNG) -> tuple[Any, Any, dict[int, Any]]:
        """Draw outcomes, the probabilities of the first model, and those of the others."""
        z = rng.normal(0, 1, ROWS_OF_MODELS)
        noise = rng.normal(0, 1, (len(self.shifts), ROWS_OF_MODELS))
        noise[-1] = self.twins * noise[-2] + np.sqrt(1 - self.twins**2) * noise[-1]
        y = rng.random(ROWS_OF_MODELS) < stats.norm.cdf(z)
        # Given what a model sees, z is normal with this mean and variance.
        mean = (z + NOISE * noise) / (1 + NOISE**2)
        variance = NOISE**2 / (1 + NOISE**2)
        shifts = np.array(self.shifts)[:, None]
        first, *others = stats.norm.cdf(mean / np.sqrt(1 + variance) + shifts)
        return y, first, dict(enumerate(others))

    def p_values(self, rng: RNG, key: int) -> tuple[Any, Any]:
        """Compute the p-values of each comparison alone, and of all together."""
        results = compare(
            *self.draw(rng), estimator=self.estimator, n_resamples=DRAWS, rng=key, n_jobs=1
        )
        alone = np.array([result.raw_p_value for result in results.values()])
        return alone, np.array([result.p_value for result in results.values()])


FIVE_CALIBRATED = (0.0,) * 5
FIVE_EQUAL = (0.4, -0.4, 0.4, -0.4, 0.4)
MODEL_LEVELS = {
    "5 models, calibrated": Models(FIVE_CALIBRATED),
    "5 models, equal errors": Models(FIVE_EQUAL),
    "5 models, equal errors, two alike": Models(FIVE_EQUAL, 0.95),
    "Brier score: 5 models, calibrated": Models(FIVE_CALIBRATED, estimator="brier_score"),
    "Brier score: 5 models, equal errors": Models(FIVE_EQUAL, estimator="brier_score"),
    "Brier score: 5 models, equal errors, two alike": Models(FIVE_EQUAL, 0.95, "brier_score"),
}
MODEL_POWERS = {
    "5 models, 1 off": Models((0.0, 0.0, 0.0, 0.0, 0.35)),
    "5 models, 4 off, two alike": Models((0.0, 0.35, 0.35, 0.35, 0.35), 0.95),
    "Brier score: 5 models, 1 off": Models((0.0, 0.0, 0.0, 0.0, 0.3), estimator="brier_score"),
    "Brier score: 5 models, 4 off, two alike": Models(
        (0.0, 0.3, 0.3, 0.3, 0.3), 0.95, "brier_score"
    ),
}


# --- tables ---------------------------------------------------------------------------------


def row_of(name: str, shares: Any) -> list[str]:
    """Return a row of a table, with the mean share of each column in percent."""
    return [name, *(f"{100 * float(np.mean(x)):.1f}" for x in np.transpose(shares))]


def alarm_row(name: str, samples: int, p_values_of: Callable[[int], tuple[Any, Any]]) -> list[str]:
    """Return how often any hypothesis of true ones is rejected."""
    alarms = []
    for key in range(samples):
        alone, joint = p_values_of(key)
        alarms.append([joint.min() <= LEVEL, alone.size * alone.min() <= LEVEL])
    return row_of(name, alarms)


def found_by_method(alone: Any, joint: Any, is_off: Any) -> list[float]:
    """Compute the share of false hypotheses that each method rejects."""
    without_draws = joint_p_values(alone)  # Holm's
    methods = (joint, without_draws, alone.size * alone)
    return [np.mean(x[is_off] <= LEVEL) for x in methods]


def slices_alarms(options: Any) -> Iterator[list[str]]:
    """Yield the levels of joint tests of slices."""
    for i, (name, draw) in enumerate(LEVELS.items()):
        if name.startswith(options.design):
            rng = np.random.default_rng(i)
            yield alarm_row(name, options.samples, lambda k, d=draw, r=rng: p_values(d(r), k)[:2])


def slices_found(options: Any) -> Iterator[list[str]]:
    """Yield the power of joint tests of slices."""
    for i, (name, (draw, off)) in enumerate(power_designs().items()):
        if name.startswith(options.design):
            rng = np.random.default_rng(100 + i)
            found = []
            for key in range(options.power):
                alone, joint, labels = p_values(draw(rng), key)
                found.append(found_by_method(alone, joint, np.isin(labels, off)))
            yield row_of(name, found)


def models_alarms(options: Any) -> Iterator[list[str]]:
    """Yield the levels of joint comparisons of several models with the first."""
    for i, (name, models) in enumerate(MODEL_LEVELS.items()):
        if name.startswith(options.design):
            rng = np.random.default_rng(200 + i)
            yield alarm_row(name, options.samples, lambda k, m=models, r=rng: m.p_values(r, k))


def models_found(options: Any) -> Iterator[list[str]]:
    """Yield the power of joint comparisons of several models with the first."""
    for i, (name, models) in enumerate(MODEL_POWERS.items()):
        if name.startswith(options.design):
            rng = np.random.default_rng(300 + i)
            is_off = np.array(models.shifts[1:]) != models.shifts[0]
            yield row_of(name, [
                found_by_method(*models.p_values(rng, key), is_off)
                for key in range(options.power)
            ])  # fmt: skip


TABLES = {
    "joint_slices_alarms": slices_alarms,
    "joint_slices_found": slices_found,
    "joint_models_alarms": models_alarms,
    "joint_models_found": models_found,
}


def main() -> None:
    """Write all tables."""
    parser = new_parser(__doc__)
    parser.add_argument("samples", type=int, nargs="?", default=2000)
    parser.add_argument("power", type=int, nargs="?", default=400)
    parser.add_argument("--design", default="", help="the beginning of the names of designs to run")
    options = parser.parse_args()
    for name, rows in TABLES.items():
        methods = ["joint", "Holm", "Bonferroni"] if "found" in name else ["joint", "Bonferroni"]
        write_table(options.out, name, ["design", *methods], rows(options))


if __name__ == "__main__":
    main()
