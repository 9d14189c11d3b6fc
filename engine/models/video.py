"""The video models as Generator and Decoder: audio -> latents -> pictures, on one GPU or a CPU.

Weights are synthetic: they make noise, not faces, and `synthetic` says so to whoever shows or
writes the result. Generator and decoder each own a CUDA stream, so that chunk n is decoded while
chunk n+1 is denoised. Knows nothing of wires, files or faces.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.errors import EngineError
from engine.memoryplan import plan
from engine.models.audio_mel import AudioMel
from engine.models.base import Chunk, Latents, Progress
from engine.models.causal_dit import Way
from engine.models.causal_vae import CausalVae
from engine.models.denoiser import Denoiser
from engine.models.dit_config import DitConfig, preset, shard
from engine.models.dit_weights import synthetic_weights
from engine.models.vae_config import VaeConfig
from engine.models.vae_weights import synthetic_vae_weights
from engine.parallel import Ranks
from kernels import ops

HANDED_OVER = 4  # latents alive at once: one made, two queued, one decoded
DECODER_BYTES = 13 << 30  # measured: 12.2 GiB for Wan2.2's shape at 704x1088 in bf16


def latent_grid(config: DitConfig) -> tuple[int, int]:
    """Latent pixels down and across."""
    return config.grid[0] * config.patch, config.grid[1] * config.patch


def vae_config(config: DitConfig) -> VaeConfig:
    """The decoder that fits a model's latents; the tiny model has a tiny one."""
    base = 256 if config.latent_channels == 48 else 16
    return VaeConfig(latent_grid(config), config.latent_channels, base)


def to_latent(tokens: Tensor, config: DitConfig) -> Tensor:
    """[M, C * p * p] -> [C, frames, H, W]."""
    p, (down, across) = config.patch, config.grid
    value = tokens.view(config.frames, down, across, config.latent_channels, p, p)
    value = value.permute(3, 0, 1, 4, 2, 5)
    return value.reshape(config.latent_channels, config.frames, down * p, across * p)


def to_tokens(latent: Tensor, config: DitConfig) -> Tensor:
    """The inverse of `to_latent`."""
    p, (down, across) = config.patch, config.grid
    value = latent.view(config.latent_channels, -1, down, p, across, p)
    return value.permute(1, 2, 4, 0, 3, 5).reshape(-1, config.token_channels)


def reference_latent(pixels: np.ndarray, config: DitConfig, device: torch.device) -> Tensor:
    """[C, 1, H, W] of a picture [h, w, 4] BGRA: each 16 x 16 patch by a fixed random projection.

    Stands for the video encoder, which synthetic weights do not have.
    """
    down, across = latent_grid(config)
    picture = torch.from_numpy(np.ascontiguousarray(pixels[..., :3])).to(device)
    picture = picture.permute(2, 0, 1)[None].float() / 127.5 - 1
    picture = F.interpolate(picture, (16 * down, 16 * across), mode="area")
    patches = F.unfold(picture, 16, stride=16)[0]
    source = torch.Generator().manual_seed(16)
    mix = torch.randn(config.latent_channels, patches.shape[0], generator=source)
    latent = (mix.to(device) / patches.shape[0] ** 0.5) @ patches
    return latent.view(config.latent_channels, 1, down, across)


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

    frames_per_chunk = 4
    lookahead_samples = 0

    def __init__(self, model: str, synthetic: int = 0, seed: int = 1, layers: int = 0) -> None:
        """`layers` > 0 builds fewer, for tests. Raises EngineError without synthetic weights: no
        loader for real ones exists yet.
        """
        self.config = preset(model, layers=layers) if layers else preset(model)
        self.synthetic = bool(synthetic)
        self._seed = seed
        if not self.synthetic:
            raise EngineError(
                "missing_asset", f"{model} has no weights on this machine",
                "add --synthetic to run it with random weights, which make noise and no face",
            )  # fmt: skip
        self.device = default_device()
        self.kernel_path = kernel_path(self.device)
        self._lane = _Lane(self.device)
        self._mel = AudioMel(self.config.audio_tokens, self.config.audio_features)
        self._handed = 0
        self._ranks: Ranks | None = None
        self._decodes_here = True
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
                self._mel.reset()
                self.denoiser.reset()
                self._prefill(self.denoiser, character)
            else:
                self.denoiser = self._built(progress)
                progress(0.5, "preparing the window")
                self._prefill(self.denoiser, character)
                if cuda:
                    self.denoiser.calibrate()
                    progress(0.7, "recording the denoise step")
                    self.denoiser.capture()
        self._lane.wait()
        progress(1.0, "ready")

    def _built(self, progress: Progress) -> Denoiser:
        config, device, ranks = self.config, self.device, self._ranks
        part = shard(config, ranks.rank, ranks.ranks) if ranks is not None else shard(config)
        cuda = device.type == "cuda"
        way = Way() if cuda else Way(fp8=False)
        if cuda:
            needed = plan(config, part, way, DECODER_BYTES if self._decodes_here else 0)
            needed.require(torch.cuda.mem_get_info(device)[0])
        dtype = torch.bfloat16 if cuda else torch.float32
        self._allocate_hand_over()
        progress(0.0, "making synthetic weights")
        weights = synthetic_weights(config, part, device, dtype, way.fp8)
        return Denoiser(config, part, weights, way, device, dtype, self._seed, ranks)

    def _prefill(self, denoiser: Denoiser, character: Any) -> None:
        config, device = self.config, self.device
        source = torch.Generator(device).manual_seed(7)
        text = torch.randn(config.text_tokens, config.width, generator=source, device=device)
        reference = reference_latent(character.canvas.pixels, config, device)
        denoiser.prefill(text, to_tokens(reference, config))

    def _allocate_hand_over(self) -> None:
        """Before anything else: what a session allocates late would lie on top of its peak."""
        config = self.config
        shape = (HANDED_OVER, config.latent_channels, config.frames, *latent_grid(config))
        self._latents = torch.zeros(shape, device=self.device)
        audio = torch.zeros(config.audio_tokens, config.audio_features)
        self._audio_host = audio.pin_memory() if self.device.type == "cuda" else audio
        self._audio = audio.to(self.device)

    def step(self, chunk: Chunk) -> Latents:
        """One chunk; waits once, at its end, for the device."""
        assert self.denoiser is not None, "prepare comes first"
        begun = time.perf_counter()
        self._audio_host.copy_(torch.from_numpy(self._mel.features(chunk.pcm)))
        encoded = time.perf_counter()
        values = self._latents[self._handed % HANDED_OVER]
        self._handed += 1
        with self._lane, torch.inference_mode():
            self._audio.copy_(self._audio_host, non_blocking=True)
            values.copy_(to_latent(self.denoiser.chunk(self._audio), self.config))
        self._lane.wait()
        done = time.perf_counter()
        stages = {"encode": 1000 * (encoded - begun), "denoise": 1000 * (done - encoded)}
        return Latents(
            chunk.epoch, chunk.index, chunk.first_frame, chunk.frame_count, values, stages
        )

    def set_settings(self, settings: dict[str, float]) -> None:
        """Synthetic weights know no intensities."""

    def interrupt(self) -> None:
        assert self.denoiser is not None, "prepare comes first"
        self.denoiser.rollback()
        self._mel.reset()

    def reset(self) -> None:
        assert self.denoiser is not None, "prepare comes first"
        self._mel.reset()
        with self._lane:
            self.denoiser.reset()
        self._lane.wait()


