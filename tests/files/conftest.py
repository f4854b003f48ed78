"""Files of predictions in a folder of their own, and the calibration error that a report shows."""

import json

import numpy as np
import pytest

from fastece.files import iter_batches, read_predictions
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


@pytest.fixture
def tiny(monkeypatch):
    """Batches of two rows, or of a few letters."""
    monkeypatch.setattr("fastece.files.tables.MAX_ROWS", 2)
    monkeypatch.setattr("fastece.files.tables.BLOCK_SIZE", 30)


@pytest.fixture
def batches():
    """Read a file in batches, which have the rows of the whole file, by the same names."""

    def read_batches(path, **options):
        all_rows = read_predictions(path, **options)
        found = list(iter_batches(path, **options))
        for name in ("y_true", "y_prob", "label"):
            parts = [np.asarray(getattr(batch, name)) for batch in found]
            assert np.concatenate(parts).tolist() == np.asarray(getattr(all_rows, name)).tolist()
        names = [batch.row(i) for batch in found for i in range(len(batch.y_true))]
        assert names == [all_rows.row(i) for i in range(len(all_rows.y_true))]
        assert {batch.pairs for batch in found} == {all_rows.pairs}
        return found

    return read_batches
