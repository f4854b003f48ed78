"""Checks of single arguments: numbers, names, flags.

Each returns the value in Python's own type, so that results and their text are the same whether a
caller passes 3, np.int64(3) or np.float32(3).
"""

import math
import os
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from inspect import CO_VARKEYWORDS
from numbers import Integral, Real
from types import FrameType
from typing import Any

import numpy as np

from fastece.data.errors import InputError, InputTypeError

PACKAGE = f"{__name__.partition('.')[0]}."
# Options by the names that they have in other libraries.
USUAL_NAMES = {
    "seed": "rng", "random_state": "rng", "weights": "sample_weight", "n_boot": "n_resamples",
    "n_bootstrap": "n_resamples", "ci": "confidence_level",
}  # fmt: skip


def list_names(names: Iterable[Any]) -> str:
    """List the valid names, for a message about an unknown one."""
    return "known: " + (", ".join(repr(name) for name in names) or "none")


def unknown_option(
    name: str, reader_options: Sequence[str], kind: str = "", parameters: Sequence[str] = ()
) -> InputTypeError:
    """Build the error for a name that is neither a parameter nor an option.

    Parameters
    ----------
    name : str
        The name as the caller wrote it.
    reader_options : sequence of str
        Options of reading that the function takes, beside those that its signature names.
    kind : str
        The class of the estimator; "" for a function without one.
    parameters : sequence of str
        The parameters of the estimator.
    """
    function, options = called_function()
    options = [*options, *(option for option in reader_options if option not in options)]
    names = [*parameters, *options]
    meant = [USUAL_NAMES[name]] if name in USUAL_NAMES else get_close_matches(name, names, 1)
    texts = [f"perhaps {{{x}}} is meant" for x in meant if x in names]
    rule = f"is not an option of {function}"
    if kind:
        rule = f"is not a parameter of the estimator {kind}, nor an option of {function}"
        texts.append(list_names(parameters))
    texts.append(f"options of {function}: {', '.join(map(repr, options))}")
    return InputTypeError(name, rule, hint="; ".join(texts))


def called_function() -> tuple[str, list[str]]:
    """Name the function that a caller outside the package has called, with options.

    Where it takes any options, and hands them on to other functions, it has theirs too.
    """
    frame: FrameType | None = sys._getframe(1)
    name = ""
    options: list[str] = []
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        code = frame.f_code
        name = code.co_name
        if code.co_flags & CO_VARKEYWORDS:
            end = code.co_argcount + code.co_kwonlyargcount
            options = [*code.co_varnames[code.co_argcount : end], *options]
        frame = frame.f_back
    return name, list(dict.fromkeys(options))


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> str:
    """Check that a name is one of a few."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(name, "must be a known name", value=value, hint=list_names(choices))
    return str(value)


def check_integer(name: str, value: Any, low: int, high: int, kind: str = "an integer") -> int:
    """Check an integer from low to high; bools and floats are refused."""
    if type(value) is int and low <= value <= high:  # a third of the time of the general checks
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise InputTypeError(name, f"must be {kind}", value=value)
    if not low <= int(value) <= high:
        raise InputError(name, f"must be {kind} from {low} to {high}", value=value)
    return int(value)


def check_real(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """Check a real number from low to high.

    nan is refused, and infinity unless `high` is infinite.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InputTypeError(name, "must be a number", value=value)
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if not low <= number <= high:
        raise InputError(name, f"must be a number from {low:g} to {high:g}", value=value)
    return number


def check_flag(name: str, value: Any) -> bool:
    """Check True or False; a string such as "no" is neither."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(name, "must be True or False", value=value)
    return bool(value)


def check_range(name: str, value: Any, names: Sequence[str]) -> str | tuple[float, float]:
    """Check a named range, or a pair 0 <= low < high <= 1."""
    if isinstance(value, str):
        return check_choice(name, value, names)
    if not isinstance(value, tuple) or len(value) != 2:
        hint = list_names(names)
        raise InputTypeError(name, "must be a pair (low, high)", value=value, hint=hint)
    low, high = (check_real(name, end, 0.0, 1.0) for end in value)
    if not low < high:
        raise InputError(name, "low must be less than high", value=value)
    return low, high


def processors() -> int:
    """Count the processors that this process may use."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_jobs(n_jobs: Any) -> int:
    """Turn `n_jobs` into a number of threads.

    None is 1, -1 as many as processors that this process may use, -2 one less, and so on.
    """
    if n_jobs is None:
        return 1
    jobs = check_integer("n_jobs", n_jobs, -(2**31), 2**31)
    if jobs == 0:
        raise InputError("n_jobs", "must be a positive number of threads, or -1 for all", value=0)
    return jobs if jobs > 0 else max(1, processors() + 1 + jobs)


def check_average(average: Any) -> None:
    """Check how values of classes are averaged."""
    if average is not None and (not isinstance(average, str) or average != "macro"):
        hint = list_names(["macro", None])
        raise InputError("average", "must be a known name", value=average, hint=hint)
