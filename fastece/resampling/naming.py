"""Estimators as text: how results show them, and their names in a list."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from fastece.data.errors import InputError
from fastece.estimators.table import ESTIMATORS, find_estimator

Finder = Callable[[Any, dict[str, Any], Sequence[str]], Any]
# Python writes this where an object has no text of its own, another number in every process.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(estimator: Any) -> str:
    """Write an estimator with its parameters, as the same text in every process."""
    return ADDRESS.sub("", str(estimator))


def name_of(estimator: Any) -> str:
    """Return the name of an estimator in the table, or its text with other parameters."""
    for name, listed in ESTIMATORS.items():
        if type(listed) is type(estimator) and listed == estimator:
            return name
    return describe(estimator)


def find_estimators(
    estimator: Any, fields: dict[str, Any], reader_options: Sequence[str],
    find: Finder = find_estimator,
) -> dict[str, Any]:  # fmt: skip
    """Return the estimators of one call by name; "" names one that is in no list.

    In a list an estimator has the name that the caller gives, an object its text, and an object
    without one its class, numbered.
    """
    if not isinstance(estimator, list | tuple):
        return {"": find(estimator, fields, reader_options)}
    if not estimator:
        raise InputError("estimator", "the list is empty")
    estimators: dict[str, Any] = {}
    for entry in estimator:
        name = str(entry)
        if ADDRESS.search(name):
            name = number_name(type(entry).__name__, estimators)
        if name in estimators:
            raise InputError("estimator", f"{name!r} is named twice")
        estimators[name] = find(entry, fields, reader_options)
    return estimators


def number_name(name: str, names: dict[str, Any]) -> str:
    """Return a name, with the first number from 2 on that makes it a new one."""
    numbered = name
    number = 1
    while numbered in names:
        number += 1
        numbered = f"{name} {number}"
    return numbered
