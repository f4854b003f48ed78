"""`fastece.compat.torchmetrics` computes what torchmetrics does."""

import copy
import pickle

import numpy as np
import pytest

from fastece.compat import torchmetrics as compat
from helpers.compat_cases import (
    FEW,
    SEEDS,
    binary_case,
    class_case,
    library,
    near,
    quietly,
    tolerance,
    until,
)
from oracles import reference_compat as reference

NORMS = ("l1", "l2", "max")
SHAPES = pytest.mark.parametrize("case", [binary_case, class_case])


@pytest.fixture
def torch():
    library("torchmetrics")
    return library("torch")


def away_from_edges(scores, n_bins, kind):
    """Is every score so far from an edge that the last digits of exp() do not matter?"""
    edges = np.array(reference.torch_edges(n_bins, kind)[1:-1])
    s = np.array(scores)[:, None]
    return not (np.any(np.abs(s - edges) < 2e-6) or np.any((s < 1) & (s > 1 - 2e-6)))


def same_bins(torch, scores, n_bins, kind):
    """Do torch's edges, here, put every score where those of the formula do?

    On processors that round a product before it is added to, some are the floats beside those.
    """
    dtype = {np.float32: torch.float32, np.float64: torch.float64}[kind]
    edges = torch.linspace(0, 1, n_bins + 1, dtype=dtype).double().numpy()
    formula = reference.torch_edges(n_bins, kind)
    there, here = (np.searchsorted(e, scores, "right") for e in (edges, formula))
    return bool((there == here).all())


def arguments(case, seed):
    """`(preds, target, n_bins, norm, ignore_index, kind, logits)`: one in six are logits."""
    rng, preds, target, n_bins, kind = case(seed)
    norm, ignore_index = str(rng.choice(NORMS)), [None, None, -1, 1][rng.integers(0, 4)]
    if ignore_index is not None:  # some labels, but not all
        target = np.where(rng.random(len(target)) < 0.3, ignore_index, target)
        if (target == ignore_index).all():
            target[0] = 0
    logits = seed % 6 == 5
    if logits:
        preds = (4 * rng.standard_normal(preds.shape)).astype(kind)
    return preds, target, n_bins, norm, ignore_index, kind, logits


def scores_and_bins(preds, target, n_bins, ignore_index, kind):
    """The scores of a case as the reference has them, the number of bins, the type of its edges."""
    if preds.ndim == 1:
        kept = [p for p, y in zip(preds.tolist(), target, strict=True) if y != ignore_index]
        return reference.torch_scores(kept, kind), n_bins, kind
    return reference.torch_top(preds.tolist(), target, ignore_index)[0], n_bins, np.float32


def defined(preds, target, n_bins, ignore_index, kind, logits):
    """Does the value of a case not depend on the last digit of exp()?"""
    case = preds, target, n_bins, ignore_index, kind
    return not logits or away_from_edges(*scores_and_bins(*case))


def comparable(torch, preds, target, n_bins, ignore_index, kind, logits):
    """Nor on how torch was compiled?"""
    case = preds, target, n_bins, ignore_index, kind
    return defined(*case, logits) and same_bins(torch, *scores_and_bins(*case))


def call(module, preds, target, *options):
    """The value of a module's function for the shape of the probabilities."""
    if preds.ndim == 1:
        return module.binary_calibration_error(preds, target, *options)
    return module.multiclass_calibration_error(preds, target, preds.shape[1], *options)


@FEW
@SHAPES
@pytest.mark.filterwarnings("ignore:.*taken for logits")
def test_value_is_the_reference(case, seeds):
    for seed in seeds:
        preds, target, n_bins, norm, ignore_index, kind, logits = arguments(case, seed)
        if not defined(preds, target, n_bins, ignore_index, kind, logits):
            continue  # exp() may differ in its last digit
        got = call(compat, preds, target, n_bins, norm, ignore_index)
        assert isinstance(got, np.float64)
        lists = preds.tolist(), target.tolist(), n_bins, norm, ignore_index
        if preds.ndim == 1:
            want, is_exact = reference.torch_binary(*lists, kind), not logits or kind is np.float64
        else:  # top scores are rounded to float32, and so is exp()
            want, is_exact = reference.torch_multiclass(*lists), not logits and kind is np.float32
        near(got, want, 1e-12 if is_exact else 1e-6 if logits else 1e-7, seed)


