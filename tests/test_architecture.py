"""The shape of the package: imports point one way, optional packages stay in the leaves, and a
function fits a screen."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import fastece

FOLDER = Path(fastece.__file__).parent
# From the bottom up: what is in a room imports, at its top, rooms of lower layers, and modules of
# its own room.
LAYERS = [
    {"typing"},
    {"kernels"},
    {"inputs", "protocol"},
    {"problems"},
    {"binned", "canonical", "kde", "losses"},
    {"bayes"},
    {"estimators"},
    {"resampling", "scores"},
    {"answer", "canonical_errors", "proper_scores"},
    {"reliability", "decomposition"},
    {"plot", "report", "speed", "study", "recalibration", "streams"}
    | {"compat", "sklearn", "distributed", "training", "cli"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
# Nobody below imports them, so they alone may use optional packages, and one another.
LEAVES = LAYERS[-1]
CORE = {"fastece", "numba", "llvmlite", "numpy", "scipy"} | set(sys.stdlib_module_names)


@cache
def modules():
    """Name -> syntax tree of every module: "kernels.binning", "kernels" for its folder."""
    trees = {}
    for path in sorted(FOLDER.rglob("*.py")):
        name = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        trees[name.removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def imports(nodes):
    """Full names of what statements import: of modules, or of what may be a name in one."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def own_imports(name):
    """Modules of the package that a module imports at its top, where it is not for types alone."""
    found = set()
    for target in imports(modules()[name].body):
        target = target.removeprefix("fastece.")
        module = target if target in modules() else target.rpartition(".")[0]
        if module in modules() and module != name:
            found.add(module)
    return found


def room_of(name):
    return name.partition(".")[0]


def inner_modules():
    """All modules but those that stand above all layers."""
    return [name for name in modules() if name not in ("__init__", "__main__")]


def assert_no_circle(edges):
    """`edges` leads from each name to those that it needs."""
    done = set()
    while len(done) < len(edges):
        ready = {name for name, needs in edges.items() if name not in done and needs <= done}
        assert ready, f"a circle among {sorted(set(edges) - done)}"
        done |= ready


def test_imports_point_one_way_from_room_to_room():
    for name in inner_modules():
        room = room_of(name)
        assert room in LEVEL, f"{room} has no layer"
        for below in map(room_of, own_imports(name)):
            among_leaves = {room, below} <= LEAVES
            is_below = below == room or among_leaves or LEVEL[below] < LEVEL[room]
            assert is_below, f"{name} imports {below}"


def test_there_is_no_circle_of_leaves_or_within_a_room():
    # A room's own file, which shows what is in it, is not asked back.
    assert_no_circle({n: {m for m in own_imports(n) if "." in m} for n in inner_modules()})
    leaves = {leaf: set() for leaf in LEAVES}
    for name in inner_modules():
        if room_of(name) in LEAVES:
            found = {room_of(other) for other in own_imports(name)} & LEAVES
            leaves[room_of(name)] |= found - {room_of(name)}
    assert_no_circle(leaves)


def test_every_layer_is_in_use():
    assert {room_of(name) for name in inner_modules()} == set(LEVEL)


def test_optional_packages_are_imported_inside_functions_of_the_leaves():
    # Files are read with pyarrow, and results draw and frame themselves, where these are there.
    others = ("inputs.files", "reliability.", "resampling.results")
    for name, tree in modules().items():
        top = {target.partition(".")[0] for target in imports(tree.body)}
        assert top <= CORE, name
        optional = {target.partition(".")[0] for target in imports(ast.walk(tree))} - CORE
        may = room_of(name) in LEAVES or name.startswith(others)
        assert may or not optional, (name, optional)


def test_kernels_import_numba_and_numpy_and_each_other_alone():
    for name, tree in modules().items():
        if room_of(name) == "kernels":
            own = [target for target in imports(tree.body) if target.startswith("fastece")]
            allowed = ("fastece.kernels", "fastece.typing")  # the latter: names of array types
            assert all(target.startswith(allowed) for target in own), (name, own)


def test_one_decorator_owns_the_options_of_numba():
    sources = {path: path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")}
    (home,) = [path for path, text in sources.items() if "njit" in text]
    assert home.parent == FOLDER / "kernels"
    cache = home.with_name("cache.py")
    for path, text in sources.items():
        assert "prange" not in text
        assert path in (home, cache) or not re.search("(import|from) numba", text), path


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
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                documented = ast.get_docstring(node) is not None and len(node.body) > 1
                first = node.body[1 if documented else 0]
                lines = node.body[-1].end_lineno - first.lineno + 1
                assert lines <= 60, f"{name}.{node.name} has {lines} lines"


def test_the_package_is_short():
    sources = [path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")]
    # 12,000; 3,300 for the answer (the Bayesian curve, intervals by test inversion, studies of
    # files); 4,800 for the report (scores, estimators of the literature, direction, slices,
    # pictures, formats of files, the page); 2,900 for recalibration and files that are written
    # again; 3,300 for streams, groups, clusters and large files; 2,500 for the functions of other
    # libraries and for scikit-learn; 1,600 for errors of all classes at once.
    assert sum(source.count("\n") for source in sources) < 30_800
