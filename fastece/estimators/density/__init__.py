"""Calibration errors from kernel densities of the scores and of the hits.

Rows are added up in cells, cells are smoothed into densities, and an error is a norm of these.
There are four types: `KDE` knows the norm, `DensityPlan` the rows of a sample, `EvenGrid` and
`BetaGrid` their cells and how kernels smooth them. A new kernel that is reflected at the ends is a
row of `even.KINDS`, an entry of `REACH` and its neighbours, and a branch of `kernel_height` in
`fastece.kernels.density`. Errors do not know how replicates are drawn, nor plans how an error is
measured. Begin with `estimator`; `plan` goes from draws to densities, on the grids of `even` and
`beta`.
"""
