"""Validation of a risk model: rates, recalibration, curve, discrimination and net benefit.

`variance` has the laws of sums over rows, from which `quantities` makes each quantity with its
interval and test; `validation` puts them together for `fastece.validate`, as tables, a sentence, a
picture and a paragraph on methods. Values without intervals, which every function takes as
estimators, are in `fastece.estimators.risk`. Change here which quantities a validation has, and
begin with `validation_of`.
"""
