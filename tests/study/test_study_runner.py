"""What a study measures: draws, estimates and truth, made again with plain loops; the same bits
however it is run."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from math import inf, isnan, nextafter

import numpy as np
import pytest
import reference

pytest.importorskip("sklearn")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")
threadpoolctl = pytest.importorskip("threadpoolctl")

import study_cases as cases  # noqa: E402
from study_cases import FIFTEEN, SINGLE, TINY, Replay, contents  # noqa: E402

from fastece import ece  # noqa: E402
from fastece.protocol import Sample  # noqa: E402
from fastece.study import run_study  # noqa: E402
from fastece.study.contestants import Drawn  # noqa: E402
from fastece.study.design import Distribution, preset  # noqa: E402
from fastece.study.published import PublishedBinned, swapped_convex  # noqa: E402
from fastece.study.published import published as published_contestants  # noqa: E402
from fastece.study.runner import contestants_of, run_distribution  # noqa: E402
from fastece.study.store import Store  # noqa: E402


def close(name):
    """Densities are within 1e-3 of the integral, and 1e-6 for each problem."""
    if "kde" in name:
        return {"rel": 1e-3, "abs": 1e-6}
    return {"rel": 0, "abs": 1e-12, "nan_ok": True}


def test_the_quick_reference_is_the_reference():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 30, 100, 500):
        for s in (rng.random(n), rng.integers(0, 11, n) / 10):
            y = (rng.random(n) < s).astype(int).tolist()
            for low in (0.0, 0.5):
                problem = s.clip(low).tolist(), y, low, 1.0
                for fields in cases.BINNED.values():
                    for n_bins in (1, 4, 10, 30, "sqrt"):
                        given = {"n_bins": n_bins, "score_range": "support", **fields}
                        want = reference.error(problem, **given)
                        assert cases.quick_error(problem, **given) == pytest.approx(want, abs=1e-15)
            for closed in ("right", "left", None):
                edges = cases.counted_edges(s.tolist(), 10, 0.2, 0.9, closed)
                given = s.tolist(), [1.0] * n, 10, 0.2, 0.9, closed
                assert edges == reference.quantile_edges(*given)


def corrected(name, problems):
    return cases.corrected(name, problems, points=20)


def quick_corrected(name, problems):
    return cases.corrected(name, problems, points=12, error=cases.quick_error)


def quick_edges(scores, weights, *rest, **closed):
    assert set(weights) == {1.0}
    return cases.counted_edges(scores, *rest, **closed)


def published(name, problems):
    return cases.published(name, problems, points=20)


def assert_values(outcome, again, size, draws, value):
    """All fifteen in all settings on some draws of one size."""
    design = again.design
    rows, i = again.rows(size), design.sizes.index(size)
    for s, setting in enumerate(design.settings):
        for j in draws:
            problems = again.problems(rows[j], setting)
            for e, name in enumerate(FIFTEEN):
                want = pytest.approx(value(name, problems), **close(name))
                assert outcome.estimates[s, e, i, j] == want, (setting, name, size, j)


# -- a whole cell of the paper's study -------------------------------------------------------------


@pytest.fixture(scope="module")
def paper():
    which = Distribution(2, 2, 0, "naive_bayes", 0)
    design = preset("paper")
    assert which in design.distributions
    return run_distribution(design, which), Replay(design, which)


def test_a_cell_has_its_shape(paper):
    outcome, again = paper
    names = [contestant.name for contestant in contestants_of(again.design)]
    assert names == [*FIFTEEN, "zero"]
    assert outcome.estimates.shape == (2, 16, 20, 200)
    assert np.isfinite(outcome.estimates).all()
    assert (outcome.estimates[:, -1] == 0).all()
    assert (outcome.estimates[:, :-1] > 0).all()
    assert {"hold-out", "fitting", "prediction", "estimation", "truth"} <= set(outcome.seconds)


def test_every_draw_of_the_smallest_size_has_the_value_of_plain_loops(paper):
    assert_values(*paper, 30, range(200), corrected)


def test_every_draw_of_the_largest_size_has_the_value_of_plain_loops(paper, monkeypatch):
    assert_values(*paper, 500, range(0, 200, 50), corrected)
    monkeypatch.setattr(reference, "quantile_edges", quick_edges)  # for Silverman's rule
    assert_values(*paper, 500, range(200), quick_corrected)


def test_some_draws_of_the_other_sizes_have_the_value_of_plain_loops(paper, monkeypatch):
    monkeypatch.setattr(reference, "quantile_edges", quick_edges)
    for i, size in enumerate(paper[1].design.sizes[1:-1]):
        assert_values(*paper, size, [i, 100 - i, 199 - i], quick_corrected)


def test_truth_of_the_cell_is_that_of_plain_loops(paper):
    outcome, again = paper
    for setting, (exact, labels) in zip(again.design.settings, outcome.truth, strict=True):
        want = [cases.truth(*problem) for problem in again.chances(setting)]
        assert exact == pytest.approx(np.mean(want), rel=1e-9)
        # Every 2000th of [0, 1] exactly: edges of bins are those of `reference`.
        want = []
        for s, y, _, _ in again.problems(np.arange(len(again.y)), setting):
            edges = np.array(reference.uniform_edges(2000, 0.0, 1.0))
            place = np.clip(np.searchsorted(edges, s, "right") - 1, 0, 1999)
            gaps = np.bincount(place, np.array(y) - np.array(s), 2000)
            want.append(np.abs(gaps).sum() / len(s))
        assert labels == pytest.approx(np.mean(want), rel=1e-9)
        assert abs(labels - exact) < 0.003


# -- small cells, with ties ------------------------------------------------------------------------

SMALL = replace(SINGLE, models=("naive_bayes", "random_forest"), draws=8, smallest=25, largest=45)


@pytest.fixture(scope="module", params=SMALL.models)
def small(request):
    which = Distribution(3, 2, 0, request.param, 0)
    return SMALL, which


def test_scores_with_ties_and_several_classes(small):
    design, which = small
    again = Replay(design, which)
    outcome = run_distribution(design, which)
    if which.model == "random_forest":
        assert len(np.unique(again.prob[:, 0].round(9))) < 102
    for size in design.sizes:
        assert_values(outcome, again, size, range(design.draws), corrected)


def test_a_cell_of_the_published_convention(small):
    design, which = replace(small[0], convention="published"), small[1]
    again = Replay(design, which)
    outcome = run_distribution(design, which)
    names = [contestant.name for contestant in contestants_of(design)]
    assert names == [*FIFTEEN, "zero"]
    assert 25 in design.sizes  # fewer rows than bins
    assert np.isnan(outcome.estimates[:, FIFTEEN.index("ece_a_30"), 0]).all()
    for size in design.sizes:
        assert_values(outcome, again, size, range(design.draws), published)


def test_both_conventions_see_the_same_draws(small):
    design, which = small
    design = replace(design, draws=2, n_sizes=1, estimators=("fastece:Binned",))
    both = [
        run_distribution(replace(design, convention=convention), which)
        for convention in ("corrected", "published")
    ]
    own = len(FIFTEEN)
    assert np.array_equal(both[0].estimates[:, own], both[1].estimates[:, own])
    assert not np.array_equal(both[0].estimates[:, :own], both[1].estimates[:, :own])
    assert np.array_equal(both[0].truth, both[1].truth)


def test_a_part_of_a_design_has_the_values_of_the_whole():
    # Nothing depends on what else is in the design: only sizes that are drawn are the same.
    which = Distribution(3, 2, 0, "naive_bayes", 0)
    whole = run_distribution(SINGLE, which)
    part = replace(
        SINGLE, classes=(2, 3), models=("random_forest", "naive_bayes"), n_sizes=1,
        settings=("classwise",),
    )  # fmt: skip
    found = run_distribution(part, which)
    assert np.array_equal(found.estimates[0, :, 0], whole.estimates[1, :, 0])
    assert np.array_equal(found.truth[0], whole.truth[1])
    # With fewer draws they are the first of them; densities of other draws share their sums.
    found = run_distribution(replace(part, draws=3), which)
    assert np.array_equal(found.estimates[0, :12, 0], whole.estimates[1, :12, 0, :3])
    assert found.estimates[0, :, 0] == pytest.approx(whole.estimates[1, :, 0, :3], rel=1e-11)


def test_seeds_and_distributions_have_draws_of_their_own():
    which = Distribution(3, 2, 0, "naive_bayes", 0)
    design = replace(SINGLE, n_sizes=1)
    others = [
        (replace(design, seed=1), which),
        (replace(design, mixtures=2), which._replace(mixture=1)),
        (replace(design, trainings=2), which._replace(training=1)),
        (design, which._replace(model="logistic_regression")),
    ]
    first = run_distribution(design, which).estimates
    for design, other in others:
        found = run_distribution(design, other).estimates
        assert not np.isin(found[:, :-1], first[:, :-1]).any(), other


# -- the published code, point by point ------------------------------------------------------------


def sample_of(s, y, low=0.0, high=1.0):
    s = np.asarray(s, float)
    return Sample(s, np.asarray(y, np.uint8), None, low, high, np.arange(s.size)).sorted()


def once(estimator, sample):
    rows = np.arange(sample.n, dtype=np.int32)[None]
    return float(estimator.subsets(estimator.prepare(sample, sample.n), rows)[0])


def test_the_farther_centre_gets_the_larger_share():
    # Centres of two bins are 0.25 and 0.75; of a miss at 0.35, 0.2 goes to the near one.
    estimator = PublishedBinned(2, "uniform", "convex")
    sample = sample_of([0.35, 0.9], [0, 0])
    # 0.9 is beyond the last centre: all of it there. All gaps are negative, so shares show in sums.
    assert once(estimator, sample) == pytest.approx((0.35 + 0.9) / 2)
    sample = sample_of([0.35, 0.9], [0, 1])
    # Lower bin: -0.2 * 0.35. Upper: -0.8 * 0.35 + 0.1.
    assert once(estimator, sample) == pytest.approx((0.07 + 0.18) / 2)


@pytest.mark.parametrize(
    ("s", "goes_to"),
    # On the first of three centres: to the last bin; on another: to the bin before.
    [
        (nextafter(0.125, 0), 0), (0.125, 2), (nextafter(0.125, 1), 1), (nextafter(0.375, 0), 0),
        (0.375, 0), (nextafter(0.375, 1), 2), (nextafter(0.75, 0), 1), (0.75, 1),
        (nextafter(0.75, 1), 2),
    ],
)  # fmt: skip
def test_a_score_on_a_centre_goes_to_the_bin_before(s, goes_to):
    centres = np.array([[0.125, 0.375, 0.75]])
    # The first bin has 1 of another row, the last -1: the size of a gap falls where they differ.
    for gap, meets in ((-0.25, 0), (0.25, 2)):
        value = swapped_convex(np.array([[0.0, s, 1.0]]), np.array([[1.0, gap, -1.0]]), centres)
        assert 3 * value[0] == pytest.approx(1.75 if goes_to == meets else 2.25)


def test_bins_of_equal_mass_have_edges_at_equal_counts_and_the_last_takes_the_rest():
    # Seven rows, three bins: edges behind the second and the fourth row.
    estimator = PublishedBinned(3, "quantile", "hard")
    s = np.arange(1, 8) / 10
    value = once(estimator, sample_of(s, [1, 1, 0, 0, 1, 0, 1]))
    assert value == pytest.approx((2 - 0.3 + 0.7 + abs(2 - 1.8)) / 7)
    # Equal scores stay together, in the bin that begins with them.
    value = once(estimator, sample_of([0.1, 0.2, 0.2, 0.2, 0.4, 0.5, 0.6], [0, 1, 1, 1, 0, 0, 0]))
    assert value == pytest.approx((0.1 + (3 - 0.6) + 1.5) / 7)
    value = once(estimator, sample_of([0.5] * 7, [1, 1, 0, 0, 1, 0, 1]))
    assert value == pytest.approx(0.5 / 7)


@pytest.mark.parametrize("mapping", ["hard", "convex"])
def test_bins_of_equal_mass_need_as_many_rows(mapping):
    estimator = PublishedBinned(3, "quantile", mapping)
    for n in (1, 2):
        assert isnan(once(estimator, sample_of([0.1, 0.7][:n], [1, 0][:n])))
    assert not isnan(once(estimator, sample_of([0.1, 0.3, 0.7], [1, 0, 1])))


def test_hard_bins_in_the_confidence_setting_are_those_of_the_unit_interval():
    named = {contestant.name: contestant for contestant in published_contestants()}
    sample = sample_of([0.55, 0.58, 0.62, 0.95], [1, 0, 1, 0], 0.5, 1.0)
    drawn = Drawn(sample, np.arange(4, dtype=np.int32)[None])
    # [0.5, 0.6), [0.6, 0.7), [0.9, 1]; on [0.5, 1] the first two rows would be apart.
    want = (abs(1 - 0.55 - 0.58) + 0.38 + 0.95) / 4
    assert named["ece_10"].values([drawn])[0] == pytest.approx(want)
    want = (0.45 + 0.58 + 0.38 + 0.95) / 4
    assert named["ece_c_10"].values([drawn])[0] != pytest.approx(want, abs=1e-3)


def test_every_class_has_the_bandwidth_of_the_first():
    rng = np.random.default_rng(0)
    spread = [rng.random(60), 0.5 + 0.1 * rng.random(60)]
    samples = [sample_of(s, rng.random(60) < s) for s in spread]
    rows = np.arange(60, dtype=np.int32)[None]
    named = {contestant.name: contestant for contestant in published_contestants()}
    for order in (samples, samples[::-1]):
        problems = [(m.s.tolist(), m.y.tolist(), 0.0, 1.0) for m in order]
        found = named["ece_kde_silverman"].values([Drawn(m, rows) for m in order])[0]
        assert found == pytest.approx(cases.published("ece_kde_silverman", problems), rel=1e-3)
        own = cases.reference_kde.kde_error(problems[1], kernel="triweight")
        first = cases.reference_kde.kde_error(problems[0], kernel="triweight")
        assert abs(found - (first + own) / 2) > 0.01 * found


def test_the_published_kernel_is_a_triweight_and_its_grid_makes_no_difference():
    rng = np.random.default_rng(3)
    s = rng.beta(3, 1, 400)
    y = rng.random(400) < s**2
    for contestant in published_contestants()[-3:]:
        kde = contestant.estimator
        assert kde.kernel == "triweight"
        published = replace(kde, grid_step=6 / 2**14)
        found = ece(y, s, estimator=kde)
        assert found == pytest.approx(ece(y, s, estimator=published), rel=2e-4)


@pytest.mark.parametrize("mapping", ["hard", "convex"])
@pytest.mark.parametrize("n_bins", [1, 3, 10, "sqrt"])
def test_evaluate_of_the_published_bins_is_what_subsets_say(mapping, n_bins):
    rng = np.random.default_rng(1)
    s = rng.integers(0, 21, 40) / 20
    sample = sample_of(s, rng.random(40) < s)
    for edges in ("uniform", "quantile"):
        estimator = PublishedBinned(n_bins, edges, mapping)
        plan = estimator.prepare(sample, 25)
        rows = rng.integers(0, 40, (6, 25)).astype(np.int32)
        found = estimator.subsets(plan, rows)
        for row, value in zip(rows, found, strict=True):
            c = np.bincount(row, minlength=40)
            assert estimator.evaluate(plan, c) == value
            drawn = np.sort(row)
            problem = sample.s[drawn].tolist(), sample.y[drawn].tolist(), 0.0, 1.0
            loops = {
                ("uniform", "hard"): cases.unit_bins,
                ("quantile", "hard"): cases.counted_bins,
                ("uniform", "convex"): cases.swapped_uniform,
                ("quantile", "convex"): cases.swapped_counted,
            }[edges, mapping]
            assert value == pytest.approx(loops(problem, n_bins), abs=1e-14)


def test_the_published_bins_have_no_weights():
    sample = replace(sample_of([0.1, 0.2], [0, 1]), v=np.ones(2))
    with pytest.raises(ValueError, match="no weights"):
        PublishedBinned(2, "uniform", "hard").prepare(sample, 2)


def test_where_the_published_weights_are_the_right_ones_they_agree():
    # Half way between two centres both shares are a half.
    sample = sample_of([0.5, 0.5, 0.5], [0, 1, 0])
    problem = [0.5] * 3, [0, 1, 0], 0.0, 1.0
    want = reference.error(problem, n_bins=2, mapping="convex")
    assert once(PublishedBinned(2, "uniform", "convex"), sample) == pytest.approx(want)
    assert Fraction(want).limit_denominator(100) == Fraction(1, 6)


# -- the same bits ---------------------------------------------------------------------------------

FILES = cases.TABLES + cases.PICTURES


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of TINY, run at one go by one process, and what was returned."""
    folder = tmp_path_factory.mktemp("study") / "whole"
    return folder, run_study(TINY, folder, n_jobs=1)


