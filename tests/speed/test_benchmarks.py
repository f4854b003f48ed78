"""Every benchmark runs at its smallest size and measures the right function."""

import importlib
import inspect
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import fastece
from benchmarks import baselines, opponents

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
    "Structured",
    "Temperature",
}
QUICK = [x for x in BENCHMARKS if x.__name__ not in SLOW]
SINGLE = [x for x in BENCHMARKS if issubclass(x, COMMON.Single)]
REPLICATED = [x for x in BENCHMARKS if issubclass(x, COMMON.Replicated)]
# In these benchmarks, the call and the other call compute the same number.
WITH_EQUAL_NUMBERS = {"Opponents", "Scores", "ScoresOfVectors", "CanonicalError", "KernelError"}
# Estimators that are compared with the baseline of "ece".
WITHOUT_BASELINE = {
    str(row) for name, row in fastece.ESTIMATORS.items() if name not in baselines.BASELINES
}
# The smallest report takes more than two seconds. A report of a thousand classes takes 20 s, and
# runs the same code as one of ten.
REPORT = MODULES["report"].Report


def name_of(benchmark_class):
    return benchmark_class.__name__


def methods_of(benchmark):
    """The names of the methods that asv runs."""
    return [name for name in dir(benchmark) if name.startswith(("time_", "track_", "peakmem_"))]


def first_parameters(benchmark_class, n):
    """The first value of each parameter, and `n` rows."""
    lists = zip(benchmark_class.param_names, benchmark_class.params, strict=True)
    return [n if name == "n" else values[0] for name, values in lists]


@pytest.fixture
def short_rounds(monkeypatch):
    monkeypatch.setattr(baselines, "MIN_SECONDS_PER_ROUND", 0)
    monkeypatch.setattr(baselines, "ROWS_PER_CALL", 0)
    monkeypatch.setattr(baselines, "MIN_REPLICATES", 5)
    monkeypatch.setattr(baselines, "MAX_LOOP_REPLICATES", 5)


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize(
    "benchmark_class",
    [pytest.param(x, id=x.__name__, marks=[pytest.mark.slow] * (x is REPORT)) for x in QUICK],
)
def test_benchmark_runs(benchmark_class):
    params = first_parameters(benchmark_class, 300)
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


@pytest.mark.parametrize("benchmark_class", SINGLE, ids=name_of)
def test_baseline_of_a_single_call_gives_the_same_number(benchmark_class):
    params = first_parameters(benchmark_class, 3000)
    params = ["logits" if value == "probabilities" else value for value in params]
    benchmark = benchmark_class()
    benchmark.setup(*params)
    # Baselines compute densities on another grid, and fastece has them right to a thousandth.
    tolerance = 1e-4 if "ece_kde" in params else 1e-6
    assert benchmark.call() == pytest.approx(benchmark.baseline(), abs=tolerance)


# Replicates of the call and of the loop: enough to see a wrong loop, as the means have to agree
# within five standard errors of their difference.
N_REPLICATES = 320


@pytest.mark.slow
@pytest.mark.parametrize("benchmark_class", REPLICATED, ids=name_of)
def test_loop_beside_a_call_has_the_same_distribution(benchmark_class, monkeypatch):
    monkeypatch.setattr(baselines, "ROWS_PER_CALL", 0)
    monkeypatch.setattr(baselines, "MIN_REPLICATES", N_REPLICATES)
    monkeypatch.setattr(baselines, "ROWS_PER_LOOP", 0)
    monkeypatch.setattr(baselines, "MIN_LOOP_REPLICATES", N_REPLICATES)
    monkeypatch.setattr(baselines, "MAX_LOOP_REPLICATES", N_REPLICATES)
    benchmark = benchmark_class()
    benchmark.setup(*first_parameters(benchmark_class, 60))
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


def test_another_fastece_than_the_one_to_be_measured_is_refused(tmp_path):
    root = str(Path(fastece.__file__).parents[1])
    assert COMMON.run_fresh("import benchmarks", FASTECE_MEASURED=root) == ""
    with pytest.raises(RuntimeError, match="to be measured is"):
        COMMON.run_fresh("import benchmarks", FASTECE_MEASURED=str(tmp_path))


# With tied scores, baselines count some of them on the wrong side of an edge, or have other edges.
ESTIMATORS_AND_SHAPES = [
    (estimator, shape)
    for estimator in baselines.BASELINES
    for shape in baselines.SHAPES
    if shape != "tied" and (shape != "zeros" or estimator in ("ece", "ece_c"))
]


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
    monkeypatch.setattr(check_change, "MIN_GROUPS", 1)  # the loop is far beyond any noise
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
