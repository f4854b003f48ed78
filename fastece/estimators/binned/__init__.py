"""Binned estimators: a calibration error is a norm of the gaps of bins of the score.

A value takes four steps::

    Binned --rule--> BinRule --layout_of--> Layout --sum_bins--> Bins --errors--> value
                     how scores             edges                sums
                     get into bins          and cells            over rows

================  ===============================================================================
file              contents
================  ===============================================================================
`estimator.py`    `Binned`: its parameters, and the norms of the gaps
`sweep.py`        `Sweep`: equal-mass bins, whose number the data decide
`layouts.py`      edges of bins, and the cells of a score
`cuts.py`         edges of equal-mass bins, and scores by their rank
`sums.py`         sums over the rows in bins, for whole arrays and for samples with counts
`replicates.py`   the same sums for many draws of the rows at once
`cell_sums.py`    the loop over chunks of rows, on threads, behind all sums of arrays
================  ===============================================================================

Loops over single rows are in `fastece.kernels`; nothing here has one. Two plain arrays need none of
this: `fastece.estimators.plain` has their values.

The side of an edge on which a score falls is `Binned.closed`, which `BinRule` hands on as
`closed_right`, and a `Grid` as `right`. The comparisons of a score with an edge are in
`kernels.binning`: `uniform_bins` for bins of equal width, `search_knots` for all others, whose
edges `layouts` makes.
"""

from fastece.estimators.binned.estimator import MAX_BINS as MAX_BINS
from fastece.estimators.binned.estimator import Binned as Binned
from fastece.estimators.binned.estimator import formula_of as formula_of
from fastece.estimators.binned.sums import Bins as Bins
from fastece.estimators.binned.sweep import Sweep as Sweep
