"""Tables of speed are measured in one run on a quiet machine, or refused."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import machine
import pytest
import speed_tables
import step_costs
import writing

from benchmarks import baselines, opponents

ROOT = Path(__file__).parents[2]
QUIET = machine.Noise(spread=1.1, load=0.02)
LOADED = machine.Noise(spread=1.1, load=1.5)
UNEVEN = machine.Noise(spread=5.0, load=0.0)


class Clock:
    """A clock that only sleep and looks move, and looks that see the machine in turn."""

    def __init__(self, *looks):
        self.now = 0.0
        self.looks = list(looks)

    def sleep(self, seconds):
        self.now += seconds

    def look(self):
        self.now += 1.0
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


@pytest.fixture
def see(monkeypatch):
    """Let the script see the machine so in turn, and from then on as in the last look."""

    def set_looks(*looks):
        clock = Clock(*looks)
        monkeypatch.setattr(machine, "perf_counter", lambda: clock.now)
        monkeypatch.setattr(machine, "sleep", clock.sleep)
        monkeypatch.setattr(machine, "look", clock.look)
        monkeypatch.setattr(machine, "load_since", lambda _: 0.0)
        return clock

    return set_looks


@pytest.fixture
def tiny(monkeypatch):
    """Measure few rows, rounds and replicates, with the ways that numpy alone has."""
    for name, value in {
        "SIZES": (20, 50), "BOOTSTRAP_SIZES": (30,), "ROWS": 100, "REPLICATES": 10,
        "SLICES": 3, "ROWS_OF_SLICE": 20, "ROUNDS": 1,
    }.items():  # fmt: skip
        monkeypatch.setattr(speed_tables, name, value)
    monkeypatch.setattr(baselines, "MIN_SECONDS_PER_ROUND", 0)
    monkeypatch.setattr(baselines, "ROWS_PER_CALL", 0)
    monkeypatch.setattr(baselines, "MIN_REPLICATES", 5)
    monkeypatch.setattr(baselines, "MAX_LOOP_REPLICATES", 5)
    monkeypatch.setattr(step_costs, "SIZES", (50,))
    monkeypatch.setattr(step_costs, "MAX_REPEATS", 5)
    monkeypatch.setattr(opponents, "NUMBERS_OF_BINS", range(2, 20))
    of_numpy = {name: x for name, x in opponents.OPPONENTS.items() if x.package == "numpy"}
    for module in (opponents, speed_tables):
        monkeypatch.setattr(module, "OPPONENTS", of_numpy)


@pytest.fixture
def run(monkeypatch):
    """Run the script with options."""

    def run_script(*options):
        monkeypatch.setattr(sys, "argv", ["speed_tables.py", *options])
        speed_tables.main()

    return run_script


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A folder for the files, and a constant in place of each table."""
    tables = {name: lambda name=name: [["table"], [name]] for name in speed_tables.TABLES}
    monkeypatch.setattr(speed_tables, "TABLES", tables)
    monkeypatch.setattr(speed_tables, "packages_of_opponents", list)
    monkeypatch.setattr(speed_tables, "RESULTS", tmp_path)
    return tmp_path


# --- how quiet a machine is -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "complaint"),
    [
        (machine.Noise(spread=1.0, load=0.0), ""),
        (machine.Noise(spread=1.25, load=0.1), ""),
        (machine.Noise(spread=1.26, load=0.0), "takes 1.26 times as long as the fastest"),
        (machine.Noise(spread=1.0, load=0.11), "other programs use 0.11 processors"),
        (machine.Noise(spread=9.0, load=2.0), "other programs use 2.00 processors"),
    ],
)
def test_a_machine_is_quiet_if_rounds_are_alike_and_others_are_idle(noise, complaint):
    assert complaint in noise.complaint()
    assert bool(noise.complaint()) == bool(complaint)


