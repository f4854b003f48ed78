"""Where a model is off: diagrams, curves, cumulative gaps and decompositions of scores.

Each module computes one kind of result for every problem of a call, and describes it: `diagram.py`
bins, `curve.py` a curve with its band, `cumulative.py` gaps in the order of the scores,
`decomposition.py` the components of a proper score, and `plot.py` puts them in the picture of a
paper. Change here what such a result holds; estimators belong to `estimators`, and how marks look
to `display.marks`. Begin with `diagram.py`.
"""
