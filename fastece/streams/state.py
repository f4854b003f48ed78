"""The state of a stream: sums of integers.

The sums do not depend on how rows were split, on their order, or on the number of machines.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import asdict
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I64
from fastece.resampling.draws import poisson_law
from fastece.streams.batches import Batch
from fastece.streams.cells import ScoreCells, coarse_sums
from fastece.streams.settings import Settings

# The sums of all weights, and of their squares, that integers of 64 bits hold.
MAX_WEIGHT = 2.0**32
MAX_SQUARE = 2.0**38
# How often 1 is counted in the totals of weights and of their squares.
WEIGHT_UNIT = 2.0**30
SQUARE_UNIT = 2.0**24
# Draws of row i begin at 32 i of a counter of 64 bits.
MAX_ROW = 2**59 - 1
# The arrays of cells and replicates, which any all-reduce may add up, as the totals are.
CELL_SUMS = ("fine", "coarse", "replicates")
# The totals of rows that do not depend on their numbers in the stream.
ROW_TOTALS = ("n", "distance", "distance_low", "square_low", "weight", "square")
# If rounding may be more than this share of the sum of the squares of small weights, coarse cells
# share that sum by their weights.
MAX_ROUNDING_SHARE = 0.01
# A bound of damaged sums may be exceeded by rounding, which is less than this factor.
ROUNDING_FACTOR = 1 + 1e-6
# A replicate draws no row more often than this.
MAX_DRAWS_OF_ROW = 41


class WeightSums(NamedTuple):
    """Sum of the weights of all rows, and of their squares."""

    weight: float
    square: float


class State:
    """Sums of rows, int64 arrays.

    A state changes by `add` alone, as a whole; every other action makes another state.

    Attributes
    ----------
    fine : (P, N + 2, 2) int64 array
        Weights of both outcomes in the fine cells of each problem.
    coarse : (P, N', 8) int64 array
        The words of `kernels.cells` of each coarse cell.
    replicates : (P, blocks, 2 N', 32) int64 array
        Weights of both outcomes in the coarse cells of each replicate.
    totals : int64 array
        The totals of `kernels.cells.TOTALS`.
    is_sum : bool
        Whether these are rows of several processes, which the next sum would count again.
    cell_cache : list of ScoreCells or None
        The sums as numbers, for further questions about the same rows: at most 10 MB a problem.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        problems = settings.n_problems
        coarse = settings.n_coarse
        blocks = -(-settings.n_replicates // REPLICATES)
        self.fine = np.zeros((problems, settings.n_cells + 2, 2), np.int64)
        self.coarse = np.zeros((problems, coarse, kernels.cells.WORDS), np.int64)
        self.replicates = np.zeros((problems, blocks, 2 * coarse, REPLICATES), np.int64)
        self.totals = make_totals({"parts": 1, "fingerprint": settings.fingerprint})
        self.is_sum = False
        self.cell_cache: list[ScoreCells] | None = None

    def get(self, name: str) -> int:
        """Return one of the totals."""
        return int(self.totals[kernels.cells.TOTALS.index(name)])

    @property
    def arrays(self) -> dict[str, I64]:
        """The sums that are saved, by their names."""
        arrays = {name: getattr(self, name) for name in CELL_SUMS}
        arrays["totals"] = self.totals[: kernels.cells.SAVED]
        if self.is_sum:
            arrays["is_sum"] = np.ones(1, np.int64)
        return arrays

    def copy(self) -> "State":
        """Return another state with the same rows."""
        new = copy(self)
        for name in (*CELL_SUMS, "totals"):
            setattr(new, name, getattr(self, name).copy())
        new.cell_cache = None
        return new

    def refuse_sum(self, action: str) -> None:
        """Refuse to add rows to the sums of several processes."""
        if self.is_sum:
            raise RuntimeError(f"{action}: these are the rows of all processes; reset() first")

    def check_room(self, weight: float, square: float) -> None:
        """Refuse more weight, or more squares of weights, than the sums have room for."""
        weight += self.get("weight") / WEIGHT_UNIT
        square += self.get("square") / SQUARE_UNIT
        refuse_above("weights", weight, MAX_WEIGHT)
        refuse_above("squares of the weights", square, MAX_SQUARE)

    def check_totals(self) -> None:
        """Refuse totals of states that cannot be merged."""
        if self.get("fingerprint") != self.get("parts") * self.settings.fingerprint:
            raise InputError("state", "must have the settings of this accumulator")
        if self.get("grouped") not in (0, self.get("n")):
            raise InputError("state", "must have groups for all rows or for none")
        if not 0 <= self.get("n") <= self.get("rows") <= MAX_ROW or self.get("parts") < 1:
            raise InputError("state", "has numbers of rows that do not go together")
        if self.get("first_rows") > 1:
            rule = "must be of different rows, and two parts have one of the number 0"
            raise InputError("state", rule, hint="update takes the row_offset of each part")

    def merge(self, other: "State") -> "State":
        """Return the sums of both states."""
        self.refuse_sum("merge")
        other.refuse_sum("merge")
        for name, value in asdict(self.settings).items():
            value_of_other = getattr(other.settings, name)
            if value != value_of_other:
                rule = f"must have the settings of this one: its {name} is {value!r}"
                raise InputError("other", rule, value=value_of_other)
        self.check_room(other.get("weight") / WEIGHT_UNIT, other.get("square") / SQUARE_UNIT)
        new = copy(self)
        new.totals = self.totals + other.totals
        new.check_totals()
        next_row = max(self.get("next_row"), other.get("next_row"), new.get("rows"))
        new.totals[kernels.cells.SAVED] = next_row
        for name in CELL_SUMS:
            setattr(new, name, getattr(self, name) + getattr(other, name))
        new.cell_cache = None
        return new

    def load(self, sums: dict[str, Any]) -> None:
        """Load sums by name, and refuse invalid ones."""
        self.is_sum = "is_sum" in sums
        for name, array in self.arrays.items():
            array[:] = check_array(name, sums.get(name), array.shape)
        unknown = sorted({*sums} - {*self.arrays})
        if unknown:
            raise InputError("state", f"must hold {[*self.arrays]}", value=unknown[0])
        if self.is_sum and sums["is_sum"] != 1:
            raise InputError("state", "must be one sum over all processes, not several added up")
        if any((array < 0).any() for array in (self.fine, self.replicates, self.totals[:4])):
            raise InputError("state", "has weights or counts below 0, so sums were too large")
        self.check_totals()
        sums_of_problems = [self.check_cells(k) for k in range(len(self.fine))]
        weight = int(sums_of_problems[0].weight * WEIGHT_UNIT)
        square = int(sums_of_problems[0].square * SQUARE_UNIT)
        self.totals[kernels.cells.SAVED :] = (self.get("rows"), weight, square)

    def check_cells(self, k: int) -> WeightSums:
        """Refuse sums of problem `k` that no rows have; return the sums of its weights."""
        cells = self._cells(k)
        n = self.get("n")
        outcome_weight = cells.coarse_weight
        cell_weight = outcome_weight.sum(0)
        total = float(outcome_weight.sum())
        squares = float(cells.square.sum())
        self.check_room(total, squares)
        second_words = self.coarse[k, :, kernels.cells.LOW_WEIGHT :]
        largest_draw = self.replicates[k].max((0, 2), initial=0) / kernels.cells.REPLICATE_UNIT
        largest_draw = largest_draw.reshape(-1, 2).T
        max_distance = 0
        if self.settings.is_auto_vector:
            max_distance = (self.settings.n_classes or 0) + 1
        square_rounding = n / MAX_ROUNDING_SHARE / kernels.cells.SQUARE_UNIT
        moment_rounding = n / kernels.cells.MOMENT_UNIT
        f = ROUNDING_FACTOR
        rules = (
            cells.weight.min() >= 0,
            (n > 0) == (total > 0),
            (abs(second_words / kernels.cells.DETAIL) <= n / 2).all(),
            # All problems have the same rows.
            self.fine[k].sum() == self.fine[0].sum(),
            # No score is farther from the middle of its cell than half of the width.
            (abs(cells.score) <= f / 2 * outcome_weight).all(),
            cells.square_score.min() >= 0,
            (cells.square_score <= f / 4 * cell_weight + moment_rounding).all(),
            # The square of a sum bounds the sum of squares, and Cauchy's inequality bounds it.
            ((cells.square > 0) == (cell_weight > 0)).all(),
            (cells.square <= f * cell_weight**2 + square_rounding).all(),
            total**2 <= f * n * squares,
            (MAX_DRAWS_OF_ROW * outcome_weight >= largest_draw).all(),
            0 <= self.squared_distance <= f * max_distance * total,
        )
        if not all(rules):
            raise InputError("state", "has sums that do not go together, so it is damaged")
        return WeightSums(total, squares)

    def __eq__(self, other: object) -> bool:
        """Compare settings and sums; the number of parts may differ."""
        assert isinstance(other, State), "accumulators compare their states"
        same = ("n", "first_rows", "grouped", "distance", "distance_low", "square_low")
        return (
            self.settings == other.settings
            and all(self.get(name) == other.get(name) for name in same)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in CELL_SUMS)
        )

    __hash__ = None  # type: ignore[assignment]

    def add(self, batch: Batch | None, n: int, offset: int | None, groups: I64 | None) -> None:
        """Add `n` rows that have been checked.

        Parameters
        ----------
        batch : Batch or None
            The rows of positive weight, if there are any.
        n : int
            Number of all rows.
        offset : int or None
            Number of the first row in the stream; None for the next one.
        groups : (n,) int64 array or None
            Numbers of the groups of all rows.
        """
        self.refuse_sum("update")
        self.check_groups(groups is not None, n)
        first_row = self.get("next_row") if offset is None else offset
        changes = self.row_changes(n, first_row, groups is not None)
        if batch is None:
            self.totals += make_totals(changes)  # in one step
            return
        problems = batch.problems
        sums = sum_weights(problems.v, problems.n)
        self.check_room(sums.weight, sums.square)
        changes["weight"] = int(sums.weight * WEIGHT_UNIT)
        changes["square"] = int(sums.square * SQUARE_UNIT)
        changes["n"] = problems.n
        changes["grouped"] = 0 if groups is None else problems.n
        draws = None
        if self.settings.n_replicates > 0:
            ids = np.arange(first_row, first_row + n) if groups is None else groups
            key = np.uint64(self.settings.key)
            draws = (key, ids[problems.positions], *poisson_law(1.0), self.replicates)
        prob, label = problems.read()
        self.cell_cache = None
        with np.errstate(over="ignore"):  # for kernels that are not compiled
            kernels.cells.add_batch(
                prob,
                label,
                kernels.weights(problems.v),
                batch.distance,
                self.fine,
                self.coarse,
                self.totals,
                make_totals(changes),
                draws,
            )

    def with_counted(self, batch: Batch | None, counts: F64) -> "State":
        """Return the sums with rows that count several times, and have been checked.

        All sums are of integers, so that rows which count 2**b times are added once, to sums that
        are doubled b times: the bits are those of the repeated rows.

        Parameters
        ----------
        batch : Batch or None
            The rows of positive weight, if there are any.
        counts : (n,) float64 array
            How often each row counts, also those that are not in the batch.
        """
        self.refuse_sum("update")
        self.check_groups(False, counts.size)
        new = self.copy()
        n_all = int(counts.sum())
        if batch is not None:
            problems = batch.problems
            c = counts[problems.positions]
            weights = c if problems.v is None else c * problems.v
            squares = weights if problems.v is None else weights * problems.v
            if problems.v is None and weights.sum() > MAX_WEIGHT:
                rule = f"must add up to at most {MAX_WEIGHT:.0f} in a stream"
                raise InputError("counts", rule, value=float(weights.sum()))
            self.check_room(float(weights.sum()), float(squares.sum()))
            sums = State(self.settings)
            bits = c.astype(np.int64)
            for bit in reversed(range(int(bits.max()).bit_length())):
                sums.double()
                chosen = np.flatnonzero(bits >> bit & 1)
                if chosen.size:
                    distance = batch.distance[chosen] if batch.distance.size else batch.distance
                    sums.add(Batch(problems.where(chosen), distance), chosen.size, None, None)
            for name in CELL_SUMS:
                setattr(new, name, getattr(new, name) + getattr(sums, name))
            new.totals += np.where(np.isin(kernels.cells.TOTALS, ROW_TOTALS), sums.totals, 0)
        new.totals += make_totals(new.row_changes(n_all, new.get("next_row"), False))
        return new

    def double(self) -> None:
        """Double all sums, as if each row had come once more."""
        for name in CELL_SUMS:
            getattr(self, name)[:] *= 2
        self.totals *= 2
        self.cell_cache = None

    def check_groups(self, has_groups: bool, n: int) -> None:
        """Refuse `n` rows with groups beside rows without, and the reverse."""
        if not has_groups and n and self.get("grouped"):
            raise InputError("groups", "must be given, as rows before had some")
        if has_groups and self.get("n") > self.get("grouped"):
            raise InputError("groups", "must be None, as rows before had none")

    def row_changes(self, n: int, first_row: int, has_groups: bool) -> dict[str, int]:
        """Return the changes of the totals of row numbers by `n` rows."""
        has_numbers = self.settings.n_replicates > 0 and not has_groups
        return {
            "rows": n,
            "first_rows": 1 if has_numbers and n > 0 and first_row == 0 else 0,
            "next_row": first_row + n - self.get("next_row"),
        }

    @property
    def squared_distance(self) -> float:
        """Sum of w times the squared distance of class vectors from the true class."""
        low = self.get("distance_low") / kernels.cells.DETAIL
        return (self.get("distance") + low) / kernels.cells.DISTANCE_UNIT

    @property
    def more_square(self) -> float:
        """The sum of w**2 - w over all rows."""
        high = int(self.coarse[0, :, kernels.cells.SQUARE].sum())
        low = self.get("square_low") / kernels.cells.DETAIL
        return (high + low) / kernels.cells.SQUARE_UNIT

    def cells(self) -> list[ScoreCells]:
        """Return the sums of each problem as numbers."""
        if self.cell_cache is None:
            self.cell_cache = [self._cells(k) for k in range(self.settings.n_problems)]
        return self.cell_cache

    def _cells(self, k: int) -> ScoreCells:
        """Return the sums of problem `k` as numbers."""
        names = kernels.cells
        words = self.coarse[k].T.astype(np.float64)
        first_moment = words[names.FIRST : names.FIRST + 2]
        low_first_moment = words[names.LOW_FIRST : names.LOW_FIRST + 2]
        low_weight = words[names.LOW_WEIGHT : names.LOW_WEIGHT + 2]
        weight, coarse_weight = self._exact_weights(k, low_weight)
        return ScoreCells(
            n=self.get("n"),
            low=self.settings.low,
            high=1.0,
            weight=weight,
            score=(first_moment + low_first_moment / names.DETAIL) / names.MOMENT_UNIT,
            square_score=words[names.SECOND] / names.MOMENT_UNIT,
            square=self._squares(coarse_weight, words[names.SQUARE]),
        )

    def _exact_weights(self, k: int, low_weight: F64) -> tuple[F64, F64]:
        """Compute the weights in the fine and in the coarse cells of problem `k`.

        Coarse cells have the second words of weights, which their fine ones share. Weights too
        small for the first words are in the middle of their coarse cell.
        """
        n_coarse = self.settings.n_coarse
        unit = kernels.cells.WEIGHT_UNIT
        weight = self.fine[k].T / unit
        rounded = coarse_sums(weight, n_coarse)
        exact = rounded + low_weight / (kernels.cells.DETAIL * unit)
        scale = np.divide(exact, rounded, out=np.ones_like(rounded), where=rounded > 0)
        lost = np.where((rounded == 0) & (exact > 0), exact, 0.0)
        ratio = self.settings.n_cells // n_coarse
        weight[:, 1 + ratio // 2 : -1 : ratio] += lost
        scale_of_fine = [scale[:, :1], scale.repeat(ratio, axis=1), scale[:, -1:]]
        weight *= np.concatenate(scale_of_fine, axis=1)
        return weight, exact

    def _squares(self, coarse_weight: F64, more_square: F64) -> F64:
        """Compute sums of w**2 (N',), given sums of w (2, N') and of w**2 - w (N',)."""
        weight = coarse_weight.sum(0)
        total = float(coarse_weight.sum())
        rounding = 0.0
        if self.more_square != 0:
            rounding = self.get("n") / kernels.cells.SQUARE_UNIT
        if rounding > MAX_ROUNDING_SHARE * (total + self.more_square):
            return np.asarray(weight * (1 + self.more_square / total))
        return np.asarray(weight + more_square / kernels.cells.SQUARE_UNIT)

    def draws(self, k: int, sample: Sample) -> Iterator[F64]:
        """Yield the counts of the rows (n,) of `sample`, of problem `k`, by replicate.

        Replicates without rows, which occur with few rows or groups, are left out. All counts
        together would take a megabyte a replicate.
        """
        lines = self.replicates[k]
        count = self.settings.n_replicates
        drawn = lines.swapaxes(0, 1).reshape(lines.shape[1], -1)[:, :count]
        has_rows = self.replicates[0].sum(1).ravel()[:count] > 0
        if has_rows.sum() < 2:
            raise InputError("groups", "are so few that hardly any replicate drew one")
        total = np.bincount(sample.rows, sample.total_weights, len(drawn))
        unit = 1 / kernels.cells.REPLICATE_UNIT
        share = np.divide(unit, total, out=np.zeros_like(total), where=total > 0)
        for weights in compress(drawn.T, has_rows):
            yield sample.counts * (weights * share)[sample.rows]


def make_totals(values: dict[str, int]) -> I64:
    """Return an array of totals from some of them; others are 0."""
    return np.array([values.get(name, 0) for name in kernels.cells.TOTALS], np.int64)


def sum_weights(weights: F64 | None, n: int) -> WeightSums:
    """Add up the weights of `n` rows, and their squares; an overflow is infinite."""
    if weights is None:
        return WeightSums(float(n), float(n))
    with np.errstate(over="ignore"):
        return WeightSums(float(weights.sum()), float(weights @ weights))


def refuse_above(name: str, value: float, limit: float) -> None:
    """Refuse a sum of weights that exceeds its limit."""
    if value > limit:
        rule = f"the {name} of all rows must add up to at most {limit:g}"
        hint = "divide all weights by one number"
        raise InputError("sample_weight", rule, value=value, hint=hint)


def check_array(name: str, value: Any, shape: tuple[int, ...]) -> I64:
    """Return a saved array if it has the type and shape of the sums of this name."""
    array = None if value is None else np.asarray(value)
    if array is None or array.shape != shape or array.dtype != np.int64:
        kind = "nothing" if array is None else f"{array.dtype} {array.shape}"
        rule = f"{name} must be int64 {shape}, as settings are here"
        raise InputError("state", f"{rule}, got {kind}")
    return array
