"""The state of a stream, sums of integers, and the reading of its batches.

The sums do not depend on how rows were split, on their order, or on the number of machines.
"""

import math
import zlib
from collections.abc import Iterator
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import containers as arrays
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import as_groups
from fastece.data.parameters import check_integer
from fastece.data.reading import read_problems
from fastece.data.samples import Sample
from fastece.data.scores import NEARLY, read_top_label
from fastece.data.sources import Problems, Setting, find_setting
from fastece.kernels import NO_WEIGHTS, REPLICATES
from fastece.kernels.types import F64, I64
from fastece.resampling.draws import new_key, poisson_law
from fastece.streams.cells import Cells, coarse_sums

# What sums hold: weights, and their squares, in all, and how often 1 is counted in either; and the
# smallest weight that is not lost, and that counts in replicates.
MAX_WEIGHT, MAX_SQUARE, UNITS = 2.0**32, 2.0**38, (2.0**30, 2.0**24)
MIN_WEIGHT, MIN_DRAWN_WEIGHT = 2.0**-40, 2.0**-20
# Draws of row i begin at 32 i of a counter of 64 bits.
MAX_ROW = 2**59 - 1
# Fine cells of a coarse one: 7200 coarse cells still hold edges and centres of all numbers of bins
# that 64800 fine ones do.
RATIO = 9
MAX_CELLS, MAX_REPLICATES = 2**22, 2**16
# The arrays of a state.
SUMS = ("fine", "coarse", "replicates", "totals")
# If rounding may be more than this part of the sum of the squares, of small weights, then coarse
# cells share that sum by their weights.
ROUGH = 0.01
# More than rounding makes of a bound; and more than how often a replicate draws a row.
SLACK, MOST_DRAWN = 1 + 1e-6, 41


@dataclass(frozen=True)
class Settings:
    """Settings that two states must share to be merged."""

    n_classes: int | None
    setting: str | int
    n_cells: int
    n_replicates: int
    seed: int | None
    from_logits: bool

    def __post_init__(self) -> None:
        bounds = {"n_cells": (1, MAX_CELLS), "n_replicates": (0, MAX_REPLICATES)}
        bounds |= {} if self.n_classes is None else {"n_classes": (2, 2**31 - 1)}
        bounds |= {} if self.seed is None else {"seed": (0, 2**63 - 1)}
        for name, ends in bounds.items():  # as integers of Python, so equal settings have one text
            object.__setattr__(self, name, check_integer(name, getattr(self, name), *ends))
        if (self.seed is None) == (self.n_replicates > 0):
            raise InputError("seed", "goes with {n_replicates}, the same for all parts of a stream")
        row = self.row  # of a setting that there is, or it is refused here
        if not isinstance(self.setting, str):
            object.__setattr__(self, "setting", row.column)

    @cached_property
    def row(self) -> Setting:
        """The setting."""
        return find_setting(self.setting, (1,) if self.n_classes is None else (1, self.n_classes))

    @property
    def is_auto_vector(self) -> bool:
        """Whether the scores of class vectors use the whole vectors."""
        return self.setting == "auto" and self.n_classes is not None

    @property
    def n_problems(self) -> int:
        """One, or one for each class."""
        return (self.n_classes or 2) if self.row.per_class else 1

    @property
    def low(self) -> float:
        """The lower end of the support of the score."""
        return 1 / (self.n_classes or 2) if self.row.is_top else 0.0

    @property
    def n_coarse(self) -> int:
        """Number of coarse cells."""
        return self.n_cells // RATIO if self.n_cells % RATIO == 0 else self.n_cells

    @cached_property
    def key(self) -> int:
        """Key that determines all draws; 0 without replicates."""
        return new_key(self.seed) if self.n_replicates else 0

    @property
    def fingerprint(self) -> int:
        """Hash of the settings, of 32 bits."""
        return zlib.crc32(repr([*asdict(self).items()]).encode())


