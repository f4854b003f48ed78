"""Benchmarks of fastece, for asv. `measure.py` says in FASTECE_MEASURED where the package lies that
is to be measured; another one, such as an installed one, is refused rather than measured."""

import os
from pathlib import Path

import fastece

MEASURED = os.environ.get("FASTECE_MEASURED", "")
FOUND = Path(fastece.__file__).resolve()
if MEASURED and not FOUND.is_relative_to(Path(MEASURED).resolve()):
    raise ImportError(f"fastece is imported from {FOUND}, and to be measured is {MEASURED}")
