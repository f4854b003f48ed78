"""Results of other code are told apart."""

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
from fastece.study import Design, run_study, store
from fastece.study.store import package_hash
from helpers import study_cases as cases
from helpers.study_cases import SINGLE


def test_results_of_another_version_of_ones_own_estimator_are_refused(
    module, tmp_path, monkeypatch
):
    cases.with_quick_figures(monkeypatch.setattr)
    design = replace(SINGLE, estimators=("own_estimators:Gap",))
    run_study(design, tmp_path / "a")
    run_study(design, tmp_path / "a")
    (module / "own_estimators.py").write_text(cases.OWN + "# better now")
    with pytest.raises(ValueError, match="with source of own_estimators:Gap '"):
        run_study(design, tmp_path / "a")


def test_results_of_other_sources_of_the_package_are_refused(tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    run_study(SINGLE, tmp_path / "a")
    monkeypatch.setattr(store, "package_hash", lambda _: "another")
    with pytest.raises(ValueError, match=r"holds a study with source of fastece '\w+', not 'anoth"):
        run_study(SINGLE, tmp_path / "a")


MODULES = ["study.summary", "study.design"]


def test_the_hash_of_the_package_changes_with_what_decides_on_numbers(tmp_path):
    package = Path(fastece.__file__).parent
    copy = shutil.copytree(package, tmp_path / "fastece", ignore=shutil.ignore_patterns("__pyc*"))
    first = package_hash(MODULES)
    assert package_hash(MODULES, copy) == first
    for name in ("study/figures.py", "cli/commands.py", "plot/marks.py", "report/report.py"):
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write("# other looks")
    assert package_hash(MODULES, copy) == first
    hashes = {first}
    for name in ("kernels/binning.py", "estimators/bayes.py", "study/runner.py"):
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
from fastece.study.design import preset
from fastece.study.runner import run_distribution

design = preset(
    "quick", classes=(2,), features=(2,), models=("naive_bayes",), holdout=1000, n_sizes=1, draws=2
)
run_distribution(design, design.distributions[0])
modules = [module for name, module in sys.modules.items() if name.startswith("fastece.")]
print(*(module.__file__ for module in modules if module is not room))
"""


def test_every_module_that_numbers_come_from_is_in_the_hash(monkeypatch):
    """But for the package's own file, whose version is noted, and files that are a text alone."""
    done = subprocess.run([sys.executable, "-c", DISTRIBUTION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    hashed = []
    monkeypatch.setattr(store, "file_hash", lambda path: hashed.append(str(path)) or "")
    package_hash(MODULES)
    used = {name for name in done.stdout.split() if len(ast.parse(Path(name).read_text()).body) > 1}
    assert len(used) > 40
    assert used <= set(hashed)


def test_what_made_the_results_is_noted(tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    run_study(SINGLE, tmp_path / "a")
    note = json.loads((tmp_path / "a" / "study.json").read_text())
    for package in (fastece, np, numba, scipy, sklearn):
        name = "scikit-learn" if package is sklearn else package.__name__
        assert note.pop(f"version of {name}") == package.__version__
    assert note.pop("source of fastece") == package_hash([*MODULES, "study.base"])
    assert Design(**note) == SINGLE
