"""Does an installed package work where nothing else is installed? Not a test for pytest.

    python -m venv empty && empty/bin/pip install dist/fastece-*.whl
    cd elsewhere && ../empty/bin/python ../tests/smoke.py

It imports every module, calls every public function, and looks at what happens without optional
packages, at the command line and at compiled kernels. A wheel that carries kernels must not compile
any, which is counted, without a home that can be written. With such a wheel, or with kernels kept
in ``FASTECE_CACHE_DIR``, that takes a quarter of a minute, else two.
"""

import ctypes
import importlib
import os
import pkgutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import fastece
from fastece import recalibration
from fastece.compat import (
    netcal,
    relplot,
    robustness_metrics,
    sklearn,
    torchmetrics,
    uncertainty_calibration,
)
from fastece.sklearn import ece_scorer

OPTIONAL = [
    "dask", "jinja2", "joblib", "matplotlib", "pandas", "polars", "pyarrow", "pytest", "sklearn",
    "torch", "tqdm",
]  # fmt: skip
rng = np.random.default_rng(0)
P = rng.random(500)
Y = (rng.random(500) < P**1.5).astype(int)
Q = rng.dirichlet([1, 1, 1], 500)
LABELS = np.array([rng.choice(3, p=row) for row in Q])
OTHER = 0.8 * Q + 0.2 / 3


