"""Data and options that are refused: argument, rule, and the first bad entry with its value."""

import warnings
from functools import partial
from math import inf, nan

import numpy as np
import pytest

import fastece
from fastece import Binned, InputError, InputTypeError
from helpers.bad_input import CLASS_TRUE, PROB, ROWS, TRUE, WEIGHT, classes, ece, message_of, put


def masked(array):
    return np.ma.MaskedArray(array, np.arange(len(array)) == 3)


def sparse(array):
    from scipy.sparse import csr_matrix

    return csr_matrix(array)


HUGE = np.longdouble("1e4000")
NO_SHAPE = "y_true: must have shape (n,) or (n, 1), got"
NOT_REAL = "must be real numbers, got dtype"
OUTSIDE = "y_prob: probabilities must lie in [0, 1] (tolerance 1e-06)"
N_BINS = 'n_bins: must be an integer or "sqrt"'
SETTING = "setting: must be a known name, got"
SWAPPED = "y_true looks like probabilities and y_prob like labels: are they swapped?"
ONE_HOT = "it looks one-hot: pass its argmax(axis=1)"
FIRST = "y_true comes first"
HUNDRED = "percentages: percent=True"

# Options of a call on binary data, most with a second bad entry, which must not be the one named.
BINARY = [
    # weights
    ({"sample_weight": put(WEIGHT.astype("g"), (3, HUGE))}, "finite; sample_weight[3] is inf"),
    ({"sample_weight": put(WEIGHT, (2, nan), (5, inf))}, "must be finite; sample_weight[2] is nan"),
    ({"sample_weight": put(WEIGHT, (3, -0.5), (5, -2.0))}, "negative; sample_weight[3] is -0.5"),
    ({"sample_weight": WEIGHT[:3]}, "must have shape (8,) as y_prob has rows, got (3,)"),
    ({"sample_weight": np.ones((8, 2))}, "must have shape (8,) as y_prob has rows, got (8, 2)"),
    ({"sample_weight": 2.0}, "sample_weight: must be an array, no float, got 2.0"),
    ({"sample_weight": np.zeros(8)}, "sample_weight: must not all be 0"),
    ({"sample_weight": ["1"] * 8}, f"{NOT_REAL} <U1; sample_weight[0] is '1'"),
    ({"sample_weight": WEIGHT + 0j}, f"{NOT_REAL} complex128; sample_weight[0] is (1+0j)"),
    ({"sample_weight": masked(WEIGHT)}, "sample_weight: masked entries are refused"),
    # containers
    ({"true": [], "prob": []}, "y_prob: is empty, shape (0,)"),
    ({"true": 1, "prob": 0.5}, "y_prob: must be an array, no float, got 0.5"),
    ({"prob": [[0.5, 0.5], [1.0]] * 4}, "y_prob: cannot be read as a numeric array: "),
    ({"prob": PROB + 0j}, f"{NOT_REAL} complex128; y_prob[0] is (0.25+0j)"),
    ({"prob": ["0.5"] * 8}, f"{NOT_REAL} <U3; y_prob[0] is '0.5'"),
    ({"prob": np.array([b"0.5"] * 8)}, f"{NOT_REAL} |S3; y_prob[0] is b'0.5'"),
    ({"prob": "0.5"}, "y_prob: must be an array, no str, got '0.5'"),
    ({"prob": None}, "y_prob: must be an array, no NoneType, got None"),
    ({"true": None}, "y_true: must be an array, no NoneType, got None"),
    ({"prob": [0.5, None] * 4}, f"{NOT_REAL} object; y_prob[1] is None"),
    ({"prob": np.arange(8).astype("m8[s]")}, f"y_prob: {NOT_REAL} timedelta64[s]"),
    ({"prob": dict(enumerate(PROB))}, "y_prob: must be an array, no dict, got {0: np.float64("),
    ({"prob": set(PROB)}, "y_prob: must be an array, no set, got {"),
    ({"prob": (p for p in PROB)}, "y_prob: must be an array, no generator, got <generator"),
    ({"prob": np.zeros(8, [("a", float)])}, f"{NOT_REAL} [('a', '<f8')]; y_prob[0] is (0.0,)"),
    ({"prob": masked(PROB)}, "y_prob: masked entries are refused; y_prob[3] is masked; drop"),
    ({"true": masked(TRUE)}, "y_true: masked entries are refused; y_true[3] is masked; drop"),
    ({"true": sparse(TRUE[:, None])}, "y_true: sparse containers are refused; pass .toarray()"),
    # probabilities
    ({"prob": put(PROB, (3, nan), (6, inf))}, "y_prob: must be finite; y_prob[3] is nan"),
    ({"prob": put(PROB, (2, inf), (5, nan))}, "y_prob: must be finite; y_prob[2] is inf"),
    ({"prob": put(PROB, (2, -inf))}, "y_prob: must be finite; y_prob[2] is -inf"),
    ({"prob": put(PROB, (0, nan))}, "y_prob: must be finite; y_prob[0] is nan"),
    ({"prob": put(PROB, (7, nan))}, "y_prob: must be finite; y_prob[7] is nan"),
    ({"prob": put(PROB, (3, nan)).astype("f4")}, "y_prob: must be finite; y_prob[3] is nan"),
    ({"prob": put(PROB, (3, nan)).astype("f2")}, "y_prob: must be finite; y_prob[3] is nan"),
    ({"prob": put(PROB, (3, 1.5), (6, 2.5))}, f"{OUTSIDE}; y_prob[3] is 1.5"),
    ({"prob": put(PROB, (3, 1.5)).astype("f4")}, f"{OUTSIDE}; y_prob[3] is 1.5"),
    ({"prob": put(PROB, (3, -0.25), (6, 7))}, f"{OUTSIDE}; y_prob[3] is -0.25; logits: from_log"),
    ({"prob": put(PROB, (3, 1.00001))}, f"{OUTSIDE}; y_prob[3] is 1.00001"),
    ({"prob": put(PROB, (3, -2e-6))}, f"{OUTSIDE}; y_prob[3] is -2e-06"),
    ({"prob": 100 * PROB}, f"{OUTSIDE}; y_prob[0] is 25.0; {HUNDRED}"),
    ({"prob": np.round(100 * PROB)}, f"looks like labels: {FIRST}, or {HUNDRED}"),
    ({"prob": np.arange(8)}, f"{OUTSIDE}; y_prob[2] is 2; it looks like labels: {FIRST}"),
    ({"prob": 9 * PROB - 4}, "logits: from_logits=True"),
    ({"prob": 1.5 * PROB}, f"{OUTSIDE}; y_prob[1] is 1.125"),
    ({"prob": PROB[:, None]}, "shape (8, 1), is neither P(positive) nor a class vector; pass y_p"),
    # logits
    ({"prob": put(PROB, (3, nan)), "from_logits": True}, "finite or -inf; y_prob[3] is nan"),
    ({"prob": put(PROB, (3, inf)), "from_logits": True}, "finite or -inf; y_prob[3] is inf"),
    ({"prob": put(PROB.astype("g"), (3, HUGE)), "from_logits": True}, "y_prob[3] is inf"),
    # labels
    ({"true": put(TRUE, (4, nan), (6, nan))}, "y_true: must be finite; y_true[4] is nan"),
    ({"true": put(TRUE, (4, 2), (6, 3))}, "y_true: labels must be from 0 to 1; y_true[4] is 2;"),
    ({"true": put(TRUE, (3, -1))}, "labels must be from 0 to 1; y_true[3] is -1; labels= names"),
    ({"true": put(TRUE, (4, 2)), "setting": "confidence"}, "from 0 to 1; y_true[4] is 2"),
    ({"true": TRUE + 1j}, "must be integers, bools or strings, got dtype complex128; y_true[0] is"),
    ({"true": [None] * 8}, "y_true: must not be missing or blank; y_true[0] is None"),
    ({"true": np.arange(8).astype("M8[D]")}, "or strings, got dtype datetime64[D]; y_true[0] is"),
    ({"true": TRUE[:7]}, "y_true: has 7 rows, but y_prob has 8"),
    ({"true": TRUE[:, None, None]}, f"{NO_SHAPE} (8, 1, 1)"),
    ({"true": PROB, "prob": TRUE}, f"must be whole numbers; y_true[0] is 0.25; {SWAPPED}"),
    ({"true": PROB, "prob": TRUE.astype(float)}, f"numbers; y_true[0] is 0.25; {SWAPPED}"),
    ({"labels": [0, 1, 2]}, "labels: must name 2 classes, got 3: [0, 1, 2]"),
    ({"true": [*"azbababa"], "labels": ["a", "b"]}, "the labels 'a', 'b'; y_true[1] is 'z'"),
    ({"true": [0, set(), *"000000"], "labels": [0, 1]}, "y_true: labels must be hashable: "),
    ({"true": ["no", "yes"] * 4}, "y_true[0] is 'no'; pass pos_label=, or labels= with"),
    ({"true": ["churn", "stay"] * 4, "pos_label": "chrun"},
     "positive label 'chrun' or one other, such as 'churn'; y_true[1] is 'stay'"),
    ({"true": [1, 2, 3, *[1] * 5], "pos_label": 3}, "or one other, such as 1; y_true[1] is 2"),
    ({"true": ["a", "b"] * 4, "pos_label": "a", "labels": ["a", "b"]},
     "pos_label: must be class 1, 'b', got 'a'"),
    # options
    ({"n_bins": 0}, f"{N_BINS} from 1 to 16777216, got 0"),
    *[({"n_bins": bad}, f"{N_BINS}, got {bad!r}") for bad in (2.5, True, nan, "scott", None)],
    ({"n_bins": np.array([5, 6])}, f"{N_BINS}, got array([5, 6])"),
    *[({"norm": bad}, f"norm: must be a number from 1 to inf, got {bad}") for bad in (0.5, nan)],
    ({"norm": -inf}, "norm: must be a number from 1 to inf, got -inf"),
    ({"norm": 10**400}, "norm: must be a number from 1 to inf, got 1000"),
    *[({"norm": bad}, f"norm: must be a number, got {bad!r}") for bad in ("l1", True)],
    ({"edges": "equal"}, "edges: must be a known name, got 'equal'; known: 'uniform', 'quantile'"),
    ({"mapping": "soft"}, "mapping: must be a known name, got 'soft'; known: 'hard', 'convex'"),
    ({"closed": "both"}, "closed: must be a known name, got 'both'; known: 'right', 'left'"),
    ({"mapping": "convex", "closed": "left"}, "closed: must be 'right' with mapping='convex'"),
    ({"estimator": Binned(closed="left"), "mapping": "convex"}, "closed: must be 'right' with"),
    ({"score_range": "all"}, "score_range: must be a known name, got 'all'; known: 'unit', 'supp"),
    ({"score_range": (0.75, 0.25)}, "score_range: low must be less than high, got (0.75, 0.25)"),
    ({"score_range": (0.5, 0.5)}, "score_range: low must be less than high, got (0.5, 0.5)"),
    ({"score_range": (nan, 1.0)}, "score_range: must be a number from 0 to 1, got nan"),
    *[({"score_range": bad}, "score_range: must be a pair (low") for bad in ((0.5,), [0, 1])],
    ({"min_count": 3}, "min_count: goes with norm=inf only, not 1.0, got 3.0"),
    ({"min_count": 3, "norm": 2}, "min_count: goes with norm=inf only, not 2.0, got 3.0"),
    ({"min_count": nan, "norm": inf}, "min_count: must be a number from 0 to inf, got nan"),
    ({"bin_weights": "same"}, "bin_weights: must be a known name, got 'same'; known: 'mass', 'eq"),
    ({"threshold": "low"}, "threshold: must be a number, got 'low'"),
    ({"threshold": nan}, "threshold: must be a number from -inf to inf, got nan"),
    ({"estimator": "ece_x"}, "estimator: must be a known name, got 'ece_x'; known: 'ece', 'ece_a'"),
    ({"estimator": 3}, "be a name or an object with prepare and evaluate, got 3; known: 'ece'"),
    ({"setting": "multi"}, f"{SETTING} 'multi'; known: 'auto', 'binary', 'confidence'"),
    *[({"setting": bad}, f"{SETTING} {bad!r}") for bad in (True, None, "top")],
    ({"setting": -1}, "setting: must be a class index from 0 to 1, got -1"),
    ({"setting": 2}, "setting: must be a class index from 0 to 1, got 2"),
    ({"bins": 10}, "bins: is not a parameter of the estimator Binned, nor an option of ece; perha"),
    ({"from_logits": "no"}, "from_logits: must be True or False, got 'no'"),
    ({"n_jobs": 0}, "n_jobs: must be a positive number of threads, or -1 for all, got 0"),
    ({"n_jobs": 1.5}, "n_jobs: must be an integer, got 1.5"),
    ({"average": np.array([1])}, "average: must be a known name, got array([1]); known: 'macro'"),
]  # fmt: skip