@SEEDS
@SHAPES
@pytest.mark.filterwarnings("ignore:.*taken for logits")
def test_value_is_the_library(torch, case, seeds):
    """Tensors in, and the value of torchmetrics out."""
    from torchmetrics.functional import classification as peer

    def compare(seed):
        preds, target, n_bins, *options, kind, logits = arguments(case, seed)
        if not comparable(torch, preds, target, n_bins, options[1], kind, logits):
            return False
        tensors = torch.from_numpy(preds), torch.from_numpy(target)
        got = call(compat, *tensors, n_bins, *options)
        want = quietly(call, peer, *tensors, n_bins, *options).item()
        near(got, want, tolerance(kind if preds.ndim == 1 else np.float32, len(target)), seed)
        return True

    until(seeds, compare)


def pieces(rng, n):
    """Cuts of n rows into up to four batches."""
    cuts = np.unique(rng.integers(0, n + 1, 3))
    return [part for part in np.split(np.arange(n), cuts) if len(part)]


def metric_of(module, preds, *options):
    """The metric of a module for the shape of the probabilities."""
    if preds.ndim == 1:
        return module.BinaryCalibrationError(*options)
    return module.MulticlassCalibrationError(preds.shape[1], *options)


@FEW
@SHAPES
def test_classes_and_tasks_are_the_functions(case, seeds):
    for seed in seeds:
        preds, target, *options, _kind, logits = arguments(case, seed)
        if logits:
            continue
        want = call(compat, preds, target, *options)
        task, k = ("binary", None) if preds.ndim == 1 else ("multiclass", preds.shape[1])
        n_bins, norm, ignore_index = options
        by_task = compat.calibration_error(preds, target, task, n_bins, norm, k, ignore_index)
        assert by_task == want, seed
        metric = metric_of(compat, preds, *options)
        for _ in range(2):
            for part in pieces(np.random.default_rng(seed), len(target)):
                value = metric(preds[part], target[part])
                if not (target[part] == ignore_index).all():
                    assert value == call(compat, preds[part], target[part], *options)
            near(metric.compute(), want, 1e-12, seed)
            metric.reset()


@SEEDS
@SHAPES
def test_classes_are_those_of_the_library(torch, case, seeds):
    """With batches of logits beside batches of probabilities, and `forward` the batch alone."""
    from torchmetrics import classification as peer

    for seed in seeds:
        preds, target, *options, kind, logits = arguments(case, seed)
        rest = options[0], options[2], kind, logits
        if not comparable(torch, preds, target, *rest):
            continue
        mine, theirs = (metric_of(module, preds, *options) for module in (compat, peer))
        atol = tolerance(kind if preds.ndim == 1 else np.float32, len(target))
        for part in pieces(np.random.default_rng(seed), len(target)):
            batch = preds[part], target[part]
            if (target[part] == options[2]).all() or not comparable(torch, *batch, *rest):
                continue
            tensors = [torch.from_numpy(a.copy()) for a in batch]
            near(mine(*batch), quietly(theirs, *tensors).item(), atol, seed)
            near(mine.compute(), quietly(theirs.compute).item(), atol, seed)


def test_further_dimensions_are_rows():
    rng = np.random.default_rng(1)
    p, y = rng.random((5, 4, 3)), rng.integers(0, 2, (5, 4, 3))
    assert compat.binary_calibration_error(p, y) == compat.binary_calibration_error(
        p.ravel(), y.ravel()
    )
    rows, labels = rng.dirichlet(np.ones(3), (5, 4)), rng.integers(0, 3, (5, 4))
    got = compat.multiclass_calibration_error(np.moveaxis(rows, -1, 1), labels, 3)
    assert got == compat.multiclass_calibration_error(rows.reshape(-1, 3), labels.ravel(), 3)


