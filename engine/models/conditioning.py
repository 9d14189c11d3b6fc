"""What a video model is given besides noise, and its weights; here the synthetic ones.

`Conditioning` is what generator and decoder ask; synthetic weights make noise, not faces, from a
fixed text and a random projection of the picture. Knows nothing of chunks, streams or ranks' links.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.clock import FPS
from engine.models.audio_mel import AudioMel
from engine.models.base import Progress
from engine.models.causal_vae import CausalVae
from engine.models.dit_config import DitConfig, Shard
from engine.models.dit_weights import DitWeights, synthetic_weights
from engine.models.picture_inputs import PictureInputs
from engine.models.synthetic_source import SyntheticSource
from engine.models.taehv import TinyDecoder
from engine.models.vae_config import VaeConfig, wan_2_1, wan_2_2
from engine.models.vae_weights import synthetic_vae_weights
from engine.models.wan_keys import wan_keys
from engine.models.wan_weights import build_weights

Cancelled = Callable[[], bool]


class Conditioning(Protocol):
    """One model's weights and inputs. Nothing is read before it is asked for."""

    config: DitConfig
    synthetic: bool
    lookahead_samples: int  # 48 kHz samples of sound that features need beyond a chunk

    @property
    def held_bytes(self) -> int:
        """Of weights that are on the device already."""
        ...

    def weights(
        self, part: Shard, device: torch.device, dtype: torch.dtype, fp8: bool, progress: Progress
    ) -> DitWeights: ...

    def text(self, device: torch.device, progress: Progress) -> Tensor:
        """What the pictures show: [text_tokens, text_features or width]."""
        ...

    def reference(self, pixels: np.ndarray, device: torch.device) -> Tensor:
        """Latent [C, 1, H, W] of a picture [h, w, 4] BGRA uint8."""
        ...

    def picture(self, pixels: np.ndarray, device: torch.device) -> PictureInputs:
        """All that the model is given of it; `reference` is its latent."""
        ...

    def open_sound(self, device: torch.device) -> None:
        """Build what `sound` needs; before the first chunk."""
        ...

    def sound(self, pcm: np.ndarray) -> Tensor:
        """Features of one chunk's samples, as the model takes them; on any device."""
        ...

    def reset_sound(self) -> None:
        """The next chunk follows silence."""
        ...

    def decoder(
        self, device: torch.device, dtype: torch.dtype, fp8: bool, tiny: bool = False
    ) -> CausalVae | TinyDecoder:
        """`tiny`: the small one. Raises EngineError("missing_asset") where there is none."""
        ...


def latent_grid(config: DitConfig) -> tuple[int, int]:
    """Latent pixels down and across."""
    return config.grid[0] * config.patch, config.grid[1] * config.patch


def vae_config(config: DitConfig) -> VaeConfig:
    """The decoder that fits a model's latents; the tiny model has a tiny one."""
    grid = latent_grid(config)
    known = {16: wan_2_1, 48: wan_2_2}.get(config.latent_channels)
    return known(grid) if known else VaeConfig(grid, config.latent_channels, 16)


def shown_frames(config: DitConfig) -> int:
    """Frames that a chunk fills at 24 a second. A model trained at 16 has every second picture
    shown twice, so that motion keeps its speed; 24 and 25 are shown one to one.
    """
    if config.native_fps == 16:
        return config.pixel_frames * FPS // config.native_fps
    return config.pixel_frames


class SyntheticConditioning:
    """Random weights; see `Conditioning`."""

    synthetic = True
    lookahead_samples = held_bytes = 0

    def __init__(self, config: DitConfig) -> None:
        self.config = config
        self._mel = AudioMel(config.audio_tokens, config.audio_features)

    def weights(
        self, part: Shard, device: torch.device, dtype: torch.dtype, fp8: bool, progress: Progress
    ) -> DitWeights:
        progress(0.0, "making synthetic weights")
        if not self.config.text_features:
            return synthetic_weights(self.config, part, device, dtype, fp8)
        source = SyntheticSource(wan_keys(self.config), device, dtype, fp8)
        return build_weights(self.config, part, source)

    def text(self, device: torch.device, progress: Progress) -> Tensor:
        source = torch.Generator(device).manual_seed(7)
        width = self.config.text_features or self.config.width
        return torch.randn(self.config.text_tokens, width, generator=source, device=device)

    def reference(self, pixels: np.ndarray, device: torch.device) -> Tensor:
        """Each 16 x 16 patch by a fixed random projection: it stands for the video encoder, which
        synthetic weights do not have.
        """
        down, across = latent_grid(self.config)
        picture = F.interpolate(picture_of(pixels, device), (16 * down, 16 * across), mode="area")
        patches = F.unfold(picture, 16, stride=16)[0]
        source = torch.Generator().manual_seed(16)
        channels = self.config.latent_channels
        mix = torch.randn(channels, patches.shape[0], generator=source)
        latent = (mix.to(device) / patches.shape[0] ** 0.5) @ patches
        return latent.view(channels, 1, down, across)

    def picture(self, pixels: np.ndarray, device: torch.device) -> PictureInputs:
        return PictureInputs(self.reference(pixels, device))

    def open_sound(self, device: torch.device) -> None:
        """Nothing to build."""

    def sound(self, pcm: np.ndarray) -> Tensor:
        config, speech = self.config, self.config.speech
        if speech is not None:  # as loud as a sound encoder's states, which nobody made
            seed = torch.Generator().manual_seed(int(1e6 * float(np.abs(pcm).mean())))
            shape = (speech.states, config.pixel_frames, speech.features)
            return torch.randn(shape, generator=seed)
        if not config.audio_tokens:
            return torch.zeros(0, config.audio_features)
        return torch.from_numpy(self._mel.features(pcm))

    def reset_sound(self) -> None:
        self._mel.reset()

    def decoder(
        self, device: torch.device, dtype: torch.dtype, fp8: bool, tiny: bool = False
    ) -> CausalVae:
        """Always the full one."""
        geometry = vae_config(self.config)
        weights = synthetic_vae_weights(geometry, device, dtype)
        return CausalVae(geometry, weights, device, dtype, fp8)


def picture_of(pixels: np.ndarray, device: torch.device) -> Tensor:
    """[h, w, 4] BGRA uint8 -> [1, 3, h, w] BGR -1..1."""
    picture = torch.from_numpy(np.ascontiguousarray(pixels[..., :3])).to(device)
    return picture.permute(2, 0, 1)[None].float() / 127.5 - 1