class Model:
    """A fitted classifier with the methods of scikit-learn."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """The rows are the probabilities of class 1."""
        return np.stack([1 - X, X], axis=1)


# Every public function, called so that it gives a number.
CALLS = {
    "accuracy": lambda: fastece.accuracy(LABELS, Q),
    "ace": lambda: fastece.ace(LABELS, Q),
    "bootstrap": lambda: fastece.bootstrap(LABELS, Q, n_resamples=99, rng=0).standard_error,
    "brier_decomposition": lambda: fastece.brier_decomposition(LABELS, Q).reliability,
    "brier_score": lambda: fastece.brier_score(LABELS, Q),
    "calibration_report": lambda: fastece.calibration_report(Y, P, n_resamples=99).p_value,
    "calibration_test": lambda: fastece.calibration_test(Y, P, n_resamples=99, rng=0).p_value,
    "canonical_error": lambda: fastece.canonical_error(LABELS, Q),
    "check": lambda: fastece.check(Y, P, max_error=0.05).n,
    "check_estimator": lambda: fastece.check_estimator("ece") or 0,
    "compare": lambda: fastece.compare(LABELS, Q, OTHER, n_resamples=99, rng=0).value,
    "direction": lambda: fastece.direction(Y, P).over,
    "ece": lambda: fastece.ece(LABELS, Q),
    "entropy": lambda: fastece.entropy(LABELS, Q),
    "estimate": lambda: fastece.estimate(LABELS, Q).value,
    "kernel_calibration_error": lambda: fastece.kernel_calibration_error(LABELS, Q),
    "log_loss": lambda: fastece.log_loss(LABELS, Q),
    "mce": lambda: fastece.mce(LABELS, Q),
    "ranked_probability_score": lambda: fastece.ranked_probability_score(LABELS, Q),
    "reliability_curve": lambda: fastece.reliability_curve(
        Y, P, estimator="ece_kde", n_resamples=99, rng=0
    )(0.5),
    "reliability_diagram": lambda: fastece.reliability_diagram(Y, P).gap.max(),
    "rows_needed": lambda: fastece.rows_needed(Y, P, width=0.1).value,
    "sce": lambda: fastece.sce(LABELS, Q),
    "score_decomposition": lambda: fastece.score_decomposition(Y, P).miscalibration,
    "sharpness": lambda: fastece.sharpness(LABELS, Q),
    "slices": lambda: fastece.slices(Y, P, by=np.arange(500) % 2, n_resamples=99, rng=0)[0].low,
    "tace": lambda: fastece.tace(LABELS, Q),
    "validate": lambda: fastece.validate(Y, P).slope.value,
}
# Functions that draw.
PLOTS = {
    "cumulative_plot": lambda: fastece.cumulative_plot(Y, P),
    "reliability_plot": lambda: fastece.reliability_plot(Y, P),
}
# Functions under the names of other libraries, minus the same error of fastece.
NAMESAKES = [
    lambda: netcal.ECE(15).measure(P, Y) - fastece.ece(Y, P),
    lambda: relplot.binnedECE(P, Y, 15) - fastece.ece(Y, P),
    lambda: robustness_metrics.ece(LABELS, Q, 15) - fastece.ece(LABELS, Q),
    lambda: (
        float(np.abs(np.subtract(*sklearn.calibration_curve(Y, P, n_bins=1))).sum())
        - fastece.ece(Y, P, n_bins=1)
    ),
    lambda: torchmetrics.binary_calibration_error(P, Y) - fastece.ece(Y, P),
    lambda: uncertainty_calibration.get_ece(Q, LABELS, num_bins=15) - fastece.ece(LABELS, Q),
    lambda: ece_scorer(Model(), P, Y) + fastece.ece(Y, P),
]
# Each of these calls needs an optional package; the error has these words on how to install it.
PLOT = "pip install 'fastece[plot]'"
NEEDS = {
    PLOT: lambda: fastece.reliability_diagram(Y, P).plot(),
    "to_html: needs jinja2 and matplotlib: pip install 'fastece[report]'": lambda: (
        fastece.calibration_report(Y, P, n_resamples=99).to_html("report.html")
    ),
    "pip install 'fastece[study]'": lambda: command("study"),
    "pip install pandas": lambda: fastece.bootstrap(
        Y, P, estimator=["ece"], n_resamples=99, rng=0
    ).to_frame(),
    "pip install 'fastece[files]'": lambda: command("report", "predictions.parquet"),
    "--plot: needs matplotlib: pip install 'fastece[plot]'": lambda: command(
        "demo", "--plot", "demo.png"
    ),
}


SHIPS_KERNELS = (Path(fastece.__file__).parent / "kernels" / "shipped").is_dir()
# Calls that a user of a new environment makes first, and the counts of compiled and loaded kernels.
FIRST_DATA = """
import numpy as np, fastece
from fastece.cli import main
rng = np.random.default_rng(0)
p = rng.random(1000)
y = (rng.random(1000) < p).astype(int)
"""
FIRST_CALLS = {
    "ece": "fastece.ece(y, p)",
    "estimate": "fastece.estimate(y, p)",
    "bootstrap": "fastece.bootstrap(y, p, rng=0)",
    "report": "print(fastece.calibration_report(y, p))",
    "demo": "main(['demo'])",
}
COUNTED = """
from fastece.kernels.compiling import KERNELS
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS))
print(sum(sum(kernel.stats.cache_hits.values()) for kernel in KERNELS))
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process with this interpreter, in the working folder."""
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def command(*arguments: str) -> None:
    """A command that must be refused: with the exit code of bad input, and one line."""
    done = run("-m", "fastece", *arguments)
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, done.stderr
    raise ValueError(done.stderr)


def message_of(call: Callable[[], object]) -> str:
    """The message of the error that a call raises; empty if it raises none."""
    try:
        call()
    except (ImportError, ValueError) as error:
        return str(error)
    return ""


def check_installation() -> None:
    """The package is the installed one, alone, and has its files."""
    folder = Path(fastece.__file__).parent
    assert folder.is_relative_to(sysconfig.get_path("purelib")), f"{folder} is not installed"
    installed = [name for name in OPTIONAL if find_spec(name)]
    assert not installed, f"{installed} are installed; this needs an environment with fastece alone"
    assert version("fastece") == fastece.__version__
    for name in (
        "py.typed",
        "display/templates/page.html",
        "data/digits_neural_network.npz",
        ".agents/skills/fastece/SKILL.md",
    ):
        assert (folder / name).exists(), name


# One starts the program, and one is imported where a file is read that needs pyarrow.
NOT_IMPORTED = ("fastece.__main__", "fastece.files.arrow_tables")


def check_modules() -> None:
    """Every other module can be imported without optional packages."""
    for module in pkgutil.walk_packages(fastece.__path__, "fastece."):
        if module.name not in NOT_IMPORTED:
            importlib.import_module(module.name)


def check_functions() -> None:
    """Every public function gives numbers, with every estimator and every map."""
    assert abs(fastece.ece([0, 1, 1], [0.2, 0.6, 0.9], n_bins=10) - 0.7 / 3) < 1e-12
    for name, call in CALLS.items():
        assert np.isfinite(call()), name
    for k, difference in enumerate(NAMESAKES):
        assert abs(difference()) < 1e-6, k
    for name in fastece.ESTIMATORS:
        assert np.isfinite(fastece.ece(LABELS, Q, estimator=name)), name
    for name in recalibration.METHODS:
        assert np.isfinite(recalibration.recalibrate(LABELS, Q, method=name, cv=2)).all(), name
    stream = fastece.Accumulator().update(Y[:200], P[:200]).merge(
        fastece.Accumulator().update(Y[200:], P[200:])
    )  # fmt: skip
    assert abs(fastece.ece(stream) - fastece.ece(Y, P)) < 1e-12


def check_messages() -> None:
    """Calls that need an optional package raise an error that says how to install it."""
    Path("predictions.parquet").write_bytes(b"PAR1")
    for words, call in (*NEEDS.items(), *((PLOT, call) for call in PLOTS.values())):
        message = message_of(call)
        assert words in message, f"{words}: {message or 'nothing was raised'}"


def check_command_line() -> None:
    """The script, the module and the demo."""
    script = Path(sysconfig.get_path("scripts")) / ("fastece.exe" if os.name == "nt" else "fastece")
    for line in ([str(script)], [sys.executable, "-m", "fastece"]):
        done = subprocess.run([*line, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"fastece {fastece.__version__}\n"
    done = run("-m", "fastece", "demo")
    assert done.returncode == 0, done.stderr
    assert "1797" in done.stdout


def make_home(mode: int) -> dict[str, str]:
    """Make an empty home, and return the environment of a process that has it."""
    home = Path.cwd() / f"home-{mode:o}"
    home.mkdir(mode)
    unset = dict.fromkeys(("FASTECE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"), "")
    return {"HOME": str(home), "USERPROFILE": str(home), **unset}


def check_cache() -> None:
    """Compiled kernels go to the cache folder of the user, who alone can write it."""
    environment = make_home(0o700)
    code = "import fastece; print(fastece.ece([0, 1], [0.2, 0.9]))"
    done = run("-W", "error", "-c", code, **environment)
    assert done.returncode == 0, done.stderr
    (folder,) = Path(environment["HOME"], ".cache", "fastece").iterdir()
    assert bool([*folder.glob("*.nbc")]) != SHIPS_KERNELS, folder
    if os.name == "posix":
        assert folder.stat().st_mode & 0o077 == 0


def modes_bind() -> None:
    """Let file modes bind this process, although it may be root's (Linux only)."""
    if sys.platform == "linux" and os.geteuid() == 0:
        drop_capability = 24
        override_modes = 1
        ctypes.CDLL(None).prctl(drop_capability, override_modes, 0, 0, 0)


