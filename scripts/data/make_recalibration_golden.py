"""Write tests/fixtures/recalibration.json: fitted maps as they are saved, with their answers.

It is written anew only where the format of saved maps gets another version.
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
    with TemporaryDirectory() as folder:
        # The points of a curve take 30 kB a class, so curves have two classes only.
        cases = [(name, k) for name in METHODS for k in (2, 3) if (name, k) != ("curve", 3)]
        golden = [content(name, n_classes, Path(folder)) for name, n_classes in cases]
    TARGET.write_text(json.dumps(golden) + "\n", encoding="utf-8")