# The same on class vectors.
CLASSES = [
    ({"true": [], "prob": np.empty((0, 3))}, "y_prob: is empty, shape (0, 3)"),
    ({"prob": np.empty((8, 0))}, "y_prob: is empty, shape (8, 0)"),
    ({"prob": ROWS[None]}, "y_prob: must have 1 or 2 dimensions, got shape (1, 8, 3)"),
    ({"prob": sparse(ROWS)}, "y_prob: sparse containers are refused; pass .toarray()"),
    ({"prob": put(ROWS, ((4, 1), nan), ((6, 0), nan))}, "must be finite; y_prob[4, 1] is nan"),
    ({"prob": put(ROWS, ((4, 1), nan)), "sample_weight": put(WEIGHT, (4, 0.0))},
     "y_prob: must be finite; y_prob[4, 1] is nan"),
    ({"prob": put(ROWS, ((3, 2), 1.5), ((5, 0), -1))}, f"{OUTSIDE}; y_prob[3, 2] is 1.5; logits"),
    ({"prob": 100 * ROWS}, HUNDRED),
    ({"prob": 8 * ROWS - 4}, "logits: from_logits=True"),
    ({"prob": 8 * ROWS}, "logits: from_logits=True"),
    ({"prob": put(ROWS, ((2, 1), inf)), "from_logits": True}, "or -inf; y_prob[2, 1] is inf"),
    ({"prob": put(ROWS, (5, -inf)), "from_logits": True}, "all -inf; y_prob[5, 0] is -inf"),
    ({"true": put(CLASS_TRUE, (4, inf))}, "y_true: must be finite; y_true[4] is inf"),
    *[({"true": put(CLASS_TRUE, (5, bad), (7, 9))},
       f"y_true: labels must be from 0 to 2; y_true[5] is {bad}; labels= names other classes")
      for bad in (3, -1, 2**40, 1e300)],
    ({"true": put(CLASS_TRUE.astype("u8"), (5, np.uint64(2**64 - 1)))}, f"[5] is {2**64 - 1}"),
    ({"true": [*range(3), 10**30, 0, 0, 0, 0]}, "labels must be from 0 to 2; y_true[3] is 1e+30"),
    ({"true": put(CLASS_TRUE, (4, 1.5), (6, 0.5))}, "must be whole numbers; y_true[4] is 1.5"),
    ({"prob": ROWS[:5]}, "y_true: has 8 rows, but y_prob has 5"),
    *[({"true": y}, f"{NO_SHAPE} (8, 3); {ONE_HOT}") for y in (np.eye(3)[CLASS_TRUE],
                                                              np.eye(3)[CLASS_TRUE] > 0)],
    ({"true": ROWS, "prob": CLASS_TRUE}, f"{NO_SHAPE} (8, 3); {SWAPPED}"),
    *[({"true": np.array([*"abc", bad, *"abca"], object), "labels": [*"abc"]},
       f"y_true: must be among the labels 'a', 'b', 'c'; y_true[3] is {bad!r}")
      for bad in ("d", nan, None)],
    ({"true": put(CLASS_TRUE, (4, 7)), "labels": [0, 1, 2]}, "labels 0, 1, 2; y_true[4] is 7"),
    ({"labels": [0, 1]}, "labels: must name 3 classes, got 2: [0, 1]"),
    ({"labels": [0, 1, 1]}, "labels: must be distinct; labels[2] is 1"),
    ({"true": ["a", "b"] * 4}, "which of the 3 columns of y_prob each label stands for is unk"),
    ({"true": [*"abcdabcd"]}, "unknown, found 'a', 'b', 'c', 'd'; y_true[0] is 'a'; pass labels="),
    ({"true": ["", "b", "c", *"abcab"]}, "missing or blank; y_true[0] is ''"),
    ({"true": ["a", None, "b", *"abcab"]}, "missing or blank; y_true[1] is None"),
    ({"pos_label": 1}, "pos_label: needs P(positive) or 2 columns, y_prob has 3"),
    ({"setting": "binary"}, "setting: 'binary' needs P(positive) or 2 columns, and here are 3"),
    ({"setting": 1.0}, f"{SETTING} 1.0"),
    ({"setting": 3}, "setting: must be a class index from 0 to 2, got 3"),
    ({"setting": "classwise", "average": "micro"}, "average: must be a known name, got 'micro'"),
]  # fmt: skip


