"""Every benchmark runs, at its smallest size, and measures the function it names."""

import importlib
import inspect
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import speed_tables

import fastece
from benchmarks import baselines
from helpers.samples import CALIBRATION_ERRORS

FOLDER = Path(__file__).parents[2] / "asv_benchmarks"


PATHS = sorted((FOLDER / "benchmarks").glob("[a-z]*.py"))
MODULES = {path.stem: importlib.import_module(f"benchmarks.{path.stem}") for path in PATHS}
CLASSES = [
    found
    for module in MODULES.values()
    for _, found in inspect.getmembers(module, inspect.isclass)
    if found.__module__ == module.__name__
    and not inspect.isabstract(found)
    and hasattr(found, "params")
]
# These start processes, or need torch.
SLOW = {"Memory", "BootstrapMemory", "StartUp", "FirstCalls", "Compile", "Temperature"}
QUICK = [found for found in CLASSES if found.__name__ not in SLOW]
SINGLE = [found for found in CLASSES if issubclass(found, MODULES["common"].Single)]
REPLICATED = [found for found in CLASSES if issubclass(found, MODULES["common"].Replicated)]
# Benchmarks whose call and other call give the same number.
SAME = {"Scores", "ScoresOfVectors", "CanonicalError", "KernelError"}
# Benchmarks of functions that have been there from the beginning.
OLD = {"Between", "Literature", "Conventions"}
BINARY_SCORES = [name for name, row in fastece.ESTIMATORS.items() if not row.is_calibration_error]
# Estimators that are held against the baseline of "ece".
OTHERS = {str(row) for name, row in fastece.ESTIMATORS.items() if name not in baselines.BASELINES}


def methods(found):
    return [name for name in dir(found) if name.startswith(("time_", "track_", "peakmem_"))]


def smallest(found, n, last=False):
    """First, or last, of each list of parameters, and `n` rows."""
    pairs = zip(found.param_names, found.params, strict=True)
    return [n if name == "n" else values[-1 if last else 0] for name, values in pairs]


@pytest.fixture
def short_rounds(monkeypatch):
    limits = {"SHORTEST_ROUND": 0, "CALL_ROWS": 0, "LEAST_REPLICATES": 5, "MOST_LOOPS": 5}
    for name, value in limits.items():
        monkeypatch.setattr(baselines, name, value)


ENDS = [(found, last) for found in QUICK for last in (False, True)]
ENDS = [(x, last) for x, last in ENDS if not last or smallest(x, 300) != smallest(x, 300, last)]
# A report of a thousand classes takes 20 s, and runs the same code.
LONG = [MODULES["report"].Report]
ENDS = [(found, last) for found, last in ENDS if not (last and found in LONG)]
MARKED = [pytest.param(*end, marks=[pytest.mark.slow] * (end[0] in LONG)) for end in ENDS]


@pytest.mark.representative(5)
@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize(("found", "last"), MARKED)
def test_benchmark_runs(found, last):
    params, benchmark = smallest(found, 300, last), found()
    benchmark.rounds = 1
    benchmark.setup(*params)
    assert methods(found)
    for name in methods(found):
        result = getattr(benchmark, name)(*params)
        assert result is None if name.startswith("time_") else result > 0
    if found.__name__ in SAME:
        assert benchmark.call() == pytest.approx(benchmark.other(), rel=1e-6)


@pytest.mark.representative(3)
@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("found", QUICK, ids=lambda found: found.__name__)
def test_a_version_without_the_function_is_not_measured(found, monkeypatch):
    if issubclass(found, MODULES["common"].Single) or found.__name__ in OLD:
        return
    for name in set(fastece.__all__) - {"ece", "ESTIMATORS"}:
        monkeypatch.delattr(fastece, name, raising=False)
    monkeypatch.setattr(fastece, "__all__", ["ece", "ESTIMATORS"])
    monkeypatch.setitem(sys.modules, "fastece.recalibration", None)
    with pytest.raises(NotImplementedError):
        found().setup(*smallest(found, 60))


