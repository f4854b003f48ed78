"""Kernels that a wheel carries: when they are loaded, and that no result depends on it.

Tests of processes run a pair of tiny kernels, one calling the other, in a copy of the package that
has a folder of them for each level of this machine.
"""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import types

from fastece.kernels import cache
from helpers.tiny_kernels import (
    COMPILED,
    PAIR,
    PAIR_SHOWS,
    PLACES,
    contents_of,
    copy_package,
    environment,
    modes_bind,
    output_of,
    run,
)  # fmt: skip

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "release" / "build_kernels.py"
HOST = cache.Processor("host", cache.host_features())
LEVELS = [level for level in cache.LEVELS if level.needs <= HOST.needs]
CALLS = [
    (f"fastece.kernels.{module}", name, (number,))
    for module, name in (("caller", "doubled"), ("callee", "increased"))
    for number in (types.int64, types.float64)
]
# Prints the level of the folder, and how many kernels came from somewhere.
SOURCE = (
    "; from fastece.kernels import cache;"
    "print(cache.SHIPPED.path and cache.SHIPPED.path.name.rpartition('-')[0], end=' ');"
    "print(sum(len(kernel.stats.cache_hits) for kernel in compiling.KERNELS))"
)
BUILD = (
    "import sys; from pathlib import Path; import build_kernels;"
    "build_kernels.build(Path(sys.argv[1]), build_kernels.cache.LEVELS, Path(sys.argv[2]))"
)
needs_level = pytest.mark.skipif(not LEVELS, reason="wheels have kernels for better processors")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A package with the pair of each level."""
    folder = tmp_path_factory.mktemp("shipped")
    package = copy_package(folder / "package")
    (package / "scripts" / "release").mkdir(parents=True)
    script = Path(shutil.copy(SCRIPT, package / "scripts" / "release"))
    (folder / "calls").write_bytes(pickle.dumps(CALLS))
    env = environment(script.parent, FASTECE_CACHE_DIR=folder / "cache")
    subprocess.run(
        [sys.executable, "-c", BUILD, folder / "calls", shipped(package)], env=env, check=True
    )
    return package


@pytest.fixture
def package(original, tmp_path):
    """A package with the pair, to do with as a test likes."""
    return Path(shutil.copytree(original, tmp_path / "package"))


def shipped(package):
    return package / "fastece/kernels/shipped"


def output_of_pair(package, folder, **changes):
    """Values of the pair, the number of compiled kernels, the level and the loaded kernels."""
    return output_of(PAIR + COMPILED + SOURCE, package, FASTECE_CACHE_DIR=folder, **changes)


# --- which folder -----------------------------------------------------------------------------


@pytest.fixture
def ships(tmp_path, monkeypatch):
    """An installation for a processor of an x86 machine, with an empty folder for each level."""
    monkeypatch.setattr(cache, "SHIPPED_FOLDERS", tmp_path / "shipped")
    monkeypatch.setattr(cache, "LEVELS", cache.X86_LEVELS)
    for name in ("CPU_NAME", "CPU_FEATURES"):
        monkeypatch.setattr(cache.config, name, None)
    monkeypatch.setattr(cache.config, "DISABLE_JIT", False)
    monkeypatch.setattr(cache, "host_features", lambda: f"{cache.X86_64_V4},+more,-other")
    for level in cache.X86_LEVELS:
        cache.shipped_folder(level).mkdir(parents=True)


def found_level():
    path = cache.find_shipped_folder().path
    return path and path.name.rpartition("-")[0]


@pytest.mark.usefixtures("ships")
def test_the_best_level_that_the_processor_has_is_used(monkeypatch):
    assert found_level() == "x86-64-v4"
    for features in (cache.X86_64_V3, cache.X86_64_V4.replace("+avx512cd", "-avx512cd")):
        monkeypatch.setattr(cache, "host_features", lambda features=features: features)
        assert found_level() == "x86-64-v3"
    for features in (cache.X86_64_V3.replace("+fma", "-fma"), ""):
        monkeypatch.setattr(cache, "host_features", lambda features=features: features)
        assert found_level() is None


@pytest.mark.usefixtures("ships")
def test_a_processor_without_features_in_numba_has_the_one_level_of_arm(monkeypatch):
    monkeypatch.setattr(cache, "LEVELS", cache.ARM_LEVELS)
    monkeypatch.setattr(cache, "host_features", lambda: "")
    assert found_level() is None
    cache.shipped_folder(cache.ARM_LEVELS[0]).mkdir()
    assert found_level() == "generic"


@pytest.mark.usefixtures("ships")
def test_other_kernels_compilers_settings_and_named_processors_have_no_folder(monkeypatch):
    for owner, name, value in (
        (cache, "EXTENSION_SUFFIXES", [".abacus.so"]),
        (cache.numba, "__version__", "0.60.0"),
        (cache.llvmlite, "__version__", "0.0"),
        (cache, "get_process_triple", lambda: "abacus"),
        (cache, "hash_sources", lambda _: "edited"),
        *((cache.config, name, "other") for name in cache.SETTINGS),
        *((cache.config, name, "other") for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT")),
    ):
        assert found_level() is not None
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value, raising=False)
            assert found_level() is None, name


@pytest.mark.usefixtures("ships")
def test_versions_of_numpy_and_of_a_mac_share_kernels(monkeypatch):
    names = set()
    monkeypatch.setattr("numpy.__version__", "0.0")
    for version in ("23.4.0", "24.0"):
        triple = f"arm64-apple-darwin{version}"
        monkeypatch.setattr(cache, "get_process_triple", lambda triple=triple: triple)
        names.add(cache.cache_key(cache.X86_LEVELS[0]))
    assert len(names) == 1


# --- loading ----------------------------------------------------------------------------------


@needs_level
def test_nothing_is_compiled_or_written_without_a_home(original, tmp_path):
    """With no word about it, and for another user too."""
    home = tmp_path / "home"
    home.mkdir(0o555)
    nowhere = {"HOME": home, "USERPROFILE": home, **dict.fromkeys(PLACES)}
    done = run(PAIR + COMPILED + SOURCE, original, modes_bind, **nowhere)
    assert (done.stdout, done.stderr) == (f"{PAIR_SHOWS}0\n{LEVELS[0].name} 2\n", "")
    assert contents_of(home) == {}
    # A kernel that is not shipped is compiled, and then the user has to know.
    other_types = PAIR.replace("doubled(3)", "doubled(3 + 0j)") + COMPILED
    done = run(other_types, original, modes_bind, **nowhere)
    assert done.stdout == "(8+0j) 3.0\n2\n"
    assert done.stderr.count("RuntimeWarning") == 1


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_that_this_processor_has_gives_the_same(package, tmp_path, level):
    for path in shipped(package).iterdir():
        if not path.name.startswith(level.name):
            shutil.rmtree(path)
    assert output_of_pair(package, tmp_path / "cache") == f"{PAIR_SHOWS}0\n{level.name} 2\n"


@pytest.mark.slow
@needs_level
def test_an_older_processor_gets_its_level_and_the_oldest_the_compiler(original, tmp_path):
    """numba leaves out instructions with vectors on demand; LLVM's list of features is made up."""
    emulated = "import numba.core.codegen as c; c.get_host_cpu_features = lambda: {!r};" + PAIR
    if "x86-64-v3" in {level.name for level in LEVELS}:
        code = emulated.format(cache.X86_64_V3) + COMPILED + SOURCE
        done = output_of(code, original, FASTECE_CACHE_DIR=tmp_path)
        assert done == f"{PAIR_SHOWS}0\nx86-64-v3 2\n"
    done = output_of_pair(original, tmp_path, NUMBA_ENABLE_AVX="0", NUMBA_CPU_NAME="generic")
    assert done == f"{PAIR_SHOWS}4\nNone 0\n"


