"""SyncNet as data: the two towers whose names and shapes `syncnet_v2.model` fills, and its MFCC.

Shapes: J. S. Chung, A. Zisserman, "Out of time", 2016, as published with the weights (MIT).
Imports torch. Knows nothing of files or faces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.fft import dct
from torch import nn

RATE = 16_000
FFT, FRAME, STEP = 512, 400, 160
FILTERS, CEPSTRA, LIFTER = 26, 13, 22


def _block2(channels: tuple[int, int], kernel: tuple[int, int], pad: int, pool: Any) -> list[Any]:
    layers = [
        nn.Conv2d(*channels, kernel, padding=pad), nn.BatchNorm2d(channels[1]), nn.ReLU()
    ]  # fmt: skip
    return layers + ([nn.MaxPool2d(*pool)] if pool else [])


def _block3(channels: tuple[int, int], kernel: Any, stride: Any, pad: Any, pool: Any) -> list[Any]:
    layers = [
        nn.Conv3d(*channels, kernel, stride, pad), nn.BatchNorm3d(channels[1]), nn.ReLU()
    ]  # fmt: skip
    return layers + ([nn.MaxPool3d(*pool)] if pool else [])


def _head() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 1024)
    )  # fmt: skip


class Towers(nn.Module):
    """Sound [n, 1, 13, 20] MFCC and lips [n, 3, 5, 224, 224] BGR 0..255 -> [n, 1024] each."""

    def __init__(self) -> None:
        super().__init__()
        self.netcnnaud = nn.Sequential(
            *_block2((1, 64), (3, 3), 1, ((1, 1), (1, 1))),
            *_block2((64, 192), (3, 3), 1, ((3, 3), (1, 2))),
            *_block2((192, 384), (3, 3), 1, None),
            *_block2((384, 256), (3, 3), 1, None),
            *_block2((256, 256), (3, 3), 1, ((3, 3), (2, 2))),
            *_block2((256, 512), (5, 4), 0, None),
        )
        small, none = (1, 3, 3), (0, 0, 0)
        side, halve = (0, 1, 1), (1, 2, 2)
        self.netcnnlip = nn.Sequential(
            *_block3((3, 96), (5, 7, 7), halve, none, (small, halve)),
            *_block3((96, 256), (1, 5, 5), halve, side, (small, halve, side)),
            *_block3((256, 256), small, 1, side, None),
            *_block3((256, 256), small, 1, side, None),
            *_block3((256, 256), small, 1, side, (small, halve)),
            *_block3((256, 512), (1, 6, 6), 1, none, None),
        )
        self.netfcaud, self.netfclip = _head(), _head()

    def sound(self, mfcc: torch.Tensor) -> torch.Tensor:
        return self.netfcaud(self.netcnnaud(mfcc).flatten(1))

    def lips(self, frames: torch.Tensor) -> torch.Tensor:
        return self.netfclip(self.netcnnlip(frames).flatten(1))


def _filters() -> np.ndarray:
    """[26, 257] triangles on whole FFT bins, even on the mel scale from 0 to 8 kHz."""
    mels = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), FILTERS + 2)
    bins = np.floor((FFT + 1) * 700 * (10 ** (mels / 2595) - 1) / RATE).astype(int)
    bank = np.zeros((FILTERS, FFT // 2 + 1))
    for i in range(FILTERS):
        low, top, high = bins[i : i + 3]
        bank[i, low:top] = (np.arange(low, top) - low) / max(top - low, 1)
        bank[i, top:high] = (high - np.arange(top, high)) / max(high - top, 1)
    return bank


def mfcc(pcm: np.ndarray) -> np.ndarray:
    """16 kHz samples in -1..1 -> [frames of 10 ms, 13], with the energy in the first column."""
    signal = np.asarray(pcm, np.float64) * 32768
    signal = np.append(signal[:1], signal[1:] - 0.97 * signal[:-1])
    count = 1 + max(0, -(-(len(signal) - FRAME) // STEP))
    padded = np.concatenate([signal, np.zeros(max(0, (count - 1) * STEP + FRAME - len(signal)))])
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::STEP][:count]
    power = np.abs(np.fft.rfft(frames, FFT)) ** 2 / FFT
    tiny = np.finfo(float).eps
    bands = np.log(np.maximum(power @ _filters().T, tiny))
    cepstra = np.asarray(dct(bands, type=2, axis=1, norm="ortho"))[:, :CEPSTRA]
    cepstra = cepstra * (1 + LIFTER / 2 * np.sin(np.pi * np.arange(CEPSTRA) / LIFTER))
    cepstra[:, 0] = np.log(np.maximum(power.sum(1), tiny))
    return cepstra
