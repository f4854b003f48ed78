"""Compiled kernels on disk: a folder with a file for each signature.

numba's own disk cache is not safe enough for this package. It decides whether a kernel is fresh by
the file of that kernel alone: when a kernel that another file calls is edited, the caller is
silently stale. It keeps a list of its files in another file, and processes that write at once may
leave a list that leads to the code of other types. Here a hash of all kernels and of everything
that machine code depends on names the folder, and each file in it stands for itself. It is written
aside and moved to its place, so that it is whole at any time, and it does not matter which of
several processes comes last.

There are two folders. The user's has code for this very processor, and comes first. A wheel brings
another one for each level of its machine's processors, which is only read. Its files have the
machine code alone, of the signatures that Python calls: LLVM's own form of a kernel, which other
kernels inline, takes four fifths of a file.

Who writes such a file decides which code runs here. The user's folder is therefore used only if it
belongs to this user or to root, and if nobody else can write it. The wheel's lies beside the
sources.
"""

import functools
import hashlib
import os
import pickle
import re
import stat
import uuid
import warnings
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
from llvmlite.binding import get_host_cpu_name, get_process_triple
from numba.core.codegen import get_host_cpu_features as host_features
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from fastece.kernels.progress import announce_compiling

# Its attributes are typed here and there, and are not the same in every version.
config: Any = numba.config
SOURCES = Path(__file__).parent
SHIPPED_FOLDERS = SOURCES / "shipped"
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


# --- the name of a folder: everything that machine code depends on --------------------------


class Processor(NamedTuple):
    """A processor: LLVM's name, and the features that code may use, as ``+avx,+avx2``."""

    name: str
    features: str

    @property
    def needs(self) -> set[str]:
        """The features as a set of words such as ``+avx2``."""
        return set(filter(None, self.features.split(",")))


X86_64_V3 = (
    "+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,"
    "+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
)
X86_64_V4 = f"{X86_64_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
X86_LEVELS = (Processor("x86-64-v4", X86_64_V4), Processor("x86-64-v3", X86_64_V3))
# Every processor of 64-bit ARM has the vectors of 128 bits that numba's own target has.
ARM_LEVELS = (Processor("generic", ""),)
LEVELS_OF_MACHINE = {"x86_64": X86_LEVELS, "aarch64": ARM_LEVELS, "arm64": ARM_LEVELS}
# Levels of this machine's processors that wheels have kernels for, the best first.
LEVELS = LEVELS_OF_MACHINE.get(get_process_triple().partition("-")[0], ())


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


def cache_key(processor: Processor) -> str:
    """Hash the sources of all kernels, the compiler, and a processor.

    numpy is left out, as it is in numba's own cache: machine code meets arrays only through
    functions that numba brings along. LLVM's name of a Mac has the version of its system, which an
    update changes and code does not depend on.
    """
    versions = [EXTENSION_SUFFIXES[0], numba.__version__, llvmlite.__version__]
    settings = [str(getattr(config, name, None)) for name in SETTINGS]
    system = re.sub(r"(darwin|macosx)[\d.]+", r"\1", get_process_triple())
    parts = (versions, settings, system), processor, hash_sources(SOURCES)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@functools.cache
def hash_sources(folder: Path) -> str:
    """Hash the modules of a folder, once in each process.

    Raises
    ------
    OSError
        If there are none, as in a package that is run from an archive.
    """
    paths = sorted(folder.glob("[!.]*.py")) or sorted(folder.glob("[!.]*.pyc"))
    if not paths:
        raise FileNotFoundError(f"{folder} has no sources")
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


# --- folders --------------------------------------------------------------------------------


class KernelFolder:
    """A folder with a file for each compiled signature.

    Parameters
    ----------
    path : Path or None
        None: there is no folder.
    problem : str
        Why kernels are not kept in it; empty while they are.
    """

    def __init__(self, path: Path | None, problem: str = "") -> None:
        self.path = path
        self.problem = problem

    def kernels(self) -> list[str]:
        """List the kernel of each signature, as ``moments.scatter``."""
        if self.path is None:
            return []
        return sorted(path.name.partition("-")[0] for path in self.path.glob("*.nbc"))

    def load(self, name: str, target_context: Any) -> Any:
        """Load the code in a file; None if it is gone, or numba cannot read it.

        Only what loaded code needs is initialized. Parts that a compiler needs besides take 0.2 s.
        """
        if self.path is None:
            return None
        with suppress(Exception):  # a file that was cut off raises errors of many classes
            content = (self.path / name).read_bytes()
            rtsys.initialize(target_context)
            return CompileResult._rebuild(target_context, *pickle.loads(content))  # type: ignore[no-untyped-call]
        return None

    def save(self, name: str, compiled: Any) -> None:
        """Keep code in a file, if possible; after one failure, no more is tried."""
        if self.path is None or self.problem:
            return
        path = self.path / name
        aside = self.path / f"{name}.{uuid.uuid4().hex}"
        try:
            aside.write_bytes(dumps(compiled._reduce()))  # type: ignore[no-untyped-call]
            aside.replace(path)
        except Exception as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            # On Windows a file that another process reads cannot be replaced: then it is there.
            if not path.exists():
                self.problem = describe(error)
                warn_once(self.problem)


