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


def options(rng):
    """A norm, and in some cases a label of rows to leave out."""
    return str(rng.choice(NORMS)), [None, None, -1, 1][rng.integers(0, 4)]


def leave_some(rng, target, ignore_index):
    """Labels, some of which are `ignore_index`, but not all."""
    if ignore_index is None:
        return target
    target = np.where(rng.random(len(target)) < 0.3, ignore_index, target)
    if (target == ignore_index).all():
        target[0] = 0
    return target


def binary_arguments(seed):
    """`(preds, target, n_bins, norm, ignore_index, kind, loose)`: one in six are logits."""
    rng, preds, target, n_bins, kind = binary_case(seed)
    norm, ignore_index = options(rng)
    target = leave_some(rng, target, ignore_index)
    logits = seed % 6 == 5
    if logits:
        preds = (4 * rng.standard_normal(len(preds))).astype(kind)
    return preds, target, n_bins, norm, ignore_index, kind, logits


def class_arguments(seed):
    """The same for class vectors."""
    rng, preds, target, n_bins, kind = class_case(seed)
    norm, ignore_index = options(rng)
    target = leave_some(rng, target, ignore_index)
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


def expected(preds, target, n_bins, norm, ignore_index, kind):
    """What the reference says of a case."""
    if preds.ndim == 1:
        return reference.torch_binary(
            preds.tolist(), target.tolist(), n_bins, norm, ignore_index, kind
        )
    return reference.torch_multiclass(preds.tolist(), target.tolist(), n_bins, norm, ignore_index)


def defined(preds, target, n_bins, ignore_index, kind, logits):
    """Does the value of a case not depend on the last digit of exp()?"""
    if not logits:
        return True
    return away_from_edges(*scores_and_bins(preds, target, n_bins, ignore_index, kind))


def comparable(torch, preds, target, n_bins, ignore_index, kind, logits):
    """Nor on how torch was compiled?"""
    case = preds, target, n_bins, ignore_index, kind
    return defined(*case, logits) and same_bins(torch, *scores_and_bins(*case))


def ours(compat, preds, target, n_bins, norm, ignore_index):
    """The value of the functional."""
    if preds.ndim == 1:
        return compat.binary_calibration_error(preds, target, n_bins, norm, ignore_index)
    return compat.multiclass_calibration_error(
        preds, target, preds.shape[1], n_bins, norm, ignore_index
    )


def accuracy(preds, kind, logits):
    """How near to the reference: float32 of exp(), and of top scores, is a matter of rounding."""
    if logits:
        return 1e-12 if preds.ndim == 1 and kind is np.float64 else 1e-6
    return 1e-12 if preds.ndim == 1 or kind is np.float32 else 1e-7


@FEW
@pytest.mark.parametrize("arguments", [binary_arguments, class_arguments])
@pytest.mark.filterwarnings("ignore:.*taken for logits")
def test_value_is_the_reference(arguments, seeds):
    for seed in seeds:
        preds, target, n_bins, norm, ignore_index, kind, logits = arguments(seed)
        if not defined(preds, target, n_bins, ignore_index, kind, logits):
            continue  # exp() may differ in its last digit
        got = ours(compat, preds, target, n_bins, norm, ignore_index)
        assert isinstance(got, np.float64)
        want = expected(preds, target, n_bins, norm, ignore_index, kind)
        near(got, want, accuracy(preds, kind, logits), seed)


def theirs(torch, preds, target, n_bins, norm, ignore_index):
    """The value of torchmetrics."""
    from torchmetrics.functional import classification as peer

    preds, target = torch.from_numpy(preds), torch.from_numpy(target)
    if preds.ndim == 1:
        return quietly(
            peer.binary_calibration_error, preds, target, n_bins, norm, ignore_index
        ).item()
    k = preds.shape[1]
    return quietly(
        peer.multiclass_calibration_error, preds, target, k, n_bins, norm, ignore_index
    ).item()


@SEEDS
@pytest.mark.parametrize("arguments", [binary_arguments, class_arguments])
@pytest.mark.filterwarnings("ignore:.*taken for logits")
def test_value_is_the_library(torch, arguments, seeds):
    """Tensors in, and the value of torchmetrics out."""

    def compare(seed):
        preds, target, n_bins, norm, ignore_index, kind, logits = arguments(seed)
        if not comparable(torch, preds, target, n_bins, ignore_index, kind, logits):
            return False
        tensors = torch.from_numpy(preds), torch.from_numpy(target)
        got = ours(compat, *tensors, n_bins, norm, ignore_index)
        want = theirs(torch, preds, target, n_bins, norm, ignore_index)
        precise = kind if preds.ndim == 1 else np.float32
        near(got, want, tolerance(precise, len(target)), seed)
        return True

    until(seeds, compare)


