"""What an estimator is: a function of a weighted binary calibration problem.

A problem is scores in [0, 1], hits in {0, 1}, sample weights and the support of the score
(`Sample`). A setting turns a caller's data into one or K of them, and an estimator turns each into
a number. Whatever resamples the rows only changes how often each of them counts, so an estimator
*prepares* a sample once and *evaluates* it under as many multiplicities as needed.
"""

from dataclasses import fields
from typing import Any, Protocol

from numpy.typing import NDArray

from fastece.data.sample import Sample

# As many numbers of a tuple are shown.
MOST_SHOWN = 6


class Parameters:
    """A frozen dataclass of parameters that is an estimator: as text, and the range it measures."""

    score_range: Any

    needs = "ranks"

    def __str__(self: Any) -> str:
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        shown = [
            f"{field.name}={shorten(value)}"
            for i, (field, value) in enumerate(values)
            if i == 0 or value != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def range_of(self, problems: Any) -> tuple[float, float]:
        """[0, 1], the support of the score of these problems, or the caller's range."""
        named = {"unit": (0.0, 1.0), "support": (problems.low, problems.high)}
        low, high = named.get(self.score_range, self.score_range)
        return low, high


def shorten(value: Any) -> str:
    """A value as text; of a long tuple its ends."""
    if not isinstance(value, tuple) or len(value) <= MOST_SHOWN:
        return repr(value)
    return f"({value[0]!r}, {value[1]!r}, ..., {value[-1]!r})"


class Plan:
    """A dataclass that an estimator has prepared: what it computes and caches is not sent to
    another process, only its fields are."""

    def __getstate__(self: Any) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Estimator(Protocol):
    """What every estimator has. Two methods are enough for single calls, weights, class-wise
    values and whatever else the package does with an estimator: `prepare` and `evaluate`. What is
    listed here is optional, found by name, and the methods are there for a measured speed.

    Attributes
    ----------
    needs : {"ranks", "squares", "rows"}
        What a sum over cells of the score, as a stream keeps them, must get right: the ranks of the
        scores; the squares of scores too; or nothing will do but every row. Without it: "ranks".
    needs_vectors : bool
        Whether `Sample.vectors` are wanted: its value for class vectors (setting "auto") is not
        that of the top label. Without it: no.
    reads_pairs : bool
        Whether a replicate looks at all pairs of rows, so that threads get fewer replicates at a
        time. Without it: no.
    is_calibration_error : bool
        Whether 0 is what a calibrated model has but for noise. Without it: yes. Of anything else
        there is a bootstrap and a comparison, but no `estimate` and no `calibration_test`, which
        ask how far it is from that.
    needs_sorted : bool
        Whether `prepare` is to get the sample sorted by score, for speed. Without it: yes.

    Methods
    -------
    direct(problems, run)
        (K,) values: the single call on all problems at once (`fastece.data.problems.Problems`),
        every row counting once, without a sort or a copy of the scores: a tenth of the time for
        uniform bins. `run` is `map`, or the `map` of a thread pool.
    block(plan, c)
        (32,) values: `evaluate` for each column of c, (n, 32) uint8: a tenth of the time of 32
        evaluations.
    blocks(plan, c)
        (32 G,) values: `block` for each of c, (G, n, 32) uint8: what Python itself costs, 30 us, is
        shared by many replicates, which matters below some 10 000 rows.
    subsets(plan, rows)
        (R,) values, for draws that are much smaller than the sample: the value of the rows in each
        line of `rows`, (R, size) int32 positions in the sample, of which each counts once. A
        hundredth of the time of preparing each draw.
    labels(plan, y)
        (32 G,) values, for `calibration_test` and `estimate`: of the sample with the labels y,
        (G, n, 32) int32, instead of its own, every row counting as much as its weight. They are
        classes of class vectors, or hits. With it, labels are drawn so and not as multiplicities
        of each row as a hit and as a miss, among which a bandwidth would find rows twice.
    truth(plan, q)
        A float, for `estimate` of what has `labels`: the true error where the classes of rows come
        true with the probabilities q (n, K), two classes for a binary problem. It is 0 for those
        that are predicted.
    posterior(samples)
        What `estimate` and `compare` answer by, of one sample or of those of all classes on the
        same rows: an object with ``value``, ``interval(level)``, ``influence`` (n,) of each row and
        ``log_bayes_factor``.
    """

    def prepare(self, sample: Sample, size: int) -> Any:
        """Whatever does not depend on the multiplicities. `size`: number of rows per draw."""

    def evaluate(self, plan: Any, c: NDArray[Any]) -> float:
        """The value when row i of the sample counts ``c[i]`` times, ``sum(c) == size``, but for
        draws of groups of rows, where all rows have weights. Only `estimate` and streams ask for
        fractions of rows: those that may be expected of a hypothesis, and the weights of cells."""
