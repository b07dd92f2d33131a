"""Networks that are none of the suite's leave it as its own do: timm reads timm's, and code runs only where trusted."""

import pytest
import timm
import torch

from suite.api import load_model
from suite.base.errors import SpecError
from suite.export.__main__ import main
from suite.export.folder import export, load_folder
from suite.plugins.find_plugin import find_model
from suite.store.run_directory import RunDirectory
from suite.training.checkpoint import save_weights
from suite.training.start import start_network

CODE = """
from torch import nn

def tiny(*, num_classes, image_size, dim=4):
    return nn.Sequential(nn.Conv2d(3, dim, image_size), nn.Flatten(), nn.Linear(dim, num_classes))
"""


@pytest.fixture
def finish(tmp_path, make_custom_model):
    def finish(source, **options):
        experiment = make_custom_model(source, options)
        run = RunDirectory.of(tmp_path / "runs", experiment)
        run.create(experiment)
        network = start_network(run, experiment, 10)
        save_weights(network.state_dict(), run.weights_path)
        return run, network.eval()

    return finish


def logits(network):
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return network(images)


@pytest.mark.parametrize(("name", "options"), [("resnet10t", {}), ("vit_tiny_patch16_224", {"depth": 2})])
def test_timm_reads_its_own_models_from_an_exported_folder(finish, record, tmp_path, name, options):
    run, network = finish(find_model(f"timm:{name}"), **options)
    record(run)
    assert export(run, tmp_path / "out")
    loaded = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True).eval()
    torch.testing.assert_close(logits(loaded), logits(network), rtol=0, atol=0)
    card = (tmp_path / "out/README.md").read_text()
    assert f"timm:{name}@timm==" in card
    assert "sample_efficiency" in card


def test_a_file_s_model_is_read_back_once_its_code_is_trusted_and_by_the_api(finish, record, tmp_path, capsys):
    (tmp_path / "tiny.py").write_text(CODE)
    run, network = finish(find_model(f"{tmp_path}/tiny.py:tiny"), dim=6)
    record(run)
    assert main([str(run.path), "--to", str(tmp_path / "out")]) == 0
    _, lines = capsys.readouterr().out.split(":\n\n", maxsplit=1)
    assert lines.replace(str(tmp_path / "out"), "DIR") in (tmp_path / "out/README.md").read_text()
    loaded = {}
    exec(lines, loaded)
    torch.testing.assert_close(logits(loaded["model"]), logits(network), rtol=0, atol=0)
    with pytest.raises(SpecError, match=r"loading it runs its code.*trust_code=True"):
        load_folder(tmp_path / "out")
    torch.testing.assert_close(logits(load_model(run.path)), logits(network), rtol=0, atol=0)
