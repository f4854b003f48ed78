"""Single calls on class vectors, on one thread, validation included."""

from functools import partial

import fastece
from benchmarks import baselines
from benchmarks.common import Single


class ClassVectors(Single):
    """Uniform hard bins on as many entries, whatever the number of classes."""

    params = (
        ["confidence", "classwise"],
        ["float64", "float32"],
        ["probabilities", "logits"],
        [2, 10, 1000],
        [10_000, 1_000_000],
    )
    param_names = ("setting", "dtype", "kind", "classes", "n")

    def setup(self, setting: str, dtype: str, kind: str, classes: int, n: int) -> None:
        """Make the data and compile."""
        logits = kind == "logits"
        y, p = baselines.class_vectors(max(1, n // classes), classes, dtype, logits)
        baseline = baselines.find_baseline("ece", setting)[1]
        self.call = partial(fastece.ece, y, p, setting=setting, from_logits=logits)
        self.baseline = (
            (lambda: baseline(y, baselines.softmax(p))) if logits else partial(baseline, y, p)
        )
        self.call()
