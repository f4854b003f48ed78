"""Estimators: functions of a weighted binary problem, and the table of them.

A new estimator or another definition of one goes here; how rows are read or resampled does not.
`base` is the interface, `draws` are the resampled counts that it meets, and `table` gives every
estimator a name. Begin with `base`, then read `cumulative` or `losses`, which are small ones.
`faults` tries an estimator of one's own.
"""
