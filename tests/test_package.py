"""The package as a whole: floors, imports, public names, words, and what SECURITY.md promises."""

import ast
import gzip
import inspect
import io
import os
import pickle
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece import recalibration
from fastece.cli import main
from fastece.data.options import GROUPED_NAMES
from fastece.estimators.base import ABILITIES

FOLDER = Path(fastece.__file__).parent
ROOT = Path(__file__).parents[1]
# From the top down. A module imports modules of its own room and of rooms on lower floors: at its
# top, inside functions and for type checking alike.
FLOORS = [
    {"cli"},
    {"compat", "sklearn"},
    {"recalibration", "report", "streams"},
    {"decisions", "reliability"},
    {"inference", "risk", "study"},
    {"metrics", "resampling"},
    {"datasets", "display", "estimators", "files"},
    {"data"},
    {"kernels"},
]
FLOOR = {room: -level for level, rooms in enumerate(FLOORS) for room in rooms}
TOP = {"cli", "compat", "sklearn"}
CORE = {"fastece", "lazy_loader", "llvmlite", "numba", "numpy", "scipy"}
CORE |= set(sys.stdlib_module_names)
# Modules that import an optional package, and that are imported inside functions themselves.
OPTIONAL = {"files.arrow_tables": {"pyarrow"}}
# What a room may import by a name that is computed: its own modules, or a user's.
DYNAMIC = {"__init__", "cli", "compat", "kernels", "study"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
VERBS = {"prepare", "evaluate", "values", "block", "blocks", "subsets", "of_population"}
VERBS |= {*ABILITIES, "bins", "parts", "bandwidths"}


# --- reading the sources --------------------------------------------------------------------


@cache
def sources():
    """Text of every module by its name: "kernels.binning", "kernels" for its folder."""
    texts = {}
    for path in sorted(FOLDER.rglob("*.py")):
        name = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        texts[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return texts


@cache
def trees():
    """Syntax tree of every module by its name."""
    return {name: ast.parse(text) for name, text in sources().items()}


@cache
def nodes_of(name):
    """All nodes of a module."""
    return list(ast.walk(trees()[name]))


def imports(nodes):
    """Full names that statements import: modules, or what may be a name in one."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(target):
    """The module of the package that a full name lies in; "__init__" is the package itself."""
    parts = target.split(".")[1:]
    while parts and ".".join(parts) not in trees():
        parts.pop()
    return ".".join(parts) or "__init__"


@cache
def own_imports(name):
    """Modules of the package that a module imports anywhere, but for itself."""
    targets = [t for t in imports(nodes_of(name)) if t.partition(".")[0] == "fastece"]
    return {module_of(target) for target in targets} - {name, "__init__"}


def room_of(name):
    return name.partition(".")[0]


def inner_modules():
    """All modules but those that stand above all floors."""
    return [name for name in trees() if name not in ("__init__", "__main__")]


def definitions(*kinds):
    """Module and node of every definition."""
    for name in trees():
        yield from ((name, node) for node in nodes_of(name) if isinstance(node, kinds))


def calls_of(function):
    """Module and node of every call of a function by its bare name."""
    for name in trees():
        for node in nodes_of(name):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function:
                yield name, node


# --- floors ---------------------------------------------------------------------------------


def test_every_room_has_a_floor_and_every_floor_is_in_use():
    assert {room_of(name) for name in inner_modules()} == set(FLOOR)


def test_imports_lead_downwards_from_room_to_room():
    upwards = {
        f"{name} -> {below}"
        for name in inner_modules()
        for below in own_imports(name)
        if room_of(below) != room_of(name)
        and FLOOR.get(room_of(below), 0) >= FLOOR.get(room_of(name), 0)
    }
    assert not upwards


def test_the_package_as_a_whole_is_imported_on_the_top_floor_alone():
    for name in inner_modules():
        targets = imports(nodes_of(name))
        whole = {
            t for t in targets if t.partition(".")[0] == "fastece" and module_of(t) == "__init__"
        }
        assert room_of(name) in TOP or whole <= {"fastece.__version__"}, (name, whole)


def test_files_import_each_other_without_a_circle():
    def without_own_folders(name):  # a folder's own file holds constants of what is in it
        return {other for other in own_imports(name) if not name.startswith(f"{other}.")}

    needs = {name: without_own_folders(name) for name in inner_modules()}
    size = None
    while size != len(needs):  # what needs none of the rest, or is not needed, is in no circle
        size, needed = len(needs), set().union(*needs.values())
        needs = {name: rest & needs.keys() for name, rest in needs.items() if name in needed}
        needs = {name: rest for name, rest in needs.items() if rest}
    assert not needs


def test_modules_are_imported_by_computed_names_in_few_rooms():
    assert {room_of(name) for name, _ in calls_of("import_module")} <= DYNAMIC
    assert not any("__import__" in text for text in sources().values())


def test_optional_packages_are_imported_inside_functions():
    for name, tree in trees().items():
        targets = set(imports(tree.body))
        at_top = {target.partition(".")[0] for target in targets}
        assert at_top <= CORE | OPTIONAL.get(name, set()), name
        assert OPTIONAL.keys().isdisjoint(map(module_of, targets)), name


def test_kernels_import_numba_and_numpy_and_each_other_alone():
    for name in inner_modules():
        if room_of(name) == "kernels":
            rooms = {room_of(other) for other in own_imports(name)}
            assert rooms <= {"kernels"}, name


def run_python(code):
    """Standard output of a new process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_leaves_slow_packages_alone():
    packages = ("numba", "scipy", "matplotlib", "pandas")
    code = f"""
import sys, fastece
assert "numpy" not in sys.modules
from fastece import ece, Binned
print([name for name in {packages} if name in sys.modules])
"""
    assert run_python(code) == "[]"


@pytest.mark.slow
def test_numba_is_imported_only_when_something_is_computed():
    """It takes 0.2 s, and its import may warn of a folder of compiled kernels."""
    modules = [name for name in inner_modules() if room_of(name) != "kernels"]
    code = f"""
import importlib, sys
for name in {modules}:
    importlib.import_module("fastece." + name)
    assert "numba" not in sys.modules, name
"""
    assert run_python(code) == ""


def test_every_public_name_is_there_and_documented():
    assert set(fastece.__all__) <= set(dir(fastece))
    for name in fastece.__all__:
        assert getattr(fastece, name).__doc__, name
    assert not hasattr(fastece, "nothing")


def test_public_classes_are_those_that_a_user_makes():
    """Results are made by functions, and their classes are imported from their modules."""
    values = {name: getattr(fastece, name) for name in fastece.__all__}
    classes = {name: value for name, value in values.items() if isinstance(value, type)}
    errors = {name for name, value in classes.items() if issubclass(value, Exception)}
    estimators = {name for name, value in classes.items() if hasattr(value, "prepare")}
    assert {type(x).__name__ for x in fastece.ESTIMATORS.values()} <= estimators
    assert {*classes} - errors - estimators == {"Accumulator", "Monitor", "Predictions"}


API = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md")]
DOCUMENTED = [name for page in API for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)]


def test_every_public_name_is_on_one_page_of_the_api():
    names = [name for name in DOCUMENTED if re.fullmatch(r"fastece\.\w+", name)]
    assert sorted(names) == sorted(f"fastece.{name}" for name in fastece.__all__)
    maps = {method.__name__ for method in recalibration.METHODS.values()}
    maps |= {"recalibrate", "recommend", "Calibrator", "METHODS", "load", "save"}
    names = [name for name in DOCUMENTED if name.startswith("fastece.recalibration.")]
    assert sorted(names) == sorted(f"fastece.recalibration.{name}" for name in maps)


def test_docstrings_name_the_parameters_of_the_signature():
    for public in fastece.__all__:
        text = inspect.getdoc(getattr(fastece, public)) or ""
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.M | re.S)
        if section is None:
            continue
        heads = re.findall(r"^\S.*$", section[1], re.MULTILINE)
        described = {x for head in heads for x in re.findall(r"\w+", head.partition(" : ")[0])}
        taken = set(inspect.signature(getattr(fastece, public)).parameters)
        assert described - {"options"} <= taken, public
        assert taken - {*GROUPED_NAMES} <= described, public


