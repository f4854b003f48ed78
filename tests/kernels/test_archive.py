"""Kernels that a wheel carries: when they are loaded, and that no result depends on it.

Tests of processes run a pair of tiny kernels, one calling the other, in a copy of the package that
has an archive for each level of this machine.
"""

import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import types

from fastece.kernels import archive, cache
from helpers.tiny_kernels import (
    COMPILED,
    PAIR,
    PAIR_SHOWS,
    PLACES,
    contents_of,
    copy_package,
    environment,
    flipped,
    modes_bind,
    output_of,
    run,
)  # fmt: skip

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "release" / "build_kernels.py"
HOST = archive.feature_set(cache.host_features())
LEVELS = [level for level in archive.LEVELS if archive.feature_set(level.features) <= HOST]
CALLS = [
    (f"fastece.kernels.{module}", name, (number,))
    for module, name in (("caller", "doubled"), ("callee", "increased"))
    for number in (types.int64, types.float64)
]
# Prints the level of the archive, and how many kernels came from somewhere.
SOURCE = (
    "; from fastece.kernels import archive;"
    "print(archive.ARCHIVE and archive.ARCHIVE.level.name, end=' ');"
    "print(sum(len(kernel.stats.cache_hits) for kernel in compiling.KERNELS))"
)
BUILD = (
    "import sys; from pathlib import Path; import build_kernels;"
    "build_kernels.build(Path(sys.argv[1]), build_kernels.archive.LEVELS, Path(sys.argv[2]))"
)
needs_level = pytest.mark.skipif(not LEVELS, reason="archives are made for better processors")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A package with archives of the pair."""
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
    """A package with archives, to do with as a test likes."""
    return Path(shutil.copytree(original, tmp_path / "package"))


def shipped(package):
    return package / "fastece/kernels/shipped"


def output_of_pair(package, folder, **changes):
    """Values of the pair, the number of compiled kernels, the level and the loaded kernels."""
    return output_of(PAIR + COMPILED + SOURCE, package, FASTECE_CACHE_DIR=folder, **changes)


# --- which archive ----------------------------------------------------------------------------


@pytest.fixture
def ships(tmp_path, monkeypatch):
    """An installation for a processor of an x86 machine, with an empty archive for each level."""
    monkeypatch.setattr(archive, "FOLDER", tmp_path / "shipped")
    monkeypatch.setattr(archive, "LEVELS", archive.X86_LEVELS)
    for name in ("CPU_NAME", "CPU_FEATURES"):
        monkeypatch.setattr(cache.config, name, None)
    monkeypatch.setattr(cache.config, "DISABLE_JIT", False)
    monkeypatch.setattr(cache, "host_features", lambda: f"{archive.X86_64_V4},+more,-other")
    archive.FOLDER.mkdir()
    for level in archive.X86_LEVELS:
        make_archive(level)
    return archive.FOLDER


def make_archive(level, files=()):
    """An archive of a level for this process, with files by their names."""
    path = archive.FOLDER / archive.archive_name(level)
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in dict(files).items():
            packed.writestr(name, content)
    path.chmod(0o644)
    return path


def found_level():
    usable = archive.find_archive()
    return usable and usable.level.name


@pytest.mark.usefixtures("ships")
def test_the_best_level_that_the_processor_has_is_used(monkeypatch):
    assert found_level() == "x86-64-v4"
    for features in (archive.X86_64_V3, archive.X86_64_V4.replace("+avx512cd", "-avx512cd")):
        monkeypatch.setattr(cache, "host_features", lambda features=features: features)
        assert found_level() == "x86-64-v3"
    for features in (archive.X86_64_V3.replace("+fma", "-fma"), ""):
        monkeypatch.setattr(cache, "host_features", lambda features=features: features)
        assert found_level() is None


@pytest.mark.usefixtures("ships")
def test_a_processor_without_features_in_numba_has_the_one_level_of_arm(monkeypatch):
    monkeypatch.setattr(archive, "LEVELS", archive.ARM_LEVELS)
    monkeypatch.setattr(cache, "host_features", lambda: "")
    assert found_level() is None
    make_archive(archive.ARM_LEVELS[0])
    assert found_level() == "generic"


@pytest.mark.usefixtures("ships")
@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (cache, "EXTENSION_SUFFIXES", [".abacus.so"]),
        (cache.numba, "__version__", "0.60.0"),
        (cache.llvmlite, "__version__", "0.0"),
        (cache, "get_process_triple", lambda: "abacus"),
        (archive, "own_code", lambda: b"edited"),
        (cache, "IS_TESTED", False),
        *((cache.config, name, "other") for name in cache.SETTINGS),
        *((cache.config, name, "other") for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT")),
    ],
)
def test_other_kernels_compilers_settings_and_named_processors_have_no_archive(
    monkeypatch, owner, name, value
):
    assert found_level() is not None
    monkeypatch.setattr(owner, name, value, raising=False)
    assert found_level() is None


@pytest.mark.usefixtures("ships")
def test_versions_of_numpy_and_of_a_mac_share_archives(monkeypatch):
    names = set()
    monkeypatch.setattr("numpy.__version__", "0.0")
    for version in ("23.4.0", "24.0"):
        triple = f"arm64-apple-darwin{version}"
        monkeypatch.setattr(cache, "get_process_triple", lambda triple=triple: triple)
        names.add(archive.archive_name(archive.X86_LEVELS[0]))
    assert len(names) == 1


@pytest.mark.skipif(archive.os.name != "posix", reason="modes of POSIX")
@pytest.mark.usefixtures("ships")
@pytest.mark.parametrize("which", ["file", "folder"])
@pytest.mark.parametrize(
    ("mode", "source_mode", "is_used"),
    [(0o6, 0o644, False), (0o6, 0o666, False), (0o60, 0o644, False), (0o60, 0o664, True)],
)
def test_an_archive_is_used_if_it_is_as_safe_as_the_sources(
    ships, monkeypatch, tmp_path, which, mode, source_mode, is_used
):
    source = tmp_path / "archive.py"
    source.touch()
    source.chmod(source_mode)
    monkeypatch.setattr(archive, "__file__", str(source))
    for path in (ships, *ships.iterdir()):
        if path.is_dir() == (which == "folder"):
            path.chmod(path.stat().st_mode | mode)
    assert (found_level() is not None) == is_used


@pytest.mark.skipif(archive.os.name != "posix", reason="owners of POSIX")
@pytest.mark.usefixtures("ships")
def test_an_archive_of_a_third_user_is_left_alone(monkeypatch):
    owned_by = {"st_mode": 0o100644, "st_gid": 0}
    status = SimpleNamespace(st_uid=12345, **owned_by)
    monkeypatch.setattr(archive.os, "geteuid", lambda: 1)
    assert not archive.is_as_safe(status, SimpleNamespace(st_uid=1, **owned_by))
    assert archive.is_as_safe(status, SimpleNamespace(st_uid=12345, **owned_by))


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
    # A kernel that is not in the archive is compiled, and then the user has to know.
    other_types = PAIR.replace("doubled(3)", "doubled(3 + 0j)") + COMPILED
    done = run(other_types, original, modes_bind, **nowhere)
    assert done.stdout == "(8+0j) 3.0\n2\n"
    assert done.stderr.count("RuntimeWarning") == 1


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_that_this_processor_has_gives_the_same(package, tmp_path, level):
    for path in shipped(package).iterdir():
        if not path.name.startswith(level.name):
            path.unlink()
    assert output_of_pair(package, tmp_path / "cache") == f"{PAIR_SHOWS}0\n{level.name} 2\n"


@pytest.mark.slow
@needs_level
def test_an_older_processor_gets_its_level_and_the_oldest_the_compiler(original, tmp_path):
    """numba leaves out instructions with vectors on demand; LLVM's list of features is made up."""
    emulated = "import numba.core.codegen as c; c.get_host_cpu_features = lambda: {!r};" + PAIR
    if "x86-64-v3" in {level.name for level in LEVELS}:
        code = emulated.format(archive.X86_64_V3) + COMPILED + SOURCE
        done = output_of(code, original, FASTECE_CACHE_DIR=tmp_path)
        assert done == f"{PAIR_SHOWS}0\nx86-64-v3 2\n"
    done = output_of_pair(original, tmp_path, NUMBA_ENABLE_AVX="0", NUMBA_CPU_NAME="generic")
    assert done == f"{PAIR_SHOWS}4\nNone 0\n"


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["NUMBA_BOUNDSCHECK", "NUMBA_OPT"])
def test_other_settings_are_compiled_for(original, tmp_path, variable):
    changes = {variable: "1"}
    assert output_of_pair(original, tmp_path, **changes) == f"{PAIR_SHOWS}4\nNone 0\n"
    assert output_of(PAIR, original, NUMBA_DISABLE_JIT="1", **changes) == PAIR_SHOWS


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "exchanged", "edited"])
def test_damaged_archives_and_those_of_other_sources_are_left_alone(package, tmp_path, damage):
    for path in shipped(package).iterdir():
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-1])
        elif damage == "empty":
            path.write_bytes(b"")
        elif damage == "flipped":  # machine code changed, in a ZIP file that is whole
            rewrite(path, lambda contents: map(flipped, contents))
        elif damage == "exchanged":
            rewrite(path, reversed)
    if damage == "edited":
        callee = package / "fastece/kernels/callee.py"
        callee.write_text(callee.read_text(encoding="utf-8").replace("x + 1", "1 + x"))
    done = output_of(PAIR + COMPILED, package, FASTECE_CACHE_DIR=tmp_path / "cache")
    assert done == PAIR_SHOWS + "4\n"
    assert len(contents_of(tmp_path / "cache")) == 4


