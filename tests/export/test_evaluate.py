"""Saved weights on other test sets, in small files of their authors' layouts."""

import csv
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from imagesets.loader import ImageLoader
from launchers.evaluate import COLUMNS, _write_board, main
from suite.base.files import sha256_of
from suite.evaluation import _synsets
from suite.training.distributed import Ranks
from suite.training.measure.evaluate import evaluate

CPU = Ranks(0, 1, torch.device("cpu"))


def call(capsys, *words):
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def draw_images(folder, names, size=40, count=2):
    generator = np.random.default_rng(0)
    for name in names:
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = generator.integers(0, 256, (size, size + 8, 3), np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


@pytest.fixture
def run(make_run, tmp_path):
    """A run, its network, and its own test images as arrays."""
    run, network = make_run(tmp_path, "deit_micro", {"patch_size": 8, "depth": 1})
    images = ImageLoader(run.read_experiment())
    pixels = np.stack([images._test.whole(index) for index in range(images.num_test)])
    return run, network, pixels, images.test_labels, evaluate(network, images, CPU, "fp32")


def test_its_own_test_images_as_cifar_10_1_give_the_numbers_of_its_own_evaluation(run, tmp_path, capsys):
    run, _, pixels, labels, expected = run
    np.save(tmp_path / "cifar10.1_v6_data.npy", pixels)
    np.save(tmp_path / "cifar10.1_v6_labels.npy", labels.astype(np.int32))
    (line,) = call(capsys, run.id, "--source", tmp_path / "cifar10.1_v6_data.npy", "--runs", tmp_path)
    assert (line["top1_percent"], line["top5_percent"]) == (expected.top1_percent, expected.top5_percent)
    assert line["test_loss"] == pytest.approx(expected.loss, rel=1e-6)
    assert (line["images"], line["classes"], line["own_top1_percent"]) == (len(labels), 10, 41.25)


def test_each_corruption_and_severity_of_cifar_10_c_is_a_line_of_the_board(run, tmp_path, capsys):
    run, _, pixels, labels, _ = run
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    np.save(folder / "labels.npy", np.tile(labels[:20], 5))
    for name in ("fog", "snow"):
        np.save(folder / f"{name}.npy", np.concatenate([pixels[:20] // (1 + severity) for severity in range(5)]))
    for _ in range(2):  # the second call's lines take the first one's place
        lines = call(capsys, run.path, "--source", folder, "--runs", tmp_path)
    assert [line["part"] for line in lines] == [f"{name}/{n}" for name in ("fog", "snow") for n in range(1, 6)]
    with (tmp_path / "leaderboards/other_sets.csv").open() as file:
        board = list(csv.DictReader(file))
    assert [(line["network"], line["source"], line["images"]) for line in board] == [
        (run.id, f"{tmp_path.name}/CIFAR-10-C", "20")
    ] * 10
    assert main([run.id, "--source", str(folder / "fog.npy"), "--runs", str(tmp_path)]) == 0
    assert "fog/5" in capsys.readouterr().out


def test_sets_of_one_folder_name_have_lines_of_their_own(run, tmp_path, capsys):
    run, *_ = run
    for count, name in enumerate(("one", "two"), start=1):
        draw_images(tmp_path / name / "val", ["0", "1"], count=count)
        call(capsys, run.path, "--source", tmp_path / name / "val", "--runs", tmp_path)
    with (tmp_path / "leaderboards/other_sets.csv").open() as file:
        assert {line["source"]: line["images"] for line in csv.DictReader(file)} == {"one/val": "2", "two/val": "4"}


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.array([-1] + [0] * 9), "the test set has classes -1 to 0, expected 0 to 9"),
        (np.full(10, 0.7), "cannot be read as a test set: Cannot cast"),
        (np.zeros((10, 1), int), "has the shape (10, 1), expected a label an image"),
        (np.int64(3), "cannot be read as a test set"),
        (None, "cannot be read as a test set"),
    ],
)
def test_labels_that_are_none_are_refused_in_a_line(run, tmp_path, capsys, labels, words):
    run, _, pixels, *_ = run
    np.save(tmp_path / "x_data.npy", pixels[:10])
    if labels is None:
        (tmp_path / "x_labels.npy").write_bytes(b"")
    else:
        np.save(tmp_path / "x_labels.npy", labels)
    assert main([run.id, "--source", str(tmp_path / "x_data.npy"), "--runs", str(tmp_path)]) == 1
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_part_of_the_severities_and_a_folder_without_any_are_refused(run, tmp_path, capsys):
    run, _, pixels, *_ = run
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    np.save(folder / "labels.npy", np.zeros(12, int))
    words = [run.id, "--source", str(folder), "--runs", str(tmp_path)]
    assert main(words) == 1
    assert "CIFAR-10-C holds no test set" in capsys.readouterr().err
    np.save(folder / "fog.npy", pixels[:12])
    assert main(words) == 1
    assert "expected a label an image in 5 equal parts" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("answers", ["[[-5]]", "[[1.5]]", '[["a"]]', "[3]", "[" * 100_000])
def test_answers_that_are_none_are_refused_in_a_line(run, tmp_path, capsys, answers):
    run, *_ = run
    draw_images(tmp_path, ["images"], count=1)
    (tmp_path / "images/0.png").rename(tmp_path / "images/ILSVRC2012_val_00000001.png")
    (tmp_path / "real.json").write_text(answers)
    words = ["--source", str(tmp_path / "real.json"), "--images", str(tmp_path / "images"), "--runs", str(tmp_path)]
    assert main([run.id, *words]) == 1
    assert "real.json" in capsys.readouterr().err


def test_weights_that_are_not_there_are_named(tmp_path, capsys):
    words = ["--weights", str(tmp_path / "x.safetensors"), "--source", "s", "--runs", str(tmp_path)]
    assert main(["timm:resnet18", *words]) == 2
    assert "timm:resnet18 with " in capsys.readouterr().err


def test_folders_of_classes_by_number_or_name_are_read_and_a_part_of_them_is_told_apart_alone(run, tmp_path, capsys):
    run, *_ = run
    draw_images(tmp_path / "v2", [str(number) for number in range(10)])
    draw_images(tmp_path / "r", ["cat", "dog"])
    (whole,) = call(capsys, run.id, "--source", tmp_path / "v2", "--runs", tmp_path)
    assert (whole["classes"], whole["images"], whole["part"]) == (10, 20, "")
    (part,) = call(capsys, run.id, "--source", tmp_path / "r", "--runs", tmp_path)
    assert (part["classes"], part["images"], part["top5_percent"]) == (2, 4, 100.0)
    (tmp_path / "r/frog").mkdir()  # none of its images is in the sample
    (part,) = call(capsys, run.id, "--source", tmp_path / "r", "--runs", tmp_path)
    assert (part["classes"], part["images"]) == (3, 4)
    draw_images(tmp_path / "c/fog/1", ["cat", "dog"], size=32)
    draw_images(tmp_path / "c/fog/2", ["cat", "dog"], size=32)
    lines = call(capsys, run.id, "--source", tmp_path / "c", "--runs", tmp_path)
    assert [line["part"] for line in lines] == ["fog/1", "fog/2"]


def test_timm_s_weights_are_an_anchor_on_real_and_on_folders_of_synsets(tmp_path, capsys):
    import timm

    torch.manual_seed(0)
    network = timm.create_model("test_vit").eval()
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    anchor = ("timm:test_vit", "--weights", tmp_path / "weights.safetensors", "--runs", tmp_path)
    draw_images(tmp_path / "set", _synsets(), size=12, count=1)
    (line,) = call(capsys, *anchor, "--source", tmp_path / "set")
    assert line["network"] == f"timm:test_vit, weights.safetensors {sha256_of(tmp_path / 'weights.safetensors')[:8]}"
    assert (line["images"], line["classes"], line["own_top1_percent"]) == (1000, 1000, None)
    transform = timm.data.create_transform(**timm.data.resolve_data_config(model=network))
    val = tmp_path / "val"
    val.mkdir()
    paths = []
    for number, path in enumerate(sorted((tmp_path / "set").rglob("*.png"))[:4], start=1):
        paths.append(shutil.copy(path, val / f"ILSVRC2012_val_{number:08d}.png"))
    with torch.no_grad():
        best = network(torch.stack([transform(Image.open(path)) for path in paths])).argmax(1).tolist()
    answers = [[best[0]], [(best[1] + 1) % 1000], [], [best[3], 5]]
    (tmp_path / "real.json").write_text(json.dumps(answers))
    (line,) = call(capsys, *anchor, "--source", tmp_path / "real.json", "--images", val)
    assert (line["images"], line["top1_percent"], line["top5_percent"]) == (3, pytest.approx(200 / 3), None)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: draw_images(path, ["zebra"]), "found ['zebra']"),
        (lambda path: path.mkdir(), "has no folders of the network's classes"),
        (lambda path: path.with_suffix(".json").write_text("[[1]]"), "name the folder"),
        (lambda path: np.save(path.with_name("x_data.npy"), np.zeros((3, 8, 8, 3))), "x_labels.npy"),
    ],
)
def test_what_is_no_test_set_is_named_before_anything_is_written(run, tmp_path, capsys, make, said):
    make(tmp_path / "set")
    (source,) = [one for one in tmp_path.iterdir() if one.name.startswith(("set", "x_"))]
    assert main([run[0].id, "--source", str(source), "--runs", str(tmp_path)]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "leaderboards").exists()