# --- kernels and estimators -----------------------------------------------------------------


def test_one_decorator_owns_the_options_of_numba():
    (home,) = [name for name, text in sources().items() if re.search(r"\bnjit\b", text)]
    assert room_of(home) == "kernels"
    for name, text in sources().items():
        assert "prange" not in text
        may = name in (home, "kernels.cache")
        assert may or not re.search("^ *(import|from) numba", text, re.M), name


def test_an_estimator_is_known_by_its_verbs_at_one_place():
    asked = {
        (name, node.args[1].value)
        for function in ("hasattr", "getattr")
        for name, node in calls_of(function)
        if isinstance(node.args[1], ast.Constant)
    }
    places = {f"{name}: {verb}" for name, verb in asked if verb in VERBS}
    assert all(place.startswith("estimators.") for place in places), places


def test_no_other_room_asks_for_the_class_of_an_estimator():
    concrete = {type(estimator).__name__ for estimator in fastece.ESTIMATORS.values()}
    found = {
        f"{name}: {ast.unparse(node)}"
        for name, node in calls_of("isinstance")
        for part in ast.walk(node.args[1])
        if room_of(name) != "estimators" and getattr(part, "id", "") in concrete
    }
    assert not found
    assert not [name for name, text in sources().items() if "singledispatch" in text]


# --- promises -------------------------------------------------------------------------------


