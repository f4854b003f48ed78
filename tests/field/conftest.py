"""A file to read, and the calibration error that a report of it shows."""

import json

import pytest

from helpers.command_line import run


@pytest.fixture
def write(tmp_path):
    """Write a file from text or bytes, and give its path."""

    def write_file(content, name="predictions.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture
def error_of(capsys):
    """Give the calibration error over 15 bins that a report of a file shows."""

    def read_error(path, *options):
        code, out, err = run(capsys, "report", path, *options, "--json")
        assert code == 0, err
        return next(x["value"] for x in json.loads(out)["measures"] if x["name"] == "ece")

    return read_error
