"""Single calls: an estimator on a caller's data."""
