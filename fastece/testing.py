"""Assertions for the tests of a project that has a classifier. They need no pytest."""

from typing import Any

from fastece.checks.errors import warn_outside
from fastece.checks.parameters import check_choice
from fastece.gate import Check, check
from fastece.report.report import calibration_report
from fastece.resampling.arguments import READING


def assert_calibrated(
    y_true: Any, y_prob: Any = None, *, max_error: float, when_unsure: str = "warn", **options: Any
) -> Check:
    """Raise an AssertionError where a calibration error is larger than allowed.

    Parameters
    ----------
    y_true, y_prob, max_error, **options
        As in `fastece.check`.
    when_unsure : {"warn", "fail", "pass"}, default "warn"
        What happens where the rows cannot tell: a UserWarning with the number of rows that would,
        an AssertionError, or nothing.

    Returns
    -------
    Check
        The result of `fastece.check`.

    Raises
    ------
    AssertionError
        Where it fails. The message is the verdict and the first lines of the report.
    ValueError, TypeError
        As in `fastece.check`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.testing import assert_calibrated
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
    found = check(y_true, y_prob, max_error=max_error, **options)
    if found.passed is False or (found.passed is None and when_unsure == "fail"):
        reading = {name: options[name] for name in (*READING, "groups") if name in options}
        # The headline, the rows and the main errors.
        report = str(calibration_report(y_true, y_prob, **reading))
        raise AssertionError("\n".join([str(found), "", *report.splitlines()[:20]]))
    if found.passed is None and when_unsure == "warn":
        warn_outside(str(found))
    return found
