"""Streams: predictions that are added up as they come, in constant memory."""

from fastece.streams.accumulator import Accumulator as Accumulator
from fastece.streams.distributed import from_batches as from_batches
from fastece.streams.distributed import from_dask as from_dask
from fastece.streams.metric import CalibrationMetric as CalibrationMetric