# Counts of rows, and of their events.
COUNTED = [
    ({"counts": [1, 2]}, "counts: must have shape (3,)"),
    ({"counts": [1, 0, 2]}, "counts: must be at least 1; counts[1] is 0; leave such rows out"),
    ({"counts": [1, -1, 2]}, "counts: must be at least 1; counts[1] is -1"),
    ({"counts": [1, 1.5, 2]}, "counts: must be whole numbers; counts[1] is 1.5; weights go to sam"),
    ({"counts": [1, nan, 2]}, "counts: must be finite"),
    ({"counts": [2.0**53, 2.0**53, 1]}, "counts: must add up to at most"),
    ({"soft": True}, "counts: goes without soft=True and votes="),
    ({"votes": [2, 2, 2]}, "counts: goes without soft=True and votes="),
    ({"y": [3, 1, 1]}, "y_true: must not exceed counts=, which is 2 there; y_true[0] is 3"),
    ({"y": [2, 0.5, 1]}, "y_true: must be whole numbers; y_true[1] is 0.5"),
    ({"y": [2, -1, 1]}, "y_true: must not be negative; y_true[1] is -1"),
    ({"y": [[1, 1], [1, 1], [0, 1]]}, "y_true: must add up to counts= in each row, and row 2 has"),
    ({"y": [[1, 1, 0]] * 3}, "y_true: must have shape (3, 2) as counts of classes"),
    ({"y": [1, 2, 2], "p": [0.2, 0.6, 1.5]}, "y_prob[2] is 1.5"),
]

