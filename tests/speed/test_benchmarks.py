"""Every benchmark runs at its smallest size and measures the right function."""

import importlib
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastece
from benchmarks import baselines, opponents
from helpers.samples import CALIBRATION_ERRORS

FOLDER = Path(__file__).parents[2] / "asv_benchmarks"
RESULTS = sorted((FOLDER / "results").glob("*/*-*.json"))

MODULES = {
    path.stem: importlib.import_module(f"benchmarks.{path.stem}")
    for path in sorted((FOLDER / "benchmarks").glob("[a-z]*.py"))
}
COMMON = MODULES["common"]
BENCHMARKS = [
    benchmark_class
    for module in MODULES.values()
    for _, benchmark_class in inspect.getmembers(module, inspect.isclass)
    if benchmark_class.__module__ == module.__name__
    and not inspect.isabstract(benchmark_class)
    and hasattr(benchmark_class, "params")
]
# These start processes, or need torch.
SLOW = {
    "Memory",
    "ShapesMemory",
    "BootstrapMemory",
    "StartUp",
    "FirstCalls",
    "ShippedCalls",
    "Compile",
    "Temperature",
}
QUICK = [x for x in BENCHMARKS if x.__name__ not in SLOW]
SINGLE = [x for x in BENCHMARKS if issubclass(x, COMMON.Single)]
REPLICATED = [x for x in BENCHMARKS if issubclass(x, COMMON.Replicated)]
# In these benchmarks, the call and the other call compute the same number.
WITH_EQUAL_NUMBERS = {"Opponents", "Scores", "ScoresOfVectors", "CanonicalError", "KernelError"}
# These measure functions that every version of fastece has.
OF_ALL_VERSIONS = {"Between", "Literature", "Conventions", "EqualMass", "Opponents", "Slices"}
BINARY_SCORES = [name for name, row in fastece.ESTIMATORS.items() if not row.is_calibration_error]
# Estimators that are compared with the baseline of "ece".
WITHOUT_BASELINE = {
    str(row) for name, row in fastece.ESTIMATORS.items() if name not in baselines.BASELINES
}
# The smallest report takes more than two seconds. A report of a thousand classes takes 20 s, and
# runs the same code as one of ten.
REPORT = MODULES["report"].Report
# Positions of the first and the last value of a parameter.
FIRST = 0
LAST = -1


def name_of(benchmark_class):
    return benchmark_class.__name__


def methods_of(benchmark):
    """The names of the methods that asv runs."""
    return [name for name in dir(benchmark) if name.startswith(("time_", "track_", "peakmem_"))]


def parameters_at(position, benchmark_class, n):
    """The value of each parameter at a position of its list, and `n` rows."""
    lists = zip(benchmark_class.param_names, benchmark_class.params, strict=True)
    return [n if name == "n" else values[position] for name, values in lists]


@pytest.fixture
def short_rounds(monkeypatch):
    monkeypatch.setattr(baselines, "MIN_SECONDS_PER_ROUND", 0)
    monkeypatch.setattr(baselines, "ROWS_PER_CALL", 0)
    monkeypatch.setattr(baselines, "MIN_REPLICATES", 5)
    monkeypatch.setattr(baselines, "MAX_LOOP_REPLICATES", 5)


def cases_of_quick_benchmarks():
    """Each quick benchmark with its first parameters, and its last if they differ."""
    for benchmark_class in QUICK:
        name = name_of(benchmark_class)
        if benchmark_class is REPORT:
            yield pytest.param(benchmark_class, FIRST, id=f"{name}-first", marks=pytest.mark.slow)
            continue
        yield pytest.param(benchmark_class, FIRST, id=f"{name}-first")
        first_parameters = parameters_at(FIRST, benchmark_class, 300)
        if parameters_at(LAST, benchmark_class, 300) != first_parameters:
            yield pytest.param(benchmark_class, LAST, id=f"{name}-last")


@pytest.mark.representative(5)
@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize(("benchmark_class", "position"), [*cases_of_quick_benchmarks()])
def test_benchmark_runs(benchmark_class, position):
    params = parameters_at(position, benchmark_class, 300)
    benchmark = benchmark_class()
    benchmark.rounds = 1
    benchmark.setup(*params)
    assert methods_of(benchmark)
    for name in methods_of(benchmark):
        result = getattr(benchmark, name)(*params)
        if name.startswith("time_"):
            assert result is None
        else:
            assert result > 0
    if name_of(benchmark_class) in WITH_EQUAL_NUMBERS:
        assert benchmark.call() == pytest.approx(benchmark.other(), rel=1e-6)


