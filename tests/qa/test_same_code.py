"""What makes another program of a node's: each difference is told, none is passed over."""

from __future__ import annotations

import os

import msgspec
import pytest

from engine.__main__ import THREAD_VARIABLES
from engine.qa import same_code
from engine.qa.same_code import Identity, difference, identity
from engine.qa.workers import one_core
from tests.qa.conftest import needs_models

HERE = Identity("1.0", "a" * 64, "b" * 64, "x86_64", {"numpy": "2.4.6", "av": "18.0"}, "Z80")


def test_the_same_is_the_same():
    assert difference(HERE, HERE) == ""
    assert difference(msgspec.structs.replace(HERE, processor="6502"), HERE) == ""


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"program": "0.9"}, "it has avatar-studio 0.9, here is 1.0"),
        ({"ruler": "c" * 64}, "its ruler is cccccccccccc"),
        ({"code": "c" * 64}, "its code or assets are cccccccccccc"),
        ({"machine": "aarch64"}, "it is aarch64, here is x86_64"),
        ({"libraries": {"numpy": "2.3.0", "av": "18.0"}}, "it has numpy 2.3.0, here is 2.4.6"),
        ({"libraries": {"numpy": "2.4.6"}}, "it has av not installed, here is 18.0"),
    ],
)
def test_each_difference_is_told(fields, said):
    assert said in difference(msgspec.structs.replace(HERE, **fields), HERE)


@needs_models
def test_this_process_is_itself():
    mine = identity(None)
    assert difference(identity(None), mine) == ""
    assert mine.libraries["numpy"][0].isdigit()
    assert identity(None, ("no-such-package",)).libraries["no-such-package"] == "not installed"
    assert msgspec.json.decode(msgspec.json.encode(mine), type=Identity) == mine


def test_code_is_told_by_its_bytes_and_names(tmp_path, monkeypatch):
    package = tmp_path / "engine"
    (package / "portrait").mkdir(parents=True)
    (tmp_path / "assets" / "motion").mkdir(parents=True)
    (package / "portrait" / "warp.py").write_text("one")
    monkeypatch.setattr(same_code, "PACKAGE", package)
    seen = [same_code._all_code()]
    (package / "portrait" / "warp.py").write_text("two")
    seen.append(same_code._all_code())
    (package / "portrait" / "warp.py").rename(package / "portrait" / "wrap.py")
    seen.append(same_code._all_code())
    (tmp_path / "assets" / "motion" / "phones.toml").write_text("M = 1")
    seen.append(same_code._all_code())
    assert len(set(seen)) == 4


def test_a_process_computes_with_one_thread_whatever_it_was_told(monkeypatch):
    """Two threads add in another order: landmarks move by up to 0.09 px."""
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "4")
    one_core()
    assert {os.environ[name] for name in THREAD_VARIABLES} == {"1"}