# Soft labels and votes; P3 are two class vectors.
S3 = [0.2, 0.7, 0.4]
P3 = [[0.2, 0.3, 0.5], [0.1, 0.2, 0.7]]
SHARE = "lie in [0, 1]; y_true"
SOFT = [
    (([0.1, 1.2, 0.3], S3), {"soft": True}, f"{SHARE}[1] is 1.2"),
    (([0.1, 0.2, -0.3], S3), {"soft": True}, f"{SHARE}[2] is -0.3"),
    (([0.1, nan, 0.3], S3), {"soft": True}, f"{SHARE}[1] is nan"),
    (([0.1, 0.2], S3), {"soft": True}, "soft labels must have shape (3,) or (3, 2), got (2,)"),
    (([0.1, 0.2], P3), {"soft": True}, "soft labels must have shape (2, 3), got (2,)"),
    ((np.zeros((3, 3)), S3), {"soft": True}, "got (3, 3)"),
    (([[0.5, 0.5, 0], [0.5, 0.4, 0]], P3), {"soft": True}, "sum to 1"),
    (([1, 2, 0], S3), {"votes": [2, 1, 1]}, "numbers of votes"),
    (([1, -1, 0], S3), {"votes": [2, 1, 1]}, "numbers of votes"),
    (([1, 0.5, 0], S3), {"votes": [2, 1, 1]}, "y_true: must be whole numbers"),
    (([[1, 1, 0], [1, 1, 1]], P3), {"votes": [2, 2]}, "votes= in all"),
    (([1, 0, 0], S3), {"votes": [1, 1.5, 1]}, "whole numbers"),
    (([1, 0, 0], S3), {"votes": [1, -1, 1]}, "votes: must not be negative; votes[1] is -1"),
    (([0, 0, 0], S3), {"votes": [0, 0, 0]}, "votes: must not all be 0"),
    (([1, 0, 0], S3), {"votes": [1, 1]}, "votes: must have shape (3,)"),
    (([1, 0, 0], S3), {"votes": 3}, "votes: must be an array, no int"),
    (([1, 0, 0], S3), {"soft": "yes"}, "soft: must be True or False"),
    (([1, 0, 0], [0.2, 1.3, 0.4]), {"soft": True}, "y_prob: probabilities must lie in [0, 1]"),
    (([1, 0.5, 0], [0.2, 1.3, 0.4]), {"soft": True}, "y_prob[1] is 1.3"),
    (([1, 0, 0], S3), {"soft": True, "labels": ["a", "b"]}, "labels: names hard labels"),
    (([1, 0, 0], S3), {"soft": True, "pos_label": 1}, "labels: names hard labels"),
    (([1, 0, 0], S3), {"soft": True, "sample_weight": [1, 0]}, "sample_weight: must have shape"),
    (
        ([1, 0, 0], S3),
        {"soft": True, "ignore_label": 1},
        "ignore_label: goes with hard labels, not",
    ),
    (([0, 0.5, 1], S3), {}, "y_true[1] is 0.5; shares of votes: soft=True, or it"),
]

