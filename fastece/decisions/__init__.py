"""Decisions: which predictions may act alone, whether a model passes, whether it drifts."""

from fastece.decisions.gate import Check, Judgement, check
from fastece.decisions.monitor import Monitor
from fastece.decisions.risk import RiskCoverage, risk_coverage
from fastece.decisions.testing import assert_calibrated
from fastece.decisions.threshold import Threshold, choose_threshold

__all__ = [
    "Check", "Judgement", "Monitor", "RiskCoverage", "Threshold", "assert_calibrated",
    "check", "choose_threshold", "risk_coverage",
]  # fmt: skip
