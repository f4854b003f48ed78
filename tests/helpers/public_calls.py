"""Public calls of every kind, drawn at random; prints the kernels that had to be compiled.

Run as a script after a warm-up. The calls do not depend on the list of the warm-up.
"""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

import fastece
from fastece.cli import main
from fastece.compat import (
    netcal,
    relplot,
    robustness_metrics,
    sklearn,
    torchmetrics,
    uncertainty_calibration,
)
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from fastece.data.table import SETTINGS
from fastece.estimators.draws import Counts
from fastece.estimators.table import find_estimator
from fastece.kernels import compiling
from fastece.recalibration import METHODS
from helpers.samples import CALIBRATION_ERRORS

CALLS = 700
NAMES = list(fastece.ESTIMATORS)
# Estimators with replicates of 0.3 ms per class, and more with many rows.
SLOW = {"ece_bayes", "ece_sweep", "smooth_ece", "mmce", "canonical", "skce"}
# Estimators without a largest error.
NO_NORM = {"smooth_ece", "mmce", "ecce_r", "ecce_mad"}
# Estimators that add up all pairs of rows.
PAIRS = {"canonical", "skce"}
SHAPES = [
    (1,), (2,), (50,), (5000,), (70_000,), (1, 2), (60, 2), (60, 3), (4000, 4), (66_000, 3),
    (30, 150),
]  # fmt: skip
SMALL = [shape for shape in SHAPES if shape[0] <= 60]
PROBABILITIES = ["f8", "f8", "f4", "f2", ">f8", "g"]
LABELS = ["i8", "i8", "u1", "?", "i4", "u8", ">i2", "f8", "f4", "text"]
FIELDS = {
    "n_bins": [1, 2, 7, 100, 5000, "sqrt"],
    "edges": ["quantile", (0.0, 0.3, 0.3, 0.8, 1.0), tuple(np.linspace(0, 1, 101).tolist())],
    "mapping": ["convex"],
    "norm": [2, 1.5, np.inf],
    "closed": ["left"],
    "score_range": ["support", (0.2, 0.9), (0.3, float(np.nextafter(0.3, 1)))],
    "bin_weights": ["equal"],
    "threshold": [0, 0.4, 2],
    "bandwidth": [0.003, 0.1, 5],
    "kernel": ["triweight", "epanechnikov", "beta", "gaussian"],
    "form": ["unbiased", "block"],
}
RESAMPLING = [fastece.bootstrap, fastece.compare, fastece.calibration_test, fastece.estimate]
CLASSWISE = [fastece.sce, fastece.ace, fastece.tace]
POOL = ThreadPoolExecutor(2)
rng = np.random.default_rng(0)


def pick(values):
    return values[rng.integers(len(values))]


def probabilities(shape, is_logits):
    z = rng.normal(size=shape) * pick([1, 10])
    z = z.round(1) if rng.random() < 0.3 else z
    if is_logits:
        return z.astype(pick(PROBABILITIES))
    e = np.exp(z)
    p = e / (1 + e) if len(shape) == 1 else e / e.sum(1, keepdims=True)
    p = p.astype(pick(PROBABILITIES))
    if rng.random() < 0.2:
        p.flat[0] = 1 + 5e-7  # to be clipped
    return p


def layout(array, kind):
    if kind == "columns":
        return np.asfortranarray(array)
    if kind == "strided":
        return np.repeat(array, 2, axis=0)[::2]
    array.flags.writeable = kind != "read-only"
    return array


