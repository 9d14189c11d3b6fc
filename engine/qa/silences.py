"""Gives loud parts of an aligner's silences back to the phones beside them.

An English acoustic model that meets a final vowel of another language (French "un") may call most
of it silence: in 17 of 49 aligned clips of the set a pause held 30 to 360 ms of voice as loud
as speech, and a mouth that rightly stayed open there was scored as open in a pause. Knows the
sound's level only: nothing of voices or of how phones were found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.clock import SAMPLE_RATE
from engine.qa.alignment import Alignment, Row, Word

HOP = SAMPLE_RATE // 100
LOUD_DB = 10.0  # below the loud fifth of the speech; decaying rooms of the set stay 11 dB below
QUIET_DBFS = -60.0  # never voice
LEAST_HOPS = 3  # 30 ms: shorter is a click
STOPS = ("P", "B", "T", "D", "K", "G", "CH", "JH", "M")  # short by nature, or lips that must meet


def levels_db(pcm: np.ndarray) -> np.ndarray:
    """[n] dBFS of each 10 ms, over 30 ms, of 48 kHz mono."""
    count = len(pcm) // HOP
    power = (np.asarray(pcm[: count * HOP], np.float64).reshape(count, HOP) ** 2).mean(1)
    return 10 * np.log10(np.convolve(power, np.ones(3) / 3, "same") + 1e-12)


def without_voice_in_pauses(found: Alignment, pcm: np.ndarray) -> Alignment:
    """The same with silences cut to where the sound [samples] at 48 kHz is quiet. Times that are
    exact by construction are left alone."""
    spoken = np.zeros(len(pcm) // HOP, bool)
    for name, start, end in found.rows:
        spoken[start // HOP : end // HOP] |= name != "SIL"
    if found.exact or not spoken.any():
        return found
    level = levels_db(pcm)
    loud = level > max(QUIET_DBFS, np.percentile(level[spoken], 80) - LOUD_DB)
    rows = found.rows
    for i, (name, start, end) in enumerate(rows):
        if name != "SIL":
            continue
        before, after = rows[i - 1] if i else None, rows[i + 1] if i + 1 < len(rows) else None
        first, last = start // HOP, min(len(loud), end // HOP)
        runs = _runs(loud[first:last])
        if runs and after and runs[-1][1] == last - first and after[0] not in (*STOPS, "SIL"):
            end = (first + runs.pop()[0]) * HOP
            rows[i + 1] = (after[0], end, after[2])
        if runs and before and before[0] not in (*STOPS, "SIL"):
            start = (first + runs[-1][1]) * HOP
            rows[i - 1] = (before[0], before[1], start)
        rows[i] = (name, start, end)
    words = tuple(_with_ends(word, found, rows) for word in found.words)
    return found.with_rows(rows, words, found.samples)


def _runs(loud: np.ndarray) -> list[tuple[int, int]]:
    """Start and end of each run of LEAST_HOPS and more."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud.astype(int), [0]])))
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return [(a, b) for a, b in pairs if b - a >= LEAST_HOPS]


def _with_ends(word: Word, found: Alignment, rows: list[Row]) -> Word:
    """The word with the new ends of its first and last phones."""
    first = np.searchsorted(found.starts, word.start, side="right") - 1
    last = np.searchsorted(found.ends, word.end, side="left")
    start = rows[first][1] if found.starts[first] == word.start else word.start
    at_end = last < len(rows) and found.ends[last] == word.end
    return replace(word, start=start, end=rows[last][2] if at_end else word.end)