@pytest.mark.representative(3)
@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("benchmark_class", QUICK, ids=name_of)
def test_a_version_without_the_function_is_skipped(benchmark_class, monkeypatch):
    if benchmark_class in SINGLE or name_of(benchmark_class) in OF_ALL_VERSIONS:
        return
    for name in set(fastece.__all__) - {"ece", "ESTIMATORS"}:
        monkeypatch.delattr(fastece, name, raising=False)
    monkeypatch.setattr(fastece, "__all__", ["ece", "ESTIMATORS"])
    for module in ("fastece.recalibration", "fastece.streams.metric"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotImplementedError):
        benchmark_class().setup(*parameters_at(FIRST, benchmark_class, 60))


@pytest.mark.parametrize("benchmark_class", SINGLE, ids=name_of)
def test_baseline_of_a_single_call_gives_the_same_number(benchmark_class):
    params = parameters_at(FIRST, benchmark_class, 3000)
    params = ["logits" if value == "probabilities" else value for value in params]
    benchmark = benchmark_class()
    benchmark.setup(*params)
    # Baselines compute densities on another grid, and fastece has them right to a thousandth.
    tolerance = 1e-4 if "ece_kde" in params else 1e-6
    assert benchmark.call() == pytest.approx(benchmark.baseline(), abs=tolerance)


# Replicates of the call and of the loop: enough to see a wrong loop, as the means have to agree
# within five standard errors of their difference.
N_REPLICATES = 320


@pytest.mark.representative(2)
@pytest.mark.parametrize("position", [FIRST, LAST], ids=["first", "last"])
@pytest.mark.parametrize("benchmark_class", REPLICATED, ids=name_of)
def test_loop_beside_a_call_has_the_same_distribution(benchmark_class, position, monkeypatch):
    monkeypatch.setattr(baselines, "ROWS_PER_CALL", 0)
    monkeypatch.setattr(baselines, "MIN_REPLICATES", N_REPLICATES)
    monkeypatch.setattr(baselines, "ROWS_PER_LOOP", 0)
    monkeypatch.setattr(baselines, "MIN_LOOP_REPLICATES", N_REPLICATES)
    monkeypatch.setattr(baselines, "MAX_LOOP_REPLICATES", N_REPLICATES)
    benchmark = benchmark_class()
    benchmark.setup(*parameters_at(position, benchmark_class, 60))
    results = benchmark.call()
    results = list(results.values()) if isinstance(results, dict) else [results]
    values = np.atleast_2d(benchmark.loop())
    if name_of(benchmark_class) == "Compare":
        values = values[:1] - values[1:]
    assert len(results) == len(values)
    for result, theirs in zip(results, values, strict=True):
        if result.estimator in WITHOUT_BASELINE:  # The loop computes "ece".
            continue
        if "Test" in name_of(benchmark_class):
            ours = result.null_distribution
        else:
            ours = result.bootstrap_distribution
        assert ours.shape == theirs.shape == (N_REPLICATES,)
        standard_error = np.sqrt((ours.var() + theirs.var()) / N_REPLICATES)
        assert ours.mean() == pytest.approx(theirs.mean(), abs=5 * standard_error)
        assert 0.75 < ours.std() / theirs.std() < 1.33


def test_ratio_is_less_where_the_call_is_faster(monkeypatch):
    benchmark = MODULES["single"].Sizes()
    benchmark.call = "fast"
    benchmark.baseline = "slow"
    seconds = {"fast": 1.0, "slow": 4.0}
    monkeypatch.setattr(baselines, "measure_seconds", lambda call, _: seconds[call])
    monkeypatch.setattr(baselines, "count_repeats", lambda _: 1)
    assert benchmark.track_ratio_to_numpy() == 0.25