def check_shipped_kernels() -> None:
    """Common calls of a new process find all kernels in the wheel, and write nothing."""
    environment = {**os.environ, **make_home(0o555)}
    for name, call in FIRST_CALLS.items():
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", FIRST_DATA + call + COUNTED], env=environment,
            capture_output=True, text=True, check=False,
            preexec_fn=modes_bind if os.name == "posix" else None,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        assert (done.returncode, done.stderr) == (0, ""), done
        compiled, loaded = map(int, done.stdout.split()[-2:])
        print(f"first {name}: {seconds:.2f} s, {compiled} kernels compiled, {loaded} loaded")
        assert compiled == 0 < loaded
        assert not os.listdir(environment["HOME"])


def count_compiled() -> int:
    """How many kernels this process has compiled."""
    from fastece.kernels.compiling import KERNELS

    return sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS)


def main() -> None:
    """All checks, in a folder that is gone afterwards."""
    check_installation()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for check in (
            check_modules, check_functions, check_messages, check_command_line, check_cache
        ):  # fmt: skip
            check()
        if SHIPS_KERNELS:
            check_shipped_kernels()
            assert count_compiled() == 0
        os.chdir(os.path.dirname(folder))
    print(
        f"fastece {fastece.__version__} works: {len(CALLS) + len(PLOTS)} functions, "
        f"{len(fastece.ESTIMATORS)} estimators, {len(recalibration.METHODS)} maps"
    )


if __name__ == "__main__":
    main()
