"""No kernel without a test that names it, or of a kernel that calls it."""

import ast
from pathlib import Path

import fastece

FOLDER = Path(fastece.__file__).parent / "kernels"
TESTS = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))


def is_kernel(node):
    return any(isinstance(x, ast.Name) and x.id == "jit" for x in node.decorator_list)


def test_every_kernel_is_tested_by_name():
    kernels = {}
    called = set()
    for path in FOLDER.glob("[a-z]*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and is_kernel(node):
                kernels[f"{path.stem}.{node.name}"] = node.name
                called |= {x.func.id for x in ast.walk(node)
                           if isinstance(x, ast.Call) and isinstance(x.func, ast.Name)}  # fmt: skip
    assert len(kernels) > 100
    assert not [
        name for name, short in kernels.items() if short not in called and name not in TESTS
    ]