# Pixels: labels (2, 2, 3) and class vectors on axis 1.
GRID = np.arange(12).reshape(2, 2, 3) % 4
PIXELS = np.full((2, 4, 2, 3), 0.25)
IMAGES = [
    ((GRID, PIXELS), {}, "for classes on axis 1 pass class_axis=1"),
    ((GRID, put(PIXELS, ((1, 3, 0, 2), nan))), {"class_axis": 1}, "y_prob[1, 3, 0, 2] is nan"),
    ((put(GRID, ((1, 0, 2), 7)), PIXELS), {"class_axis": 1}, "y_true[1, 0, 2] is 7"),
    (
        (GRID[:, 0], PIXELS),
        {"class_axis": 1},
        "y_true: must have shape (2, 2, 3) with class_axis=, as y_prob has",
    ),
    (
        (GRID, PIXELS),
        {"class_axis": 1, "sample_weight": np.ones(2)},
        "sample_weight: must have shape (2, 2, 3)",
    ),
    (
        (GRID, PIXELS),
        {"class_axis": 4},
        "class_axis: must be an axis of y_prob from -4 to 3, got 4",
    ),
    ((GRID, PIXELS), {"class_axis": True}, "class_axis: must be an axis of y_prob, got True"),
    ((TRUE, PROB), {"class_axis": 1}, "y_prob: must have at least 2 dimensions with class_axis="),
    ((GRID, PIXELS), {"class_axis": 1, "soft": True}, "class_axis: goes without soft=True and vot"),
    (
        (GRID, PIXELS),
        {"class_axis": 1, "votes": GRID},
        "class_axis: goes without soft=True and vot",
    ),
    ((GRID[:1] % 2, PIXELS[:1, :1]), {}, "for classes on axis 1 pass class_axis=1"),
    ((GRID % 2, PIXELS[:, 0]), {}, "pass np.ravel(y_true) and np.ravel(y_prob)"),
]

