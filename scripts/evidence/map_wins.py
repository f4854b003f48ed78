"""How often each recalibration map beats the others, by proper scores on new rows.

Simulated: 200 data sets of 30 to 10 000 rows to fit to, half of them of two classes, the others of
3 to 100. Models are of the kinds in `KINDS`, calibrated ones among them. The true chances of the
classes are known for each row, so both losses of new rows are expectations, without the noise of
their labels.

Real: predictions that ship with fastece and, with --networks, those of networks in a folder: CSV
files with the columns ``true_label, pred_label, confidence``, whose confidences are scores of a
problem of two classes, and npz files with ``probs (n, K)`` and ``labels (n,)``. Maps are fitted to
rows of a random half, and the losses are those of the other half.

Every map is fitted with its default options, and so is the one that "auto" chooses by folds of the
same rows. Writes ``map_wins.csv``, ``map_losses.csv`` and ``map_choice.csv``, and prints the
warnings of fits. Takes about three minutes on one core; results are reproducible.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from results import new_parser, write_table
from scipy.special import log_softmax, softmax, xlogy

from fastece import datasets
from fastece.kernels.types import F64, I64
from fastece.recalibration import METHODS, recommend

SEED = 60
# Simulated sets. Each kind of model has as many of two classes as of several.
SETS = 200
SMALLEST = 30
LARGEST = 10_000
MOST_CLASSES = 100
# Rows to fit to for each class, on average, at least.
ROWS_PER_CLASS = 5
# New rows of a simulated set: so many entries, and at least so many rows.
NEW_ENTRIES = 100_000
NEW_ROWS = 2000
# Rows of real sets that maps are fitted to, and random halves of each set.
REAL_SIZES = (100, 300, 1000, 3000)
HALVES = 10
# Two classes have at least so many labels, so that each fold of "auto" has both.
LABELS_OF_TWO = 5
# Sets with up to so many rows to fit to count as small.
SMALL = 1000
# Losses that differ by less are equal.
TIE = 1e-9
# A probability below counts as this one, as in scikit-learn's log loss: no loss is infinite.
CLIP = 2.0**-52
NONE = "none"
AUTO = "auto"
# The maps that are compared, in the order of tables: all but "prior_shift", which is for rows of
# another base rate.
MAPS = (
    NONE, "temperature", "ets", "svs", "sms", "vector", "matrix", "platt", "beta", "quadratic",
    "curve", "isotonic", "histogram", "scaling_binning",
)  # fmt: skip
# Matrix scaling takes minutes for more classes: its loss often falls for ever.
MOST_CLASSES_OF = {"matrix": 20}
LOSSES = ("Brier", "log loss")
TWO = "two classes"
SEVERAL = "several classes"
SIMULATED = "simulated"
REAL = "real"


class Predictions(NamedTuple):
    """Predicted probabilities and true chances of the classes, both (n, K)."""

    p: F64
    chance: F64

    def losses(self, p: F64) -> F64:
        """Return the expected Brier score and log loss of other probabilities (n, K)."""
        brier = (p**2 - 2 * p * self.chance + self.chance).sum(axis=1).mean()
        log_loss = -xlogy(self.chance, np.maximum(p, CLIP)).sum(axis=1).mean()
        return np.array([brier, log_loss])

    def split(self, rows: int) -> "tuple[Predictions, Predictions]":
        """Return the first rows, and the others."""
        first = Predictions(self.p[:rows], self.chance[:rows])
        return first, Predictions(self.p[rows:], self.chance[rows:])


class Experiment(NamedTuple):
    """Rows that maps are fitted to, with their labels, and new rows."""

    data: str
    kind: str
    p: F64
    label: I64
    new: Predictions

    @property
    def classes(self) -> str:
        """Whether there are two classes or several."""
        return TWO if self.p.shape[1] == 2 else SEVERAL


# --- kinds of models -----------------------------------------------------------------------------

Generator = np.random.Generator


def draw_logits(rng: Generator, rows: int, classes: int) -> F64:
    """Draw logits: noise, classes that are more frequent than others, and one that stands out."""
    frequent = rng.normal(0, 0.5, classes)
    z = frequent + rng.normal(0, rng.uniform(0.5, 1.5), (rows, classes))
    lead = rng.uniform(0.5, 1.5) * (1 + np.log(classes)) * rng.gamma(2, 0.5, rows)
    z[np.arange(rows), rng.integers(classes, size=rows)] += lead
    return z


def draw_factor(rng: Generator) -> float:
    """Draw by how much a model is under-confident, or below 1 over-confident."""
    return float(np.exp(rng.normal(0, 0.25)))


def calibrated(_: Generator, z: F64) -> Predictions:
    """Return predictions that are the chances."""
    return Predictions(softmax(z, axis=1), softmax(z, axis=1))


def confident(rng: Generator, z: F64) -> Predictions:
    """Return logits that are too large or too small by a factor of up to 2.5."""
    factor = np.exp(rng.uniform(np.log(0.4), np.log(2.5)))
    return Predictions(softmax(z, axis=1), softmax(factor * z, axis=1))


def base_rates(rng: Generator, z: F64) -> Predictions:
    """Return predictions for other frequencies of the classes."""
    shift = rng.normal(0, 0.7, z.shape[1])
    return Predictions(softmax(z, axis=1), softmax(draw_factor(rng) * z + shift, axis=1))


def slopes(rng: Generator, z: F64) -> Predictions:
    """Return log probabilities that are too large or too small by a factor of each class."""
    factor = draw_factor(rng) * np.exp(rng.normal(0, 0.3, z.shape[1]))
    return Predictions(softmax(z, axis=1), softmax(factor * log_softmax(z, axis=1), axis=1))


def curved(rng: Generator, z: F64) -> Predictions:
    """Return log odds that are bent in another way above 0 than below."""
    p = softmax(z, axis=1)
    log_odds = log_softmax(z, axis=1) - np.log1p(-np.minimum(p, 1 - CLIP))
    low, high = rng.uniform(0.5, 1.4, 2)
    power = np.where(log_odds < 0, low, high)
    bent = np.sign(log_odds) * ((1 + np.abs(log_odds)) ** power - 1) / power
    return Predictions(p, softmax(draw_factor(rng) * bent, axis=1))


def heavy_tails(rng: Generator, z: F64) -> Predictions:
    """Return logits with errors from Student's t distribution of two degrees of freedom."""
    error = rng.uniform(0.2, 0.8) * rng.standard_t(2, z.shape)
    return Predictions(softmax(z + error, axis=1), softmax(z, axis=1))


