"""Print the tables of speed, or write them as files of results.

    python asv_benchmarks/speed_tables.py [--write] [--check]

All tables come from one run, of some minutes on one thread, in which nothing else wanted the
processor. Before the first table and after each one the script looks whether the machine is quiet,
and waits for up to two minutes in all; for each table it counts what other programs used. It
refuses with exit code 1 if the machine was not quiet, and no file changes then. `--check` only
looks. `--write` writes docs/evidence/results/speed_*.csv; `scripts/write_pages.py` then puts them
into the pages.

Compile all kernels first, by `fastece warmup`. The packages to compare with are needed, too:
`pip install --group opponents`.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median

import machine
import step_costs
from writing import (
    RESULTS,
    Table,
    save_table,
    write_count,
    write_nanoseconds,
    write_ratio,
    write_seconds,
    write_table,
)

import fastece
from benchmarks import baselines
from benchmarks.common import ESTIMATORS, prepare_other_work
from benchmarks.opponents import OPPONENTS, is_installed, where_they_differ

# Rows of single calls.
SIZES = (100, 10_000, 1_000_000)
# Rows of each replicate.
BOOTSTRAP_SIZES = (100, 10_000, 50_000)
SETTINGS = ("binary", "confidence", "classwise")
# Rows of the first two of the three calls, and replicates of the second.
ROWS = 10_000
REPLICATES = 1000
# Slices of the third call, and the rows of each.
SLICES = 1000
ROWS_OF_SLICE = 100
# Rounds of each single call.
ROUNDS = 15
# Seconds to wait for a quiet machine, in the whole run.
PATIENCE = 120.0


# --- three calls that matter to users -----------------------------------------------------------


def write_multiple(seconds: float, ratio: float) -> str:
    """Write the time of another way, `ratio` times the seconds of fastece, and the ratio."""
    return f"{write_seconds(seconds * ratio)}, {write_ratio(ratio)}"


def opponents_of(estimator: str) -> list[str]:
    """Return the ways that compute an estimator."""
    return [name for name, opponent in OPPONENTS.items() if opponent.estimator == estimator]


def race_opponent(name: str, n: int) -> baselines.Race:
    """Measure `fastece.ece` of n uniform scores beside an opponent."""
    data = baselines.draw_binary("uniform", n)
    call = partial(fastece.ece, *data, estimator=OPPONENTS[name].estimator)
    return baselines.race(call, partial(OPPONENTS[name].value, *data), ROUNDS)


def line_of_a_call() -> list[str]:
    """Measure a single call, beside the usual two lines and the fastest of the other ways."""
    races = {name: race_opponent(name, ROWS) for name in opponents_of("ece")}
    usual = races.pop("np.bincount")
    fastest = min(races, key=lambda name: races[name].ratio)
    return [
        f"`ece(y, p)`, {write_count(ROWS)} rows",
        write_seconds(usual.seconds),
        write_multiple(*usual),
        f"{fastest}: {write_multiple(*races[fastest])}",
    ]


def line_of_a_bootstrap() -> list[str]:
    """Measure a bootstrap, beside a loop of numpy that finds the bins beforehand."""
    y, p = baselines.draw_binary("uniform", ROWS)
    call = partial(fastece.bootstrap, y, p, n_resamples=REPLICATES, rng=0)
    value = baselines.prepare_estimator("ece", y, p)
    loop = partial(baselines.resample, [value], ROWS, ROWS, REPLICATES)
    race = baselines.race(call, loop, ROUNDS)
    return [
        f"`bootstrap(y, p, n_resamples={REPLICATES})`, {write_count(ROWS)} rows",
        write_seconds(race.seconds),
        write_multiple(*race),
        "the same loop",
    ]


def line_of_many_slices() -> list[str]:
    """Measure the errors of many slices in one call, beside a loop and beside one `bincount`."""
    y, p, slices = baselines.draw_slices(SLICES, ROWS_OF_SLICE)
    call = partial(fastece.ece, y, p, by=slices)
    loop = baselines.race(call, partial(baselines.errors_in_a_loop, y, p, slices), ROUNDS)
    at_once = baselines.race(call, partial(baselines.errors_of_slices, y, p, slices), ROUNDS)
    return [
        f"`ece(y, p, by=site)`, {SLICES} sites of {ROWS_OF_SLICE} rows",
        write_seconds(loop.seconds),
        write_multiple(*loop),
        f"np.bincount of all: {write_multiple(*at_once)}",
    ]


def three_calls() -> Table:
    """Measure three calls, beside numpy and beside the fastest other way."""
    head = ["call", "fastece", "the usual NumPy", "fastest other way"]
    return [head, line_of_a_call(), line_of_a_bootstrap(), line_of_many_slices()]


# --- other packages -----------------------------------------------------------------------------


def race_between(name: str, n: int) -> baselines.Race:
    """Measure the same as `race_opponent`, each call after other work."""
    y, p = baselines.draw_binary("uniform", n)
    opponent = OPPONENTS[name]
    call = partial(fastece.ece, y, p, estimator=opponent.estimator)
    return baselines.race_between(call, partial(opponent.value, y, p), prepare_other_work())


def times_of_opponents() -> Table:
    """Measure each way beside fastece."""
    columns: dict[str, Callable[[str], baselines.Race]] = {
        f"{write_count(n)} scores": partial(race_opponent, n=n) for n in SIZES
    }
    columns[f"{SIZES[0]} scores, between other work"] = partial(race_between, n=SIZES[0])
    races = {
        (name, column): race(name) for name, (column, race) in product(OPPONENTS, columns.items())
    }
    lines = []
    for estimator in dict.fromkeys(opponent.estimator for opponent in OPPONENTS.values()):
        names = opponents_of(estimator)
        own_times = [median(races[name, column].seconds for name in names) for column in columns]
        lines.append([f"`{estimator}`", "fastece", *map(write_seconds, own_times)])
        for name in names:
            texts = [write_multiple(*races[name, column]) for column in columns]
            lines.append([f"`{estimator}`", name, *texts])
    return [["estimator", "way", *columns], *lines]


def differences() -> Table:
    """Compare what the ways give where scores lie on edges, are 1.0 or are missing."""
    head = [
        "way",
        "three in ten scores are 1.0",
        "scores of two decimals",
        "just below an edge, counted above",
        "a score is missing",
    ]
    lines = []
    for row in where_they_differ():
        missing = row.with_a_missing_score
        lines.append([
            row.way,
            f"{row.with_ones:.4f}",
            f"{row.with_two_decimals:.4f}",
            f"{100 * row.misplaced:.0f} %",
            "an error" if missing is None else f"{missing:.3f}",
        ])  # fmt: skip
    return [head, *lines]


# --- every estimator ----------------------------------------------------------------------------


def write_estimator(estimator: str) -> str:
    """Write the name of an estimator, and of the estimator that numpy computes.

    The latter is in brackets, and left out if both are the same.
    """
    baseline, _ = baselines.find_baseline(estimator)
    return f"`{estimator}`" if baseline == estimator else f"`{estimator}` ({baseline})"


def times_of_calls() -> Table:
    """Measure a call of every estimator, setting and size."""
    lines = []
    for setting, estimator in product(SETTINGS, ESTIMATORS):
        races = [baselines.race_call(n, setting, estimator, ROUNDS) for n in SIZES]
        texts = [f"{write_seconds(x.seconds)}, {write_ratio(x.ratio)}" for x in races]
        lines.append([setting, write_estimator(estimator), *texts])
    return [["setting", "estimator", *(f"{write_count(n)} scores" for n in SIZES)], *lines]


def write_replicate(estimator: str, n: int) -> str:
    """Measure a replicate of the bootstrap, and write its time, that of a row, and the ratio."""
    race = baselines.race_bootstrap(n, estimator)
    per_row = f"{write_nanoseconds(1e9 * race.seconds / n)} a row"
    return f"{write_seconds(race.seconds)}, {per_row}, {write_ratio(race.ratio)}"


def times_of_replicates() -> Table:
    """Measure a replicate of the bootstrap of every estimator and size."""
    head = ["replicate of", *(f"{write_count(n)} rows" for n in BOOTSTRAP_SIZES)]
    lines = [
        [write_estimator(estimator), *(write_replicate(estimator, n) for n in BOOTSTRAP_SIZES)]
        for estimator in ESTIMATORS
    ]
    return [head, *lines]


# --- one run ------------------------------------------------------------------------------------


# Tables by their names, in the order in which they are measured.
TABLES: dict[str, Callable[[], Table]] = {
    "three_calls": three_calls,
    "opponents": times_of_opponents,
    "differences": differences,
    "calls": times_of_calls,
    "replicates": times_of_replicates,
    "steps": step_costs.measure_steps,
}
# The table that describes the machine, which is not measured.
MACHINE = "machine"


def packages_of_opponents() -> list[str]:
    """Return the names under which the packages of the opponents are installed."""
    return [name for name, opponent in OPPONENTS.items() if opponent.package != "numpy"]


def measure_tables() -> dict[str, Table]:
    """Measure all tables on a quiet machine, and return them by name.

    Raises
    ------
    machine.NoisyMachineError
        If something else wanted the processor before, during or after a table.
    """
    tables = {}
    patience = PATIENCE
    for name, measure_table in TABLES.items():
        patience = machine.wait_until_quiet(patience)
        print(f"measuring {name}", file=sys.stderr)
        start = machine.now()
        tables[name] = measure_table()
        load = machine.load_since(start)
        if load > machine.MAX_LOAD:
            raise machine.NoisyMachineError(
                f"other programs used {load:.2f} processors while {name} was measured"
            )
    machine.wait_until_quiet(patience)
    found = machine.describe_machine(["numpy", "numba", *packages_of_opponents()])
    tables[MACHINE] = [[*found], [*found.values()]]
    return tables


def main() -> None:
    """Measure on a quiet machine, and print all tables or write their files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files of results")
    parser.add_argument("--check", action="store_true", help="only look whether it is quiet")
    options = parser.parse_args()
    missing = [name for name in packages_of_opponents() if not is_installed(name)]
    if missing:
        sys.exit(f"speed_tables.py: install what the tables compare with: {' '.join(missing)}")
    try:
        if options.check:
            machine.wait_until_quiet(0)
            return
        tables = measure_tables()
    except machine.NoisyMachineError as error:
        sys.exit(f"speed_tables.py: {error}; end other programs, and run it again")
    for name, table in tables.items():
        if options.write:
            save_table(RESULTS, f"speed_{name}", table)
        else:
            print(f"{write_table(table)}\n")


if __name__ == "__main__":
    main()
