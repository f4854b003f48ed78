"""Scores as calibration, discrimination and what the labels allow."""
