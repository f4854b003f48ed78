"""Reliability diagrams and curves: how often scores come true."""
