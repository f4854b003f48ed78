"""Decompositions of scores into calibration, discrimination and uncertainty."""