def line_of(network, source, top1):
    return dict(zip(COLUMNS, (network, source, "", 10, 100, top1, 90.0, 1.0, None), strict=True))


def test_evaluations_that_end_at_once_all_have_their_lines(tmp_path):
    board = tmp_path / "other_sets.csv"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _write_board(board, [line_of(f"run-{number}", "set", 50.0)]), range(8)))
    assert len(board.read_text().splitlines()) == 9


def test_a_name_that_a_spreadsheet_would_take_for_a_formula_has_one_line(tmp_path):
    for top1 in (50.0, 51.0):
        _write_board(tmp_path / "other_sets.csv", [line_of("run", "-real", top1)])
    with (tmp_path / "other_sets.csv").open() as file:
        assert [line["top1_percent"] for line in csv.DictReader(file)] == ["51.0"]


@pytest.mark.parametrize(
    ("board", "said"), [("network,source\na,b\n", "begins with 'network,source'"), ("", "begins with ''")]
)
def test_a_board_of_another_form_is_refused_behind_the_result_and_stays(run, tmp_path, capsys, board, said):
    path = tmp_path / "leaderboards/other_sets.csv"
    path.parent.mkdir()
    path.write_text(board)
    draw_images(tmp_path / "v2", map(str, range(10)))
    assert main([run[0].id, "--source", str(tmp_path / "v2"), "--runs", str(tmp_path), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["images"] == 20
    assert said in err
    assert path.read_text() == board
