"""The disk cache of compiled kernels: its name, its place, and what happens without one.

Most tests run a pair of tiny kernels, one calling the other in another file, in a copy of the
package; the mechanism is the same for all and they compile in no time.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fastece.kernels import cache as kernel_cache
from fastece.kernels import compiling
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


def key_of(folder):
    """The key of kernels in a folder, for this process's compiler and processor."""
    return kernel_cache.cache_key(kernel_cache.hash_code(folder), kernel_cache.this_processor())


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


@pytest.fixture(autouse=True)
def no_failures(monkeypatch):
    monkeypatch.setattr(kernel_cache, "FAILURES", [])
    monkeypatch.setattr(kernel_cache, "WAITING", [])


def test_key_changes_with_every_kernel_source(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
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


@pytest.mark.slow
def test_key_depends_on_the_code_and_not_on_its_representation(tmp_path):
    """A source and a ``__pycache__`` have the same key, nested functions included."""
    text = "def f(x):\n    def g():\n        return 1.5, x in {'a', 'b', 'c', 'd'}\n    return g\n"
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    keys = {key_of(tmp_path), key_of(tmp_path)}
    code = "from pathlib import Path; from fastece.kernels import cache;" + (
        f"print(cache.cache_key(cache.hash_code(Path({str(tmp_path)!r})), cache.this_processor()))"
    )
    for seed in "123":
        cache = tmp_path / "cache"
        keys |= {output_of(code, FASTECE_CACHE_DIR=cache, PYTHONHASHSEED=seed).strip()}
    assert len(keys) == 1


def test_key_changes_with_numba_and_with_the_processor(tmp_path, monkeypatch):
    for name in ("CPU_NAME", "CPU_FEATURES"):  # which a user may have set
        monkeypatch.setattr(kernel_cache.config, name, None)
    keys = {key_of(tmp_path)}
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
        keys.add(key_of(tmp_path))
    assert len(keys) == 8 + len(kernel_cache.SETTINGS)


def test_code_for_any_processor_is_shared_by_all(tmp_path, monkeypatch):
    for name, value in (("CPU_NAME", "generic"), ("CPU_FEATURES", "")):
        monkeypatch.setattr(kernel_cache.config, name, value)
    key = key_of(tmp_path)
    for name in ("get_host_cpu_name", "host_features"):
        monkeypatch.setattr(kernel_cache, name, lambda: "abacus")
    assert key_of(tmp_path) == key


@pytest.mark.slow
def test_without_compilation_there_is_no_folder(tmp_path, package):
    blocked = tmp_path / "file"
    blocked.touch()
    for folder in (tmp_path / "cache", blocked):
        done = output_of(PAIR, package, FASTECE_CACHE_DIR=folder, NUMBA_DISABLE_JIT="1")
        assert done == PAIR_SHOWS
    assert contents_of(tmp_path) == {blocked: b""}


@pytest.mark.representative(1)
@pytest.mark.parametrize("variable", PLACES)
def test_place_is_the_first_variable_that_is_set(tmp_path, monkeypatch, variable):
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "here"))
    directory = Path(kernel_cache.cache_directory())
    assert directory.is_dir()
    assert directory.name == key_of(kernel_cache.FOLDER)
    assert tmp_path / "here" in directory.parents


