"""Pauses end where voice begins, whatever the aligner said; in the shipped set as well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.audio_file import read_whole
from engine.clock import SAMPLE_RATE
from engine.qa.alignment import Word, alignment_of
from engine.qa.clip_set import load_set
from engine.qa.silences import LOUD_DB, levels_db, without_voice_in_pauses

MS = SAMPLE_RATE // 1000


def sound(*loud_ms: tuple[int, int], length_ms: int = 1000) -> np.ndarray:
    """Noise of -20 dBFS in these spans, -70 elsewhere."""
    noise = np.random.default_rng(1).normal(0, 1, length_ms * MS)
    gain = np.full(len(noise), 10 ** (-70 / 20))
    for start, end in loud_ms:
        gain[start * MS : end * MS] = 10 ** (-20 / 20)
    return noise * gain


def aligned(*rows: tuple[str, int, int], length_ms: int = 1000):
    spans = [(name, a * MS, b * MS) for name, a, b in rows]
    said = [row for row in spans if row[0] != "SIL"]
    return alignment_of(spans, (Word("w", said[0][1], said[0][2]),), length_ms * MS)


def spans_ms(found) -> list[tuple[str, int, int]]:
    return [(p.name, round(p.start_s * 1000), round(p.end_s * 1000)) for p in found.phones]


def test_voice_after_a_cut_vowel_is_the_vowels():
    found = aligned(("P", 0, 100), ("EH", 100, 200), ("SIL", 200, 600), ("AA", 600, 1000))
    made = without_voice_in_pauses(found, sound((0, 400), (600, 1000)))
    (_, _, vowel_end), (_, pause, pause_end) = spans_ms(made)[1:3]
    assert vowel_end == pause == pytest.approx(400, abs=20)
    assert pause_end == 600
    assert made.words == (Word("w", 0, 100 * MS),)


def test_an_island_after_a_vowel_is_the_vowels_too():
    found = aligned(("UH", 0, 200), ("SIL", 200, 800), ("P", 800, 1000))
    made = without_voice_in_pauses(found, sound((0, 200), (320, 560), (800, 1000)))
    assert spans_ms(made)[0][2] == pytest.approx(560, abs=20)
    assert made.words[0].end == made.ends[0]


def test_voice_before_a_vowel_is_that_vowels_but_lips_that_close_wait():
    loud = sound((0, 300), (500, 1000))
    for name, start in (("AA", 500), ("P", 600), ("M", 600)):
        found = aligned(("S", 0, 300), ("SIL", 300, 600), (name, 600, 1000))
        made = dict((n, a) for n, a, _ in spans_ms(without_voice_in_pauses(found, loud)))
        assert made[name] == pytest.approx(start, abs=20), name


def test_quiet_pauses_clicks_and_exact_times_stay():
    found = aligned(("AA", 0, 300), ("SIL", 300, 700), ("AA", 700, 1000))
    assert without_voice_in_pauses(found, sound((0, 290), (700, 1000))).phones == found.phones
    exact = replace(found, exact=True)
    assert without_voice_in_pauses(exact, sound((0, 1000))) is exact
    assert without_voice_in_pauses(found, np.zeros(1000 * MS)).phones == found.phones


def test_no_pause_of_the_set_begins_or_ends_with_voice():
    for clip in load_set().clips:
        found = clip.alignment()
        if found is None or found.exact:
            continue
        pcm = read_whole(clip.audio)
        assert without_voice_in_pauses(found, pcm).phones == found.phones, clip.id
        level = levels_db(pcm)
        spoken = np.zeros(len(level), bool)
        for name, a, b in zip(found.names, found.starts, found.ends, strict=True):
            spoken[a // 480 : b // 480] |= name != "SIL"
        bound = np.percentile(level[spoken], 80) - LOUD_DB
        inside = [level[a // 480 + 2 : b // 480 - 2] for a, b in found.pauses()]
        shares = [float((part > bound).mean()) for part in inside if len(part)]
        assert max(shares, default=0.0) <= 0.2, clip.id