@pytest.mark.parametrize("found", SINGLE, ids=lambda found: found.__name__)
def test_the_idiom_beside_a_call_gives_the_same_number(found):
    params = smallest(found, 3000)
    params = ["logits" if value == "probabilities" else value for value in params]
    benchmark = found()
    benchmark.setup(*params)
    # Densities are on other grids; those of the package are right to a thousandth.
    slack = 1e-4 if "ece_kde" in params else 1e-6
    assert benchmark.call() == pytest.approx(benchmark.baseline(), abs=slack)


# Many enough that a wrong loop shows: within five standard errors of the difference of two means.
REPLICATES = 320


@pytest.mark.representative(2)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("found", REPLICATED, ids=lambda found: found.__name__)
def test_the_loop_beside_a_call_has_the_same_distribution(found, last, monkeypatch):
    for name, value in {"CALL_ROWS": 0, "LEAST_REPLICATES": REPLICATES, "LOOP_ROWS": 0}.items():
        monkeypatch.setattr(baselines, name, value)
    monkeypatch.setattr(baselines, "LEAST_LOOPS", REPLICATES)
    monkeypatch.setattr(baselines, "MOST_LOOPS", REPLICATES)
    benchmark = found()
    benchmark.setup(*smallest(found, 60, last))
    results, values = benchmark.call(), benchmark.loop()
    if found.__name__ == "Compare":
        values = values[:1] - values[1:]
    results = list(results.values()) if isinstance(results, dict) else [results]
    assert len(results) == len(np.atleast_2d(values))
    for result, theirs in zip(results, np.atleast_2d(values), strict=True):
        if result.estimator in OTHERS:  # beside the loop of "ece"
            continue
        name = "null_distribution" if "Test" in found.__name__ else "bootstrap_distribution"
        ours = getattr(result, name)
        assert ours.shape == theirs.shape == (REPLICATES,)
        error = np.sqrt((ours.var() + theirs.var()) / REPLICATES)
        assert ours.mean() == pytest.approx(theirs.mean(), abs=5 * error)
        assert 0.75 < ours.std() / theirs.std() < 1.33


def test_the_ratio_is_less_where_the_call_is_faster(monkeypatch):
    benchmark = MODULES["single"].Sizes()
    benchmark.call, benchmark.baseline = "fast", "slow"
    monkeypatch.setattr(baselines, "seconds_of", lambda call, _: {"fast": 1.0, "slow": 4.0}[call])
    monkeypatch.setattr(baselines, "repeats_of", lambda _: 1)
    assert benchmark.track_ratio_to_numpy() == 0.25


def test_every_estimator_and_shape_is_measured():
    single, memory = MODULES["single"], MODULES["memory"]
    assert single.Shapes.params[0] == CALIBRATION_ERRORS
    calls = [*CALIBRATION_ERRORS, *BINARY_SCORES, "reliability_diagram"]
    for found in (single.Sizes, single.Between, memory.Memory):
        assert found.params[0] == calls
    assert {"uniform", *single.Shapes.params[1]} == set(baselines.SHAPES)
    draws = MODULES["bootstrap"]
    for name in ("BootstrapSizes", "BootstrapShapes", "BootstrapClasses", "BootstrapSubsets"):
        assert getattr(draws, name).params[0] == CALIBRATION_ERRORS
    assert memory.BootstrapMemory.params[0] == [*CALIBRATION_ERRORS, "all"]


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("case", MODULES["startup"].StartUp.CASES)
def test_start_up_runs_the_call_it_names(case, monkeypatch):
    ran = []
    monkeypatch.setattr(MODULES["startup"], "run_fresh", lambda *a, **k: ran.append((*a, k)))
    benchmark = MODULES["startup"].StartUp()
    benchmark.setup(case)
    for name in methods(benchmark):
        ran.clear()
        assert getattr(benchmark, name)(case) > 0
        codes = dict(ran)
        assert ("fastece.ece(" if "call" in case else "import fastece") in benchmark.code
        codes.pop(benchmark.code)
        assert not any("fastece" in code for code in codes)


@pytest.mark.slow
def test_start_up_in_a_real_process():
    run_fresh = MODULES["common"].run_fresh
    code = f"{MODULES['startup'].FIRST_CALL}; print(fastece.__file__)"
    assert run_fresh(code).strip() == fastece.__file__
    imported = "print('numba' in sys.modules, 'numpy' in sys.modules)"
    assert run_fresh(f"import sys; {MODULES['startup'].IMPORT}; {imported}") == "False False\n"


