"""What a report says of all classes at once."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastece.data.problems import Problems
from fastece.document.result import Record
from fastece.estimators.table import ESTIMATORS, direct_values, with_threads
from fastece.report.measures import Say
from fastece.report.words import floor_of, p_text
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import calibration_results

# Estimators that look at all pairs of rows, in seconds: of at most so many rows, and of so many
# classes that vectors of one sample lie near each other.
LEAST_CLASSES, MOST_CLASSES, MOST_ROWS = 3, 20, 20_000
# Pairs that all replicates together look at, about a second; but of 20 000 rows the bandwidth alone
# takes 4 s, and the fewest replicates of a test 10 s.
MOST_PAIRS, LEAST_REPLICATES = 10**9, 32
TEST = "skce"
MEANINGS = {
    "canonical": "distance of vectors from how often their classes come true",
    "skce": "whether rows with nearly the same vector are off alike",
}


@dataclass(frozen=True, eq=False)
class AllClasses(Record):
    """Errors of whole class vectors.

    Attributes
    ----------
    lines : list of dict
        An error each: name, value, the mean of a calibrated model, p_value, meaning. Without
        resamples there are neither a mean nor a p-value; empty where there is a note.
    n_resamples : int
        Replicates of each.
    note : str
        Why they were left out, if they were.
    """

    lines: list[dict[str, Any]]
    n_resamples: int
    note: str

    def objections(self, level: float) -> list[str]:
        """That they are off, if the test that finds more says so."""
        rejects = [
            line["p_value"] for line in self.lines
            if line["name"] == TEST and line["p_value"] is not None and line["p_value"] < 1 - level
        ]  # fmt: skip
        least = floor_of(self.n_resamples)
        return [
            f"all classes at once are off ({TEST}, p-value {p_text(p, least)})" for p in rejects
        ]


def fixed_rows(vectors: Problems, jobs: int) -> dict[str, Any]:
    """The estimators, with the bandwidth that the likelihood chooses: it takes the longest."""
    kde: Any = ESTIMATORS["canonical"]
    plan = with_threads(jobs, lambda run: kde.plan(vectors.sample(0), run))
    return {"canonical": replace(kde, bandwidth=plan.bandwidth), "skce": ESTIMATORS["skce"]}


def measure_classes(
    call: Call, read: Callable[..., Problems], seed: int, say: Say
) -> AllClasses | None:
    """The errors of the class vectors of a call that asks about all of more than two classes."""
    (problems,) = call.models
    asks = problems.setting.is_top or problems.setting.per_class
    if not asks or problems.n_classes < LEAST_CLASSES:
        return None
    left_out = ""
    if problems.n_classes > MOST_CLASSES:
        left_out = f"{problems.n_classes} classes, and here at most {MOST_CLASSES}"
    elif call.n > MOST_ROWS:
        left_out = f"{call.n} rows, and here at most {MOST_ROWS}"
    if left_out:
        other = 'fastece.calibration_test(y, p, estimator="skce") takes them.'
        return AllClasses([], 0, f"Left out: there are {left_out} are looked at. {other}")
    if call.n < 2:
        return AllClasses([], 0, "Left out: of a single row there are no pairs.")
    say("all classes at once")
    # As many as a p-value that rejects needs.
    least = max(LEAST_REPLICATES, math.ceil(1 / (1 - call.level)))
    count = min(call.n_resamples, max(MOST_PAIRS // call.n**2, least))
    vectors = read(setting="auto", vectors=True)
    rows = fixed_rows(vectors, call.jobs)
    whole = replace(call, sources=[vectors], estimators=rows, n_resamples=count, average="macro")
    results = calibration_results(whole, seed) if count else {}
    lines = []
    for name, row in rows.items():
        found = results.get(name)
        value = found.value if found else float(direct_values(row, vectors)[0])
        mean = float(np.mean(found.null_distribution)) if found else None
        p_value = found.p_value if found else None
        lines.append({
            "name": name, "value": value, "if_calibrated": mean, "p_value": p_value,
            "meaning": MEANINGS[name],
        })  # fmt: skip
    return AllClasses(lines, count, "")