def confusions(rng: Generator, z: F64) -> Predictions:
    """Return log probabilities each of which lacks a part of another class's."""
    classes = z.shape[1]
    order = rng.permutation(classes)
    mixing = np.eye(classes)
    mixing[np.roll(order, 1), order] = rng.uniform(-0.5, 0.5, classes)
    mixed = log_softmax(z, axis=1) @ mixing
    return Predictions(softmax(z, axis=1), softmax(draw_factor(rng) * mixed, axis=1))


def shares_of_trees(rng: Generator, z: F64) -> Predictions:
    """Return shares of 10 to 200 trees, many of them exactly 0 or 1."""
    trees = int(np.exp(rng.uniform(np.log(10), np.log(200))))
    votes = rng.multinomial(trees, softmax(draw_factor(rng) * z, axis=1))
    return Predictions(votes / trees, softmax(z, axis=1))


def uniform_noise(rng: Generator, z: F64) -> Predictions:
    """Return predictions that ignore labels drawn at random from all classes."""
    share = rng.uniform(0.02, 0.3)
    chance = (1 - share) * softmax(draw_factor(rng) * z, axis=1) + share / z.shape[1]
    return Predictions(softmax(z, axis=1), chance)


# Two of ten are calibrated.
CALIBRATED = "calibrated"
KINDS: list[tuple[str, Callable[[Generator, F64], Predictions]]] = [
    (CALIBRATED, calibrated),
    ("confidence", confident),
    ("base rates", base_rates),
    ("slopes", slopes),
    ("curved", curved),
    (CALIBRATED, calibrated),
    ("heavy tails", heavy_tails),
    ("confusions", confusions),
    ("trees", shares_of_trees),
    ("noise", uniform_noise),
]


