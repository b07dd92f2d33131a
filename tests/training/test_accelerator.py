"""GPUs that are not NVIDIA's are refused in a line, and one module alone names ``torch.cuda``."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from launchers import grid
from suite.base.errors import RunError
from suite.base.exit_codes import Exit
from suite.spec.resources import Resources
from suite.training.distributed import check_device

ROOT = Path(__file__).parents[2]
NAMES_IT = {"suite/training/accelerator.py"}


def test_no_other_module_names_torch_cuda():
    packages = ("suite", "launchers", "leaderboards", "datasets")
    modules = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    found = {str(path.relative_to(ROOT)) for path in modules if re.search(r"torch\.(cuda|mps|xpu)\b", path.read_text())}
    assert found == NAMES_IT


@pytest.mark.parametrize(
    ("kind", "said"), [("mps", "torch sees Apple's MPS"), ("xpu", "torch sees an Intel XPU"), (None, "torch sees none")]
)
def test_a_gpu_that_is_no_cuda_is_refused_in_a_line_with_the_cure(monkeypatch, tmp_path, capsys, kind, said):
    found = SimpleNamespace(is_available=lambda: kind is not None, current_accelerator=lambda: torch.device(kind))
    monkeypatch.setattr(torch, "accelerator", found)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(grid, "_visible_gpus", list)
    with pytest.raises(RunError, match=said):
        check_device(Resources(device="gpu"))
    command = ["--suite", "sample_efficiency", "--profile", "smoke", "--device", "gpu", "--runs", str(tmp_path)]
    assert grid.main(command) == Exit.FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert "use --device cpu" in line
    assert not list(tmp_path.iterdir())
