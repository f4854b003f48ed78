"""`fastece.compat.torchmetrics` gives the values of torchmetrics."""

import copy
import pickle
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from fastece.compat import torchmetrics as compat
from fastece.streams import CalibrationMetric
from helpers.compat_cases import (
    ONLY_QUICK,
    RANDOM_LABELS,
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

pytestmark = RANDOM_LABELS

NORMS = ("l1", "l2", "max")
HAS_TORCHMETRICS = find_spec("torchmetrics") is not None
SHAPES = pytest.mark.parametrize("make", [binary_case, class_case])


@pytest.fixture
def torch():
    library("torchmetrics")
    return library("torch")


def away_from_edges(scores, n_bins, kind):
    """Is every score so far from an edge that the last digits of exp() do not matter?"""
    edges = np.array(reference.torch_edges(n_bins, kind)[1:-1])
    s = np.array(scores)[:, None]
    return not (np.any(np.abs(s - edges) < 2e-6) or np.any((s < 1) & (s > 1 - 2e-6)))


def has_edges_of_formula(torch, scores, n_bins, kind):
    """Do torch's edges on this machine put every score into the same bin as the formula's edges?

    On processors that round a product before they add to it, some edges are neighbouring floats.
    """
    dtype = {np.float32: torch.float32, np.float64: torch.float64}[kind]
    edges = torch.linspace(0, 1, n_bins + 1, dtype=dtype).double().numpy()
    formula = reference.torch_edges(n_bins, kind)
    bins = np.searchsorted(edges, scores, "right")
    return bool((bins == np.searchsorted(formula, scores, "right")).all())


class Case(NamedTuple):
    """Arguments of a calibration error, and the type of its probabilities."""

    preds: Any
    target: Any
    n_bins: int
    norm: str
    ignore_index: int | None
    kind: type
    is_logits: bool

    @property
    def options(self):
        """The arguments after the number of classes, by name."""
        return {"n_bins": self.n_bins, "norm": self.norm, "ignore_index": self.ignore_index}

    @property
    def kind_of_edges(self):
        """The type in which torchmetrics rounds edges, and top scores."""
        return self.kind if self.preds.ndim == 1 else np.float32

    @property
    def scores(self):
        """The scores (n,) of the binary problem, by the reference."""
        if self.preds.ndim == 2:
            return reference.torch_top(self.preds.tolist(), self.target, self.ignore_index)[0]
        rows = zip(self.preds.tolist(), self.target, strict=True)
        return reference.torch_scores([p for p, y in rows if y != self.ignore_index], self.kind)

    def has_rows(self):
        """Is there a row whose label counts?"""
        return not (self.target == self.ignore_index).all()

    def is_defined(self):
        """Does the value not depend on the last digit of exp()?"""
        if not self.is_logits:
            return True
        return away_from_edges(self.scores, self.n_bins, self.kind_of_edges)

    def is_comparable(self, torch):
        """Does it depend neither on exp() nor on how torch was compiled?"""
        return self.is_defined() and has_edges_of_formula(
            torch, self.scores, self.n_bins, self.kind_of_edges
        )

    def batches(self, seed):
        """The case in up to four batches."""
        n = len(self.target)
        cuts = np.unique(np.random.default_rng(seed).integers(0, n + 1, 3))
        batches = [rows for rows in np.split(np.arange(n), cuts) if len(rows)]
        return [self._replace(preds=self.preds[b], target=self.target[b]) for b in batches]

    def tensors(self, torch):
        """The case with tensors in place of arrays."""
        preds = torch.from_numpy(self.preds.copy())
        return self._replace(preds=preds, target=torch.from_numpy(self.target.copy()))


def draw_case(make, seed):
    """A case of binary scores or class vectors; one in six has logits."""
    rng, preds, target, n_bins, kind = make(seed)
    norm = str(rng.choice(NORMS))
    ignore_index = [None, None, -1, 1][rng.integers(0, 4)]
    if ignore_index is not None:
        target = np.where(rng.random(len(target)) < 0.3, ignore_index, target)
        if (target == ignore_index).all():
            target[0] = 0
    is_logits = seed % 6 == 5
    if is_logits:
        preds = (4 * rng.standard_normal(preds.shape)).astype(kind)
    return Case(preds, target, n_bins, norm, ignore_index, kind=kind, is_logits=is_logits)


def value_of(module, case):
    """The value of a module's function for the shape of the probabilities."""
    if case.preds.ndim == 1:
        return module.binary_calibration_error(case.preds, case.target, **case.options)
    n_classes = case.preds.shape[1]
    return module.multiclass_calibration_error(case.preds, case.target, n_classes, **case.options)


def metric_of(module, case):
    """The metric of a module for the shape of the probabilities."""
    if case.preds.ndim == 1:
        return module.BinaryCalibrationError(**case.options)
    return module.MulticlassCalibrationError(case.preds.shape[1], **case.options)


@ONLY_QUICK
@SHAPES
@pytest.mark.filterwarnings("ignore:.*taken for logits")
def test_values_equal_the_reference(make, seeds):
    for seed in seeds:
        case = draw_case(make, seed)
        if not case.is_defined():
            continue
        got = value_of(compat, case)
        assert isinstance(got, np.float64)
        lists = {"preds": case.preds.tolist(), "target": case.target.tolist(), **case.options}
        if case.preds.ndim == 1:
            want = reference.torch_binary(**lists, kind=case.kind)
            is_exact = not case.is_logits or case.kind is np.float64
        else:  # top scores are rounded to float32, and so is exp()
            want = reference.torch_multiclass(**lists)
            is_exact = not case.is_logits and case.kind is np.float32
        slack = 1e-6 if case.is_logits else 1e-7
        near(got, want, 1e-12 if is_exact else slack, seed)


@SEEDS
@SHAPES
@pytest.mark.filterwarnings("ignore:.*taken for logits")
def test_values_of_tensors_equal_the_library(torch, make, seeds):
    from torchmetrics.functional import classification as peer

    def compare(seed):
        case = draw_case(make, seed)
        if not case.is_comparable(torch):
            return False
        got = value_of(compat, case.tensors(torch))
        want = quietly(value_of, peer, case.tensors(torch)).item()
        near(got, want, tolerance(case.kind_of_edges, len(case.target)), seed)
        return True

    until(seeds, compare)


@ONLY_QUICK
@SHAPES
def test_metrics_and_tasks_equal_the_functions(make, seeds):
    for seed in seeds:
        case = draw_case(make, seed)
        if case.is_logits:
            continue
        want = value_of(compat, case)
        task = {"task": "binary"}
        if case.preds.ndim == 2:
            task = {"task": "multiclass", "num_classes": case.preds.shape[1]}
        assert compat.calibration_error(case.preds, case.target, **task, **case.options) == want
        metric = metric_of(compat, case)
        for _ in range(2):
            for batch in case.batches(seed):
                value = metric(batch.preds, batch.target).item()
                if batch.has_rows():
                    assert value == value_of(compat, batch)
            near(metric.compute().item(), want, 1e-12, seed)
            metric.reset()


@SEEDS
@SHAPES
def test_metrics_equal_the_library(torch, make, seeds):
    """With batches of logits beside batches of probabilities, and `forward` the batch alone."""
    from torchmetrics import classification as peer

    for seed in seeds:
        case = draw_case(make, seed)
        if not case.is_comparable(torch):
            continue
        ours = metric_of(compat, case)
        theirs = metric_of(peer, case)
        atol = tolerance(case.kind_of_edges, len(case.target))
        for batch in case.batches(seed):
            if not batch.has_rows() or not batch.is_comparable(torch):
                continue
            tensors = batch.tensors(torch)
            value = quietly(theirs, tensors.preds, tensors.target).item()
            near(ours(batch.preds, batch.target).item(), value, atol, seed)
            near(ours.compute().item(), quietly(theirs.compute).item(), atol, seed)


def test_further_dimensions_are_rows():
    rng = np.random.default_rng(1)
    p = rng.random((5, 4, 3))
    y = rng.integers(0, 2, (5, 4, 3))
    assert compat.binary_calibration_error(p, y) == compat.binary_calibration_error(
        p.ravel(), y.ravel()
    )
    rows = rng.dirichlet(np.ones(3), (5, 4))
    labels = rng.integers(0, 3, (5, 4))
    got = compat.multiclass_calibration_error(np.moveaxis(rows, -1, 1), labels, 3)
    assert got == compat.multiclass_calibration_error(rows.reshape(-1, 3), labels.ravel(), 3)


def test_class_by_task():
    assert isinstance(compat.CalibrationError("binary"), compat.BinaryCalibrationError)
    metric = compat.CalibrationError("multiclass", 5, "l2", 3, ignore_index=-1)
    assert isinstance(metric, compat.MulticlassCalibrationError)
    metric.update([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [0, -1])
    assert metric.compute().item() == pytest.approx(0.5)
    assert metric.forward([[0.2, 0.7, 0.1]], [1]).item() == pytest.approx(0.3)
    with pytest.raises(ValueError, match="task"):
        compat.CalibrationError("multilabel")
    with pytest.raises(ValueError, match="task"):
        compat.calibration_error([0.5], [1], "multilabel")
    with pytest.raises(ValueError, match="num_classes"):
        compat.calibration_error([[0.5, 0.5]], [1], "multiclass")


def test_edges_of_torch(torch):
    """The edges are equal to the formula, or to floats beside it in the upper half."""
    for kind, dtype in ((np.float32, torch.float32), (np.float64, torch.float64)):
        for n_bins in range(1, 201):
            formula = np.array(reference.torch_edges(n_bins, kind)).astype(kind)
            edges = torch.linspace(0, 1, n_bins + 1, dtype=dtype).numpy()
            assert (edges >= np.nextafter(formula, kind(-1))).all()
            assert (edges <= np.nextafter(formula, kind(2))).all()
            assert (edges[: (n_bins + 1) // 2] == formula[: (n_bins + 1) // 2]).all()
            # With a power of two as the number of bins nothing is rounded.
            if n_bins & (n_bins - 1) == 0:
                assert (edges == formula).all()


def test_batches():
    """Without rows a batch adds nothing; batches of another precision are refused."""
    metric = compat.BinaryCalibrationError(ignore_index=0)
    assert np.isnan(metric([0.2], [0]).item())
    with pytest.raises(ValueError, match="update"):
        metric.compute()
    metric.update(np.array([0.2], dtype=np.float32), [1])
    metric.update([], [])
    with pytest.raises(ValueError, match=r"preds: .*precision of batches before.*float64"):
        metric.update([0.2], [1])
    with pytest.raises(ValueError, match=r"preds: .*precision of batches before.*float64"):
        metric([0.2], [1])
    assert metric.compute().item() == pytest.approx(0.8)
    with pytest.raises(ValueError, match="preds"):
        compat.binary_calibration_error([0, 1], [0, 1])  # labels where scores should be
    # A logit in a row that is left out leaves the others probabilities.
    got = compat.binary_calibration_error([0.2, 0.6, 7.0], [0, 1, -1], ignore_index=-1)
    assert got == pytest.approx(0.3)


def test_a_little_above_one_makes_the_batch_logits(torch):
    """A quirk of torchmetrics that stays, with a warning: rounding in float32 suffices for it."""
    from torchmetrics.functional.classification import multiclass_calibration_error

    p = np.array([[1.0000001, 0.0], [0.3, 0.7]], dtype=np.float32)
    y = np.array([0, 1])
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


def test_half_precision_is_counted_in_more(torch):
    """torchmetrics has edges and sums of half precision; ours are edges of float32 and sums of
    float64."""
    from torchmetrics.functional.classification import binary_calibration_error

    p = torch.tensor([0.2, 0.6, 0.9], dtype=torch.float16)
    y = torch.tensor([0, 1, 1])
    assert binary_calibration_error(p, y).dtype == torch.float16
    want = reference.torch_error(p.double().tolist(), y.tolist(), 15, "l1", np.float32)
    assert compat.binary_calibration_error(p, y) == pytest.approx(want, abs=1e-12)
    assert compat.binary_calibration_error(p.numpy(), y) == pytest.approx(want, abs=1e-12)


# --- loops --------------------------------------------------------------------------------------


def loop_metrics():
    """Make a metric of each class, with batches that it takes."""
    rng = np.random.default_rng(0)
    scores = rng.random(40)
    vectors = rng.dirichlet([1, 1, 1], 40)
    return {
        "binary": (compat.BinaryCalibrationError(n_bins=5), scores, rng.integers(0, 2, 40)),
        "multiclass": (compat.MulticlassCalibrationError(3), vectors, rng.integers(0, 3, 40)),
        "stream": (CalibrationMetric(n_bins=5), scores, rng.integers(0, 2, 40)),
    }


LOOPS = pytest.mark.parametrize("name", ["binary", "multiclass", "stream"])


@LOOPS
def test_a_clone_has_the_rows_and_goes_its_own_way(name):
    metric, preds, target = loop_metrics()[name]
    assert metric.to("cpu") is metric
    metric.update(preds[:20], target[:20])
    clone = metric.clone()
    before = float(metric.compute())
    assert float(clone.compute()) == before
    clone.update(preds[20:], target[20:])
    assert float(metric.compute()) == before
    metric.update(preds[20:], target[20:])
    assert float(clone.compute()) == float(metric.compute()) != before


@LOOPS
def test_a_plot_has_the_error_or_the_errors_of_epochs(name):
    figure_class = pytest.importorskip("matplotlib.figure").Figure
    metric, preds, target = loop_metrics()[name]
    metric.update(preds, target)
    ax = figure_class().subplots()
    figure, same = metric.plot(ax=ax)
    assert (figure, same) == (ax.figure, ax)
    assert ax.get_lines()[0].get_ydata().tolist() == [float(metric.compute())]
    metric.plot([0.3, 0.2], ax=ax)
    assert ax.get_lines()[1].get_ydata().tolist() == [0.3, 0.2]


@pytest.mark.skipif(HAS_TORCHMETRICS, reason="metrics of torchmetrics add up their states")
@pytest.mark.parametrize("call", ["update", "forward", "compute"])
def test_without_torchmetrics_one_of_several_processes_is_refused(monkeypatch, call):
    metric = compat.BinaryCalibrationError()
    metric.update([0.2], [1])
    group = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", group)
    arguments = () if call == "compute" else ([0.2], [1])
    with pytest.raises(RuntimeError, match=r"BinaryCalibrationError: .*CalibrationMetric"):
        getattr(metric, call)(*arguments)
    group.get_world_size = lambda: 1
    assert metric.compute().item() == pytest.approx(0.8)


@pytest.mark.skipif(HAS_TORCHMETRICS, reason="options of torchmetrics are taken")
def test_options_of_torchmetrics_need_torchmetrics():
    with pytest.raises(TypeError, match="sync_on_compute"):
        compat.BinaryCalibrationError(sync_on_compute=False)


# --- metrics of torchmetrics --------------------------------------------------------------------


@SHAPES
def test_metrics_are_metrics_of_torchmetrics(torch, make):
    from torchmetrics import Metric

    case = draw_case(make, 4)
    metric = metric_of(compat, case)
    assert isinstance(metric, Metric)
    assert isinstance(metric, compat.BinaryCalibrationError)
    assert type(metric).__name__ == type(metric_of(compat, case)).__name__
    value = metric(case.preds, case.target)
    assert value.dtype == torch.float64
    assert value.item() == value_of(compat, case)
    metric.reset()
    metric.update(case.preds, case.target)
    assert metric.update_count == 1


def test_a_collection_of_torchmetrics_takes_them_beside_its_own(torch):
    from torchmetrics import MetricCollection
    from torchmetrics import classification as peer

    _, preds, target = loop_metrics()["multiclass"]
    preds, target = torch.from_numpy(preds), torch.from_numpy(target)
    collection = MetricCollection(
        {
            "mean": compat.MulticlassCalibrationError(3),
            "largest": compat.MulticlassCalibrationError(3, norm="max"),
            "theirs": peer.MulticlassCalibrationError(3),
        },
        prefix="val_",
    )
    for start in (0, 20):
        collection.update(preds[start : start + 20], target[start : start + 20])
    values = {name: value.item() for name, value in collection.compute().items()}
    assert values["val_mean"] == pytest.approx(
        compat.multiclass_calibration_error(preds, target, 3), abs=1e-12
    )
    assert values["val_largest"] == pytest.approx(
        compat.multiclass_calibration_error(preds, target, 3, norm="max"), abs=1e-12
    )
    assert values["val_theirs"] == pytest.approx(values["val_mean"], abs=1e-6)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_merged_states_have_the_rows_of_both(name):
    metric, preds, target = loop_metrics()[name]
    other, whole = metric.clone(), metric.clone()
    metric.update(preds[:15], target[:15])
    other.update(preds[15:], target[15:])
    whole.update(preds, target)
    metric.compute()  # the value that it keeps is forgotten
    metric.merge_state(other)
    assert metric.compute().item() == pytest.approx(whole.compute().item(), abs=1e-12)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_checkpoints_have_the_rows(torch, name, tmp_path):
    metric, preds, target = loop_metrics()[name]
    restored = metric.clone()
    assert not metric.state_dict()  # as those of torchmetrics, unless they are asked to
    metric.persistent(True)
    metric.update(preds, target)
    torch.save(metric.state_dict(), tmp_path / "metric.pt")
    restored.persistent(True)
    restored.load_state_dict(torch.load(tmp_path / "metric.pt", weights_only=True))
    assert quietly(restored.compute) == metric.compute()


def test_checkpoints_of_a_stream_hold_plain_tensors(torch, tmp_path):
    metric, preds, target = loop_metrics()["stream"]
    metric.update(torch.from_numpy(preds), torch.from_numpy(target))
    torch.save(metric.state_dict(), tmp_path / "metric.pt")
    state = torch.load(tmp_path / "metric.pt", weights_only=True)
    restored = CalibrationMetric(n_bins=5).load_state_dict(state)
    assert restored.accumulator == metric.accumulator
    assert restored.compute() == metric.compute()
    twice = {name: 2 * sums for name, sums in state.items()}
    assert CalibrationMetric().load_state_dict(twice).accumulator.n == 80


@pytest.mark.usefixtures("torch")
def test_an_update_that_fails_changes_nothing():
    metric, preds, target = loop_metrics()["binary"]
    metric.update(preds, target)
    before = metric.compute()
    for call in (metric.update, metric):
        with pytest.raises(ValueError, match="preds"):
            call([0.5, np.nan], [0, 1])
    assert metric.clone().compute() == before


PROCESS = """
import sys
import numpy as np
import torch
from torch import distributed
from fastece.compat.torchmetrics import BinaryCalibrationError, MulticlassCalibrationError

rank, folder = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2
)
rng = np.random.default_rng(0)
scores, hits = rng.random(400).astype(np.float32), rng.integers(0, 2, 400)
vectors, labels = rng.dirichlet([1, 1, 1], 400), rng.integers(0, 3, 400)
binary, multiclass = BinaryCalibrationError(n_bins=7), MulticlassCalibrationError(3, norm="l2")
late = BinaryCalibrationError()  # of which a process has no rows
for start in range(0, 400, 50):
    if start // 50 % 2 == rank:
        rows = slice(start, start + 50)
        binary.update(torch.from_numpy(scores[rows]), torch.from_numpy(hits[rows]))
        multiclass(torch.from_numpy(vectors[rows]), torch.from_numpy(labels[rows]))
if rank:
    late.update(scores, hits)
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    values = [metric.compute().item() for metric in (binary, multiclass, late)]
    again = binary.compute().item()
binary.update(torch.from_numpy(scores[:0]), torch.from_numpy(hits[:0]))
print(*values, again, binary.rows.sum().item())
distributed.destroy_process_group()
"""


def test_the_value_of_two_processes_is_that_of_one(torch, tmp_path):
    del torch
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), str(tmp_path)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in (0, 1)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    rng = np.random.default_rng(0)
    scores, hits = rng.random(400).astype(np.float32), rng.integers(0, 2, 400)
    vectors, labels = rng.dirichlet([1, 1, 1], 400), rng.integers(0, 3, 400)
    expected = [
        compat.binary_calibration_error(scores, hits, n_bins=7),
        compat.multiclass_calibration_error(vectors, labels, 3, norm="l2"),
        compat.binary_calibration_error(scores, hits),
    ]
    for output, _ in outputs:
        *values, again, rows = map(float, output.split())
        assert values == pytest.approx(expected, abs=1e-12)
        assert again == values[0]
        assert rows == 200  # each process goes on with its own
