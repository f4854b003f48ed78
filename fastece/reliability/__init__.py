"""Reliability diagrams and curves: the observed frequency at each score."""