# Several yes/no tasks.
YES = np.array([[0.0, 1.0, nan], [1.0, nan, 1.0], [1.0, 0.0, 0.0]])
TASKS = np.full((3, 3), 0.5)
OF_TASKS = {"setting": "tasks"}
SEVERAL = [
    ((YES[:, :2], TASKS), OF_TASKS, "y_true: must have the shape (n, T) of y_prob"),
    ((YES[:, 0], TASKS), OF_TASKS, "y_true: must have the shape (n, T) of y_prob"),
    ((YES[:, 0], TASKS[:, 0]), OF_TASKS, "setting: 'tasks' needs y_prob of shape (n, T)"),
    ((np.where(np.arange(3) == 1, nan, YES), TASKS), OF_TASKS, "y_true: has no label of task 1"),
    ((2 * YES, TASKS), OF_TASKS, "y_true: labels must be from 0 to 1"),
    ((YES[:, :0], TASKS[:, :0]), OF_TASKS, "y_true: must have a column for each task"),
    ((YES, put(TASKS, ((2, 2), 1.5))), OF_TASKS, "y_prob[2, 2] is 1.5"),
    ((YES, TASKS), OF_TASKS | {"sample_weight": [1, 0, 0]},
     "sample_weight: must not all be 0 where task 2 has a label"),
    ((YES, TASKS), {}, "for several yes/no tasks: setting='tasks'"),
    ((np.nan_to_num(YES).astype(int), TASKS), {}, "for several yes/no tasks: setting='tasks'"),
    *[((YES, [TASKS[:, :2]] * 3), options, "np.stack([q[:, 1] for q in y_prob], 1) with setting='t")
      for options in ({}, OF_TASKS)],
]  # fmt: skip

