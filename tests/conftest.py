"""One hypothesis profile: no deadline (the first call compiles), the same examples anywhere; and
what takes minutes where kernels are not compiled."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fastece",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fastece")


def pytest_collection_modifyitems(items):
    """Replicates of the density-based error take a second each as plain Python; its kernels are
    compared with loops one by one, in test_density_kernels.py."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
        return
    for item in items:
        if "ece_kde" in item.name or "Kde" in item.name:
            item.add_marker(pytest.mark.skip(reason="takes minutes as plain Python"))