def data(shapes):
    """Labels, probabilities of one of these shapes, and the options that go with them."""
    shape = pick(shapes)
    n = shape[0]
    n_classes = shape[1] if len(shape) == 2 else 2
    options = {"setting": pick(["auto", *SETTINGS, 1]), "from_logits": bool(rng.random() < 0.3)}
    p = probabilities(shape, options["from_logits"])
    y = rng.integers(0, 2, n)
    kind = pick(LABELS)
    if kind == "text":
        options["labels"] = [f"c{k:03}" for k in range(n_classes)]
        y = np.array(options["labels"])[y]
    else:
        y = y.astype(kind)
    weights = [None, rng.random(n), np.ones(n, "i8"), np.arange(1, n + 1) // 2]
    options["sample_weight"] = weights[rng.integers(4)] if n > 1 else None
    kind = pick(["rows", "columns", "strided", "read-only"])
    return layout(y, kind), layout(p, kind), options


def evaluate(y, p, estimator, options):
    """The protocol, with counts of any kind."""
    problems = read_problems(y, p, ReadingOptions(**options))
    sample = problems.sample(problems.n_problems - 1).sorted()
    plan = estimator.prepare(sample, sample.n)
    c = rng.poisson(1, (sample.n, 32)).astype(np.uint8)
    c[0] += 1
    if hasattr(estimator, "block"):
        estimator.values(plan, Counts(c[None]))
        estimator.values(plan, Counts(np.asfortranarray(c)[None]))
    for column in (c[:, 0], c[:, 0].astype(np.int64), c[:, 0].astype(np.float64)):
        estimator.evaluate(plan, column)


def drop_in(y, p, options):
    """A function of another library."""
    del options
    k = p.shape[1] if p.ndim == 2 else None
    task = "binary" if k is None else "multiclass"
    functions = [
        lambda: torchmetrics.calibration_error(p, y, task, num_classes=k, norm=pick(["l1", "l2"])),
        lambda: torchmetrics.CalibrationError(task, num_classes=k)(p, y),
        lambda: netcal.ACE(equal_intervals=pick([True, False])).measure(p, y),
        lambda: uncertainty_calibration.get_calibration_error(p, y),
        lambda: robustness_metrics.ace(y, p),
    ]
    binary = [
        lambda: relplot.binnedECE(p, y),
        lambda: sklearn.calibration_curve(y, p),
    ]
    pick(functions if p.ndim == 2 else functions + binary)()


def decompose(y, p, options):
    """Decompose a score by bins or by isotonic regression."""
    options.pop("estimator")
    pick([fastece.brier_decomposition, fastece.score_decomposition])(y, p, **options)


def recalibrate(y, p, options):
    """Fit and apply any map."""
    method = METHODS[pick(sorted(METHODS))](from_logits=options["from_logits"])
    order = options.get("labels")
    y = y if order is None else [order.index(label) for label in y]
    method.fit_transform(p, y, options["sample_weight"])


def sweep(y, p, *, n_jobs, **options):  # noqa: ARG001
    """Some bandwidths at once."""
    names = ("setting", "average", "labels", "pos_label", "sample_weight", "from_logits")
    reading = {name: options.pop(name) for name in names if name in options}
    kde = find_estimator(options.pop("estimator"), options)
    kde.bandwidth_sweep(y, p, [0.01, 0.2, 0.05], **reading)


def resample(function, y, p, options, fields):
    """Few replicates, of draws of any size, for one estimator or several, in any executor."""
    counts = [1, 31, 70] if options["estimator"] not in SLOW else [1, 2]
    options |= {"n_resamples": pick(counts), "rng": pick([0, rng, None])}
    options["average"] = pick(["macro", None])
    if not fields and rng.random() < 0.2:
        options["estimator"] = [name for name in NAMES if name not in SLOW]
    if rng.random() < 0.3:
        options["executor"] = POOL
    else:
        options["n_jobs"] = pick([None, 1, 2])
    if function in (fastece.calibration_test, fastece.estimate):
        function(y, p, **options, **fields)
        return
    options["size"] = pick([None, None, 1, max(1, len(y) // 16), max(1, len(y) // 2), len(y) + 1])
    methods = ["basic", "percentile", "bca"]
    if function is fastece.compare:
        methods.append("mover")
    options["method"] = pick(methods)
    models = [p] if function is fastece.bootstrap else [p, p[::-1]]
    function(y, *models, **options, **fields)


def call():
    """One call; ValueError for what does not go together."""
    fields = {name: pick(values) for name, values in FIELDS.items() if rng.random() < 0.1}
    name = pick(NAMES)
    fields = {k: v for k, v in fields.items() if hasattr(fastece.ESTIMATORS[name], k)}
    if name in CALIBRATION_ERRORS:
        single = [fastece.ece, *CLASSWISE]
        if name not in NO_NORM:
            single.append(fastece.mce)
        if name in ("ece_kde", "ece_bayes"):
            single.append(fastece.reliability_curve)
        if name == "ece_kde":
            single.append(sweep)
        if isinstance(fastece.ESTIMATORS[name], fastece.Binned):
            single.append(fastece.reliability_diagram)
        function = pick([*single, evaluate, *RESAMPLING, *RESAMPLING])
    elif name in PAIRS:
        function = pick([fastece.ece, *RESAMPLING])
    else:
        others = [evaluate, decompose, recalibrate, drop_in]
        function = pick([fastece.ece, fastece.bootstrap, fastece.compare, *others])
    is_slow = function in RESAMPLING and (name in SLOW or function is fastece.estimate)
    is_slow |= name in PAIRS
    y, p, options = data(SMALL if is_slow else SHAPES)
    if function is evaluate:
        evaluate(y, p, find_estimator(name, fields), options)
        return
    if function in CLASSWISE:
        options["setting"] = "classwise"
        fields = {k: v for k, v in fields.items() if k == "n_bins"}
    else:
        options["estimator"] = name
    if function is fastece.mce:
        fields.pop("norm", None)
    if function in (fastece.ece, fastece.bootstrap):
        options["by"] = pick([None, np.arange(len(y)) % 2, [f"g{i % 2}" for i in range(len(y))]])
    if function in (decompose, recalibrate, drop_in):
        function(y, p, options)
        return
    if function in RESAMPLING:
        resample(function, y, p, options, fields)
        return
    if function is fastece.reliability_curve:
        options |= {"n_resamples": pick([0, 5, 40]), "rng": 0}
    function(y, p, n_jobs=pick([1, 2]), **options, **fields)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    done = 0
    for _ in range(CALLS):
        with suppress(ValueError):
            call()
            done += 1
    assert done > CALLS / 2, done
    np.savez(sys.argv[1], y_true=rng.integers(0, 3, 99), y_prob=np.full((99, 3), 1 / 3))
    for setting in ("auto", "classwise", "2"):
        assert main(["report", sys.argv[1], "--setting", setting]) == 0
    assert main(["demo", "--full", "--resamples", "9"]) == 0
    compiled = {k.__qualname__: list(k.stats.cache_misses) for k in compiling.KERNELS}
    print({name: signatures for name, signatures in compiled.items() if signatures})
