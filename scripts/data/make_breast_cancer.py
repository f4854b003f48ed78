"""Make the predictions of a risk model that ship with fastece, from scikit-learn's breast cancers.

569 tumours, of which 212 are malignant, are predicted from the means of five measurements by
Gaussian naive Bayes, with ten-fold cross-validation, so that no row was seen in training. Radius,
perimeter and area measure nearly the same, and naive Bayes counts them as three independent pieces
of evidence: its probabilities are too extreme. Needs scikit-learn; writes
``fastece/data/breast_cancer.npz``.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

FILE = Path(__file__).parents[2] / "fastece" / "data" / "breast_cancer.npz"
# The first columns: mean radius, texture, perimeter, area and smoothness.
N_MEASUREMENTS = 5
# scikit-learn's label of malignant tumours, which are the event here.
MALIGNANT = 0


def main() -> None:
    """Write whether each tumour is malignant, and the predicted probability of that."""
    x, label = load_breast_cancer(return_X_y=True)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    p = cross_val_predict(
        GaussianNB(), x[:, :N_MEASUREMENTS], label, cv=folds, method="predict_proba"
    )
    is_malignant = (label == MALIGNANT).astype(np.uint8)
    np.savez_compressed(FILE, y_true=is_malignant, y_prob=p[:, MALIGNANT])


if __name__ == "__main__":
    main()
