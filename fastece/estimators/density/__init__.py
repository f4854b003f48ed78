"""Calibration errors from kernel densities of the scores and of the hits.

Here stand the estimator `KDE`, and how densities are made of rows. A new kernel that is reflected
at the ends is a row of `mesh.SHAPES` and a branch of `fastece.kernels.density.kernel_height`; norms
and bandwidths are in `estimator`, and loops over rows in `fastece.kernels.density`. Errors do not
know how replicates are drawn, nor plans how an error is measured. Begin with `estimator`; `plan`
goes from draws to densities, on the grids that `rule` chooses from `mesh` and `beta`.
"""
