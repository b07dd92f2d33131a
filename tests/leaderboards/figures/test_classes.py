"""Predictions of two models in Table 2's rows, the figure of them, and those that no figure may use."""

import hashlib
import io
from itertools import permutations, product
from statistics import fmean

import numpy as np
import pytest

from leaderboards.boards.board import make_leaderboard
from leaderboards.figures import draw
from leaderboards.figures.classes import choose_classes, compare_classes, draw_classes, find_extremes
from leaderboards.figures.parts.predicted import PredictedPair, agreement, count_images, read_pairs
from leaderboards.significance.rules import OverImages, over_images
from leaderboards.text.notes import find_notes
from suite.base.errors import RecordError
from suite.spec.figures import ClassFigure, TwoModels
from suite.spec.profile import Place
from tests.leaderboards.conftest import finish_run, make_experiment

LABELS = np.repeat(np.arange(3), 20).astype(np.int16)
PAIRS = {
    f"{row} %": TwoModels(
        baseline=Place(row=(row,), column="deit_top1"), better=Place(row=(row,), column="convit_top1")
    )
    for row in ("5", "100")
}
FIGURE = ClassFigure(name="classes", item="ours", pairs=PAIRS, baseline="DeiT", better="ConViT")


def predict(seed, hit_rate):
    random = np.random.default_rng([seed, int(100 * hit_rate)])
    return np.where(random.random(60) < hit_rate, LABELS, random.integers(0, 3, 60)).astype(np.int16)