@FEW
def test_calibration_error_takes_the_task(seeds):
    for seed in seeds:
        preds, target, n_bins, norm, ignore_index, *_, logits = binary_arguments(seed)
        if logits:
            continue
        got = compat.calibration_error(preds, target, "binary", n_bins, norm, None, ignore_index)
        assert got == ours(compat, preds, target, n_bins, norm, ignore_index), seed
        preds, target, n_bins, norm, ignore_index, *_, logits = class_arguments(seed)
        k = preds.shape[1]
        got = compat.calibration_error(preds, target, "multiclass", n_bins, norm, k, ignore_index)
        assert got == ours(compat, preds, target, n_bins, norm, ignore_index), seed


def pieces(rng, n):
    """Cuts of n rows into up to four batches."""
    cuts = np.unique(rng.integers(0, n + 1, 3))
    return [part for part in np.split(np.arange(n), cuts) if len(part)]


@FEW
@pytest.mark.parametrize("arguments", [binary_arguments, class_arguments])
def test_classes_add_up_batches(arguments, seeds):
    for seed in seeds:
        preds, target, n_bins, norm, ignore_index, _kind, logits = arguments(seed)
        if logits:
            continue
        if preds.ndim == 1:
            metric = compat.BinaryCalibrationError(n_bins, norm, ignore_index)
        else:
            metric = compat.MulticlassCalibrationError(preds.shape[1], n_bins, norm, ignore_index)
        want = ours(compat, preds, target, n_bins, norm, ignore_index)
        for _ in range(2):
            for part in pieces(np.random.default_rng(seed), len(target)):
                if (target[part] == ignore_index).all():
                    metric.update(preds[part], target[part])
                else:
                    value = metric(preds[part], target[part])
                    assert value == ours(
                        compat, preds[part], target[part], n_bins, norm, ignore_index
                    )
            near(metric.compute(), want, 1e-12, seed)
            metric.reset()


@SEEDS
@pytest.mark.parametrize("arguments", [binary_arguments, class_arguments])
def test_classes_are_those_of_the_library(torch, arguments, seeds):
    """With batches of logits beside batches of probabilities, and `forward` the batch alone."""
    from torchmetrics import classification as peer

    for seed in seeds:
        preds, target, n_bins, norm, ignore_index, kind, logits = arguments(seed)
        if not comparable(torch, preds, target, n_bins, ignore_index, kind, logits):
            continue
        if preds.ndim == 1:
            names, first = "BinaryCalibrationError", ()
        else:
            names, first = "MulticlassCalibrationError", (preds.shape[1],)
        metrics = [getattr(m, names)(*first, n_bins, norm, ignore_index) for m in (compat, peer)]
        atol = tolerance(kind if preds.ndim == 1 else np.float32, len(target))
        for part in pieces(np.random.default_rng(seed), len(target)):
            batch = preds[part], target[part]
            if (target[part] == ignore_index).all() or not comparable(
                torch, *batch, n_bins, ignore_index, kind, logits
            ):
                continue
            tensors = [torch.from_numpy(a.copy()) for a in batch]
            near(metrics[0](*batch), quietly(metrics[1], *tensors).item(), atol, seed)
            near(metrics[0].compute(), quietly(metrics[1].compute).item(), atol, seed)


def test_further_dimensions_are_rows():
    rng = np.random.default_rng(1)
    p, y = rng.random((5, 4, 3)), rng.integers(0, 2, (5, 4, 3))
    assert compat.binary_calibration_error(p, y) == compat.binary_calibration_error(
        p.ravel(), y.ravel()
    )
    rows, labels = rng.dirichlet(np.ones(3), (5, 4)), rng.integers(0, 3, (5, 4))
    got = compat.multiclass_calibration_error(np.moveaxis(rows, -1, 1), labels, 3)
    assert got == compat.multiclass_calibration_error(rows.reshape(-1, 3), labels.ravel(), 3)


def test_further_dimensions_are_those_of_the_library(torch):
    from torchmetrics.functional.classification import multiclass_calibration_error

    rng = np.random.default_rng(1)
    rows, labels = rng.dirichlet(np.ones(3), (5, 4)), rng.integers(0, 3, (5, 4))
    tensors = torch.from_numpy(np.moveaxis(rows, -1, 1).copy()), torch.from_numpy(labels)
    want = multiclass_calibration_error(*tensors, 3).item()
    near(compat.multiclass_calibration_error(*tensors, 3), want, 1e-5, 1)