@pytest.mark.slow
def test_first_calls_compile_and_a_call_that_is_refused_is_no_number(monkeypatch):
    startup = MODULES["startup"]
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    calls = {"`fastece demo --full`": startup.first_calls.CALLS["`ece`"], "none": "fastece.none()"}
    monkeypatch.setattr(startup.first_calls, "CALLS", calls)
    first, compiled = startup.FirstCalls(), startup.Compile()
    found = first.setup_cache()
    for name in methods(first):
        assert getattr(first, name)(found, "`fastece demo --full`") > 0
        assert np.isnan(getattr(first, name)(found, "none"))
    seconds = [compiled.track_seconds(found, name) for name in compiled.params[0]]
    assert 0 < np.nansum(seconds) < first.track_seconds(found, "`fastece demo --full`")


KINDS = "bool, float32"
PEAKS = [("Memory", ("ece", KINDS, 1000))]
PEAKS += [("BootstrapMemory", (name, KINDS, 2, 1000)) for name in ("ece", "all")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no peak of memory to ask for")
@pytest.mark.parametrize(("name", "params"), PEAKS)
def test_memory_is_that_of_the_call(name, params, monkeypatch):
    memory = MODULES["memory"]
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    benchmark = getattr(memory, name)()
    benchmark.setup(*params)
    try:
        assert benchmark.track_extra_megabytes(*params) < 64
    finally:
        benchmark.teardown(*params)
    if name == "BootstrapMemory":
        code = benchmark.code(*params)
        assert code.startswith("fastece.bootstrap(y, p, ")
        assert "n_jobs=2" in code
        for one in CALIBRATION_ERRORS:
            assert (repr(one) in code) == (params[0] in (one, "all"))
        return
    code = "assert (y.dtype, p.dtype) == (bool, np.float32); x = np.zeros(2_000_000) + p.sum()"
    monkeypatch.setattr(benchmark, "code", lambda *_: code)
    benchmark.setup("ece", KINDS, 1_000_000)
    try:
        assert 15 < benchmark.track_extra_megabytes("ece", KINDS, 1_000_000) < 64
    finally:
        benchmark.teardown("ece", KINDS, 1_000_000)


def test_another_package_than_the_one_to_be_measured_is_refused(tmp_path):
    run_fresh = MODULES["common"].run_fresh
    root = str(Path(fastece.__file__).parents[1])
    assert run_fresh("import benchmarks", FASTECE_MEASURED=root) == ""
    with pytest.raises(RuntimeError, match="to be measured is"):
        run_fresh("import benchmarks", FASTECE_MEASURED=str(tmp_path))


def test_every_estimator_has_an_idiom():
    # Others are not what one writes in a few lines of numpy.
    assert set(baselines.BASELINES) == set(baselines.LOOPS) == {*list(fastece.ESTIMATORS)[:5]}
    assert baselines.find_baseline("something else") == ("ece", baselines.BASELINES["ece"])


# Of tied scores, baselines count some on the wrong side of an edge, or find other edges.
RIGHT = [
    (name, shape)
    for name in baselines.BASELINES
    for shape in baselines.SHAPES
    if shape != "tied" and (shape != "zeros" or name in ("ece", "ece_c"))
]


@pytest.mark.representative(4)
@pytest.mark.parametrize(("estimator", "shape"), RIGHT)
def test_idioms_are_right_where_there_are_no_ties(estimator, shape):
    y, p = baselines.binary(shape, 15_000)
    values = {name: fastece.ece(y, p, estimator=name) for name in baselines.BASELINES}
    found = baselines.BASELINES[estimator](y, p)
    # Centres lie between edges that numpy interpolates otherwise, by less than two scores.
    tolerance = {"ece_ac": 1e-4, "ece_kde": 1e-5}.get(estimator, 1e-12)
    assert found == pytest.approx(values[estimator], abs=tolerance)
    assert min(values, key=lambda name: abs(values[name] - found)) == estimator


@pytest.mark.parametrize("estimator", baselines.BASELINES)
def test_idioms_of_class_vectors_are_right(estimator):
    y, p = baselines.class_vectors(1500, 10)
    for setting in ("confidence", "classwise"):
        name, baseline = baselines.find_baseline(estimator, setting)
        assert name == estimator
        expected = fastece.ece(y, p, estimator=estimator, setting=setting)
        tolerance = {"ece_ac": 1e-3, "ece_kde": 1e-4}.get(estimator, 1e-12)
        assert baseline(y, p) == pytest.approx(expected, abs=tolerance)


class Clock:
    """A clock that only calls move."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def call(self, name, *seconds):
        """A call that takes these seconds in turn, and then the last ones."""
        remaining = list(seconds)

        def run():
            self.calls.append(name)
            self.now += remaining.pop(0) if len(remaining) > 1 else remaining[0]

        return run


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(baselines, "perf_counter", lambda: clock.now)
    return clock


def test_ratio_is_the_median_of_interleaved_rounds_after_a_warm_up(clock):
    fast = clock.call("fast", 100.0, 1.0, 1.0, 2.0, 1.0)
    slow = clock.call("slow", 100.0, 3.0, 3.0, 8.0, 50.0)
    assert baselines.race(fast, slow, rounds=3).ratio == 4.0
    assert clock.calls == ["fast"] * 2 + ["slow"] * 2 + ["fast", "slow"] * 3


def test_the_least_ratio_is_that_of_rounds_without_interruptions(clock):
    fast = clock.call("fast", 1.0, 1.0, 9.0, 1.0, 7.0)
    slow = clock.call("slow", 2.0, 2.0, 8.0, 9.0, 2.0)
    assert baselines.least_ratio(fast, slow, rounds=3) == 0.5


def test_rounds_of_short_calls_are_a_millisecond(clock):
    fast, slow = clock.call("fast", 1e-4), clock.call("slow", 4e-4)
    times = baselines.race(fast, slow, rounds=5)
    assert times.ratio == pytest.approx(4.0)
    assert times.seconds == pytest.approx(1e-4)
    # 1, 2, 4 and 8 calls are too few, or 1, 2: the rounds have 16, and 4.
    assert clock.calls.count("fast") == 1 + 31 + 5 * 16
    assert clock.calls.count("slow") == 1 + 7 + 5 * 4


@pytest.mark.slow
@pytest.mark.usefixtures("short_rounds")
def test_tables_have_a_line_for_every_estimator_and_setting(monkeypatch, capsys):
    monkeypatch.setattr(speed_tables, "SIZES", (20, 50))
    monkeypatch.setattr(speed_tables, "BOOTSTRAP_SIZES", (30,))
    speed_tables.main()
    calls, replicates, machine = capsys.readouterr().out.split("\n\n")
    head, _, *lines = [line.split(" | ") for line in calls.splitlines()]
    assert head == ["| setting", "estimator", "20 scores", "50 scores |"]
    assert len(lines) == 3 * len(CALIBRATION_ERRORS)
    assert lines[-1][:2] == ["| classwise", "`ecce_mad` (ece)"]
    assert len(replicates.splitlines()) == 2 + len(CALIBRATION_ERRORS)
    assert re.fullmatch(r"\| `ece` \| .* [mun]?s, .* ns a row, .*x \|", replicates.splitlines()[2])
    assert machine.startswith(f"fastece {fastece.__version__}, Python ")


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
    assert (
        environment.run(["-c", "import numpy; print(numpy.__version__)"]) == f"{np.__version__}\n"
    )


def test_the_least_number_of_all_rounds_is_kept_with_what_belongs_to_it(tmp_path):
    pytest.importorskip("asv")
    measure = importlib.import_module("measure")
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a"]

    def document(times, ratios):
        results = {"time": [times, [], "", 0, 1.0, [10 * x for x in times]], "track": [ratios, []]}
        return {"result_columns": columns, "results": results}

    path = tmp_path / "0.json"
    path.write_text(json.dumps(document([2.0, 3.0], [None, 5.0, 1.0])), encoding="utf-8")
    measure.keep_least(path, document([1.0, 4.0], [7.0, None, np.nan]))
    found = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert (found["time"][0], found["time"][5]) == ([1.0, 3.0], [10.0, 30.0])
    assert found["track"][0] == [7.0, 5.0, 1.0]
