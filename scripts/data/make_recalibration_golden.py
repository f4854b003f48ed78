"""Write tests/fixtures/recalibration.json: fitted maps as they are saved, with their answers.

Cases of methods that it has stay as they are, and those of new methods are added. Where the format
of saved maps gets another version, delete the file before, so that all are written anew.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fastece.recalibration import METHODS, save

TARGET = Path(__file__).parents[2] / "tests" / "fixtures" / "recalibration.json"
SEED = 20261122
ROWS = 200
# Rows whose recalibrated probabilities are saved.
SAVED_ROWS = 4


def data(n_classes: int) -> tuple[Any, Any]:
    """Return labels and over-confident probabilities: of two classes, those for the second."""
    rng = np.random.default_rng(SEED)
    z = rng.normal(size=(ROWS, n_classes))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = np.exp(2 * z)
    p /= p.sum(axis=1, keepdims=True)
    if n_classes == 2:
        return y, p[:, 1]
    return y, p


def content(name: str, n_classes: int, folder: Path) -> dict[str, Any]:
    """Return a saved map, some probabilities, and the recalibrated ones."""
    y, p = data(n_classes)
    model = METHODS[name]().fit(p, y)
    save(model, folder / "model.json")
    x = p[:SAVED_ROWS]
    text = (folder / "model.json").read_text(encoding="utf-8")
    return {"model": json.loads(text), "x": x.tolist(), "p": model.transform(x).tolist()}


if __name__ == "__main__":
    kept = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else []
    names = [name for name in METHODS if name not in {case["model"]["method"] for case in kept}]
    with TemporaryDirectory() as folder:
        # The points of a curve take 30 kB a class, so curves have two classes only.
        cases = [(name, k) for name in names for k in (2, 3) if (name, k) != ("curve", 3)]
        added = [content(name, n_classes, Path(folder)) for name, n_classes in cases]
    TARGET.write_text(json.dumps([*kept, *added]) + "\n", encoding="utf-8")
