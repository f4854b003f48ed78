"""Measure commits with the benchmarks of this checkout: ``measure.py COMMIT... [OPTIONS]``.

Each commit is checked out into a temporary folder and measured from there, by the Python that runs
this script, with a cache of compiled kernels of its own. Results go to ``results/``, where
``asv compare`` finds them. Options that are not of this script are handed to ``asv run``, such as
``--bench Sizes``.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from asv.machine import Machine, MachineCollection
from speed_tables import processor

FOLDER = Path(__file__).resolve().parent


def git(*arguments: str) -> str:
    """Output of a git command in this repository."""
    command = ["git", "-C", str(FOLDER), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def default_machine() -> str:
    """The processor and the number of its cores, as part of a path."""
    return re.sub(r"\W+", "-", f"{processor()} {os.cpu_count()} cores").strip("-").lower()


def measure(commit: str, machine: str, options: list[str]) -> None:
    """Run the benchmarks on the package as it was at a commit."""
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git("worktree", "add", "--detach", str(tree), commit)
        try:
            environment = {
                **os.environ,
                "ASV_PYTHONPATH": str(tree),  # PYTHONPATH is dropped
                "FASTECE_MEASURED": str(tree),  # checked by the benchmarks
                "FASTECE_CACHE_DIR": str(Path(folder, "cache")),
            }
            command = [sys.executable, "-m", "asv", "run", "--no-pull"]
            command += ["--environment", f"interpreter:{sys.executable}"]
            command += ["--set-commit-hash", commit, "--machine", machine, *options]
            done = subprocess.run(command, cwd=FOLDER, env=environment, check=False)
        finally:
            git("worktree", "remove", "--force", str(tree))
    if done.returncode:
        sys.exit(f"measure.py: asv run failed on {commit}")


def main() -> None:
    """Measure each commit in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="anything git can resolve")
    parser.add_argument(
        "--machine", default=default_machine(), help="name for the results (default: %(default)s)"
    )
    options, of_asv = parser.parse_known_args()
    try:
        commits = [git("rev-parse", "--verify", f"{name}^{{commit}}") for name in options.commits]
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip())
    MachineCollection.save(options.machine, {**Machine.get_defaults(), "machine": options.machine})
    for commit in commits:
        measure(commit, options.machine, of_asv)


if __name__ == "__main__":
    main()
