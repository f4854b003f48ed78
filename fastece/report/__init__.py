"""The report on the calibration of one model."""