def test_every_promise_names_tests_that_there_are():
    page = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!promise|-)(.+?) \| (.+) \|$", page, re.MULTILINE)
    assert rows
    for promise, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
        assert named, promise
        assert len(named) == tests.count("::"), promise
        for file, test in named:
            assert (ROOT / file).is_file(), (promise, file)
            text = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {test}\(", text, re.MULTILINE), (promise, test)


# --- words ----------------------------------------------------------------------------------

BANNED_IN_SUMMARIES = re.compile(
    r"\b(what|those (of|that|which)|says?|said|tells?|told|asks?|asked|yardstick|idiom)\b",
    re.IGNORECASE,
)
BANNED_IN_NAMES = re.compile(r"(^|_)(what|say|says|tell|tells|told|ask|asks|asked|those)(_|$)")


def documented():
    """Name and summary of every definition with a docstring."""
    for name, node in definitions(*DEFINITIONS):
        text = ast.get_docstring(node)
        if text:
            yield f"{name}.{node.name}", text.partition("\n\n")[0]


def test_summaries_are_one_short_line():
    long = [where for where, text in documented() if "\n" in text or len(text) > 80]
    assert not long


def test_summaries_are_in_plain_words():
    assert not [
        f"{where}: {text}" for where, text in documented() if BANNED_IN_SUMMARIES.search(text)
    ]


def test_no_statement_is_a_text_alone():
    """The second line of a text without parentheses would be lost."""
    lost = [
        f"{name}: {node.value.value}"
        for name in trees()
        for block in nodes_of(name)
        if isinstance(block, (ast.Module, *DEFINITIONS))
        for node in block.body[1:]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
    ]
    assert not lost


def test_names_are_nouns_and_verbs_of_the_field():
    found = {
        f"{name}.{node.name}"
        for name, node in definitions(*DEFINITIONS)
        if BANNED_IN_NAMES.search(node.name)
    }
    assert not found


# --- security: predictions and saved maps are data, and nothing is downloaded ----------------

NETWORK = {"socket", "ssl", "urllib", "http", "ftplib", "smtplib", "requests", "httpx", "aiohttp"}
CODE = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def trapped(path):
    """An NPY file of Python objects, which sets off the trap if it is read with pickles."""
    file = io.BytesIO()
    np.save(file, np.array([Trap(path), 0.5], dtype=object), allow_pickle=True)
    return file.getvalue()


def archive(content):
    """An NPZ file with it as y_prob."""
    file, labels = io.BytesIO(), io.BytesIO()
    np.save(labels, np.array([0, 1]))
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("y_true.npy", labels.getvalue())
        packed.writestr("y_prob.npy", content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "form", "options"),
    [
        ("a.npy", bytes, []),
        ("a.npz", archive, ["--stream"]),
        ("a.npy.gz", gzip.compress, []),
        ("a.csv", bytes, ["--stream"]),
    ],
)
def test_files_of_predictions_are_not_unpickled(name, form, options, tmp_path, capsys):
    trap, path = tmp_path / "sprung", tmp_path / name
    path.write_bytes(form(trapped(trap)))
    assert main(["report", str(path), *options]) == 2
    assert capsys.readouterr().err.startswith("fastece: error: ")
    assert not trap.exists()


def test_saved_maps_are_not_unpickled(tmp_path):
    trap, path = tmp_path / "sprung", tmp_path / "map.json"
    path.write_bytes(pickle.dumps(Trap(trap)))
    with pytest.raises(ValueError, match="is no map"):
        recalibration.load(path)
    assert not trap.exists()
    pickle.loads(path.read_bytes())
    assert trap.exists()  # so the trap works


@pytest.mark.parametrize("method", ["platt", "isotonic", "curve"])
def test_damaged_maps_are_refused_or_read(method, tmp_path):
    """Bytes that are changed, left out or put in: an error in words, or a map that answers."""
    rng = np.random.default_rng(0)
    score, path = rng.random(200), tmp_path / "map.json"
    recalibration.save(recalibration.METHODS[method]().fit(score, rng.random(200) < score), path)
    whole, refused = path.read_bytes(), 0
    for _ in range(100):
        first, last = sorted(rng.integers(0, len(whole), 2))
        middle = (rng.bytes(1), b"", b"9" * 400, whole[first : first + 20])[rng.integers(4)]
        path.write_bytes(whole[:first] + middle + whole[min(last, first + 3) :])
        try:
            found = recalibration.load(path).transform(score)
        except ValueError:
            refused += 1
        else:
            assert ((found >= 0) & (found <= 1)).all()
    assert refused > 50


def test_nothing_is_downloaded_and_only_own_bytes_are_unpickled():
    unpickle = set()
    for name in trees():
        found = {target.partition(".")[0] for target in imports(nodes_of(name))}
        assert not found & NETWORK, name
        if found & CODE:
            unpickle.add(name)
    # What it has compiled, and what it has just pickled.
    assert unpickle == {"kernels.cache", "estimators.faults"}
