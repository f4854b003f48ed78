"""What SECURITY.md says: predictions and saved maps are data, and nothing is downloaded."""

import ast
import gzip
import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.cli import main
from fastece.recalibration import METHODS, load, save

FOLDER = Path(fastece.__file__).parent
# Rooms of compiled kernels, which are code.
# What it has compiled, and what it has just pickled.
UNPICKLE = {"kernels/cache.py", "estimators/faults.py"}
NETWORK = {"socket", "ssl", "urllib", "http", "ftplib", "smtplib", "requests", "httpx", "aiohttp"}
CODE = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def trapped(path):
    """An NPY file of Python objects, which sets off the trap if it is read with pickles."""
    file = io.BytesIO()
    np.save(file, np.array([Trap(path), 0.5], dtype=object), allow_pickle=True)
    return file.getvalue()


def archive(content):
    """An NPZ file with it as y_prob."""
    file, labels = io.BytesIO(), io.BytesIO()
    np.save(labels, np.array([0, 1]))
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("y_true.npy", labels.getvalue())
        packed.writestr("y_prob.npy", content)
    return file.getvalue()


@pytest.mark.parametrize("options", [[], ["--stream"]])
@pytest.mark.parametrize(
    ("name", "form"),
    [("a.npy", bytes), ("a.npz", archive), ("a.npy.gz", gzip.compress), ("a.csv", bytes)],
)
def test_files_of_predictions_are_not_unpickled(name, form, options, tmp_path, capsys):
    trap, path = tmp_path / "sprung", tmp_path / name
    path.write_bytes(form(trapped(trap)))
    assert main(["report", str(path), *options]) == 2
    assert capsys.readouterr().err.startswith("fastece: error: ")
    assert not trap.exists()


def test_saved_maps_are_not_unpickled(tmp_path):
    trap, path = tmp_path / "sprung", tmp_path / "map.json"
    path.write_bytes(pickle.dumps(Trap(trap)))
    with pytest.raises(ValueError, match="is no map"):
        load(path)
    assert not trap.exists()
    pickle.loads(path.read_bytes())
    assert trap.exists()  # so the trap works


@pytest.mark.parametrize("method", METHODS)
def test_damaged_maps_are_refused_or_read(method, tmp_path):
    """Bytes that are changed, left out or put in: an error in words, or a map that answers."""
    rng = np.random.default_rng(0)
    score, path = rng.random(200), tmp_path / "map.json"
    save(METHODS[method]().fit(score, rng.random(200) < score), path)
    whole, refused = path.read_bytes(), 0
    for _ in range(100):
        first, last = sorted(rng.integers(0, len(whole), 2))
        middle = (rng.bytes(1), b"", b"9" * 400, whole[first : first + 20])[rng.integers(4)]
        path.write_bytes(whole[:first] + middle + whole[min(last, first + 3) :])
        try:
            found = load(path).transform(score)
        except ValueError:
            refused += 1
        else:
            assert ((found >= 0) & (found <= 1)).all()
    assert refused > 50


def imported(path):
    """The first words of the names of all modules that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]


@pytest.mark.slow
def test_nothing_is_downloaded_and_only_own_bytes_are_unpickled():
    unpickle = set()
    for path in FOLDER.rglob("*.py"):
        found = set(imported(path))
        assert not found & NETWORK, path
        if found & CODE:
            unpickle.add(path.relative_to(FOLDER).as_posix())
    assert unpickle == UNPICKLE
