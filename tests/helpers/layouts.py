"""The same numbers, laid out in memory as kernels do not take them."""

import numpy as np


def frozen(array):
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def strided(array):
    wide = np.full((3 * len(array), *array.shape[1:]), 7, dtype=array.dtype)
    wide[::3] = array
    return wide[::3]
