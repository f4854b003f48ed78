"""Folders of a study: one design and one version each."""

import json
from dataclasses import replace

import numba
import numpy as np
import pytest
import scipy
import sklearn

import fastece
from fastece.study import Design, folder, run_study
from fastece.study.folder import open_folder
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
    with pytest.raises(ValueError, match="with content of own_estimators:Gap '"):
        open_folder(tmp_path / "a", design)


def test_results_of_another_version_are_refused(tmp_path, monkeypatch):
    open_folder(tmp_path / "a", SINGLE)
    monkeypatch.setattr(folder, "__version__", "0.0.1")
    with pytest.raises(
        ValueError, match=r"holds a study with version of fastece '.*', not '0\.0\.1': choose"
    ):
        open_folder(tmp_path / "a", SINGLE)


def test_versions_and_the_design_are_noted(tmp_path):
    open_folder(tmp_path / "a", SINGLE)
    note = json.loads((tmp_path / "a" / "study.json").read_text())
    for package in (fastece, np, numba, scipy, sklearn):
        name = "scikit-learn" if package is sklearn else package.__name__
        assert note.pop(f"version of {name}") == package.__version__
    assert Design(**note) == SINGLE