# --- experiments ---------------------------------------------------------------------------------


def draw_labels(rng: Generator, chance: F64) -> I64:
    """Draw labels by the chances (n, K) of classes."""
    passed = chance.cumsum(axis=1) < rng.random((len(chance), 1))
    return np.asarray(passed.sum(axis=1).clip(max=chance.shape[1] - 1), np.int64)


def can_be_fitted(label: I64) -> bool:
    """Return whether two classes have the labels that folds need."""
    return int((np.bincount(label) >= LABELS_OF_TWO).sum()) > 1


def draw_between(rng: Generator, low: int, high: int) -> int:
    """Draw a whole number, its logarithm uniformly."""
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def simulate(i: int) -> Experiment:
    """Simulate a set by its number; labels that no map can be fitted to are drawn again."""
    kind, model = KINDS[i // 2 % len(KINDS)]
    rng = np.random.default_rng([SEED, i])
    while True:
        rows = draw_between(rng, SMALLEST, LARGEST)
        most = min(MOST_CLASSES, rows // ROWS_PER_CLASS)
        classes = draw_between(rng, 3, most) if i % 2 else 2
        new_rows = max(NEW_ROWS, NEW_ENTRIES // classes)
        predictions = model(rng, draw_logits(rng, rows + new_rows, classes))
        held, new = predictions.split(rows)
        label = draw_labels(rng, held.chance)
        if can_be_fitted(label):
            return Experiment(SIMULATED, kind, held.p, label, new)


def read_sources(folder: Path | None) -> Iterator[tuple[str, F64, I64]]:
    """Yield the name, the predictions (n, K) and the labels of each real data set."""
    for name in datasets.FILES:
        label, p = datasets.load(name)
        yield name, p if p.ndim == 2 else two_columns(p), label.astype(np.int64)
    if folder is None:
        print("no networks, since --networks was not given")
        return
    for path in sorted(folder.glob("*.csv")):
        true, predicted, confidence = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
        yield path.stem, two_columns(confidence), (true == predicted).astype(np.int64)
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            yield path.stem, file["probs"].astype(np.float64), file["labels"].astype(np.int64)


def two_columns(p: F64) -> F64:
    """Return the probabilities of both classes from those of class 1."""
    return np.column_stack([1 - p, p])


def halve(folder: Path | None) -> Iterator[Experiment]:
    """Yield random halves of each real data set: one to fit to, at several sizes, one of new rows.

    Labels are the chances of new rows.
    """
    for name, p, label in read_sources(folder):
        half = label.size // 2
        for draw in range(HALVES):
            order = np.random.default_rng([SEED, draw]).permutation(label.size)
            chance = np.eye(p.shape[1])[label[order[half:]]]
            new = Predictions(p[order[half:]], chance)
            for rows in REAL_SIZES:
                held = order[:rows]
                if rows <= half and can_be_fitted(label[held]):
                    yield Experiment(REAL, name, p[held], label[held], new)


# --- maps ----------------------------------------------------------------------------------------


def is_too_large(name: str, classes: int) -> bool:
    """Return whether a map has too many weights for its time to be worth it."""
    return classes > MOST_CLASSES_OF.get(name, MOST_CLASSES)


def recalibrate(name: str, experiment: Experiment) -> F64:
    """Fit a map, and return its probabilities (n, K) of new rows.

    Problems of two classes are passed as one column, for which "curve" and the like are made.
    """
    p = experiment.p
    new = experiment.new.p
    if experiment.classes == TWO:
        model = METHODS[name]().fit(p[:, 1], experiment.label)
        return two_columns(model.transform(new[:, 1]))
    return np.asarray(METHODS[name]().fit(p, experiment.label).transform(new))


def choose(experiment: Experiment) -> str:
    """Return the map that "auto" chooses by folds of the rows to fit to."""
    p = experiment.p[:, 1] if experiment.classes == TWO else experiment.p
    return recommend(experiment.label, p).method


class Outcome(NamedTuple):
    """An experiment's kind and size, the losses (2, maps) of its new rows, and what auto chose."""

    data: str
    kind: str
    classes: str
    rows: int
    losses: F64
    chosen: str

    def log_loss(self, name: str) -> float:
        """Return the log loss of a map, of no map, or of what auto chose."""
        chosen = self.chosen if name == AUTO else name
        return float(self.losses[1, MAPS.index(chosen)])

    @property
    def best(self) -> float:
        """The smallest log loss of all maps."""
        return float(np.nanmin(self.losses[1]))


def measure(experiment: Experiment, messages: Counter[str]) -> Outcome:
    """Fit all maps, and measure them on new rows; a map that is too large has nan."""
    losses = np.full((len(LOSSES), len(MAPS)), np.nan)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for j, name in enumerate(MAPS):
            if not is_too_large(name, experiment.p.shape[1]):
                losses[:, j] = experiment.new.losses(recalibrate(name, experiment))
        chosen = choose(experiment)
    for warning in caught:
        sentence = str(warning.message).partition(": ")[2]
        messages[re.split(r"[,:(\d]", sentence)[0].strip()] += 1
    outcome = Outcome(
        experiment.data, experiment.kind, experiment.classes, len(experiment.p), losses, chosen
    )
    shown = f"{outcome.log_loss(NONE):.4f}, auto ({chosen}) {outcome.log_loss(AUTO):.4f}"
    size = f"{outcome.rows} x {experiment.p.shape[1]}"
    print(f"{outcome.kind}, {size}: none {shown}, best {outcome.best:.4f}", flush=True)
    return outcome


# --- tables --------------------------------------------------------------------------------------

GROUPS = [(classes, data) for data in (SIMULATED, REAL) for classes in (TWO, SEVERAL)]
ALL_ROWS = "all"
SIZES: dict[str, tuple[float, float]] = {
    ALL_ROWS: (0, np.inf),
    f"up to {SMALL}": (0, SMALL),
    f"above {SMALL}": (SMALL, np.inf),
}


def select(
    outcomes: Sequence[Outcome], classes: str, data: str, rows: str = ALL_ROWS
) -> list[Outcome]:
    """Select the outcomes of a group and a size."""
    low, high = SIZES[rows]
    return [
        outcome for outcome in outcomes
        if (outcome.classes, outcome.data) == (classes, data) and low < outcome.rows <= high
    ]  # fmt: skip


def win_shares(outcomes: Sequence[Outcome], name: str) -> F64:
    """Return the percentages of pairwise wins (2,) of a map against all others; ties are halves."""
    losses = np.array([outcome.losses for outcome in outcomes])
    chosen = [MAPS.index(outcome.chosen if name == AUTO else name) for outcome in outcomes]
    own = losses[np.arange(len(outcomes)), :, chosen][:, :, None]
    gain = losses - own
    win = np.where(np.abs(gain) <= TIE, 0.5, gain > 0)
    is_compared = ~np.isnan(gain)
    if name != AUTO:
        is_compared[:, :, MAPS.index(name)] = False
    if not is_compared.any():
        return np.full(len(LOSSES), np.nan)
    return np.asarray(100 * np.average(win, axis=(0, 2), weights=is_compared))


def win_rows(outcomes: Sequence[Outcome]) -> Iterator[list[str]]:
    """Yield the shares of wins, Brier score and log loss, by size and map."""
    for rows in SIZES:
        for name in [*MAPS, AUTO]:
            cells = []
            for group in GROUPS:
                selected = select(outcomes, *group, rows)
                shares = win_shares(selected, name) if selected else np.full(2, np.nan)
                cells.append(" / ".join(f"{share:.1f}" for share in shares))
            yield [rows, name, *cells]


def percent_of_none(outcomes: Sequence[Outcome], name: str) -> str:
    """Return how much larger the mean log loss of a map is than that of none, in percent."""
    fitted = [outcome for outcome in outcomes if not np.isnan(outcome.log_loss(name))]
    if not fitted:
        return ""
    means = [np.mean([outcome.log_loss(each) for outcome in fitted]) for each in (name, NONE)]
    return f"{100 * (means[0] / means[1] - 1):+.1f}"


def loss_rows(outcomes: Sequence[Outcome]) -> Iterator[list[str]]:
    """Yield mean log losses compared to none, by classes, data and map."""
    kinds = [*dict.fromkeys(kind for kind, _ in KINDS)]
    for classes in (TWO, SEVERAL):
        groups = [select(outcomes, classes, data) for data in (SIMULATED, REAL)]
        of_kind = [[each for each in groups[0] if each.kind == kind] for kind in kinds]
        for name in [*MAPS[1:], AUTO]:
            fitted = [
                each for each in groups[0] + groups[1] if not np.isnan(each.log_loss(name))
            ]  # fmt: skip
            ratio = np.array([each.log_loss(name) / each.log_loss(NONE) for each in fitted])
            worse = [each.log_loss(name) > each.log_loss(NONE) + TIE for each in fitted]
            percents = [percent_of_none(group, name) for group in (*of_kind, *groups)]
            median = f"{100 * (np.median(ratio) - 1):+.1f}"
            yield [classes, name, *percents, median, f"{100 * np.mean(worse):.0f}"]


def percent_above(losses: F64, references: F64) -> str:
    """Return by how much a mean loss is above another, in percent, and its standard error."""
    ratio = losses.mean() / references.mean()
    residual = (losses - ratio * references) / references.mean()
    error = residual.std(ddof=1) / np.sqrt(residual.size)
    return f"{100 * (ratio - 1):+.2f} ({100 * error:.2f})"


def choice_row(group: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return how "auto" compares to none and to the best maps in hindsight."""
    auto = np.array([outcome.log_loss(AUTO) for outcome in outcomes])
    none = np.array([outcome.log_loss(NONE) for outcome in outcomes])
    best = np.array([outcome.best for outcome in outcomes])
    gain = auto - none
    losses = np.array([outcome.losses[1] for outcome in outcomes])
    single = int(np.nanargmin(losses.mean(axis=0)))
    chosen = Counter(outcome.chosen for outcome in outcomes).most_common(3)
    return [
        group,
        str(len(outcomes)),
        f"{gain.mean():+.4f}",
        f"{gain.std(ddof=1) / np.sqrt(gain.size):.4f}",
        f"{100 * np.mean(gain > TIE):.0f}",
        percent_above(auto, best),
        percent_above(auto, losses[:, single]),
        MAPS[single],
        ", ".join(f"{name} {count}" for name, count in chosen),
    ]


CHOICE_HEAD = [
    "sets", "number", "auto - none", "standard error", "worse than none", "above best of each",
    "above best map", "best map", "chosen most",
]  # fmt: skip


def choice_rows(outcomes: Sequence[Outcome]) -> Iterator[list[str]]:
    """Yield what "auto" achieves, by groups of sets."""
    for classes, data in GROUPS:
        for rows in SIZES:
            selected = select(outcomes, classes, data, rows)
            if len(selected) > 1:
                yield choice_row(f"{data}, {classes}, {rows} rows", selected)
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        selected = [outcome for outcome in outcomes if outcome.kind == kind]
        if len(selected) > 1:
            yield choice_row(kind, selected)


def main() -> None:
    """Measure, and write the tables."""
    parser = new_parser(__doc__)
    parser.add_argument("--networks", type=Path, metavar="FOLDER", help="files of real networks")
    options = parser.parse_args()
    messages: Counter[str] = Counter()
    outcomes = [measure(simulate(i), messages) for i in range(SETS)]
    outcomes += [measure(experiment, messages) for experiment in halve(options.networks)]
    groups = [f"{classes}, {data}" for classes, data in GROUPS]
    write_table(options.out, "map_wins", ["rows", "map", *groups], win_rows(outcomes))
    kinds = dict.fromkeys(kind for kind, _ in KINDS)
    head = ["classes", "map", *kinds, SIMULATED, REAL, "median", "worse than none"]
    write_table(options.out, "map_losses", head, loss_rows(outcomes))
    write_table(options.out, "map_choice", CHOICE_HEAD, choice_rows(outcomes))
    for message, count in sorted(messages.items()):
        print(f"{count} times {message}")


if __name__ == "__main__":
    main()