# Percents, and units that the data prove.
HITS = np.arange(40) % 2
UNITS = [
    ((HITS, np.arange(40) + 40), {}, "y_true comes first, or percentages: percent=True"),
    ((HITS, np.arange(40) / 2 + 5.25), {}, "percentages: percent=True; decimal odds: 1 / odds"),
    (([0, 1], ["50%", "high"]), {"percent": True}, "must be percents; y_prob[1] is 'high'"),
    (
        ([0, 1], [50, 20]),
        {"percent": True, "from_logits": True},
        "percent: goes without from_logits",
    ),
    (([0, 1], [0.2, nan]), {}, "keep = ~np.isnan(y_prob), then pass y_true[keep] and y_prob[keep]"),
    (([0, 1], [[0.2, 0.8], [nan, 0.5]]), {}, "keep = ~np.isnan(y_prob).any(1)"),
    (
        ([0, 255, 1], S3),
        {},
        "from 0 to 1; y_true[1] is 255; labels= names other classes, or ignore",
    ),
    (([255, 255, 255], S3), {"ignore_label": 255}, "has no label other than 255, which is ignored"),
]

# Right or wrong beside confidences, of which some would be folded.
RIGHT = (
    "y_prob: must be at least 0.5 in this setting, as y_true says right or wrong; y_prob[2] is 0.3"
)
SURE = [0.9, 0.6, 0.3, 0.1]
ANSWERED = [
    (([True, False, True, False], SURE), {}, f"{RIGHT}; leave setting= out"),
    ((np.array([1, 0, 1, 0], bool), ["90%", "60%", "30%", "10%"]), {"percent": True}, RIGHT),
    ((["right", "wrong"] * 2, SURE), {"pos_label": "right"}, RIGHT),
    ((["Correct", "incorrect", None, "correct"], SURE), {"pos_label": "Correct"}, RIGHT),
    (([True, False, True, False], [2.0, 1.0, -1.0, -2.0]), {"from_logits": True},
     "y_prob: must be at least 0 in this setting, as y_true says right or wrong; y_prob[2] is -1"),
]  # fmt: skip
TOP = [(data, {"setting": name} | options, message) for data, options, message in ANSWERED
       for name in ("confidence", "top-label")]  # fmt: skip