class VideoDecoder:
    """Video latents -> pictures; see `engine.models.base.Decoder`."""

    def __init__(self, model: str, fp8: int = 0) -> None:
        """`fp8` decodes 1.8 x faster and less exactly (33 dB against 51 dB of the fp32 decode)."""
        self.config = preset(model)
        self.device = default_device()
        self._fp8 = bool(fp8)
        self._lane = _Lane(self.device)
        self.vae: CausalVae | None = None

    def prepare(self, character: Any, settings: dict[str, float], progress: Progress) -> None:
        """Build for a character; a further one only begins anew."""
        with self._lane:
            if self.vae is None:
                self.vae = self._built(progress)
            self._reference = reference_latent(character.canvas.pixels, self.config, self.device)
        self.reset()
        progress(1.0, "ready")

    def _built(self, progress: Progress) -> CausalVae:
        device = self.device
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        geometry = vae_config(self.config)
        weights = synthetic_vae_weights(geometry, device, dtype)
        vae = CausalVae(geometry, weights, device, dtype, self._fp8)
        if device.type == "cuda":
            progress(0.5, "recording the decoder")
            vae.capture()
        self._host = torch.empty(vae.pictures.shape, dtype=torch.uint8)
        if device.type == "cuda":
            self._host = self._host.pin_memory()
        return vae

    def decode(self, latents: Latents, out: list[np.ndarray]) -> None:
        assert self.vae is not None, "prepare comes first"
        with self._lane, torch.inference_mode():
            self._host.copy_(self.vae.decode(latents.values[:, 0]), non_blocking=True)
        self._lane.wait()
        pictures = self._host.numpy()
        for target, picture in zip(out, pictures, strict=False):
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
    """Nearest-neighbour to the frame's size: the tiny model draws 64 x 96."""
    rows = np.arange(like.shape[0]) * picture.shape[0] // like.shape[0]
    columns = np.arange(like.shape[1]) * picture.shape[1] // like.shape[1]
    return picture[rows[:, None], columns[None]]


def _generator(name: str, synthetic: int = 0, seed: int = 1) -> VideoGenerator:
    return VideoGenerator(name, synthetic, seed)


def _decoder(name: str, fp8: int = 0) -> VideoDecoder:
    return VideoDecoder(name, fp8)


# MODELS names these; `functools.partial` keeps the options visible to whoever asks for them.
avatar_57b_generator = partial(_generator, "avatar-57b")
avatar_57b_decoder = partial(_decoder, "avatar-57b")
avatar_5b_generator = partial(_generator, "avatar-5b")
avatar_5b_decoder = partial(_decoder, "avatar-5b")
tiny_generator = partial(_generator, "tiny")
tiny_decoder = partial(_decoder, "tiny")
