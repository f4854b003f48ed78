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

__version__ = "0.2.0"

# Modules that are spoken of by name, such as fastece.decisions.risk_coverage.
_MODULES = {
    "compat", "decisions", "display", "estimators", "files", "metrics", "recalibration",
    "reliability", "sklearn", "streams", "study",
}  # fmt: skip
# The modules of the public names, which are imported when they are first used, once it is filled.
_HOMES: dict[str, str] = {}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if not _HOMES:  # not at once, as the command line starts here
        import ast

        stub = ast.parse(__loader__.get_data(f"{__path__[0]}/__init__.pyi")).body
        imports = (x for x in stub if isinstance(x, ast.ImportFrom))
        _HOMES.update({x.name: str(one.module) for one in imports for x in one.names})
    if name == "__all__":
        return sorted(_HOMES)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), *_MODULES})
