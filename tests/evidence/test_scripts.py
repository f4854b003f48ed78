"""Scripts of evidence run small, and write files with the columns of the published ones."""

import csv
import importlib
import sys

import numpy as np
import possible_widths
import pytest
import recalibration_maps
import study_arenas
import study_best
from class_coverage import Size
from million_replicates import WORKERS
from results import FOLDER, write_table
from scipy.stats import binom

MODELS = possible_widths.models()
ONE = ["--simulations", "1", "--replicates", "9", "--sizes"]
# Scripts with options and constants of a small run.
SMALL = [
    ("bayes_shapes", ["--draws", "1"], {"POPULATION": 2000}),
    ("best_power", [], {"DRAWS": 200, "SAMPLES": 1}),
    ("class_coverage", [], {"SIZES": [Size(3, 100, 2)], "REFERENCE": 2000}),
    ("compare_coverage", ["--simulations", "1", "--pairs", "shifts .7 and -.7"], {}),
    ("curve_coverage", ["--simulations", "1", "--resamples", "9"], {}),
    ("estimate_coverage", ["estimate", *ONE, "50"], {}),
    ("estimate_coverage", ["compare", *ONE, "200", "1000"], {}),
    ("estimate_coverage", ["alarms", *ONE, "200", "1000"], {}),
    ("estimate_coverage", ["direction", *ONE, "50"], {}),
    ("estimate_coverage", ["slices", *ONE, "50"], {}),
    ("gate_alarms", ["--draws", "1"], {"POPULATION": 2000}),
    ("group_coverage", ["--simulations", "1", "--resamples", "9"], {"GROUPS": (40,)}),
    ("interval_coverage", ["--simulations", "2", "--replicates", "40", "--sizes", "200"], {}),
    ("joint_p_values", ["1", "1", "--design", "5 "], {}),
    ("kde_accuracy", ["--cases", "8", "--largest", "300"], {}),
    ("map_wins", [], {"SETS": 20, "LARGEST": 60, "HALVES": 1, "REAL_SIZES": (100,)}),
    ("million_replicates", ["200"], {"WORKERS": {"one thread": WORKERS["one thread"]}}),
    ("monitor_days", ["alarms", "--streams", "20", "--jobs", "1"], {}),
    ("monitor_days", ["days", "--streams", "1", "--jobs", "1"], {}),
    ("monitor_days", ["speed", "--streams", "1", "--jobs", "1"], {}),
    ("possible_widths", [], {
        "DRAWS": 200, "DRAWS_TO_CHOOSE": 100, "PLACES": 3, "SAMPLES": 1, "SIZES": (200,),
        "models": lambda: MODELS[:2],
    }),
    ("power", ["2", "2"], {}),
    ("published_benchmark", ["--samples", "1", "--jobs", "1"], {"SIZES": (200,)}),
    ("soft_coverage", ["--simulations", "1", "--resamples", "9"], {"ROWS": (100,)}),
    ("validate_coverage", ["--simulations", "1", "--sizes", "60"], {"POPULATION": 200}),
    ("threshold_promises", ["--simulations", "1", "--jobs", "1", "--laws", "on edge"], {
        "POPULATION": 20_000
    }),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "options", "constants"),
    [pytest.param(*case, id="-".join([case[0], *case[1][:1]])) for case in SMALL],
)
def test_small_run_writes_the_columns_of_the_published_file(
    name, options, constants, monkeypatch, tmp_path
):
    script = importlib.import_module(name)
    for constant, value in constants.items():
        monkeypatch.setattr(script, constant, value)
    monkeypatch.setattr(sys, "argv", [name, *options, "--out", str(tmp_path)])
    script.main()
    written = [*tmp_path.iterdir()]
    assert written
    for path in written:
        head, *rows = read(path)
        assert head == read(FOLDER / path.name)[0]
        assert {len(row) for row in rows} <= {len(head)}


def read(path):
    """The rows of a file of results, its head first."""
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)]


def read_dicts(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


@pytest.mark.parametrize("setting", ["confidence", "classwise"])
def test_tables_of_arenas_are_made_of_their_data(setting):
    table = [*study_arenas.table_rows(read_dicts(study_arenas.DATA), setting)]
    assert read(FOLDER / f"arenas_{setting}.csv")[1:] == table


def test_table_of_recalibration_maps_is_made_of_its_data():
    rows = [{**row, "n": int(row["n"])} for row in read_dicts(recalibration_maps.DATA)]
    assert read(FOLDER / "recalibration_maps.csv")[1:] == [*recalibration_maps.table_rows(rows)]


def test_table_of_the_best_estimators_is_made_of_its_data():
    assert read(FOLDER / "study_best.csv") == [study_best.HEAD, *study_best.table_rows()]


def test_an_interrupted_run_leaves_the_old_file(tmp_path):
    write_table(tmp_path, "kept", ["rows"], [["1"]])

    def interrupted():
        yield ["2"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(tmp_path, "kept", ["rows"], interrupted())
    assert (tmp_path / "kept.csv").read_text() == "rows\n1\n"


def test_best_power_is_the_power_of_the_exact_test():
    n, null, drawn = 60, 0.5, 0.65
    hits = np.random.default_rng(0).binomial(n, drawn, 100_000)
    ratio = (null / drawn) ** hits * ((1 - null) / (1 - drawn)) ** (n - hits)
    # The exact test rejects many hits, and at the last number some of the samples.
    first = binom.ppf(0.95, n, null)
    share = (0.05 - binom.sf(first, n, null)) / binom.pmf(first, n, null)
    exact = binom.sf(first, n, drawn) + share * binom.pmf(first, n, drawn)
    assert possible_widths.best_power(ratio) == pytest.approx(exact, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.01, 0.03, 0.08])
def test_curves_of_a_bound_have_its_error(error):
    score = possible_widths.quantile_scores()
    for model in possible_widths.models():
        problem = possible_widths.Problem(score, model.curve(score) - score, 1000)
        *_, largest_mixture = possible_widths.smooth_mixtures(problem, error)
        gaps = [*largest_mixture.args[0]]
        for mixture in possible_widths.block_mixtures(problem, error):
            gaps += mixture.args[:2]
        for gap in gaps:
            assert np.abs(gap).mean() == pytest.approx(error, rel=1e-6)
            assert 0 < (score + gap).min() < (score + gap).max() < 1
