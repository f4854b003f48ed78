"""Decisions: which predictions may act alone, whether a model passes, whether it drifts.

Each decision is a result with a promise: `risk.py` has the risk at each coverage, `threshold.py`
the score from which predictions may act, `gate.py` whether errors lie below bounds, `monitor.py`
whether calibration has changed. Change here how a decision is made from intervals, tests and bets;
intervals themselves belong to `inference`, pictures to `display`.
Begin with `gate.py`; the statistics of thresholds and monitors are in `promises.py` and `bets.py`.
"""

from fastece.decisions.gate import Check, Judgement, assert_calibrated, check
from fastece.decisions.monitor import Monitor
from fastece.decisions.risk import RiskCoverage, risk_coverage
from fastece.decisions.threshold import Threshold, choose_threshold

__all__ = [
    "Check", "Judgement", "Monitor", "RiskCoverage", "Threshold", "assert_calibrated",
    "check", "choose_threshold", "risk_coverage",
]  # fmt: skip
