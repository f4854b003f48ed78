"""The disk cache of compiled kernels: its name, its place, and what happens without one.

Most tests run a pair of tiny kernels, one calling the other in another file, in a copy of the
package; the mechanism is the same for all and they compile in no time.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fastece.kernels import cache as kernel_cache
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


def this_key():
    """The key of these kernels, for this process's compiler and processor."""
    return kernel_cache.cache_key(kernel_cache.this_processor())


@pytest.fixture
def key_of(monkeypatch):
    """The key of the kernels in a folder."""

    def key(folder):
        monkeypatch.setattr(kernel_cache, "SOURCES", folder)
        kernel_cache.hash_sources.cache_clear()
        return this_key()

    yield key
    kernel_cache.hash_sources.cache_clear()


def edit(path, old, new):
    """Another text of the same size at the same time, as far as the file system can tell."""
    text = path.read_text(encoding="utf-8")
    before = path.stat()
    assert re.search(old, text), f"{old} is not in {path.name} any more: edit something else"
    path.write_text(re.sub(old, new, text), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return copy_package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory, package):
    folder = tmp_path_factory.mktemp("warm")
    assert output_of(PAIR + COMPILED, package, FASTECE_CACHE_DIR=folder) == PAIR_SHOWS + "4\n"
    assert len(contents_of(folder)) == 4
    return folder


@pytest.fixture
def cache(tmp_path, warm):
    """A cache with the pair, which a test may change."""
    return Path(shutil.copytree(warm, tmp_path / "cache"))


def test_key_changes_with_every_kernel_source(tmp_path, key_of):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    first = key_of(tmp_path)
    assert first == key_of(tmp_path)
    (tmp_path / "b.py").write_text("x = 2\n", encoding="utf-8")
    second = key_of(tmp_path)
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    third = key_of(tmp_path)
    (tmp_path / "__init__.py").write_text("WIDTH = 1\n", encoding="utf-8")  # constants
    last = key_of(tmp_path)
    assert len({first, second, third, last}) == 4
    (tmp_path / ".#a.py").mkdir()  # a lock of an editor, as unreadable as a link to nowhere
    assert key_of(tmp_path) == last


def test_key_changes_with_numba_and_with_the_processor(monkeypatch):
    for name in ("CPU_NAME", "CPU_FEATURES"):  # which a user may have set
        monkeypatch.setattr(kernel_cache.config, name, None)
    keys = {this_key()}
    settings = (*kernel_cache.SETTINGS, "CPU_NAME", "CPU_FEATURES")
    for owner, name, value in (
        (kernel_cache, "EXTENSION_SUFFIXES", [".abacus.so"]),
        (kernel_cache.numba, "__version__", "0.0"),
        (kernel_cache.llvmlite, "__version__", "0.0"),
        (kernel_cache, "get_host_cpu_name", lambda: "abacus"),
        (kernel_cache, "host_features", lambda: "+beads"),
        *((kernel_cache.config, name, "other") for name in settings),
    ):
        monkeypatch.setattr(owner, name, value, raising=False)
        keys.add(this_key())
    assert len(keys) == 8 + len(kernel_cache.SETTINGS)


def test_code_for_any_processor_is_shared_by_all(monkeypatch):
    for name, value in (("CPU_NAME", "generic"), ("CPU_FEATURES", "")):
        monkeypatch.setattr(kernel_cache.config, name, value)
    key = this_key()
    for name in ("get_host_cpu_name", "host_features"):
        monkeypatch.setattr(kernel_cache, name, lambda: "abacus")
    assert this_key() == key


@pytest.mark.slow
def test_without_compilation_there_is_no_folder(tmp_path, package):
    blocked = tmp_path / "file"
    blocked.touch()
    for folder in (tmp_path / "cache", blocked):
        done = output_of(PAIR, package, FASTECE_CACHE_DIR=folder, NUMBA_DISABLE_JIT="1")
        assert done == PAIR_SHOWS
    assert contents_of(tmp_path) == {blocked: b""}


