"""Models that are none of ours: found, pinned to a version, built, and refused with a cure."""

import base64
import hashlib
import json
import sys

import pytest
import timm
import torch

from suite.base.errors import SpecError
from suite.models.custom import takes_drop_path
from suite.models.flops import count_flops
from suite.models.registry import build_model
from suite.plugins.find_plugin import find_model, list_plugins, load_plugin
from suite.spec.custom_model import ModelSource
from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe

FILE = """
from torch import nn

class Tiny(nn.Sequential):
    def __init__(self, *, num_classes, image_size, dim=8):
        super().__init__(nn.Conv2d(3, dim, image_size), nn.Flatten(), nn.Linear(dim, num_classes))

def no_module(*, num_classes, image_size):
    return "a model"

def without_sizes(**options):
    return None

number = 3
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.py"
    path.write_text(FILE)
    return path


def build(source, **options):
    return build_model("mine", num_classes=5, image_size=8, model_source=source, **options)


def experiment(source):
    recipe = Recipe(name="short", epochs=1, batch_size=8, learning_rate=0.1)
    return Experiment(model="mine", dataset="cifar10", image_size=8, recipe=recipe, model_source=source)


def test_a_file_s_class_is_built_with_sizes_and_options_also_once_the_file_is_gone(tiny):
    source = find_model(f"{tiny}:Tiny")
    tiny.unlink()
    again = Experiment.model_validate_json(experiment(source).model_dump_json())
    network = build(again.model_source, dim=16)
    assert network(torch.zeros(2, 3, 8, 8)).shape == (2, 5)
    assert network[0].out_channels == 16


def test_an_edited_file_is_another_cell_and_an_unchanged_one_the_same(tiny):
    before = experiment(find_model(f"{tiny}:Tiny")).id
    assert experiment(find_model(f"{tiny}:Tiny")).id == before
    tiny.write_text(FILE.replace("dim=8", "dim=9"))
    assert experiment(find_model(f"{tiny}:Tiny")).id != before
    assert experiment(None).id != before


def test_code_that_was_changed_in_a_record_is_refused(tiny):
    source = find_model(f"{tiny}:Tiny")
    with pytest.raises(ValueError, match=r"the code of model Tiny was changed: found sha256:\w+, expected sha256:"):
        ModelSource(kind="file", name="Tiny", version=source.version, code=source.code + "#")


@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224"])
def test_timm_s_models_are_built_at_the_experiment_s_size_where_they_ask_for_one(name):
    network = build_model("r", num_classes=5, image_size=32, model_source=find_model(f"timm:{name}"), drop_path=0.1)
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 5)
    assert find_model(f"timm:{name}").version == f"timm=={timm.__version__}"


def test_a_module_without_a_distribution_is_pinned_by_its_source(tmp_path, monkeypatch):
    (tmp_path / "my_layers_1.py").write_text(FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    source = find_model("my_layers_1:Tiny")
    assert build(source)(torch.zeros(2, 3, 8, 8)).shape == (2, 5)
    (tmp_path / "my_layers_1.py").write_text(FILE + "# edited")
    with pytest.raises(
        SpecError, match=r"my_layers_1:Tiny is sha256:\w+ here, expected sha256:\w+, with which the run"
    ):
        build(source)


def test_a_module_of_a_distribution_is_pinned_by_its_number():
    assert find_model("timm.models.resnet:resnet18").version == f"timm=={timm.__version__}"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution with plug-ins of every kind; of the two suites one breaks."""
    (tmp_path / "zoo_1.py").write_text(FILE)
    (tmp_path / "zoo_broken_1.py").write_text("1 / 0")
    info = tmp_path / "zoo-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo\nVersion: 1.5\n")
    (info / "RECORD").write_text("zoo_1.py,,\nzoo_broken_1.py,,\n")
    groups = {"models": "tiny = zoo_1:Tiny", "suites": "broken = zoo_broken_1:SUITE\nsound = zoo_1:number"}
    text = "".join(f"[convolutional_prior.{kind}]\n{lines}\n" for kind, lines in groups.items())
    (info / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "zoo_1", raising=False)
    return info


def record(info, hash_of=FILE):
    digest = base64.urlsafe_b64encode(hashlib.sha256(hash_of.encode()).digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"zoo_1.py,sha256={digest},\nzoo_broken_1.py,,\n")