def test_many_rows_of_float32(torch):
    """Sums of float32 are off in the fourth digit there."""
    rng = np.random.default_rng(13)
    rows = torch.softmax(2 * torch.from_numpy(rng.standard_normal((100_000, 4))), 1).float()
    target = torch.from_numpy(rng.integers(0, 4, 100_000))
    from torchmetrics.functional.classification import multiclass_calibration_error

    want = multiclass_calibration_error(rows, target, 4).item()
    got = compat.multiclass_calibration_error(rows, target, 4)
    assert got == pytest.approx(want, abs=tolerance(np.float32, 100_000))
    again = compat.multiclass_calibration_error(rows, target, 4, validate_args=False)
    assert again == got


def test_numbers_of_the_documentation():
    preds, target = [0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1]
    values = [compat.binary_calibration_error(preds, target, 2, norm) for norm in NORMS]
    assert values == pytest.approx([0.29, 0.29183328, 0.31666667], abs=1e-8)
    rows = [[0.25, 0.20, 0.55], [0.55, 0.05, 0.40], [0.10, 0.30, 0.60], [0.90, 0.05, 0.05]]
    values = [compat.multiclass_calibration_error(rows, [0, 1, 2, 0], 3, 3, norm) for norm in NORMS]
    assert values == pytest.approx([0.2, 0.20816660, 0.23333333], abs=1e-7)


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


# -- where ours departs: what torchmetrics does is asserted too, so that a change is noticed -------


def test_score_one_has_a_bin_of_its_own(torch):
    """The quirk that stays: 0.95 and 1 are not in one bin of ten."""
    from torchmetrics.functional.classification import binary_calibration_error

    p, y = [0.95, 1.0], [1, 0]
    assert compat.binary_calibration_error(p, y, 10) == pytest.approx(0.525, abs=1e-12)
    assert binary_calibration_error(torch.tensor(p), torch.tensor(y), 10) == pytest.approx(0.525)


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


def test_rows_left_out_are_not_looked_at(torch):
    """A logit in a row of `ignore_index` leaves the others probabilities."""
    from torchmetrics.functional.classification import binary_calibration_error

    p, y = [0.2, 0.6, 7.0], [0, 1, -1]
    assert compat.binary_calibration_error(p, y, ignore_index=-1) == pytest.approx(0.3)
    got = binary_calibration_error(torch.tensor(p), torch.tensor(y), ignore_index=-1)
    assert got.item() == pytest.approx(0.3)


def test_labels_that_are_no_class(torch):
    """There a miss, if there are no more than K different labels; ours is an error."""
    from torchmetrics.functional.classification import (
        binary_calibration_error,
        multiclass_calibration_error,
    )

    rows = [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]]
    for odd in (7, -1):
        labels = [0, 1, odd, 1]
        value = multiclass_calibration_error(torch.tensor(rows), torch.tensor(labels), 3)
        assert value.item() == pytest.approx(0.425)
        with pytest.raises(ValueError, match="target"):
            compat.multiclass_calibration_error(rows, labels, 3)
    with pytest.raises(RuntimeError, match="target"):
        binary_calibration_error(torch.tensor([0.2, 0.6]), torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="target"):
        compat.binary_calibration_error([0.2, 0.6], [0, 2])


def test_nan(torch):
    """There a NaN makes the batch logits, and a number comes out; ours is an error."""
    from torchmetrics.functional.classification import (
        binary_calibration_error,
        multiclass_calibration_error,
    )

    p, y = [0.2, float("nan"), 0.9], [0, 1, 1]
    assert binary_calibration_error(torch.tensor(p), torch.tensor(y)).item() == pytest.approx(
        0.613, abs=1e-3
    )
    with pytest.raises(ValueError, match="preds"):
        compat.binary_calibration_error(p, y)
    rows = [[float("nan"), 0.5], [0.1, 0.9]]
    value = multiclass_calibration_error(torch.tensor(rows), torch.tensor([0, 1]), 2)
    assert np.isfinite(value.item())
    with pytest.raises(ValueError, match="preds"):
        compat.multiclass_calibration_error(rows, [0, 1], 2)


