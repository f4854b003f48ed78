"""Compiled kernels on disk: which folder they are kept in, and the file of each.

numba's own disk cache is not safe enough for this package. It decides whether a kernel is fresh by
the file of that kernel alone: when a kernel that another file calls is edited, the caller is
silently stale. It keeps a list of its files in another file, and processes that write at once may
leave a list that leads to the code of other types. It runs a file with a flipped bit, which
crashes, and it does not read a folder that it cannot write. Here a hash of all kernels and of
everything that machine code depends on names the folder, and each file in it stands for itself and
shows whether it is whole.

The writer of such a file decides which code runs here. A folder is therefore used only if it
belongs to this user or to root, and if nobody else can write it.

All of this needs parts of numba that are not its public interface, so nothing is kept with a
version of numba that has not been tested.
"""

import functools
import hashlib
import os
import pickle
import pkgutil
import re
import stat
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, Protocol

import llvmlite
import numba
from llvmlite.binding import get_host_cpu_name, get_process_triple

from fastece.kernels.progress import announce_compiling

# The first and the last version of numba that have been tested.
MIN_NUMBA = (0, 61)
MAX_NUMBA = (0, 68)
IS_TESTED = MIN_NUMBA <= numba.version_info.short <= MAX_NUMBA
# Its attributes are typed here and there, and are not the same in every version.
config: Any = numba.config
if IS_TESTED:
    from numba.core.codegen import get_host_cpu_features as host_features
    from numba.core.compiler import CompileResult
    from numba.core.runtime.nrt import rtsys
    from numba.core.serialize import dumps

FOLDER = Path(__file__).parent
# Settings of numba that a user may change and machine code depends on; not every version of numba
# has all of them.
SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)
# Bytes of the hash that each file begins with.
SEAL_SIZE = hashlib.sha256().digest_size


# --- the key: everything that machine code depends on ---------------------------------------


