"""What is refused because it would otherwise be guessed, each with its own message."""

from fractions import Fraction

import numpy as np
import pytest

import fastece
from fastece.inputs.validation import check_jobs

Y, P = [0, 1, 1], [0.2, 0.6, 0.9]
PROB = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])


class Tensor:
    """What is read of a tensor on another device, that needs a gradient, in bfloat16."""

    def __init__(self, values, dtype="torch.bfloat16"):
        self.values, self.dtype, self.calls = values, dtype, []

    def __getattr__(self, name):
        if name not in {"detach", "cpu", "resolve_conj", "resolve_neg", "float"}:
            raise AttributeError(name)
        return lambda: self.calls.append(name) or self

    def __len__(self):
        return len(self.values)

    def numpy(self):
        assert self.calls[:2] == ["detach", "cpu"]
        assert ("float" in self.calls) == (self.dtype == "torch.bfloat16")
        return np.array(self.values, np.float32)


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float32"])
def test_tensors_are_brought_to_the_host_first(dtype):
    value = fastece.ece(Y, np.array(P, np.float32))
    assert fastece.ece(Y, Tensor(P, dtype)) == value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fastece.ece(Y, P, from_logits="no"), "from_logits: must be True or False"),
        (lambda: fastece.ece(Y, P, n_jobs=0), "n_jobs: must be a positive"),
        (lambda: fastece.ece(Y, P, n_jobs=1.5), "n_jobs: must be an integer"),
        (lambda: fastece.ece(Y, P, norm=True), "norm: must be a number"),
        (lambda: fastece.ece(Y, P, norm=10**400), "norm: must be a number from 1 to inf"),
        (lambda: fastece.ece(Y, P, n_bins=np.array([5, 6])), "n_bins: must be an integer or"),
        (lambda: fastece.ece(Y, P, average=np.array([1])), "average: got"),
        (lambda: fastece.ece(Y, P, score_range=[0, 1]), "score_range: must be a pair"),
        (lambda: fastece.ece(Y, P, estimator=object()), "known: 'ece'"),
        (lambda: fastece.sce(Y, P, setting="binary"), "setting: sce is setting='classwise'"),
        (lambda: fastece.mce(Y, P, norm=2), "norm: mce is norm=inf"),
        (lambda: fastece.ace(Y, P, estimator="ece"), "estimator: ace is estimator='ece_a'"),
        (lambda: fastece.ece(["", "b", "b"], P), r"y_true: must not be blank; y_true\[0\] is ''"),
        (lambda: fastece.ece(["a", None, "b"], P), r"y_true: must not be missing; y_true\[1\]"),
        (lambda: fastece.ece(Y, [0.1, None, 0.2]), r"y_prob\[1\] is None"),
        (lambda: fastece.ece(Y, ["0.1", "x", "y"]), r"y_prob\[0\] is '0.1'"),
        (lambda: fastece.ece([[0], [1], [2]], PROB, labels=[0, 1, 1]), r"labels\[2\] is 1 again"),
        (lambda: fastece.ece(["a", "z", "b"], P, labels=["a", "b"]), r"y_true\[1\] is 'z'"),
        (lambda: fastece.ece([0, 5, 1], P, labels=[0, 1]), r"y_true\[1\] is 5"),
        (lambda: fastece.ece([0, set(), 1], P, labels=[0, "b"]), "labels must be hashable"),
        (
            lambda: fastece.ece([0], [[-np.inf, -np.inf]], from_logits=True),
            r"must not be all -inf; y_prob\[0, 0\] is -inf",
        ),
    ],
)
def test_message(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_an_estimator_without_bins_has_no_diagram():
    class Brier:
        def prepare(self, sample, size):  # noqa: ARG002
            return sample

        def evaluate(self, plan, c):
            return float(np.average((plan.y - plan.s) ** 2, weights=c))

    assert fastece.ece(Y, P, estimator=Brier()) == pytest.approx((0.04 + 0.16 + 0.01) / 3)
    with pytest.raises(TypeError, match="a reliability diagram needs bins"):
        fastece.reliability_diagram(Y, P, estimator=Brier())
    with pytest.raises(TypeError, match="n_bins: is not a parameter of the estimator Brier"):
        fastece.ece(Y, P, estimator=Brier(), n_bins=3)


def test_sparse_columns_of_pandas_are_refused():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(pandas.arrays.SparseArray(P))
    with pytest.raises(TypeError, match="y_prob: sparse columns are refused"):
        fastece.ece(Y, column)


def test_jobs_are_counted_as_elsewhere():
    assert check_jobs(None) == 1
    assert check_jobs(3) == 3
    assert check_jobs(-1) >= 1
    assert check_jobs(-(10**6)) == 1


def test_labels_name_the_classes_of_results():
    diagram = fastece.reliability_diagram(["ant", "bee"], P[:2], setting=1)
    assert diagram.setting == "class 1 ('bee')"
    many = fastece.reliability_diagram(Y, PROB, setting="classwise", labels=[0, 1, Fraction(2)])
    assert [d.setting for d in many] == ["class 0 (0)", "class 1 (1)", "class 2 (Fraction(2, 1))"]