def test_every_estimator_and_shape_is_measured():
    single = MODULES["single"]
    memory = MODULES["memory"]
    calls = [*CALIBRATION_ERRORS, *BINARY_SCORES, "reliability_diagram"]
    for benchmark_class in (single.Sizes, single.Between, memory.Memory):
        assert benchmark_class.params[0] == calls
    assert single.Shapes.params[0] == CALIBRATION_ERRORS
    assert {"uniform", *single.Shapes.params[1]} == set(baselines.SHAPES)
    for name in ("BootstrapSizes", "BootstrapShapes", "BootstrapClasses", "BootstrapSubsets"):
        assert getattr(MODULES["bootstrap"], name).params[0] == CALIBRATION_ERRORS
    assert memory.BootstrapMemory.params[0] == [*CALIBRATION_ERRORS, "all"]


@pytest.mark.skipif(not RESULTS, reason="the sdist has no results")
def test_recorded_results_have_the_versions_and_names_of_benchmarks():
    versions = {}
    for benchmark_class in BENCHMARKS:
        module_name = benchmark_class.__module__.removeprefix("benchmarks.")
        for method in methods_of(benchmark_class):
            name = f"{module_name}.{name_of(benchmark_class)}.{method}"
            versions[name] = benchmark_class.version
    for path in RESULTS:
        document = json.loads(path.read_text(encoding="utf-8"))
        column = document["result_columns"].index("version")
        for name, row in document["results"].items():
            assert row[column] == versions[name], (path.name, name)


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("case", MODULES["startup"].StartUp.CASES)
def test_start_up_runs_the_call_it_names(case, monkeypatch):
    startup = MODULES["startup"]
    codes = []
    monkeypatch.setattr(startup, "run_fresh", codes.append)
    benchmark = startup.StartUp()
    benchmark.setup(case)
    (code,) = codes
    assert ("fastece.ece(" if "call" in case else "import fastece") in code
    for name in methods_of(benchmark):
        codes.clear()
        assert getattr(benchmark, name)(case) > 0
        assert code in codes
        assert not any("fastece" in other for other in codes if other != code)


@pytest.mark.slow
def test_start_up_in_a_real_process():
    startup = MODULES["startup"]
    code = f"{startup.FIRST_CALL}; print(fastece.__file__)"
    assert COMMON.run_fresh(code).strip() == fastece.__file__
    are_imported = "print('numba' in sys.modules, 'numpy' in sys.modules)"
    code = f"import sys; {startup.IMPORT}; {are_imported}"
    assert COMMON.run_fresh(code) == "False False\n"


@pytest.mark.slow
def test_first_calls_compile_and_a_call_that_is_refused_is_no_number(monkeypatch):
    startup = MODULES["startup"]
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    calls = {"`fastece demo --full`": startup.first_calls.CALLS["`ece`"], "none": "fastece.none()"}
    monkeypatch.setattr(startup.first_calls, "CALLS", calls)
    first_calls = startup.FirstCalls()
    results = first_calls.setup_cache()
    for name in methods_of(first_calls):
        assert getattr(first_calls, name)(results, "`fastece demo --full`") > 0
        assert np.isnan(getattr(first_calls, name)(results, "none"))
    kernels = startup.Compile()
    seconds = [kernels.track_seconds(results, name) for name in kernels.params[0]]
    assert 0 < np.nansum(seconds) < first_calls.track_seconds(results, "`fastece demo --full`")


def test_first_calls_of_two_checkouts_are_compared_by_their_least_times(monkeypatch, capsys):
    first_calls = MODULES["startup"].first_calls
    seconds = {"before": iter([12.0, 10.0, 30.0]), "after": iter([9.0, 8.0, 7.0])}
    units = iter([0.1, 0.3, 0.2, 0.2, 0.4, 0.2])

    def measure(call, checkout):  # noqa: ARG001
        return first_calls.FirstCall(1.0, next(seconds[checkout.name]), next(units), 5, {})

    monkeypatch.setattr(first_calls, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["first_calls.py", "--call", "warmup", "before", "after"])
    first_calls.main()
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| `fastece warmup` | 10.0 | 100 | 5 | 1 | 1.00x |",
        "| `fastece warmup` | 7.0 | 70 | 5 | 2 | 0.70x |",
    ]


