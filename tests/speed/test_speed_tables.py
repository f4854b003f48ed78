"""Tables of speed are measured in one run on a quiet machine, or refused, and put into pages."""

import re
import subprocess
import sys
from pathlib import Path

import machine
import numpy as np
import pytest
import speed_tables
import step_costs
import writing

import fastece
from benchmarks import baselines, opponents
from helpers.samples import CALIBRATION_ERRORS

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
def pages(monkeypatch, tmp_path):
    """Copies of the pages, which the script writes into."""
    copies = [tmp_path / page.name for page in speed_tables.PAGES]
    for page, copy in zip(speed_tables.PAGES, copies, strict=True):
        copy.write_bytes(page.read_bytes())
    monkeypatch.setattr(speed_tables, "PAGES", copies)
    return copies


@pytest.fixture
def constant_texts(monkeypatch):
    """Write a constant in place of each table."""
    texts = {name: f"the table {name}" for name in speed_tables.TEXTS}
    writers = {name: lambda text=text: text for name, text in texts.items()}
    monkeypatch.setattr(speed_tables, "TEXTS", writers)
    monkeypatch.setattr(speed_tables, "packages_of_opponents", list)
    return texts


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


def test_spread_of_rounds_ignores_rare_interruptions_and_shows_frequent_ones():
    quiet = np.full(100, 4.0)
    assert machine.spread_of(quiet) == 1.0
    assert machine.spread_of([*quiet[:95], *[400.0] * 5]) == 1.0
    assert machine.spread_of([*quiet[:80], *[20.0] * 20]) == 5.0


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


def test_a_system_without_statistics_is_judged_by_its_rounds(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "STATISTICS", tmp_path / "none")
    assert machine.load_since(machine.now()) == 0.0


def test_a_look_measures_rounds_and_others(monkeypatch):
    monkeypatch.setattr(machine, "N_ROUNDS", 5)
    monkeypatch.setattr(baselines, "MIN_SECONDS_PER_ROUND", 0)
    noise = machine.look()
    assert noise.spread >= 1.0
    assert np.isfinite(noise.load)


# --- waiting, and refusing --------------------------------------------------------------------


def test_a_quiet_machine_is_not_waited_for(see, capsys):
    clock = see(QUIET)
    assert machine.wait_until_quiet(60) == 59
    assert clock.now == 1.0
    assert capsys.readouterr().err == ""


def test_the_script_says_what_it_waits_for(see, capsys):
    see(LOADED, UNEVEN, QUIET)
    assert machine.wait_until_quiet(60) == 60 - 3 - 2 * machine.SECONDS_BETWEEN_LOOKS
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("waiting for a quiet machine, 59 s more: other programs use 1.50 ")
    assert second.startswith("waiting for a quiet machine, 53 s more: one round in ten ")


def test_waiting_has_a_limit(see):
    clock = see(LOADED)
    with pytest.raises(machine.NoisyMachineError, match=r"other programs use 1\.50 processors"):
        machine.wait_until_quiet(30)
    assert 30 <= clock.now < 32


@pytest.mark.usefixtures("constant_texts")
def test_a_machine_that_is_never_quiet_is_refused_within_the_limit_of_the_run(
    see, run, pages, capsys
):
    before = [page.read_bytes() for page in pages]
    clock = see(LOADED)
    with pytest.raises(SystemExit) as ended:
        run("--write")
    assert clock.now < speed_tables.PATIENCE + 2
    message = str(ended.value.code)
    assert message.startswith("speed_tables.py: other programs use 1.50 processors")
    assert message.endswith("; end other programs, and run it again")
    assert "measuring" not in capsys.readouterr().err
    assert [page.read_bytes() for page in pages] == before


@pytest.mark.usefixtures("constant_texts")
@pytest.mark.parametrize("quiet_looks", [1, 3, 6])
def test_a_machine_that_does_not_stay_quiet_is_refused(see, run, pages, quiet_looks):
    before = [page.read_bytes() for page in pages]
    see(*[QUIET] * quiet_looks, UNEVEN)
    with pytest.raises(SystemExit, match="end other programs, and run it again"):
        run("--write")
    assert [page.read_bytes() for page in pages] == before


@pytest.mark.usefixtures("constant_texts")
def test_a_table_that_others_disturbed_is_refused(see, run, pages, monkeypatch):
    before = [page.read_bytes() for page in pages]
    see(QUIET)
    loads = iter([0.0, 0.0, 0.4])
    monkeypatch.setattr(machine, "load_since", lambda _: next(loads))
    _, _, third, *_ = speed_tables.TEXTS
    with pytest.raises(SystemExit, match=f"used 0.40 processors while {third} was measured"):
        run("--write")
    assert [page.read_bytes() for page in pages] == before


@pytest.mark.usefixtures("constant_texts")
def test_a_check_only_looks(see, run, pages, capsys):
    before = [page.read_bytes() for page in pages]
    see(QUIET)
    run("--check")
    see(LOADED)
    with pytest.raises(SystemExit, match="other programs use"):
        run("--check")
    assert capsys.readouterr() == ("", "")
    assert [page.read_bytes() for page in pages] == before


@pytest.mark.usefixtures("constant_texts")
def test_tables_without_a_package_are_refused(see, run, monkeypatch):
    see(QUIET)
    monkeypatch.setattr(speed_tables, "packages_of_opponents", lambda: ["no-such-package"])
    monkeypatch.setattr(speed_tables, "is_installed", lambda _: False)
    with pytest.raises(SystemExit, match="install what the tables compare with: no-such-package"):
        run()


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


# --- texts in pages ---------------------------------------------------------------------------


