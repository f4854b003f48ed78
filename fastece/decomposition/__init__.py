"""Where a score comes from: how much of it is calibration, and how much the labels allow."""
