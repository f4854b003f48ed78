"""Kernels that a wheel carries: an archive is a cache that is only read.

A wheel has an archive for each level of its machine's processors. It is a ZIP file of what a
process that compiles for that level keeps in its cache, with the same key, names and seals. Only
signatures that Python calls are in it, and of these only the machine code. LLVM's own form of a
kernel, which other kernels inline, takes four fifths of a file. If a kernel that is not shipped
inlines a shipped one after all, the shipped one is compiled again.

The user's own cache comes first, as its kernels are compiled for this very processor. Then comes
the best archive that has this process's key and needs no feature that this processor lacks. An
archive that does not fit or is damaged is passed over in silence, and the kernels are compiled.

Whoever can write an archive decides which code runs here. An archive is therefore used only if
nobody can write it who cannot write the sources beside it, and never if everybody can.
"""

import io
import os
import stat
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from llvmlite.binding import get_process_triple

from fastece.kernels import cache
from fastece.kernels.cache import Processor, cache_key, config, own_code

if cache.IS_TESTED:
    from numba.core.sigutils import normalize_signature

FOLDER = cache.FOLDER / "shipped"
X86_64_V3 = (
    "+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,"
    "+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
)
X86_64_V4 = f"{X86_64_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
X86_LEVELS = (Processor("x86-64-v4", X86_64_V4), Processor("x86-64-v3", X86_64_V3))
# Every processor of 64-bit ARM has the vectors of 128 bits that numba's own target has.
ARM_LEVELS = (Processor("generic", ""),)
LEVELS_OF_MACHINE = {"x86_64": X86_LEVELS, "aarch64": ARM_LEVELS, "arm64": ARM_LEVELS}
# Kinds of this machine's processors that archives are made for, the best first.
LEVELS = LEVELS_OF_MACHINE.get(get_process_triple().partition("-")[0], ())


class Archive:
    """Compiled kernels of a level, read from the archive that has them.

    Parameters
    ----------
    path : Path
        The file.
    level : Processor
        The kind of processor that its kernels are for.

    Attributes
    ----------
    names : frozenset of str
        Names of the cache's files that are in the archive.

    Raises
    ------
    OSError, zipfile.BadZipFile
        If the file cannot be read, or is damaged so much that it has no list of its files.
    """

    def __init__(self, path: Path, level: Processor) -> None:
        self.path = path
        self.level = level
        self._key = cache_key(own_code(), level)
        # The bytes are held, since processes after a fork would share the position in a file.
        self._file = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
        self.names = frozenset(self._file.namelist())

    def close(self) -> None:
        """Leave the archive alone from now on."""
        self.names = frozenset()

    def read(self, name: str) -> bytes | None:
        """Read the content of a file; None if it is not there or damaged."""
        if name in self.names:
            with suppress(Exception):  # zipfile raises errors of many classes for damaged bytes
                return cache.open_seal(Path(self._key, name), self._file.read(name))
        return None

    def load(self, name: str, sig: Any, dispatcher: Any) -> Any:
        """Load the compiled code that a file's name stands for; None where there is none."""
        content = self.read(name)
        if content is None:
            return None
        try:
            loaded = cache.rebuild(content, dispatcher.targetctx)
        except Exception:  # the file is whole, and numba still does not take it
            self.close()
            return None
        library = loaded.library
        library._shared_module = None
        library._get_module_for_linking = ModuleToInline(loaded, sig, dispatcher)
        return loaded


class ModuleToInline:
    """LLVM's module of a loaded kernel, compiled when another kernel inlines it.

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


def archive_name(level: Processor) -> str:
    """Return the file name of the archive of a level, for this process's key."""
    return f"{level.name}-{cache_key(own_code(), level)}.zip"


def find_archive() -> Archive | None:
    """Find the best archive for this process and its processor; None if there is none.

    A user who names a processor by ``NUMBA_CPU_NAME`` gets code for that one.
    """
    names_processor = (config.CPU_NAME, config.CPU_FEATURES) != (None, None)
    if not cache.IS_TESTED or config.DISABLE_JIT or names_processor or not FOLDER.is_dir():
        return None
    with suppress(Exception):  # of a source that is being edited, which the cache reports
        features = feature_set(cache.this_processor().features)
        for level in LEVELS:
            path = FOLDER / archive_name(level)
            if feature_set(level.features) <= features and path.is_file() and is_safe(path):
                return Archive(path, level)
    return None


def feature_set(features: str) -> set[str]:
    """Return the features of a processor as a set of words such as ``+avx2``."""
    return set(filter(None, features.split(",")))


def is_safe(path: Path) -> bool:
    """Return whether a file and its folder are as safe as these sources.

    Nobody can then write them who cannot write the sources. A file that everybody can write is
    never safe. Only the modes of POSIX are checked.
    """
    if os.name != "posix":
        return True
    source = os.stat(__file__)
    return all(is_as_safe(os.stat(place), source) for place in (path, path.parent))


def is_as_safe(status: os.stat_result, source: os.stat_result) -> bool:
    """Return whether no more users can write a file than can write a source."""
    if status.st_uid not in (0, os.geteuid(), source.st_uid) or status.st_mode & stat.S_IWOTH:
        return False
    is_same_group = status.st_gid == source.st_gid and source.st_mode & stat.S_IWGRP
    return not status.st_mode & stat.S_IWGRP or bool(is_same_group)


# The archive that this process reads kernels from.
ARCHIVE = find_archive()
