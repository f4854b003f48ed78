"""Assertions for the tests of a project that has a classifier. They need no pytest."""

from typing import Any, Unpack

from fastece.data.errors import warn_outside
from fastece.data.options import shows_options
from fastece.data.parameters import check_choice
from fastece.decisions.gate import Check, check
from fastece.resampling.arguments import ResamplingKeywords

# The last line of a failure.
HINT = "fastece.calibration_report(y_true, y_prob) shows where the model is off."


class CheckKeywords(ResamplingKeywords, total=False):
    """The keywords of `fastece.check` beside its first bound."""

    max_ratio: float | None
    baseline: Any
    max_increase: float | None
    estimator: Any
    by: Any
    bins: Any
    cross: bool
    min_rows: int
    groups: Any
    rng: Any


@shows_options
def assert_calibrated(
    y_true: Any, y_prob: Any = None, *, max_error: float | None = None, when_unsure: str = "warn",
    **options: Unpack[CheckKeywords],
) -> Check:  # fmt: skip
    """Raise an AssertionError where an error, or O/E, is not within its bounds.

    Parameters
    ----------
    y_true, y_prob, max_error, **options
        As in `fastece.check`; `max_ratio` may take the place of `max_error`.
    when_unsure : {"warn", "fail", "pass"}, default "warn"
        Where the rows cannot tell: issue a UserWarning with the number of rows that would, raise
        an AssertionError, or do nothing.

    Returns
    -------
    Check
        The result of `fastece.check`.

    Raises
    ------
    AssertionError
        Where it fails. The message is the text of the check.
    ValueError, TypeError
        As in `fastece.check`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.decisions import assert_calibrated
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> assert_calibrated(y, p, max_error=0.05).passed
    True
    >>> try:
    ...     assert_calibrated(y, p**2, max_error=0.05)
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    fails: calibration error 0.168 (95 % CI 0.148 to 0.187), at most 0.05 allowed
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    check_choice("when_unsure", when_unsure, ("warn", "fail", "pass"))
    result = check(y_true, y_prob, max_error=max_error, **options)
    is_unsure = result.passed is None
    if result.passed is False or (is_unsure and when_unsure == "fail"):
        raise AssertionError(f"{result}\n\n{HINT}")
    if is_unsure and when_unsure == "warn":
        warn_outside(str(result))
    return result
