"""Streams: predictions that are added up as they come, in constant memory."""

from fastece.streams.accumulator import Accumulator as Accumulator
