"""Measure commits with these benchmarks: ``measure.py COMMIT... [OPTIONS]``.

Results go to ``results/``, where ``asv compare`` finds them. Options of ``asv run`` may be given as
well, such as ``--bench Sizes``. With several rounds the commits take turns, and the smallest of the
values of each number is kept: other programs that run make no call faster.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from asv.machine import Machine, MachineCollection
from machine import name_processor

FOLDER = Path(__file__).resolve().parent
# Benchmarks that docs/evidence/history.md shows, which take ten minutes for a commit.
HISTORY = r"single.(Sizes|Between)|startup|memory.Memory|streams.(Update|Metric)"
# Options of asv for these benchmarks. They take some three hundred processes, for which a server
# imports the packages once.
HISTORY_OPTIONS = ("--launch-method", "forkserver", "--bench", HISTORY)


def run_git(*arguments: str) -> str:
    """Run a git command in this repository, and return its output."""
    command = ["git", "-C", str(FOLDER), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def name_machine() -> str:
    """Name the processor and the number of its cores, as part of a path."""
    return re.sub(r"\W+", "-", f"{name_processor()} {os.cpu_count()} cores").strip("-").lower()


def read_results(machine: str, commit: str) -> dict[Path, dict[str, Any]]:
    """Read the result files of a commit, and return their documents by path."""
    paths = (FOLDER / "results" / machine).glob(f"{commit[:8]}-*.json")
    return {path: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def numbers_of(row: list[Any]) -> list[float]:
    """Return the numbers of a benchmark's row, with nan where asv has none."""
    return [np.nan if number is None else number for number in row[0] or []]


def keep_smallest(path: Path, earlier: dict[str, Any]) -> None:
    """Put back smaller numbers of an earlier round, with their statistics.

    A number without a result in the new round is put back, too. The statistics of a time are in the
    columns after its duration.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    first_statistic = document["result_columns"].index("duration") + 1
    for name, row in document["results"].items():
        earlier_row = earlier["results"].get(name)
        if earlier_row is None:
            continue
        columns = [0, *range(first_statistic, min(len(row), len(earlier_row)))]
        pairs = zip(numbers_of(earlier_row), numbers_of(row), strict=False)
        for i, (earlier_number, number) in enumerate(pairs):
            if earlier_number < number or np.isnan(number):
                for column in columns:
                    row[column][i] = earlier_row[column][i]
    path.write_text(json.dumps(document), encoding="utf-8")


def measure_commit(commit: str, machine: str, asv_options: list[str]) -> None:
    """Run asv on one commit, and end the program if asv fails."""
    command = [sys.executable, "-m", "asv", "run", f"{commit}^!", "--machine", machine]
    done = subprocess.run([*command, *asv_options], cwd=FOLDER, check=False)
    if done.returncode:
        sys.exit(f"measure.py: asv run failed on {commit}")


def main() -> None:
    """Measure the commits in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="anything git can resolve")
    parser.add_argument(
        "--machine", default=name_machine(), help="name for the results (default: %(default)s)"
    )
    parser.add_argument(
        "--history",
        action="store_true",
        help="only the benchmarks that docs/evidence/history.md shows",
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="number of rounds (default: %(default)s)"
    )
    options, asv_options = parser.parse_known_args()
    if options.history:
        asv_options += HISTORY_OPTIONS
    try:
        commits = [
            run_git("rev-parse", "--verify", f"{name}^{{commit}}") for name in options.commits
        ]
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip())
    MachineCollection.save(options.machine, {**Machine.get_defaults(), "machine": options.machine})
    for round_number, commit in product(range(options.rounds), commits):
        # The first round replaces all results of earlier runs.
        earlier = {} if round_number == 0 else read_results(options.machine, commit)
        measure_commit(commit, options.machine, asv_options)
        for path, document in earlier.items():
            keep_smallest(path, document)


if __name__ == "__main__":
    main()
