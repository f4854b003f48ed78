"""Calibration errors from kernel densities of the scores and of the hits.

Here stand the estimator `KDE`, and how densities are made of rows: change a kernel in `mesh` or
`beta`, the norm or the bandwidth in `estimator`, and loops over rows in `fastece.kernels.density`.
Errors do not know how replicates are drawn, nor plans how an error is measured. Begin with
`estimator`; `plan` goes from draws to densities, on the grids of `mesh` and `beta`.
"""