def rewrite(path, change):
    """Pack the files of an archive anew, with other contents under their names."""
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        contents = [packed.read(name) for name in names]
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in zip(names, change(contents), strict=True):
            packed.writestr(name, content)


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
    native = "from fastece.cli.compiled import close_archive; close_archive();" + PAIR + COMPILED
    assert output_of(native, original, FASTECE_CACHE_DIR=tmp_path) == PAIR_SHOWS + "4\n"
    watch = (
        "from fastece.kernels.archive import Archive; read = [];"
        "Archive.load = lambda *arguments: read.append(arguments);"
    )
    code = watch + PAIR + COMPILED + "; print(len(read))"
    assert output_of(code, original, FASTECE_CACHE_DIR=tmp_path) == PAIR_SHOWS + "0\n0\n"


@pytest.mark.slow
@needs_level
def test_processes_at_once_and_after_a_fork_read_one_archive(original, tmp_path):
    """A fork shares the file, and where it was read last, with its children."""
    fork = (
        "import os; from fastece.kernels.callee import increased; increased(1);"
        "pids = [os.fork() for _ in range(2)]; " + PAIR + COMPILED
    )
    env = environment(original, FASTECE_CACHE_DIR=tmp_path)
    command = [sys.executable, "-c", fork]
    processes = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in processes:  # four processes write to one pipe, in any order
        assert sorted(process.communicate()[0]) == sorted((PAIR_SHOWS + "0\n") * 4)


def test_code_that_numba_does_not_take_closes_the_archive(tmp_path, monkeypatch):
    """This happens where numba has changed internals; the cache of the user goes on."""
    monkeypatch.setattr(cache, "FAILURES", [])
    level = archive.X86_LEVELS[0]
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    content = pickle.dumps("no kernel")
    place = Path(cache.cache_key(cache.own_code(), level), "f.nbc")
    shipped = archive.Archive(
        make_archive(level, {place.name: cache.seal(place, content) + content}), level
    )
    assert shipped.read("f.nbc") == content
    assert shipped.read("g.nbc") is None
    assert shipped.load("f.nbc", "f8", SimpleNamespace(targetctx=None)) is None
    assert (shipped.names, cache.FAILURES) == (frozenset(), [])