TYPES = "bool, float32"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not report the peak of memory")
class TestMemory:
    @pytest.fixture(autouse=True)
    def compiled_kernels(self, monkeypatch):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")

    @staticmethod
    def megabytes(benchmark, *params):
        benchmark.setup(*params)
        try:
            return benchmark.track_extra_megabytes(*params)
        finally:
            benchmark.teardown(*params)

    def test_small_call_needs_little(self):
        assert self.megabytes(MODULES["memory"].Memory(), "ece", TYPES, 1000) < 64

    def test_memory_of_shapes_measures_these(self):
        assert self.megabytes(MODULES["memory"].ShapesMemory(), "ece_a", "zeros", 1000) < 64

    @pytest.mark.parametrize("estimator", ["ece", "all"])
    def test_bootstrap_measures_the_estimators_it_names(self, estimator):
        benchmark = MODULES["memory"].BootstrapMemory()
        params = (estimator, TYPES, 2, 1000)
        assert self.megabytes(benchmark, *params) < 64
        code = benchmark.code(*params)
        assert code.startswith("fastece.bootstrap(y, p, ")
        assert "n_jobs=2" in code
        for name in CALIBRATION_ERRORS:
            assert (repr(name) in code) == (estimator in (name, "all"))

    def test_array_of_16_megabytes_is_seen(self, monkeypatch):
        benchmark = MODULES["memory"].Memory()
        check_types = "assert (y.dtype, p.dtype) == (bool, np.float32)"
        allocate = "x = np.zeros(2_000_000) + p.sum()"
        monkeypatch.setattr(benchmark, "code", lambda *_: f"{check_types}; {allocate}")
        assert 15 < self.megabytes(benchmark, "ece", TYPES, 1_000_000) < 64


def test_another_fastece_than_the_one_to_be_measured_is_refused(tmp_path):
    root = str(Path(fastece.__file__).parents[1])
    assert COMMON.run_fresh("import benchmarks", FASTECE_MEASURED=root) == ""
    with pytest.raises(RuntimeError, match="to be measured is"):
        COMMON.run_fresh("import benchmarks", FASTECE_MEASURED=str(tmp_path))


def test_first_five_estimators_have_baselines():
    # The others take more than a few lines of numpy.
    first_estimators = set(list(fastece.ESTIMATORS)[:5])
    assert set(baselines.BASELINES) == set(baselines.LOOPS) == first_estimators
    assert baselines.find_baseline("something else") == ("ece", baselines.BASELINES["ece"])


# With tied scores, baselines count some of them on the wrong side of an edge, or have other edges.
ESTIMATORS_AND_SHAPES = [
    (estimator, shape)
    for estimator in baselines.BASELINES
    for shape in baselines.SHAPES
    if shape != "tied" and (shape != "zeros" or estimator in ("ece", "ece_c"))
]


@pytest.mark.representative(4)
@pytest.mark.parametrize(("estimator", "shape"), ESTIMATORS_AND_SHAPES)
def test_baselines_are_right_where_there_are_no_ties(estimator, shape):
    y, p = baselines.draw_binary(shape, 15_000)
    values = {name: fastece.ece(y, p, estimator=name) for name in baselines.BASELINES}
    baseline_value = baselines.BASELINES[estimator](y, p)
    # Centres lie between edges, which numpy interpolates otherwise, by less than two scores.
    tolerance = {"ece_ac": 1e-4, "ece_kde": 1e-5}.get(estimator, 1e-12)
    assert baseline_value == pytest.approx(values[estimator], abs=tolerance)
    assert min(values, key=lambda name: abs(values[name] - baseline_value)) == estimator


@pytest.mark.parametrize("estimator", baselines.BASELINES)
def test_baselines_of_class_vectors_are_right(estimator):
    y, p = baselines.draw_class_vectors(1500, 10)
    for setting in ("confidence", "classwise"):
        name, baseline = baselines.find_baseline(estimator, setting)
        assert name == estimator
        expected = fastece.ece(y, p, estimator=estimator, setting=setting)
        tolerance = {"ece_ac": 1e-3, "ece_kde": 1e-4}.get(estimator, 1e-12)
        assert baseline(y, p) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("name", opponents.OPPONENTS)
@pytest.mark.parametrize("n", [150, 15_000])
def test_two_lines_of_each_opponent_give_the_error_where_no_score_is_on_an_edge(name, n):
    opponent = opponents.OPPONENTS[name]
    pytest.importorskip(opponent.package)
    y, p = baselines.draw_binary("uniform", n)
    value = fastece.ece(y, p, estimator=opponent.estimator)
    assert opponent.value(y, p) == pytest.approx(value, abs=1e-12)


