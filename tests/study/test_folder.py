"""Folders of a study: one design and one state of the code each."""

import ast
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy
import sklearn

import fastece
from fastece.study import Design, folder, run_study
from fastece.study.folder import open_folder, package_hash
from helpers import study_cases as cases
from helpers.study_cases import SINGLE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draws": 6}, "holds a study with draws 5, not 6"),
        ({"seed": 3}, "seed 0, not 3"),
        ({"convention": "published"}, "'corrected', not 'published'"),
        ({"settings": ("confidence",)}, r"settings \[.*\], not \['confidence'\]"),
    ],
)
def test_a_folder_is_of_one_design(tmp_path, changes, message):
    for _ in range(2):
        open_folder(tmp_path / "a", SINGLE)
    with pytest.raises(ValueError, match=f"out: .*{message}: choose another folder"):
        open_folder(tmp_path / "a", replace(SINGLE, **changes))


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("not mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("not mine")
    for name in ("file", "folder"):
        with pytest.raises(ValueError, match=r"out: .*exists, and holds no study"):
            run_study(SINGLE, tmp_path / name)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["thesis.tex"]
    assert (tmp_path / "file").read_text() == "not mine"


def test_an_empty_folder_and_one_in_folders_that_are_not_there_are_good(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "a" / "b"):
        open_folder(path, SINGLE)
        assert json.loads((path / "study.json").read_text())["draws"] == SINGLE.draws
    (path / "study.json").write_text("{")
    with pytest.raises(ValueError):
        open_folder(path, SINGLE)


def test_results_of_another_version_of_ones_own_estimator_are_refused(module, tmp_path):
    design = replace(SINGLE, estimators=("own_estimators:Gap",))
    open_folder(tmp_path / "a", design)
    open_folder(tmp_path / "a", design)
    (module / "own_estimators.py").write_text(cases.OWN + "# better now")
    with pytest.raises(ValueError, match="with source of own_estimators:Gap '"):
        open_folder(tmp_path / "a", design)


def test_results_of_other_sources_of_the_package_are_refused(tmp_path, monkeypatch):
    open_folder(tmp_path / "a", SINGLE)
    monkeypatch.setattr(folder, "package_hash", lambda _: "another")
    with pytest.raises(ValueError, match=r"holds a study with source of fastece '\w+', not 'anoth"):
        open_folder(tmp_path / "a", SINGLE)


MODULES = ["study.summary", "study.simulated", "study.design"]


def test_the_hash_of_the_package_changes_with_what_decides_on_numbers(tmp_path):
    package = Path(fastece.__file__).parent
    copy = shutil.copytree(package, tmp_path / "fastece", ignore=shutil.ignore_patterns("__pyc*"))
    first = package_hash(MODULES)
    assert package_hash(MODULES, copy) == first
    for name in ("study/figures.py", "cli/output.py", "display/marks.py", "report/report.py"):
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write("# other looks")
    assert package_hash(MODULES, copy) == first
    hashes = {first}
    for name in ("kernels/binning.py", "estimators/bayes/estimator.py", "study/estimation.py"):
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write("# other numbers")
        hashes.add(package_hash(MODULES, copy))
    (copy / "kernels" / "binning.py").rename(copy / "kernels" / "renamed.py")
    assert len({*hashes, package_hash(MODULES, copy)}) == 5


DISTRIBUTION = """
import sys, types
from pathlib import Path
import fastece

room = sys.modules["fastece.study"] = types.ModuleType("fastece.study")  # which shows all of it
room.__path__ = [str(Path(fastece.__file__).parent / "study")]

from fastece.study import summary
from fastece.study.simulated import preset
from fastece.study.estimation import run_distribution

design = preset(
    "quick", classes=(2,), features=(2,), models=("naive_bayes",), holdout=1000, n_sizes=1, draws=2
)
run_distribution(design, design.distributions[0])
modules = [module for name, module in sys.modules.items() if name.startswith("fastece.")]
print(*(module.__file__ for module in modules if module is not room))
"""


@pytest.mark.slow
def test_every_module_that_numbers_come_from_is_in_the_hash(monkeypatch):
    """Except the package's own file, whose version is noted, and files that are a text alone."""
    done = subprocess.run([sys.executable, "-c", DISTRIBUTION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    hashed = []
    monkeypatch.setattr(folder, "file_hash", lambda path: hashed.append(str(path)) or "")
    package_hash(MODULES)
    used = {name for name in done.stdout.split() if len(ast.parse(Path(name).read_text()).body) > 1}
    assert len(used) > 40
    assert used <= set(hashed)


def test_what_made_the_results_is_noted(tmp_path):
    open_folder(tmp_path / "a", SINGLE)
    note = json.loads((tmp_path / "a" / "study.json").read_text())
    for package in (fastece, np, numba, scipy, sklearn):
        name = "scikit-learn" if package is sklearn else package.__name__
        assert note.pop(f"version of {name}") == package.__version__
    assert note.pop("source of fastece") == package_hash(MODULES)
    assert Design(**note) == SINGLE
