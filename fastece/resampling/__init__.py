"""Replicates of a statistic: draws of rows and of labels, and intervals and tests made from them.

A `Call` (in `call`) holds the checked arguments of a function, which `arguments` reads. `draws`
makes rows, groups and labels, `engine` evaluates prepared statistics on them, on threads or
elsewhere, and `bootstrap` and `calibration_test` turn the values into results, by the formulas in
`intervals`.

Change here how rows and labels are drawn, how work is cut into tasks, or an interval made from
replicates; the number that a draw has is the business of an estimator, and intervals that need a
model of the noise stand in `fastece.inference`. Every draw depends on its key and its number alone,
and has the same bits for ever. Begin with `bootstrap`, then read `draws` and `engine`.
"""
