"""Phones as arrays: look-ups agree with a loop over phones, and bad files are one line."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from engine.errors import EngineError
from engine.qa.alignment import Word, alignment_of, read_alignment, write_alignment
from engine.speech.encoded import PHONES

ROWS = [("B", 4800, 9600), ("AA", 9600, 20000), ("SIL", 20000, 24000), ("SIL", 24000, 34000)]


def made():
    return alignment_of(ROWS, (Word("bah", 4800, 20000),), 40_000)


def test_gaps_become_silence_and_the_clip_is_covered():
    found = made()
    assert found.names == ("SIL", "B", "AA", "SIL", "SIL", "SIL")
    assert found.starts[0] == 0
    assert found.ends[-1] == 40_000
    assert (found.starts[1:] == found.ends[:-1]).all()


def test_lookup_agrees_with_a_loop():
    found = made()
    times = np.random.default_rng(1).integers(-5000, 50_000, 500)
    for t, index in zip(times, found.at(times), strict=True):
        slow = [n for n, a, b in ROWS if a <= t < b]
        assert PHONES[index] == (slow[0] if slow else "SIL")


def test_frames_look_at_their_centres():
    assert [PHONES[i] for i in made().frames(6)] == ["SIL", "SIL", "B", "B", "B", "AA"][:1] + [
        PHONES[i] for i in made().at(np.arange(1, 6) * 2000 + 1000)
    ]


def test_pauses_join_neighbouring_silences():
    found = made()
    assert found.pauses(9600).tolist() == [[20000, 40000]]
    assert found.pauses(4800).tolist() == [[0, 4800], [20000, 40000]]
    assert found.pauses(30_000).shape == (0, 2)


def test_moved_phones_are_found_later():
    found, later = made(), made().moved(4000)
    times = np.arange(4000, 40_000, 100)
    assert (later.at(times) == found.at(times - 4000)).all()
    assert later.ends[-1] == 40_000
    assert later.words[0].start == 8800
    early = found.moved(-6000)
    assert early.spans(["B"]).tolist() == [[0, 3600]]


def test_file_round_trip(tmp_path):
    write_alignment(tmp_path / "a.json", "a", made())
    back = read_alignment(tmp_path / "a.json")
    assert back.names == made().names
    assert (back.starts == made().starts).all()
    assert back.words == made().words


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("format", 2, "format 2"),
        ("sample_rate", 44_100, "44100 Hz"),
        ("samples", 41_000, "gaps"),
        ("phones", [["XX", 0, 40_000]], "XX"),
        ("phones", [["AA", 100, 40_000]], "gaps"),
        ("phones", "none", "array"),
    ],
)
def test_damage_is_one_line(tmp_path, field, value, word):
    path = tmp_path / "a.json"
    write_alignment(path, "a", made())
    data = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**data, field: value}))
    with pytest.raises(EngineError, match=word) as caught:
        read_alignment(path)
    assert caught.value.code == "bad_config"
    assert "\n" not in str(caught.value)


def test_missing_file_and_backward_phone(tmp_path):
    with pytest.raises(EngineError) as caught:
        read_alignment(tmp_path / "no.json")
    assert caught.value.code == "missing_asset"
    with pytest.raises(EngineError, match="backwards"):
        alignment_of([("AA", 10, 5)], (), 20)