def test_unwritable_place_is_one_warning_and_no_cache(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("FASTECE_CACHE_DIR", str(file / "below"))
    assert kernel_cache.cache_directory() is None
    assert len(kernel_cache.FAILURES) == 1
    monkeypatch.setattr(kernel_cache, "CACHE_DIRECTORY", None)

    @compiling.jit
    def twice(x):
        return 2 * x

    with pytest.warns(RuntimeWarning, match="FASTECE_CACHE_DIR") as caught:
        assert twice(4) == 8
    assert len(caught) == 1
    assert twice(4.5) == 9  # a second warning would be an error here


@pytest.mark.slow
def test_a_kernel_that_does_not_parse_is_no_error_for_the_others(tmp_path):
    broken = copy_package(tmp_path / "package")
    (broken / "fastece/kernels/unfinished.py").write_text("def f(:\n", encoding="utf-8")
    done = run(PAIR, broken, FASTECE_CACHE_DIR=tmp_path / "cache")
    assert done.stdout == PAIR_SHOWS
    assert done.stderr.count("RuntimeWarning") == 1


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
    directory = Path(kernel_cache.cache_directory())
    assert [path.stat().st_mode & 0o777 for path in (directory, directory.parent)] == [0o700] * 2


@pytest.mark.representative(1)
@posix
@pytest.mark.parametrize("which", ["keyed", "outer"])
@pytest.mark.parametrize("mode", [0o770, 0o702, None], ids=["group", "others", "owner"])
def test_a_folder_that_others_can_write_is_refused(tmp_path, monkeypatch, which, mode):
    """Kernels are unpickled and run: whoever can write them can run anything."""
    monkeypatch.setenv("FASTECE_CACHE_DIR", str(tmp_path / "cache"))
    directory = Path(kernel_cache.cache_directory())
    (directory / "kernel-1.nbc").touch()
    path = directory if which == "keyed" else directory.parent
    if mode is None:
        give_away(path, monkeypatch)
    else:
        path.chmod(mode)
    said = "belongs to another user" if mode is None else "others can write .*: chmod go-w it"
    assert kernel_cache.cache_directory() is None
    with pytest.warns(RuntimeWarning, match=said) as caught:
        kernel_cache.warn_of_failures()
    assert len(caught) == 1
    assert "Set FASTECE_CACHE_DIR" in str(caught[0].message)


@posix
def test_a_folder_in_one_that_is_shared_safely_is_taken(tmp_path, monkeypatch):
    """As ``/tmp`` is."""
    tmp_path.chmod(0o1777)
    monkeypatch.setenv("FASTECE_CACHE_DIR", str(tmp_path))
    assert kernel_cache.cache_directory() is not None


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


@pytest.mark.slow
def test_code_of_other_types_is_never_called(cache, package):
    """Each file at the place of the other, as processes that write one list of files may do."""
    for stem in ("caller", "callee"):
        first, second = (path for path in contents_of(cache) if path.name.startswith(stem))
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
    assert output_of(PAIR + COMPILED, package, FASTECE_CACHE_DIR=cache) == PAIR_SHOWS + "4\n"


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
@pytest.mark.parametrize("is_damaged", [False, True], ids=["empty", "damaged"])
def test_four_processes_at_once(tmp_path, cache, package, is_damaged):
    """In different order of types, so that they compile different code at the same time."""
    folder = cache if is_damaged else tmp_path / "empty"
    for path, content in contents_of(folder).items():
        path.write_bytes(content[:50])
    back = PAIR.replace("doubled(3), doubled(0.5)", "doubled(0.5), doubled(3)")
    done = at_once([PAIR + COMPILED, back + COMPILED] * 2, package, folder)
    assert [out.splitlines()[0] + "\n" for out in done] == [PAIR_SHOWS, "3.0 8\n"] * 2
    assert output_of(PAIR + COMPILED, package, FASTECE_CACHE_DIR=folder) == PAIR_SHOWS + "0\n"
    assert len(contents_of(folder)) == 4


class Compiled:
    """As much of a compiled kernel as the cache looks at."""

    lifted = ()

    def __init__(self, has_dynamic_globals=False):
        self.library = SimpleNamespace(has_dynamic_globals=has_dynamic_globals)

    def _reduce(self):
        return "machine", "code"


def tiny_kernel():
    """A kernel of a dispatcher that is no more than the cache looks at."""


KERNEL = SimpleNamespace(py_func=tiny_kernel)


def test_a_kernel_cache_refuses_damaged_files(tmp_path, monkeypatch):
    """Files are written, read, and refused if damaged; no compiler is needed for this."""
    monkeypatch.setattr(kernel_cache.CompileResult, "_rebuild", lambda _, *parts: parts)
    monkeypatch.setattr(kernel_cache.rtsys, "initialize", lambda _: None)
    cache = kernel_cache.KernelCache(KERNEL, str(tmp_path))
    assert cache.load_overload("f8", None) is None
    cache.save_overload("f8", Compiled())
    (path,) = tmp_path.iterdir()
    assert cache.load_overload("f8", None) == ("machine", "code")
    assert cache.load_overload("f4", None) is None
    cache.save_overload("f4", Compiled(has_dynamic_globals=True))
    cache.save_overload("type(<function f at 0x7f00>)", Compiled())
    assert list(tmp_path.iterdir()) == [path]
    content = path.read_bytes()
    for damaged in (
        b"",
        b"not a pickle",
        content[:-1],
        content[: kernel_cache.SEAL_SIZE],
        flipped(content),
    ):
        path.write_bytes(damaged)
        assert cache.load_overload("f8", None) is None
    path.unlink()
    path.mkdir()
    cache.save_overload("f8", Compiled())  # something that cannot be replaced is left there
    assert cache.load_overload("f8", None) is None
    cache.flush()
    assert list(tmp_path.iterdir()) == [path]
    gone = kernel_cache.KernelCache(KERNEL, str(tmp_path / "gone"))
    with pytest.warns(RuntimeWarning, match="FASTECE_CACHE_DIR"):
        gone.save_overload("f8", Compiled())
    gone.save_overload("f8", Compiled())  # no second warning: that would be an error here


def test_what_cannot_be_rebuilt_is_one_warning_and_compiled(tmp_path, monkeypatch):
    """This happens where numba has changed internals that it does not promise to keep."""
    monkeypatch.setattr(kernel_cache.rtsys, "initialize", lambda _: None)
    cache = kernel_cache.KernelCache(KERNEL, str(tmp_path))
    cache.save_overload("f8", Compiled())
    with pytest.warns(RuntimeWarning, match="cannot keep its compiled kernels"):
        assert cache.load_overload("f8", None) is None
    assert cache.load_overload("f8", None) is None  # a second warning would be an error here


@pytest.mark.parametrize("is_edited", [False, True])
def test_kernels_have_a_cache_if_there_is_a_folder_for_their_sources(
    tmp_path, monkeypatch, is_edited
):
    def njit(**_):
        return lambda function: SimpleNamespace(compile=len, py_func=function)

    monkeypatch.setattr(compiling.numba, "njit", njit)
    monkeypatch.setattr(compiling, "KERNELS", [])
    monkeypatch.setattr(kernel_cache, "SOURCES", [] if is_edited else kernel_cache.source_times())
    for directory in (None, str(tmp_path)):
        monkeypatch.setattr(kernel_cache, "CACHE_DIRECTORY", directory)
        compiled = compiling.jit(tiny_kernel)
        assert compiled._cache.cache_path == (None if is_edited else directory)
    assert len(compiling.KERNELS) == 2


@pytest.mark.slow
@pytest.mark.parametrize("version", [(0, 60), (99, 0)])
def test_a_version_of_numba_that_is_not_tested_works_without_a_cache(tmp_path, package, version):
    code = (
        "import numba; from types import SimpleNamespace;"
        f"numba.version_info = SimpleNamespace(short={version});"
        "del numba.core.compiler.CompileResult._rebuild;" + PAIR
    )
    done = run(code, package, FASTECE_CACHE_DIR=tmp_path)
    assert done.stdout == PAIR_SHOWS
    assert done.stderr.count("RuntimeWarning") == 1
    assert "not among the versions tested" in done.stderr
    assert contents_of(tmp_path) == {}


def test_the_package_allows_the_versions_of_numba_that_are_tested():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    low_major, low = kernel_cache.MIN_NUMBA
    major, high = kernel_cache.MAX_NUMBA
    assert f'"numba>={low_major}.{low},<{major}.{high + 1}"' in text


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


def test_sources_show_an_edit_and_are_not_read(tmp_path, monkeypatch):
    """The edit is noticed even if size and time are set back."""
    path = tmp_path / "a.py"
    path.write_text("x = 1\n", encoding="utf-8")
    before = kernel_cache.source_times(tmp_path)
    time.sleep(0.05)  # the clock of file systems is coarse
    edit(path, "1", "2")

    def refuse(*_, **__):
        raise AssertionError("a source is read")

    for reader in ("open", "read_bytes", "read_text"):
        monkeypatch.setattr(Path, reader, refuse)
    monkeypatch.setattr("builtins.open", refuse)
    assert (kernel_cache.source_times(tmp_path) == before) == (os.name != "posix")


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
