"""What the tests of the Bayesian curve share."""

import numpy as np

from fastece.data.sample import Sample


def sample_of(s, y, v=None):
    """Rows as they come, as one problem."""
    s = np.asarray(s, np.float64)
    v = None if v is None else np.asarray(v, np.float64)
    return Sample(s, np.asarray(y, np.uint8), v, 0.0, 1.0, np.arange(s.size))
