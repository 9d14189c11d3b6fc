"""Other ears for the portrait's motion: the clip's own alignment, or another lip-sync system.

Everything behind the ear (coarticulation, renderer, head) stays ours, so that a run compares ears.
Systems that tell lip classes are given one phone a class. They run on the whole clip beforehand,
which a live session could not do. Needs npm packages for two of them (see `engine.speech.peers`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from engine.audio_file import read_whole
from engine.clock import FPS, SAMPLE_RATE
from engine.errors import EngineError
from engine.motion.phone_track import EXACT, Phone, imitate
from engine.qa.alignment import read_alignment
from engine.qa.jobs import Job
from engine.speech import peers
from engine.speech.classes import CLOSED, LABIO, NARROW, OPEN, REST, ROUND
from engine.speech.corpus.clip import Clip, normalised
from engine.speech.encoded import EncodedSpeech
from engine.speech.resample import ENCODER_RATE

PHONE_OF_CLASS = {REST: "SIL", CLOSED: "M", LABIO: "F", NARROW: "IH", OPEN: "AA", ROUND: "UW"}
TOOLS = "qa-tools"  # folder of node_modules in the cache folder
INSTALL = "npm install --prefix {} rhubarb-lip-sync-wasm@0.1.8 @met4citizen/headaudio@0.1.0"


class ToldSpeech:
    """An encoder whose phones are told beforehand; loudness and pitch are still heard."""

    def __init__(self, encoder: Any, told: EncodedSpeech) -> None:
        self._encoder = encoder
        self._told = told
        self._frame = 0
        self.latency_samples = getattr(encoder, "latency_samples", 0)

    def push(self, pcm: np.ndarray) -> EncodedSpeech:
        """As many frames as the real one gives; after the told ones' end, their last frame."""
        heard: EncodedSpeech = self._encoder.push(pcm)
        frames = np.arange(self._frame, self._frame + len(heard))
        self._frame += len(heard)
        frames = np.minimum(frames, len(self._told) - 1)
        return replace(
            heard, posteriors=self._told.posteriors[frames], speech=self._told.speech[frames]
        )

    def reset(self) -> None:
        self._encoder.reset()
        self._frame = 0


def speech_of(job: Job, generator: Any, tools: Path) -> None:
    """Makes a portrait generator hear what the job's drive says of its clip.

    Raises EngineError where the drive has nothing to say or is not installed.
    """
    told = imitate(phones_of(job, tools), quality=EXACT)
    generator.hear_with(ToldSpeech(generator.encoder, told))


def phones_of(job: Job, tools: Path) -> list[Phone]:
    """What the drive says is spoken."""
    if job.configuration.drive == "phones":
        if not job.alignment:
            why = job.no_phones or "the clip has no alignment"
            raise EngineError("bad_input", f"drive phones: {why}", "give it a text")
        return read_alignment(Path(job.alignment)).phones
    return phones_of_classes(shower(job.configuration.drive, tools)(_clip(job)))


def shower(drive: str, tools: Path) -> Callable[[Clip], np.ndarray]:
    """Clip -> lip class a frame. Raises EngineError where it is not installed."""
    if drive == "loudness":
        return peers.loudness
    package = {"rhubarb": "rhubarb-lip-sync-wasm", "headaudio": "@met4citizen/headaudio"}[drive]
    if not (tools / "node_modules" / package).is_dir():
        raise EngineError("bad_config", f"{drive} is not installed", INSTALL.format(tools))
    function = peers.rhubarb if drive == "rhubarb" else peers.headaudio
    return lambda clip: function(tools, clip)


def phones_of_classes(classes: np.ndarray) -> list[Phone]:
    """[n] lip class a frame -> a phone for each run of equal ones."""
    edges = [0, *(np.flatnonzero(np.diff(classes)) + 1), len(classes)]
    return [
        Phone(PHONE_OF_CLASS[int(classes[a])], float(a / FPS), float(b / FPS))
        for a, b in pairwise(edges)
    ]


def _clip(job: Job) -> Clip:
    pcm = soxr.resample(read_whole(Path(job.audio)), SAMPLE_RATE, ENCODER_RATE)
    return Clip("qa", "", job.language, normalised(pcm), [])