@pytest.mark.parametrize("variable", PLACES)
def test_place_is_the_first_variable_that_is_set(tmp_path, monkeypatch, variable):
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "here"))
    folder = kernel_cache.find_user_folder()
    assert folder.path.is_dir()
    assert folder.path.name == this_key()
    assert tmp_path / "here" in folder.path.parents


@pytest.mark.slow
def test_unwritable_place_is_one_warning_and_no_cache(tmp_path, package):
    file = tmp_path / "file"
    file.touch()
    done = run(PAIR + COMPILED, package, FASTECE_CACHE_DIR=file / "below")
    assert done.stdout == PAIR_SHOWS + "4\n"
    assert done.stderr.count("RuntimeWarning") == 1
    assert "Set FASTECE_CACHE_DIR" in done.stderr


@pytest.mark.slow
def test_functions_outside_the_package_are_compiled_and_not_kept(tmp_path, package):
    code = "from fastece.kernels.compiling import jit; print(jit(lambda x: 2 * x)(4))"
    assert output_of(code, package, FASTECE_CACHE_DIR=tmp_path) == "8\n"
    assert contents_of(tmp_path) == {}


@pytest.mark.slow
def test_nowhere_to_write_works_with_one_warning_and_writes_nowhere_else(tmp_path):
    package = copy_package(tmp_path / "package")
    home = tmp_path / "home"
    home.touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = contents_of(tmp_path)
    for path in (package, *package.rglob("*")):
        path.chmod(0o555)
    done = run(
        PAIR, package, modes_bind, HOME=home, USERPROFILE=home, TMPDIR=temporary,
        **dict.fromkeys(PLACES),
    )  # fmt: skip
    for path in (package, *package.rglob("*")):
        path.chmod(0o755)
    assert done.stdout == PAIR_SHOWS
    assert done.stderr.count("RuntimeWarning") == 1
    assert "FASTECE_CACHE_DIR" in done.stderr
    assert contents_of(tmp_path) == before


posix = pytest.mark.skipif(os.name != "posix", reason="modes and limits of POSIX")


def give_away(path, monkeypatch):
    """Make a path belong to another user, at least for the code under test."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(kernel_cache.os, "geteuid", lambda: path.stat().st_uid + 1)


@posix
def test_what_is_made_is_for_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTECE_CACHE_DIR", str(tmp_path / "outer/cache"))
    path = kernel_cache.find_user_folder().path
    assert [place.stat().st_mode & 0o777 for place in (path, path.parent)] == [0o700] * 2


@posix
@pytest.mark.parametrize("which", ["keyed", "outer"])
@pytest.mark.parametrize("mode", [0o770, 0o702, None], ids=["group", "others", "owner"])
def test_a_folder_that_others_can_write_is_refused(tmp_path, monkeypatch, which, mode):
    """Kernels are unpickled and run: whoever can write them can run anything."""
    monkeypatch.setenv("FASTECE_CACHE_DIR", str(tmp_path / "cache"))
    folder = kernel_cache.find_user_folder().path
    path = folder if which == "keyed" else folder.parent
    if mode is None:
        give_away(path, monkeypatch)
    else:
        path.chmod(mode)
    said = "belongs to another user" if mode is None else "others can write .*: chmod go-w it"
    refused = kernel_cache.find_user_folder()
    assert refused.path is None
    assert re.search(said, refused.problem)
    assert "Set FASTECE_CACHE_DIR" in refused.problem


@posix
def test_a_folder_in_one_that_is_shared_safely_is_taken(tmp_path, monkeypatch):
    """As ``/tmp`` is."""
    tmp_path.chmod(0o1777)
    monkeypatch.setenv("FASTECE_CACHE_DIR", str(tmp_path))
    assert kernel_cache.find_user_folder().path is not None


@pytest.mark.slow
@posix
def test_a_cache_that_cannot_be_written_is_read(cache, package):
    """Another user may have made it. Kernels that it lacks are compiled, with one warning."""
    (folder,) = cache.iterdir()
    for path in (cache, folder):
        path.chmod(0o555)
    before = contents_of(cache)
    code = f"open({str(folder / 'probe')!r}, 'w')"
    probe = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, preexec_fn=modes_bind
    )
    if probe.returncode == 0:
        pytest.skip("file modes do not bind this user")
    done = run(PAIR + COMPILED, package, modes_bind, FASTECE_CACHE_DIR=cache)
    assert (done.stdout, done.stderr) == (PAIR_SHOWS + "0\n", "")
    other_types = PAIR.replace("doubled(3)", "doubled(3 + 0j), doubled(True)")
    done = run(other_types, package, modes_bind, FASTECE_CACHE_DIR=cache)
    assert done.stdout == "(8+0j) 4 3.0\n"
    assert done.stderr.count("RuntimeWarning") == 1
    assert contents_of(cache) == before
    for path in (cache, folder):
        path.chmod(0o755)


@pytest.mark.slow
@posix
def test_a_full_disk_is_one_warning_and_leaves_nothing_half_written(tmp_path, package):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
    done = run(full + PAIR, package, FASTECE_CACHE_DIR=tmp_path)
    assert done.stdout == PAIR_SHOWS
    assert done.stderr.count("RuntimeWarning") == 1
    assert contents_of(tmp_path) == {}


def at_once(codes, package, folder):
    """Standard output of processes that run at the same time and have nothing to complain about."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment(package, FASTECE_CACHE_DIR=folder),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for code in codes
    ]  # fmt: skip
    results = [process.communicate() for process in processes]
    assert [error for _, error in results] == [""] * len(codes)
    assert not any(process.returncode for process in processes)
    return [out for out, _ in results]


