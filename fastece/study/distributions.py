"""Synthetic problems whose posterior is known: mixtures of Gaussians."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from fastece.checks.parameters import check_integer
from fastece.typing import F64, I64


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Classes that are equally frequent, each a mixture of equally frequent Gaussian modes: Posocco
    and Bonnefoy (2021, "Estimating expected calibration errors", section 4.1).

    With `means` (K, M, d) and `factors` A (K, M, d, d) of M modes a class, ``p(x | k) =
    sum_m N(x; mean_km, A_km^T A_km) / M`` and the posterior is ``P(k | x) = p(x | k) /
    sum_j p(x | j)``.

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
            array = np.array(getattr(self, name), np.float64)
            if not np.isfinite(array).all():
                raise ValueError(f"{name}: must be finite")
            object.__setattr__(self, name, array)
        shape = self.means.shape
        if len(shape) != 3 or 0 in shape:
            raise ValueError(f"means: must have the shape (K, M, d), got {shape}")
        if self.factors.shape != (*shape, shape[-1]):
            raise ValueError(
                f"factors: must have the shape {(*shape, shape[-1])} of (K, M, d, d), "
                f"got {self.factors.shape}"
            )
        if not (np.linalg.slogdet(self.factors)[1] > -math.inf).all():
            raise ValueError("factors: one is singular, so that its mode has no density")

    @classmethod
    def draw(
        cls, n_classes: int, n_features: int, rng: np.random.Generator, n_modes: int = 4
    ) -> "GaussianMixture":
        """A random mixture of K classes in d dimensions, M modes each, like those of the paper:
        means uniform in ``[-1, 1]^d``, factors in ``[-0.3, 0.3]^(d x d)``."""
        sizes = {"n_classes": n_classes, "n_modes": n_modes, "n_features": n_features}
        shape = tuple(check_integer(name, size, 1, 2**31) for name, size in sizes.items())
        means = rng.uniform(-1, 1, shape)
        return cls(means, rng.uniform(-0.3, 0.3, (*shape, n_features)))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[F64, I64]:
        """Independent draws: points (n, d), and their classes (n,), 0 to K - 1."""
        n = check_integer("n", n, 0, 2**40)
        n_classes, n_modes, d = self.means.shape
        mode = rng.integers(n_classes * n_modes, size=n)
        z = rng.standard_normal((n, d))
        x = self.means.reshape(-1, d)[mode]
        for m, factor in enumerate(self.factors.reshape(-1, d, d)):
            mine = mode == m
            x[mine] += z[mine] @ factor
        return x, mode // n_modes

    def class_log_density(self, X: Any) -> F64:  # noqa: N803
        """Log of ``p(x | k)`` (K, n) at points X (n, d)."""
        n_classes, n_modes, d = self.means.shape
        x = np.asarray(X, np.float64)
        if x.ndim != 2 or x.shape[1] != d:
            raise ValueError(f"X: must have the shape (n, {d}), got {x.shape}")
        # The density at the middle of each mode, of which a class has M.
        _, log_volume = np.linalg.slogdet(self.factors)
        log_height = -log_volume - 0.5 * d * math.log(2 * math.pi) - math.log(n_modes)
        # Inverses of the factors, rather than of covariances, whose condition is the square.
        whitening = np.linalg.inv(self.factors)
        out, of_mode = np.empty((n_classes, len(x))), np.empty((n_modes, len(x)))
        for k in range(n_classes):
            for m in range(n_modes):
                z = (x - self.means[k, m]) @ whitening[k, m]
                of_mode[m] = log_height[k, m] - 0.5 * np.einsum("ij,ij->i", z, z)
            out[k] = logsumexp(of_mode, axis=0)
        return out

    def posterior(self, X: Any) -> F64:  # noqa: N803
        """Probability (n, K) of each class at points X (n, d)."""
        with np.errstate(under="ignore"):
            return np.ascontiguousarray(softmax(self.class_log_density(X), axis=0).T)
