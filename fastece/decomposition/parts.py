"""Parts of a score, added up over classes: the base of both decompositions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastece.checks.probabilities import as_probabilities
from fastece.data.reading import read_source
from fastece.data.source import VECTORS, Source
from fastece.document.document import Document, Section
from fastece.document.numbers import Number
from fastece.document.result import Result


def add_parts(
    y_true: Any, y_prob: Any, parts_of: Callable[[Source, int], Sequence[float]], *,
    setting: Any = "auto", **options: Any,
) -> tuple[list[float], int, str]:  # fmt: skip
    """Add up the parts of each problem: values, number of rows and setting in words.

    Of class vectors with the setting "auto" they are the sum over the classes, each against the
    rest; with "classwise" the mean.
    """
    is_auto = isinstance(setting, str) and setting == "auto"
    if isinstance(y_true, Source) and y_true.has_vectors:
        raise y_true.lack(VECTORS, "y_true", "the sum over classes")
    is_array = not isinstance(y_true, Source)
    is_sum = is_array and is_auto and as_probabilities(y_prob).ndim == 2
    source = read_source(y_true, y_prob, setting="classwise" if is_sum else setting, **options)
    each = [parts_of(source, k) for k in range(source.n_problems)]
    values = np.sum(each, axis=0) / (1 if is_sum else len(each))
    name = "classwise" if source.setting.per_class else source.name(0)
    return values.tolist(), source.n, f"sum over {len(each)} classes" if is_sum else name


@dataclass(frozen=True, eq=False, kw_only=True)
class Decomposition(Result):
    """A score as a sum of parts, some of which are subtracted."""

    score: float
    n: int
    setting: str

    # Sign and name of each part.
    _parts: ClassVar[tuple[tuple[str, str], ...]]

    @classmethod
    def named(cls, values: Sequence[float]) -> dict[str, Any]:
        """Name the score and its parts."""
        return dict(zip(("score", *(name for _, name in cls._parts)), values, strict=True))

    @property
    def value(self) -> float:
        """The score."""
        return self.score

    @property
    def _name(self) -> str:
        """Name of the score and of its decomposition."""
        return "score"

    def document(self) -> Document:
        """Describe the score and its parts."""
        facts = {"score": self.score}
        facts |= {f"{sign} {name.replace('_', ' ')}": getattr(self, name)
                  for sign, name in self._parts}  # fmt: skip
        title = f"{self._name}, setting {self.setting}: {self.n} rows"
        cells = {name: Number(x, form=".5f") for name, x in facts.items()}
        return Document(title, sections=[Section(facts=cells)])

    def _columns(self) -> dict[str, Any]:
        return {name: [getattr(self, name)] for name in ("score", *(x for _, x in self._parts))}
