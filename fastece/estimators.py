"""The table of estimators: one row each."""

from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from typing import Any

from fastece.binned.estimator import Binned
from fastece.inputs.parameters import list_names
from fastece.kde.estimator import KDE
from fastece.protocol import Estimator

__all__ = ["ESTIMATORS", "find_estimator"]

ESTIMATORS: dict[str, Estimator] = {
    "ece": Binned(),
    "ece_a": Binned(edges="quantile"),
    "ece_c": Binned(mapping="convex"),
    "ece_ac": Binned(edges="quantile", mapping="convex"),
    "ece_kde": KDE(),
}


def find_estimator(estimator: Any, fields: dict[str, Any]) -> Estimator:
    """The estimator that a name or an object stands for, with some of its fields replaced."""
    if isinstance(estimator, str):
        if estimator not in ESTIMATORS:
            raise ValueError(f"estimator: got {estimator!r}; {list_names(ESTIMATORS)}")
        estimator = ESTIMATORS[estimator]
    elif isinstance(estimator, type) or not all(
        callable(getattr(estimator, name, None)) for name in ("prepare", "evaluate")
    ):
        raise TypeError(
            "estimator: must be a name or an object with prepare and evaluate, "
            f"got {estimator!r}; {list_names(ESTIMATORS)}"
        )
    if not fields:
        return estimator  # type: ignore[no-any-return]
    names: list[str] = []
    if is_dataclass(estimator):
        names = [field.name for field in dataclass_fields(estimator)]
    for name in fields:
        if name not in names:
            kind = type(estimator).__name__
            raise TypeError(
                f"{name}: is not a parameter of the estimator {kind}; {list_names(names)}"
            )
    changed: Estimator = replace(estimator, **fields)
    return changed