@pytest.mark.slow
def test_four_processes_replace_files_that_cannot_be_read(cache, package):
    """In different order of types, so that they compile different code at the same time."""
    folder = cache
    for number, (path, content) in enumerate(contents_of(folder).items()):
        path.write_bytes([content[:50], b"", b"not a pickle", content[:-1]][number])
    back = PAIR.replace("doubled(3), doubled(0.5)", "doubled(0.5), doubled(3)")
    done = at_once([PAIR + COMPILED, back + COMPILED] * 2, package, folder)
    assert [out.splitlines()[0] + "\n" for out in done] == [PAIR_SHOWS, "3.0 8\n"] * 2
    assert output_of(PAIR + COMPILED, package, FASTECE_CACHE_DIR=folder) == PAIR_SHOWS + "0\n"
    assert len(contents_of(folder)) == 4


@pytest.mark.slow
@pytest.mark.parametrize(("part", "n_warnings"), [("_reduce", 1), ("_rebuild", 0)])
def test_a_numba_with_other_parts_inside_works_without_a_cache(cache, package, part, n_warnings):
    code = f"import numba.core.compiler; del numba.core.compiler.CompileResult.{part};"
    folder = cache if part == "_rebuild" else cache.parent / "empty"
    done = run(code + PAIR + COMPILED, package, FASTECE_CACHE_DIR=folder)
    assert done.stdout == PAIR_SHOWS + "4\n"
    assert done.stderr.count("RuntimeWarning") == n_warnings


@pytest.mark.slow
def test_an_edited_callee_in_another_file_is_compiled_again(tmp_path, cache):
    package = copy_package(tmp_path / "package")
    callee = package / "fastece/kernels/callee.py"
    options = {"package": package, "FASTECE_CACHE_DIR": cache}
    assert output_of(PAIR + COMPILED, **options) == PAIR_SHOWS + "0\n"
    edit(callee, "x \\+ 1", "x + 2")
    assert output_of(PAIR + COMPILED, **options) == "10 5.0\n4\n"
    edit(callee, "x \\+ 2", "x + 1")
    assert output_of(PAIR + COMPILED, **options) == PAIR_SHOWS + "0\n"


@pytest.mark.slow
def test_a_package_without_sources_keeps_its_kernels(tmp_path):
    package = copy_package(tmp_path / "package")
    compile_all = [sys.executable, "-m", "compileall", "-q", "-b", str(package)]
    subprocess.run(compile_all, check=True)
    for path in package.rglob("*.py"):
        path.unlink()
    options = {"package": package, "FASTECE_CACHE_DIR": tmp_path / "cache"}
    assert output_of(PAIR + COMPILED, **options) == PAIR_SHOWS + "4\n"
    assert output_of(PAIR + COMPILED, **options) == PAIR_SHOWS + "0\n"
