"""Write which estimator of the paper is the closest, by the rows of a test set.

The summary of `fastece study --preset paper` is notebooks/data/corrected.csv. Writes
``study_best.csv``: for some sizes and both settings the estimator with the smallest 95th percentile
of the relative error, and this error in percent.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from results import new_parser, write_table

DATA = Path(__file__).resolve().parents[2] / "notebooks" / "data" / "corrected.csv"
SIZES = (30, 54, 98, 206, 500)
SETTINGS = {"confidence": "top labels", "classwise": "class by class"}
HEAD = ["rows", *(x for name in SETTINGS.values() for x in (f"best for {name}", f"{name}: error"))]
# The constant 0 measures nothing.
CONSTANT = "zero"


def table_rows() -> Iterator[list[str]]:
    """Yield the best estimator of each setting, and its error, by size."""
    with DATA.open(encoding="utf-8", newline="") as file:
        summary = [row for row in csv.DictReader(file) if row["estimator"] != CONSTANT]
    for n in SIZES:
        line = [f"{n}"]
        for setting in SETTINGS:
            errors = {
                row["estimator"]: float(row["p95_relative_error"])
                for row in summary
                if (row["setting"], int(row["n"])) == (setting, n)
            }
            best = min(errors, key=errors.__getitem__)
            line += [best, f"{100 * errors[best]:.0f}"]
        yield line


def main() -> None:
    """Write the table."""
    options = new_parser(__doc__).parse_args()
    write_table(options.out, "study_best", HEAD, table_rows())


if __name__ == "__main__":
    main()
