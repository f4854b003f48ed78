"""Kernel density estimators: meshes, the transform, and the estimator of their error."""
