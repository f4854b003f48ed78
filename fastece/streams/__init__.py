"""Streams: predictions that are added up as they come, in memory that does not grow."""

from fastece.streams.accumulator import Accumulator as Accumulator
