"""Estimates with intervals, comparisons, slices and direction of the error."""
