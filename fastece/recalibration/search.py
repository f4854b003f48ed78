"""The parameters of the least loss."""

from typing import Any, NamedTuple

import numpy as np

from fastece.recalibration.regression import Loss
from fastece.typing import F64

# Where the gradient of a mean loss is this small, the next step of Newton would gain 1e-16.
GRADIENT = 1e-8
# Losses of two points that are no further apart, relatively, may differ by rounding alone.
ROUNDING = 1e-13
# Where some classes can be told apart and others not, a search by products with second derivatives
# may take many times as many as one that comes to an end, some 200.
MOST_PRODUCTS = 2000
# So do parameters of logits in units of their standard deviations.
ENDLESS_PARAMETER = 1000.0
ENDLESS = (
    "predictions tell some classes apart without error, so the log loss falls as parameters grow, "
    "and there is no best map: more rows, or a method with fewer parameters, would have one"
)
# Of how many rows, at least, the first parameters are.
SOME_ROWS, ROWS_PER_PARAMETER = 2000, 50
# Of more parameters the matrix of second derivatives is too large.
MOST_PARAMETERS = 300
# A direction in which a loss is less curved than this part of the most counts as that.
FLAT, TINY = 1e-10, 1e-300
# Labels are told apart without error if the mean loss is as small.
NO_LOSS = 1e-6
SEPARABLE = (
    "predictions tell the labels apart without error, so there is no best map; it ends where the "
    f"mean log loss is below {NO_LOSS:g}"
)


class Whitened:
    """A loss as a function of phi, ``theta = start + steps @ phi``: by the second derivatives of
    some rows, it is nearly as curved in every direction, so that few steps find the least."""

    def __init__(self, loss: Loss, some: Loss, start: F64) -> None:
        value, vector = np.linalg.eigh(some.hessian(start))
        self.steps = vector / np.sqrt(np.maximum(value, FLAT * value[-1] + TINY))
        self.loss, self.start = loss, start

    def theta(self, phi: F64) -> F64:
        """The parameters of the loss itself."""
        theta: F64 = self.start + self.steps @ phi
        return theta

    def value(self, phi: F64) -> float:
        """The loss."""
        return self.loss.value(self.theta(phi))

    def gradient(self, phi: F64) -> F64:
        """Its derivatives by phi."""
        gradient: F64 = self.loss.gradient(self.theta(phi)) @ self.steps
        return gradient

    def curvature(self, phi: F64, direction: F64) -> F64:
        """The matrix of its second derivatives by phi times a direction."""
        product = self.loss.curvature(self.theta(phi), self.steps @ direction)
        curvature: F64 = product @ self.steps
        return curvature


class Endless(Exception):  # noqa: N818
    """A search goes on for ever: the loss falls as parameters grow."""


class Minimum(NamedTuple):
    """The parameters of the least loss, that loss, and whether the search came to an end."""

    theta: F64
    loss: float
    is_end: bool

    @property
    def fault(self) -> str:
        """What a user has to be warned of; empty where all is well."""
        if self.loss < NO_LOSS:  # it goes to 0 as parameters go to infinity
            return SEPARABLE
        return "" if self.is_end else ENDLESS


def minimise(loss: Loss, start: F64) -> Minimum:
    """The least of a loss, by Newton's method within a trust region.

    Some of many rows tell nearly where the least is, and how the loss is curved there. So matrix
    scaling of 50 000 rows of 10 classes takes 30 products with second derivatives, not 174.
    """
    step = loss.weight.size // max(SOME_ROWS, ROWS_PER_PARAMETER * start.size)
    if step > 1 and start.size <= MOST_PARAMETERS:
        some = loss.part(step)
        near = minimise(some, start)
        if not near.fault:  # else it may be anywhere
            whitened = Whitened(loss, some, near.theta)
            found = search(whitened, np.zeros(start.size))
            return found._replace(theta=whitened.theta(found.theta))
    return search(loss, start)


def search(loss: Loss | Whitened, start: F64) -> Minimum:
    """`minimise`, of all rows from the start: with the whole matrix of second derivatives where it
    is small, which finds in 20 steps what conjugate gradients (Steihaug 1983) creep up to."""
    from scipy.optimize import minimize

    def measure(theta: F64) -> tuple[F64, float, float]:
        return theta.copy(), loss.value(theta), float(np.abs(loss.gradient(theta)).max())

    at = tried = measure(start)
    products, is_end = 0, True
    farthest = max(ENDLESS_PARAMETER, 2 * np.abs(start).max())  # logits may be far from 0

    def value(theta: F64) -> float:
        nonlocal tried
        tried = measure(theta)
        return tried[1]

    def follow(theta: F64) -> None:
        nonlocal at
        if np.array_equal(theta, tried[0]):
            at = tried
        elif abs(tried[1] - at[1]) <= ROUNDING * at[1]:  # no step is seen to gain: shorter ones
            at = min(at, tried, key=lambda point: point[2])  # would be refused, too
            raise StopIteration
        if not isinstance(loss, Whitened) and np.abs(theta).max() > farthest:
            raise Endless

    def curvature(theta: F64, direction: F64) -> F64:
        nonlocal products
        products += 1
        if products > MOST_PRODUCTS:
            raise Endless
        return loss.curvature(theta, direction)

    how: dict[str, Any] = {"method": "trust-ncg", "hessp": curvature}
    if isinstance(loss, Loss) and start.size <= MOST_PARAMETERS:
        how = {"method": "trust-exact", "hess": loss.hessian}
    try:
        minimize(
            value, start, jac=loss.gradient, callback=follow, **how,
            options={"gtol": GRADIENT, "max_trust_radius": 1e4},
        )  # fmt: skip
    except Endless:
        is_end = False
    return Minimum(at[0], at[1], is_end)