def counted(y=(0, 1, 1), p=(0.2, 0.6, 0.9), **options):
    return fastece.ece(list(y), list(p), **{"counts": [2, 2, 2]} | options)


# Calls of ece by their table, each with words of its refusal.
CALLS = {
    "binary": [(partial(ece, **options), words) for options, words in BINARY],
    "classes": [(partial(classes, **options), words) for options, words in CLASSES],
    "counts": [(partial(counted, **options), words) for options, words in COUNTED],
    **{
        name: [(partial(fastece.ece, *data, **options), words) for data, options, words in rows]
        for name, rows in (
            ("soft labels", SOFT), ("images", IMAGES), ("tasks", SEVERAL), ("units", UNITS),
            ("top labels", TOP),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("table", CALLS)
def test_bad_input_is_named_by_argument_rule_index_and_value(table):
    rows = CALLS[table]
    wrong = {}
    for k, (call, words) in enumerate(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((InputError, InputTypeError)) as caught:
                call()
        message = str(caught.value)
        if words not in message or not message.startswith(f"{caught.value.argument}: "):
            wrong[k, words] = message
    assert not wrong


@pytest.mark.parametrize("prob", [100 * PROB, 100 * ROWS])
def test_percentages_are_not_taken_for_logits(prob):
    true = TRUE if prob.ndim == 1 else CLASS_TRUE
    assert "from_logits" not in message_of(lambda: fastece.ece(true, prob))


FUNCTIONS = ["ece", "mce", "sce", "ace", "tace", "reliability_diagram"]
EVERYWHERE = [
    (TRUE, put(PROB, (3, nan)), {}, "y_prob[3] is nan"),
    (put(TRUE, (4, 2)), PROB, {}, "y_true[4] is 2"),
    (TRUE, PROB, {"sample_weight": -WEIGHT}, "sample_weight[0] is -1.0"),
    (CLASS_TRUE, put(ROWS, ((4, 1), nan)), {}, "y_prob[4, 1] is nan"),
    (TRUE, PROB[:, None], {}, "y_prob: one column"),
    (TRUE, PROB, {"n_bins": 0}, "n_bins: must be an integer"),
    (TRUE, PROB, {"nbins": 3}, "nbins: is not a parameter"),
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_refuses_the_same_data(name):
    function = getattr(fastece, name)
    for true, prob, options, message in EVERYWHERE:
        assert message in message_of(lambda: function(true, prob, **options))  # noqa: B023
    with pytest.raises(TypeError):
        function(CLASS_TRUE, ROWS, "ece")  # all but the data is by keyword


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("sce", {"setting": "binary"}, "setting: is 'classwise' in sce, got 'binary'; ece takes"),
        ("mce", {"norm": 2}, "norm: is inf in mce, got 2; ece takes any"),
        ("ace", {"estimator": "ece"}, "estimator: is 'ece_a' in ace, got 'ece'; ece takes any"),
    ],
)  # fmt: skip
def test_options_that_a_function_sets_are_refused(name, options, message):
    assert message in message_of(lambda: getattr(fastece, name)(TRUE, PROB, **options))


def test_the_objects_refuse_what_the_functions_refuse():
    for field, bad in (("n_bins", 0), ("norm", 0.5), ("edges", "equal"), ("mapping", "soft")):
        assert message_of(lambda: Binned(**{field: bad})).startswith(field)  # noqa: B023