@pytest.mark.slow
def test_other_settings_are_compiled_for(original, tmp_path):
    changes = {"NUMBA_BOUNDSCHECK": "1"}
    assert output_of_pair(original, tmp_path, **changes) == f"{PAIR_SHOWS}4\nNone 0\n"
    assert output_of(PAIR, original, NUMBA_DISABLE_JIT="1", **changes) == PAIR_SHOWS


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "edited"])
def test_damaged_kernels_and_those_of_other_sources_are_compiled(package, tmp_path, damage):
    if damage == "edited":
        callee = package / "fastece/kernels/callee.py"
        callee.write_text(callee.read_text(encoding="utf-8").replace("x + 1", "1 + x"))
    else:
        for path in shipped(package).rglob("*.nbc"):
            path.write_bytes(path.read_bytes()[:-1])
    done = output_of(PAIR + COMPILED, package, FASTECE_CACHE_DIR=tmp_path / "cache")
    assert done == PAIR_SHOWS + "4\n"
    assert len(contents_of(tmp_path / "cache")) == 4


@needs_level
def test_a_shipped_kernel_is_inlined_where_another_one_is_compiled(original, tmp_path):
    """Its machine code is there; LLVM's form is compiled once, when it is needed."""
    code = (
        "from fastece.kernels.callee import increased; print(increased(0.5), end=' ');"
        "from numba import njit; f = njit(lambda x: 3 * increased(x)); print(f(0.5), end=' ');"
        "g = njit(lambda x: 5 * increased(x)); print(g(0.5), end=' ');"
        "print('call' in str(f.inspect_llvm(f.signatures[0])).split('define')[1])"
    )
    assert output_of(code, original, FASTECE_CACHE_DIR=tmp_path) == "1.5 4.5 7.5 False\n"


@pytest.mark.slow
@needs_level
def test_kernels_of_the_user_s_cache_come_first_and_warmup_makes_them(original, tmp_path):
    without_shipped = "from fastece.kernels.cache import SHIPPED; SHIPPED.path = None;"
    native = without_shipped + PAIR + COMPILED
    assert output_of(native, original, FASTECE_CACHE_DIR=tmp_path) == PAIR_SHOWS + "4\n"
    watch = (
        "from fastece.kernels.cache import SHIPPED; read = [];"
        "SHIPPED.load = lambda *arguments: read.append(arguments);"
    )
    code = watch + PAIR + COMPILED + "; print(len(read))"
    assert output_of(code, original, FASTECE_CACHE_DIR=tmp_path) == PAIR_SHOWS + "0\n0\n"
