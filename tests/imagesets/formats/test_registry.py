"""The registry of storage formats."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import imagesets.formats
from imagesets.formats import find_format
from suite.spec.resources import StorageFormat


def test_every_module_with_a_format_is_one_that_commands_offer_and_the_other_way_round():
    modules = Path(imagesets.formats.__file__).parent.glob("*.py")
    assert {path.stem for path in modules if "\nFORMAT = " in path.read_text()} == set(get_args(StorageFormat))


def test_no_format_imports_ffcv_or_webdataset_before_it_is_used():
    names = [name for name in get_args(StorageFormat) if find_format(name)]
    code = f"import sys; from imagesets.formats import find_format; [find_format(name) for name in {names}]; "
    code += "print(sorted({'ffcv', 'webdataset'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_looking_up_where_a_set_lies_imports_no_torch():
    code = "import sys, imagesets.prepared, imagesets.formats; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
