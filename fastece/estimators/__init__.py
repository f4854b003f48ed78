"""Estimators: functions of a weighted binary problem, and the table of them."""
