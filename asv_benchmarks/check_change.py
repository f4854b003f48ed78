"""Check in less than five minutes whether a change makes fastece slower.

    python asv_benchmarks/check_change.py BASE [NEW] [--bench REGEX] [--factor 1.1]

BASE and NEW are commits; without NEW, the files of this checkout are measured as they are. Three
processes take turns, round by round: BASE, NEW, and BASE again as a control. Whatever slows the
machine slows all three, and the control shows how much two processes of the same code differ. New
groups of three processes are started until the time is up, because the addresses that a process
gets change its speed, too.

A benchmark is suspected if the median of NEW / BASE over the groups exceeds the factor and also
every quotient of the control, in either direction. Suspects are measured a second time, alone, and
count as slower if they exceed both again. The exit code is then 1.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent
BENCHMARKS = FOLDER / "benchmarks"
# One call of each path through the package. One round of one process takes about half a second.
BENCH = (
    r"single\.Sizes\.track_ratio_to_numpy\('(ece|ece_a|ece_kde)', (100|10000)\)"
    r"|single\.Sizes\.track_ratio_to_numpy\('ece_bayes', 100\)"
    r"|vectors\.ClassVectors\.track_ratio_to_numpy\('confidence', 'float64', 'prob.*, 10, 10000\)"
    r"|bootstrap\.BootstrapSizes\.track_ratio_to_numpy\('ece', 100\)"
)
SIDES = ("base", "new", "control")
# Rounds of a group of processes; its quotients are medians over these.
ROUNDS = 3
# With fewer groups, the control shows too little of the noise. Beside a dozen other programs these
# three take four minutes.
MIN_GROUPS = 3
# Beyond this number, the control's extremes grow, and little is gained.
MAX_GROUPS = 7
# Share of the time for the first look at all benchmarks.
FIRST_LOOK = 0.7


class Quotients(NamedTuple):
    """Quotients of one benchmark, one for each group of processes."""

    new: list[float]
    control: list[float]

    @property
    def change(self) -> float:
        """The median of NEW / BASE."""
        return median(self.new)

    @property
    def noise(self) -> float:
        """The largest factor between two processes of the same code, in either direction."""
        return max(max(quotient, 1 / quotient) for quotient in self.control)

    def verdict(self, factor: float) -> str:
        """Return "slower" or "faster" if the change exceeds the factor and the noise."""
        limit = max(factor, self.noise)
        if self.change > limit:
            return "slower"
        return "faster" if self.change < 1 / limit else ""


# --- the process that measures --------------------------------------------------------------


def list_benchmarks(pattern: str) -> list[str]:
    """List the names of benchmarks that match, each with the index of its parameters.

    Only numbers that a benchmark returns are compared, such as ratios.
    """
    from asv_runner.discovery import disc_benchmarks

    names = []
    for benchmark in disc_benchmarks(str(BENCHMARKS)):
        if benchmark.type != "track":
            continue
        for index, parameters in enumerate(product(*benchmark._params)):
            if re.search(pattern, f"{benchmark.name}({', '.join(map(repr, parameters))})"):
                names.append(f"{benchmark.name}-{index}")
    return names


def serve() -> None:
    """Answer requests on standard input by numbers, or by null where a benchmark is skipped.

    A request is the name of a benchmark, which is set up when it differs from the one before.
    """
    from asv_runner.discovery import get_benchmark_from_name

    answers = sys.stdout
    sys.stdout = sys.stderr
    name_before = ""
    benchmark: Any = None
    is_skipped = False
    for line in sys.stdin:
        name = line.strip()
        if name != name_before:
            benchmark = get_benchmark_from_name(str(BENCHMARKS), name)
            is_skipped = benchmark.do_setup()
            name_before = name
        number = None if is_skipped else benchmark.do_run()
        print(json.dumps(number), file=answers, flush=True)


class Worker:
    """A process that measures the fastece in a folder."""

    def __init__(self, folder: Path) -> None:
        self._process = start_process(folder, "serve")

    def measure(self, name: str) -> float | None:
        """Run a benchmark once, and return its number; None if it does not apply."""
        requests = self._process.stdin
        answers = self._process.stdout
        assert requests is not None
        assert answers is not None
        requests.write(f"{name}\n")
        requests.flush()
        answer = answers.readline()
        if not answer:
            sys.exit(f"check_change.py: {name} failed")
        number: float | None = json.loads(answer)
        return number

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()


def start_process(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start this script with the fastece in a folder, and with the benchmarks of this checkout."""
    paths = os.pathsep.join([str(folder), str(FOLDER)])
    environment = {**os.environ, "PYTHONPATH": paths, "FASTECE_MEASURED": str(folder)}
    return subprocess.Popen(
        [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env={**environment, "FASTECE_QUIET": "1"},
    )  # fmt: skip


# --- the process that compares --------------------------------------------------------------


def check_out(commit: str, parent: Path) -> Path:
    """Write the package of a commit into a new folder, and return the folder."""
    command = ["git", "-C", str(FOLDER.parent), "archive", commit, "fastece"]
    archived = subprocess.run(command, capture_output=True, check=False)
    if archived.returncode:
        sys.exit(f"check_change.py: {archived.stderr.decode().strip()}")
    folder = Path(tempfile.mkdtemp(dir=parent))
    with tarfile.open(fileobj=BytesIO(archived.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def measure_group(folders: dict[str, Path], names: list[str]) -> Iterator[tuple[str, Quotients]]:
    """Start a process for each side, and yield the quotients of each benchmark.

    The side that begins changes from round to round. Benchmarks that a side skips are left out.
    """
    with ExitStack() as stack:
        workers = {side: stack.enter_context(Worker(folder)) for side, folder in folders.items()}
        for name in names:
            # This also sets the benchmark up, and warms the caches.
            first_numbers = [worker.measure(name) for worker in workers.values()]
            if None in first_numbers:
                continue
            rounds = []
            for k in range(ROUNDS):
                turn = [*SIDES[k % len(SIDES) :], *SIDES[: k % len(SIDES)]]
                rounds.append({side: workers[side].measure(name) for side in turn})
            change = median(numbers["new"] / numbers["base"] for numbers in rounds)
            noise = median(numbers["control"] / numbers["base"] for numbers in rounds)
            yield name, Quotients([change], [noise])


def compare(folders: dict[str, Path], names: list[str], seconds: float) -> dict[str, Quotients]:
    """Measure groups of processes until the time is up, and return all quotients by benchmark."""
    quotients: dict[str, Quotients] = {}
    start = time.monotonic()
    for k in range(MAX_GROUPS):
        for name, of_group in measure_group(folders, names):
            of_name = quotients.setdefault(name, Quotients([], []))
            of_name.new.extend(of_group.new)
            of_name.control.extend(of_group.control)
        elapsed = time.monotonic() - start
        has_time = elapsed * (k + 2) / (k + 1) < seconds
        if k + 1 >= MIN_GROUPS and not has_time:
            break
    return quotients


def find_slower(quotients: dict[str, Quotients], factor: float) -> list[str]:
    """Return the names of benchmarks that are slower."""
    return [name for name, x in quotients.items() if x.verdict(factor) == "slower"]


def print_table(quotients: dict[str, Quotients], factor: float) -> None:
    """Print a line for each benchmark."""
    from asv_runner.discovery import get_benchmark_from_name

    print("| benchmark | new / base | control / base | |")
    print("| --- | ---: | ---: | --- |")
    for name, of_name in quotients.items():
        benchmark = get_benchmark_from_name(str(BENCHMARKS), name)
        label = f"{benchmark.name}{benchmark._current_params}"
        control = f"{min(of_name.control):.2f} to {max(of_name.control):.2f}"
        print(f"| {label} | {of_name.change:.2f} | {control} | {of_name.verdict(factor)} |")


def main() -> None:
    """Compare two commits, print the table, and exit with 1 if something is slower."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("new", nargs="?", help="a commit (default: the files of this checkout)")
    parser.add_argument("--bench", default=BENCH, help="regular expression on name(parameters)")
    parser.add_argument("--factor", type=float, default=1.1, help="(default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=220, help="time to measure (default: %(default)s)"
    )
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as parent:
        base = check_out(options.base, Path(parent))
        new = check_out(options.new, Path(parent)) if options.new else FOLDER.parent
        listing, _ = start_process(base, "list", options.bench).communicate()
        names = json.loads(listing)
        # A process that has compiled kernels is not measured.
        for folder in (base, new):
            with Worker(folder) as worker:
                for name in names:
                    worker.measure(name)
        folders = dict(zip(SIDES, (base, new, base), strict=True))
        time_left = options.seconds - (time.monotonic() - start)
        quotients = compare(folders, names, FIRST_LOOK * time_left)
        suspects = find_slower(quotients, options.factor)
        time_left = options.seconds - (time.monotonic() - start)
        second_look = compare(folders, suspects, time_left) if suspects else {}
    if not quotients:
        sys.exit("check_change.py: no benchmark of both commits matches")
    print_table(quotients, options.factor)
    if suspects:
        print("\nSuspects, measured again:\n")
        print_table(second_look, options.factor)
    n_groups = max(len(of_name.new) for of_name in quotients.values())
    print(f"\n{n_groups} groups of processes, {time.monotonic() - start:.0f} s")
    sys.exit(bool(find_slower(second_look, options.factor)))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["list", pattern]:
            print(json.dumps(list_benchmarks(pattern)))
        case ["serve"]:
            serve()
        case _:
            main()
