"""espeak-ng through its C library, which tells every phoneme's time. GPL-3: a training tool only.

One library instance a process (it keeps global state). Knows nothing of features or nets.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import soxr

from engine.speech.corpus.clip import Clip, Segment, normalised
from engine.speech.corpus.phone_maps import ipa_to_arpabet
from engine.speech.corpus.synth import closures_moved_back
from engine.speech.resample import ENCODER_RATE

PHONEME_EVENT = 7
SHORTEST_PAUSE = 0.06  # s
VARIANTS = """
Alex Alicia Andrea Andy Annie Denis Diogo Gene Henrique Hugo Jacky Lee Marco Mario Michael
Mike Mr Nguyen adam anika antonio aunty belinda benjamin boris caleb david ed edward f1 f2
f3 f4 f5 grandma grandpa gustave iven john klatt klatt2 klatt3 linda m1 m2 m3 m4 m5 m6 m7
m8 marcelo max michel miguel norbert pablo paul pedro quincy rob robert sandro shelby
steph steph2 travis victor zac
""".split()  # noqa: SIM905 (a list would take a page)
# fmt: off
# voice -> whose texts it reads (a foreign text still gives exact phone times)
LANGUAGES = {"en-us": "en", "en-gb": "en", "es": "es", "es-419": "es", "fr": "fr", "it": "it",
             "cs": "cs", "nl": "nl", "de": "nl", "pl": "cs", "pt": "es", "sv": "nl"}
# fmt: on


class _Name(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("text", ctypes.c_char_p), ("ipa", ctypes.c_char * 8)]


class _Event(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("id", ctypes.c_uint),
        ("at", ctypes.c_int),
        ("length", ctypes.c_int),
        ("ms", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user", ctypes.c_void_p),
        ("name", _Name),
    ]


_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


class Espeak:
    """Speaks and remembers when each phoneme began."""

    def __init__(self) -> None:
        self._library: Any = ctypes.CDLL("libespeak-ng.so.1")
        self._rate = self._library.espeak_Initialize(1, 0, None, 3)  # phoneme events, in IPA
        self._pieces: list[np.ndarray] = []
        self._events: list[tuple[float, str]] = []
        self._callback = _CALLBACK(self._heard)
        self._library.espeak_SetSynthCallback(self._callback)

    def _heard(self, samples: Any, count: int, events: Any) -> int:
        if count > 0:
            self._pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        i = 0
        while events[i].type != 0:
            if events[i].type == PHONEME_EVENT:
                raw = ctypes.string_at(ctypes.addressof(events[i].name), 8).split(b"\0")[0]
                self._events.append((events[i].ms / 1000, raw.decode("utf-8", "replace")))
            i += 1
        return 0

    def speak(self, text: str, voice: str, rate: int, pitch: int, span: int) -> Clip | None:
        """One sentence by one `language+variant` voice; None where the voice is missing."""
        self._pieces.clear()
        self._events.clear()
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            return None
        for parameter, value in ((1, rate), (3, pitch), (4, span)):
            self._library.espeak_SetParameter(parameter, value, 0)
        data = text.encode() + b"\0"
        self._library.espeak_Synth(data, len(data), 0, 1, 0, 1, None, None)
        self._library.espeak_Synchronize()
        if sum(map(len, self._pieces)) < self._rate // 2:
            return None
        pcm = np.concatenate(self._pieces).astype(np.float32) / 32768
        pcm = normalised(soxr.resample(pcm, self._rate, ENCODER_RATE))
        phones = closures_moved_back(pcm, self._segments())
        return Clip("espeak", f"espeak-{voice}", voice.split("+")[0], pcm, phones, text)

    def _segments(self) -> list[Segment]:
        out: list[Segment] = []
        for (start, ipa), (end, _) in zip(self._events, self._events[1:], strict=False):
            phones = [] if ipa.startswith("(") else ipa_to_arpabet(ipa)
            if not phones and out and end - start < SHORTEST_PAUSE:  # a glottal stop: no rest
                out[-1] = (out[-1][0], out[-1][1], end)
                continue
            phones = phones or ["SIL"]
            edges = np.linspace(start, end, len(phones) + 1)
            for i, phone in enumerate(phones):
                out.append((phone, float(edges[i]), float(edges[i + 1])))
        return out