def test_a_number_counts_only_for_the_file_that_was_installed_as_it_was(installed, tmp_path, monkeypatch):
    record(installed)
    assert find_model("zoo_1:Tiny").version == "zoo==1.5"
    (tmp_path / "zoo_1.py").write_text(FILE + "# edited where it lies")
    edited = find_model("zoo_1:Tiny").version
    (tmp_path / "zoo_1.py").write_text(FILE)
    (tmp_path / "before").mkdir()
    (tmp_path / "before/zoo_1.py").write_text(FILE + "# hides the installed one")
    monkeypatch.syspath_prepend(str(tmp_path / "before"))
    hidden = find_model("zoo_1:Tiny").version
    assert {version[:7] for version in (edited, hidden, find_model("tiny").version)} == {"sha256:"}
    assert edited != hidden


@pytest.mark.parametrize("told", [{"dir_info": {"editable": True}}, {"dir_info": {}}, {"vcs_info": {"vcs": "git"}}])
def test_what_is_installed_from_a_folder_or_a_repository_is_pinned_by_its_source(installed, told):
    record(installed)
    (installed / "direct_url.json").write_text(json.dumps({"url": "file:///zoo", **told}))
    before = find_model("tiny").version
    (installed.parent / "zoo_1.py").write_text(FILE + "# edited")
    assert before.startswith("sha256:")
    assert find_model("tiny").version not in ("zoo==1.5", before)


def test_text_that_moves_from_one_file_of_a_package_into_the_next_is_another_version(tmp_path, monkeypatch):
    versions = []
    for number, texts in enumerate([("a = 1\n", "b = 2\n"), ("a = 1\nb = 2\n", "")]):
        package = tmp_path / str(number) / "my_package_1"
        package.mkdir(parents=True)
        for name, text in zip(("__init__.py", "models.py"), texts, strict=True):
            (package / name).write_text(text)
        monkeypatch.syspath_prepend(str(package.parent))
        versions.append(find_model("my_package_1.models:b").version)
    assert len(set(versions)) == 2


def test_an_installed_plug_in_is_listed_without_being_imported_and_built_by_its_name(installed):
    assert list_plugins("models") == ["tiny"]
    assert "zoo_1" not in sys.modules
    source = find_model("tiny")
    assert (source.kind, source.version) == ("entry_point", "zoo==1.5")
    assert build(source)(torch.zeros(2, 3, 8, 8)).shape == (2, 5)


def test_a_node_with_another_version_or_without_the_plug_in_refuses(installed):
    source = find_model("tiny")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo\nVersion: 1.6\n")
    with pytest.raises(SpecError, match=r"tiny is zoo==1.6 here, expected zoo==1.5"):
        build(source)
    (installed / "entry_points.txt").unlink()
    with pytest.raises(SpecError, match=r"no plug-in 'tiny' among models.*The run needs zoo==1.5: install that"):
        build(source)


def test_a_plug_in_that_breaks_is_named_and_breaks_no_other(installed):
    with pytest.raises(SpecError, match="broken breaks when it is imported: ZeroDivisionError"):
        load_plugin("suites", "broken")
    assert load_plugin("suites", "sound") == 3


def test_stochastic_depth_reaches_what_takes_it_by_name_and_any_of_timms(tmp_path):
    (tmp_path / "model.py").write_text(
        "def takes(*, num_classes, image_size, drop_path=0.0): ...\ndef takes_not(*, num_classes, **options): ...\n"
    )
    names = ("timm:resnet26", f"{tmp_path}/model.py:takes", f"{tmp_path}/model.py:takes_not")
    assert [takes_drop_path(find_model(name)) for name in names] == [True, True, False]


