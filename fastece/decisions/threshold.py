"""Thresholds: scores from which predictions may act alone, with a promise.

>>> import numpy as np
>>> from fastece.decisions import choose_threshold
>>> rng = np.random.default_rng(0)
>>> confidence = rng.beta(8, 1, 2000)
>>> threshold = choose_threshold(rng.random(2000) < confidence, confidence, accuracy=0.9)
>>> threshold([0.5, 0.99]).tolist()
[False, True]
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_probabilities
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import as_groups
from fastece.data.reading import read_problems
from fastece.data.samples import Sample, in_order, scale_weights
from fastece.data.sources import SETTINGS, class_count
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number
from fastece.display.results import Result, group_notes, one_of, sample_text
from fastece.estimators.base import check_width
from fastece.estimators.binomial import binomial_ends
from fastece.estimators.risk import check_threshold
from fastece.files import unique_keys
from fastece.kernels.types import F64, I64
from fastece.resampling.arguments import Call, add_groups, read_call
from fastece.resampling.dependence import GROUPS_OF_BIN, MOST_BINS
from fastece.resampling.draws import Groups
from fastece.resampling.results import as_float, tails_of

if TYPE_CHECKING:
    pass

# Candidates have ranks that grow by this factor: no finer grid finds lower thresholds.
STEP = 1.02
# The sequence of tests begins again where there are so many times as many rows above.
RESTART = 3.0
# In place of a shape of 0 of the beta law.
TINY = 1e-300
USUAL, FORMAT, INTERVAL = 0.95, "fastece.threshold 1", "coverage_interval"
# Numbers of a threshold, and the heads of their columns.
NUMBERS = {"value": "score at least", "coverage": "coverage", "accuracy": "accuracy",
           "accuracy_bound": "at least", "cost": "cost", "cost_bound": "at most"}  # fmt: skip
RIGHT = "predictions are right in at least {:g} % of cases, with {:g} % confidence"
CHEAP = "acting costs less on these rows than abstaining"
FOUND = "From the score {:.6g} on, {}: {:.1f} % of the rows."
NONE = "No score is found from which {}."
EACH = "{} of {} values have a score from which {}{}."
BINARY = (
    "A row is right if its label is 1, as of pairs of hits and confidences. Of probabilities of "
    "label 1, the setting confidence takes predictions of either label."
)


# --- rows above a score ---------------------------------------------------------------------


class Ranks(NamedTuple):
    """Rows from the highest score down: scores, hits and weights (n,), and groups.

    `ratio` is the mean weight of misses over that of hits, and `balanced` are weights without it:
    misses that weigh more are fewer than they seem.
    """

    score: F64
    right: NDArray[Any]
    w: F64
    balanced: F64
    ratio: float
    groups: Groups | None

    @classmethod
    def of(cls, sample: Sample, groups: Groups | None) -> Self:
        """Order the rows of a sample."""
        order, v = in_order(sample.s)[1][::-1], scale_weights(sample)[0].v
        w = np.ones(sample.n) if v is None else np.maximum(v[order] / v.max(), TINY)
        score, right, ratio = sample.s[order], sample.y[order], 1.0
        if v is not None and 0 < (hits := np.count_nonzero(right)) < w.size:
            ratio = float((w @ (right == 0)) / (w @ right) * hits / (w.size - hits))
        balanced = w if ratio == 1 else np.where(right == 1, w, w / ratio)
        return cls(score, right, w, balanced, ratio, groups and groups.where(order))

    def effective(self) -> F64:
        """Count the independent rows that the rows down to each (n,) are worth.

        ``W^2 / (sum w^2 + r sum w w')``, with the pairs of rows of one group, and a correlation r
        that is rather too large (Kish 1965, "Survey sampling", sections 5.4 and 11.7).
        """
        w, squares, few = self.balanced, np.cumsum(self.balanced**2), 1.0
        if self.groups is not None:
            of_row, before = self.groups.of_row, np.empty(w.size)
            order, size = np.argsort(of_row, kind="stable"), np.bincount(of_row)
            sums = np.cumsum(w[order]) - w[order]
            before[order] = sums - np.repeat(sums[np.cumsum(size) - size], size)
            squares = squares + self.correlation(self.groups) * np.cumsum(2 * w * before)
            few = max(1 - 2 / self.groups.count, 0.0)  # as the quantiles of Student's law
        return few * np.cumsum(w) ** 2 / np.maximum(squares, TINY)

    def correlation(self, groups: Groups) -> float:
        """Estimate the correlation of hits of one group, with a margin for chance.

        The margin is ``1 / sqrt(G)`` of G groups with misses, which alone show it: in simulations
        the promises then hold.
        """
        (n, w), bins = (self.score.size, self.balanced), max(groups.count // GROUPS_OF_BIN, 1)
        rank = np.searchsorted(self.score[::-1], self.score)  # equal scores are in one bin
        place = rank * min(bins, MOST_BINS) // n
        weight = np.maximum(np.bincount(place, w), TINY)
        rate = (np.bincount(place, w * self.right) / weight)[place]
        terms = w * (self.right - rate), w * np.sqrt(rate * (1 - rate))
        seen, most = (float((np.bincount(groups.of_row, x) ** 2).sum() - x @ x) for x in terms)
        missed = np.unique(groups.of_row[self.right == 0]).size
        return min(max(seen / most, 0.0) + 1 / math.sqrt(missed), 1.0) if most > 0 else 1.0

    def rows_of_share(self, share: float, end: int) -> float:
        """Count the independent rows that the share of the rows down to one is known by."""
        gap = self.w * ((np.arange(self.w.size) <= end) - (share if share < 1 else 0.0))
        gap = gap if self.groups is None else np.bincount(self.groups.of_row, gap)
        return float(self.w.sum() ** 2 / (gap @ gap) * (share * (1 - share) or 1.0))


def scale_odds(p: Any, factor: float) -> Any:
    """Multiply the odds of probabilities."""
    return p * factor / (1 - p + p * factor)


class Candidates(NamedTuple):
    """Candidate thresholds, chosen without labels: numbers (M,) of the rows above."""

    score: F64
    end: I64  # the last row with this score
    coverage: F64
    accuracy: F64
    rows: F64  # effective ones

    @classmethod
    def of(cls, ranks: Ranks) -> Self:
        """Take scores at ranks that grow by a constant factor; equal scores stay together."""
        n, score = ranks.w.size, ranks.score
        ends = np.append(np.flatnonzero(score[1:] < score[:-1]), n - 1)
        steps = np.rint(np.geomspace(1, n, 2 + int(math.log(n) / math.log(STEP))))
        end = ends[np.unique(np.searchsorted(ends, steps - 1))]
        weight, hits = (np.cumsum(x)[end] for x in (ranks.w, ranks.w * ranks.right))
        return cls(score[end], end, weight / weight[-1], hits / weight, ranks.effective()[end])


# --- promises -------------------------------------------------------------------------------


class Goal(NamedTuple):
    """A promise to make: an accuracy, or the least cost of mistakes and of abstaining."""

    accuracy: float
    costs: Sequence[float] | None
    confidence: float

    @classmethod
    def of(cls, accuracy: Any, cost: Any, confidence: Any) -> Self:
        """Check the arguments of a promise."""
        level = check_threshold("confidence", confidence)
        if cost is None:
            accuracy = USUAL if accuracy is None else accuracy
            return cls(check_threshold("accuracy", accuracy), None, level)
        if accuracy is not None:
            raise InputTypeError("cost", "goes without {accuracy}, which it takes the place of")
        if not isinstance(cost, tuple | list) or len(cost) != 2:
            raise InputTypeError("cost", "must be a pair (mistake, abstain)", value=cost)
        return cls(math.nan, [check_width("cost", x) for x in cost], level)


def start_levels(rows: F64, accuracy: float, alpha: float) -> F64:
    """Share a level among the candidates (M,) where a sequence of tests begins.

    The first has the fewest rows that can promise anything, all of them right. Starts get parts in
    the proportion 1, 2, 3, ...: of equal ones, and of other ratios of their rows, more coverage was
    lost in simulations.
    """
    level, most, fewest = np.zeros(rows.size), rows.max(), math.log(alpha) / math.log(accuracy)
    if most >= fewest:
        part = np.arange(1.0, 2 + int(math.log(most / fewest) / math.log(RESTART)))
        part *= alpha / part.sum()
        first = min(math.log(part[0]) / math.log(accuracy), most)
        wanted = np.geomspace(first, most, part.size + 1)[:-1] * (1 - 1e-12)
        np.add.at(level, np.searchsorted(np.maximum.accumulate(rows), wanted), part)
    return level


def lowest_promise(
    found: Candidates, ratio: float, accuracy: float, alpha: float
) -> tuple[int, float]:
    """Find the last candidate that passes an accuracy, and the bound of its test.

    -1 where there is none. Candidates are tested in their order, each at the sum of the levels of
    the starts since the last one that failed (Wiens 2003, the fallback procedure).
    """
    from scipy.special import betainc

    hits, least = scale_odds(found.accuracy, ratio) * found.rows, scale_odds(accuracy, ratio)
    p_values = betainc(np.maximum(hits, TINY), found.rows - hits + 1, least)
    best, left, tested = -1, 0.0, 0.0
    for j, level in enumerate(start_levels(found.rows, least, alpha)):
        left += level
        if 0 < left >= p_values[j]:
            best, tested = j, left
        else:
            left = 0.0
    bound, _ = binomial_ends(hits[best], found.rows[best] - hits[best], tested, 1.0)
    return best, float(scale_odds(bound, 1 / ratio))


def least_cost(found: Candidates, ranks: Ranks, costs: F64, alpha: float) -> tuple[int, F64]:
    """Find the candidate that costs least, its cost and the bound of that.

    -1 where to abstain costs least. The bound is that of the shares of mistakes, and of rows left
    out, each with half of the level of one of M candidates.
    """
    shares = np.stack([found.coverage * (1 - found.accuracy), 1 - found.coverage])
    mean = costs @ shares
    j = int(mean.argmin())
    if mean[j] >= costs[1]:
        return -1, costs[[1, 1]]
    rows = np.array(
        [
            found.rows[-1] / max(ranks.ratio, 1.0),
            ranks.rows_of_share(found.coverage[j], found.end[j]),
        ]
    )
    x = shares[:, j] * rows
    _, high = binomial_ends(x, rows - x, 0.0, 1 - alpha / (2 * mean.size))
    return j, np.array([mean[j], min(costs @ high, costs.max())])


def choose(ranks: Ranks, goal: Goal, alpha: float) -> list[float]:
    """Choose the threshold of some rows: `NUMBERS`, and the interval of the coverage."""
    found, bound, cost = Candidates.of(ranks), math.nan, np.full(2, math.nan)
    if goal.costs is None:
        j, bound = lowest_promise(found, ranks.ratio, goal.accuracy, alpha)
    else:
        j, cost = least_cost(found, ranks, np.array(goal.costs), alpha)
    if j < 0:
        return [math.nan, 0.0, math.nan, math.nan, *cost, 0.0, 0.0]
    value, end, coverage, right, _ = (x[j] for x in found)
    rows = ranks.rows_of_share(coverage, end)
    ends = binomial_ends(coverage * rows, (1 - coverage) * rows, *tails_of(goal.confidence))
    return [value, coverage, right, bound, *cost, *ends]


# --- thresholds -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Threshold(Result):
    """A score from which predictions may act alone, with its promise.

    The result of `choose_threshold`. ``threshold(y_prob)`` gives the rows (n,) that may act: True
    where the score is at least `value`. Chosen with `by`, numbers are (V,) arrays in the order of
    `labels`, and it takes ``threshold(y_prob, by=...)``; rows of a value that it has not seen may
    not act.

    Attributes
    ----------
    value : float or (V,) array
        The score; nan where none can be promised, and then no row may act.
    coverage, coverage_interval : float, ConfidenceInterval
        The share of rows, by weight, that may act.
    accuracy, accuracy_bound : float
        How often these are right on the rows of the choice, and a lower bound of how often they
        are in all, which is at least `required_accuracy`; nan with costs.
    cost, cost_bound : float
        Mean cost of a row, and its upper bound; nan without costs.
    required_accuracy, costs : float, tuple or None
        As given: the accuracy, nan with costs, and the costs of a mistake and of abstaining.
    confidence : float
        Of all promises together, and of each `coverage_interval`.
    labels : list or None
        The values of `by`.
    setting, from_logits, n_classes : str or int, bool, int
        How scores are read from probabilities.
    n, n_groups : int, int or None
        Rows of the choice, and groups of them.
    """

    value: Any
    coverage: Any
    coverage_interval: ConfidenceInterval
    accuracy: Any
    accuracy_bound: Any
    cost: Any
    cost_bound: Any
    required_accuracy: float
    costs: Sequence[float] | None
    confidence: float
    labels: list[Any] | None
    setting: Any
    from_logits: bool
    n_classes: int
    n: int
    n_groups: int | None

    def __call__(self, y_prob: Any, by: Any = None) -> NDArray[np.bool_]:
        """Return which rows (n,) may act alone.

        Parameters
        ----------
        y_prob : (n,) or (n, K) array_like
            Probabilities, or logits, as those of the choice.
        by : (n,) array_like, optional
            The value of each row, if the threshold was chosen by some.

        Returns
        -------
        (n,) bool array

        Raises
        ------
        ValueError, TypeError
            As in `fastece.ece`; for another number of classes; for `by` without values, or none.
        """
        prob = as_probabilities(y_prob)
        if (count := class_count(prob.shape)) != self.n_classes:
            rule = f"must have {self.n_classes} classes, as the rows of the choice"
            raise InputError("y_prob", rule, value=count)
        if (by is None) != (self.labels is None):
            rule = "is needed" if by is None else "must be left out"
            raise InputTypeError("by", f"{rule}, as the threshold was chosen")
        options: Any = {"setting": self.setting, "from_logits": self.from_logits}
        score = read_problems(np.zeros(len(prob), np.int64), y_prob, **options).view().s
        if self.labels is None:
            return np.asarray(score >= self.value)
        place, labels = as_groups(by, score.size)
        known = dict(zip(self.labels, self.value, strict=True))
        return score >= np.array([known.get(plain(x), math.nan) for x in labels])[place]

    @property
    def sentence(self) -> str:
        """The promise, in one sentence."""
        claim, acts = CHEAP, ~np.isnan(self.value)
        if self.costs is None:
            claim = RIGHT.format(100 * self.required_accuracy, 100 * self.confidence)
        if self.labels is not None:
            together = ", all of them together" if self.costs is None else ""
            return EACH.format(np.count_nonzero(acts), acts.size, claim, together)
        return FOUND.format(self.value, claim, 100 * self.coverage) if acts else NONE.format(claim)

    def document(self) -> Document:
        """Describe the threshold, or one for each value, as a table."""
        notes = [BINARY] * (self.setting == "binary") + group_notes(self.n_groups)
        title = f"Threshold, setting {self.setting}: {sample_text(self)}"
        return Document(title, self.sentence, [Section(table=self.table(), notes=notes)])

    def table(self) -> Table:
        """Describe the numbers of each threshold in a row."""
        bounds = ["accuracy_bound"] if self.costs is None else ["cost", "cost_bound"]
        keys, rows = ["value", "coverage", INTERVAL, "accuracy", *bounds], []
        for k, label in enumerate(self.labels or ["all rows"]):
            value, share, ends, *rest = (one_of(getattr(self, name), k) for name in keys)
            numbers = [Number(value, form=".6g"), Number(share, ends), ends, *map(Number, rest)]
            rows.append([f"{label}", *numbers])
        heads = {**NUMBERS, INTERVAL: f"{100 * self.confidence:g} % CI"}
        return Table(["", *(heads[key] for key in keys)], rows, ["label", *keys])

    def to_json(self) -> str:
        """Write the threshold as JSON: `from_json` and other programs read it.

        Rows whose score is at least `value` may act; null is no number, so none may. Numbers have
        all their digits.
        """
        return json.dumps({"format": FORMAT, **self.to_dict()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a threshold that `to_json` wrote.

        Raises
        ------
        ValueError
            For a text that is damaged, or was not written by it.
        """
        try:
            content = json.loads(text, object_pairs_hook=unique_keys)
            if content.pop("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            for name in (*NUMBERS, "required_accuracy"):
                content[name] = read_number(content[name])
            content[INTERVAL] = ConfidenceInterval(*map(read_number, content[INTERVAL]))
            if np.any((content["value"] < 0) | (content["value"] > 1)):
                raise ValueError("its value is no probability")
            return cls(**content)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise InputError("text", f"is no threshold that fastece wrote: {error}") from error


def read_number(value: Any) -> Any:
    """Read a number or an array from JSON, where null is nan."""
    return as_float(np.array(value, np.float64))


def plain(label: Any) -> Any:
    """Write a label that JSON does not have as text."""
    return label if isinstance(label, str | int | float) else str(label)


# --- the call -------------------------------------------------------------------------------


def threshold_of(
    call: Call, goal: Goal, by: tuple[I64, list[Any]] | None = None, from_logits: bool = False
) -> Threshold:
    """Choose the threshold of the only model of a call, or one for each label."""
    data = call.only_problem("{by} takes predicted classes")
    sample, groups, place = data.view(), call.clusters, np.zeros(data.n, np.int64)
    labels, setting = None, data.setting
    if by is not None:
        present, place = np.unique(by[0][data.positions], return_inverse=True)
        labels = [plain(by[1][k]) for k in present]
    found, count = [], 1 if labels is None else len(labels)
    for k in range(count):
        rows = np.flatnonzero(place == k)
        ranks = Ranks.of(sample.where(rows), groups and groups.where(rows))
        found.append(choose(ranks, goal, (1 - goal.confidence) / count))
    columns: list[Any] = [*np.array(found).T] if labels is not None else [*map(float, found[0])]
    return Threshold(
        **dict(zip(NUMBERS, columns, strict=False)), required_accuracy=goal.accuracy,
        coverage_interval=ConfidenceInterval(*columns[-2:]), costs=goal.costs, labels=labels,
        setting=setting.name if setting.name in SETTINGS else setting.column, n=call.n,
        confidence=goal.confidence, from_logits=from_logits, n_classes=data.n_classes,
        n_groups=call.n_groups,
    )  # fmt: skip


def choose_threshold(
    y_true: Any, y_prob: Any = None, *, accuracy: float | None = None,
    cost: tuple[float, float] | None = None, confidence: float = 0.95, by: Any = None,
    groups: Any = None, **options: Any,
) -> Threshold:  # fmt: skip
    """Choose the lowest score above which predictions are right often enough.

    Parameters
    ----------
    y_true, y_prob : array_like
        As in `fastece.ece`: class vectors (n, K), of which the largest probability is the score, or
        confidences (n,), with whether each prediction was right. Probabilities (n,) of label 1 are
        predictions of either label with ``setting="confidence"``, and of label 1 without.
    accuracy : float, optional
        How often predictions that act alone are to be right, by default 0.95.
    cost : (mistake, abstain), optional
        In place of `accuracy`: the cost of a wrong prediction that acted, and of one that did not
        act. The score is then that from which acting costs least on these rows.
    confidence : float, default 0.95
        How often such promises are kept.
    by : (n,) array_like, optional
        A value for each row, such as the predicted class: each has a threshold of its own, and all
        promises hold together.
    groups : (n,) array_like, optional
        Rows with the same label belong together, as in `fastece.estimate`.
    **options
        `setting`, `labels`, `pos_label`, `sample_weight` and `from_logits`, as in `fastece.ece`.

    Returns
    -------
    Threshold
        Call it with probabilities; `value` is nan where nothing can be promised.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for an accuracy or a confidence that is not between 0 and 1, costs that
        are no two positive numbers, both of them, and several problems.

    Notes
    -----
    Among samples of rows, in at most ``1 - confidence`` is the true accuracy of the predictions
    above the threshold less than promised, whatever the model is: the choice is allowed for.
    Candidates are scores at ranks that grow by 2 %, chosen without a look at the labels. Their
    hypotheses "the accuracy above is less than this" are tested from the top in fixed sequence
    (Angelopoulos, Bates, Candes, Jordan and Lei 2021, "Learn then test: calibrating predictive
    algorithms to achieve risk control"), by the binomial law of the rows above (Clopper and Pearson
    1934). The sequence starts where just enough rows lie above to promise anything, and again where
    there are some three times as many, and so on; the starts have parts of the level, in the
    proportion 1, 2, 3, ..., which are handed on while tests reject (Wiens 2003, "A fixed sequence
    Bonferroni procedure for testing multiple endpoints"). The last candidate that is rejected is
    the threshold. Of V values of `by` each has the level ``(1 - confidence) / V``.

    With weights, rows count by Kish's effective number, misses after they are brought to the mean
    weight of hits; with groups also by the correlation of hits within these, with a margin. Both
    are approximate; simulations are in ``docs/selective.md``. The bound of a cost is the sum of
    those of the shares of mistakes and of rows left out, at the same time of all candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.decisions import choose_threshold
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.beta(8, 1, 2000)
    >>> threshold = choose_threshold(rng.random(2000) < confidence, confidence, accuracy=0.9)
    >>> print(f"{threshold.value:.3f} {threshold.coverage:.3f}")
    0.763 0.888
    >>> threshold([0.5, 0.99]).tolist()
    [False, True]
    """
    goal = Goal.of(accuracy, cost, confidence)
    options |= {"estimator": "accuracy", "n_resamples": 0}
    call = read_call("choose_threshold", y_true, {"y_prob": y_prob}, 0, **options)
    call = add_groups(call, groups, y_prob)
    values = None if by is None else as_groups(by, len(as_probabilities(y_prob)))
    return threshold_of(call, goal, values, bool(options.get("from_logits", False)))