class State:
    """Sums of rows, int64 arrays.

    They are `fine` (P, N + 2, 2), `coarse` (P, N', 8), `replicates` (P, blocks, 2 N', 32) and
    `totals`.

    A state changes by `add` alone, as a whole; what else there is to do makes another state.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        problems, coarse = settings.n_problems, settings.n_coarse
        blocks = -(-settings.n_replicates // REPLICATES)
        self.fine = np.zeros((problems, settings.n_cells + 2, 2), np.int64)
        self.coarse = np.zeros((problems, coarse, kernels.cells.WORDS), np.int64)
        self.replicates = np.zeros((problems, blocks, 2 * coarse, REPLICATES), np.int64)
        self.totals = totals({"parts": 1, "fingerprint": settings.fingerprint})
        # Whether these are rows of several processes, which the next sum would count again.
        self.is_sum = False
        # Sums as numbers, for further questions about the same rows: 10 MB a problem at most.
        self.cell_cache: list[Cells] | None = None

    def get(self, name: str) -> int:
        """Return one of the totals."""
        return int(self.totals[kernels.cells.TOTALS.index(name)])

    @property
    def arrays(self) -> dict[str, I64]:
        """The sums that are saved, by their names."""
        saved = {name: getattr(self, name) for name in SUMS[:3]} | {
            "totals": self.totals[: kernels.cells.SAVED]
        }
        return saved | ({"is_sum": np.ones(1, np.int64)} if self.is_sum else {})

    def copy(self) -> "State":
        """Return another state with the same rows."""
        new = copy(self)
        for name in SUMS:
            setattr(new, name, getattr(self, name).copy())
        new.cell_cache = None
        return new

    def refuse_sum(self, action: str) -> None:
        """Refuse to add rows to the sums of several processes."""
        if self.is_sum:
            raise RuntimeError(f"{action}: these are the rows of all processes; reset() first")

    def check_room(self, weight: float, square: float) -> None:
        """Refuse more weights, and squares of them, that do not fit into the sums."""
        for name, sum_, most in (
            ("weights", self.get("weight") / UNITS[0] + weight, MAX_WEIGHT),
            ("squares of the weights", self.get("square") / UNITS[1] + square, MAX_SQUARE),
        ):
            if sum_ > most:
                rule = f"the {name} of all rows must add up to at most {most:g}"
                hint = "divide all weights by one number"
                raise InputError("sample_weight", rule, value=sum_, hint=hint)

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
        for one in (self, other):
            one.refuse_sum("merge")
        for name, mine in asdict(self.settings).items():
            if mine != (theirs := getattr(other.settings, name)):
                rule = f"must have the settings of this one: its {name} is {mine!r}"
                raise InputError("other", rule, value=theirs)
        weight, square = (other.get(name) for name in ("weight", "square"))
        self.check_room(weight / UNITS[0], square / UNITS[1])
        new = copy(self)
        new.totals = self.totals + other.totals
        new.check_totals()
        next_row = max(self.get("next_row"), other.get("next_row"), new.get("rows"))
        new.totals[kernels.cells.SAVED] = next_row
        for name in SUMS[:3]:
            setattr(new, name, getattr(self, name) + getattr(other, name))
        new.cell_cache = None
        return new

    def load(self, sums: dict[str, Any]) -> None:
        """Load sums by name, and refuse invalid ones."""
        self.is_sum = "is_sum" in sums
        for name, array in self.arrays.items():
            got = np.asarray(sums[name]) if name in sums else None
            if got is None or got.shape != array.shape or got.dtype != np.int64:
                kind = "nothing" if got is None else f"{got.dtype} {got.shape}"
                rule = f"{name} must be int64 {array.shape}, as settings are here"
                raise InputError("state", f"{rule}, got {kind}")
            array[:] = got
        if more := sorted({*sums} - {*self.arrays}):
            raise InputError("state", f"must hold {[*self.arrays]}", value=more[0])
        if self.is_sum and sums["is_sum"] != 1:
            raise InputError("state", "must be one sum over all processes, not several added up")
        if any((array < 0).any() for array in (self.fine, self.replicates, self.totals[:4])):
            raise InputError("state", "has weights or counts below 0, so sums were too large")
        self.check_totals()
        weight, square, *_ = np.ravel([self.check_cells(k) for k in range(len(self.fine))])
        self.totals[kernels.cells.SAVED :] = (
            self.get("rows"), int(weight * UNITS[0]), int(square * UNITS[1])
        )  # fmt: skip

    def check_cells(self, k: int) -> tuple[float, float]:
        """Refuse sums of problem `k` that no rows have; return weights and squares in all."""
        cells, n = self._cells(k), self.get("n")
        drawn = self.replicates[k].max((0, 2), initial=0) / kernels.cells.REPLICATE_UNIT
        weight, low = cells.coarse_weight, self.coarse[k, :, kernels.cells.LOW_WEIGHT :]
        each, all_rows, squares = weight.sum(0), float(weight.sum()), float(cells.square.sum())
        self.check_room(all_rows, squares)
        far = (self.settings.n_classes or 0) + 1 if self.settings.is_auto_vector else 0
        if not (
            cells.weight.min() >= 0
            and (n > 0) == (all_rows > 0)
            and (abs(low / kernels.cells.DETAIL) <= n / 2).all()
            and (self.fine[k].sum() == self.fine[0].sum())
            and (abs(cells.score) <= SLACK / 2 * weight).all()
            and ((cells.square > 0) == (each > 0)).all()
            and (cells.square <= SLACK * each**2 + n / ROUGH / kernels.cells.SQUARE_UNIT).all()
            and all_rows**2 <= SLACK * n * squares
            and cells.square_score.min() >= 0
            and (cells.square_score <= SLACK / 4 * each + n / kernels.cells.MOMENT_UNIT).all()
            and (MOST_DRAWN * weight >= drawn.reshape(-1, 2).T).all()
            and 0 <= self.squared_distance <= SLACK * far * all_rows
        ):
            raise InputError("state", "has sums that do not go together, so it is damaged")
        return all_rows, squares

    def __eq__(self, other: object) -> bool:
        """Compare settings and sums; the number of parts may differ."""
        assert isinstance(other, State), "accumulators compare their states"
        same = ("n", "first_rows", "grouped", "distance", "distance_low", "square_low")
        return (
            self.settings == other.settings
            and all(self.get(name) == other.get(name) for name in same)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in SUMS[:3])
        )

    __hash__ = None  # type: ignore[assignment]

    def add(
        self, batch: tuple[Problems, F64] | None, n: int, offset: int | None, groups: I64 | None
    ) -> None:
        """Add `n` rows that have been checked.

        `batch` has those of positive weight, and the squared distances of class vectors from the
        true class; `groups` are the numbers of the groups of all rows.
        """
        self.refuse_sum("update")
        if groups is None and n and self.get("grouped"):
            raise InputError("groups", "must be given, as rows before had some")
        if groups is not None and self.get("n") > self.get("grouped"):
            raise InputError("groups", "must be None, as rows before had none")
        next_row, has_draws = self.get("next_row"), self.settings.n_replicates > 0
        first = next_row if offset is None else offset
        has_first = has_draws and groups is None and n > 0 and first == 0
        more = {"rows": n, "first_rows": has_first, "next_row": first + n - next_row}
        if batch is None:
            self.totals += totals(more)  # in one step
            return
        problems, distance = batch
        count, v = problems.n, problems.v
        weight = square = float(count)
        if v is not None:
            with np.errstate(over="ignore"):  # what is infinite is refused
                weight, square = float(v.sum()), float(v @ v)
        self.check_room(weight, square)
        more |= {"weight": int(weight * UNITS[0]), "square": int(square * UNITS[1])}
        more |= {"n": count, "grouped": 0 if groups is None else count}
        draws = None
        if has_draws:
            ids = np.arange(first, first + n) if groups is None else groups
            key = np.uint64(self.settings.key)
            draws = key, ids[problems.positions], *poisson_law(1.0), self.replicates
        self.cell_cache = None
        with np.errstate(over="ignore"):  # for kernels that are not compiled
            kernels.cells.add_batch(
                *problems.read(), kernels.weights(v), distance, self.fine, self.coarse, self.totals,
                totals(more), draws,
            )  # fmt: skip

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

    def cells(self) -> list[Cells]:
        """Return the sums of each problem as numbers."""
        if self.cell_cache is None:
            self.cell_cache = [self._cells(k) for k in range(self.settings.n_problems)]
        return self.cell_cache

    def _cells(self, k: int) -> Cells:
        """Return the sums of problem `k` as numbers."""
        settings = self.settings
        names, words = kernels.cells, self.coarse[k].T.astype(np.float64)
        first, low_weight, low_first = (
            words[at : at + 2] for at in (names.FIRST, names.LOW_WEIGHT, names.LOW_FIRST)
        )
        # Coarse cells have the second words of weights, which their fine ones share.
        weight = self.fine[k].T / names.WEIGHT_UNIT
        whole = coarse_sums(weight, settings.n_coarse)
        exact = whole + low_weight / (kernels.cells.DETAIL * names.WEIGHT_UNIT)
        scale = np.divide(exact, whole, out=np.ones_like(whole), where=whole > 0)
        # Weights too small for the first words are in the middle of their coarse cell.
        lost = np.where((whole == 0) & (exact > 0), exact, 0.0)
        ratio = settings.n_cells // settings.n_coarse
        weight[:, 1 + ratio // 2 : -1 : ratio] += lost
        inner = scale.repeat(ratio, axis=1)
        weight *= np.concatenate([scale[:, :1], inner, scale[:, -1:]], axis=1)
        total, all_rows = exact.sum(0), float(exact.sum())
        square = total + words[names.SQUARE] / names.SQUARE_UNIT
        rounding = self.get("n") / names.SQUARE_UNIT * (self.more_square != 0)
        if rounding > ROUGH * (all_rows + self.more_square):
            square = total * (1 + self.more_square / all_rows)
        return Cells(
            n=self.get("n"), low=settings.low, high=1.0, weight=weight, square=square,
            score=(first + low_first / kernels.cells.DETAIL) / names.MOMENT_UNIT,
            square_score=words[names.SECOND] / names.MOMENT_UNIT,
        )  # fmt: skip

    def draws(self, k: int, sample: Sample) -> Iterator[F64]:
        """Yield the counts of the rows (n,) of `sample`, of problem `k`, by replicate.

        Replicates without rows, which occur with few rows or groups, are left out. All counts
        together would take a megabyte a replicate.
        """
        lines, count = self.replicates[k], self.settings.n_replicates
        drawn = lines.swapaxes(0, 1).reshape(lines.shape[1], -1)[:, :count]
        has_rows = self.replicates[0].sum(1).ravel()[:count] > 0
        if has_rows.sum() < 2:
            raise InputError("groups", "are so few that hardly any replicate drew one")
        total = np.bincount(sample.rows, sample.total_weights, len(drawn))
        unit = 1 / kernels.cells.REPLICATE_UNIT
        share = np.divide(unit, total, out=np.zeros_like(total), where=total > 0)
        for weights in compress(drawn.T, has_rows):
            yield sample.counts * (weights * share)[sample.rows]


def totals(values: dict[str, int]) -> I64:
    """Return an array of totals from some of them; others are 0."""
    return np.array([values.get(name, 0) for name in kernels.cells.TOTALS], np.int64)


# --- reading of batches ---------------------------------------------------------------------


def read_batch(
    settings: Settings, y_true: Any, y_prob: Any, sample_weight: Any
) -> tuple[Problems, F64] | None:
    """Read the rows of a batch; None if all weights are 0.

    The second value is the squared distance of each class vector from the true class, empty if
    these are not added up.
    """
    prob = arrays.as_probabilities(y_prob)
    wanted = () if settings.n_classes is None else (settings.n_classes,)
    if prob.shape[1:] != wanted:
        shown = "(n,)" if settings.n_classes is None else f"(n, {settings.n_classes})"
        rule = f"must have shape {shown}"
        raise InputError("y_prob", rule, value=prob.shape, hint="as {n_classes} says")
    weight = None if sample_weight is None else arrays.as_real("sample_weight", sample_weight)
    if weight is None and settings.is_auto_vector and not settings.from_logits:
        found = read_vectors(settings, y_true, y_prob, prob)
        if found is not None:
            return found
    weightless = weight is not None and weight.shape == prob.shape[:1] and not weight.any()
    problems = read_problems(
        y_true, y_prob, setting=settings.setting, from_logits=settings.from_logits,
        sample_weight=None if weightless else sample_weight, vectors=settings.is_auto_vector,
    )  # fmt: skip
    if problems.labels is not None:
        raise InputError("y_true", "must hold class numbers in a stream, not other labels")
    if weight is not None:
        least = MIN_DRAWN_WEIGHT if settings.n_replicates else MIN_WEIGHT
        arrays.refuse_where(
            "sample_weight", f"must be 0 or at least {least:g}, as sums have so much detail",
            weight, lambda part: (part > 0) & (part < least), "multiply all weights by one number",
        )  # fmt: skip
    if weightless:
        return None
    if problems.vectors is None:
        return problems, NO_WEIGHTS
    vectors, distance = problems.vectors, np.empty(len(problems.vectors.prob))
    read_top_label(vectors.prob, vectors.label, False, math.inf, map, distance)
    return problems, distance[problems.positions]


def read_vectors(
    settings: Settings, y_true: Any, y_prob: Any, prob: NDArray[Any]
) -> tuple[Problems, F64] | None:
    """Read class vectors without weights in one pass; None if one is invalid."""
    label = arrays.as_array("y_true", y_true)
    if label.dtype.kind not in "iub" or label.shape != prob.shape[:1]:
        return None
    tolerance = NEARLY * arrays.row_sum_tolerance(y_prob, prob)
    distance, k = np.empty(label.size), prob.shape[1]
    found = read_top_label(prob, label, False, tolerance, map, distance)
    return None if found is None else (Problems(settings.row, *found, 1 / k, 1.0, k), distance)


def group_ids(groups: Any, n: int) -> I64:
    """Return a number of 64 bits for the group of each row, the same on any machine.

    3 and 3.0 are one group, "3" is another.
    """
    numbers, labels = as_groups(groups, n, "groups")
    ids = np.empty(len(labels), np.int64)
    for i, label in enumerate(labels):
        label = label.item() if isinstance(label, np.generic) else label
        if isinstance(label, float) and label.is_integer():
            label = int(label)
        if not isinstance(label, str | int | float):
            rule = "must be numbers or strings in a stream, as others differ between processes"
            raise InputTypeError("groups", rule, value=label)
        digest = blake2b(repr(label).encode(), digest_size=8).digest()
        ids[i] = int.from_bytes(digest, "little", signed=True)
    return ids[numbers]