def test_what_this_process_uses_is_not_counted_as_that_of_others(monkeypatch, tmp_path):
    """The columns of the file are user, nice, system, idle, iowait, irq, softirq and steal."""
    statistics = tmp_path / "stat"
    monkeypatch.setattr(machine, "STATISTICS", statistics)
    monkeypatch.setattr(machine.os, "sysconf", lambda _: 100, raising=False)

    def moment(line, own, clock):
        statistics.write_text(f"{line}\ncpu0 0 0 0\n", encoding="ascii")
        monkeypatch.setattr(machine.os, "times", lambda: (own, 0.0, 0.0, 0.0, clock))
        monkeypatch.setattr(machine, "perf_counter", lambda: clock)
        return machine.now()

    start = moment("cpu  100 10 20 5000 70 1 2 3 9 9", own=1.0, clock=50.0)
    assert start.others == pytest.approx(1.36 - 1.0)
    # In ten seconds this process works for nine, and others for two.
    moment("cpu  1150 30 30 5900 90 2 4 14 99 99", own=10.0, clock=60.0)
    assert machine.load_since(start) == pytest.approx((12.30 - 1.36 - 9.0) / 10)


# --- waiting, refusing, writing ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("looks", "complaint"),
    [
        ([LOADED], r"other programs use 1\.50 processors"),
        ([QUIET, UNEVEN], r"one round in ten of the same call takes 5\.00 times"),
        ([QUIET] * 6 + [UNEVEN], r"one round in ten of the same call takes 5\.00 times"),
    ],
)
def test_a_machine_that_is_not_quiet_all_the_time_is_refused(see, run, kept, looks, complaint):
    clock = see(*looks)
    with pytest.raises(SystemExit, match=rf"{complaint}.*; end other programs, and run it again"):
        run("--write")
    assert clock.now < speed_tables.PATIENCE + len(looks) + 2
    assert not [*kept.iterdir()]


def test_a_table_that_others_disturbed_is_refused(see, run, kept, monkeypatch):
    see(QUIET)
    loads = iter([0.0, 0.0, 0.4])
    monkeypatch.setattr(machine, "load_since", lambda _: next(loads))
    with pytest.raises(SystemExit, match=r"used 0\.40 processors while differences was measured"):
        run("--write")
    assert not [*kept.iterdir()]


def test_all_files_come_from_one_run_after_waiting(see, run, kept):
    see(LOADED, QUIET)
    run("--write")
    names = [*speed_tables.TABLES, speed_tables.MACHINE]
    assert {path.name for path in kept.iterdir()} == {f"speed_{name}.csv" for name in names}
    assert (kept / "speed_calls.csv").read_text() == "table\ncalls\n"


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", speed_tables.TABLES)
def test_tables_have_the_columns_of_their_files(name):
    head, *rows = speed_tables.TABLES[name]()
    published = (writing.RESULTS / f"speed_{name}.csv").read_text(encoding="utf-8")
    columns = next(csv.reader([published.partition("\n")[0]]))
    texts = [column for column in columns if not re.match(r"\d", column)]
    assert [column for column in head if not re.match(r"\d", column)] == texts
    assert {len(row) for row in rows} == {len(head)}


@pytest.mark.slow
@pytest.mark.skipif(
    not machine.STATISTICS.exists(), reason="the system does not tell what others use"
)
def test_a_check_beside_a_program_that_works_refuses():
    work = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        script = ROOT / "asv_benchmarks" / "speed_tables.py"
        code = "import speed_tables as s; s.packages_of_opponents = list; s.main()"
        done = subprocess.run(
            [sys.executable, "-c", code, "--check"],
            cwd=script.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        work.kill()
        work.wait()
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("speed_tables.py: other programs use ")


def test_times_have_three_digits():
    assert writing.write_seconds(1.23456e-5) == "12.3 µs"
    assert writing.write_seconds(0.0999999) == "100 ms"
    assert writing.write_seconds(2.5e-10) == "0.25 ns"
    assert writing.write_ratio(0.345) == "0.34x"
    assert writing.write_ratio(123.4) == "123x"
    assert writing.write_count(1_000_000) == "1 000 000"