def test_an_opponent_that_is_not_installed_is_skipped(monkeypatch):
    missing = opponents.Opponent("ece", "no_such_package", None)
    monkeypatch.setitem(opponents.OPPONENTS, "missing", missing)
    with pytest.raises(NotImplementedError):
        MODULES["single"].Opponents().setup("missing", 100)
    assert "missing" not in {row.way for row in opponents.where_they_differ()}


def test_what_opponents_do_on_edges_at_one_and_with_missing_scores(monkeypatch):
    monkeypatch.setattr(opponents, "NUMBERS_OF_BINS", range(2, 40))
    rows = {row.way: row for row in opponents.where_they_differ()}
    exact = rows["fastece"]
    assert (exact.misplaced, exact.with_a_missing_score) == (0, None)
    assert exact.with_ones == fastece.ece(*opponents.draw_many_ones())
    others = [row for way, row in rows.items() if way != "fastece"]
    assert others
    for row in others:
        assert 0.02 < row.misplaced < 0.2
        drops_ones = row.way == "fast-histogram"
        assert (row.with_ones == pytest.approx(exact.with_ones)) != drops_ones
        assert row.with_two_decimals > exact.with_two_decimals + 1e-4


def test_errors_of_slices_are_those_of_one_call():
    y, p, slices = baselines.draw_slices(7, 300)
    errors = fastece.ece(y, p, by=slices)
    assert baselines.errors_of_slices(y, p, slices) == pytest.approx(errors, abs=1e-12)
    assert baselines.errors_in_a_loop(y, p, slices) == pytest.approx(errors, abs=1e-12)


