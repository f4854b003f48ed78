"""`check_estimator`: nothing to say of good estimators, and every fault of bad ones in words."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest

from fastece import Binned, EstimatorError, check_estimator
from fastece.estimators.protocol import Counts, Estimator, curve_near_rows
from helpers.probes import Mean, OneBin
from helpers.table import CASES


@pytest.mark.parametrize(
    "name", ["ece", "ece_ac", "ece_sweep", "mmce", "ecce_r", "log_loss", "mce"]
)
def test_estimators_of_the_package_have_no_fault(name):
    assert check_estimator(CASES[name]) is None


@pytest.mark.slow
def test_names_and_objects_of_two_methods_are_tried_too():
    for estimator in ("ece_a", OneBin(), Mean(), Block(), Vectors(), WithPosterior(), WithCurve()):
        assert check_estimator(estimator) is None


# --- good ones ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gap:
    """|sum w (y - s)| / sum w, of which the faulty ones below change one thing."""

    def prepare(self, sample, size):  # noqa: ARG002
        v = np.ones(sample.n) if sample.v is None else sample.v
        return v, v * (sample.y - sample.s)

    def evaluate(self, plan, c):
        v, gap = plan
        return abs(np.sum(c * gap)) / np.sum(c * v)


class Block(Gap):
    def block(self, plan, c):
        v, gap = plan
        return np.abs(gap @ c) / (v @ c)


class Vectors(Gap):
    needs_vectors = True

    def prepare(self, sample, size):
        if sample.vectors is None:
            return super().prepare(sample, size)
        prob, label = sample.vectors.prob[sample.rows], sample.vectors.label[sample.rows]
        v = np.ones(sample.n) if sample.v is None else sample.v
        return v, v * (np.square(prob).sum(1) - prob[np.arange(sample.n), label])


# --- faulty ones ----------------------------------------------------------------------------


class IgnoresCounts(Gap):
    def evaluate(self, plan, c):
        return super().evaluate(plan, np.ones(len(c)))


class WritesCounts(Gap):
    def evaluate(self, plan, c):
        value = super().evaluate(plan, c)
        c[0] = 0
        return value


class ScalesCounts(Gap):
    def evaluate(self, plan, c):
        return super().evaluate(plan, c) * np.sum(c > 0)


class SquaresCounts(Gap):
    def evaluate(self, plan, c):
        return super().evaluate(plan, np.square(c * 1.0))


class SumsInBytes(Gap):
    def evaluate(self, plan, c):
        return super().evaluate(plan, c) + float(c.sum(dtype=c.dtype) != len(c))


class IgnoresWeights(Gap):
    def prepare(self, sample, size):  # noqa: ARG002
        return np.ones(sample.n), 1.0 * sample.y - sample.s


class AddsWeights(Gap):
    def evaluate(self, plan, c):
        return super().evaluate(plan, c) * np.sum(c * plan[0])


class WritesWeights(Gap):
    def prepare(self, sample, size):
        if sample.v is not None:
            sample.v[:] /= sample.v.max()
        return super().prepare(sample, size)


class WritesScores(Gap):
    def prepare(self, sample, size):
        np.clip(sample.s, 0.01, 0.99, out=sample.s)
        return super().prepare(sample, size)


class Remembers(Gap):
    count = 0

    def evaluate(self, plan, c):
        type(self).count += 1
        return super().evaluate(plan, c) + 1e-3 * self.count


class WritesPlan(Gap):
    def evaluate(self, plan, c):
        plan[1][:] *= 0.5
        return super().evaluate(plan, c)


class ReadsOrder(Gap):
    needs_sorted = False

    def prepare(self, sample, size):
        v, gap = super().prepare(sample, size)
        return v, gap * np.linspace(1, 2, sample.n)


class GivesArray(Gap):
    def evaluate(self, plan, c):
        return np.array([super().evaluate(plan, c)])


class GivesNothing(Gap):
    def evaluate(self, plan, c):
        pass


class Fails(Gap):
    def prepare(self, sample, size):
        if sample.n == 1:
            raise ZeroDivisionError("one row is no sample")
        return super().prepare(sample, size)


class Warns(Gap):
    def prepare(self, sample, size):
        np.float64(1.0) / (sample.n - 1)
        return super().prepare(sample, size)


class WrongBlock(Block):
    def block(self, plan, c):
        return super().block(plan, c)[::-1]


class ShortBlock(Block):
    def block(self, plan, c):
        return super().block(plan, c)[:31]


class WrongValues(Estimator):
    native = (Counts,)

    def prepare(self, sample, size):
        return Gap().prepare(sample, size)

    def evaluate(self, plan, c):
        return Gap().evaluate(plan, c)

    def values(self, plan, draws):
        values = super().values(plan, draws)
        return values[:5] if isinstance(draws, Counts) else values + 1


class CannotBeSent(Gap):
    def prepare(self, sample, size):
        return *super().prepare(sample, size), threading.Lock()

    def evaluate(self, plan, c):
        return super().evaluate(plan[:2], c)


class BeyondItsBounds(Gap):
    lowest = 0.0
    largest = 0.1


class LosesState(Gap):
    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        object.__setattr__(self, "shift", 1.0)

    def evaluate(self, plan, c):
        return super().evaluate(plan, c) + getattr(self, "shift", 0.0)


class WithPosterior(Gap):
    """A normal law around the gap."""

    def posterior(self, samples):
        (sample,) = samples
        v, gap = self.prepare(sample, sample.n)
        value = self.evaluate((v, gap), np.ones(sample.n))
        return Law(value, np.sign(gap.sum()) * gap)


class Law:
    log_bayes_factor = 0.0

    def __init__(self, value, influence):
        self.value = value
        self.influence = influence

    def interval(self, level):
        return self.value - 0.1 * level, self.value + 0.1 * level


class SummedInfluence(WithPosterior):
    def posterior(self, samples):
        law = super().posterior(samples)
        return Law(law.value, law.influence.sum())


class Narrowing(WithPosterior):
    def posterior(self, samples):
        law = super().posterior(samples)
        law.interval = lambda level: (law.value - 1 + level, law.value + 1 - level)
        return law


class WithCurve(Gap):
    """The mean outcome at every score."""

    def curve(self, sample, size, confidence_level, effect):  # noqa: ARG002
        score = sample.s[sample.is_first_of_score]
        return curve_near_rows(sample, size, score, np.full(score.size, sample.y.mean()))


class CurveOfRows(WithCurve):
    def curve(self, sample, size, confidence_level, effect):  # noqa: ARG002
        return curve_near_rows(sample, size, sample.s, np.full(sample.n, sample.y.mean()))


class CurveOfGaps(WithCurve):
    def curve(self, sample, size, confidence_level, effect):
        curve = super().curve(sample, size, confidence_level, effect)
        return curve._replace(probability=curve.probability - curve.score)


TWICE, ROWS = "a row that counts twice must be two rows", "values of Rows must be"
COUNTS = "values of Counts must be those of evaluate"
FAULTY = {
    BeyondItsBounds: ["values must lie from lowest to largest: got 0.1, and not 0."],
    IgnoresCounts: ["evaluate must use c: got 0.", TWICE, ROWS],
    WritesCounts: ["evaluate must not write into c: got 0, and not"],
    ScalesCounts: [TWICE, ROWS],
    SquaresCounts: [TWICE, ROWS],
    SumsInBytes: ["c may be of any type: got 0.", "(700 rows)"],
    IgnoresWeights: ["evaluate must use sample.v: got 0."],
    AddsWeights: ["only ratios of weights may matter: got", "equal weights must be no weights"],
    WritesWeights: ["must not write into the sample: they do (40 rows with weights)"],
    WritesScores: ["must not write into the sample"],
    Remembers: ["the same plan and c must have the same value: got"],
    WritesPlan: ["the same plan and c must have the same value: got"],
    ReadsOrder: ["rows may come in any order: got"],
    GivesArray: ["evaluate must return a number: got array([0."],
    GivesNothing: ["evaluate must return a number: got None"],
    Fails: ["it must not fail or warn: ZeroDivisionError: one row is no sample (one row)"],
    Warns: ["it must not fail or warn: RuntimeWarning: divide by zero", "(one row)"],
    WrongBlock: [f"{COUNTS}: got 0."],
    ShortBlock: [f"{COUNTS}: got ValueError: ShortBlock.block: must return 32 values"],
    WrongValues: [f"{COUNTS}: got the shape (5,), and not (32,)", ROWS,
                  "values of Labels must be those of the rows"],
    CannotBeSent: ["another process must get the same: got TypeError: cannot pickle"],
    SummedInfluence: ["a posterior must have an influence for each row: got the shape"],
    Narrowing: ["intervals of a posterior must grow with the level: got"],
    CurveOfRows: ["scores of a curve must rise: got the shape (10,), and not (40,)"],
    CurveOfGaps: ["a curve must lie from 0 to 1: got 0, and not -"],
    LosesState: ["another process must get the same: got 1."],
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTY, ids=lambda kind: kind.__name__)
def test_a_fault_is_named_with_what_was_seen_and_where(kind):
    with pytest.raises(EstimatorError) as error:
        check_estimator(kind())
    text = str(error.value)
    assert isinstance(error.value, ValueError)
    for words in FAULTY[kind]:
        assert words in text, text
    head, *lines = text.splitlines()
    assert head == "the estimator breaks rules:"
    assert lines == [f"- {fault}" for fault in error.value.faults]


@pytest.mark.parametrize("kind", [IgnoresCounts, ReadsOrder])
def test_a_fault_alone_is_listed_alone(kind):
    with pytest.raises(EstimatorError) as error:
        check_estimator(kind())
    assert len(error.value.faults) <= 3


@pytest.mark.parametrize(
    ("what", "message"),
    [(object(), "prepare and evaluate"), (Binned, "prepare and evaluate"),
     (None, "prepare and evaluate"), ("nothing", "must be a known name")],
)  # fmt: skip
def test_what_is_no_estimator_is_named(what, message):
    with pytest.raises(EstimatorError, match=message) as error:
        check_estimator(what)
    assert len(error.value.faults) == 1
