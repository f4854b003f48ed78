"""Calibration errors: predicted probabilities against observed frequencies.

`ece` and its relatives `mce`, `sce`, `ace` and `tace` give one number. `reliability_diagram` and
`reliability_curve` show at which probabilities the classifier is miscalibrated. `bootstrap`,
`compare` and `calibration_test` quantify the uncertainty. `brier_score`, `log_loss`, `accuracy`,
`sharpness` and `entropy` measure the quality of the probabilities as a whole, and
`brier_decomposition` and `score_decomposition` show how much of it is calibration. `Accumulator`
takes predictions in batches, and does not keep them. Labels are always the first argument:

>>> import fastece
>>> fastece.ece([0, 1, 1], [0.2, 0.6, 0.9], n_bins=10)
0.23333333333333336
"""

from importlib import import_module

import lazy_loader

__version__ = "0.3.0"

# Modules that are spoken of by name, such as fastece.decisions.risk_coverage. They are not in
# `__all__`, since some need libraries that `from fastece import *` should do without.
_MODULES = {
    "compat", "datasets", "decisions", "display", "estimators", "files", "metrics", "recalibration",
    "reliability", "sklearn", "streams", "study",
}  # fmt: skip

# Public names are those of the stub beside this file. Their modules are imported at the first use.
_import_public_name, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = _import_public_name(name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
