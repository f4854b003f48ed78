"""Which code results come from: hashes of sources, so that a study never mixes those of two."""

from hashlib import sha256
from importlib import import_module
from pathlib import Path

import fastece

# Rooms and modules that decide on no number of a study: what shows results, and what measures time.
NO_NUMBERS = {"__main__.py", "cli", "plot", "reliability", "speed", "study/figures.py"}

DIGITS = 16


def package_hash(folder: Path = Path(fastece.__file__).parent) -> str:
    """Hash of the modules of this package that the numbers of a study come from."""
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if name not in NO_NUMBERS and name.partition("/")[0] not in NO_NUMBERS:
            digest.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:DIGITS]


def source_hash(path: str) -> str:
    """Hash of the file that a user's estimator "module:name" is in; "" where there is none."""
    file = import_module(path.partition(":")[0]).__file__
    return sha256(Path(file).read_bytes()).hexdigest()[:DIGITS] if file else ""
