"""Make the CIFAR-10 figures that notebook 05_recalibration shows where predictions are missing.

Runs the functions of the notebook, whose cells have the tag "functions", on a file with
`probs (n, 10)` and `labels (n,)`, and writes ``notebooks/data/recalibration_cifar10.csv`` in about
a minute. The notebook uses the file from https://github.com/p-lambda/verified_calibration: VGG-16
on the 10 000 images of the test set.
"""

import argparse
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
HEADER = ("what", "name", "of", "value", "low", "high")


def notebook_functions() -> dict[str, Any]:
    """Run the notebook's cells with functions, and return their names."""
    text = (NOTEBOOKS / "05_recalibration.ipynb").read_text(encoding="utf-8")
    scope: dict[str, Any] = {"__name__": "notebook"}
    for cell in json.loads(text)["cells"]:
        if "functions" in cell["metadata"].get("tags", ()):
            exec("".join(cell["source"]), scope)
    return scope


def write(path: Path, figures: Mapping[tuple[str, str, str], tuple[float, float, float]]) -> None:
    """Write figures (value, low, high), each behind its key of three words, as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows([*key, *(f"{x:.9g}" for x in ends)] for key, ends in figures.items())


def main() -> None:
    """Read the predictions, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--out", type=Path, default=NOTEBOOKS / "data/recalibration_cifar10.csv")
    options = parser.parse_args()
    data = np.load(options.predictions)
    write(options.out, notebook_functions()["figures_of"](data["labels"], data["probs"]))


if __name__ == "__main__":
    main()
