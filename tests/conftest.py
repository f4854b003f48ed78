"""What holds for every test: profiles of hypothesis, and no figure that stays open."""

import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings

from helpers.prediction_files import encoded

# What compiles says so on stderr, which tests look at.
os.environ["FASTECE_QUIET"] = "1"
# No deadline, since the first call compiles; the same examples anywhere, and more of them with
# `--hypothesis-profile=thorough`, before a change is proposed.
for profile, examples in (("fastece", 25), ("thorough", 60)):
    settings.register_profile(
        profile,
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("fastece")

COMPILE_ALL = """
import sys
from fastece.cli import warmup
calls = [*warmup.steps()]
warmup.compile_all(calls[:: int(sys.argv[1])], lambda _: None)
"""


def pytest_configure(config):
    """Compile all kernels in two processes before the workers of a whole run begin.

    One begins at the end, and each loads what the other has compiled. Without this, each worker
    waits for kernels that the other compiles. A run of chosen files compiles the kernels that it
    needs as it goes.
    """
    is_worker = hasattr(config, "workerinput")
    is_whole_suite = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if is_whole_suite and not is_worker and is_cache_empty():
        # Compiling takes twice as long where coverage is measured, and covers nothing more.
        env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        command = [sys.executable, "-c", COMPILE_ALL]
        processes = [subprocess.Popen([*command, step], env=env) for step in ("1", "-1")]
        assert [process.wait() for process in processes] == [0, 0]


def is_cache_empty():
    """Whether there is a folder for compiled kernels, without any in it."""
    from fastece.kernels.cache import USER

    return not USER.problem and not USER.kernels()


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def write(tmp_path):
    """Write a file from text or bytes, and give its path."""

    def write_file(content, name="predictions.csv"):
        path = tmp_path / name
        path.write_bytes(encoded(content))
        return path

    return write_file


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a cluster of two processes, on any free port."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "host": "127.0.0.1"}
    options |= {"dashboard_address": "127.0.0.1:0", "local_directory": tmp_path_factory.mktemp("w")}
    with distributed.LocalCluster(**options) as own, distributed.Client(own) as client:
        yield client
