"""Calibration errors: how far a classifier's probabilities are from how often they come true.

`ece` and its relatives `mce`, `sce`, `ace` and `tace` give one number. `reliability_diagram` and
`reliability_curve` show at which probabilities the classifier is off. `bootstrap`, `compare` and
`calibration_test` tell how sure that is. `brier_score`, `log_loss`, `accuracy`, `sharpness` and
`entropy` say how good the probabilities are in all, and `brier_decomposition` and
`score_decomposition` how much of that is calibration. `Accumulator` answers for predictions that
are not kept. Labels come first:

>>> import fastece
>>> fastece.ece([0, 1, 1], [0.2, 0.6, 0.9], n_bins=10)
0.23333333333333336
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastece.answer.compare import compare
    from fastece.answer.direction import Direction, direction
    from fastece.answer.estimate import Estimate, estimate
    from fastece.answer.slices import Slice, Slices, slices
    from fastece.bayes.estimator import BayesCurve
    from fastece.binned.estimator import Binned
    from fastece.binned.sweep import Sweep
    from fastece.canonical.dirichlet import DirichletKDE
    from fastece.canonical.skce import SKCE
    from fastece.canonical_errors import canonical_error, kernel_calibration_error
    from fastece.decomposition.binned import BrierDecomposition, brier_decomposition
    from fastece.decomposition.isotonic import ScoreDecomposition, score_decomposition
    from fastece.estimators import ESTIMATORS
    from fastece.kde.estimator import KDE
    from fastece.kde.mmce import MMCE
    from fastece.kde.smooth import SmoothECE
    from fastece.losses import Accuracy, BrierScore, Entropy, LogLoss, Sharpness
    from fastece.proper_scores import accuracy, brier_score, entropy, log_loss, sharpness
    from fastece.protocol import Sample, Vectors
    from fastece.reliability.curve import ReliabilityCurve, reliability_curve
    from fastece.reliability.diagram import ReliabilityDiagram, reliability_diagram
    from fastece.reliability.sweep import bandwidth_sweep
    from fastece.report.report import Report, calibration_report
    from fastece.resampling.bootstrap import bootstrap
    from fastece.resampling.calibration_test import (
        CalibrationTestResult,
        ConsistencyBand,
        calibration_test,
    )
    from fastece.resampling.results import BootstrapResult, ComparisonResult
    from fastece.scores import ace, ece, mce, sce, tace
    from fastece.streams.accumulator import Accumulator

__version__ = "0.2.0"

# The public names of each module, which is imported when one of them is first used.
_NAMES = {
    "answer.compare": ("compare",),
    "answer.direction": ("Direction", "direction"),
    "answer.estimate": ("Estimate", "estimate"),
    "answer.slices": ("Slice", "Slices", "slices"),
    "bayes": ("BayesCurve",),
    "binned": ("Binned", "Sweep"),
    "canonical": ("SKCE", "DirichletKDE"),
    "canonical_errors": ("canonical_error", "kernel_calibration_error"),
    "decomposition.binned": ("BrierDecomposition", "brier_decomposition"),
    "decomposition.isotonic": ("ScoreDecomposition", "score_decomposition"),
    "estimators": ("ESTIMATORS",),
    "kde": ("KDE", "MMCE", "SmoothECE"),
    "losses": ("Accuracy", "BrierScore", "Entropy", "LogLoss", "Sharpness"),
    "proper_scores": ("accuracy", "brier_score", "entropy", "log_loss", "sharpness"),
    "protocol": ("Sample", "Vectors"),
    "reliability.curve": ("ReliabilityCurve", "reliability_curve"),
    "reliability.diagram": ("ReliabilityDiagram", "reliability_diagram"),
    "reliability.sweep": ("bandwidth_sweep",),
    "report.report": ("Report", "calibration_report"),
    "resampling.bootstrap": ("bootstrap",),
    "resampling.calibration_test": ("CalibrationTestResult", "ConsistencyBand", "calibration_test"),
    "resampling.results": ("BootstrapResult", "ComparisonResult"),
    "scores": ("ace", "ece", "mce", "sce", "tace"),
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
    "binned", "compat", "distributed", "estimators", "plot", "problems", "protocol",
    "recalibration", "reliability", "scores", "sklearn", "streams", "training",
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
