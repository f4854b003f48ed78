"""Names and arguments equal the libraries' own, and none of the libraries is imported."""

import importlib
import inspect
import subprocess
import sys
from operator import attrgetter

import pytest

from helpers.compat_cases import general_calibration_error, library

FUNCTIONS = {
    "torchmetrics": (
        "binary_calibration_error", "multiclass_calibration_error", "calibration_error",
        "BinaryCalibrationError", "MulticlassCalibrationError", "CalibrationError",
    ),
    "netcal": ("ECE", "MCE", "ACE", "ECE.measure", "MCE.measure", "ACE.measure"),
    "uncertainty_calibration": ("get_ece", "get_ece_em", "get_calibration_error"),
    "sklearn": ("calibration_curve",),
    "relplot": ("binnedECE",),
    "robustness_metrics": (
        "gce", "general_calibration_error", "ece", "rmsce", "sce", "ace", "tace",
    ),
}  # fmt: skip


def theirs(module, name):
    """The function or class of the library."""
    if module == "robustness_metrics":
        return getattr(general_calibration_error(), name)
    if module == "torchmetrics":
        library("torchmetrics")
        place = "classification" if name[0].isupper() else "functional.classification"
        # In the package this name belongs to the module, not to the function.
        place += ".calibration_error" if name == "calibration_error" else ""
        return getattr(importlib.import_module(f"torchmetrics.{place}"), name)
    package = {
        "netcal": "netcal.metrics",
        "uncertainty_calibration": "calibration",
        "sklearn": "sklearn.calibration",
        "relplot": "relplot.metrics",
    }[module]
    return attrgetter(name)(library(package))


def parameters(function):
    """Names, defaults and kinds, without `self` and further keywords."""
    made_by_new = inspect.isclass(function) and "__new__" in vars(function)
    signature = inspect.signature(function.__new__ if made_by_new else function)
    all_parameters = list(signature.parameters.values())
    if made_by_new or all_parameters[0].name == "self":
        all_parameters = all_parameters[1:]
    return [(p.name, p.default, p.kind) for p in all_parameters if p.kind is not p.VAR_KEYWORD]


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in FUNCTIONS.items() for name in names]
)
def test_arguments_equal_the_library(module, name):
    ours = attrgetter(name)(importlib.import_module(f"fastece.compat.{module}"))
    assert parameters(ours) == parameters(theirs(module, name))


CODE = """
import fastece.compat, sys
others = "calibration netcal numba relplot sklearn tensorflow torch torchmetrics"
print([name for name in (*others.split(), "uncertainty_metrics") if name in sys.modules])
"""


@pytest.mark.slow
def test_import_brings_no_library():
    command = [sys.executable, "-c", CODE]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
