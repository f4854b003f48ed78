"""The shape of the package: imports point one way, optional packages stay in the leaves."""

import ast
import subprocess
import sys
from pathlib import Path

import fastece

FOLDER = Path(fastece.__file__).parent
# From the bottom up: what is in a room imports, at its top, rooms of lower layers only, and its
# neighbours in the same room without a circle.
LAYERS = [
    {"kernels"},
    {"inputs", "protocol"},
    {"problems"},
    {"binned"},
    {"kde"},
    {"estimators"},
    {"resampling", "scores"},
    {"reliability"},
    {"plot", "speed"},
    {"study"},
    {"cli"},
    {"__main__"},
]
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


def own_imports(name, tree):
    """Modules of the package that a module imports at its top."""
    known = {module for module, _ in modules()}
    for node in tree.body:
        for target in imports([node]):
            target = target.removeprefix("fastece.")
            names = [a.name for a in getattr(node, "names", ())]
            inner = [f"{target}.{n}" for n in names if f"{target}.{n}" in known]
            yield from (t for t in inner or [target] if t in known and t != name)


def room_of(name):
    return name.partition(".")[0]


def test_imports_point_one_way_from_room_to_room():
    level = {room: i for i, rooms in enumerate(LAYERS) for room in rooms}
    for name, tree in modules():
        if name == "__init__":
            continue
        room = room_of(name)
        assert room in level, f"give {room} a layer"
        for target in own_imports(name, tree):
            below = room_of(target)
            if below != room and below != "__init__":
                assert level[below] < level[room], f"{name} imports {target}"


def test_imports_within_a_room_make_no_circle():
    # A package that shows what its modules define is not asked back by them.
    edges = {
        name: {t for t in own_imports(name, tree) if room_of(t) == room_of(name) and "." in t}
        for name, tree in modules()
    }
    done = set()
    while len(done) < len(edges):
        ready = {name for name, targets in edges.items() if name not in done and targets <= done}
        assert ready, f"a circle among {sorted(set(edges) - done)}"
        done |= ready


def test_optional_packages_are_imported_inside_functions_of_the_leaves():
    leaves = {"inputs.files", "reliability.curve", "reliability.diagram"}
    for name, tree in modules():
        top = {target.partition(".")[0] for target in imports(tree.body)}
        assert top <= CORE | set(sys.stdlib_module_names) | {"fastece"}, name
        every = {target.partition(".")[0] for target in imports(ast.walk(tree))}
        optional = every - CORE - set(sys.stdlib_module_names) - {"fastece"}
        is_leaf = name in leaves or room_of(name) in ("plot", "speed", "study", "cli")
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
        assert path.name in ("_jit.py", "cache.py") or (
            "njit" not in text and "import numba" not in text
        ), path


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