@pytest.mark.parametrize(
    ("words", "options", "said"),
    [
        ("{file}:no_module", {}, "builds str, expected an nn.Module"),
        ("{file}:number", {}, "is int 3; expected a class or function"),
        ("{file}:Tiyn", {}, "unknown attribute of the file 'Tiyn'. Did you mean 'Tiny'"),
        ("{file}:Tiny", {"dimm": 3}, "unknown option of model Tiny 'dimm'. Did you mean 'dim'"),
        ("{file}:Tiny", {"dim": -1}, "Tiny cannot be built for 5 classes and images of 8 pixels with {'dim': -1}"),
        ("{file}.gone.py:Tiny", {}, "cannot be read, and so not be hashed"),
        ("no_such_package:Tiny", {}, "no module 'no_such_package' on Python's path. Install it"),
        ("timm:resnet26", {"pretrained": True}, "every model starts fresh here"),
        ("timm:resnet26", {"checkpoint_path": "w.pth"}, "checkpoint_path starts from other images"),
        ("timm:resnet26tt", {}, "timm has no model 'resnet26tt'. Did you mean resnet26t"),
        ("itertools_:x", {}, "no module 'itertools_'"),
        ("zlib:compress", {}, "has no source that could be hashed"),
        ("nothing", {}, "no plug-in 'nothing' among models: expected timm:NAME"),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_name_and_the_cure(tiny, words, options, said):
    with pytest.raises(SpecError) as refused:
        build(find_model(words.format(file=tiny)), **options)
    assert said in str(refused.value)


def test_a_file_that_imports_what_lies_beside_it_is_told_to_stand_alone(tmp_path):
    (tmp_path / "model.py").write_text("from beside_it import Tiny")
    with pytest.raises(SpecError, match=r"ModuleNotFoundError.*A file stands alone"):
        build(find_model(f"{tmp_path}/model.py:Tiny"))


@pytest.mark.parametrize(
    "text",
    [
        "from my_neighbour_1 import number\n",
        "def Tiny(*, num_classes, image_size):\n    import my_neighbour_1.inner\n",
        "import importlib\nimportlib.import_module('my_neighbour' + '_1')\n",
    ],
)
def test_a_file_that_finds_what_lies_beside_it_is_refused_too_as_its_edits_would_not_count(tmp_path, monkeypatch, text):
    (tmp_path / "my_neighbour_1.py").write_text("number = 3")
    (tmp_path / "model.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_neighbour_1", raising=False)
    with pytest.raises(SpecError, match=r"file imports my_neighbour_1, which nobody has installed.*in one file, or"):
        build(find_model(f"{tmp_path}/model.py:Tiny"))


def test_a_file_may_import_what_is_installed_wherever_that_lies(installed, tmp_path):
    text = "import torch, timm.layers, suite.papers\nfrom zoo_1 import Tiny as Installed\nclass Tiny(Installed): pass\n"
    (tmp_path / "model.py").write_text(text)
    assert build(find_model(f"{tmp_path}/model.py:Tiny"))(torch.zeros(2, 3, 8, 8)).shape == (2, 5)


def test_a_file_may_import_what_another_tool_than_setuptools_has_installed_as_editable(tmp_path, monkeypatch):
    source, info = tmp_path / "a source", tmp_path / "site" / "burrow-1.0.dist-info"  # no top_level.txt, and a .pth
    for folder in (source, info):
        folder.mkdir(parents=True)
    (source / "burrow_1.py").write_text(FILE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: burrow\nVersion: 1.0\n")
    (info / "RECORD").write_text("_burrow.pth,,\n")
    (info / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": True}}))
    for folder in (source, info.parent):
        monkeypatch.syspath_prepend(str(folder))
    (tmp_path / "model.py").write_text("from burrow_1 import Tiny\n")
    assert build(find_model(f"{tmp_path}/model.py:Tiny"))(torch.zeros(2, 3, 8, 8)).shape == (2, 5)


def test_a_file_may_import_what_an_installer_has_linked_into_place(installed, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    (tmp_path / "zoo_1.py").rename(cache / "zoo_1.py")
    (tmp_path / "zoo_1.py").symlink_to(cache / "zoo_1.py")
    (tmp_path / "model.py").write_text("from zoo_1 import Tiny\n")
    assert build(find_model(f"{tmp_path}/model.py:Tiny"))(torch.zeros(2, 3, 8, 8)).shape == (2, 5)


def test_operations_are_counted_by_source_and_those_of_torch_s_own_encoder_too(tmp_path):
    (tmp_path / "model.py").write_text(
        "from torch import nn\n"
        "class Encoder(nn.Module):\n"
        "    def __init__(self, *, num_classes, image_size):\n"
        "        super().__init__()\n"
        "        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)\n"
        "    def forward(self, images):\n"
        "        return self.layer(images.flatten(2).mT.repeat(1, 1, 6)[..., :16]).mean(1)\n"
    )
    source = find_model(f"{tmp_path}/model.py:Encoder")
    flops = count_flops("mine", num_classes=16, image_size=4, model_source=source)
    tokens, dim = 16, 16
    assert flops.linear == 2 * tokens * (3 * dim * dim + dim * dim + 2 * 32 * dim)  # queries to values, output, MLP
    assert flops.total - flops.linear == 2 * 2 * tokens**2 * dim  # the map, and its product with the values


def test_operations_of_torch_s_lstm_are_counted(tmp_path):
    (tmp_path / "model.py").write_text(
        "from torch import nn\n"
        "class Memory(nn.Module):\n"
        "    def __init__(self, *, num_classes, image_size):\n"
        "        super().__init__()\n"
        "        self.layer = nn.LSTM(4, num_classes, batch_first=True)\n"
        "    def forward(self, images):\n"
        "        return self.layer(images[:, 0])[0][:, -1]\n"
    )
    source = find_model(f"{tmp_path}/model.py:Memory")
    flops = count_flops("mine", num_classes=5, image_size=4, model_source=source)
    assert flops.total == 2 * 4 * 4 * 5 * (
        4 + 5
    )  # four steps of four gates, from four inputs and the five outputs before
