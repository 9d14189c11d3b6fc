"""The video models as Generator and Decoder: audio -> latents -> pictures, on one GPU or a CPU.

Weights and inputs come from a `Conditioning`: synthetic ones make noise, not faces, and `synthetic`
says so to whoever shows or writes the result. Generator and decoder each own a CUDA stream, so that
chunk n is decoded while chunk n+1 is denoised. Knows nothing of wires, files or faces.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch

from engine.clock import SAMPLES_PER_FRAME
from engine.errors import EngineError
from engine.memoryplan import plan
from engine.models.base import Chunk, Latents, Progress
from engine.models.causal_dit import Way
from engine.models.causal_vae import CausalVae
from engine.models.conditioning import (
    Conditioning,
    SyntheticConditioning,
    latent_grid,
    shown_frames,
    vae_config,
)
from engine.models.denoiser import Denoiser
from engine.models.dit_config import preset, shard
from engine.models.latents import to_latent, to_tokens
from engine.models.taehv import TinyDecoder
from engine.models.vae_memory import decoder_bytes
from engine.parallel import Ranks
from kernels import ops

HANDED_OVER = 4  # latents alive at once: one made, two queued, one decoded


def default_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def kernel_path(device: torch.device) -> str:
    """For telemetry: "cuda: 13 of 13 kernels fast", or the device and why the truth is used."""
    paths = ops.paths(device)
    slow = [why for why in paths.values() if why != "fast"]
    fast = f"{device.type}: {len(paths) - len(slow)} of {len(paths)} kernels fast"
    return f"{fast}, {slow[0]}" if slow else fast


class _Lane:
    """A CUDA stream to work on and to wait for; nothing on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __enter__(self) -> None:
        self._entered = torch.cuda.stream(self.stream)
        self._entered.__enter__()

    def __exit__(self, *reason: Any) -> None:
        self._entered.__exit__(*reason)

    def wait(self) -> None:
        if self.stream is not None:
            self.stream.synchronize()


