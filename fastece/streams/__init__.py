"""Streams: predictions that are added up as they come, in constant memory.

Begin with `accumulator`, which has the public object: `batches` reads and checks rows, `state`
keeps integer sums of them, and `cells` turns these into samples for the estimators; `distributed`
counts streams with several workers, and `metric` is a metric for training loops. Change here how
rows are counted and saved; how an error is computed from a sample belongs to `fastece.estimators`.
"""

from fastece.streams.accumulator import Accumulator as Accumulator
from fastece.streams.distributed import from_batches as from_batches
from fastece.streams.distributed import from_dask as from_dask
from fastece.streams.metric import CalibrationMetric as CalibrationMetric
