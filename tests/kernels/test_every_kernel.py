"""No kernel without a test that names it."""

import ast
import importlib
from pathlib import Path

import pytest

import fastece

FOLDER = Path(fastece.__file__).parent / "kernels"
TESTS = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))


KERNELS = {path.stem for path in FOLDER.glob("[a-z]*.py")}


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_every_kernel_is_tested_by_name(name):
    module = importlib.import_module(f"fastece.kernels.{name}")
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        assert hasattr(module, function)
        assert f"{name}.{function}" in TESTS, f"no test of {name}.{function}"
