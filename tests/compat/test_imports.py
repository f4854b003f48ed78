"""The modules need none of the libraries whose numbers they give."""

import subprocess
import sys

import pytest

MODULES = (
    "conventions",
    "netcal",
    "relplot",
    "robustness_metrics",
    "sklearn",
    "torchmetrics",
    "uncertainty_calibration",
)
LIBRARIES = (
    "calibration",
    "netcal",
    "relplot",
    "sklearn",
    "tensorflow",
    "torch",
    "torchmetrics",
    "uncertainty_metrics",
)

# Names come from the command line: the code of the new process is a constant.
CODE = """
import importlib, sys
importlib.import_module("fastece.compat." + sys.argv[1])
print(*[name for name in sys.argv[2:] if name in sys.modules])
"""


@pytest.mark.parametrize("module", MODULES)
def test_import_brings_no_library(module):
    command = [sys.executable, "-c", CODE, module, *LIBRARIES, "numba"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []
