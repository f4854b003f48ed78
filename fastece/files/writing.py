"""Predictions as files: one that was read, with other probabilities."""

import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from fastece.files.json_lines import Objects
from fastece.files.numpy_files import Archive, Fields
from fastece.files.parquet import Parquet
from fastece.files.predictions import Predictions
from fastece.files.text import Text

PACKED = ".gz"
FORMATS = (Text, Objects, Fields, Archive, Parquet)


def check_rewrite(option: str, path: Path, predictions: Predictions) -> None:
    """An error that names the option if predictions, read with their table, cannot be written to a
    file: a log has no probabilities, and a name must not end as those of another format do."""
    table = predictions.table
    assert table is not None, "it was asked for as the file was read"
    if not predictions.prob_columns:
        raise ValueError(
            f"{option}: {predictions.file} is a log of lm-evaluation-harness, which has "
            "log-likelihoods and no probabilities to write others in their place"
        )
    ending = Path(path.name.lower().removesuffix(PACKED)).suffix
    others = {known for one in FORMATS for known in one.endings} - {*table.endings}
    if ending in others:
        raise ValueError(
            f"{option}: {path} must end as {predictions.file} could, which is in the format "
            f"{' or '.join(table.endings)}, and so is what is written"
        )


def write_predictions(path: Path, predictions: Predictions, y_prob: NDArray[Any]) -> None:
    """Write a file that was read, with its table, again in its format: with other probabilities, of
    the shape of those that it has, and everything else as it was. A name that ends in .gz makes it
    packed by gzip. The file is there when it is whole."""
    table = predictions.table
    assert table is not None, "it was asked for as the file was read"
    with whole_file(path) as file:
        if path.suffix.lower() != PACKED:
            table.write(file, predictions.prob_columns, y_prob)
            return
        plain = io.BytesIO()  # archives are not written from one end to the other
        table.write(plain, predictions.prob_columns, y_prob)
        file.write(gzip.compress(plain.getbuffer(), 6, mtime=0))


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which gets its name when the block has ended well, else it is gone."""
    path = Path(os.path.realpath(path))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with open(part, "xb") as file:
        try:
            yield file
        except BaseException:
            part.unlink()
            raise
    os.replace(part, path)
