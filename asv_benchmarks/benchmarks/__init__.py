"""Benchmarks of fastece, which asv runs.

Begin with `baselines.py` and `common.py`. A new benchmark is a class in the file of its subject,
derived from a class of `common.py`. Names of benchmarks, their parameters and their versions stay
as they are, because asv files results under them.

FASTECE_MEASURED has the folder of the fastece to be measured. If Python imports another one, such
as an installed one, the import of this package fails.
"""

import os
from pathlib import Path

import fastece

FOLDER_TO_MEASURE = os.environ.get("FASTECE_MEASURED", "")
IMPORTED_FILE = Path(fastece.__file__).resolve()
if FOLDER_TO_MEASURE and not IMPORTED_FILE.is_relative_to(Path(FOLDER_TO_MEASURE).resolve()):
    raise ImportError(
        f"fastece is imported from {IMPORTED_FILE}, and to be measured is {FOLDER_TO_MEASURE}"
    )
