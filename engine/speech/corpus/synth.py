"""Synthesised speech whose phone times are exact: flite, festival and espeak-ng voices.

Training tools only; each needs its Debian package. Knows nothing of features or nets.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.speech.corpus.clip import Clip, Segment, normalised
from engine.speech.corpus.phone_maps import FESTIVAL, festival_to_arpabet
from engine.speech.corpus.recordings import read_audio
from engine.speech.corpus.texts import words_of
from engine.speech.encoded import PHONE_INDEX

FESTIVAL_VOICES = {
    "ked_diphone": "en",
    "lp_diphone": "it",
    "pc_diphone": "it",
    "czech_dita": "cs",
    "czech_krb": "cs",
    "czech_machac": "cs",
    "czech_ph": "cs",
    "suo_fi_lj_diphone": "fi",
    "hy_fi_mv_diphone": "fi",
    "upc_ca_ona_hts": "ca",
}


def flite(voice: str, texts: list[str]) -> Iterator[Clip]:
    """`flite -psdur` prints every phone's end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "say.wav"
        for text in texts:
            said = " ".join(words_of(text))
            command = ["flite", "-voice", voice, "-psdur", "-t", said, "-o", str(path)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            phones = chained(re.findall(r"([a-z]+):([0-9.]+)", printed), "en")
            pcm = read_audio(path)
            if phones and len(pcm) > 12_000:
                yield Clip("flite", voice, "en-us", normalised(pcm), phones, text)


def chained(ends: list[tuple[str, str]], language: str) -> list[Segment] | None:
    """(phone, end time) pairs -> segments; None when a phone is unknown."""
    out: list[Segment] = []
    start = 0.0
    for name, end in ends:
        phone = festival_to_arpabet(name, language)
        if phone is None:
            return None
        out.append((phone, start, float(end)))
        start = float(end)
    return out


def festival(voice: str, texts: list[str]) -> Iterator[Clip]:
    """Festival writes each utterance's segments beside its sound."""
    language = FESTIVAL_VOICES[voice]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "say.scm"
        lines = [f"(voice_{voice})"]
        for i, text in enumerate(texts):
            said = re.sub(r'["\\]', "", text)
            lines.append(
                f'(set! u (utt.synth (Utterance Text "{said}")))'
                f'(utt.save.segs u "{folder}/{i}.lab")(utt.save.wave u "{folder}/{i}.wav" \'riff)'
            )
        script.write_bytes("\n".join(lines).encode(*_encoding(language)))
        subprocess.run(["festival", "-b", str(script)], capture_output=True, check=False)
        for i, text in enumerate(texts):
            if (clip := _festival_clip(Path(folder) / str(i), voice, language, text)) is not None:
                yield clip


def _encoding(language: str) -> tuple[str, str]:
    return {"cs": "iso-8859-2"}.get(language, "iso-8859-15"), "ignore"


def _festival_clip(stem: Path, voice: str, language: str, text: str) -> Clip | None:
    label = stem.with_suffix(".lab")
    if not label.exists() or not stem.with_suffix(".wav").exists():
        return None
    rows = [line.split() for line in label.read_text("latin-1").splitlines()]
    ends = [(row[2], row[0]) for row in rows if len(row) == 3]
    phones = chained(ends, language)
    if not phones:
        return None
    pcm = normalised(read_audio(stem.with_suffix(".wav")))
    return Clip("festival", voice, language, pcm, phones, text)


def unknown_phones(names: list[str], language: str) -> set[str]:
    """Which of a festival voice's phones the map lacks."""
    assert language in FESTIVAL
    return {n for n in names if (festival_to_arpabet(n, language) or "?") not in PHONE_INDEX}


def closures_moved_back(pcm: np.ndarray, phones: list[Segment]) -> list[Segment]:
    """espeak-ng marks P T K CH after their closure: move the start back over the silence.

    Over frames below -42 dB, at most 100 ms, leaving the phone before at least 20 ms.
    """
    step = 120  # 5 ms at 24 kHz
    power = (pcm[: len(pcm) // step * step].reshape(-1, step) ** 2).mean(1)
    level = 20 * np.log10(np.sqrt(power) + 1e-5)
    names = [p for p, _, _ in phones]
    starts, ends = [a for _, a, _ in phones], [b for _, _, b in phones]
    for i in range(1, len(phones)):
        if names[i] not in ("P", "T", "K", "CH") or names[i - 1] == "SIL":
            continue
        first = at = int(starts[i] / 0.005)
        while 0 < at <= len(level) and first - at < 20 and level[at - 1] < -42:
            if at * 0.005 <= starts[i - 1] + 0.02:
                break
            at -= 1
        starts[i] = ends[i - 1] = min(starts[i], at * 0.005)
    return list(zip(names, starts, ends, strict=True))
