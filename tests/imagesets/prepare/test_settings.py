"""A request for a prepared set refuses, before anything is read or written, what cannot be."""

import pytest

from imagesets.prepare.settings import PrepareSettings
from suite.base.errors import SpecError


def test_a_password_for_the_shards_is_neither_stored_nor_repeated(tmp_path):
    fields = {"dataset": "cifar10", "out": tmp_path, "storage_format": "webdataset", "source": None}
    assert PrepareSettings(**fields, shards_url="https://host/a").shards_url == "https://host/a"
    with pytest.raises(SpecError, match=r"holds a password.*Credentials come from the environment") as refused:
        PrepareSettings(**fields, shards_url="https://user:geheim@host/a")
    assert "geheim" not in str(refused.value)
