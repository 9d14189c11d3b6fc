"""The streaming video decoder: one latent frame in, four pictures out, its past kept in rings.

Architecture and weight names are the public AutoencoderKLWan's, both forms (Wan2.1 plain, Wan2.2
residual); frame by frame it equals that library's decode of the whole clip. Every 3-D convolution
owns a ring of frames that its norm writes into: no cache is concatenated, shifted or cloned. The
first latent frame gives one picture, each later one four. Latents are the diffusion model's: their
mean and spread are put back inside. Knows nothing of how latents were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.graph import Graphs
from engine.models.vae_config import VaeConfig
from engine.models.vae_weights import upsampler
from kernels import ops
from kernels.grid import Grid
from kernels.reference import FP8, FP8_MAX

QUERIES_AT_ONCE = 4096  # of the middle attention: 11,968 at once would need 1.4 GB of scores


@dataclass(slots=True)
class Conv:
    """A convolution with the ring it reads."""

    ring: Tensor
    weight: Tensor  # [N, kt * ks * ks * C]
    bias: Tensor
    base: Tensor  # int32 [1], slot of the newest chunk's first frame
    taps: tuple[int, int]
    scale: float = 1.0  # of an fp8 weight


@dataclass(slots=True)
class Clock:
    """Where the rings of all convolutions with `frames` frames a chunk stand."""

    frames: int
    base: Tensor
    position: int = 0

    def advance(self, frames: int) -> None:
        self.position = (self.position + frames) % (self.frames + 2)

    def show(self) -> None:
        self.base.fill_(self.position)


class CausalVae:
    """Decodes latents in order. `fp8` runs the large convolutions on e4m3 operands."""

    def __init__(
        self, config: VaeConfig, weights: Mapping[str, Tensor], device: torch.device,
        dtype: torch.dtype = torch.bfloat16, fp8: bool = False,
    ) -> None:  # fmt: skip
        """`weights` are read once and not kept: mapped views of a file will do."""
        self.config, self.device, self.dtype, self.fp8 = config, device, dtype, fp8
        self._source = weights
        self._dense_weights: dict[str, tuple[Tensor, Tensor]] = {}
        self._gammas: dict[str, Tensor] = {}
        names = ("norm_silu", "causal_conv", "upsample", "spread")
        self._norm, self._conv, self._double, self._spread = (ops.choose(n, device) for n in names)
        self._zero = torch.zeros(1, dtype=torch.int32, device=device)
        self._plan_levels()
        self._rings: list[Tensor] = []
        self._convs: dict[str, Conv] = {}
        self._build_convs()
        self._entry = self._build_entry()
        self._build_dense()
        del self._source
        height, width = config.picture
        shape = (self.frames[-1], height, width, 4)
        self.pictures = torch.full(shape, 255, dtype=torch.uint8, device=device)
        self.latent = torch.zeros(config.latent_channels, *config.latent_grid, device=device)
        self.signal = torch.zeros(0)  # [frames, height, width, 3] RGB of the newest eager decode
        self.graphs = Graphs()
        self.reset()

    # -- building -------------------------------------------------------------------------------

    def _plan_levels(self) -> None:
        config = self.config
        self.grids = [Grid(*config.latent_grid)]
        self.frames = [1]
        for doubles in config.doubles_time:
            self.grids.append(self.grids[-1].doubled())
            self.frames.append(self.frames[-1] * (2 if doubles else 1))
        self._clocks = {
            n: Clock(n, torch.zeros(1, dtype=torch.int32, device=self.device))
            for n in set(self.frames)
        }
        levels = list(enumerate(config.decoder_levels))
        self._stream = [self._rows(i, level.into) for i, level in levels]
        self._inner = [self._rows(i, level.out) for i, level in levels]
        self._changed = [
            self._rows(i, level.out) if level.into != level.out else self._stream[i]
            for i, level in levels
        ]
        self._timed = {
            i: self._rows(i, 2 * level.out)
            for (i, level), doubles in zip(levels, config.doubles_time, strict=False) if doubles
        }  # fmt: skip

    def _rows(self, level: int, channels: int) -> Tensor:
        rows = self.frames[level] * self.grids[level].rows
        return torch.zeros(rows, channels, dtype=self.dtype, device=self.device)

    def _build_convs(self) -> None:
        self._add_conv("decoder.conv_in", 0, plain=True)
        for i in range(2):
            self._add_residual(f"decoder.mid_block.resnets.{i}", 0)
        for level in range(self.config.levels):
            name = f"decoder.up_blocks.{level}"
            for j in range(self.config.blocks):
                self._add_residual(f"{name}.resnets.{j}", level)
            doubling = upsampler(self.config, level)
            if level in self._timed:
                self._add_conv(f"{doubling}.time_conv", level)
            if level < self.config.levels - 1:
                self._add_conv(f"{doubling}.resample.1", level + 1)
        self._add_conv("decoder.conv_out", self.config.levels - 1, plain=True)

    def _add_residual(self, name: str, level: int) -> None:
        self._add_conv(f"{name}.conv1", level)
        self._add_conv(f"{name}.conv2", level)
        for norm in ("norm1", "norm2"):
            self._gammas[f"{name}.{norm}"] = self._fp32(f"{name}.{norm}.gamma").flatten()

    def _build_dense(self) -> None:
        """Products over channels alone, in the run's type; the remaining gammas, in fp32."""
        attention = "decoder.mid_block.attentions.0"
        for norm in (f"{attention}.norm", "decoder.norm_out"):
            self._gammas[norm] = self._fp32(f"{norm}.gamma").flatten()
        names = [name[: -len(".weight")] for name in self._source if name.endswith(".weight")]
        for name in names:
            if name.endswith(".conv_shortcut") or name.startswith(f"{attention}."):
                weight = self._fp32(f"{name}.weight").flatten(1).to(self.dtype)
                self._dense_weights[name] = weight, self._fp32(f"{name}.bias").to(self.dtype)

    def _fp32(self, name: str) -> Tensor:
        return self._source[name].to(self.device).float()

    def _add_conv(self, name: str, level: int, plain: bool = False) -> None:
        """Lay out the weight [N, taps, C] and allocate the ring; `plain` never uses fp8."""
        weight = self._fp32(f"{name}.weight")
        weight = weight[:, :, None] if weight.ndim == 4 else weight
        out, channels, kt, ks, _ = weight.shape
        fp8 = self.fp8 and not plain and channels % 128 == 0
        missing_c, missing_n = -channels % 64, -out % 16
        weight = F.pad(weight, (0, 0, 0, 0, 0, 0, 0, missing_c, 0, missing_n))
        flat = weight.permute(0, 2, 3, 4, 1).reshape(out + missing_n, -1).contiguous()
        bias = F.pad(self._fp32(f"{name}.bias"), (0, missing_n))
        scale = float(flat.abs().amax()) / FP8_MAX if fp8 else 1.0
        stored = (flat / scale).to(FP8) if fp8 else flat.to(self.dtype)
        clock = self._clocks[self.frames[level]]
        slots = clock.frames + (2 if kt == 3 else 0)
        shape = (slots * self.grids[level].rows, channels + missing_c)
        ring = torch.zeros(shape, dtype=torch.uint8 if fp8 else self.dtype, device=self.device)
        ring = ring.view(FP8) if fp8 else ring
        self._rings.append(ring)
        base = clock.base if kt == 3 else self._zero
        self._convs[name] = Conv(ring, stored, bias, base, (kt, ks), scale)

    def _build_entry(self) -> tuple[Tensor, Tensor]:
        """post_quant_conv with the scaling of latents folded in: fp32 matrix and bias."""
        config = self.config
        mix = self._fp32("post_quant_conv.weight").flatten(1)
        bias = self._fp32("post_quant_conv.bias")
        if config.mean:
            bias = bias + mix @ torch.tensor(config.mean, device=self.device)
            mix = mix * torch.tensor(config.std, device=self.device)
        return mix.t().contiguous(), bias

    @property
    def held_bytes(self) -> int:
        """Of all that lasts: rings, buffers between layers, weights, pictures."""
        buffers = [*self._rings, *self._stream, *self._inner, *self._changed, self.pictures]
        buffers += [*self._timed.values(), *(conv.weight for conv in self._convs.values())]
        apart = {id(tensor): tensor for tensor in buffers}
        return sum(t.numel() * t.element_size() for t in apart.values())

    # -- decoding -------------------------------------------------------------------------------

    def reset(self) -> None:
        """As new: the next latent is the first of a clip."""
        for ring in self._rings:
            ring.view(torch.uint8).zero_()
        for clock in self._clocks.values():
            clock.position = 0
        self.first = True

    @torch.inference_mode()
    def capture(self) -> None:
        """Record the steady decode as a graph; the state is reset."""
        self.graphs.capture("steady", lambda: self._run(first=False))
        self.reset()

    @torch.inference_mode()
    def decode(self, latent: Tensor) -> Tensor:
        """latent [channels, H, W] of one latent frame -> [1 or 4, height, width, 4] uint8 BGRA.

        A view of a buffer, valid until the next call; work is queued, not waited for.
        """
        self.latent.copy_(latent)
        for clock in self._clocks.values():
            clock.show()
        if self.first or not self.graphs.replay("steady"):
            self._run(self.first)
        shown = 1 if self.first else self.frames[-1]
        for clock in self._clocks.values():
            clock.advance(1 if self.first else clock.frames)
        self.first = False
        return self.pictures[:shown]

    def _run(self, first: bool) -> None:
        x = self._stream[0]
        self._enter(x)
        self._residual("decoder.mid_block.resnets.0", x, x, 0, 1)
        self._attention("decoder.mid_block.attentions.0", x)
        self._residual("decoder.mid_block.resnets.1", x, x, 0, 1)
        frames = 1
        for level in range(self.config.levels):
            frames = self._level(level, frames, first)
        self._leave(frames)

    def _enter(self, x: Tensor) -> None:
        """Latent -> scaled, post-quant 1x1 -> conv_in."""
        grid, (mix, bias) = self.grids[0], self._entry
        z = torch.addmm(bias, self.latent.flatten(1).t(), mix)
        conv = self._convs["decoder.conv_in"]
        staged = torch.zeros(grid.rows, z.shape[1], dtype=self.dtype, device=self.device)
        grid.pixels(staged)[0] = z.view(grid.height, grid.width, -1)
        self._norm(staged, None, conv.ring, conv.base, grid, 1)
        self._apply("decoder.conv_in", x, 0, 1)

    def _apply(
        self, name: str, out: Tensor, level: int, frames: int, residual: Tensor | None = None
    ) -> None:
        conv = self._convs[name]
        self._conv(conv.ring, conv.weight, conv.bias, out, conv.base, self.grids[level], frames,
                   conv.taps, residual, conv.scale)  # fmt: skip

    def _residual(self, name: str, x: Tensor, out: Tensor, level: int, frames: int) -> None:
        """out = conv2(silu(norm2(conv1(silu(norm1(x)))))) + shortcut(x); out may be x."""
        grid, hidden = self.grids[level], self._inner[level]
        first, second = self._convs[f"{name}.conv1"], self._convs[f"{name}.conv2"]
        self._norm(x, self._gammas[f"{name}.norm1"], first.ring, first.base, grid, frames)
        self._apply(f"{name}.conv1", hidden, level, frames)
        if x is not out:
            weight, bias = self._dense_weights[f"{name}.conv_shortcut"]
            torch.addmm(bias, x, weight.t(), out=out)
        self._norm(hidden, self._gammas[f"{name}.norm2"], second.ring, second.base, grid, frames)
        self._apply(f"{name}.conv2", out, level, frames, out)

    def _attention(self, name: str, x: Tensor) -> None:
        """Single-head attention over one frame's pixels, in place."""
        pixels = self.grids[0].pixels(x)[0]
        value = pixels.reshape(-1, x.shape[1])
        normed = F.normalize(value.float(), dim=-1) * x.shape[1] ** 0.5
        normed = (normed * self._gammas[f"{name}.norm"]).to(self.dtype)
        q, k, v = self._dense(normed, f"{name}.to_qkv").chunk(3, -1)
        parts = []
        for some in q.split(QUERIES_AT_ONCE):
            scores = (some @ k.t()).float() * x.shape[1] ** -0.5
            parts.append(scores.softmax(-1).to(self.dtype) @ v)
        attended = torch.cat(parts)
        pixels.add_(self._dense(attended, f"{name}.proj").view(pixels.shape))

    def _dense(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, *self._dense_weights[name])

    def _level(self, level: int, frames: int, first: bool) -> int:
        """Residual blocks, then doubling into the next level's stream; returns its frames."""
        x, name = self._stream[level], f"decoder.up_blocks.{level}"
        last = level == self.config.levels - 1
        times = 2 if level in self._timed else 1
        if self.config.residual and not last:  # the shortcut first: the blocks below overwrite x
            skip = times - 1 if first else 0
            self._spread(x, self._stream[level + 1], self.grids[level], frames, times, skip)
        changed = self._changed[level]
        for j in range(self.config.blocks):
            self._residual(f"{name}.resnets.{j}", x, changed, level, frames)
            x = changed
        return frames if last else self._double_up(x, level, frames, first)

    def _double_up(self, x: Tensor, level: int, frames: int, first: bool) -> int:
        grid, target = self.grids[level], self._stream[level + 1]
        halves, name = 1, upsampler(self.config, level)
        if level in self._timed and not first:
            conv = self._convs[f"{name}.time_conv"]
            self._norm(x, None, conv.ring, conv.base, grid, frames)
            x, halves = self._timed[level], 2
            self._apply(f"{name}.time_conv", x, level, frames)
        wide = self._convs[f"{name}.resample.1"]
        self._double(x, wide.ring, grid, frames, halves)
        frames *= halves
        shortcut = target if self.config.residual else None
        self._apply(f"{name}.resample.1", target, level + 1, frames, shortcut)
        return frames

    def _leave(self, frames: int) -> None:
        """Norm, conv_out, unfold to pixels, BGRA bytes."""
        level, patch = self.config.levels - 1, self.config.patch
        grid, conv = self.grids[level], self._convs["decoder.conv_out"]
        gamma = self._gammas["decoder.norm_out"]
        self._norm(self._changed[level], gamma, conv.ring, conv.base, grid, frames)
        out = self._inner[level].view(-1)[: frames * grid.rows * conv.weight.shape[0]]
        out = out.view(frames * grid.rows, -1)
        self._apply("decoder.conv_out", out, level, frames)
        value = grid.pixels(out)[..., : 3 * patch * patch].float()
        value = value.unflatten(-1, (3, patch, patch)).permute(0, 1, 5, 2, 4, 3)
        self.signal = value.flatten(3, 4).flatten(1, 2)
        value = self.signal.clamp(-1, 1)
        self.pictures[:frames, ..., :3] = value.flip(-1).add(1).mul(127.5).round()
