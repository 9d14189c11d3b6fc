"""The shipped set keeps its promises, and a changed or missing file is one clear line."""

from __future__ import annotations

import re
import shutil
from collections import Counter

import msgspec
import pytest

from engine.audio_file import read_whole
from engine.errors import EngineError
from engine.qa.clip_set import ASSETS_QA, ROOT, load_set
from engine.speech.corpus.held_out import may_train


@pytest.fixture(scope="module")
def shipped():
    return load_set()


def test_count_languages_and_size(shipped):
    assert len(shipped.clips) == 53
    assert {c.language for c in shipped.clips} == {"en", "es", "fr", "it", "ru", "cs"}
    size = sum(p.stat().st_size for p in ASSETS_QA.rglob("*") if p.is_file())
    assert size < 8_000_000


def test_every_clip_is_rich_enough(shipped):
    data = msgspec.json.decode((ASSETS_QA / "set.json").read_bytes())["clips"]
    for row in data:
        assert 2 <= row["samples"] / 48_000 <= 12, row["id"]
        assert row["bilabials"] >= 3, row["id"]
        assert row["rounded"] >= 1, row["id"]
    assert sum(row["longest_pause_ms"] >= 200 for row in data) >= 53 / 3


def test_counts_come_from_the_alignments(shipped):
    rows = msgspec.json.decode((ASSETS_QA / "set.json").read_bytes())["clips"]
    for row, clip in zip(rows, shipped.clips, strict=True):
        found = clip.alignment()
        assert len(found.spans(("P", "B", "M"))) == row["bilabials"]
        assert found.samples == clip.samples
        assert found.exact == clip.exact_times


def test_alignments_are_as_long_as_the_sound(shipped):
    for clip in shipped.clips[::7]:
        assert len(read_whole(clip.audio)) == clip.samples


def test_words_agree_between_aligners(shipped):
    """No word starts more than 150 ms apart between pocketsphinx and SoundSwallower, and four of
    five within 150 ms of Whisper's (which hears too little Czech to say)."""
    for clip in shipped.clips:
        if clip.exact_times:
            continue
        checks = clip.alignment().cross_check
        assert checks["soundswallower"]["worst_ms"] <= 150, clip.id
        assert clip.language == "cs" or checks["whisper"]["p80_ms"] <= 150, clip.id


def test_exact_times_are_four_voices_clips(shipped):
    assert sum(c.exact_times for c in shipped.clips) == 4


def test_training_is_told_truly(shipped):
    for clip in shipped.clips:
        told = "speaker" if may_train(clip.speaker, clip.language) else "no"
        assert clip.heard_in_training == told, clip.id


def test_each_language_meets_each_kind_in_the_test_split(shipped):
    for language in ("en", "es", "fr", "it", "ru", "cs"):
        clips = shipped.subset(split="test", language=language).clips
        assert {shipped.characters[c.character].kind for c in clips} == {
            "photo",
            "painting",
            "drawing",
        }, language


def test_splits_do_not_mix(shipped):
    """A test clip is never seen with a character that thresholds were chosen on."""
    for clip in shipped.clips:
        assert shipped.characters[clip.character].split == clip.split, clip.id
    texts = Counter(c.text.lower() for c in shipped.clips)
    assert max(texts.values()) == 1


def test_licences_are_listed(shipped):
    listed = (ROOT / "assets" / "LICENSES.md").read_text("utf-8")
    for clip in shipped.clips:
        assert clip.licence
        package = re.search(
            r"asterisk-core-sounds|fillets-ng|pocketsphinx-testdata|flite", clip.source
        )
        assert package and package.group() in listed, clip.id


def test_subset(shipped):
    some = shipped.subset(split="tune", language="fr")
    assert some.clips and {c.language for c in some.clips} == {"fr"}
    assert some.hash == shipped.hash
    with pytest.raises(EngineError, match="no clip of the set"):
        shipped.subset(language="de")
    with pytest.raises(EngineError, match="nobody"):
        shipped.subset(ids=["nobody"])


def test_a_changed_clip_is_one_line(tmp_path):
    folder = tmp_path / "qa"
    shutil.copytree(ASSETS_QA, folder)
    first = sorted((folder / "clips").iterdir())[0]
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(EngineError, match=first.name) as caught:
        load_set(folder)
    assert caught.value.code == "bad_config"
    load_set(folder, verify=False)
    first.unlink()
    with pytest.raises(EngineError) as caught:
        load_set(folder)
    assert caught.value.code == "missing_asset"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ((b'"split": "tune"', b'"split": "test"'), "was changed"),
        ((b'"split": "tune"', b'"split": "best"'), "damaged"),
        ((b'"format": 1', b'"format": 9'), "format 9"),
    ],
)
def test_a_changed_list_is_one_line(tmp_path, change, word):
    data = (ASSETS_QA / "set.json").read_bytes()
    assert change[0] in data
    (tmp_path / "set.json").write_bytes(data.replace(*change, 1))
    with pytest.raises(EngineError, match=word):
        load_set(tmp_path)


def test_a_missing_set_is_one_line(tmp_path):
    with pytest.raises(EngineError) as caught:
        load_set(tmp_path)
    assert caught.value.code == "missing_asset"
