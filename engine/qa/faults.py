"""Faults planted on purpose into the motion of a mouth that is otherwise driven by the truth.

A fault changes mouth coefficients alone; head, eyes and brows go on. The same seed plants the
same fault. Knows nothing of pixels or scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d

from engine.clock import FPS, SAMPLES_PER_FRAME
from engine.motion.mapping import MOUTH, SpeechToMotion
from engine.motion.phone_track import EXACT, Phone, imitate
from engine.portrait.coefficients import COUNT, INDEX
from engine.qa.scores import Truth
from engine.speech.classes import LIP_OF_PHONE
from engine.speech.encoded import PHONES

CONTACTS = [INDEX[n] for n in ("mouthClose", "seal", "mouthRollUpper", "mouthRollLower")]
JAW, SEAL, CLOSE = INDEX["jawOpen"], INDEX["seal"], INDEX["mouthClose"]
LATE_FRAMES = (1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8)
# Our motion leads real speakers by this much (`python -m engine.qa.lead`, tune split: the mean of
# both predictors). The reference is driven this much later, so that a fault of +1 frame is as wrong
# as one of -1. Work it out again whenever engine/motion changes; a test holds it to 0.3 frame.
LEAD_S = 0.009
JITTER_S = 2 / FPS
LEAST_PHONE_S = 0.02
LOUD_RANGE_DB = 35.0


@dataclass(frozen=True, slots=True)
class Subject:
    """A clip to plant faults in: its truth, another clip's phones, and whether heads move."""

    truth: Truth
    other: tuple[Phone, ...]
    seed: int
    moving: bool

    @property
    def phones(self) -> tuple[Phone, ...]:
        assert self.truth.phones is not None
        return self.truth.phones


Plant = Callable[[Subject], np.ndarray]


@dataclass(frozen=True, slots=True)
class Fault:
    """`plant` gives tokens [n, COUNT]; `late` frames where the offset should be recovered, None
    where there is none; `graver_than` names a milder fault of the same kind."""

    name: str
    plant: Plant
    late: float | None = None
    graver_than: str = ""


def driven(
    subject: Subject, phones: tuple[Phone, ...], count: int, lead_s: float = LEAD_S
) -> np.ndarray:
    """[count, COUNT] tokens of a mouth that knows these phones exactly, `lead_s` later."""
    still = {"head": 0.0, "blink": 0.0, "gaze": 0.0, "expression": 0.0}
    motion = SpeechToMotion({} if subject.moving else still, seed=subject.seed)
    heard = [Phone(p.name, p.start_s + lead_s, p.end_s + lead_s) for p in phones]
    heard[0] = Phone(heard[0].name, 0.0, heard[0].end_s)
    speech = imitate(heard, seed=subject.seed, quality=EXACT)
    tokens = np.zeros((count, COUNT), np.float32)
    made = motion.step(speech)[:count]
    tokens[: len(made)] = made
    tokens[len(made) :] = made[-1]
    if not subject.moving:
        # Breath too: frames whose mouths are alike are then alike altogether.
        tokens[:, MOUTH.stop :] = 0
    return tokens


def reference(subject: Subject) -> np.ndarray:
    return driven(subject, subject.phones, subject.truth.frames)


def with_mouth(subject: Subject, mouth: np.ndarray) -> np.ndarray:
    """The reference's head and eyes with another mouth [n, mouth coefficients]."""
    tokens = reference(subject)
    tokens[:, MOUTH] = mouth
    return tokens


def late(frames: int) -> Plant:
    """The mouth comes `frames` late (early when negative); the ends are held."""

    def plant(subject: Subject) -> np.ndarray:
        mouth = reference(subject)[:, MOUTH]
        at = np.clip(np.arange(len(mouth)) - frames, 0, len(mouth) - 1)
        return with_mouth(subject, mouth[at])

    return plant


def frozen(jaw: float) -> Plant:
    def plant(subject: Subject) -> np.ndarray:
        tokens = reference(subject)
        tokens[:, MOUTH] = 0
        tokens[:, JAW], tokens[:, SEAL] = jaw, 1.0
        return tokens

    return plant


def other_clip(subject: Subject) -> np.ndarray:
    """Another sentence's mouth, repeated until the sound ends."""
    count = subject.truth.frames
    mouth = driven(subject, subject.other, round(subject.other[-1].end_s * FPS))[:, MOUTH]
    return with_mouth(subject, mouth[np.arange(count) % len(mouth)])


