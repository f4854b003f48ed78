"""The state of a stream: sums of integers.

The sums do not depend on how rows were split, on their order, or on the number of machines.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import asdict
from typing import Any

import numpy as np

from fastece import kernels
from fastece.data.errors import InputError
from fastece.kernels.types import F64, I64, U64
from fastece.resampling.draws import RowDraws, Units
from fastece.streams.batches import Batch, words_of_numbers
from fastece.streams.cells import ScoreCells, coarse_sums
from fastece.streams.damage import (
    MAX_ROUNDING_SHARE,
    MAX_SQUARE,
    MAX_WEIGHT,
    ROUNDING_FACTOR,
    Law,
    laws_of_arrays,
    laws_of_problem,
    laws_of_totals,
    refuse_broken,
)
from fastece.streams.draws import GroupDraws
from fastece.streams.settings import Settings

# The arrays of cells and groups, which any all-reduce may add up, as the totals are.
CELL_SUMS = ("fine", "coarse", "groups")
# The totals of rows that do not depend on their numbers in the stream.
ROW_TOTALS = ("n", "distance", "distance_low", "square_low", "weight", "square")


class State:
    """Sums of rows, int64 arrays.

    A state changes by `add` alone, as a whole; every other action makes another state.

    Attributes
    ----------
    fine : (P, N + 2, 2) int64 array
        Weights of both outcomes in the fine cells of each problem.
    coarse : (P, N', 8) int64 array
        The words of `kernels.cells` of each coarse cell.
    groups : (P, G, 2 N') int64 array
        Weights of both outcomes in the coarse cells, by group of rows.
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
        self.fine = np.zeros((problems, settings.n_cells + 2, 2), np.int64)
        self.coarse = np.zeros((problems, coarse, kernels.cells.WORDS), np.int64)
        self.groups = np.zeros((problems, settings.n_groups, 2 * coarse), np.int64)
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
        weight += self.get("weight") / kernels.cells.WEIGHT_UNIT
        square += self.get("square") / kernels.cells.SQUARE_UNIT
        sums = {"weights": (weight, MAX_WEIGHT), "squares of the weights": (square, MAX_SQUARE)}
        for name, (value, limit) in sums.items():
            if value > limit:
                rule = f"the {name} of all rows must add up to at most {limit:g}"
                hint = "divide all weights by one number"
                raise InputError("sample_weight", rule, value=value, hint=hint)

    def merge(self, other: "State") -> "State":
        """Return the sums of both states."""
        self.refuse_sum("merge")
        other.refuse_sum("merge")
        for name, value in asdict(self.settings).items():
            value_of_other = getattr(other.settings, name)
            if value != value_of_other:
                rule = f"must have the settings of this one: its {name} is {value!r}"
                raise InputError("other", rule, value=value_of_other)
        self.check_room(
            other.get("weight") / kernels.cells.WEIGHT_UNIT,
            other.get("square") / kernels.cells.SQUARE_UNIT,
        )
        new = copy(self)
        new.totals = self.totals + other.totals
        refuse_broken(laws_of_totals(self.settings, new.totals))
        next_row = max(self.get("next_row"), other.get("next_row"), new.get("rows"))
        new.totals[kernels.cells.SAVED] = next_row
        for name in CELL_SUMS:
            setattr(new, name, getattr(self, name) + getattr(other, name))
        new.cell_cache = None
        return new

    def load(self, sums: dict[str, Any]) -> None:
        """Load sums by name; sums that no rows have are refused."""
        if not isinstance(sums, Mapping):
            raise InputError("state", "must be arrays by name, as state_dict returns", value=sums)
        self.is_sum = "is_sum" in sums
        if sums.keys() != self.arrays.keys():
            raise InputError("state", f"must hold {[*self.arrays]}", value=[*sums])
        refuse_broken(laws_of_arrays(self.arrays, sums))
        for name, array in self.arrays.items():
            array[:] = sums[name]
        refuse_broken(self.laws())
        cells = self._cells(0)
        weight = int(cells.weight.sum() * kernels.cells.WEIGHT_UNIT)
        square = int(cells.square.sum() * kernels.cells.SQUARE_UNIT)
        self.totals[kernels.cells.SAVED :] = (self.get("rows"), weight, square)

    def laws(self) -> Iterator[Law]:
        """Yield the laws that the sums of any rows obey."""
        yield from laws_of_totals(self.settings, self.totals)
        yield Law("fine", "must be weights that are not below 0", self.fine >= 0, self.fine)
        weight = self.fine.sum(axis=(1, 2))
        yield Law("fine", "must hold the same rows in all problems", weight == weight[0], weight)
        for k in range(self.settings.n_problems):
            cells = self._cells(k)
            yield from laws_of_problem(k, cells, self.fine[k], self.coarse[k], self.groups[k])
        max_distance = 0.0
        if self.settings.is_auto_vector:
            distance_of_row = (self.settings.n_classes or 0) + 1
            max_distance = ROUNDING_FACTOR * distance_of_row * self._cells(0).weight.sum()
        rule = f"must belong to squared distances of at most {max_distance:g} in all"
        distance = self.squared_distance
        first = kernels.cells.DISTANCE
        yield Law("totals", rule, [0 <= distance <= max_distance], [distance], first=first)

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

    def add(self, batch: Batch | None, n: int, offset: int | None, groups: U64 | None) -> None:
        """Add `n` rows that have been checked.

        Parameters
        ----------
        batch : Batch or None
            The rows of positive weight, if there are any.
        n : int
            Number of all rows.
        offset : int or None
            Number of the first row in the stream; None for the next one.
        groups : (n,) uint64 array or None
            Random words of the caller's groups of all rows; None where each row is its own.
        """
        self.refuse_sum("update")
        self.check_groups(groups is not None, n)
        first_row = self.get("next_row") if offset is None else offset
        changes = self.row_changes(n, first_row, groups is not None)
        if batch is None:
            self.totals += make_totals(changes)  # in one step
            return
        problems = batch.problems
        weight = square = float(problems.n)
        if problems.v is not None:
            with np.errstate(over="ignore"):
                weight = float(problems.v.sum())
                square = float(problems.v @ problems.v)
        self.check_room(weight, square)
        changes["weight"] = int(weight * kernels.cells.WEIGHT_UNIT)
        changes["square"] = int(square * kernels.cells.SQUARE_UNIT)
        changes["n"] = problems.n
        changes["grouped"] = 0 if groups is None else problems.n
        group = np.empty(0, np.int32)
        if self.settings.n_replicates > 0:
            words = words_of_numbers(self.settings, first_row, n) if groups is None else groups
            group = self.settings.groups_of(words[problems.positions])
        score, hit = batch.columns()
        self.cell_cache = None
        kernels.cells.add_batch(
            score,
            hit,
            kernels.weights(problems.v),
            group,
            batch.distance,
            self.fine,
            self.coarse,
            self.groups,
            self.totals,
            make_totals(changes),
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
        if total > 0 and rounding > MAX_ROUNDING_SHARE * (total + self.more_square):
            return np.asarray(weight * (1 + self.more_square / total))
        return np.asarray(weight + more_square / kernels.cells.SQUARE_UNIT)

    def draws(self) -> GroupDraws:
        """Return draws of the groups of rows, as many as there are."""
        occupied = np.flatnonzero(self.groups[0].any(axis=1))
        if occupied.size < 2:
            rule = "must be at least 2 that have rows of positive weight, as groups are drawn"
            raise InputError("groups", rule, value=occupied.size)
        draws = RowDraws(self.settings.key, Units(occupied.size), occupied.size)
        samples = [cells.by_rank for cells in self.cells()]
        return GroupDraws(draws, occupied, self.groups, samples)


def make_totals(values: dict[str, int]) -> I64:
    """Return an array of totals from some of them; others are 0."""
    return np.array([values.get(name, 0) for name in kernels.cells.TOTALS], np.int64)
