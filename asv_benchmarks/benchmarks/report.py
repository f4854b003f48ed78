"""The whole report with its pictures, on two threads, from data in memory to the page."""

from functools import partial
from typing import Any

import fastece
from benchmarks import baselines


def write_page(y: Any, p: Any) -> str:
    """The report as HTML."""
    page: str = fastece.calibration_report(y, p, n_jobs=2).to_html()
    return page


class Report:
    """1000 replicates behind every interval; rows of so many classes."""

    params = ([10, 1000], [50_000])
    param_names = ("classes", "n")
    timeout = 300

    def setup(self, classes: int, n: int) -> None:
        """Make the data, and compile."""
        if not hasattr(fastece, "calibration_report"):
            raise NotImplementedError
        write_page(*baselines.class_vectors(200, classes))
        self.call = partial(write_page, *baselines.class_vectors(n, classes))

    def time_page(self, *_: int) -> None:
        """From arrays to the page."""
        self.call()
