"""Where a model is off: diagrams, curves, cumulated gaps and decompositions of scores."""
