"""Geometry of the public video autoencoders, Wan2.1's and Wan2.2's, and the scale of their latents.

The scales are the constants that both the original repository and the diffusers configuration
publish. Knows nothing of weights or of how they are applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Level:
    """Channels of one decoder level: what comes in, what its blocks make, what it hands on."""

    into: int
    out: int
    onward: int


@dataclass(frozen=True, slots=True)
class VaeConfig:
    """Geometry of an autoencoder; the default is Wan2.2's: 16 x 16 x 4, 555M decoder parameters.

    `residual` blocks (Wan2.2) carry a shortcut around each level and keep their width through the
    doubling; plain ones (Wan2.1) halve it there. `mean` and `std` per latent channel turn the
    latents of the diffusion model into the decoder's; empty: they are the same.
    """

    latent_grid: tuple[int, int]  # latent pixels down and across
    latent_channels: int = 48
    base: int = 256
    multipliers: tuple[int, ...] = (1, 2, 4, 4)
    blocks: int = 3  # residual blocks a decoder level; an encoder level has one fewer
    doubles_time: tuple[bool, ...] = (True, True, False)
    patch: int = 2  # pixels a final channel group unfolds to, each way
    residual: bool = True
    encoder_base: int = 160
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @property
    def widths(self) -> list[int]:
        """Channels before level 0, then what the blocks of each level make."""
        return [self.base * m for m in (self.multipliers[-1], *self.multipliers[::-1])]

    @property
    def encoder_widths(self) -> list[int]:
        """Channels before the encoder's level 0, then after each level."""
        return [self.encoder_base * m for m in (1, *self.multipliers)]

    @property
    def halves_time(self) -> tuple[bool, ...]:
        """Which encoder levels halve time: the decoder's, backwards."""
        return self.doubles_time[::-1]

    @property
    def decoder_levels(self) -> list[Level]:
        levels, into = [], self.widths[0]
        for out in self.widths[1:]:
            onward = out if self.residual else out // 2
            levels.append(Level(into, out, onward))
            into = onward
        return levels

    @property
    def levels(self) -> int:
        return len(self.multipliers)

    @property
    def spatial(self) -> int:
        """Pixels a latent pixel stands for, each way."""
        return self.patch * 2 ** (self.levels - 1)

    @property
    def picture(self) -> tuple[int, int]:
        """Height and width of what is decoded, in pixels."""
        return self.latent_grid[0] * self.spatial, self.latent_grid[1] * self.spatial


def encoder_pairs(config: VaeConfig) -> list[tuple[int, int]]:
    """(channels in, channels out) of each encoder level."""
    return list(pairwise(config.encoder_widths))


WAN_2_1_MEAN = (
    -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
    0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921,
)  # fmt: skip
WAN_2_1_STD = (
    2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
    3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160,
)  # fmt: skip
WAN_2_2_MEAN = (
    -0.2289, -0.0052, -0.1323, -0.2339, -0.2799, 0.0174, 0.1838, 0.1557,
    -0.1382, 0.0542, 0.2813, 0.0891, 0.1570, -0.0098, 0.0375, -0.1825,
    -0.2246, -0.1207, -0.0698, 0.5109, 0.2665, -0.2108, -0.2158, 0.2502,
    -0.2055, -0.0322, 0.1109, 0.1567, -0.0729, 0.0899, -0.2799, -0.1230,
    -0.0313, -0.1649, 0.0117, 0.0723, -0.2839, -0.2083, -0.0520, 0.3748,
    0.0152, 0.1957, 0.1433, -0.2944, 0.3573, -0.0548, -0.1681, -0.0667,
)  # fmt: skip
WAN_2_2_STD = (
    0.4765, 1.0364, 0.4514, 1.1677, 0.5313, 0.4990, 0.4818, 0.5013,
    0.8158, 1.0344, 0.5894, 1.0901, 0.6885, 0.6165, 0.8454, 0.4978,
    0.5759, 0.3523, 0.7135, 0.6804, 0.5833, 1.4146, 0.8986, 0.5659,
    0.7069, 0.5338, 0.4889, 0.4917, 0.4069, 0.4999, 0.6866, 0.4093,
    0.5709, 0.6065, 0.6415, 0.4944, 0.5726, 1.2042, 0.5458, 1.6887,
    0.3971, 1.0600, 0.3943, 0.5537, 0.5444, 0.4089, 0.7468, 0.7744,
)  # fmt: skip


def wan_2_1(latent_grid: tuple[int, int], base: int = 96) -> VaeConfig:
    """8 x 8 x 4, 16 channels: the 1.3B, both 14B and the speech-to-video model."""
    return VaeConfig(
        latent_grid, 16, base, patch=1, residual=False, encoder_base=base,
        mean=WAN_2_1_MEAN, std=WAN_2_1_STD,
    )  # fmt: skip


def wan_2_2(latent_grid: tuple[int, int], base: int = 256, encoder_base: int = 160) -> VaeConfig:
    """16 x 16 x 4, 48 channels: the TI2V-5B."""
    return VaeConfig(
        latent_grid, 48, base, encoder_base=encoder_base, mean=WAN_2_2_MEAN, std=WAN_2_2_STD
    )
