"""Files of predictions in a folder of their own, and the calibration error that a report shows."""

import json

import pytest

from helpers.command_line import run
from helpers.prediction_files import encoded


@pytest.fixture
def write(tmp_path):
    """Writes a file from its content: bytes, text, or the columns of a Parquet file."""

    def write_file(content, name="a.csv", **options):
        path = tmp_path / name
        if isinstance(content, dict):
            pa = pytest.importorskip("pyarrow")
            pq = pytest.importorskip("pyarrow.parquet")
            pq.write_table(pa.table(content), path.with_suffix(".parquet"), **options)
            return path.with_suffix(".parquet")
        path.write_bytes(encoded(content))
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
