"""Laws that the sums of any rows obey, which a damaged state breaks.

A state comes from a file, from other processes, or from a sum over them. What breaks a law is
refused by the name of the array, the rule, the index and the value.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.data.errors import InputError
from fastece.kernels.types import I64
from fastece.streams.cells import ScoreCells, coarse_sums
from fastece.streams.settings import Settings

# The sums of all weights, and of their squares, that integers of 64 bits hold.
MAX_WEIGHT = 2.0**32
MAX_SQUARE = 2.0**38
# Numbers of rows, also those of two states together, fit into 63 bits.
MAX_ROW = 2**62 - 1
# Rounding exceeds a bound of sums by less than this factor.
ROUNDING_FACTOR = 1 + 1e-6
# If rounding may be more than this share of the sum of the squares of small weights, coarse cells
# share that sum by their weights.
MAX_ROUNDING_SHARE = 0.01


class Law(NamedTuple):
    """A rule that numbers of one array obey.

    Attributes
    ----------
    array : str
        Name of the array in a saved state.
    rule : str
    holds : bool array
        Whether each of some numbers obeys it.
    value : array
        These numbers, of the same shape.
    problem : int or None
        The problem that they belong to, their first index; None where they have none.
    first : int
        The position of the first of them on the last axis.
    """

    array: str
    rule: str
    holds: Any
    value: Any
    problem: int | None = None
    first: int = 0


def refuse_broken(laws: Iterable[Law]) -> None:
    """Refuse a state that breaks one of the laws, by the first number that does."""
    for law in laws:
        holds = np.asarray(law.holds)
        if holds.all():
            continue
        position = [int(i) for i in np.unravel_index(holds.argmin(), holds.shape)]
        value = np.asarray(law.value)[tuple(position)]
        if position:
            position[-1] += law.first
        if law.problem is not None:
            position.insert(0, law.problem)
        index = tuple(position) or None
        raise InputError(f"state[{law.array!r}]", law.rule, index=index, value=value)


def laws_of_arrays(expected: dict[str, I64], sums: dict[str, Any]) -> Iterator[Law]:
    """Yield the laws of types and shapes, of the sums of a state like `expected`."""
    for name, array in expected.items():
        found = np.asarray(sums[name])
        rule = f"must have the shape {array.shape}, as settings are here"
        yield Law(name, rule, found.shape == array.shape, str(found.shape))
        yield Law(name, "must be int64", found.dtype == np.int64, str(found.dtype))
        if name == "is_sum":
            rule = "must be one sum over all processes, not several added up"
            yield Law(name, rule, found == 1, found)


def laws_of_totals(settings: Settings, totals: I64) -> Iterator[Law]:
    """Yield the laws of the totals of states that were added up."""
    total_of = dict(zip(kernels.cells.TOTALS, totals.tolist(), strict=False))

    def law(name: str, rule: str, holds: bool) -> Law:
        return Law("totals", rule, [holds], [total_of[name]], first=[*total_of].index(name))

    n = total_of["n"]
    fingerprint = total_of["parts"] * settings.fingerprint
    yield law("parts", "must be at least one state", total_of["parts"] >= 1)
    rule = "must have the settings of this accumulator"
    yield law("fingerprint", rule, total_of["fingerprint"] == fingerprint)
    yield law("n", "must not count fewer rows than 0", n >= 0)
    yield law(
        "rows", "must count the rows of positive weight too", n <= total_of["rows"] <= MAX_ROW
    )
    yield law("grouped", "must have groups for all rows or for none", total_of["grouped"] in (0, n))
    rule = "must have one row of the number 0: update takes the row_offset of each part"
    yield law("first_rows", rule, total_of["first_rows"] in (0, 1))
    may_have_numbers = settings.n_replicates > 0 and total_of["rows"] > 0
    rule = "must be 0 where no row has a number"
    yield law("first_rows", rule, may_have_numbers or total_of["first_rows"] == 0)
    for name in ("distance_low", "square_low"):
        rule = "must be the second words of at most as many rows as there are"
        yield law(name, rule, abs(total_of[name]) / kernels.cells.DETAIL <= n)


def laws_of_problem(
    k: int, cells: ScoreCells, fine: I64, coarse: I64, groups: I64
) -> Iterator[Law]:
    """Yield the laws of the sums of problem `k`, given them as numbers too."""
    names = kernels.cells
    n = cells.n
    outcome_weight = cells.coarse_weight
    cell_weight = outcome_weight.sum(0)
    total = float(outcome_weight.sum())
    squares = float(cells.square.sum())
    square_rounding = n / MAX_ROUNDING_SHARE / names.SQUARE_UNIT
    moment_rounding = n / names.MOMENT_UNIT
    factor = ROUNDING_FACTOR

    rule = f"must add up to a weight of at most {MAX_WEIGHT:g}, and above 0 where there are rows"
    yield Law("fine", rule, total <= MAX_WEIGHT and (n > 0) == (total > 0), total, k)
    rule = "must be a weight, with its second word, that is not below 0"
    yield Law("fine", rule, cells.weight.T >= 0, fine, k)

    def law(rule: str, holds: Any, first: int) -> Law:
        words = coarse[:, first : first + holds.shape[1]]
        return Law("coarse", rule, holds, words, k, first)

    second_words = coarse[:, names.LOW_WEIGHT :] / names.DETAIL
    rule = "must be the second words of at most as many rows as there are"
    yield law(rule, abs(second_words) <= n / 2, names.LOW_WEIGHT)
    rule = "must not be farther from the middle of a cell than its ends"
    yield law(rule, (abs(cells.score) <= factor / 2 * outcome_weight).T, names.FIRST)
    is_possible = cells.square_score <= factor / 4 * cell_weight + moment_rounding
    is_possible &= cells.square_score >= 0
    yield law(rule, is_possible[:, None], names.SECOND)
    # The square of a sum bounds the sum of squares, and Cauchy's inequality bounds it.
    rule = "must belong to squares of the weights of the cell"
    is_possible = cells.square <= factor * cell_weight**2 + square_rounding
    is_possible &= (cells.square > 0) == (cell_weight > 0)
    is_possible &= cells.square >= -square_rounding
    yield law(rule, is_possible[:, None], names.SQUARE)
    rule = f"must belong to squares of all weights, which add up to at most {MAX_SQUARE:g}"
    is_possible = squares <= MAX_SQUARE and total**2 <= factor * n * squares
    yield Law("coarse", rule, is_possible, squares, k)

    if groups.size:
        rule = "must be weights that are not below 0"
        yield Law("groups", rule, groups >= 0, groups, k)
        weight_of_groups = groups.sum(axis=0)
        rule = "must add up to the weights of the fine cells"
        weight_of_cells = coarse_sums(fine.T, len(coarse)).T.ravel()
        yield Law("groups", rule, weight_of_groups == weight_of_cells, weight_of_groups, k)
