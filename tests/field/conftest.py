"""The calibration error that a report of a file shows."""

import json

import pytest

from helpers.command_line import run


@pytest.fixture
def error_of(capsys):
    """Give the calibration error over 15 bins that a report of a file shows."""

    def read_error(path, *options):
        code, out, err = run(capsys, "report", path, *options, "--json")
        assert code == 0, err
        return next(x["value"] for x in json.loads(out)["measures"] if x["name"] == "ece")

    return read_error
