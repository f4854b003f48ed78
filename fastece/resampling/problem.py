"""A problem of which rows are drawn, with its rows also in the order of their scores."""

from functools import cached_property

import numpy as np

from fastece.data.samples import Sample, in_order
from fastece.kernels.types import I32


class Problem:
    """A sample as it is, and sorted by score for statistics that need it."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    @cached_property
    def order(self) -> I32:
        """Rows in increasing order of the score."""
        return in_order(self.sample.s)[1].astype(np.int32)

    @cached_property
    def place(self) -> I32:
        """Position of each row in that order."""
        place = np.empty_like(self.order)
        place[self.order] = np.arange(place.size, dtype=np.int32)
        return place

    @cached_property
    def ordered(self) -> Sample:
        """The sample in that order."""
        return self.sample.where(self.order)
