"""Isotonic regression: neighbouring values that fall are pooled."""

from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64


@jit
def pool_falling_values(value: F64, weight: F64, first: I64) -> int:
    """Pool neighbouring values until they rise; return the number of blocks B.

    Block b begins at ``first[b]`` and ends before ``first[b + 1]``; `value` and `weight` have its
    weighted mean and its weight in their first B entries. Each new value is pooled with the block
    before it if it does not exceed that block's mean, with all later values that do not exceed the
    mean of both, and then with earlier blocks that are not below it. This is the algorithm 1 of
    Henzi, Moesching and Duembgen (2022, "Accelerating the pool-adjacent-violators algorithm for
    isotonic distributional regression") as `scipy.optimize.isotonic_regression` has it, with sums
    in the same order.

    value : (n,) with n > 0, overwritten
    weight : (n,), overwritten
    first : (n + 1,), written
    """
    n = len(value)
    block = 0
    mean = value[0]
    mass = weight[0]
    first[0] = 0
    first[1] = 1
    i = 1
    while i < n:
        if mean < value[i]:
            block += 1
            mean = value[i]
            mass = weight[i]
        else:
            total = mass * mean + weight[i] * value[i]
            mass += weight[i]
            mean = total / mass
            while i + 1 < n and mean >= value[i + 1]:
                i += 1
                total += weight[i] * value[i]
                mass += weight[i]
                mean = total / mass
            while block > 0 and value[block - 1] >= mean:
                block -= 1
                total += weight[block] * value[block]
                mass += weight[block]
                mean = total / mass
        value[block] = mean
        weight[block] = mass
        i += 1
        first[block + 1] = i
    return block + 1
