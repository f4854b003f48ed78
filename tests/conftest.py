"""What holds for every test: one hypothesis profile, and no figure that stays open."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# What compiles says so on stderr, which tests look at.
os.environ["FASTECE_QUIET"] = "1"
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


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a cluster of two processes, on any free port."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "host": "127.0.0.1"}
    options |= {"dashboard_address": "127.0.0.1:0", "local_directory": tmp_path_factory.mktemp("w")}
    with distributed.LocalCluster(**options) as own, distributed.Client(own) as client:
        yield client
