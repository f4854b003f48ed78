"""Single calls on class vectors with their checks, on one thread."""

from functools import partial

import fastece
from benchmarks import baselines
from benchmarks.common import Single


class ClassVectors(Single):
    """Measure bins of equal width on class vectors with `n` entries in total."""

    params = (
        ["confidence", "classwise"],
        ["float64", "float32"],
        ["probabilities", "logits"],
        [2, 10, 1000],
        [10_000, 1_000_000],
    )
    param_names = ("setting", "dtype", "kind", "classes", "n")

    def setup(self, setting: str, dtype: str, kind: str, classes: int, n: int) -> None:
        """Draw the data and compile."""
        has_logits = kind == "logits"
        y, p = baselines.draw_class_vectors(max(1, n // classes), classes, dtype, has_logits)
        _, baseline = baselines.find_baseline("ece", setting)
        self.call = partial(fastece.ece, y, p, setting=setting, from_logits=has_logits)
        self.baseline = partial(baseline, y, p)
        if has_logits:
            self.baseline = lambda: baseline(y, baselines.softmax(p))
        self.call()
