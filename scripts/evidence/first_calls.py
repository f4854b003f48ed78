"""The table of first calls in docs/speed.md: what compiles, and how long.

Each call has a process of its own, whose folder of compiled kernels is empty. With several
checkouts they take turns, and the last column is the ratio of the last one to the first, of seconds
of a processor: on a machine that does other work too, only that is to be trusted.

    python scripts/evidence/first_calls.py [--rounds 3] [--kernels] [CHECKOUT ...]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).parents[2]
DATA = HERE / "fastece" / "data" / "digits_neural_network.npz"
COMMAND = "from fastece.cli import main; main({})"
BINARY = (
    "import numpy as np, fastece; p = np.random.default_rng(0).random(1000); "
    "fastece.{}((p > 0.4).astype(int), p)"
)
CALLS = {
    "`ece`": BINARY.format("ece"),
    "`estimate`": BINARY.format("estimate"),
    "`bootstrap`": BINARY.format("bootstrap"),
    "`fastece demo`": COMMAND.format(["demo"]),
    "`fastece report FILE`": COMMAND.format(["report", str(DATA)]),
    "`fastece demo --full`": COMMAND.format(["demo", "--full"]),
    "`fastece warmup`": COMMAND.format(["warmup"]),
}
# Runs a call and prints, as its last line, the own seconds of each kernel that it compiles itself.
CHILD = """
import json, sys, time
from collections import Counter
from numba.core import event
stack, seconds = [], Counter()
class Clock(event.Listener):
    def on_start(self, found):
        stack.append([time.perf_counter(), 0.0])
    def on_end(self, found):
        begin, inner = stack.pop()
        whole = time.perf_counter() - begin
        if stack:
            stack[-1][1] += whole
        function = found.data["dispatcher"].py_func
        ours = function.__module__.startswith("fastece")
        seconds[function.__name__ if ours else "numba's own"] += whole - inner
event.register("numba:compile", Clock())
exec(sys.argv[1])
print()
print(json.dumps(seconds))
"""


def measure(call: str, checkout: Path) -> tuple[float, float, int, dict[str, float]]:
    """Run a call in a new process; return its seconds, those of processors, and its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"FASTECE_QUIET": "1", "FASTECE_CACHE_DIR": folder, "PYTHONPATH": str(checkout)}
        start = os.times()
        done = subprocess.run(
            [sys.executable, "-c", CHILD, call],
            capture_output=True, text=True, check=True, env={**os.environ, **quiet}, cwd=folder,
        )  # fmt: skip
        seconds = json.loads(done.stdout.splitlines()[-1])
        count = len([*Path(folder).rglob("*.nbc")])
        end = os.times()
        busy = sum(end[2:4]) - sum(start[2:4])
        return end.elapsed - start.elapsed, busy, count, seconds


def main() -> None:
    """Measure all calls and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--call", action="append", help="only these, by a part of the name")
    parser.add_argument("--kernels", action="store_true", help="the dearest kernels of each, too")
    options = parser.parse_args()
    print("| first call | seconds | of a processor | kernels compiled | of the first checkout |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, call in CALLS.items():
        if options.call and not any(part in name for part in options.call):
            continue
        rounds = [[measure(call, x) for x in options.checkouts] for _ in range(options.rounds)]
        seconds = median(turns[-1][0] for turns in rounds)
        busy = median(turns[-1][1] for turns in rounds)
        ratio = median(turns[-1][1] / turns[0][1] for turns in rounds)
        *_, count, kernels = rounds[-1][-1]
        print(f"| {name} | {seconds:.1f} | {busy:.1f} | {count} | {ratio:.2f}x |", flush=True)
        if options.kernels:
            dearest = sorted(kernels.items(), key=lambda pair: -pair[1])[:12]
            print("  ", ", ".join(f"{kernel} {x:.2f}" for kernel, x in dearest), flush=True)


if __name__ == "__main__":
    main()
