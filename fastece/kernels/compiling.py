"""The one decorator that sets all options of numba, and compiled kernels on disk.

Options: ``nogil`` so that threads run side by side; ``error_model="numpy"`` so that a division
needs no branch; ``forceinline`` because a kernel that calls another was up to three times slower in
the process that compiled it than in those that read it from the cache; ``no_cfunc_wrapper`` because
nobody takes a kernel's address, and it is a twentieth of the time to compile. Never
``parallel=True`` (its thread layers abort when two Python threads call in, or deadlock after a
fork), never ``fastmath`` (results must not depend on the compiler's mood).

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

import gc
import hashlib
import multiprocessing
import os
import pickle
import pkgutil
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

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
    from numba.core.codegen import get_host_cpu_features as host_features
    from numba.core.compiler import CompileResult
    from numba.core.runtime.nrt import rtsys
    from numba.core.serialize import dumps

F = TypeVar("F", bound=Callable[..., Any])
FOLDER = Path(__file__).parent
# What a user may set and machine code depends on; not every version of numba has them all.
SETTINGS = (
    "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DEBUG_NRT", "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS", "LLVM_REFPRUNE_PASS", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE",
    "USING_SVML",
)  # fmt: skip
SEAL = hashlib.sha256().digest_size

# Every kernel of this process, as its module is imported.
KERNELS: list[Any] = []


# --- what a cached kernel depends on --------------------------------------------------------


def code_parts(code: CodeType) -> Iterator[bytes]:
    """Yield the instructions of a code object as bytes, the same in every process."""
    # The order of a set is not the same in every process.
    constants = [
        sorted(map(repr, c)) if isinstance(c, frozenset) else None if isinstance(c, CodeType) else c
        for c in code.co_consts
    ]
    yield repr((code.co_name, code.co_code, code.co_names, constants)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_parts(constant)


def cache_key(folder: Path = FOLDER) -> str:
    """Hash the code of all modules in `folder`, the compiler and the processor.

    The compiler is hashed with its settings. The processor is this one, or the one that
    ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` name.

    The code is hashed and not the sources: a ``__pycache__`` file passes for fresh when a source
    was changed within the same second to one of the same size, and then that is the code that runs.
    """
    settings = [str(getattr(config, name, None)) for name in SETTINGS]
    versions = [EXTENSION_SUFFIXES[0], numba.__version__, llvmlite.__version__, np.__version__]
    name, features = config.CPU_NAME, config.CPU_FEATURES
    name = get_host_cpu_name() if name is None else name
    features = host_features() if features is None else features  # type: ignore[no-untyped-call]
    target = (versions, settings, get_process_triple(), (name, features))
    digest = hashlib.sha256(repr(target).encode())
    finder: Any = pkgutil.get_importer(str(folder))
    modules = {module.name for module in pkgutil.iter_modules([str(folder)])}
    for module in sorted(modules | {"__init__"}):
        spec = finder.find_spec(module)
        if spec is not None:
            digest.update(b"".join((module.encode(), *code_parts(spec.loader.get_code(module)))))
    return digest.hexdigest()[:16]


def source_times(folder: Path = FOLDER) -> list[tuple[Any, ...]]:
    """List name, size and times of change of each source in `folder`.

    On POSIX no edit can leave these times as they were.
    """
    found = []
    with suppress(OSError):  # of an archive, nothing
        for path in sorted(folder.glob("[!.]*.py")):
            about = path.stat()
            found.append((path.name, *about[1:7], about.st_mtime_ns, about.st_ctime_ns))
    return found


# --- where ----------------------------------------------------------------------------------


def give_up(error: Exception) -> None:
    """Warn of an error that keeps compiled kernels from disk, and stop trying."""
    FAILURES.append(
        f"fastece cannot keep its compiled kernels ({error}); they are compiled anew in "
        "every process. Set FASTECE_CACHE_DIR to a folder that you can write and nobody else can."
    )
    warnings.warn(FAILURES[-1], RuntimeWarning, stacklevel=3)


def check_trust(directory: str) -> None:
    """Raise PermissionError if another user could write the directory.

    This user or root must own the directory and its parent, and nobody else may be able to write
    them. Only the modes of POSIX are checked.

    Others may write the parent if it lets nobody remove what is another's, as ``/tmp`` does.
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
    """Return the directory of this key's compiled kernels, or None with a warning.

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


# --- the line on stderr ---------------------------------------------------------------------

# Seconds that are compiled without a word, and those that a kernel takes, about.
PATIENCE, EACH = 1.0, 0.3


def show(text: str) -> None:
    """Overwrite the line with a text, cut to the width of the terminal."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)


class Progress:
    """The number of kernels that this process has compiled, and a line that shows it.

    Attributes
    ----------
    expected : int
        Number of kernels that a command needs, 0 where it is not known.
    """

    def __init__(self) -> None:
        self.expected, self.done, self.seconds = 0, 0, 0.0
        self._starts: list[float] = []
        self._is_shown = False

    def begin(self, name: str) -> None:
        """Count a kernel that is about to be compiled; show it after some time."""
        self.done += 1
        self._starts.append(time.perf_counter())
        seconds = self.seconds + self._starts[-1] - self._starts[0]
        # Others wait for the process that shows it, not for its workers.
        is_worker = multiprocessing.parent_process() is not None
        is_quiet = is_worker or os.environ.get("FASTECE_QUIET") or sys.stderr is None
        if seconds > PATIENCE and not is_quiet:
            about = f"about {EACH * self.expected:.0f} s" if self.expected else "a few seconds"
            text = f"fastece: compiling once, {about}"
            if sys.stderr.isatty():
                total = f" of {self.expected}" if self.done <= self.expected else ""
                show(f"{text}: kernel {self.done}{total}, {name}")
            elif not self._is_shown:
                print(text, file=sys.stderr, flush=True)
            self._is_shown = True

    def end(self) -> None:
        """Add the seconds of a kernel and its callees, and clear the line."""
        start = self._starts.pop() if self._starts else time.perf_counter()
        if not self._starts:
            self.seconds += time.perf_counter() - start
            if self._is_shown and sys.stderr.isatty():
                show("")


progress = Progress()


# --- one kernel -----------------------------------------------------------------------------


class KernelCache:
    """Files of the compiled code of one kernel, one for each set of argument types.

    It is a cache as numba's dispatcher uses it.

    A file begins with a hash of its place and content, so what is cut, changed or at another file's
    place is compiled anew and replaced. It is written aside and moved to its place, so it is
    whole at any time, and it does not matter which of several processes comes last.

    Without a directory nothing is kept.
    """

    def __init__(self, function: Callable[..., Any], directory: str | None) -> None:
        code = b"".join(code_parts(function.__code__))
        self._identity = f"{function.__module__} {function.__qualname__} ".encode() + code
        self._name = function.__name__
        self._stem = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self.cache_path = directory  # numba's name, for its statistics

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code for a signature, or return None.

        With None, numba compiles it.
        """
        path, whole = self._path(sig), b""
        if self.cache_path is not None:
            with suppress(OSError):
                whole = path.read_bytes()
        content = whole[SEAL:]
        if whole[:SEAL] == seal(path, content):
            try:
                # All that loaded code needs; what a compiler needs besides takes 0.2 s.
                rtsys.initialize(target_context)
                return CompileResult._rebuild(target_context, *pickle.loads(content))  # type: ignore[no-untyped-call]
            except Exception as error:  # whole, and still not what numba takes
                if not FAILURES:
                    give_up(error)
        with suppress(OSError, ValueError):  # of a closed stream
            progress.begin(self._name)
        # numba imports scipy's linear algebra only to see whether it is there, as it is: 0.2 s.
        linalg = import_module("numba.np.linalg")
        with_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None  # type: ignore[attr-defined]
        import_module("numba.np.arraymath")
        linalg.ensure_blas = with_blas  # type: ignore[attr-defined]
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep the compiled code of a signature on disk, if possible.

        After one warning, no more is tried.
        """
        with suppress(OSError, ValueError):
            progress.end()
        # Addresses, in code or in the name of a type, mean nothing to another process.
        tied = compiled.lifted or compiled.library.has_dynamic_globals or " at 0x" in repr(sig)
        if self.cache_path is None or tied or FAILURES:
            return
        path = self._path(sig)
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            content = dumps(compiled._reduce())  # type: ignore[no-untyped-call]
            aside.write_bytes(seal(path, content) + content)
            aside.replace(path)
        except Exception as error:
            # On Windows a file that another process reads cannot be replaced: then it is there.
            if not path.exists():
                give_up(error)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def flush(self) -> None:
        """Do nothing: no code is held back."""

    def _path(self, sig: Any) -> Path:
        """Return the path of the file of code for a signature."""
        name = hashlib.sha256(repr(sig).encode() + self._identity).hexdigest()[:16]
        return Path(str(self.cache_path)) / f"{self._stem}-{name}.nbc"


def seal(path: Path, content: bytes) -> bytes:
    """Hash the path and content of a file of compiled code, as the file begins.

    Hashed are the key of its folder, its name and its content.
    """
    return hashlib.sha256("/".join(path.parts[-2:]).encode() + content).digest()


# --- the decorator --------------------------------------------------------------------------


@contextmanager
def without_collector() -> Iterator[None]:
    """Pause the garbage collector while the block runs.

    A compiler's objects live on, and the collector takes a tenth of its time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Hold back an interrupt until the block ends.

    LLVM asks for machine code through functions of Python. An exception cannot leave them: an
    interrupt there was lost, or ended the process with a segmentation fault.
    """
    handler = signal.getsignal(signal.SIGINT)
    # Only the main thread is interrupted; what is not a function of Python raises nothing.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    seen: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *interrupt: seen.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if seen:
            handler(*seen[0])


def jit(function: F) -> F:
    """Compile `function` at its first call for each set of types."""
    options: dict[str, Any] = {"nogil": True, "forceinline": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(error_model="numpy", **options)(function)
    if compiled is function:  # with NUMBA_DISABLE_JIT
        return function
    KERNELS.append(compiled)
    # A closure's variables are in no hash. And modules are imported when they are first needed, or
    # again after an edit: what is not of the sources that named the folder does not belong there.
    is_hashed = function.__closure__ is None and source_times() == SOURCES
    directory = CACHE_DIRECTORY if is_hashed else None
    if IS_TESTED:
        compiled._cache = KernelCache(function, directory)
        compiled.compile = without_interrupts()(without_collector()(compiled.compile))
    return compiled  # type: ignore[no-any-return]
