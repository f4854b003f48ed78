"""What holds for every test: one hypothesis profile, and no figure that stays open."""

import sys

import pytest
from hypothesis import HealthCheck, settings

# No deadline, since the first call compiles; the same examples anywhere.
settings.register_profile(
    "fastece",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fastece")


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
