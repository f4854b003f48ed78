"""The calibration errors of other libraries: their names, their arguments, their numbers.

A program changes one line, ``from torchmetrics.functional.classification import
multiclass_calibration_error`` to ``from fastece.compat.torchmetrics import
multiclass_calibration_error``, and gets the number that it had, sooner. There is a module for each
library, which is not imported itself: `torchmetrics`, `netcal`, `uncertainty_calibration`,
`sklearn`, `relplot` and `robustness_metrics`. Where they differ is in `conventions`.
"""

from importlib import import_module
from typing import Any

MODULES = (
    "conventions",
    "netcal",
    "relplot",
    "robustness_metrics",
    "sklearn",
    "torchmetrics",
    "uncertainty_calibration",
)


def __dir__() -> list[str]:
    return list(MODULES)


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
