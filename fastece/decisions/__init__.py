"""Decisions: which predictions may act alone, whether a model passes, whether it drifts."""

from fastece.decisions.gate import Check, Judgement, check
from fastece.decisions.monitor import Monitor
from fastece.decisions.selective import (
    RiskCoverage,
    Threshold,
    choose_threshold,
    risk_coverage,
)  # fmt: skip
from fastece.decisions.testing import assert_calibrated

__all__ = [
    "Check", "Judgement", "Monitor", "RiskCoverage", "Threshold", "assert_calibrated",
    "check", "choose_threshold", "risk_coverage",
]  # fmt: skip
