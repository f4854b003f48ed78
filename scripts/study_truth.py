"""How exact the truths of the study are, from a hold-out of the usual size and from a larger one.

Prints the table of docs/study.md, in some four minutes and 2 GB.
"""

from dataclasses import replace

import numpy as np

from fastece.study import Design
from fastece.study.design import Distribution
from fastece.study.runner import Clock, holdout_of, problems_of, scores_of
from fastece.study.truth import truth_from_labels, truth_from_posterior

SIZES = (200_000, 2_000_000)
MODELS = ("logistic_regression", "naive_bayes", "random_forest")


def truths(which: Distribution, setting: str) -> list[float]:
    """From the posterior and from labels, for each size of the hold-out."""
    design = replace(Design(), holdout=SIZES[-1])
    holdout = holdout_of(design, *which[:3])
    prob = scores_of(design, which, holdout, Clock())
    found = []
    for size in SIZES:
        part = holdout._replace(y=holdout.y[:size], posterior=holdout.posterior[:size])
        samples, chances = problems_of(part, prob[:size], setting)
        pairs = list(zip(samples, chances, strict=True))
        found.append(np.mean([truth_from_posterior(sample.s, q) for sample, q in pairs]))
        found.append(np.mean([truth_from_labels(sample) for sample in samples]))
    return found


def main() -> None:
    """Print the table."""
    heads = [f"{kind}, {size:,}" for size in SIZES for kind in ("posterior", "labels")]
    print(f"| setting | classes, features | model | {' | '.join(heads)} |")
    print("| --- | --- | --- |" + " ---: |" * len(heads))
    for setting in ("confidence", "classwise"):
        for n_classes, n_features in ((2, 2), (5, 5), (7, 7)):
            for model in MODELS:
                which = Distribution(n_classes, n_features, 0, model, 0)
                cells = " | ".join(f"{value:.4f}" for value in truths(which, setting))
                print(f"| {setting} | {n_classes}, {n_features} | {model} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
