"""torchvision's compiled part is found under every name that it has had; without one, a message says what to do."""

import pytest
import torch

from suite.base import torchvision_ops
from suite.base.errors import SpecError
from suite.base.exit_codes import describe_signal


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A torchvision without a compiled part, the first that is found."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "torchvision", raising=False)
    monkeypatch.setattr(torchvision_ops, "_library", None)
    return tmp_path / "torchvision"


@pytest.mark.parametrize("name", ["_C.so", "_C_stable.so", "_C.abi3.so", "_C.cpython-313-x86_64-linux-gnu.so"])
def test_the_compiled_part_is_loaded_and_no_schema_declared_beside_it(package, name, monkeypatch):
    loaded = []
    monkeypatch.setattr(torch.ops, "load_library", loaded.append)
    (package / name).touch()
    torchvision_ops.make_torchvision_importable()
    assert loaded == [str(package / name)]
    assert torchvision_ops._library is None


def test_without_a_compiled_part_the_message_names_the_folder_and_the_versions(package):
    with pytest.raises(SpecError, match=r"torchvision has no compiled part: expected one file _C\*\.so.*pip install"):
        torchvision_ops.make_torchvision_importable()


def test_memory_is_blamed_for_the_one_signal_that_it_sends():
    assert "out of memory" in describe_signal(9)
    assert describe_signal(6).startswith("SIGABRT (compiled code gave up")
    assert (describe_signal(15), describe_signal(99)) == ("SIGTERM", "signal 99")
