"""Small data in every setting, spelled with any of the options that say what rows mean."""

import numpy as np

N = 40
N_CLASSES = 3
IMAGES = (5, 8)  # so many images of so many pixels
COLUMNS = ("sample_weight", "counts", "groups", "by", "votes")  # options of one value a row

SETTINGS = ["binary", "confidence", 1, "classwise", "top-label", "tasks"]
OPTIONS = [
    "weights", "counts", "events", "groups", "by", "soft", "votes", "ignored", "class axis",
    "percent", "logits", "labels",
]  # fmt: skip


def arguments(setting, options, n=N, seed=0):
    """(y_true, y_prob, options of the call) that use all of the named options at once."""
    rng = np.random.default_rng(seed)
    logits, prob = predictions(setting, n, rng)
    true = outcomes(setting, prob, rng)
    call = {"setting": setting}
    if "weights" in options:
        call["sample_weight"] = rng.exponential(size=n)
        call["sample_weight"][::13] = 0
    if "counts" in options or "events" in options:
        call["counts"] = rng.integers(1, 4, n)
    if "groups" in options:
        call["groups"] = rng.integers(0, 12, n)
    if "by" in options:
        call["by"] = np.array(["west", "east", "north"])[rng.integers(0, 3, n)]
    if "votes" in options:
        call["votes"] = rng.integers(1, 6, n)
    if "soft" in options:
        call["soft"] = True
    if "events" in options:
        true = answers_of_many(setting, prob, call["counts"], rng)
    elif "votes" in options:
        true = answers_of_many(setting, prob, call["votes"], rng)
    elif "soft" in options:
        true = answers_of_many(setting, prob, np.full(n, 10), rng) / 10
    if "labels" in options:
        call["labels"] = ["ant", "bee", "cow"] if has_classes(setting) else ["no", "yes"]
        if not {"events", "soft", "votes"} & set(options):
            true = named(true, call["labels"])
    if "ignored" in options:
        call["ignore_label"] = "unknown" if "labels" in options else 255
        true[n // 5 : n // 3] = call["ignore_label"]
    if "percent" in options:
        call["percent"] = True
        prob = 100 * prob
        logits = 100 * logits
    if "logits" in options:
        call["from_logits"] = True
        prob = logits
    if "class axis" in options:
        return in_images(true, prob, call)
    return true, prob, call


def has_classes(setting):
    """Whether y_prob has a column for each class, of which one is true."""
    return setting not in ("binary", "tasks")


def predictions(setting, n, rng):
    """Logits and probabilities."""
    logits = rng.normal(0, 1.5, n if setting == "binary" else (n, N_CLASSES))
    if has_classes(setting):
        prob = np.exp(logits)
        return logits, prob / prob.sum(axis=1, keepdims=True)
    return logits, 1 / (1 + np.exp(-logits))


def outcomes(setting, prob, rng):
    """Labels of a model that is a little wrong; of tasks, some are missing, and all of row 7."""
    if has_classes(setting):
        random_class = rng.integers(0, N_CLASSES, len(prob))
        return np.where(rng.random(len(prob)) < 0.6, prob.argmax(axis=1), random_class)
    true = (rng.random(prob.shape) < prob**1.5).astype(float)
    if setting == "tasks":
        true[rng.random(true.shape) < 0.2] = np.nan
        true[7] = np.nan
        return true
    return true.astype(int)


def answers_of_many(setting, prob, number, rng):
    """Of so many answers a row, how many are the positive class, or each class."""
    if has_classes(setting):
        return rng.multinomial(number, prob)
    return rng.binomial(number if prob.ndim == 1 else number[:, None], prob)


def named(true, names):
    """Names in place of labels; what is no label stays."""
    return np.array([name_of(label, names) for label in true.ravel()], object).reshape(true.shape)


def name_of(label, names):
    return names[int(label)] if label in range(len(names)) else label


def in_images(true, prob, call):
    """The same rows as pixels, with the classes on axis 1 and the axes of images around it."""
    call = call | {name: call[name].reshape(IMAGES) for name in COLUMNS if name in call}
    prob = np.moveaxis(prob.reshape(*IMAGES, -1), -1, 1)
    return true.reshape(*IMAGES, *true.shape[1:]), prob, call | {"class_axis": 1}


def flattened(true, prob, call):
    """The rows of pixels one after the other, as ``docs/reference/input.md`` says it."""
    if "class_axis" not in call:
        return true, prob, call
    call = {name: np.ravel(x) if name in COLUMNS else x for name, x in call.items()}
    prob = np.moveaxis(prob, call.pop("class_axis"), -1)
    prob = prob.ravel() if prob.shape[-1] == 1 else prob.reshape(-1, prob.shape[-1])
    return true.ravel(), prob, call


def parts(true, prob, call):
    """The arguments of each group of `by`, in the order of the sorted labels."""
    true, prob, call = flattened(true, prob, call)
    by = call["by"]
    others = {name: x for name, x in call.items() if name != "by"}
    calls = []
    for label in sorted(set(by.tolist())):
        rows = by == label
        of_rows = {name: x[rows] if name in COLUMNS else x for name, x in others.items()}
        calls.append((true[rows], prob[rows], of_rows))
    return calls