def test_all_texts_of_pages_come_from_one_run(see, run, pages, constant_texts):
    see(LOADED, QUIET)
    run("--write")
    readme, page = (path.read_text(encoding="utf-8") for path in pages)
    for name, text in constant_texts.items():
        assert f"<!-- speed {name} -->\n\n{text}\n\n<!-- end -->" in page
    assert constant_texts["three-calls"] in readme
    for text in (readme, page):
        assert machine.describe_machine() in " ".join(text.split())
    written = [path.read_bytes() for path in pages]
    run("--write")
    assert [path.read_bytes() for path in pages] == written


def test_pages_have_the_texts_of_the_script():
    readme, page = (path.read_text(encoding="utf-8") for path in speed_tables.PAGES)
    assert writing.blocks_of(page) == {*speed_tables.TEXTS, speed_tables.MACHINE}
    assert writing.blocks_of(readme) == {"three-calls", speed_tables.MACHINE}
    for name in ("three-calls", speed_tables.MACHINE):
        (in_readme,) = re.findall(rf"<!-- speed {name} -->.*?<!-- end -->", readme, re.DOTALL)
        assert in_readme in page


@pytest.mark.usefixtures("tiny")
def test_three_calls_are_a_call_a_bootstrap_and_many_slices():
    head, _, *lines = speed_tables.write_three_calls().splitlines()
    assert head == "| call | fastece | the usual NumPy | fastest other way |"
    calls = [re.match(r"\| `(\w+)\(y, p", line)[1] for line in lines]
    assert calls == ["ece", "bootstrap", "ece"]
    assert "by=site" in lines[2]
    for line in lines:
        assert re.search(r"\| \S+ [mµn]?s \| \S+ [mµn]?s, \S+x \|", line), line


@pytest.mark.usefixtures("tiny")
def test_table_of_opponents_says_who_is_faster(monkeypatch):
    ratios = {"np.bincount": 2.0, "np.histogram": 0.5, "np.quantile": 3.0, "np.partition": 1.0}

    def race(name, n):  # noqa: ARG001
        return baselines.Race(seconds=1e-6, ratio=ratios[name])

    monkeypatch.setattr(speed_tables, "race_opponent", race)
    monkeypatch.setattr(speed_tables, "race_between", race)
    table, sentence = speed_tables.write_opponents().split("\n\n")
    head, _, *lines = table.splitlines()
    columns = ["20 scores", "50 scores", "20 scores, between other work"]
    assert head == f"| estimator | way | {' | '.join(columns)} |"
    assert lines[0] == "| `ece` | fastece | 1.00 µs | 1.00 µs | 1.00 µs |"
    assert lines[2] == "| `ece` | np.histogram | 500 ns, 0.5x | 500 ns, 0.5x | 500 ns, 0.5x |"
    assert sentence == f"Faster than fastece: {', '.join(f'np.histogram ({x})' for x in columns)}."
    ratios["np.histogram"] = 1.5
    assert speed_tables.write_opponents().endswith("None of these ways is faster than fastece.")


@pytest.mark.usefixtures("tiny")
def test_table_of_opponents_measures_every_way():
    _, _, *lines = speed_tables.write_opponents().partition("\n\n")[0].splitlines()
    ways = [line.split(" | ")[1] for line in lines]
    assert ways == [
        "fastece",
        "np.bincount",
        "np.histogram",
        "fastece",
        "np.quantile",
        "np.partition",
    ]


@pytest.mark.usefixtures("tiny")
def test_table_of_differences_has_a_line_for_each_way():
    head, _, *lines = speed_tables.write_differences().splitlines()
    assert head.startswith("| way | three in ten scores are 1.0 | ")
    assert lines[0].startswith("| fastece | 0.1311 | 0.0116 | 0 % | an error |")
    assert [line.split(" | ")[0] for line in lines[1:]] == ["| np.bincount", "| np.histogram"]


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_tables_have_a_line_for_every_estimator_and_setting():
    head, _, *lines = [line.split(" | ") for line in speed_tables.write_calls().splitlines()]
    assert head == ["| setting", "estimator", "20 scores", "50 scores |"]
    assert len(lines) == 3 * len(CALIBRATION_ERRORS)
    assert lines[-1][:2] == ["| classwise", "`ecce_mad` (ece)"]
    _, _, *replicates = speed_tables.write_replicates().splitlines()
    assert len(replicates) == len(CALIBRATION_ERRORS)
    assert re.fullmatch(r"\| `ece` \| .* [mµn]?s, .* ns a row, .*x \|", replicates[0])


def test_machine_is_described_with_versions():
    text = machine.describe_machine(["numpy"])
    assert text.startswith(f"fastece {fastece.__version__}, Python ")
    assert f"numpy {np.__version__}; " in text


def test_times_have_three_digits():
    assert writing.write_seconds(1.23456e-5) == "12.3 µs"
    assert writing.write_seconds(0.0999999) == "100 ms"
    assert writing.write_seconds(2.5e-10) == "0.25 ns"
    assert writing.write_ratio(0.345) == "0.34x"
    assert writing.write_ratio(123.4) == "123x"
    assert writing.write_count(1_000_000) == "1 000 000"


def test_costs_of_steps_add_up_to_the_call(monkeypatch):
    monkeypatch.setattr(step_costs, "SIZES", (50,))
    monkeypatch.setattr(step_costs, "MAX_REPEATS", 5)
    heads, _, *lines = step_costs.write_steps().splitlines()
    assert len(lines) == len(step_costs.CALLS)
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == heads.count("|") - 1
        percent = [int(cell.removesuffix(" %")) for cell in cells[3:] if cell]
        assert sum(percent) == pytest.approx(100, abs=len(step_costs.STEPS))
        assert cells[-1]  # no call is made of kernels alone
        assert len(percent) > 1
    assert "__call__" not in vars(step_costs.CPUDispatcher)
