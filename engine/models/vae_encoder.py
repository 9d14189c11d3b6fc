"""The video encoder: pictures -> latents of the diffusion model, in plain torch.

Equal to the public AutoencoderKLWan's encode (the mean of its posterior), both forms. It runs once
a session, for the reference picture and for what a model wants before it (zeros, repeats), so it is
written for memory and clarity, not speed: four frames a turn, two frames of past a convolution.
Knows nothing of files.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.errors import EngineError
from engine.models.vae_config import VaeConfig, encoder_pairs
from engine.models.vae_weights import down_resnet, downsampler


class VaeEncoder:
    """`encode` of clips of 1 + 4k frames; each call is a clip of its own."""

    def __init__(
        self, config: VaeConfig, weights: dict[str, Tensor], device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:  # fmt: skip
        self.config, self.device, self.dtype = config, device, dtype
        self._weights = {name: w.to(device, dtype) for name, w in weights.items()}
        self._past: dict[str, Tensor] = {}

    @torch.inference_mode()
    def encode(self, pixels: Tensor) -> Tensor:
        """pixels [3, 1 + 4k, H, W] RGB -1..1 -> [C, 1 + k, H / s, W / s] fp32, scaled.

        Raises EngineError("bad_input") for another number of frames or a size that s (16 or 8)
        does not divide.
        """
        frames, height, width = pixels.shape[1:]
        s = self.config.spatial
        if (frames - 1) % 4 or height % s or width % s:
            raise EngineError(
                "bad_input", f"the encoder was given {frames} frames of {width} x {height}",
                f"it takes 1, 5, 9, … frames with sides that are multiples of {s}",
            )  # fmt: skip
        self._past = {}
        x = self._fold(pixels.to(self.device, self.dtype))
        parts = [self._chunk(x[:, :1])]
        parts += [self._chunk(x[:, i : i + 4]) for i in range(1, frames, 4)]
        self._past = {}
        moments = self._conv("quant_conv", torch.cat(parts, 1))
        latent = moments[: self.config.latent_channels].float()
        return self._scaled(latent)

    def _scaled(self, latent: Tensor) -> Tensor:
        if not self.config.mean:
            return latent
        mean, std = (
            torch.tensor(values, device=self.device).view(-1, 1, 1, 1)
            for values in (self.config.mean, self.config.std)
        )
        return (latent - mean) / std

    def _fold(self, pixels: Tensor) -> Tensor:
        """[3, T, H, W] -> [3 * p * p, T, H / p, W / p], column before line within a patch."""
        p = self.config.patch
        value = pixels.unflatten(3, (-1, p)).unflatten(2, (-1, p))  # [3, T, h, q, w, r]
        return value.permute(0, 5, 3, 1, 2, 4).flatten(0, 2)

    def _chunk(self, x: Tensor) -> Tensor:
        x = self._conv("encoder.conv_in", x)
        for level in range(self.config.levels):
            x = self._level(level, x)
        x = self._residual("encoder.mid_block.resnets.0", x)
        x = self._attention("encoder.mid_block.attentions.0", x)
        x = self._residual("encoder.mid_block.resnets.1", x)
        return self._conv("encoder.conv_out", F.silu(self._norm("encoder.norm_out", x)))

    def _level(self, level: int, x: Tensor) -> Tensor:
        config, entered = self.config, x
        last = level == config.levels - 1
        halves = not last and config.halves_time[level]
        for block in range(config.blocks - 1):
            x = self._residual(down_resnet(config, level, block), x)
        if not last:
            x = self._shrink(downsampler(config, level), x, halves)
        if config.residual:
            x = x + _averaged(entered, encoder_pairs(config)[level][1], 1 + halves, 1 + (not last))
        return x

    def _shrink(self, name: str, x: Tensor, halves: bool) -> Tensor:
        """Half the lines and columns; and, beyond a clip's first frame, half the frames."""
        weight, bias = self._weights[f"{name}.resample.1.weight"], f"{name}.resample.1.bias"
        small = F.conv2d(F.pad(x.transpose(0, 1), (0, 1, 0, 1)), weight, self._weights[bias], 2)
        x = small.transpose(0, 1)
        if not halves:
            return x
        before = self._past.get(name)
        self._past[name] = x[:, -1:]
        if before is None:
            return x
        weight, bias = (self._weights[f"{name}.time_conv.{leaf}"] for leaf in ("weight", "bias"))
        return F.conv3d(torch.cat((before, x), 1)[None], weight, bias, (2, 1, 1))[0]

    def _residual(self, name: str, x: Tensor) -> Tensor:
        shortcut = f"{name}.conv_shortcut"
        kept = self._conv(shortcut, x) if f"{shortcut}.weight" in self._weights else x
        x = self._conv(f"{name}.conv1", F.silu(self._norm(f"{name}.norm1", x)))
        return kept + self._conv(f"{name}.conv2", F.silu(self._norm(f"{name}.norm2", x)))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        gamma = self._weights[f"{name}.gamma"].view(-1, 1, 1, 1)
        return F.normalize(x.float(), dim=0).to(x.dtype) * x.shape[0] ** 0.5 * gamma

    def _conv(self, name: str, x: Tensor) -> Tensor:
        """Causal in time: two frames of past, zeros before a clip."""
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        if weight.shape[2] == 1:
            return F.conv3d(x[None], weight, bias)[0]
        past = self._past.get(name)
        if past is None:
            past = x.new_zeros(x.shape[0], 2, *x.shape[2:])
        joined = torch.cat((past, x), 1)
        self._past[name] = joined[:, -2:]
        return F.conv3d(joined[None], weight, bias, padding=(0, 1, 1))[0]

    def _attention(self, name: str, x: Tensor) -> Tensor:
        """Single-head attention over each frame's pixels."""
        normed = self._norm(f"{name}.norm", x).permute(1, 2, 3, 0).flatten(1, 2)
        q, k, v = self._dense(f"{name}.to_qkv", normed).chunk(3, -1)
        attended = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        return x + self._dense(f"{name}.proj", attended).transpose(1, 2).unflatten(
            2, x.shape[2:]
        ).transpose(0, 1)

    def _dense(self, name: str, x: Tensor) -> Tensor:
        return F.linear(
            x, self._weights[f"{name}.weight"].flatten(1), self._weights[f"{name}.bias"]
        )


def _averaged(x: Tensor, channels: int, times: int, across: int) -> Tensor:
    """The residual form's shortcut: frames and pixels folded into channels, means of groups.

    An odd number of frames (a clip's first) has a frame of zeros put before it.
    """
    x = F.pad(x, (0, 0, 0, 0, -x.shape[1] % times, 0))
    value = x.unflatten(3, (-1, across)).unflatten(2, (-1, across)).unflatten(1, (-1, times))
    value = value.permute(0, 2, 4, 6, 1, 3, 5)  # [C, time, line, column, T, H, W]
    return value.flatten(0, 3).unflatten(0, (channels, -1)).mean(1)