class VideoGenerator:
    """Audio -> video latents with one rank's model; see `engine.models.base.Generator`.

    On ranks (`join` before `prepare`) every rank is called alike and yields the same latents.
    """

    def __init__(self, conditioning: Conditioning, seed: int = 1, way: Way | None = None) -> None:
        """`way`: other arithmetic than the fastest for the device, for benchmarks."""
        self.conditioning, self.config = conditioning, conditioning.config
        self.synthetic = conditioning.synthetic
        self.frames_per_chunk = shown_frames(self.config)
        self.lookahead_samples = conditioning.lookahead_samples
        self._seed = seed
        self.device = default_device()
        self.kernel_path = kernel_path(self.device)
        self._lane = _Lane(self.device)
        self._handed = 0
        self._ranks: Ranks | None = None
        self._decodes_here = True
        self._comm_ms = 0.0  # of a chunk, measured once
        self._way = way
        self.denoiser: Denoiser | None = None

    def join(self, ranks: Ranks, decodes_here: bool) -> None:
        """Be one of several; `decodes_here`: the decoder shares this rank's GPU."""
        self._ranks, self._decodes_here = ranks, decodes_here
        self.device = ranks.device
        self._lane = _Lane(self.device)

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        """Build, calibrate and capture for a character; a further one only refills the window.

        Raises EngineError("out_of_memory").
        """
        cuda = self.device.type == "cuda"
        with self._lane:
            if self.denoiser is not None:
                self.conditioning.reset_sound()
                self.denoiser.reset()
                self._prefill(self.denoiser, character, progress)
            else:
                text = self.conditioning.text(self.device, _from(progress, 0.0, 0.1))
                self.denoiser = self._built(_from(progress, 0.1, 0.5))
                self._text = text
                self.conditioning.open_sound(self.device)
                progress(0.5, "preparing the window")
                self._prefill(self.denoiser, character, progress)
                if cuda and self._way is None:
                    self.denoiser.calibrate()
                    progress(0.7, "recording the denoise step")
                    self.denoiser.capture()
                    self._measure_comm(self.denoiser, progress)
                    self._rehearse()
        self._lane.wait()
        progress(1.0, "ready")

    def _built(self, progress: Progress) -> Denoiser:
        config, device, ranks = self.config, self.device, self._ranks
        part = shard(config)
        if ranks is not None:  # by rows: 4 ms of 207 a step on two H200, for 5 GiB
            part = shard(config, ranks.rank, ranks.ranks, cross_rows=ranks.ranks > 1)
        cuda = device.type == "cuda"
        way = self._way or (Way(communication="best") if cuda else Way(fp8=False))
        if cuda:
            beside = decoder_bytes(vae_config(config)) if self._decodes_here else 0
            needed = plan(config, part, way, beside)
            free = torch.cuda.mem_get_info(device)[0]
            needed.require(free + self.conditioning.held_bytes)
        dtype = torch.bfloat16 if cuda else torch.float32
        self._allocate_hand_over()
        weights = self.conditioning.weights(part, device, dtype, way.fp8, progress)
        return Denoiser(config, part, weights, way, device, dtype, self._seed, ranks)

    def _measure_comm(self, denoiser: Denoiser, progress: Progress) -> None:
        """What a chunk spends between the ranks: recorded graphs cannot be asked while they run."""
        if self._ranks is None or self._ranks.ranks == 1:
            return
        progress(0.9, "measuring the exchange between GPUs")
        denoiser.cache.begin()
        self._comm_ms = denoiser.forward_parts(warm=4).get("comm", 0.0) * self.config.forwards
        denoiser.reset()

    def _prefill(self, denoiser: Denoiser, character: Any, progress: Progress) -> None:
        progress(0.6, "encoding the picture")
        given = self.conditioning.picture(character.canvas.pixels, self.device)
        latent = to_tokens(given.latent, self.config)
        denoiser.prefill(
            self._text, latent, past=given.past, joined=given.joined, image=given.image
        )

    def _rehearse(self) -> None:
        """A chunk that nobody sees: the allocator takes now what a chunk needs beside the buffers
        (2 MB of `tiny` were reserved at a session's first chunk before this).
        """
        frames = self.frames_per_chunk
        samples = self.lookahead_samples + frames * SAMPLES_PER_FRAME
        self.step(Chunk(0, 0, 0, frames, np.zeros(samples, np.float32)))
        self._handed = 0
        self.reset()

    def _allocate_hand_over(self) -> None:
        """Before anything else: what a session allocates late would lie on top of its peak."""
        config = self.config
        shape = (HANDED_OVER, config.latent_channels, config.frames, *latent_grid(config))
        self._latents = torch.zeros(shape, device=self.device)

    def step(self, chunk: Chunk) -> Latents:
        """One chunk; waits once, at its end, for the device."""
        assert self.denoiser is not None, "prepare comes first"
        if self._ranks is not None:
            self._ranks.wait_ms()  # what preparing waited is not this chunk's
        begun = time.perf_counter()
        with self._lane, torch.inference_mode():
            sound = self.conditioning.sound(chunk.pcm)
        encoded = time.perf_counter()
        values = self._latents[self._handed % HANDED_OVER]
        self._handed += 1
        with self._lane, torch.inference_mode():
            clean = self.denoiser.chunk(sound.to(self.device))
            values.copy_(to_latent(clean, self.config))
        self._lane.wait()
        done = time.perf_counter()
        stages = {"encode": 1000 * (encoded - begun), "denoise": 1000 * (done - encoded)}
        comm_ms = (self._ranks.wait_ms() if self._ranks else 0.0) or self._comm_ms
        return Latents(
            chunk.epoch, chunk.index, chunk.first_frame, chunk.frame_count, values, stages, comm_ms
        )

    def set_settings(self, settings: dict[str, float]) -> None:
        """These models know no intensities."""

    def interrupt(self) -> None:
        assert self.denoiser is not None, "prepare comes first"
        self.denoiser.rollback()
        self.conditioning.reset_sound()

    def reset(self) -> None:
        assert self.denoiser is not None, "prepare comes first"
        self.conditioning.reset_sound()
        with self._lane:
            self.denoiser.reset()
        self._lane.wait()


