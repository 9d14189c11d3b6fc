"""The tiny video decoder (taew2_1.pth, taew2_2.pth): far fewer operations, a softer picture.

A stack of 2-D convolutions with one frame of memory a block. It takes the diffusion model's latents
as they are and gives one picture for the first latent frame, four for each later one, like
`CausalVae`, whose place it takes. The files' encoder half is not read. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.graph import Graphs

LEVELS = 3
BLOCKS = 3  # blocks with memory a level
ROW = BLOCKS + 3  # modules a level in the file: blocks, doubling (no weights), time, convolution
FIRST = 3  # its first block, after clamp, convolution and ReLU
LAST = FIRST + LEVELS * ROW + 1  # the last convolution, after a ReLU


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """The default is taew2_1's: 8 x 8 x 4; taew2_2's has 48 channels and a patch of 2."""

    latent_grid: tuple[int, int]
    latent_channels: int = 16
    widths: tuple[int, ...] = (256, 128, 64, 64)
    doubles_time: tuple[bool, ...] = (False, True, True)
    patch: int = 1

    @property
    def picture(self) -> tuple[int, int]:
        factor = self.patch * 2**LEVELS
        return self.latent_grid[0] * factor, self.latent_grid[1] * factor

    @property
    def frames(self) -> int:
        """Pictures a latent frame."""
        return 2 ** sum(self.doubles_time)


def tiny_shapes(config: TinyConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor of the decoder, by the file's names."""
    widths = config.widths
    shapes: dict[str, tuple[int, ...]] = {}

    def conv(name: str, out: int, into: int, bias: bool = True) -> None:
        shapes[f"decoder.{name}.weight"] = (out, into, 3, 3)
        if bias:
            shapes[f"decoder.{name}.bias"] = (out,)

    conv("1", widths[0], config.latent_channels)
    for level, doubles in enumerate(config.doubles_time):
        begin, width = FIRST + level * ROW, widths[level]
        for block in range(begin, begin + BLOCKS):
            conv(f"{block}.conv.0", width, 2 * width)
            conv(f"{block}.conv.2", width, width)
            conv(f"{block}.conv.4", width, width)
        grown = width * (2 if doubles else 1)
        shapes[f"decoder.{begin + BLOCKS + 1}.conv.weight"] = (grown, width, 1, 1)
        conv(f"{begin + BLOCKS + 2}", widths[level + 1], width, bias=False)
    conv(f"{LAST}", 3 * config.patch**2, widths[LEVELS])
    return shapes


class TinyDecoder:
    """Decodes latents in order; the interface of `CausalVae`."""

    def __init__(
        self, config: TinyConfig, weights: Mapping[str, Tensor], device: torch.device,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:  # fmt: skip
        self.config, self.device, self.dtype = config, device, dtype
        shapes = tiny_shapes(config)
        self._weights = {
            name.removeprefix("decoder."): weights[name][-shape[0] :].to(device, dtype)
            for name, shape in shapes.items()
        }  # of a time step that grows more than asked, the newest frames are kept
        self._past: dict[int, Tensor] = {}
        height, width = config.latent_grid
        for level in range(LEVELS):
            for block in range(FIRST + level * ROW, FIRST + level * ROW + BLOCKS):
                shape = (1, config.widths[level], height << level, width << level)
                self._past[block] = torch.zeros(shape, device=device, dtype=dtype)
        self.latent = torch.zeros(config.latent_channels, height, width, device=device)
        shape = (config.frames, *config.picture, 4)
        self.pictures = torch.full(shape, 255, dtype=torch.uint8, device=device)
        self.graphs = Graphs()
        self.reset()

    def reset(self) -> None:
        """As new: the next latent is the first of a clip."""
        for past in self._past.values():
            past.zero_()
        self.first = True

    @torch.inference_mode()
    def capture(self) -> None:
        """Record the decode as a graph; the state is reset."""
        self.graphs.capture("decode", self._run)
        self.reset()

    @torch.inference_mode()
    def decode(self, latent: Tensor) -> Tensor:
        """latent [channels, H, W] of one latent frame -> [1 or 4, height, width, 4] uint8 BGRA.

        A view of a buffer, valid until the next call; work is queued, not waited for.
        """
        self.latent.copy_(latent)
        if not self.graphs.replay("decode"):
            self._run()
        # the first latent's frames but the newest lie before the clip
        shown = self.pictures[-1:] if self.first else self.pictures
        self.first = False
        return shown

    def _run(self) -> None:
        value = self.signal().clamp(0, 1).mul(255).round()
        self.pictures[..., :3] = value.permute(0, 2, 3, 1).flip(-1)

    def signal(self) -> Tensor:
        """The newest latent's frames [4, 3, height, width] RGB, 0..1 when it is sure."""
        x = torch.tanh(self.latent[None].to(self.dtype) / 3) * 3
        x = self._conv("1", x).relu()
        for level in range(LEVELS):
            begin = FIRST + level * ROW
            for block in range(begin, begin + BLOCKS):
                x = self._remembering(block, x)
            x = self._grow(begin + BLOCKS + 1, x)  # before doubling: a quarter of the work
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = self._conv(f"{begin + BLOCKS + 2}", x)
        x = self._conv(f"{LAST}", x.relu())
        return F.pixel_shuffle(x, self.config.patch).float()

    def _remembering(self, block: int, x: Tensor) -> Tensor:
        """Each frame sees the one before it, the first of them the last of the chunk before."""
        past = self._past[block]
        seen = torch.cat((x, torch.cat((past, x[:-1]))), 1)
        past.copy_(x[-1:])
        for step in ("0", "2"):
            seen = self._conv(f"{block}.conv.{step}", seen).relu()
        return (self._conv(f"{block}.conv.4", seen) + x).relu()

    def _grow(self, index: int, x: Tensor) -> Tensor:
        grown = F.conv2d(x, self._weights[f"{index}.conv.weight"])
        return grown.reshape(-1, x.shape[1], *x.shape[2:])

    def _conv(self, name: str, x: Tensor) -> Tensor:
        bias = self._weights.get(f"{name}.bias")
        return F.conv2d(x, self._weights[f"{name}.weight"], bias, padding=1)
