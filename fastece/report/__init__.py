"""The report: everything about the calibration of one model, and what it comes down to."""
