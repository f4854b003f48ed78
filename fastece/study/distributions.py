"""Synthetic problems with known posterior, and classifiers fitted to them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from fastece.data.errors import InputError
from fastece.data.parameters import check_integer
from fastece.kernels.types import F64, I64

MODELS = ("logistic_regression", "naive_bayes", "support_vectors", "random_forest")


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Equally frequent classes, each a mixture of equally frequent Gaussian modes.

    Parameters
    ----------
    means : (K, M, d) array
        Means of M modes of each class.
    factors : (K, M, d, d) array
        A mode has the covariance ``A^T A``.

    Notes
    -----
    Posocco and Bonnefoy (2021, "Estimating expected calibration errors", section 4.1):
    ``p(x | k) = sum_m N(x; mean_km, A_km^T A_km) / M``, and the posterior is ``P(k | x) = p(x | k)
    / sum_j p(x | j)``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.study.distributions import GaussianMixture
    >>> mixture = GaussianMixture.draw(3, 2, np.random.default_rng(0))
    >>> x, y = mixture.sample(1000, np.random.default_rng(1))
    >>> x.shape, y.shape, mixture.posterior(x).shape
    ((1000, 2), (1000,), (1000, 3))
    >>> print(f"{(mixture.posterior(x).argmax(1) == y).mean():.3f}")
    0.889
    """

    means: F64
    factors: F64

    def __post_init__(self) -> None:
        for name in ("means", "factors"):
            object.__setattr__(self, name, np.array(getattr(self, name), np.float64))
        if self.factors.shape != (*self.means.shape, self.means.shape[-1]):
            raise InputError("factors", "must be (K, M, d, d) for means (K, M, d)")

    @classmethod
    def draw(
        cls, n_classes: int, n_features: int, rng: np.random.Generator, n_modes: int = 4
    ) -> "GaussianMixture":
        """Draw a mixture of K classes with M modes each in d dimensions.

        The distribution is the paper's. Means are uniform in ``[-1, 1]^d``, factors in
        ``[-0.3, 0.3]^(d x d)``.
        """
        sizes = {"n_classes": n_classes, "n_modes": n_modes, "n_features": n_features}
        shape = tuple(check_integer(name, size, 1, 2**31) for name, size in sizes.items())
        means = rng.uniform(-1, 1, shape)
        return cls(means, rng.uniform(-0.3, 0.3, (*shape, n_features)))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[F64, I64]:
        """Draw points (n, d) and their classes (n,), 0 to K - 1."""
        n_classes, n_modes, d = self.means.shape
        mode = rng.integers(n_classes * n_modes, size=n)
        z = rng.standard_normal((n, d))
        x = self.means.reshape(-1, d)[mode]
        for m, factor in enumerate(self.factors.reshape(-1, d, d)):
            is_of_mode = mode == m
            x[is_of_mode] += z[is_of_mode] @ factor
        return x, mode // n_modes

    def class_log_density(self, X: Any) -> F64:  # noqa: N803
        """Compute the log of ``p(x | k)`` (K, n) at points X (n, d)."""
        n_classes, n_modes, d = self.means.shape
        x = np.asarray(X, np.float64).reshape(-1, d)
        # The height of a class's density at the middle of each of its M modes.
        _, log_volume = np.linalg.slogdet(self.factors)
        log_height = -log_volume - 0.5 * d * math.log(2 * math.pi) - math.log(n_modes)
        # Inverses of the factors, rather than of covariances, whose condition is the square.
        whitening = np.linalg.inv(self.factors)
        log_density = np.empty((n_classes, len(x)))
        log_density_of_mode = np.empty((n_modes, len(x)))
        for k in range(n_classes):
            for m in range(n_modes):
                z = (x - self.means[k, m]) @ whitening[k, m]
                squared_distance = np.einsum("ij,ij->i", z, z)
                log_density_of_mode[m] = log_height[k, m] - 0.5 * squared_distance
            log_density[k] = logsumexp(log_density_of_mode, axis=0)
        return log_density

    def posterior(self, X: Any) -> F64:  # noqa: N803
        """Compute the probability (n, K) of each class at points X (n, d)."""
        with np.errstate(under="ignore"):
            return np.ascontiguousarray(softmax(self.class_log_density(X), axis=0).T)


def new_model(name: str, seed: int) -> Any:
    """Create one of the models, not yet fitted."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    models = {
        "logistic_regression": LogisticRegression(),
        "naive_bayes": GaussianNB(),
        # Platt's scaling on cross-validated scores, which scikit-learn offers in place of
        # ``SVC(probability=True)``.
        "support_vectors": CalibratedClassifierCV(SVC(), ensemble=False),
        # It has 100 trees, so that probabilities are close to multiples of 0.01.
        "random_forest": RandomForestClassifier(random_state=seed),
    }
    return models[name]


def predicted(model: Any, x: F64, n_classes: int) -> F64:
    """Predict probabilities (n, K) of all classes, 0 for classes not in training."""
    prob = np.zeros((len(x), n_classes))
    prob[:, model.classes_] = model.predict_proba(x)
    return prob
