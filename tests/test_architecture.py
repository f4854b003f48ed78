"""The shape of the package: imports point one way, optional packages stay in the leaves."""

import ast
import subprocess
import sys
from pathlib import Path

import fastece

FOLDER = Path(fastece.__file__).parent
# From the bottom up: a module imports, at its top, modules of lower layers only.
LAYERS = [
    {"kernels._jit"},
    {
        "kernels.binning", "kernels.logits", "kernels.quantiles", "kernels.reading",
        "kernels.resampling",
    },
    {"kernels.blocks", "kernels.moments"},
    {"kernels.beta", "kernels.density", "kernels.subsets"},
    {"kernels", "validation"},
    {"grids", "intervals", "protocol"},
    {"blocks", "resampling", "results", "settings", "sums"},
    {"bandwidths", "engine", "smoothing"},
    {"beta"},
    {"binned", "kde"},
    {"estimators"},
    {"calls", "files", "reliability", "scores", "sweeps", "yardstick"},
    {"bench", "consistency", "curves", "inference"},
    {"drawing", "report", "warmup"},
    {"comparison", "curve_report", "plot"},
    {"pictures"},
    {"study.distributions", "study.models", "study.truth"},
    {"study.contestants", "study.design"},
    {"study.published", "study.store"},
    {"study.figures", "study.runner"},
    {"study.summary"},
    {"study.study"},
    {"study"},
    {"cli"},
    {"__main__"},
]  # fmt: skip
CORE = {"numba", "llvmlite", "numpy", "scipy"}


def modules():
    """Name and syntax tree of every module."""
    for path in sorted(FOLDER.rglob("*.py")):
        name = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        yield name.removesuffix(".__init__"), ast.parse(path.read_text(encoding="utf-8"))


def imports(nodes):
    """Full names of what these statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module
            yield from (f"{module}.{a.name}" if module == "fastece" else module for a in node.names)


def test_imports_point_one_way():
    level = {name: i for i, names in enumerate(LAYERS) for name in names}
    for name, tree in modules():
        if name == "__init__":
            continue
        assert name in level, f"give {name} a layer"
        for target in imports(tree.body):
            target = target.removeprefix("fastece.")
            assert target not in level or level[target] < level[name], f"{name} imports {target}"


def test_optional_packages_are_imported_inside_functions_of_the_leaves():
    for name, tree in modules():
        top = {target.partition(".")[0] for target in imports(tree.body)}
        assert top <= CORE | set(sys.stdlib_module_names) | {"fastece"}, name
        every = {target.partition(".")[0] for target in imports(ast.walk(tree))}
        optional = every - CORE - set(sys.stdlib_module_names) - {"fastece"}
        leaves = {"curves", "drawing", "files", "pictures", "plot", "reliability"}
        is_leaf = name in leaves or name.startswith("study.")
        assert is_leaf or not optional, (name, optional)


def test_kernels_import_numba_and_numpy_and_each_other_alone():
    for name, tree in modules():
        if name.startswith("kernels."):
            for target in imports(tree.body):
                first = target.partition(".")[0]
                outside = first not in CORE | set(sys.stdlib_module_names)
                assert not outside or target.startswith("fastece.kernels."), (name, target)


def test_one_decorator_owns_the_options_of_numba():
    for path in FOLDER.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "prange" not in text
        assert path.name == "_jit.py" or ("njit" not in text and "import numba" not in text), path


def run_python(code):
    """Standard output of a new process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_does_not_import_numba_or_scipy():
    code = (
        "import fastece, sys; print([m for m in ('numba', 'scipy', 'numpy') if m in sys.modules])"
    )
    assert run_python(code) == "[]"


def test_importing_the_functions_does_not_import_numba():
    code = (
        "from fastece import ece, reliability_diagram, Binned; import sys;"
        "print([m for m in ('numba', 'scipy', 'matplotlib', 'pandas') if m in sys.modules])"
    )
    assert run_python(code) == "[]"


def test_every_public_name_is_there_and_documented():
    assert set(fastece.__all__) <= set(dir(fastece))
    for name in fastece.__all__:
        assert getattr(fastece, name).__doc__, name
    assert run_python("import fastece; print(hasattr(fastece, 'nothing'))") == "False"


def test_every_function_fits_a_screen():
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
                body = node.body[1:] or node.body
                lines = body[-1].end_lineno - body[0].lineno + 1
                assert lines <= 60, f"{name}.{node.name} has {lines} lines"