def describe(error: Exception) -> str:
    """Describe an error that keeps compiled kernels from disk, with the remedy."""
    return (
        f"fastece cannot keep its compiled kernels ({error}); they are compiled anew in every "
        "process. Set FASTECE_CACHE_DIR to a folder that you can write and nobody else can."
    )


@functools.cache
def warn_once(problem: str) -> None:
    """Warn that kernels are not kept."""
    warnings.warn(problem, RuntimeWarning, stacklevel=3)


def find_user_folder() -> KernelFolder:
    """Find the user's folder, and make it where it is missing, for him alone.

    One that cannot be written is good enough to be read, if this user or root has filled it.
    """
    if config.DISABLE_JIT:
        return KernelFolder(None, "NUMBA_DISABLE_JIT is set, so nothing is compiled")
    try:
        path = cache_parent() / cache_key(this_processor())
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.mkdir(0o700, exist_ok=True)
        # The parent may be writable by others if it keeps them from removing files of another
        # user, as ``/tmp`` does.
        check_trust(path.parent, harmless=stat.S_ISVTX)
        check_trust(path)
    except (OSError, RuntimeError) as error:
        return KernelFolder(None, describe(error))
    return KernelFolder(path)


def cache_parent() -> Path:
    """Return the folder of the folders of all keys.

    ``FASTECE_CACHE_DIR`` or ``NUMBA_CACHE_DIR`` name it; else it is in the user's cache folder. A
    user without a home has none, which is a RuntimeError.
    """
    named = os.environ.get("FASTECE_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home, "fastece").expanduser().absolute()


def check_trust(path: Path, harmless: int = 0) -> None:
    """Raise PermissionError if another user than root owns a folder, or can write it.

    With the bit `harmless` in its mode, a folder that others can write is good enough. Only the
    modes of POSIX are checked.
    """
    if os.name != "posix":
        return
    status = path.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise PermissionError(
            f"{path} belongs to another user, who could make this process run anything"
        )
    is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if is_open and not status.st_mode & harmless:
        raise PermissionError(
            f"others can write {path}, and could make this process run anything: chmod go-w it"
        )


def shipped_folder(level: Processor) -> Path:
    """Return the folder of a wheel's kernels for a level, made by this compiler."""
    return SHIPPED_FOLDERS / f"{level.name}-{cache_key(level)}"


def find_shipped_folder() -> KernelFolder:
    """Find the folder of the best level whose features this processor has.

    A user who names a processor by ``NUMBA_CPU_NAME`` gets code for that one.
    """
    names_processor = (config.CPU_NAME, config.CPU_FEATURES) != (None, None)
    if not (config.DISABLE_JIT or names_processor) and SHIPPED_FOLDERS.is_dir():
        for level in LEVELS:
            path = shipped_folder(level)
            if level.needs <= this_processor().needs and path.is_dir():
                return KernelFolder(path)
    return KernelFolder(None)


USER = find_user_folder()
SHIPPED = find_shipped_folder()


# --- the signatures of one kernel -----------------------------------------------------------


class KernelCache:
    """Compiled code of one kernel, in the form of numba's own caches."""

    def __init__(self, dispatcher: Any) -> None:
        function = dispatcher.py_func
        self._stem = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._dispatcher = dispatcher
        self.cache_path = str(USER.path)  # a name of numba's, for its statistics

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled code for a signature; None where numba has to compile it."""
        name = self.file_name(sig)
        loaded = USER.load(name, target_context)
        if loaded is not None:
            return loaded
        loaded = SHIPPED.load(name, target_context)
        if loaded is not None:
            library = loaded.library
            library._shared_module = None
            library._get_module_for_linking = ModuleToInline(loaded, sig, self._dispatcher)
            return loaded
        if USER.problem:
            warn_once(USER.problem)
        with suppress(OSError, ValueError):  # of a closed stream
            announce_compiling()
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep the compiled code of a signature on disk, if possible."""
        USER.save(self.file_name(sig), compiled)

    def flush(self) -> None:
        """Do nothing: no code is held back."""

    def file_name(self, sig: Any) -> str:
        """Return the name of the file of the code for a signature."""
        return f"{self._stem}-{hashlib.sha256(repr(sig).encode()).hexdigest()[:16]}.nbc"


class ModuleToInline:
    """LLVM's module of a shipped kernel, compiled when another kernel inlines it.

    It has the name of the kernel that was loaded, by which the other kernel calls it.
    """

    def __init__(self, loaded: Any, sig: Any, dispatcher: Any) -> None:
        self._loaded = loaded
        self._sig = sig
        self._dispatcher = dispatcher

    def __call__(self) -> Any:
        """Return the module, as numba's ``_get_module_for_linking`` does."""
        library = self._loaded.library
        if library._shared_module is None:
            types, return_type = normalize_signature(self._sig)  # type: ignore[no-untyped-call]
            compiled = self._dispatcher._compiler.compile(types, return_type)
            module = compiled.library._get_module_for_linking()
            function = module.get_function(compiled.fndesc.mangled_name)
            function.name = self._loaded.fndesc.mangled_name
            library._shared_module = module
        return library._shared_module
