"""What resamples, on a few rows and in another process, which compiles its kernels meanwhile."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastece import kernels
from fastece.data.problems import Problems
from fastece.data.sample import Sample
from fastece.resampling.draws import ClassDraws, HitDraws, InBlocks, Multinomial
from fastece.resampling.engine import Problem, plan_replicates

FEW = 40


@dataclass(frozen=True)
class EveryRow(InBlocks):
    """Draws of every row once, for which no kernel has to be compiled."""

    n: int

    def _fill(self, first: int, c: Any) -> None:  # noqa: ARG002
        c[:] = 1


def rehearse(sample: Sample, estimators: Sequence[Any], draws: Sequence[Any]) -> None:
    """Evaluate estimators and make draws: what is needed last comes first, so that this process and
    the one that waits for its kernels meet half-way."""
    problem = Problem(sample)
    once: Any = EveryRow(sample.n)
    for estimator in reversed(estimators):
        plan_replicates([estimator], [problem], once, sample.n).values(0, 1)
    for kind in reversed(draws):
        kind.multiplicities(kind.make(0, 1), 0)


def compile_resampling(
    problems: Problems, estimators: Sequence[Any], *, rows: bool = True, labels: bool = False
) -> AbstractContextManager[None]:
    """While the block runs, let another process compile what estimators need on draws of these
    problems: of `rows`, as for `fastece.bootstrap`, or of `labels`, as for
    `fastece.calibration_test`."""
    # Without class vectors, which are not cut: kernels do not see them.
    sample = replace(problems.sample(0), vectors=None).where(slice(FEW))
    draws: list[Any] = []
    if rows:
        draws.append(Multinomial(0, sample.n, sample.n))
    if labels and problems.setting.per_class:
        draws.append(ClassDraws(0, np.column_stack([sample.s, 1 - sample.s])))
    elif labels:
        draws.append(HitDraws(0, sample.s))
    return kernels.ahead.compile_ahead(rehearse, sample, estimators, draws)
