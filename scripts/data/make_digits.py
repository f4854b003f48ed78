"""Make the predictions that ship with fastece, from scikit-learn's handwritten digits.

1797 digits in 10 classes, predicted by ten-fold cross-validation, so that no row was seen in
training: by a small neural network, which is nearly calibrated, and by a random forest, which is
under-confident. Needs scikit-learn; writes ``fastece/data/digits_*.npz``.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier

MODELS = {
    "neural_network": MLPClassifier((16,), max_iter=1000, random_state=0),
    "random_forest": RandomForestClassifier(n_estimators=200, random_state=0),
}


def main() -> None:
    """Write one file for each model."""
    folder = Path(__file__).parents[2] / "fastece" / "data"
    folder.mkdir(exist_ok=True)
    x, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    for name, model in MODELS.items():
        p = cross_val_predict(model, x / 16, y, cv=folds, method="predict_proba")
        np.savez_compressed(
            folder / f"digits_{name}.npz", y_true=y.astype(np.uint8), y_prob=p.astype(np.float32)
        )


if __name__ == "__main__":
    main()
