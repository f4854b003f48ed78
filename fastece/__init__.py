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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastece.calls import (
        accuracy,
        ace,
        brier_score,
        canonical_error,
        ece,
        entropy,
        kernel_calibration_error,
        log_loss,
        mce,
        sce,
        sharpness,
        tace,
    )
    from fastece.checks.errors import InputError, InputTypeError
    from fastece.data.sample import Sample, Vectors
    from fastece.decomposition import (
        BrierDecomposition,
        ScoreDecomposition,
        brier_decomposition,
        score_decomposition,
    )
    from fastece.estimators.bayes import BayesCurve
    from fastece.estimators.binned import Binned, Sweep
    from fastece.estimators.canonical import SKCE, DirichletKDE
    from fastece.estimators.density import KDE
    from fastece.estimators.losses import Accuracy, BrierScore, Entropy, LogLoss, Sharpness
    from fastece.estimators.smooth import MMCE, SmoothECE
    from fastece.estimators.table import ESTIMATORS
    from fastece.intervals.compare import compare
    from fastece.intervals.direction import Direction, direction
    from fastece.intervals.estimate import Estimate, estimate
    from fastece.intervals.slices import Slice, Slices, slices
    from fastece.reliability.curve import ReliabilityCurve, reliability_curve
    from fastece.reliability.diagram import ReliabilityDiagram, reliability_diagram
    from fastece.reliability.sweep import bandwidth_sweep
    from fastece.report.report import calibration_report
    from fastece.report.result import Report
    from fastece.resampling.bootstrap import bootstrap
    from fastece.resampling.calibration_test import (
        CalibrationTestResult,
        ConsistencyBand,
        calibration_test,
    )
    from fastece.resampling.results import BootstrapResult, ComparisonResult
    from fastece.streams.accumulator import Accumulator

__version__ = "0.2.0"

# The public names of each module, which is imported when one of them is first used.
_NAMES = {
    "calls": (
        "accuracy",
        "ace",
        "brier_score",
        "canonical_error",
        "ece",
        "entropy",
        "kernel_calibration_error",
        "log_loss",
        "mce",
        "sce",
        "sharpness",
        "tace",
    ),
    "intervals.compare": ("compare",),
    "intervals.direction": ("Direction", "direction"),
    "intervals.estimate": ("Estimate", "estimate"),
    "intervals.slices": ("Slice", "Slices", "slices"),
    "estimators.bayes": ("BayesCurve",),
    "estimators.binned": ("Binned", "Sweep"),
    "estimators.canonical": ("SKCE", "DirichletKDE"),
    "decomposition": (
        "BrierDecomposition",
        "ScoreDecomposition",
        "brier_decomposition",
        "score_decomposition",
    ),
    "estimators.table": ("ESTIMATORS",),
    "estimators.density": ("KDE",),
    "estimators.smooth": ("MMCE", "SmoothECE"),
    "estimators.losses": ("Accuracy", "BrierScore", "Entropy", "LogLoss", "Sharpness"),
    "checks.errors": ("InputError", "InputTypeError"),
    "data.sample": ("Sample", "Vectors"),
    "reliability.curve": ("ReliabilityCurve", "reliability_curve"),
    "reliability.diagram": ("ReliabilityDiagram", "reliability_diagram"),
    "reliability.sweep": ("bandwidth_sweep",),
    "report.report": ("calibration_report",),
    "report.result": ("Report",),
    "resampling.bootstrap": ("bootstrap",),
    "resampling.calibration_test": ("CalibrationTestResult", "ConsistencyBand", "calibration_test"),
    "resampling.results": ("BootstrapResult", "ComparisonResult"),
    "streams.accumulator": ("Accumulator",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "ESTIMATORS",
    "KDE",
    "MMCE",
    "SKCE",
    "Accumulator",
    "Accuracy",
    "BayesCurve",
    "Binned",
    "BootstrapResult",
    "BrierDecomposition",
    "BrierScore",
    "CalibrationTestResult",
    "ComparisonResult",
    "ConsistencyBand",
    "Direction",
    "DirichletKDE",
    "Entropy",
    "Estimate",
    "InputError",
    "InputTypeError",
    "LogLoss",
    "ReliabilityCurve",
    "ReliabilityDiagram",
    "Report",
    "Sample",
    "ScoreDecomposition",
    "Sharpness",
    "Slice",
    "Slices",
    "SmoothECE",
    "Sweep",
    "Vectors",
    "accuracy",
    "ace",
    "bandwidth_sweep",
    "bootstrap",
    "brier_decomposition",
    "brier_score",
    "calibration_report",
    "calibration_test",
    "canonical_error",
    "compare",
    "direction",
    "ece",
    "entropy",
    "estimate",
    "kernel_calibration_error",
    "log_loss",
    "mce",
    "reliability_curve",
    "reliability_diagram",
    "sce",
    "score_decomposition",
    "sharpness",
    "slices",
    "tace",
]

# Modules that are spoken of by name, such as fastece.protocol.Sample.
_MODULES = {
    "calls", "compat", "distributed", "estimators", "files", "plot", "protocol", "recalibration",
    "reliability", "sklearn", "streams", "study", "training",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
