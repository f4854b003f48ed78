"""Small studies, their draws made again, and the study's estimators as plain loops."""

import math
from itertools import pairwise
from math import fsum, isqrt, nan

import numpy as np
import reference

from fastece.resampling.draws import RowLists, new_key
from fastece.study import Design, figures
from fastece.study.design import Purpose
from fastece.study.distributions import MODELS, GaussianMixture, new_model, predicted
from oracles import reference_kde

# Four distributions, each in some hundredths of a second.
TINY = Design(
    classes=(2, 3), features=(2,), mixtures=1, models=("naive_bayes", "logistic_regression"),
    trainings=1, train_size=40, holdout=1000, smallest=10, largest=20, n_sizes=2, draws=3,
)  # fmt: skip
# One distribution.
SINGLE = Design(
    classes=(3,), features=(2,), mixtures=1, models=("naive_bayes",), trainings=1, train_size=60,
    holdout=1000, smallest=10, largest=40, n_sizes=3, draws=5,
)  # fmt: skip
BINNED = {
    "ece": {},
    "ece_a": {"edges": "quantile"},
    "ece_c": {"mapping": "convex"},
    "ece_ac": {"edges": "quantile", "mapping": "convex"},
}
BINS = (10, 30, "sqrt")
BANDWIDTHS = ("silverman", 0.1, 0.033)
FIFTEEN = [f"{name}_{bins}" for name in BINNED for bins in BINS]
FIFTEEN += [f"ece_kde_{h}" for h in BANDWIDTHS]
SIXTEEN = [*FIFTEEN, "ece_bayes"]  # of the corrected convention


class Replay:
    """One distribution of scores of a design, made again from the keys of the design."""

    def __init__(self, design, which):
        self.design = design
        self.which = which
        kind = (which.n_classes, which.n_features, which.mixture)
        self.mixture = GaussianMixture.draw(*kind[:2], design.rng(Purpose.MIXTURE, *kind))
        self.x, self.y = self.mixture.sample(design.holdout, design.rng(Purpose.HOLDOUT, *kind))
        self.posterior = self.mixture.posterior(self.x)
        numbers = (*kind, which.training)
        train = self.mixture.sample(design.train_size, design.rng(Purpose.TRAINING, *numbers))
        seed = int(design.rng(Purpose.MODEL, *numbers).integers(2**31))
        model = new_model(which.model, seed).fit(*train)
        self.prob = predicted(model, self.x, which.n_classes)

    def rows(self, size):
        """The rows (draws, size) of the hold-out that are drawn."""
        which = self.which
        design = self.design
        model = MODELS.index(which.model)
        numbers = (which.n_classes, which.n_features, which.mixture, model, which.training, size)
        key = new_key(design.rng(Purpose.DRAWS, *numbers))
        return RowLists(key, design.holdout, size).make(0, design.draws)

    def problems(self, rows, setting):
        """The problems of some rows, in the order of the hold-out, as `reference` has them."""
        rows = np.sort(rows)
        return reference.problems(self.y[rows].tolist(), self.prob[rows].tolist(), setting)

    def chances(self, setting):
        """Scores and exact probabilities of hits of all rows, for each problem."""
        if setting == "classwise":
            return [(self.prob[:, k], self.posterior[:, k]) for k in range(self.prob.shape[1])]
        top = [row.index(max(row)) for row in self.prob.tolist()]
        return [(self.prob.max(1), self.posterior[np.arange(len(top)), top])]


def corrected(name, problems, points=40):
    """The value of one of the fifteen: the mean over the problems."""
    kind, _, option = name.rpartition("_")
    if kind == "ece_kde":
        h = option if option == "silverman" else float(option)
        values = [reference_kde.kde_error(p, bandwidth=h, points=points) for p in problems]
    else:
        fields = {"n_bins": number(option), "score_range": "support", **BINNED[kind]}
        values = [reference.error(problem, **fields) for problem in problems]
    return fsum(values) / len(values)


def number(option):
    return option if option == "sqrt" else int(option)


def published(name, problems, points=40):
    """The value of one of the fifteen as the published code has it."""
    kind, _, option = name.rpartition("_")
    if kind == "ece_kde":  # 4. every class has the bandwidth of the first
        h = float(option) if option != "silverman" else first_bandwidth(problems)
        values = [
            reference_kde.kde_error(p, bandwidth=h, kernel="triweight", points=points)
            for p in problems
        ]
    else:
        loops = {
            "ece": unit_bins, "ece_a": counted_bins, "ece_c": swapped_uniform,
            "ece_ac": swapped_counted,
        }  # fmt: skip
        values = [loops[kind](problem, number(option)) for problem in problems]
    return fsum(values) / len(values)


def first_bandwidth(problems):
    scores, _, low, high = problems[0]
    return reference_kde.silverman(scores, None, len(scores), low, high)


def bin_count(problem, n_bins):
    return isqrt(len(problem[0])) if n_bins == "sqrt" else n_bins


def in_order(problem):
    """(score, hit), scores increasing, equal ones as they stand."""
    return sorted(zip(problem[0], problem[1], strict=True), key=lambda row: row[0])


def unit_bins(problem, n_bins):
    """2. Bins of [0, 1] for any support, closed at the left."""
    return reference.error(problem, n_bins=n_bins, score_range="unit", closed="left")


