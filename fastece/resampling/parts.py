"""Groups of rows that are answered for by themselves, and the result of all of them.

The result is that of a loop over the groups with one generator: their draws are independent, and
the first group has the draws that it would have alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from fastece.data.errors import InputError
from fastece.display.results import EstimatorResult, Results
from fastece.resampling.call import Call
from fastece.resampling.draws import new_key

R = TypeVar("R", bound=EstimatorResult)


def calls_on_parts(call: Call) -> list[Call]:
    """Return a call on the rows of each part."""
    table = call.tables[0]
    calls = []
    order, offsets = table.order_by_part()
    for rows in np.split(order, offsets[1:-1]):
        groups = None if call.groups is None else call.groups.where(rows)
        if groups is not None and groups.count < 2:
            raise InputError("groups", "must be at least 2 for each label of {by}", value=1)
        calls.append(replace(call, tables=[table.part(rows)], groups=groups))
    return calls


def generator_of_parts(rng: Any) -> np.random.Generator:
    """Return the generator whose next words are the keys of the parts."""
    new_key(0 if isinstance(rng, np.random.Generator) else rng)  # which checks the seed
    return np.random.default_rng(rng)


def results_of_parts(call: Call, rng: Any, results_of: Callable[[Call, Any], Any]) -> Any:
    """Compute the results of each part, and join them.

    `results_of` takes a call and a generator.
    """
    generator = generator_of_parts(rng)
    calls = calls_on_parts(call)
    results = [results_of(part, generator) for part in calls]
    names = group_names(call)
    if call.per_class:
        names = [
            f"{name}, {part.tables[0].name(k)}"
            for name, part in zip(names, calls, strict=True)
            for k in range(part.tables[0].n_problems)
        ]
    if not isinstance(results[0], Results):
        return join_parts(call, results, names)
    by_name = {name: [of_part[name] for of_part in results] for name in results[0]}
    return Results({name: join_parts(call, each, names) for name, each in by_name.items()})


def group_names(call: Call) -> list[str]:
    """Name the groups by their labels."""
    by = call.tables[0].by
    assert by is not None, "callers make sure"
    return [
        ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        for label in by.labels
    ]


def join_parts(call: Call, results: Sequence[R], names: Sequence[str]) -> R:
    """Join the results of one estimator for each part."""
    return join_results(results, n=call.n, n_groups=call.n_groups, _names=names, _kind="group")


def join_results(results: Sequence[R], **changes: Any) -> R:
    """Join results of one estimator into one, which has the values of all of them.

    Parameters
    ----------
    results : sequence of EstimatorResult
        Of one class, each with a value or with several.
    **changes
        Fields of the joined result that are not those of the first one.
    """
    first = results[0]
    have_one_value = np.ndim(first.value) == 0

    def join(name: str) -> Any:
        columns = [getattr(result, name) for result in results]
        if columns[0] is None:
            return None
        if name in first._lists:
            is_list = isinstance(columns[0], list)
            return [x for column in columns for x in column] if is_list else columns
        if have_one_value:
            return np.array(columns)
        return np.concatenate([
            np.broadcast_to(column, np.shape(result.value)) if np.ndim(column) == 0 else column
            for column, result in zip(columns, results, strict=True)
        ])  # fmt: skip

    fields: Mapping[str, Any] = {name: join(name) for name in (*first._arrays, *first._lists)}
    return replace(first, **{**fields, **first._joined_fields(results), **changes})