def zipped(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@pytest.fixture
def leave(tmp_path):
    """Leaves a finished run that keeps these predictions, or this content of the file."""

    def leave(family, row, seed, predicted=None, labels=LABELS, content=b"", top1=50.0):
        experiment = make_experiment(family, row, 32).with_seed(seed)
        if predicted is not None:
            content = zipped(predicted=predicted, labels=labels)
            top1 = 100 * (predicted == labels).sum() / (predicted >= 0).sum()
        digest = "" if content == b"" else hashlib.sha256(content).hexdigest()
        run = finish_run(tmp_path, experiment, top1, predictions_sha256=digest)
        run.predictions_path.write_bytes(content)
        return run

    return leave


@pytest.fixture
def leave_all(leave):
    def leave_all(num_seeds=5):
        for row, seed in product(("5", "100"), range(num_seeds)):
            leave("deit", row, seed, predict(seed, 0.3))
            leave("convit", row, seed, np.where(LABELS == 2, LABELS, predict(seed, 0.4)).astype(np.int16))

    return leave_all


def told(canvas):
    return " ".join(" ".join(text.get_text() for text in canvas.texts).split())


def test_the_numbers_are_those_of_a_slow_loop(table2, leave_all, tmp_path):
    leave_all()
    pair = read_pairs(FIGURE, make_leaderboard(table2, "laptop", tmp_path))[0]["5 %"]
    gains = {
        i: [int(pair.better[s][i] == LABELS[i]) - int(pair.baseline[s][i] == LABELS[i]) for s in range(5)]
        for i in range(60)
    }
    for label, (found, _) in compare_classes(pair).items():
        assert found.mean == pytest.approx(fmean(g for i in gains for g in gains[i] if label in (-1, LABELS[i])))
    for one, other in product((pair.baseline, pair.better), repeat=2):
        same, right, kappas = [], [], []
        for a, b in permutations(range(5), 2):
            runs = list(zip(one[a].tolist(), other[b].tolist(), strict=True))
            same.append(fmean(x == y for x, y in runs))
            right.append(fmean(x == y == label for (x, y), label in zip(runs, LABELS, strict=True)))
            chance = sum(fmean(x == c for x, _ in runs) * fmean(y == c for _, y in runs) for c in range(3))
            kappas.append((same[-1] - chance) / (1 - chance))
        assert agreement(one, other, LABELS) == pytest.approx((fmean(same), fmean(right), fmean(kappas)))
    counts, by_luck = count_images(pair.difference)
    expected = np.zeros(11)
    for signs in product((-1, 1), repeat=5):
        for gain in gains.values():
            expected[5 + sum(s * g for s, g in zip(signs, gain, strict=True))] += 1 / 32
    assert counts.tolist() == [sum(sum(g) == total for g in gains.values()) for total in range(-5, 6)]
    np.testing.assert_allclose(by_luck, expected)
    order = sorted(gains, key=lambda i: (-sum(gains[i]), i))
    assert find_extremes(pair, 1) == order[:5]


def test_the_figure_shows_classes_by_name_and_marks_those_that_differ(table2, leave_all, tmp_path):
    leave_all()
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    classes = draw_classes(FIGURE, leaderboard).axes[0]
    assert [label.get_text() for label in classes.get_yticklabels()][:2] == ["all classes", "bird"]
    bird = next(line for line in classes.lines if line.get_marker() == "o")
    assert bird.get_markerfacecolor() != "white"
    assert draw(FIGURE, leaderboard) == draw(FIGURE, leaderboard)


def test_few_seeds_are_not_judged_and_fewer_not_shown(table2, leave_all, leave, tmp_path):
    leave_all(2)
    assert draw(FIGURE, make_leaderboard(table2, "laptop", tmp_path)) == {}
    leave("deit", "5", 2, predict(2, 0.3))
    leave("convit", "5", 2, LABELS)
    leaderboard = make_leaderboard(table2, "laptop", tmp_path)
    assert not any(is_found for _, is_found in compare_classes(read_pairs(FIGURE, leaderboard)[0]["5 %"]).values())
    assert "Not there yet: 100 %." in told(draw_classes(FIGURE, leaderboard))


def test_runs_without_predictions_or_partner_are_counted_and_left_out(table2, leave_all, leave, tmp_path):
    leave_all()
    leave("deit", "5", 5)
    leave("convit", "5", 5, predict(5, 0.4))
    canvas = draw_classes(FIGURE, make_leaderboard(table2, "laptop", tmp_path))
    assert "Runs without predictions, left out: 1. Runs whose seed the other model lacks, left out: 1." in told(canvas)
    assert canvas.axes[0].get_title() == "5 %\n5 seeds, 60 images"


def test_runs_of_another_test_set_are_refused_by_name(table2, leave_all, leave, tmp_path):
    leave_all()
    other = leave("convit", "100", 5, LABELS[::-1].copy(), LABELS[::-1].copy())
    with pytest.raises(RecordError, match=rf"{other.predictions_path} is of other test images than .*deit.*seed-0"):
        draw(FIGURE, make_leaderboard(table2, "laptop", tmp_path))


def test_images_that_a_run_could_not_decode_are_left_out_and_so_are_classes_of_one_image(table2, leave, tmp_path):
    for family, seed in product(("deit", "convit"), range(3)):
        predicted = predict(seed, 0.5)
        predicted[:19] = -1 if family == "deit" and seed == 0 else 0
        leave(family, "5", seed, predicted)
    pair = read_pairs(FIGURE, make_leaderboard(table2, "laptop", tmp_path))[0]["5 %"]
    assert pair.images.tolist() == list(range(20, 60))
    assert list(compare_classes(pair)) == [-1, 1, 2]


def test_runs_that_always_predict_one_class_have_no_kappa():
    ones = np.ones((3, 60), dtype=np.int16)
    assert agreement(ones, ones, LABELS) == pytest.approx((1.0, 1 / 3, np.nan), nan_ok=True)
    same = PredictedPair(np.arange(60), LABELS, ones, ones)
    assert compare_classes(same)[-1] == (over_images(np.zeros((3, 60))), False)


def test_of_many_classes_those_at_both_ends_are_shown():
    found = {label: (OverImages(-label / 100, 0.1, 4, 1.0), False) for label in range(-1, 100)}
    shown, num_hidden = choose_classes([found, found])
    assert (shown, num_hidden) == ([-1, *range(15), *range(85, 100)], 70)


def bare_array():
    file = io.BytesIO()
    np.save(file, LABELS)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"cut", b"\x93NUMPY", bare_array(), zipped(predicted=LABELS), zipped(predicted=LABELS, labels=LABELS)[:-30],
        zipped(predicted=LABELS, labels=LABELS.astype(float)), zipped(predicted=LABELS[:, None], labels=LABELS),
        zipped(predicted=LABELS[1:], labels=LABELS), zipped(predicted=LABELS[:0], labels=LABELS[:0]),
        zipped(predicted=LABELS - np.int16(5), labels=LABELS), zipped(predicted=LABELS, labels=LABELS - np.int16(1)),
        zipped(predicted=np.full_like(LABELS, -1), labels=LABELS), zipped(predicted=LABELS, labels=LABELS),
        zipped(predicted=LABELS.astype(object), labels=LABELS),
    ],
)  # fmt: skip
def test_a_file_that_no_run_can_have_left_is_refused_by_name(table2, leave, tmp_path, content):
    run = leave("deit", "5", 0, content=content)
    with pytest.raises(RecordError, match=rf"cannot read {run.predictions_path}: .*Bring the file"):
        draw(FIGURE, make_leaderboard(table2, "laptop", tmp_path))


def test_a_board_says_which_competitors_draw_their_images_differently(table2, leave, tmp_path):
    def draw_by_seed(entry):
        experiment = entry.experiment.model_copy(update={"images_drawn_by_seed": True})
        return entry.model_copy(update={"experiment": experiment})

    laptop = table2.profiles["laptop"]
    entries = tuple(draw_by_seed(e) if e.row == ("5",) and "deit_top1" in e.columns else e for e in laptop.entries)
    profiles = {"laptop": laptop.model_copy(update={"entries": entries})}
    leaderboard = make_leaderboard(table2.model_copy(update={"profiles": profiles}), "laptop", tmp_path)
    (note,) = find_notes(leaderboard)["Mixed"]
    assert (note.place, note.text[:32]) == ("5", "some draw their images by seed, ")