def counted(problem, n_bins):
    """3. Edges floor(n / B) rows apart, half way between two; None where n < B."""
    scores = [s for s, _ in in_order(problem)]
    _, _, low, high = problem
    each = len(scores) // n_bins
    if each == 0:
        return None
    cuts = [(scores[b * each - 1] + scores[b * each]) / 2 for b in range(1, n_bins)]
    return [low, *cuts, high]


def counted_bins(problem, n_bins):
    n_bins = bin_count(problem, n_bins)
    edges = counted(problem, n_bins)
    if edges is None:
        return nan
    bins = [[] for _ in range(n_bins)]
    for s, y in in_order(problem):
        bins[sum(edge <= s for edge in edges[1:-1])].append(y - s)
    return fsum(abs(fsum(gaps)) for gaps in bins) / len(problem[0])


def swapped(rows, centres):
    """1. With c_j the last centre below the score, bin j gets (s - c_j) / (c_{j+1} - c_j), so the
    farther one gets more; a score on the first centre goes to the last bin."""
    sums = [[] for _ in centres]
    last = len(centres) - 1
    for s, y in rows:
        if s == centres[0]:
            sums[last].append(y - s)
        elif s < centres[0]:
            sums[0].append(y - s)
        elif s > centres[last]:
            sums[last].append(y - s)
        else:
            j = max(b for b in range(last) if centres[b] < s)
            share = (s - centres[j]) / (centres[j + 1] - centres[j])
            sums[j].append(share * (y - s))
            sums[j + 1].append((1 - share) * (y - s))
    return fsum(abs(fsum(gaps)) for gaps in sums) / len(rows)


def swapped_uniform(problem, n_bins):
    _, _, low, high = problem
    edges = reference.uniform_edges(bin_count(problem, n_bins), low, high)
    return swapped(in_order(problem), [(a + b) / 2 for a, b in pairwise(edges)])


def swapped_counted(problem, n_bins):
    edges = counted(problem, bin_count(problem, n_bins))
    if edges is None:
        return nan
    return swapped(in_order(problem), [(a + b) / 2 for a, b in pairwise(edges)])


def truth(s, q, n_bins=200):
    """The mean over bins of equal mass of 2 |D| - E |N(D, d^2)|, and the influence of each row.

    Equal scores are in one bin.
    """
    n = len(s)
    order = sorted(range(n), key=lambda i: s[i])
    rows_of_bin = {}
    bin_of_score = 0
    for place, i in enumerate(order):
        if place == 0 or s[i] != s[order[place - 1]]:
            bin_of_score = place * n_bins // n
        rows_of_bin.setdefault(bin_of_score, []).append(i)
    value = 0.0
    influence = [0.0] * n
    for rows in rows_of_bin.values():
        m = len(rows)
        gaps = [q[i] - s[i] for i in rows]
        mean = fsum(gaps) / m
        sd = math.sqrt(fsum((gap - mean) ** 2 for gap in gaps) / (m * max(m - 1, 1)))
        part = 2 * abs(mean) - reference.folded(abs(mean), sd)
        value += m * part / n
        for i, gap in zip(rows, gaps, strict=True):
            sign = np.sign(mean)
            influence[i] = sign * (gap - mean) + part
    return value, [x - value for x in influence]


PICTURES = [f"{name}.{kind}" for name in ("figure2", "log_ratio", "bias")
            for kind in ("png", "svg")]  # fmt: skip
TABLES = ["summary.csv", "summary_labels.csv", "ranking.csv", "values.parquet", "study.json"]


def quick_curves(summary, measure="p95_relative_error"):
    """A picture of all numbers of a column, in a tenth of the time."""
    figure = figures.new_figure((1, 1))
    figure.set_layout_engine("none")
    values = summary[measure].to_numpy()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")  # what takes time
    axes.plot(np.where(np.isfinite(values), values, -1.0))
    return figure


def with_quick_figures(setattr_):
    """Replace the study's pictures by ones that take no time."""
    setattr_(figures, "curves_figure", quick_curves)
    setattr_(figures, "DPI", 30)


def contents(folder, names):
    """Name -> bytes."""
    return {name: (folder / name).read_bytes() for name in names}


def assert_same_files(found, want, names):
    contents_found = contents(found, names)
    contents_wanted = contents(want, names)
    assert [name for name in names if contents_found[name] != contents_wanted[name]] == []


OWN = '''
import numpy as np
from fastece import Binned
from fastece.estimators.protocol import Estimator, Rows

class Gap:
    """The absolute mean gap."""

    def prepare(self, sample, size):
        return sample.y - sample.s

    def evaluate(self, plan, c):
        return float(abs(np.sum(plan * c)) / np.sum(c))

class Slow:
    """Ten bins, by prepare and evaluate alone."""

    def __init__(self):
        self.binned = Binned(n_bins=10, score_range="support")

    def prepare(self, sample, size):
        return self.binned.prepare(sample, size)

    def evaluate(self, plan, c):
        return self.binned.evaluate(plan, c)

class Narrow(Gap, Estimator):
    """Of draws, each is asked for by its own rows."""

    native = (Rows,)

    def values(self, plan, draws):
        return np.array([abs(np.sum(plan[row])) / len(row) for row in np.sort(draws.rows)])

an_object = Gap()
ready = Binned(n_bins=10, score_range="support")
number = 3

def a_function():
    return Gap()

def of_a_number():
    return 3

def with_arguments(x):
    return x

def out_of_reach():
    raise OSError("no such file")

class Unprepared:
    def evaluate(self, plan, c):
        return 0.0

class Failing(Gap):
    def evaluate(self, plan, c):
        return 1 / 0

zero = an_object
'''
