"""Draws and replicates are the same, bit for bit, in every version and on every machine."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
SCRIPT = FOLDER.parent / "scripts" / "data" / "make_bootstrap_golden.py"


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kept():
    return json.loads((FOLDER / "fixtures" / "bootstrap.json").read_text(encoding="utf-8"))


def test_draws_equal_the_saved_draws(script, kept):
    assert script.draws() == kept["draws"]


def test_replicates_equal_the_saved_replicates(script, kept):
    replicates = script.replicates()
    assert list(replicates) == list(kept["replicates"])
    for name, values in replicates.items():
        assert values == kept["replicates"][name], name
