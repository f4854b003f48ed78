"""The whole report with its pictures, on two threads, from arrays to the page."""

from functools import partial
from typing import Any

import fastece
from benchmarks import baselines
from benchmarks.common import Benchmark, require


def write_page(y: Any, p: Any) -> str:
    """Write the report as HTML."""
    page: str = fastece.calibration_report(y, p, n_jobs=2).to_html()
    return page


class Report(Benchmark):
    """Measure a report with the default of 1000 replicates behind every interval."""

    params = ([10, 1000], [50_000])
    param_names = ("classes", "n")
    # asv repeats the report, which takes 20 s for a thousand classes.
    timeout = 300.0

    def setup(self, classes: int, n: int) -> None:
        """Draw the data and compile."""
        require("calibration_report")
        write_page(*baselines.draw_class_vectors(200, classes))
        self.call = partial(write_page, *baselines.draw_class_vectors(n, classes))

    def time_page(self, *params: Any) -> None:  # noqa: ARG002
        """Write the page."""
        self.call()
