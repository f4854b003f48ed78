"""Compiled kernels on disk: where they are, whom they are believed from, and one kernel's files.

numba's own disk cache is not safe enough. It decides whether a kernel is fresh by the file of that
kernel alone: edit a kernel that another file calls, and the caller is silently stale. It keeps a
list of its files in another file: processes that write at once may leave one that leads to the code
of other types. It runs a file with a flipped bit (a crash), and does not read a folder that it
cannot write. Here the folder is named by a hash of all kernels and of all that machine code depends
on, and each file in it stands for itself and says whether it is whole.

Whoever writes such a file decides what runs here. So a folder is used only if it belongs to this
user or to root and nobody else can write it.

This needs parts of numba that are not its public interface, so with a version of numba that has
not been tested nothing is kept.
"""

import hashlib
import os
import pickle
import pkgutil
import stat
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite.binding import get_host_cpu_name, get_process_triple

# The first and the last version of numba that this is tested with.
TESTED = ((0, 61), (0, 68))
IS_TESTED = TESTED[0] <= numba.version_info.short <= TESTED[1]
# Untyped here and there, and not the same in every version.
config: Any = numba.config
if IS_TESTED:
    from numba.core import codegen, compiler, serialize
    from numba.core.runtime import nrt

    rtsys: Any = nrt.rtsys
    host_features: Any = codegen.get_host_cpu_features
    CompileResult: Any = compiler.CompileResult
    dumps: Any = serialize.dumps

FOLDER = Path(__file__).parent
# What a user may set and machine code depends on; not every version of numba has them all.
SETTINGS = (
    "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DEBUG_NRT", "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS", "LLVM_REFPRUNE_PASS", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE",
    "USING_SVML",
)  # fmt: skip
SEAL = hashlib.sha256().digest_size
# Seconds for which a kernel that another process compiles is waited for, and between two looks.
PATIENCE, LOOK = 60.0, 0.01


# --- what a cached kernel depends on --------------------------------------------------------


