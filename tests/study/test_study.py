"""A whole study: its files, the same bits however it is run, and the command."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

from fastece.cli import main
from fastece.study import Design, run_study
from fastece.study.estimation import run_distribution
from fastece.study.summary import ranking_of, summarise
from helpers import study_cases as cases
from helpers.study_cases import FIFTEEN, SINGLE, SIXTEEN, TINY, contents

FILES = cases.TABLES + cases.PICTURES


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of TINY, run at one go by one process, and what was returned."""
    folder = tmp_path_factory.mktemp("study") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        cases.with_quick_figures(patch.setattr)
        return folder, run_study(TINY, folder, n_jobs=1)


@pytest.mark.slow
def test_the_files_of_a_study(whole):
    folder, result = whole
    names = {path.name for path in folder.iterdir()}
    assert names == {*FILES, "timings.csv", "distributions"}
    cells = {which.file_name for which in TINY.distributions}
    assert {path.name for path in (folder / "distributions").iterdir()} == cells
    assert len(cells) == len(TINY.distributions) == 4
    assert result.evaluations == 4 * 2 * 16 * 2 * 3


@pytest.mark.slow
def test_two_processes_give_the_same_bits(whole, tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    run_study(TINY, tmp_path / "two", n_jobs=2)
    cases.assert_same_files(tmp_path / "two", whole[0], FILES)


@pytest.mark.slow
def test_a_pool_of_threads_gives_the_same_bits_and_leaves_threads_as_they_were(whole, tmp_path):
    before = [(pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    for i in range(2):
        with ThreadPoolExecutor(3) as pool:
            run_study(TINY, tmp_path / f"pool{i}", executor=pool, pictures=False)
        cases.assert_same_files(tmp_path / f"pool{i}", whole[0], cases.TABLES)
    after = [(pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    assert after == before


@pytest.mark.slow
def test_a_finished_study_is_only_put_together_again(whole, monkeypatch):
    folder, result = whole
    before = contents(folder, FILES)
    monkeypatch.setattr(
        "fastece.study.run.run_distribution", lambda *_: pytest.fail("computed again")
    )
    again = run_study(TINY, folder, pictures=False)
    for name in ("values", "summary"):
        assert getattr(again, name).equals(getattr(result, name)), name
    assert str(again) == str(result)  # the mean rank of zero is nan, which equals nothing
    assert again.seconds == result.seconds
    assert contents(folder, FILES) == before


def test_executor_and_processes_exclude_each_other(tmp_path):
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ValueError, match=r"n_jobs.*executor"),
    ):
        run_study(TINY, tmp_path / "both", n_jobs=2, executor=pool)
    with pytest.raises(TypeError, match="executor: must have a method submit"):
        run_study(TINY, tmp_path / "none", executor=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_error_of_one_distribution_reaches_the_caller(tmp_path, monkeypatch):
    def fail(design, which):
        if which == TINY.distributions[2]:
            raise ZeroDivisionError("broken on purpose")
        return run_distribution(design, which)

    monkeypatch.setattr("fastece.study.run.run_distribution", fail)
    with pytest.raises(ZeroDivisionError, match="broken on purpose"):
        run_study(TINY, tmp_path / "failed")
    with (
        ThreadPoolExecutor(2) as pool,
        pytest.raises(ZeroDivisionError, match="broken on purpose"),
    ):
        run_study(TINY, tmp_path / "failed in a pool", executor=pool)
    assert len(list((tmp_path / "failed" / "distributions").iterdir())) == 2


@pytest.mark.slow
def test_values_of_a_study_are_those_of_its_distributions(whole):
    _, result = whole
    for which in TINY.distributions[::3]:
        estimates, truths, _ = run_distribution(TINY, which)
        mine = {
            (row["setting"], row["estimator"], row["n"]): row
            for row in result.values.to_pylist()
            if all(row[name] == value for name, value in which._asdict().items())
        }
        assert len(mine) == 2 * 17 * 2
        for s, setting in enumerate(TINY.settings):
            for e, name in enumerate([*SIXTEEN, "zero"]):
                for i, n in enumerate(TINY.sizes):
                    row = mine[setting, name, n]
                    truth = row["truth"], row["truth_labels"], row["truth_se"]
                    assert truth == truths[s]
                    assert row["mean"] == pytest.approx(estimates[s, e, i].mean())


def assert_same_tables(found, want):
    """Tables that may hold nan."""
    assert found.column_names == want.column_names
    for name in want.column_names:
        np.testing.assert_array_equal(found[name].to_numpy(), want[name].to_numpy())


@pytest.mark.slow
def test_the_published_study_is_measured_against_labels_without_division(tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    corrected = run_study(SINGLE, tmp_path / "corrected")
    design = replace(SINGLE, convention="published")
    published = run_study(design, tmp_path / "published")
    assert_same_tables(published.summary, summarise(published.values, design, "labels"))
    assert_same_tables(corrected.summary, summarise(corrected.values, SINGLE, "posterior"))
    ranked = ranking_of(published.summary, "p95_absolute_error")
    assert_same_tables(published.ranking, ranked)
    names = {path.name for path in (tmp_path / "published").iterdir()}
    assert "summary_posterior.csv" in names
    assert "summary_labels.csv" not in names
    # The median of one distribution is its value.
    zero = [row for row in published.summary.to_pylist() if row["estimator"] == "zero"]
    truth = published.values["truth_labels"].to_pylist()
    for row in zero:
        assert row["p95_absolute_error"] in truth
    assert "published convention" in str(published)


def run(capsys, arguments):
    code = main([str(a) for a in ("study", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_command_in_words(capsys, tmp_path):
    code, out, err = run(capsys, ["--out", tmp_path / "a", "--jobs", 1])
    assert (code, err) == (0, "")
    for text in ("1 distributions of scores", "3 sizes from 10 to 40", "5 draws",
                 "480 evaluations", "corrected convention", "confidence", "classwise", "rank",
                 "n = 10", "n = 40", "zero", str(tmp_path / "a")):  # fmt: skip
        assert text in out, text
    for name in SIXTEEN:
        assert out.count(f" {name} ") == 2, name
    assert out == str(run_study(SINGLE, tmp_path / "a")) + "\n"


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_command_as_json(capsys, tmp_path):
    code, out, err = run(capsys, ["--out", tmp_path / "a", "--jobs", 1, "--json"])
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    answer = json.loads(out)
    keys = {"design", "folder", "evaluations", "seconds", "summary", "ranking", "truths"}
    assert set(answer) == keys
    assert Design(**answer["design"]) == SINGLE
    assert answer["folder"] == str(tmp_path / "a")
    assert answer["evaluations"] == 480
    assert len(answer["summary"]) == 2 * 17 * 3
    zero = [row for row in answer["summary"] if row["estimator"] == "zero"]
    assert {row["median_abs_log_ratio"] for row in zero} == {"inf"}  # JSON has no infinity
    assert {row["p95_relative_error"] for row in zero} == {1.0}
    result = run_study(SINGLE, tmp_path / "a")
    assert result.to_dict()["seconds"] == answer["seconds"]


@pytest.mark.slow
@pytest.mark.usefixtures("quick", "module")
def test_options_of_the_command_change_the_design(capsys, tmp_path):
    code, out, _ = run(
        capsys,
        ["--out", tmp_path / "a", "--jobs", 1, "--json", "--holdout", 1500, "--largest", 20,
         "--draws", 3, "--seed", 9, "--convention", "published", "--estimator",
         "own_estimators:Gap", "--estimator", "own_estimators:ready"],
    )  # fmt: skip
    assert code == 0
    answer = json.loads(out)
    want = replace(
        SINGLE, holdout=1500, largest=20, draws=3, seed=9, convention="published",
        estimators=("own_estimators:Gap", "own_estimators:ready"),
    )  # fmt: skip
    assert Design(**answer["design"]) == want
    assert answer["evaluations"] == 17 * 2 * 3 * 3
    names = {row["estimator"] for row in answer["summary"]}
    assert names == {*FIFTEEN, "Gap", "ready", "zero"}


@pytest.mark.slow
@pytest.mark.usefixtures("quick", "module")
def test_the_folder_is_named_after_what_is_given(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (
        [],
        ["--convention", "published", "--seed", 9],
        ["--estimator", "own_estimators:Gap", "--draws", 3],
    ):
        code, _, err = run(capsys, ["--jobs", 1, *arguments])
        assert (code, err) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "modules") == [
        "fastece-study-quick",
        "fastece-study-quick-convention-published-seed-9",
        "fastece-study-quick-draws-3-Gap",
    ]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "full"], "got 'full'; known: 'quick', 'paper'"),
        (["--largest", 5], "largest: must be from smallest (10)"),
        (["--estimator", "nothing"], 'must be "module:name"'),
        (["--estimator", "no_such_module:x"], "'no_such_module:x' was not found"),
        (["--estimator", "os:getcwd"], "estimator"),
        (["--estimator", "fastece:Binned", "--estimator", "fastece:Binned"], "twice"),
        (["--jobs", 0], "jobs"),
    ],
)
def test_bad_options_are_answered_in_one_line(capsys, tmp_path, arguments, message):
    code, out, err = run(capsys, ["--out", tmp_path / "a", *arguments])
    assert (code, out) == (2, "")
    assert err.startswith("fastece: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (tmp_path / "a").exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "missing", ["sklearn", "pyarrow", "matplotlib", "joblib", "tqdm", "threadpoolctl"]
)
def test_without_a_package_of_the_extra_the_command_says_what_to_install(
    capsys, tmp_path, monkeypatch, missing
):
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = run(capsys, ["--out", tmp_path / "a"])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'fastece[study]'" in err
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_command_finds_modules_of_the_working_folder(module, monkeypatch, capsys, tmp_path):
    before = [path for path in sys.path if path not in (str(module), "", str(Path.cwd()))]
    monkeypatch.setattr(sys, "path", before.copy())
    monkeypatch.chdir(module)
    # Which must not take the place of a module of Python that nobody has imported so far.
    (module / "colorsys.py").write_text("raise AssertionError('of the working folder')")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (module / "own_here.py").write_text(f"import colorsys\n{cases.OWN}")
    code, out, err = run(
        capsys, ["--out", tmp_path / "a", "--jobs", 1, "--estimator", "own_here:Gap"]
    )
    assert (code, err) == (0, "")
    assert out.count(" Gap ") == 2
    assert sys.path == [*before, str(module)]