def test_the_files_of_a_study(whole):
    folder, result = whole
    names = {path.name for path in folder.iterdir()}
    assert names == {*FILES, "timings.csv", "distributions"}
    cells = {f"{which.file_name}.parquet" for which in TINY.distributions}
    assert {path.name for path in (folder / "distributions").iterdir()} == cells
    assert len(cells) == len(TINY.distributions) == 16
    assert result.evaluations == 16 * 2 * 15 * 2 * 4
    for name in cases.PICTURES:
        start = (folder / name).read_bytes()[:300]
        assert start.startswith(b"\x89PNG") if name.endswith("png") else b"<svg" in start, name


def test_two_processes_give_the_same_bits(whole, tmp_path):
    run_study(TINY, tmp_path / "two", n_jobs=2)
    cases.assert_same_files(tmp_path / "two", whole[0], FILES)


def test_a_pool_of_threads_gives_the_same_bits_and_leaves_threads_as_they_were(
    whole, tmp_path, monkeypatch
):
    cases.with_quick_figures(monkeypatch.setattr)
    before = [(pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    for i in range(3):
        with ThreadPoolExecutor(3) as pool:
            run_study(TINY, tmp_path / f"pool{i}", executor=pool)
        cases.assert_same_files(tmp_path / f"pool{i}", whole[0], cases.TABLES)
    after = [(pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    assert after == before


def test_an_interrupted_study_goes_on_with_the_same_bits(whole, tmp_path, monkeypatch):
    folder, wrote = tmp_path / "interrupted", []
    original = Store.write

    def interrupt(self, which, table):
        if len(wrote) % 6 == 5:
            wrote.append(None)
            raise KeyboardInterrupt
        wrote.append(which)
        original(self, which, table)

    monkeypatch.setattr(Store, "write", interrupt)
    times = 0
    while True:
        try:
            run_study(TINY, folder)
            break
        except KeyboardInterrupt:
            times += 1
    done = [which for which in wrote if which is not None]
    assert times == 3
    assert done == TINY.distributions  # none twice
    cases.assert_same_files(folder, whole[0], FILES)


def test_a_finished_study_is_only_put_together_again(whole, monkeypatch):
    folder, result = whole
    before = contents(folder, FILES)
    monkeypatch.setattr(
        "fastece.study.study.run_distribution", lambda *_: pytest.fail("computed again")
    )
    with monkeypatch.context() as patch:
        cases.with_quick_figures(patch.setattr)
        again = run_study(TINY, folder)
    for name in ("values", "summary"):
        assert getattr(again, name).equals(getattr(result, name)), name
    assert str(again) == str(result)  # the mean rank of zero is nan, which equals nothing
    assert again.seconds == result.seconds
    assert contents(folder, cases.TABLES) == {name: before[name] for name in cases.TABLES}
    for name in cases.PICTURES:
        (folder / name).write_bytes(before[name])


def test_executor_and_processes_exclude_each_other(tmp_path):
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ValueError, match=r"n_jobs.*executor"),
    ):
        run_study(TINY, tmp_path / "both", n_jobs=2, executor=pool)
    with pytest.raises(TypeError, match="executor: must have a method submit"):
        run_study(TINY, tmp_path / "none", executor=3)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_one_distribution_reaches_the_caller(tmp_path, monkeypatch):
    def fail(design, which):
        if which == TINY.distributions[3]:
            raise ZeroDivisionError("broken on purpose")
        return run_distribution(design, which)

    monkeypatch.setattr("fastece.study.study.run_distribution", fail)
    with pytest.raises(ZeroDivisionError, match="broken on purpose"):
        run_study(TINY, tmp_path / "failed")
    with (
        ThreadPoolExecutor(2) as pool,
        pytest.raises(ZeroDivisionError, match="broken on purpose"),
    ):
        run_study(TINY, tmp_path / "failed in a pool", executor=pool)
    assert len(list((tmp_path / "failed" / "distributions").iterdir())) == 3


def test_values_of_a_study_are_those_of_its_distributions(whole):
    _, result = whole
    rows = iter(result.values.to_pylist())
    for which in TINY.distributions[::5]:
        outcome = run_distribution(TINY, which)
        mine = {
            (row["setting"], row["estimator"], row["n"]): row
            for row in result.values.to_pylist()
            if all(row[name] == value for name, value in which._asdict().items())
        }
        assert len(mine) == 2 * 16 * 2
        for s, setting in enumerate(TINY.settings):
            for e, name in enumerate([*FIFTEEN, "zero"]):
                for i, n in enumerate(TINY.sizes):
                    row = mine[setting, name, n]
                    assert row["truth"] == outcome.truth[s, 0]
                    assert row["truth_labels"] == outcome.truth[s, 1]
                    assert row["mean"] == pytest.approx(outcome.estimates[s, e, i].mean())
    assert next(rows)["n_classes"] == TINY.classes[0]
    zero = [row for row in result.summary.to_pylist() if row["estimator"] == "zero"]
    assert {row["p95_relative_error"] for row in zero} == {1.0}
    assert {row["median_abs_log_ratio"] for row in zero} == {inf}
    assert {row["relative_bias"] for row in zero} == {-1.0}
