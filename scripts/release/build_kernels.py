"""Compile the kernels that a wheel carries: a folder for each kind of processor.

    python scripts/release/build_kernels.py FOLDER [LEVEL ...]

There is no list of kernels. `fastece warmup` compiles them for this machine and keeps them in the
user's cache, and the signatures that its calls then load from there are those that Python calls.
They are compiled again for each level of `fastece.kernels.cache`, by as many processes as there
are processors. No code for a level is run, so any machine can compile for all. Machine code alone
is kept, as `fastece/kernels/cache.py` says.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # these sources, and not an installed package

from llvmlite.binding import parse_assembly  # noqa: E402
from numba.core.serialize import dumps  # noqa: E402

from fastece.cli import warmup  # noqa: E402
from fastece.kernels import cache, compiling  # noqa: E402

# Where the type annotation stands among the parts of a compiled kernel, a text that nobody reads.
ANNOTATION = 6


def main(folder: Path, names: list[str]) -> None:
    """Compile for all levels, or for those that are named."""
    levels = [level for level in cache.LEVELS if not names or level.name in names]
    if len(levels) < max(1, len(names)):
        raise SystemExit(f"this machine has the levels {[x.name for x in cache.LEVELS]}")
    with tempfile.TemporaryDirectory() as work:
        calls = Path(work, "calls")
        while not calls.exists():  # the second time nothing is compiled
            wait_for([start("list", calls)])
        build(calls, levels, folder)


def build(calls: Path, levels: list[cache.Processor], folder: Path) -> None:
    """Compile the listed signatures for levels, and write a folder of each into a folder."""
    n_shares = max(1, (os.cpu_count() or 1) // len(levels))
    with tempfile.TemporaryDirectory() as work:
        processes = []
        for level, share in product(levels, range(n_shares)):
            target = {"NUMBA_CPU_NAME": level.name, "NUMBA_CPU_FEATURES": level.features}
            target["FASTECE_CACHE_DIR"] = os.path.join(work, level.name)
            processes.append(start("compile", calls, share, n_shares, **target))
        wait_for(processes)
        for level in levels:
            write_level(calls, level, Path(work, level.name), folder)


def start(*words: object, **environment: str) -> subprocess.Popen[bytes]:
    """Start this script in a new process."""
    # pip shows the packages of a build by PYTHONPATH.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    common = {"FASTECE_QUIET": "1", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, __file__, *map(str, words)]
    return subprocess.Popen(command, env={**os.environ, **common, **environment}, stdout=sys.stderr)


def wait_for(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait for processes; if one fails, so does this one."""
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit(f"a process that compiles kernels failed: {codes}")


def list_calls(file: Path) -> None:
    """Write the signatures that Python calls, unless something had to be compiled."""
    warmup.run(None, lambda _: None)
    if any(kernel.stats.cache_misses for kernel in compiling.KERNELS):
        return
    calls = [
        (kernel.py_func.__module__, kernel.py_func.__name__, sig)
        for kernel in compiling.KERNELS
        for sig in kernel.stats.cache_hits
    ]
    file.write_bytes(pickle.dumps(sorted(calls, key=repr)))


def compile_calls(file: Path, share: int, n_shares: int) -> None:
    """Compile a share of the listed signatures for the processor that the environment names.

    The cache keeps them, and has what other processes have compiled.
    """
    for module, name, sig in pickle.loads(file.read_bytes())[share::n_shares]:
        getattr(import_module(module), name).compile(sig)


def write_level(calls: Path, level: cache.Processor, compiled: Path, folder: Path) -> None:
    """Write the listed signatures of a level, without LLVM's form of them."""
    place = folder / cache.shipped_folder(level).name
    place.mkdir(parents=True)
    size = 0
    for module, name, sig in pickle.loads(calls.read_bytes()):
        file = getattr(import_module(module), name)._cache.file_name(sig)
        content = strip(Path(compiled, cache.cache_key(level), file).read_bytes())
        Path(place, file).write_bytes(content)
        size += len(content)
    count = len([*place.iterdir()])
    print(f"{place.name}: {count} signatures, {size / 1e6:.1f} MB", file=sys.stderr)


def strip(content: bytes) -> bytes:
    """Return a compiled kernel without LLVM's bitcode and without its annotation.

    numba reads from the bitcode whether the kernel's function for Python exists, so the bitcode of
    a module takes its place that has this one name.
    """
    parts: list[Any] = list(pickle.loads(content))
    name, kind, (object_code, _) = parts[0]
    function_for_python = parts[1].llvm_cpython_wrapper_name
    stub = parse_assembly(f'@"{function_for_python}" = global i8 0')
    parts[0] = (name, kind, (object_code, stub.as_bitcode()))
    parts[ANNOTATION] = ""
    return bytes(dumps(tuple(parts)))  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["list", file]:
            list_calls(Path(file))
        case ["compile", file, share, n_shares]:
            compile_calls(Path(file), int(share), int(n_shares))
        case [folder, *levels]:
            main(Path(folder), levels)
        case _:
            sys.exit(__doc__)
