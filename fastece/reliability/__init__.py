"""Reliability diagrams and curves: how often scores come true."""

from fastece.reliability.curve import ReliabilityCurve, reliability_curve
from fastece.reliability.diagram import ReliabilityDiagram, reliability_diagram

__all__ = ["ReliabilityCurve", "ReliabilityDiagram", "reliability_curve", "reliability_diagram"]
