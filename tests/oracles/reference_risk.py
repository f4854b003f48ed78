"""Logistic recalibration by scipy: roots of score equations, and of profile likelihoods."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit


class Recalibration:
    """Maximum likelihood and profile likelihood of ``logit P(y = 1) = a + b logit(p)``.

    Each maximum is the root of a monotone score equation, in a bracket that grows.
    """

    def __init__(self, y, p, weight=None):
        self.y = np.asarray(y, float)
        self.w = np.ones(self.y.size) if weight is None else np.asarray(weight, float)
        self.logit = np.log(p) - np.log1p(-p)
        self.centre = np.average(self.logit, weights=self.w)

    def log_likelihood(self, eta):
        return float(self.w @ (self.y * eta - np.logaddexp(0, eta)))

    def coefficient(self, column, offset):
        """The coefficient of a column with the largest likelihood, next to an offset."""
        return rising_root(lambda t: -self.w @ (column * (self.y - expit(offset + t * column))))

    def intercept(self):
        """The intercept beside the logit as offset."""
        return self.coefficient(np.ones(self.y.size), self.logit)

    def slope(self):
        """The slope beside an intercept."""
        distance = self.logit - self.centre

        def score(b):
            eta = self.level(b) + b * distance
            return -self.w @ (distance * (self.y - expit(eta)))

        return rising_root(score)

    def level(self, b):
        """The logit at the mean logit, for a slope."""
        return self.coefficient(np.ones(self.y.size), b * (self.logit - self.centre))

    def likelihood_of_slope(self, b):
        return self.log_likelihood(self.level(b) + b * (self.logit - self.centre))

    def likelihood_of_intercept(self, a):
        return self.log_likelihood(a + self.logit)

    def ends(self, likelihood, best, reach):
        """Where a profile likelihood is lower than its maximum by half a squared quantile."""
        most = likelihood(best)

        def excess(x):
            return 2 * (most - likelihood(x)) - 1.959963984540054**2

        found = []
        for sign in (-1, 1):
            step = sign * reach
            while excess(best + step) < 0:
                step *= 2
            found.append(brentq(excess, best, best + step, xtol=1e-12))
        return found


def rising_root(function):
    """The root of a rising function."""
    low, high = -1.0, 1.0
    while function(low) > 0:
        low *= 2
    while function(high) < 0:
        high *= 2
    return brentq(function, low, high, xtol=1e-14, rtol=1e-15, maxiter=500)
