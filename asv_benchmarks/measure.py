"""Record commits with these benchmarks: ``measure.py COMMIT... [OPTIONS]``.

Results go to ``results/``, where ``asv compare`` finds them. Options of ``asv run`` may be given as
well, such as ``--bench Sizes``. asv measures one commit after another, so the script waits for a
quiet machine before each of them and refuses otherwise. To compare commits in turns, which any
machine allows, use ``check_change.py``.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from asv.machine import Machine, MachineCollection
from machine import NoisyMachineError, name_processor, wait_until_quiet

FOLDER = Path(__file__).resolve().parent
# Seconds to wait for a quiet machine before each commit.
PATIENCE = 120.0


def run_git(*arguments: str) -> str:
    """Run a git command in this repository, and return its output."""
    command = ["git", "-C", str(FOLDER), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def name_machine() -> str:
    """Name the processor and the number of its cores, as part of a path."""
    return re.sub(r"\W+", "-", f"{name_processor()} {os.cpu_count()} cores").strip("-").lower()


def measure_commit(commit: str, machine: str, asv_options: list[str]) -> None:
    """Run asv on one commit, and end the program if the machine is noisy or asv fails."""
    try:
        wait_until_quiet(PATIENCE)
    except NoisyMachineError as error:
        sys.exit(f"measure.py: {error}; end other programs, and run it again")
    command = [sys.executable, "-m", "asv", "run", f"{commit}^!", "--machine", machine]
    done = subprocess.run([*command, *asv_options], cwd=FOLDER, check=False)
    if done.returncode:
        sys.exit(f"measure.py: asv run failed on {commit}")


def main() -> None:
    """Measure the commits one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="anything git can resolve")
    parser.add_argument(
        "--machine", default=name_machine(), help="name for the results (default: %(default)s)"
    )
    options, asv_options = parser.parse_known_args()
    try:
        commits = [
            run_git("rev-parse", "--verify", f"{name}^{{commit}}") for name in options.commits
        ]
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip())
    MachineCollection.save(options.machine, {**Machine.get_defaults(), "machine": options.machine})
    for commit in commits:
        measure_commit(commit, options.machine, asv_options)


if __name__ == "__main__":
    main()
