"""A small rehearsal of what resamples, in another process, to compile its kernels meanwhile."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.problems.problems import Problems

__all__ = ["compile_resampling"]

FEW = 40


class Resampled:
    """An estimator without its `direct`, whose kernels come first and are compiled already."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.estimator, name)

    def direct(self, problems: Any, run: Any = map) -> NDArray[np.float64]:  # noqa: ARG002
        """0 for every problem."""
        return np.zeros(problems.n_problems)


def rehearse(
    functions: Sequence[Callable[..., Any]], estimators: Sequence[Any], arrays: dict[str, Any]
) -> None:
    """Call each function, one that resamples, on a few rows."""
    for function in functions:
        for estimator in estimators:
            function(**arrays, estimator=Resampled(estimator), n_resamples=1, rng=0)


def compile_resampling(
    problems: Problems, estimators: Sequence[Any], *functions: Callable[..., Any]
) -> AbstractContextManager[None]:
    """While the block runs, let another process compile what functions that resample, such as
    `bootstrap`, need for these problems."""
    arrays = {
        "y_true": problems.label[:FEW],
        "y_prob": problems.prob[:FEW],
        "setting": "classwise" if problems.setting.per_class else "binary",
        "sample_weight": None if problems.v is None else problems.v[:FEW],
    }
    return kernels.ahead.compile_ahead(rehearse, functions, estimators, arrays)