class VideoDecoder:
    """Video latents -> pictures; see `engine.models.base.Decoder`."""

    def __init__(self, conditioning: Conditioning, fp8: bool = False, tiny: bool = False) -> None:
        """`fp8` decodes 1.8 x faster and less exactly (33 dB against 51 dB of the fp32 decode);
        `tiny` takes the small decoder of the user's, faster still and softer.
        """
        self.conditioning, self.config = conditioning, conditioning.config
        self.device = default_device()
        self._fp8, self._tiny = fp8, tiny
        self._lane = _Lane(self.device)
        self.vae: CausalVae | TinyDecoder | None = None

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        """Build for a character; a further one only begins anew."""
        with self._lane:
            if self.vae is None:
                self.vae = self._built(progress)
            self._reference = self.conditioning.reference(character.canvas.pixels, self.device)
        self.reset()
        progress(1.0, "ready")

    def _built(self, progress: Progress) -> CausalVae | TinyDecoder:
        device = self.device
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        progress(0.1, "reading the video decoder")
        vae = self.conditioning.decoder(device, dtype, self._fp8, self._tiny)
        if device.type == "cuda":
            progress(0.5, "recording the decoder")
            vae.capture()
        frames, *picture = vae.pictures.shape
        self._host = torch.empty(self.config.frames * frames, *picture, dtype=torch.uint8)
        if device.type == "cuda":
            self._host = self._host.pin_memory()
        return vae

    def decode(self, latents: Latents, out: list[np.ndarray]) -> None:
        assert self.vae is not None, "prepare comes first"
        each = self._host.shape[0] // self.config.frames
        with self._lane, torch.inference_mode():
            for i in range(self.config.frames):
                made = self.vae.decode(latents.values[:, i])
                self._host[i * each : (i + 1) * each].copy_(made, non_blocking=True)
        self._lane.wait()
        pictures, shown = self._host.numpy(), shown_frames(self.config)
        for i, target in enumerate(out):
            picture = pictures[i * len(pictures) // shown]
            target[:] = picture if picture.shape == target.shape else _enlarged(picture, target)

    def set_settings(self, settings: dict[str, float]) -> None:
        """Nothing to set."""

    def reset(self) -> None:
        """The clip begins with the reference picture, which is decoded and not shown."""
        assert self.vae is not None, "prepare comes first"
        with self._lane:
            self.vae.reset()
            self.vae.decode(self._reference[:, 0])
        self._lane.wait()


def _enlarged(picture: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Of the frame's size: most public models draw 528 x 816, the tiny one 64 x 96."""
    return cv2.resize(picture, like.shape[1::-1], interpolation=cv2.INTER_CUBIC)


def _from(progress: Progress, begin: float, end: float) -> Progress:
    """A stretch of a longer progress."""
    return lambda done, what: progress(begin + (end - begin) * done, what)


def preset_generator(
    name: str, synthetic: int = 0, seed: int = 1, layers: int = 0
) -> VideoGenerator:
    """A built-in geometry. `layers` > 0 builds fewer, for tests.

    Raises EngineError without `synthetic`: these models have no weights anywhere.
    """
    if not synthetic:
        raise EngineError(
            "missing_asset", f"{name} has no weights on this machine",
            "add --synthetic to run it with random weights, which make noise and no face",
        )  # fmt: skip
    config = preset(name, layers=layers) if layers else preset(name)
    return VideoGenerator(SyntheticConditioning(config), seed)


def preset_decoder(name: str, fp8: int = 0) -> VideoDecoder:
    return VideoDecoder(SyntheticConditioning(preset(name)), bool(fp8))


def _generator(name: str, synthetic: int = 0, seed: int = 1) -> VideoGenerator:
    return preset_generator(name, synthetic, seed)


# MODELS names these; `functools.partial` keeps the options visible to whoever asks for them.
avatar_57b_generator = partial(_generator, "avatar-57b")
avatar_57b_decoder = partial(preset_decoder, "avatar-57b")
avatar_5b_generator = partial(_generator, "avatar-5b")
avatar_5b_decoder = partial(preset_decoder, "avatar-5b")
tiny_generator = partial(_generator, "tiny")
tiny_decoder = partial(preset_decoder, "tiny")