class Clock:
    """A clock that only calls move."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def make_call(self, name, *seconds):
        """A call that takes these seconds in turn, and from then on the last of them."""
        seconds = list(seconds)

        def call():
            self.calls.append(name)
            self.now += seconds.pop(0) if len(seconds) > 1 else seconds[0]

        return call


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(baselines, "perf_counter", lambda: clock.now)
    return clock


def test_ratio_is_the_median_of_interleaved_rounds_after_a_warm_up(clock):
    fast = clock.make_call("fast", 100.0, 1.0, 1.0, 2.0, 1.0)
    slow = clock.make_call("slow", 100.0, 3.0, 3.0, 8.0, 50.0)
    assert baselines.race(fast, slow, rounds=3).ratio == 4.0
    assert clock.calls == ["fast"] * 2 + ["slow"] * 2 + ["fast", "slow"] * 3


def test_ratio_of_the_fastest_rounds_ignores_interruptions(clock):
    fast = clock.make_call("fast", 1.0, 1.0, 9.0, 1.0, 7.0)
    slow = clock.make_call("slow", 2.0, 2.0, 8.0, 9.0, 2.0)
    assert baselines.race_fastest_rounds(fast, slow, rounds=3) == 0.5


def test_rounds_of_short_calls_take_a_millisecond(clock):
    fast = clock.make_call("fast", 1e-4)
    slow = clock.make_call("slow", 4e-4)
    times = baselines.race(fast, slow, rounds=5)
    assert times.ratio == pytest.approx(4.0)
    assert times.seconds == pytest.approx(1e-4)
    # After a first call that warms up, rounds of 1, 2, 4 and 8 fast calls are too short, and rounds
    # of 1 and 2 slow ones: they get 16 and 4.
    assert clock.calls.count("fast") == 1 + 31 + 5 * 16
    assert clock.calls.count("slow") == 1 + 7 + 5 * 4


def test_results_are_filed_under_versions_and_not_under_paths(monkeypatch):
    pytest.importorskip("asv")
    monkeypatch.chdir(FOLDER)
    monkeypatch.syspath_prepend(str(FOLDER))
    from asv.config import Config
    from asv.environment import get_environments

    config = Config.load()
    importlib.import_module(config.plugins[0].removeprefix("."))
    (environment,) = get_environments(config, [f"interpreter:{sys.executable}"])
    assert f"numpy{np.__version__}" in environment.name
    assert Path(sys.executable).parent.name not in f"{environment.name} {environment.python}"
    numpy_version = environment.run(["-c", "import numpy; print(numpy.__version__)"])
    assert numpy_version == f"{np.__version__}\n"


@pytest.fixture
def recorded_runs(monkeypatch):
    """The commands that measure.py runs, without running asv or writing its file of machines."""
    pytest.importorskip("asv")
    measure = importlib.import_module("measure")
    commands = []

    def note_run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, stdout="0" * 40)

    monkeypatch.setattr(measure.subprocess, "run", note_run)
    monkeypatch.setattr(measure.MachineCollection, "save", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["measure.py", "first", "second", "--quick"])
    return measure, commands


def test_commits_are_recorded_one_after_another_on_a_quiet_machine(recorded_runs, monkeypatch):
    measure, commands = recorded_runs
    monkeypatch.setattr(measure, "wait_until_quiet", commands.append)
    measure.main()
    resolved, runs = commands[:2], commands[2:]
    assert [command[-1] for command in resolved] == ["first^{commit}", "second^{commit}"]
    assert runs[0] == runs[2] == measure.PATIENCE
    assert runs[1] == runs[3]
    assert runs[1][-1] == "--quick"


def test_commits_are_not_recorded_on_a_noisy_machine(recorded_runs, monkeypatch):
    measure, commands = recorded_runs

    def refuse(seconds):  # noqa: ARG001
        raise measure.NoisyMachineError("other programs work")

    monkeypatch.setattr(measure, "wait_until_quiet", refuse)
    with pytest.raises(SystemExit, match=r"measure\.py: other programs work; end other programs"):
        measure.main()
    assert len(commands) == 2  # which resolve the commits


def test_a_change_counts_if_it_exceeds_the_factor_and_the_control():
    check_change = importlib.import_module("check_change")

    def verdict(new, control):
        return check_change.Quotients(new, control).verdict(1.1)

    assert verdict([1.2, 1.3, 1.25], [0.98, 1.01, 1.03]) == "slower"
    assert verdict([0.8, 0.75, 0.7], [0.98, 1.01, 1.03]) == "faster"
    assert verdict([1.05, 1.08, 1.09], [1.0, 1.0, 1.0]) == ""
    assert verdict([1.2, 1.3, 1.25], [0.98, 1.01, 1.3]) == ""
    assert verdict([1.2, 1.3, 1.25], [0.7, 1.01, 1.0]) == ""
    # A single group that was interrupted is no change.
    assert verdict([5.0, 1.0, 1.0], [1.0, 1.0, 1.0]) == ""


@pytest.mark.slow
@pytest.mark.parametrize(("n_steps", "code"), [(0, 0), (20_000, 1)])
def test_check_of_a_change_notices_a_slow_call(tmp_path, monkeypatch, capsys, n_steps, code):
    """The base is this package, and the change is a loop in front of each `ece`."""
    pytest.importorskip("asv")
    check_change = importlib.import_module("check_change")
    package = Path(fastece.__file__).parent
    new = tmp_path / "new"
    shutil.copytree(package, new / "fastece", ignore=shutil.ignore_patterns("__pycache__"))
    source = new / "fastece" / "metrics.py"
    line = "    check_average(average)\n"
    text = source.read_text(encoding="utf-8")
    assert text.count(line) == 1
    loop = f"    for _ in range({n_steps}):\n        pass\n"
    source.write_text(text.replace(line, loop + line), encoding="utf-8")
    folders = {"base": package.parent, "new": new}
    monkeypatch.setattr(check_change, "check_out", lambda commit, _: folders[commit])
    bench = r"single\.Sizes\.track_ratio_to_numpy\('ece', 100\)"
    words = ["check_change.py", "base", "new", "--bench", bench, "--factor", "3", "--seconds", "1"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        check_change.main()
    assert ended.value.code == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| single.Sizes.track_ratio_to_numpy('ece', 100) | ")
    assert lines[2].endswith("| slower |") == bool(code)


def test_versions_that_cannot_ship_kernels_have_no_numbers(monkeypatch, tmp_path):
    startup = MODULES["startup"]
    (tmp_path / "fastece").mkdir()
    monkeypatch.setattr(startup, "CHECKOUT", tmp_path)
    results = startup.ShippedCalls().setup_cache()
    assert list(results) == list(startup.first_calls.CALLS)
    for name in methods_of(startup.ShippedCalls()):
        assert np.isnan(getattr(startup.ShippedCalls(), name)(results, "`ece`"))
