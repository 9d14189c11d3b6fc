"""A public checkpoint as a `Conditioning`: its weights, text, picture and sound encoders, decoder.

Opened by names and shapes at once, so that what is missing is told before anything is read. Text
comes from one fixed prompt. Knows nothing of chunks or streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.clock import FPS
from engine.errors import EngineError
from engine.models.audio_grid import lookahead
from engine.models.audio_resample import REACH
from engine.models.base import Progress
from engine.models.causal_vae import CausalVae
from engine.models.companions import companions
from engine.models.conditioning import latent_grid, picture_of, shown_frames
from engine.models.dit_config import DitConfig, Shard
from engine.models.dit_weights import DitWeights
from engine.models.loaded import LoadedWeights
from engine.models.picture_inputs import PictureInputs, picture_inputs
from engine.models.taehv import TinyDecoder
from engine.models.taehv_files import load_taehv
from engine.models.text_encoder import encode_text
from engine.models.text_files import find_text_encoder
from engine.models.vae_files import load_vae
from engine.models.wav2vec import AHEAD, AudioFeatures
from engine.models.wav2vec_files import load_wav2vec
from engine.models.weights import Model, load_weights

PROMPT = "A person looks into the camera and talks, with natural expression and small movements."


class CheckpointConditioning:
    """See `Conditioning`. Raises EngineError("missing_asset") for a part that is nowhere."""

    synthetic = False

    def __init__(
        self, model: Model, places: list[Path], cache: Path, loaded: LoadedWeights | None = None,
        cancelled: Callable[[], bool] = lambda: False, prompt: str = PROMPT,
    ) -> None:  # fmt: skip
        """`places`: folders in which decoder and encoders are looked for, the model's own first."""
        self.model, self.config = model, model.config
        self.parts = companions(model, places)
        self._cache, self._prompt, self._cancelled = cache, prompt, cancelled
        self._loaded = loaded or LoadedWeights()
        self._features: AudioFeatures | None = None
        frames = self.config.pixel_frames
        # sound of a chunk lasts as long as its frames are shown, however many pictures it has
        self._rate = Fraction(frames * FPS, shown_frames(self.config))
        speaks = self.config.speech is not None
        self.lookahead_samples = lookahead(self._rate, frames, AHEAD, REACH) if speaks else 0

    @property
    def held_bytes(self) -> int:
        """Of weights that are on the device already."""
        return self._loaded.bytes

    def weights(
        self, part: Shard, device: torch.device, dtype: torch.dtype, fp8: bool, progress: Progress
    ) -> DitWeights:
        """Read once a process: a further character finds them."""
        key = (*self.model.checkpoint.identity, self.model.line, part, device, dtype, fp8)
        found = self._loaded.get(key)
        if found is None:
            self._loaded.clear()
            found = load_weights(
                self.model, part, device, dtype, fp8, self._cache, progress, self._cancelled
            )
            self._loaded.put(self.config.name, key, found)
        return found

    def text(self, device: torch.device, progress: Progress) -> Tensor:
        """Of the prompt; the encoder is gone again when this returns."""
        if self.parts.text is None:
            return torch.zeros(self.config.text_tokens, self.config.width, device=device)
        files = find_text_encoder(self.parts.text)
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        text = encode_text(self._prompt, files, self._cache, device, dtype, progress)
        return text.float().to(device)

    def reference(self, pixels: np.ndarray, device: torch.device) -> Tensor:
        """By the checkpoint's own encoder, which is dropped afterwards."""
        plain = replace(self.config, joined_channels=0, image_tokens=0, speech=None)
        return self._picture(plain, pixels, device).latent

    def picture(self, pixels: np.ndarray, device: torch.device) -> PictureInputs:
        return self._picture(self.config, pixels, device)

    def _picture(
        self, config: DitConfig, pixels: np.ndarray, device: torch.device
    ) -> PictureInputs:
        vae = load_vae(self.parts.vae, latent_grid(config))
        rgb = picture_of(pixels, device).flip(1)
        return picture_inputs(config, vae, self.parts.clip, rgb, device)

    def open_sound(self, device: torch.device) -> None:
        if self.parts.audio is None:
            return
        # fp32: some activations of the large ones leave fp16, and it is 0.2 TFLOP a chunk
        model, normalise = load_wav2vec(self.parts.audio, device, torch.float32)
        self._features = AudioFeatures(model, normalise, self._rate, self.config.pixel_frames)

    def sound(self, pcm: np.ndarray) -> Tensor:
        if self._features is None:
            return torch.zeros(self.config.audio_tokens, self.config.audio_features)
        return self._features.features(pcm)

    def reset_sound(self) -> None:
        if self._features is not None:
            self._features.reset()

    def decoder(
        self, device: torch.device, dtype: torch.dtype, fp8: bool, tiny: bool = False
    ) -> CausalVae | TinyDecoder:
        if tiny:
            return self._tiny(device, dtype)
        found = load_vae(self.parts.vae, latent_grid(self.config))
        return CausalVae(found.config, found.decoder, device, dtype, fp8)

    def _tiny(self, device: torch.device, dtype: torch.dtype) -> TinyDecoder:
        path, channels = self.parts.tiny, self.config.latent_channels
        if path is None:
            name = "taew2_2.pth" if channels == 48 else "taew2_1.pth"
            raise EngineError(
                "missing_asset", f"{self.config.name} has no tiny decoder for {channels} channels",
                f"put {name} into its folder, or use the full decoder",
            )  # fmt: skip
        return load_taehv(path, latent_grid(self.config), device, dtype)