def sine(hz: float) -> Plant:
    def plant(subject: Subject) -> np.ndarray:
        tokens = frozen(0.0)(subject)
        phase = 2 * np.pi * hz * np.arange(len(tokens)) / FPS
        tokens[:, JAW] = np.round(0.2 * (1 - np.cos(phase)), 5)
        return tokens

    return plant


def swapped(share: float) -> Plant:
    """This share of the phones is spoken with a phone of another lip class; pauses stay."""

    def plant(subject: Subject) -> np.ndarray:
        rng = np.random.default_rng(subject.seed)
        phones = []
        for phone in subject.phones:
            name = phone.name
            if name != "SIL" and rng.random() < share:
                others = [p for p in PHONES[1:] if LIP_OF_PHONE[p] != LIP_OF_PHONE[name]]
                name = others[rng.integers(len(others))]
            phones.append(Phone(name, phone.start_s, phone.end_s))
        return driven(subject, tuple(phones), subject.truth.frames)

    return plant


def jittered(subject: Subject) -> np.ndarray:
    """Every boundary moves by up to two frames; order and least lengths are kept."""
    rng = np.random.default_rng(subject.seed)
    phones = subject.phones
    inner = np.array([p.start_s for p in phones[1:]])
    inner = np.sort(inner + rng.uniform(-JITTER_S, JITTER_S, len(inner)))
    edges = np.concatenate([[phones[0].start_s], inner, [phones[-1].end_s]])
    edges = np.maximum.accumulate(edges + LEAST_PHONE_S * 1e-3 * np.arange(len(edges)))
    moved = [Phone(p.name, a, b) for p, a, b in zip(phones, edges[:-1], edges[1:], strict=True)]
    return driven(subject, tuple(moved), subject.truth.frames)


def amplitude(share: float) -> Plant:
    """Every movement at this share; contacts, which are made or not, stay."""

    def plant(subject: Subject) -> np.ndarray:
        tokens = reference(subject)
        kept = tokens[:, CONTACTS].copy()
        tokens[:, MOUTH] *= share
        tokens[:, CONTACTS] = kept
        return tokens

    return plant


def smoothed(sigma_ms: float) -> Plant:
    def plant(subject: Subject) -> np.ndarray:
        mouth = reference(subject)[:, MOUTH].astype(np.float64)
        sigma = sigma_ms * FPS / 1000
        return with_mouth(subject, gaussian_filter1d(mouth, sigma, axis=0, mode="nearest"))

    return plant


def loudness_only(subject: Subject) -> np.ndarray:
    """The jaw follows the sound's level and nothing else moves."""
    count = subject.truth.frames
    pcm = np.zeros(count * SAMPLES_PER_FRAME)
    heard = subject.truth.pcm[: len(pcm)]
    pcm[: len(heard)] = heard
    power = (pcm.reshape(count, -1) ** 2).mean(1) + 1e-9
    level = 10 * np.log10(power)
    top = float(np.percentile(level, 95))
    tokens = frozen(0.0)(subject)
    tokens[:, JAW] = 0.4 * np.clip(1 + (level - top) / LOUD_RANGE_DB, 0, 1) ** 2
    return tokens


FAULTS: tuple[Fault, ...] = (
    Fault("reference", reference, 0.0),
    *(
        Fault(f"late {k:+d}", late(k), k, f"late {k - k // abs(k):+d}" if abs(k) in (2, 3) else "")
        for k in LATE_FRAMES
    ),
    Fault("frozen shut", frozen(0.0)),
    Fault("frozen open", frozen(0.25)),
    Fault("another clip", other_clip),
    Fault("sine 4 Hz", sine(4.0)),
    Fault("swap 25 %", swapped(0.25), 0.0),
    Fault("swap 50 %", swapped(0.5), None, "swap 25 %"),
    Fault("swap 100 %", swapped(1.0), None, "swap 50 %"),
    Fault("jitter", jittered, 0.0),
    Fault("amplitude 60 %", amplitude(0.6), 0.0),
    Fault("amplitude 30 %", amplitude(0.3), 0.0, "amplitude 60 %"),
    Fault("smoothing 80 ms", smoothed(80.0), 0.0),
    Fault("loudness only", loudness_only, 0.0),
)
BY_NAME: dict[str, Fault] = {fault.name: fault for fault in FAULTS}
