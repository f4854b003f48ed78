"""The modules need none of the libraries whose names and numbers they have."""

import subprocess
import sys

CODE = """
import fastece.compat, sys
others = "calibration netcal numba relplot sklearn tensorflow torch torchmetrics"
print([name for name in (*others.split(), "uncertainty_metrics") if name in sys.modules])
"""


def test_import_brings_no_library():
    command = [sys.executable, "-c", CODE]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
