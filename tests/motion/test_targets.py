from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import EngineError
from engine.motion.targets import ASSET, load_targets, parse_targets
from engine.portrait.coefficients import INDEX
from engine.speech.encoded import PHONE_INDEX, PHONES


@pytest.fixture
def tables() -> dict[str, Any]:
    return copy.deepcopy(tomllib.loads(ASSET.read_text("utf-8")))


def test_the_shipped_file_covers_every_phone() -> None:
    targets = load_targets()
    assert targets.start.shape == targets.end.shape == (len(targets.channels), len(PHONES))
    assert (targets.pull.sum(1) >= 0).all()
    assert np.isfinite(targets.pull).all()


def test_bilabials_and_labiodentals_close() -> None:
    closures = load_targets().closures
    assert {PHONES[i] for i in closures["lips"].phones} == {"P", "B", "M"}
    assert {PHONES[i] for i in closures["teeth"].phones} == {"F", "V"}
    assert closures["lips"].amounts["mouthClose"] == 1


def test_good_speech_ranges() -> None:
    """Limits found on 24 pictures; beyond them mouths look torn."""
    targets = load_targets()
    for amounts in (targets.start, targets.end):
        by = dict(zip(targets.channels, amounts, strict=True))
        assert by["jawOpen"].max() <= 0.5
        assert (by["mouthFunnel"] + by["mouthPucker"]).max() <= 0.9
        assert by["lowerLipDown"].max() <= 0.35
        assert by["upperLipUp"].max() <= 0.3


def test_shapes_contrast() -> None:
    """Vowels that a viewer tells apart differ in the coefficient that shows it."""
    targets = load_targets()
    jaw = targets.start[targets.channels.index("jawOpen")]
    pucker = targets.end[targets.channels.index("mouthPucker")]
    stretch = targets.start[targets.channels.index("mouthStretch")]
    assert jaw[PHONE_INDEX["AA"]] > 2 * jaw[PHONE_INDEX["IH"]]
    assert pucker[PHONE_INDEX["UW"]] > 0.4 > pucker[PHONE_INDEX["IY"]]
    assert stretch[PHONE_INDEX["IY"]] > 0.3 > stretch[PHONE_INDEX["UW"]]
    assert not targets.start[:, PHONE_INDEX["SIL"]].any()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: t["phones"].pop("AA"), "AA"),
        (lambda t: t["phones"]["AA"].update(jawOpen=0.9), "jawOpen = 0.9"),
        (lambda t: t["phones"]["AA"].update(jaw=0.2), "jaw"),
        (lambda t: t["phones"]["B"].update(closure="nose"), "nose"),
        (lambda t: t["phones"]["B"].update(dominance={"jaw": -1}), "negative"),
        (lambda t: t["closures"]["lips"].update(doubt=0.9), "doubt"),
        (lambda t: t["closures"]["lips"].pop("jaw_cap"), "jaw_cap"),
        (lambda t: t["articulators"]["jaw"].pop("rise_ms"), "rise_ms"),
        (lambda t: t["articulators"].pop("tongue"), "tongue"),
        (lambda t: t.pop("phones"), "phones"),
    ],
)
def test_a_wrong_entry_is_named(tables: dict[str, Any], change: Any, named: str) -> None:
    change(tables)
    with pytest.raises(EngineError, match=r"phones\.toml") as caught:
        parse_targets(tables, "phones.toml")
    assert named in str(caught.value)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        load_targets(tmp_path / "none.toml")
    assert caught.value.code == "missing_asset"
    bad = tmp_path / "bad.toml"
    bad.write_text("[phones")
    with pytest.raises(EngineError) as caught:
        load_targets(bad)
    assert caught.value.code == "bad_config"


def test_channels_are_coefficients() -> None:
    for closure in load_targets().closures.values():
        assert set(closure.amounts) <= set(INDEX)
