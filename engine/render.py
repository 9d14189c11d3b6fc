"""`avatar-engine render`: a picture and a voice become an MP4 file, without a screen.

The same chunker, chunk loop and models as live, in this process; reading, generating, decoding and
encoding overlap, and memory does not grow with length. Knows nothing of sockets or sessions.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.audio import Chunker
from engine.audio_file import AudioFile
from engine.chunk_loop import ChunkLoop, Models
from engine.clock import FPS, HEIGHT, SAMPLE_RATE, WIDTH
from engine.decoder import DecodedChunk
from engine.errors import EngineError
from engine.framebus import FrameBus
from engine.gpus import parse
from engine.log import LOG
from engine.model_factory import ModelFactory
from engine.mp4 import Mp4Writer
from engine.progress_line import ProgressLine
from engine.protocol.character import CharacterSpec, Settings
from engine.protocol.character_file import read_character
from engine.rank_start import RankStart
from engine.stats import StageStats

SYNTHETIC = "synthetic weights"
PICTURE_CODES = ("bad_picture", "no_face", "face_unusable")
PIECE = SAMPLE_RATE  # longest piece of sound handed on at once: the chunker's ring holds 4 s
# Nobody waits for a frame here, and in chunks of four the encoder reads its weights once for all of
# them: 14.1 against 16.1 ms of CPU a frame (bench portrait, 2 cores of an AMD EPYC).
OFFLINE: dict[str, dict[str, float]] = {"portrait": {"frames_per_chunk": 4.0}}


class Render:
    """One run: `run(audio)` feeds the loop and returns when the file is complete."""

    def __init__(self, models: Models, writer: Mp4Writer, bus: FrameBus) -> None:
        self.stats = StageStats()
        self.frames = 0
        self.first_chunk_s = 0.0
        self._writer = writer
        self._begun = time.monotonic()
        self._error: BaseException | None = None
        self._end_frame: int | None = None
        self._chunks_out = threading.Semaphore(3)  # as many in flight as a live session has
        generator = models.generator
        self._chunker = Chunker(generator.frames_per_chunk, generator.lookahead_samples)
        self._bus = bus
        self._loop = ChunkLoop(self._bus, self._deliver, self._failed)
        self._loop.swap(models)

    def run(self, audio: AudioFile, progress: Callable[[int], None]) -> int:
        """Feed all of the sound; returns its length in samples."""
        samples = 0
        for piece in _at_most(audio, PIECE):
            self._writer.sound(piece)
            self._chunker.append(samples, piece)
            samples += len(piece)
            self._feed(progress)
        self._chunker.finish()
        # The frame that the last sample begins is known before its chunk is made.
        self._end_frame = self._chunker.end_frame
        self._feed(progress)
        while not self._loop.finish(0.2):
            self._raise()
            progress(self.frames)
        self._raise()
        self._writer.finish()
        for ms in self._writer.encode_ms:
            self.stats.add({"mux": ms})
        return samples

    def abort(self) -> None:
        self._loop.close()
        self._writer.abort()

    def _feed(self, progress: Callable[[int], None]) -> None:
        while (chunk := self._chunker.next_chunk()) is not None:
            while not self._chunks_out.acquire(timeout=0.2):
                self._raise()
                progress(self.frames)
            self._raise()
            self._loop.put(1, chunk)
            progress(self.frames)

    def _deliver(self, chunk: DecodedChunk) -> None:
        """On the decoder thread: hand the pictures to the encoder, slots come back from there."""
        if self.first_chunk_s == 0:
            self.first_chunk_s = time.monotonic() - self._begun
        self.stats.add(chunk.stage_ms)
        for i, slot in enumerate(chunk.slots):
            frame = chunk.latents.first_frame + i
            if self._end_frame is not None and frame >= self._end_frame:
                self._loop.pool.release([slot])
                continue
            self.frames += 1
            self._writer.video(frame, self._bus.view(slot), _releaser(self._loop, slot))
        self._chunks_out.release()

    def _failed(self, error: BaseException) -> None:
        self._error = error

    def _raise(self) -> None:
        if isinstance(self._error, EngineError):
            raise self._error
        if self._error is not None:
            raise EngineError(
                "internal", f"the model failed: {type(self._error).__name__}: {self._error}"
            ) from self._error


def render_command(options: argparse.Namespace) -> dict[str, Any]:
    """The whole command; returns what --json prints. Raises EngineError."""
    spec, picture = _subject(options)
    spec = msgspec.structs.replace(spec, settings=_settings(options, spec.settings))
    if options.synthetic:
        options.out = named_synthetic(options.out)
    _check_out(options.out)
    audio = AudioFile(options.audio)  # before the slow part: bad input is told at once
    line = ProgressLine()
    factory: ModelFactory | None = None
    try:
        begun = time.monotonic()
        chosen = {"synthetic": 1.0} if options.synthetic else dict(OFFLINE.get(options.model, {}))
        if options.decoder == "taehv":
            chosen["tiny"] = 1.0
        bus = FrameBus.create()
        factory = ModelFactory(options.model, chosen, options.folders, _ranks(options, bus))
        if factory.licence:
            LOG.info("%s; licence: %s", factory.line, factory.licence)
        try:
            _, models = factory.load(picture, spec, line.say, lambda: False)
        except EngineError as error:
            if error.code not in PICTURE_CODES or options.image is None:
                raise
            named = f"{options.image.name}: {error.message}"
            raise EngineError(error.code, named, error.hint) from error
        ingest_s = time.monotonic() - begun
        result = _render(options, audio, models, line, bus)
        if factory.licence:
            result |= {"checkpoint": factory.line, "licence": factory.licence}
    finally:
        if factory is not None:
            factory.close()
        line.end()
        audio.close()
    return result | {"ingest_ms": round(1000 * ingest_s, 1)}


def _render(
    options: argparse.Namespace,
    audio: AudioFile,
    models: Models,
    line: ProgressLine,
    bus: FrameBus,
) -> dict[str, Any]:
    comment = SYNTHETIC if getattr(models.generator, "synthetic", False) else ""
    run = Render(models, Mp4Writer(options.out, comment), bus)
    begun = time.monotonic()
    try:
        samples = run.run(audio, lambda frames: line.frames(frames, audio.duration_s))
    except BaseException:  # also Ctrl-C: nothing broken is left behind
        run.abort()
        raise
    elapsed = time.monotonic() - begun
    duration = samples / SAMPLE_RATE
    line.show(f"wrote {options.out}: {run.frames} frames in {elapsed:.1f} s", at_once=True)
    return {
        "frames": run.frames, "fps": FPS, "duration_s": round(duration, 6), "width": WIDTH,
        "height": HEIGHT, "model": options.model, "realtime_factor": round(duration / elapsed, 3),
        "elapsed_s": round(elapsed, 3), "first_chunk_ms": round(1000 * run.first_chunk_s, 1),
        "stages": run.stats.summary(), "synthetic": bool(getattr(models.generator, "synthetic", 0)),
        "out": str(options.out),
    }  # fmt: skip


def _ranks(options: argparse.Namespace, bus: FrameBus) -> RankStart | None:
    gpus = parse(options.gpus)
    if gpus.total == 1:
        return None
    return RankStart(
        gpus, bus, options.folders, options.model_module, LOG.info,
        lambda error: LOG.error("%s", error),  # the next call of the group raises it
    )  # fmt: skip


def _subject(options: argparse.Namespace) -> tuple[CharacterSpec, bytes]:
    if options.character is not None:
        return read_character(options.character)
    try:
        return CharacterSpec(name=options.image.stem), options.image.read_bytes()
    except OSError as error:
        raise EngineError(
            "bad_picture", f"{options.image} cannot be read ({error.strerror})",
            "choose a picture file",
        ) from error  # fmt: skip


def _settings(options: argparse.Namespace, base: Settings) -> Settings:
    """`mouth=1.2,head=0.5` on top of the character's own; --seed on top of that."""
    values = msgspec.structs.asdict(base)
    for pair in filter(None, options.settings.split(",")):
        name, _, text = pair.partition("=")
        try:
            known, value = values[name.strip()], float(text)
            values[name.strip()] = type(known)(value)
        except (KeyError, ValueError, OverflowError) as error:
            raise EngineError(
                "bad_input", f"setting {pair!r} is not understood",
                f"use name=number with {', '.join(values)}",
            ) from error  # fmt: skip
        if not 0 <= value <= 2 and name.strip() != "seed":
            raise EngineError("bad_input", f"setting {pair!r} is out of range", "use 0 to 2")
    if options.seed is not None:
        values["seed"] = options.seed
    return Settings(**values)


def named_synthetic(out: Path) -> Path:
    """What random weights made says so in its file's name, whatever name was asked for."""
    return out if SYNTHETIC in out.stem else out.with_stem(f"{out.stem} ({SYNTHETIC})")


def _check_out(out: Path) -> None:
    if out.suffix.lower() != ".mp4":
        raise EngineError("bad_input", f"{out} does not end in .mp4", "name the file NAME.mp4")
    if not out.parent.is_dir() or out.is_dir():
        raise EngineError("bad_input", f"{out} cannot be written", "choose an existing folder")


def _at_most(audio: AudioFile, count: int) -> Any:
    for piece in audio.pieces():
        for at in range(0, len(piece), count):
            yield np.ascontiguousarray(piece[at : at + count])


def _releaser(loop: ChunkLoop, slot: int) -> Callable[[], None]:
    return lambda: loop.pool.release([slot])
