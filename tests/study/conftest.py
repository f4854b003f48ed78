"""Without the packages of the extra "study", its tests are left out."""

import sys
from importlib.util import find_spec

import pytest

from fastece.study import PRESETS
from helpers import study_cases as cases

PACKAGES = ("joblib", "matplotlib", "pyarrow", "sklearn", "threadpoolctl", "tqdm")
if not all(map(find_spec, PACKAGES)):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module with estimators, on the path."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_estimators.py").write_text(cases.OWN)
    (folder / "own_broken.py").write_text("import nothing_like_this\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "own_estimators", raising=False)
    return folder


@pytest.fixture
def quick(monkeypatch):
    """The preset "quick" is SINGLE, and pictures take no time."""
    cases.with_quick_figures(monkeypatch.setattr)
    monkeypatch.setitem(PRESETS, "quick", cases.SINGLE)
