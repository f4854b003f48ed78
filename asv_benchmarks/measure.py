"""Measure commits with the benchmarks of this checkout: ``measure.py COMMIT... [OPTIONS]``.

Results go to ``results/``, where ``asv compare`` finds them. Options that are not of this script
are handed to ``asv run``, such as ``--bench Sizes``. With several rounds the commits take turns,
and the least of each number is kept: other programs that run make no call faster.
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
from speed_tables import processor

FOLDER = Path(__file__).resolve().parent
# What docs/history.md shows: ten minutes a commit.
HISTORY = r"single.(Sizes|Between)|startup|memory.Memory|streams.(Update|Metric)"


def git(*arguments: str) -> str:
    """Output of a git command in this repository."""
    command = ["git", "-C", str(FOLDER), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def default_machine() -> str:
    """The processor and the number of its cores, as part of a path."""
    return re.sub(r"\W+", "-", f"{processor()} {os.cpu_count()} cores").strip("-").lower()


def read_results(machine: str, commit: str) -> dict[Path, dict[str, Any]]:
    """The files of a commit, and what is in them."""
    files = (FOLDER / "results" / machine).glob(f"{commit[:8]}-*.json")
    return {path: json.loads(path.read_text(encoding="utf-8")) for path in files}


def keep_least(path: Path, before: dict[str, Any]) -> None:
    """Put back each number of an earlier round that is less, with what belongs to it."""
    after = json.loads(path.read_text(encoding="utf-8"))
    first = after["result_columns"].index("duration") + 1  # of the statistics of a time
    for name, new in after["results"].items():
        old = before["results"].get(name, new)
        pairs = zip(
            *([np.nan if x is None else x for x in row[0] or []] for row in (old, new)),
            strict=False,
        )
        for i, (x, y) in enumerate(pairs):
            if x < y or np.isnan(y):
                for column in (0, *range(first, min(len(new), len(old)))):
                    new[column][i] = old[column][i]
    path.write_text(json.dumps(after), encoding="utf-8")


def main() -> None:
    """Measure each commit in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="anything git can resolve")
    parser.add_argument(
        "--machine", default=default_machine(), help="name for the results (default: %(default)s)"
    )
    parser.add_argument("--history", action="store_true", help="only what docs/history.md shows")
    parser.add_argument("--rounds", type=int, default=1, help="how often (default: %(default)s)")
    options, of_asv = parser.parse_known_args()
    # A server imports once what each of some three hundred processes needs.
    of_asv += ["--launch-method", "forkserver", "--bench", HISTORY] if options.history else []
    try:
        commits = [git("rev-parse", "--verify", f"{name}^{{commit}}") for name in options.commits]
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip())
    MachineCollection.save(options.machine, {**Machine.get_defaults(), "machine": options.machine})
    for number, commit in product(range(options.rounds), commits):
        before = read_results(options.machine, commit) if number else {}
        command = [sys.executable, "-m", "asv", "run", f"{commit}^!", "--machine", options.machine]
        if subprocess.run([*command, *of_asv], cwd=FOLDER, check=False).returncode:
            sys.exit(f"measure.py: asv run failed on {commit}")
        for path, results in before.items():
            keep_least(path, results)


if __name__ == "__main__":
    main()