def code_parts(code: CodeType) -> Iterator[bytes]:
    """What a code object does, in bytes that are the same in every process."""
    # The order of a set is not the same in every process.
    constants = [
        sorted(map(repr, c)) if isinstance(c, frozenset) else None if isinstance(c, CodeType) else c
        for c in code.co_consts
    ]
    yield repr((code.co_name, code.co_code, code.co_names, constants)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_parts(constant)


def processor() -> tuple[str, str]:
    """Name and features of the processor that code is compiled for: of this one, or as
    ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` say."""
    name, features = config.CPU_NAME, config.CPU_FEATURES
    return (
        get_host_cpu_name() if name is None else name,
        host_features() if features is None else features,
    )


def cache_key(folder: Path = FOLDER) -> str:
    """Hash of every module in `folder` as Python loads it, of the compiler with its settings, and
    of the processor.

    Of the code and not of the sources: a ``__pycache__`` file passes for fresh when a source was
    changed within the same second to one of the same size, and then that is the code that runs.
    """
    settings = [str(getattr(config, name, None)) for name in SETTINGS]
    versions = [EXTENSION_SUFFIXES[0], numba.__version__, llvmlite.__version__, np.__version__]
    target = repr((versions, settings, get_process_triple(), processor()))
    digest = hashlib.sha256(target.encode())
    for found in sorted(pkgutil.iter_modules([str(folder)]), key=lambda module: module.name):
        finder: Any = found.module_finder
        code = finder.find_spec(found.name).loader.get_code(found.name)
        digest.update(b"".join((found.name.encode(), *code_parts(code))))
    return digest.hexdigest()[:16]


def source_times(folder: Path = FOLDER) -> dict[str, tuple[int, ...]]:
    """Of every source in `folder` what the file system says of its last change: on POSIX the time
    of change, which no edit can leave as it was."""
    times: dict[str, tuple[int, ...]] = {}
    with suppress(OSError), os.scandir(folder) as entries:  # of an archive, nothing
        for entry in entries:
            if entry.name.endswith(".py") and not entry.name.startswith("."):
                found = entry.stat()
                times[entry.name] = (
                    found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
                )  # fmt: skip
    return times


def is_source_unchanged() -> bool:
    """Whether the sources are those that named the folder."""
    return source_times() == SOURCES


# --- where ----------------------------------------------------------------------------------


def give_up(error: Exception) -> None:
    """Warn that compiled kernels cannot be kept, and try no more."""
    FAILURES.append(
        f"fastece cannot keep its compiled kernels ({error}); they are compiled anew in "
        "every process. Set FASTECE_CACHE_DIR to a folder that you can write and nobody else can."
    )
    warnings.warn(FAILURES[-1], RuntimeWarning, stacklevel=3)


def check_trust(directory: str) -> None:
    """PermissionError, unless this user or root owns the directory and the one that it is in, and
    nobody else can write them; where modes are those of POSIX.

    Others may write the outer one if it lets nobody remove what is another's, as ``/tmp`` does.
    """
    if os.name != "posix":
        return
    for path, harmless in ((os.path.dirname(directory), stat.S_ISVTX), (directory, 0)):
        found = os.stat(path)
        if found.st_uid not in (0, os.geteuid()):
            raise PermissionError(
                f"{path} belongs to another user, who could make this process run anything"
            )
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & harmless:
            raise PermissionError(
                f"others can write {path}, and could make this process run anything: chmod go-w it"
            )


def cache_directory() -> str | None:
    """The directory of this key's compiled kernels, or None, with one warning.

    ``FASTECE_CACHE_DIR`` or ``NUMBA_CACHE_DIR`` name another parent than the user's cache folder.
    What is made is for this user alone. A directory that cannot be written is good enough if
    somebody who is to be trusted has filled it.
    """
    named = os.environ.get("FASTECE_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    try:
        if not IS_TESTED:
            raise RuntimeError(f"numba {numba.__version__} is not among the versions tested")
        if not named:  # RuntimeError for a user without a home
            home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
            named = os.path.join(home, "fastece")
        parent = os.path.abspath(os.path.expanduser(named))
        directory = os.path.join(parent, cache_key())
        if not os.path.isdir(directory):
            Path(parent).mkdir(0o700, parents=True, exist_ok=True)
            os.makedirs(directory, 0o700, exist_ok=True)
        check_trust(directory)
        if not any(Path(directory).glob("*.nbc")):
            tempfile.TemporaryFile(dir=directory).close()
    except Exception as error:  # such as a source that is being edited and does not parse
        give_up(error)
        return None
    return directory


# Why compiled kernels are not kept, once that is so.
FAILURES: list[str] = []
SOURCES = source_times()  # first: an edit while the key is made is an edit after this
CACHE_DIRECTORY = None if config.DISABLE_JIT else cache_directory()


# --- one kernel -----------------------------------------------------------------------------


def seal(path: Path, content: bytes) -> bytes:
    """Hash that the file at `path` begins with: of its folder's key, its name and its content."""
    return hashlib.sha256("/".join(path.parts[-2:]).encode() + content).digest()


def content_of(path: Path) -> bytes | None:
    """What the file at `path` holds after its seal; None if there is none, or it is not whole."""
    with suppress(OSError):
        whole = path.read_bytes()
        if whole[:SEAL] == seal(path, whole[SEAL:]):
            return whole[SEAL:]
    return None


def take_turn(path: Path) -> int | None:
    """A lock on compiling what belongs at `path`, or None while another process has it.

    OSError where files cannot be locked.
    """
    import fcntl

    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lock


class KernelCache:
    """Compiled code of one kernel, as numba's dispatcher uses it: one file for each set of argument
    types.

    A file begins with a hash of its place and content, so what is cut, changed or at another file's
    place is compiled anew and replaced. It is written aside and moved to its place, so it is
    whole at any time, and it does not matter which of several processes comes last.

    Processes that need the same code at the same time compile it once: whoever comes first holds a
    lock, and the others wait. Nobody waits for ever: who waits compiles a kernel that calls the one
    waited for, so that there is no circle, and a lock ends with its process.

    Without a directory nothing is kept. `on_compile` is told the name before each compilation.
    """

    def __init__(
        self, function: Callable[..., Any], directory: str | None, on_compile: Callable[[str], Any]
    ) -> None:
        code = b"".join(code_parts(function.__code__))
        self._identity = f"{function.__module__} {function.__qualname__} ".encode() + code
        self._directory = directory
        self._name = function.__name__
        self._stem = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._on_compile = on_compile
        self._locks: dict[Any, int] = {}

    @property
    def cache_path(self) -> str | None:
        """The folder, for numba's statistics."""
        return self._directory

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for these types, or None: then numba compiles it."""
        content = self._find(sig)
        if content is not None:
            try:
                # All that loaded code needs; what a compiler needs besides takes 0.2 s.
                rtsys.initialize(target_context)
                return CompileResult._rebuild(target_context, *pickle.loads(content))
            except Exception as error:  # whole, and still not what numba takes
                if not FAILURES:
                    give_up(error)
        self._on_compile(self._name)
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep compiled code, if that can be done; after one warning, no more is tried."""
        # Addresses, in code or in the name of a type, mean nothing to another process.
        tied = compiled.lifted or compiled.library.has_dynamic_globals or " at 0x" in repr(sig)
        if self._directory is not None and not tied and not FAILURES:
            self._write(self._path(sig), compiled)
        self._release(sig)

    def flush(self) -> None:
        """Nothing is held back."""

    def _write(self, path: Path, compiled: Any) -> None:
        """Write aside, and move to its place."""
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            content = dumps(compiled._reduce())
            aside.write_bytes(seal(path, content) + content)
            aside.replace(path)
        except Exception as error:
            # On Windows a file that another process reads cannot be replaced: then it is there.
            if not path.exists():
                give_up(error)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def _find(self, sig: Any) -> bytes | None:
        """The content for these types; if there is none, once it is this process's turn to compile
        it, or it has waited long enough, None."""
        if self._directory is None:
            return None
        path, end = self._path(sig), time.monotonic() + PATIENCE
        content = content_of(path)
        while content is None and sig not in self._locks and time.monotonic() < end:
            try:
                lock = take_turn(path)
            except (ImportError, OSError):  # a system without such locks, or a full one
                break
            if lock is None:
                time.sleep(LOOK)
            else:
                self._locks[sig] = lock
            content = content_of(path)  # it may have been written meanwhile
        if content is not None:
            self._release(sig)
        return content

    def _release(self, sig: Any) -> None:
        """Let other processes have their turn."""
        lock = self._locks.pop(sig, None)
        if lock is not None:
            with suppress(OSError):
                self._path(sig).with_suffix(".lock").unlink(missing_ok=True)
            os.close(lock)

    def _path(self, sig: Any) -> Path:
        """File of the code for these types."""
        name = hashlib.sha256(repr(sig).encode() + self._identity).hexdigest()[:16]
        return Path(str(self._directory)) / f"{self._stem}-{name}.nbc"
