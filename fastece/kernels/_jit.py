"""The one decorator that owns every numba option, and the disk cache of compiled kernels.

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
"""

import hashlib
import os
import pickle
import pkgutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import llvmlite
import numba
import numpy as np
from llvmlite.binding import get_host_cpu_name, get_process_triple
from numba.core import caching, codegen, compiler, serialize

__all__ = ["CACHE_DIRECTORY", "FAILURES", "KERNELS", "jit"]

# Untyped here and there, and not the same in every version.
config: Any = numba.config
host_features: Any = codegen.get_host_cpu_features
CompileResult: Any = compiler.CompileResult
dumps: Any = serialize.dumps

F = TypeVar("F", bound=Callable[..., Any])

FOLDER = Path(__file__).parent
# What a user may set and machine code depends on; not every version of numba has them all.
SETTINGS = (
    "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DEBUG_NRT", "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS", "LLVM_REFPRUNE_PASS", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE",
    "USING_SVML",
)  # fmt: skip
SEAL = hashlib.sha256().digest_size


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


def source_hash(folder: Path = FOLDER) -> bytes:
    """Hash of every kernel source in `folder`."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("[!.]*.py")):
        digest.update(path.name.encode())
        with suppress(OSError):  # an editor may be replacing it
            digest.update(path.read_bytes())
    return digest.digest()


def processor() -> tuple[str, str]:
    """Name and features of the processor that code is compiled for: of this one, or as
    ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` say."""
    name, features = config.CPU_NAME, config.CPU_FEATURES
    return (
        get_host_cpu_name() if name is None else name,
        host_features() if features is None else features,
    )


def cache_key(folder: Path = FOLDER) -> str:
    """Hash of every kernel in `folder`, of the compiler with its settings, and of the processor.

    The kernels twice, as sources and as Python loads them: a ``__pycache__`` file passes for fresh
    when a source was changed within the same second to one of the same size, and then the code
    that runs is not that of the source.
    """
    settings = [str(getattr(config, name, None)) for name in SETTINGS]
    versions = [EXTENSION_SUFFIXES[0], numba.__version__, llvmlite.__version__, np.__version__]
    target = repr((versions, settings, get_process_triple(), processor()))
    digest = hashlib.sha256(target.encode() + source_hash(folder))
    for found in pkgutil.iter_modules([str(folder)]):
        finder: Any = found.module_finder
        code = finder.find_spec(found.name).loader.get_code(found.name)
        digest.update(b"".join(code_parts(code)))
    return digest.hexdigest()[:16]


# --- where ----------------------------------------------------------------------------------


def home_cache() -> str:
    """The user's cache folder; RuntimeError for a user without a home."""
    return str(Path("~/.cache").expanduser())


def give_up(error: Exception) -> None:
    """Warn that compiled kernels cannot be kept, and try no more."""
    FAILURES.append(
        f"fastece cannot keep its compiled kernels ({error}); they are compiled anew in "
        "every process. Set FASTECE_CACHE_DIR to a writable folder."
    )
    warnings.warn(FAILURES[-1], RuntimeWarning, stacklevel=3)


def cache_directory() -> str | None:
    """The directory of this key's compiled kernels, or None, with one warning.

    ``FASTECE_CACHE_DIR`` or ``NUMBA_CACHE_DIR`` name another parent than the user's cache folder.
    A directory that cannot be written is good enough if somebody has filled it.
    """
    named = os.environ.get("FASTECE_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    directory = ""
    try:
        if not named:
            named = os.path.join(os.environ.get("XDG_CACHE_HOME") or home_cache(), "fastece")
        directory = os.path.join(os.path.abspath(os.path.expanduser(named)), cache_key())
        os.makedirs(directory, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except Exception as error:  # such as a source that is being edited and does not parse
        if directory and any(Path(directory).glob("*.nbc")):
            return directory
        give_up(error)
        return None
    return directory


# Why compiled kernels are not kept, once that is so.
FAILURES: list[str] = []
SOURCES = source_hash()  # first: an edit while the key is made is an edit after this
CACHE_DIRECTORY = None if config.DISABLE_JIT else cache_directory()
# Every kernel of this process, as its module is imported.
KERNELS: list[Any] = []


# --- one kernel -----------------------------------------------------------------------------


class KernelCache(caching.NullCache):
    """Compiled code of one kernel: one file for each set of argument types.

    A file begins with a hash of its place and content, so what is cut, changed or at another file's
    place is compiled anew and replaced. It is written aside and moved to its place, so it is
    whole at any time, and it does not matter which of several processes comes last.
    """

    def __init__(self, function: Callable[..., Any], directory: str) -> None:
        code = b"".join(code_parts(function.__code__))
        self._identity = f"{function.__module__} {function.__qualname__} ".encode() + code
        self._directory = Path(directory)
        self._stem = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @property
    def cache_path(self) -> str:
        """The folder, for numba's statistics."""
        return str(self._directory)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for these types, or None."""
        try:
            target_context.refresh()
            path = self._path(sig)
            content = path.read_bytes()
            if content[:SEAL] != seal(path, content[SEAL:]):
                return None
            parts = pickle.loads(content[SEAL:])
            return CompileResult._rebuild(target_context, *parts)
        except Exception:  # mostly that there is no file; never a reason for an error
            return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep compiled code, if that can be done; after one warning, no more is tried."""
        # Addresses, in code or in the name of a type, mean nothing to another process.
        tied = compiled.lifted or compiled.library.has_dynamic_globals or " at 0x" in repr(sig)
        if tied or FAILURES:
            return
        path = self._path(sig)
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

    def _path(self, sig: Any) -> Path:
        """File of the code for these types."""
        name = hashlib.sha256(repr(sig).encode() + self._identity).hexdigest()[:16]
        return self._directory / f"{self._stem}-{name}.nbc"


def seal(path: Path, content: bytes) -> bytes:
    """Hash that the file at `path` begins with: of its folder's key, its name and its content."""
    return hashlib.sha256("/".join(path.parts[-2:]).encode() + content).digest()


def jit(function: F) -> F:
    """Compile `function` at its first call for each set of types, with the package's options."""
    options: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True,
    }  # fmt: skip
    compiled: Any = numba.njit(**options)(function)
    if compiled is function:  # with NUMBA_DISABLE_JIT
        return function
    KERNELS.append(compiled)
    # A closure's variables are in no hash. And modules are imported when they are first needed, or
    # again after an edit: what is not of the sources that named the folder does not belong there.
    hashed = function.__closure__ is None and source_hash() == SOURCES
    if CACHE_DIRECTORY is not None and hashed:
        compiled._cache = KernelCache(function, CACHE_DIRECTORY)
    return compiled  # type: ignore[no-any-return]
