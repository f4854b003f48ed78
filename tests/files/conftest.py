"""Files of predictions in a folder of their own."""

import pytest

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