def code_parts(code: CodeType) -> Iterator[bytes]:
    """Yield the instructions of a code object as bytes, the same in every process."""
    constants = [stable_constant(constant) for constant in code.co_consts]
    yield repr((code.co_name, code.co_code, code.co_names, constants)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_parts(constant)


def stable_constant(constant: Any) -> Any:
    """Return a constant in a form that is written alike in every process."""
    if isinstance(constant, frozenset):  # whose order changes from process to process
        return sorted(map(repr, constant))
    if isinstance(constant, CodeType):  # which is written with its address
        return None
    return constant


class Processor(NamedTuple):
    """A processor: LLVM's name, and the features that code may use, as ``+avx,+avx2``."""

    name: str
    features: str


def this_processor() -> Processor:
    """Return the processor that numba compiles for.

    It is this one, or the one that ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` name.
    """
    name = config.CPU_NAME
    if name is None:
        name = get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = host_features()  # type: ignore[no-untyped-call]
    return Processor(name, features)


def cache_key(code: bytes, processor: Processor) -> str:
    """Hash the code of all kernels, the compiler and the processor.

    numpy is left out, as it is in numba's own cache: machine code meets arrays only through
    functions that numba brings along.
    """
    return hashlib.sha256(repr((compiler(), processor)).encode() + code).hexdigest()[:16]


def compiler() -> tuple[Any, ...]:
    """Return the versions, settings and system of the compiler.

    LLVM's name of a Mac has the version of its system, which an update changes and code does not
    depend on.
    """
    versions = [EXTENSION_SUFFIXES[0], numba.__version__, llvmlite.__version__]
    settings = [str(getattr(config, name, None)) for name in SETTINGS]
    system = re.sub(r"(darwin|macosx)[\d.]+", r"\1", get_process_triple())
    return versions, settings, system


@functools.cache
def own_code() -> bytes:
    """Hash the code of all kernels, once in each process."""
    return hash_code(FOLDER)


def hash_code(folder: Path) -> bytes:
    """Hash the code of all modules in a folder.

    The code is hashed and not the source text. A ``__pycache__`` file passes for fresh when its
    source was changed within the same second to another one of the same size, and then the code in
    that file is the code that runs.
    """
    digest = hashlib.sha256()
    finder: Any = pkgutil.get_importer(str(folder))
    modules = {module.name for module in pkgutil.iter_modules([str(folder)])}
    for module in sorted(modules | {"__init__"}):
        spec = finder.find_spec(module)
        if spec is not None:
            code = spec.loader.get_code(module)
            digest.update(b"".join((module.encode(), *code_parts(code))))
    return digest.digest()


def source_times(folder: Path = FOLDER) -> list[tuple[Any, ...]]:
    """List name, size and times of change of each source in a folder.

    On POSIX no edit can leave these times as they were. An archive has no such list.
    """
    times: list[tuple[Any, ...]] = []
    # `Path.glob` takes five times as long, and every kernel asks.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and not entry.name.startswith("."):
                status = entry.stat()
                times.append((entry.name, *status[1:7], status.st_mtime_ns, status.st_ctime_ns))
    return sorted(times)


# --- the folder -----------------------------------------------------------------------------


def give_up(error: Exception) -> None:
    """Note an error that keeps compiled kernels from disk, and stop trying.

    The warning waits until something is compiled: before that, nobody misses the disk.
    """
    FAILURES.append(
        f"fastece cannot keep its compiled kernels ({error}); they are compiled anew in "
        "every process. Set FASTECE_CACHE_DIR to a folder that you can write and nobody else can."
    )
    WAITING.append(FAILURES[-1])


def warn_of_failures() -> None:
    """Warn of each error that keeps compiled kernels from disk, once."""
    while WAITING:
        warnings.warn(WAITING.pop(), RuntimeWarning, stacklevel=3)


def check_trust(directory: str) -> None:
    """Raise PermissionError if another user could write a directory.

    This user or root must own the directory and its parent, and nobody else may be able to write
    them. Only the modes of POSIX are checked. The parent may be writable by others if it keeps them
    from removing files of another user, as ``/tmp`` does.
    """
    if os.name != "posix":
        return
    check_owner_and_mode(os.path.dirname(directory), harmless=stat.S_ISVTX)
    check_owner_and_mode(directory, harmless=0)


def check_owner_and_mode(path: str, harmless: int) -> None:
    """Raise PermissionError if another user owns a path, or can write it.

    With the bit `harmless` in its mode, a path that others can write is good enough.
    """
    status = os.stat(path)
    if status.st_uid not in (0, os.geteuid()):
        raise PermissionError(
            f"{path} belongs to another user, who could make this process run anything"
        )
    is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if is_open and not status.st_mode & harmless:
        raise PermissionError(
            f"others can write {path}, and could make this process run anything: chmod go-w it"
        )


def cache_directory() -> str | None:
    """Return the directory of this key's compiled kernels, or None on an error.

    A directory that is made here is for this user alone. One that cannot be written is good enough
    if somebody who can be trusted has filled it.
    """
    try:
        if not IS_TESTED:
            raise RuntimeError(f"numba {numba.__version__} is not among the versions tested")
        parent = cache_parent()
        directory = os.path.join(parent, cache_key(own_code(), this_processor()))
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


def cache_parent() -> str:
    """Return the folder of the folders of all keys.

    ``FASTECE_CACHE_DIR`` or ``NUMBA_CACHE_DIR`` name it; else it is in the user's cache folder. A
    user without a home has none, which is a RuntimeError.
    """
    parent = os.environ.get("FASTECE_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if not parent:
        home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        parent = os.path.join(home, "fastece")
    return os.path.abspath(os.path.expanduser(parent))


# Why compiled kernels are not kept, once that has happened, and which reasons wait for a warning.
FAILURES: list[str] = []
WAITING: list[str] = []
# The times are taken first: an edit while the key is made is then an edit after it.
SOURCES = source_times()
CACHE_DIRECTORY = None if config.DISABLE_JIT else cache_directory()


# --- the files of one kernel ----------------------------------------------------------------


class ShippedKernels(Protocol):
    """Kernels that came with the package; `archive` has them."""

    def load(self, name: str, sig: Any, dispatcher: Any) -> Any:
        """Load the compiled code that a file's name stands for; None where there is none."""


class KernelCache:
    """Files of the compiled code of one kernel, one for each set of argument types.

    It has the methods that numba's dispatcher calls of a cache.

    A file begins with a hash of its place and content. A file that is cut off, changed or at
    another file's place is therefore compiled anew and replaced. A file is written aside and moved
    to its place, so that it is whole at any time, and it does not matter which of several processes
    comes last. Without a directory nothing is kept.

    Code that is not in the directory may be among the kernels that came with the package. Those
    come second, because the directory's are compiled for this very processor.
    """

    def __init__(
        self, dispatcher: Any, directory: str | None, shipped: ShippedKernels | None = None
    ) -> None:
        function = dispatcher.py_func
        code = b"".join(code_parts(function.__code__))
        self._identity = f"{function.__module__} {function.__qualname__} ".encode() + code
        self._stem = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._dispatcher = dispatcher
        self._shipped = shipped
        self.cache_path = directory  # a name of numba's, for its statistics

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled code for a signature; None where numba has to compile it."""
        loaded = self._load_kept(sig, target_context)
        if loaded is None and self._shipped is not None:
            loaded = self._shipped.load(self.file_name(sig), sig, self._dispatcher)
        if loaded is None:
            warn_of_failures()
            with suppress(OSError, ValueError):  # of a closed stream
                announce_compiling()
            skip_check_of_blas()
        return loaded

    def _load_kept(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled code for a signature from the directory, or return None."""
        if self.cache_path is None:
            return None
        content = read_sealed(self._path(sig))
        if content is not None:
            try:
                return rebuild(content, target_context)
            except Exception as error:  # the file is whole, and numba still does not take it
                if not FAILURES:
                    give_up(error)
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep the compiled code of a signature on disk, if possible.

        After one warning, no more is tried. Code with addresses in it, also in the name of a type,
        means nothing to another process.
        """
        has_addresses = compiled.library.has_dynamic_globals or " at 0x" in repr(sig)
        if self.cache_path is None or compiled.lifted or has_addresses or FAILURES:
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
                warn_of_failures()
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def flush(self) -> None:
        """Do nothing: no code is held back."""

    def file_name(self, sig: Any) -> str:
        """Return the name of the file of the code for a signature."""
        name = hashlib.sha256(repr(sig).encode() + self._identity).hexdigest()[:16]
        return f"{self._stem}-{name}.nbc"

    def _path(self, sig: Any) -> Path:
        """Return the path of the file of the code for a signature."""
        return Path(str(self.cache_path)) / self.file_name(sig)


def seal(path: Path, content: bytes) -> bytes:
    """Hash a file's place, which is its folder's key with its name, and its content."""
    return hashlib.sha256("/".join(path.parts[-2:]).encode() + content).digest()


def read_sealed(path: Path) -> bytes | None:
    """Read the content of a file of compiled code; None if it is gone or damaged."""
    with suppress(OSError):
        return open_seal(path, path.read_bytes())
    return None


def open_seal(path: Path, whole_file: bytes) -> bytes | None:
    """Return the content of a sealed file; None if it is damaged or another place's."""
    content = whole_file[SEAL_SIZE:]
    if whole_file[:SEAL_SIZE] == seal(path, content):
        return content
    return None


def rebuild(content: bytes, target_context: Any) -> Any:
    """Make compiled code from the content of its file.

    Only what loaded code needs is initialized. Parts that a compiler needs besides take 0.2 s.
    """
    rtsys.initialize(target_context)
    return CompileResult._rebuild(target_context, *pickle.loads(content))  # type: ignore[no-untyped-call]


def skip_check_of_blas() -> None:
    """Import numba's array functions without their check for linear algebra.

    scipy has it, and the check takes 0.2 s.
    """
    linalg: Any = import_module("numba.np.linalg")
    ensure_blas = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    import_module("numba.np.arraymath")
    linalg.ensure_blas = ensure_blas