def test_class_by_task():
    assert isinstance(compat.CalibrationError("binary"), compat.BinaryCalibrationError)
    metric = compat.CalibrationError("multiclass", 5, "l2", 3, ignore_index=-1)
    assert isinstance(metric, compat.MulticlassCalibrationError)
    metric.update([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [0, -1])
    assert metric.compute() == pytest.approx(0.5)
    assert metric.forward([[0.2, 0.7, 0.1]], [1]) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="task"):
        compat.CalibrationError("multilabel")
    with pytest.raises(ValueError, match="task"):
        compat.calibration_error([0.5], [1], "multilabel")
    with pytest.raises(ValueError, match="num_classes"):
        compat.calibration_error([[0.5, 0.5]], [1], "multiclass")


def test_edges_of_torch(torch):
    """They are those of the formula, or the floats beside them in the upper half."""
    for kind, dtype in ((np.float32, torch.float32), (np.float64, torch.float64)):
        for n_bins in range(1, 201):
            formula = np.array(reference.torch_edges(n_bins, kind)).astype(kind)
            edges = torch.linspace(0, 1, n_bins + 1, dtype=dtype).numpy()
            assert (edges >= np.nextafter(formula, kind(-1))).all()
            assert (edges <= np.nextafter(formula, kind(2))).all()
            assert (edges[: (n_bins + 1) // 2] == formula[: (n_bins + 1) // 2]).all()
            # The step of a power of two is exact, so is all that is made of it.
            if n_bins & (n_bins - 1) == 0:
                assert (edges == formula).all()


def test_batches():
    """Without rows a batch adds nothing; batches of two precisions have edges of two."""
    metric = compat.BinaryCalibrationError(ignore_index=0)
    assert np.isnan(metric([0.2], [0]))
    with pytest.raises(ValueError, match="update"):
        metric.compute()
    metric.update(np.array([0.2], dtype=np.float32), [1])
    metric.update([], [])
    with pytest.raises(ValueError, match=r"preds: .*precision of batches before.*float64"):
        metric.update([0.2], [1])
    assert metric.compute() == pytest.approx(0.8)
    with pytest.raises(ValueError, match="preds"):
        compat.binary_calibration_error([0, 1], [0, 1])  # labels where scores should be
    # A logit in a row that is left out leaves the others probabilities.
    got = compat.binary_calibration_error([0.2, 0.6, 7.0], [0, 1, -1], ignore_index=-1)
    assert got == pytest.approx(0.3)


def test_a_little_above_one_makes_the_batch_logits(torch):
    """The quirk that stays, with a warning: rounding in float32 suffices for it."""
    from torchmetrics.functional.classification import multiclass_calibration_error

    p, y = np.array([[1.0000001, 0.0], [0.3, 0.7]], dtype=np.float32), np.array([0, 1])
    with pytest.warns(UserWarning, match="taken for logits"):
        got = compat.multiclass_calibration_error(p, y, 2)
    want = multiclass_calibration_error(torch.from_numpy(p), torch.from_numpy(y), 2)
    assert got == pytest.approx(want.item(), abs=1e-6)
    assert got > 0.3
    assert compat.multiclass_calibration_error(p.clip(0, 1), y, 2) == pytest.approx(0.15, abs=1e-6)
    for values in ([-1e-7, 0.5], [0.5, 1 + 1e-7]):
        with pytest.warns(UserWarning, match="taken for logits"):
            compat.binary_calibration_error(values, [0, 1])


def test_metrics_can_be_copied():
    metric = compat.MulticlassCalibrationError(2)
    metric.update([[0.2, 0.8], [0.7, 0.3]], [1, 1])
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert twin.compute() == metric.compute()
        twin.update([[0.1, 0.9]], [0])
        assert twin.compute() != metric.compute()


def test_half_precision(torch):
    """Edges and sums of half precision there, edges of float32 and sums of float64 here."""
    from torchmetrics.functional.classification import binary_calibration_error

    p, y = torch.tensor([0.2, 0.6, 0.9], dtype=torch.float16), torch.tensor([0, 1, 1])
    assert binary_calibration_error(p, y).dtype == torch.float16
    want = reference.torch_error(p.double().tolist(), y.tolist(), 15, "l1", np.float32)
    assert compat.binary_calibration_error(p, y) == pytest.approx(want, abs=1e-12)
    assert compat.binary_calibration_error(p.numpy(), y) == pytest.approx(want, abs=1e-12)