def test_no_rows(torch):
    """There nan; ours is an error, also where all rows are left out and before the first update."""
    from torchmetrics.classification import BinaryCalibrationError
    from torchmetrics.functional.classification import binary_calibration_error

    none = torch.tensor([]), torch.tensor([], dtype=torch.int64)
    some = torch.tensor([0.2]), torch.tensor([0])
    assert binary_calibration_error(*none).isnan()
    assert binary_calibration_error(*some, ignore_index=0).isnan()
    with pytest.raises(ValueError, match="No samples"):
        quietly(BinaryCalibrationError().compute)
    with pytest.raises(ValueError, match=r"preds|target"):
        compat.binary_calibration_error([], [])
    with pytest.raises(ValueError, match=r"preds|target"):
        compat.binary_calibration_error([0.2], [0], ignore_index=0)
    with pytest.raises(ValueError, match=r"preds|target"):
        compat.multiclass_calibration_error(np.zeros((0, 3)), [], 3)
    metric = compat.BinaryCalibrationError(ignore_index=0)
    assert np.isnan(metric([0.2], [0]))
    assert quietly(BinaryCalibrationError(ignore_index=0), *some).isnan()
    with pytest.raises(ValueError, match="update"):
        metric.compute()
    metric.update([0.2], [1])
    metric.update([], [])
    assert metric.compute() == pytest.approx(0.8)


def test_batches_of_two_precisions(torch):
    """All are taken for float64 there, with the edges of float64; ours is an error."""
    from torchmetrics.classification import BinaryCalibrationError

    p, y = np.array([0.2, 0.6, 0.9]), np.array([0, 1, 1])
    theirs, metric = BinaryCalibrationError(), compat.BinaryCalibrationError()
    for kind in (np.float32, np.float64):
        quietly(theirs.update, torch.from_numpy(p.astype(kind)), torch.from_numpy(y))
    assert quietly(theirs.compute).dtype == torch.float64
    metric.update(p.astype(np.float32), y)
    with pytest.raises(ValueError, match=r"preds: .*precision of batches before.*float64"):
        metric.update(p, y)
    assert metric.compute() == pytest.approx(0.7 / 3)
    metric.reset()
    metric.update(p, y)
    assert metric.compute() == pytest.approx(0.7 / 3)


def test_metrics_can_be_copied():
    metric = compat.MulticlassCalibrationError(2)
    metric.update([[0.2, 0.8], [0.7, 0.3]], [1, 1])
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert twin.compute() == metric.compute()
        twin.update([[0.1, 0.9]], [0])
        assert twin.compute() != metric.compute()


def test_zero_is_a_float(torch):
    """The root of nothing is the integer 0 there."""
    from torchmetrics.functional.classification import binary_calibration_error

    value = binary_calibration_error(torch.tensor([0.0, 1.0]), torch.tensor([0, 1]), norm="l2")
    assert value.dtype == torch.int64
    got = compat.binary_calibration_error([0.0, 1.0], [0, 1], norm="l2")
    assert isinstance(got, np.float64)
    assert got == 0


def test_half_precision(torch):
    """Edges and sums of half precision there, edges of float32 and sums of float64 here."""
    from torchmetrics.functional.classification import binary_calibration_error

    p, y = torch.tensor([0.2, 0.6, 0.9], dtype=torch.float16), torch.tensor([0, 1, 1])
    assert binary_calibration_error(p, y).dtype == torch.float16
    want = reference.torch_error(p.double().tolist(), y.tolist(), 15, "l1", np.float32)
    assert compat.binary_calibration_error(p, y) == pytest.approx(want, abs=1e-12)
    assert compat.binary_calibration_error(p.numpy(), y) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (([0.2, 0.4], [1]), "preds|target"),
        (([0.2, 0.4], [1, 0.5]), "target"),
        (([0.2, 0.4], [1, 0], 0), "n_bins"),
        (([0.2, 0.4], [1, 0], 2.5), "n_bins"),
        (([0.2, 0.4], [1, 0], 5, "l3"), "norm"),
        (([0.2, 0.4], [1, 0], 5, "l1", 1.5), "ignore_index"),
        (([0.2, float("inf")], [1, 0]), "preds"),
    ],
)
def test_bad_arguments_of_two_classes(arguments, names):
    with pytest.raises((ValueError, TypeError), match=names):
        compat.binary_calibration_error(*arguments)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (([[0.2, 0.8]], [1, 0], 2), "preds|target"),
        (([[0.2, 0.8]], [1], 3), "preds|num_classes"),
        (([[0.2, 0.8]], [1], 1), "num_classes"),
        (([0.2, 0.8], [1, 0], 2), "preds"),
        (([[0.2, 0.8]], [1], 2, 0), "n_bins"),
        (([[0.2, 0.8]], [1], 2, 5, "l3"), "norm"),
    ],
)
def test_bad_arguments_of_several_classes(arguments, names):
    with pytest.raises((ValueError, TypeError), match=names):
        compat.multiclass_calibration_error(*arguments)
