"""Makes training batches on the device: stretch, warp, room, noise, gain, silence.

All of it happens on mel power, where a waveform is not needed: a whole batch costs milliseconds.
Imports torch: used by training alone. Knows nothing of the net or the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.speech.corpus.shard import CODE_FLOOR, CODE_STEP, LABELS_PER_HOP
from engine.speech.encoded import HEAD_OFFSETS_MS
from engine.speech.features import (
    BAND_SCALE,
    GRID_OFFSET,
    HOP,
    INPUTS,
    MEAN_FIRST,
    MEAN_LONG,
    MELS,
    POWER_FLOOR,
    mel_edges_hz,
)

LOOKAHEAD = 3_840  # 48 kHz samples heard beyond the frame centre
# How often each source and each kind of noise is drawn, whatever its length. Human voices first:
# LibriSpeech's 202 readers are a tenth of the hours and nearly half of the draws.
SOURCE_DRAW = {
    "librispeech": 0.45,
    "asterisk": 0.16,
    "fillets": 0.08,
    "festival": 0.14,
    "espeak": 0.06,
    "flite": 0.03,
    "hibari": 0.04,
    "kokoro": 0.02,
}
NOISE_DRAW = {"stationary": 0.44, "babble": 0.16, "music": 0.24, "sound": 0.16}
SILENT_SHARE = 0.10  # of the items hold no speech at all
CUT_SHARE = 0.35  # have a stretch of 0.4 to 2 s without speech, in which noise goes on


@dataclass(frozen=True, slots=True)
class Batch:
    inputs: Tensor  # [batch, steps, INPUTS]
    phones: Tensor  # [batch, steps, heads] int64
    speech: Tensor  # [batch, steps] float: somebody spoke in the last 0.25 s or will in 80 ms


class BatchMaker:
    """Draws batches from one shard held on the device."""

    def __init__(
        self, shard: dict[str, np.ndarray], device: torch.device, steps: int, seed: int
    ) -> None:
        self.device, self.steps, self.hops = device, steps, 2 * steps
        self._random = torch.Generator(device).manual_seed(seed)
        self._mel = torch.as_tensor(shard["mel"], device=device)
        self._labels = torch.as_tensor(shard["labels"], device=device)
        self._noise = torch.as_tensor(shard["noise"], device=device)
        self._sources = _ranges(shard["source_hops"], device)
        shares = [SOURCE_DRAW.get(str(name), 0.03) for name in shard["source_names"]]
        self._share = torch.tensor(shares, device=device)
        self._kinds = _ranges(shard["noise_hops"], device)
        draw = [NOISE_DRAW.get(str(name), 0.1) for name in shard["noise_names"]]
        self._kind_share = torch.tensor(draw, device=device)
        self.mean = self._training_mean()
        self._warps, self._warp_grid = _warp_positions(device)
        self._mean_rows = [
            _mean_matrix(self.hops, first, device) for first in (MEAN_FIRST, MEAN_LONG)
        ]
        self._lags = torch.arange(self.hops, device=device)

    def draw(self, size: int, strength: float) -> Batch:
        """`strength` 0..1 scales how often things are disturbed (ramped during training)."""
        log_power, phones = self._speech(size)
        log_power = self._coloured(log_power, strength)
        power = self._room(log_power.exp(), strength)
        power, phones, _ = self._silenced(power, phones, strength)
        power = self._noisy(power, phones, strength)
        inputs = self._inputs(power, strength)
        return Batch(inputs, phones, self._speaking(phones))

    # -- speech -----------------------------------------------------------------------------

    def _speech(self, size: int) -> tuple[Tensor, Tensor]:
        source = torch.multinomial(self._share, size, True, generator=self._random)
        first, length = self._sources[0][source], self._sources[1][source]
        pace = (self._normal(size) * 0.1).exp().clamp(0.78, 1.28)
        span = (self.hops * pace + 16).long()
        start = first + (self._uniform(size) * (length - span).clamp(min=1)).long()
        position = start[:, None] + pace[:, None] * self._lags
        warp = 0.5 * (pace.log() / 0.1) * 0.06 + self._normal(size) * 0.085
        log_power = self._warped(self._read(position), warp)
        return log_power, self._targets(position, pace)

    def _read(self, position: Tensor) -> Tensor:
        low = position.floor().long().clamp(0, len(self._mel) - 2)
        part = (position - low)[..., None]
        codes = torch.lerp(self._mel[low].float(), self._mel[low + 1].float(), part)
        return codes * CODE_STEP + CODE_FLOOR

    def _targets(self, position: Tensor, pace: Tensor) -> Tensor:
        """Phones at each head's instant: hop k of a stream ends at 48 kHz sample 500(k+1)+326."""
        ends = 2 * HOP * (position[:, 1::2] + 1) + 2 * GRID_OFFSET
        offsets = torch.tensor(HEAD_OFFSETS_MS, device=self.device) * 48 - LOOKAHEAD
        times = ends[..., None] + pace[:, None, None] * offsets
        index = (times * LABELS_PER_HOP / (2 * HOP)).round().long()
        return self._labels[index.clamp(0, len(self._labels) - 1)].long()

    def _warped(self, log_power: Tensor, warp: Tensor) -> Tensor:
        row = ((warp.clamp(-0.2, 0.2) + 0.2) / 0.4 * (len(self._warps) - 1)).round().long()
        low = self._warps[row].floor().long().clamp(0, MELS - 2)
        part = (self._warps[row] - low).clamp(0, 1)[:, None, :]
        index = low[:, None, :].expand_as(log_power)
        return torch.lerp(log_power.gather(2, index), log_power.gather(2, index + 1), part)

    # -- colour, room, silence, noise ---------------------------------------------------------

    def _coloured(self, log_power: Tensor, strength: float) -> Tensor:
        size = len(log_power)
        z = self._warp_grid[None]
        bend = torch.cos(torch.pi * z * (0.5 + 1.5 * self._uniform(size))[:, None])
        tilt = self._normal(size)[:, None] * 0.6 * z + self._normal(size)[:, None] * 0.5 * bend
        band = torch.arange(MELS, device=self.device)[None]
        cut = (band > 26 + 8 * self._uniform(size)[:, None]) & self._some(size, 0.16 * strength)[
            :, None
        ]
        low = (band < 1 + 6 * self._uniform(size)[:, None]) & self._some(size, 0.12 * strength)[
            :, None
        ]
        loss = cut * -(4 + 6 * self._uniform(size)[:, None]) + low * -(
            2 + 6 * self._uniform(size)[:, None]
        )
        log_power = log_power + (strength * tilt + loss)[:, None, :]
        return self._smoothed(log_power, strength)

    def _smoothed(self, log_power: Tensor, strength: float) -> Tensor:
        """A vocoder's blur in time, on some."""
        blurred = log_power.clone()
        blurred[:, 1:-1] = (
            0.25 * log_power[:, :-2] + 0.5 * log_power[:, 1:-1] + 0.25 * log_power[:, 2:]
        )
        blurred[:, 1:-1] = 0.25 * blurred[:, :-2] + 0.5 * blurred[:, 1:-1] + 0.25 * blurred[:, 2:]
        amount = self._some(len(log_power), 0.25 * strength) * self._uniform(len(log_power))
        return torch.lerp(log_power, blurred, amount[:, None, None])

    def _room(self, power: Tensor, strength: float) -> Tensor:
        """An exponential tail of 0.12 to 0.7 s added to some, direct-to-tail +14 to -3 dB."""
        size = len(power)
        chosen = self._some(size, 0.35 * strength)
        decay = 6.9 * 2 / (96 * (0.12 + 0.58 * self._uniform(size)))  # neper of power a hop
        level = 10 ** ((17 * self._uniform(size) - 14) / 10) * (1 - (-decay).exp()) * chosen
        lag = self._lags[:, None] - self._lags[None]
        tail = torch.exp(-decay[:, None, None] * lag.clamp(min=0)) * (lag > 0)
        return power + level[:, None, None] * torch.bmm(tail, power)

    def _silenced(
        self, power: Tensor, phones: Tensor, strength: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """No speech at all in some items, and a stretch cut out of others."""
        size = len(power)
        silent = self._some(size, SILENT_SHARE)
        begin = self._uniform(size) * self.hops
        length = (0.4 + 1.6 * self._uniform(size)) * 96 * self._some(size, CUT_SHARE * strength)
        hop = self._lags[None]
        cut = ((hop >= begin[:, None]) & (hop < (begin + length)[:, None])) | silent[:, None]
        power = torch.where(cut[..., None], torch.full_like(power, 1e-9), power)
        # a target lies 7.03 hops before its step's end, less its head's offset
        offsets = [ms * 0.096 - LOOKAHEAD / (2 * HOP) for ms in HEAD_OFFSETS_MS]
        at = (
            (self._lags[1::2][:, None] + 1 + torch.tensor(offsets, device=self.device))
            .round()
            .long()
        )
        muted = cut[:, at.clamp(0, self.hops - 1)]
        return power, phones.masked_fill(muted, 0), silent

    def _noisy(self, power: Tensor, phones: Tensor, strength: float) -> Tensor:
        size = len(power)
        silent = ~(phones > 0).any(2).any(1)
        loud = torch.quantile(power.sum(2), 0.85, dim=1).clamp(min=1e-7)
        alone = 10 ** (-4.5 + 4.5 * self._uniform(size))
        loud = torch.where(silent, alone, loud)
        ratio = 10 ** (-(35 * self._uniform(size) - 1) / 10)
        ratio = torch.where(silent, torch.ones_like(ratio), ratio)
        on = torch.where(silent, self._some(size, 0.93), self._some(size, 0.68 * strength))
        power = power + self._some_noise(size) * (loud * ratio * on)[:, None, None]
        gain = 10 ** ((27 * self._uniform(size) - 22) / 10)
        floor = 10 ** (-9 + 3.6 * self._uniform(size))
        grain = -torch.log1p(-self._uniform(power.shape).clamp(max=0.9999))
        return power * gain[:, None, None] + floor[:, None, None] * grain

    def _some_noise(self, size: int) -> Tensor:
        """[size, hops, MELS] of unit mean power, tilted, a third of it pulsing."""
        kind = torch.multinomial(self._kind_share, size, True, generator=self._random)
        room = (self._kinds[1][kind] - self.hops).clamp(min=1)
        start = self._kinds[0][kind] + (self._uniform(size) * room).long()
        index = (start[:, None] + self._lags).clamp(max=len(self._noise) - 1)
        log_noise = self._noise[index].float() * CODE_STEP + CODE_FLOOR
        tilt = 0.6 * self._normal(size)[:, None] * self._warp_grid[None]
        noise = (log_noise + tilt[:, None] + self._pulse(size)[..., None]).exp()
        return noise / noise.sum(2).mean(1).clamp(min=1e-6)[:, None, None]

    def _pulse(self, size: int) -> Tensor:
        """[size, hops] log gain: 0.7 to 9 Hz, up to 7 neper deep, round or square."""
        rate = 0.7 * (13 ** self._uniform(size))[:, None]
        phase = self._uniform(size)[:, None]
        wave = torch.sin(2 * torch.pi * (rate * self._lags / 96 + phase))
        wave = torch.where(self._some(size, 0.4)[:, None], (4 * wave).tanh(), wave)
        depth = 7 * self._uniform(size) * self._some(size, 0.4)
        return depth[:, None] * (wave - 1) / 2

    # -- inputs -------------------------------------------------------------------------------

    def _inputs(self, power: Tensor, strength: float) -> Tensor:
        """The same arithmetic as `features.InputStream`, over the whole clip at once."""
        size = len(power)
        log_power = torch.log(power + POWER_FLOOR)
        long_run = self._some(size, 0.5)
        own = torch.where(
            self._some(size, 0.75)[:, None],
            log_power.mean(1),
            torch.quantile(log_power, 0.1, dim=1),
        )
        start = torch.where(long_run[:, None], own, self.mean[None])
        means = torch.stack([self._running(rows, log_power, start) for rows in self._mean_rows])
        mean = torch.where(long_run[:, None, None], means[1], means[0])
        bands = (log_power - mean) * BAND_SCALE
        first = (MELS - 6) * self._uniform(size)
        band = torch.arange(MELS, device=self.device)[None]
        wide = first + 1 + 5 * self._uniform(size)
        hidden = (band >= first[:, None]) & (band < wide[:, None])
        hidden &= self._some(size, 0.25 * strength)[:, None]
        bands = bands.masked_fill(hidden[:, None], 0.0)
        energy = (torch.log(power.sum(2, keepdim=True) + 1e-5) + 4) * 0.25
        return torch.cat([bands, energy], 2).reshape(size, self.steps, INPUTS)

    def _running(self, rows: tuple[Tensor, Tensor], log_power: Tensor, start: Tensor) -> Tensor:
        matrix, left = rows
        return matrix @ log_power + left[None, :, None] * start[:, None]

    def _speaking(self, phones: Tensor) -> Tensor:
        heard = (phones > 0).any(2).float()[:, None]
        held = torch.nn.functional.max_pool1d(torch.nn.functional.pad(heard, (11, 0)), 12, 1)
        return held[:, 0]

    def _training_mean(self) -> Tensor:
        shares = self._share / self._share.sum()
        means = []
        for first, length in zip(*[r.tolist() for r in self._sources], strict=True):
            some = self._mel[first : first + length : 37].float() * CODE_STEP + CODE_FLOOR
            means.append(torch.log(some.exp() + POWER_FLOOR).mean(0))
        return (shares[:, None] * torch.stack(means)).sum(0)

    # -- chance -------------------------------------------------------------------------------

    def _uniform(self, shape: Any) -> Tensor:
        return torch.rand(shape, generator=self._random, device=self.device)

    def _normal(self, size: int) -> Tensor:
        return torch.randn(size, generator=self._random, device=self.device)

    def _some(self, size: int, share: float) -> Tensor:
        return self._uniform(size) < share


def _ranges(hops: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """First hop and length of each part of a row."""
    length = torch.as_tensor(hops.astype(np.int64), device=device)
    return torch.cumsum(length, 0) - length, length


def _warp_positions(device: torch.device) -> tuple[Tensor, Tensor]:
    """[41, MELS] source band of each band for frequency factors exp(-0.2..0.2); [MELS] -1..1."""
    mel = 2595 * np.log10(1 + mel_edges_hz()[1:-1] / 700)
    hz = mel_edges_hz()[1:-1]
    rows = [
        np.interp(2595 * np.log10(1 + hz / np.exp(warp) / 700), mel, np.arange(MELS))
        for warp in np.linspace(-0.2, 0.2, 41)
    ]
    grid = np.linspace(-1, 1, MELS)
    return (
        torch.tensor(np.array(rows), dtype=torch.float32, device=device),
        torch.tensor(grid, dtype=torch.float32, device=device),
    )


def _mean_matrix(hops: int, first: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Running mean as a matrix over hops and what is left of the starting mean."""
    matrix, left = np.zeros((hops, hops)), np.zeros(hops)
    row, rest = np.zeros(hops), 1.0
    for hop in range(hops):
        rate = max(1 / (hop + first), 1 / MEAN_LONG)
        row = row * (1 - rate)
        row[hop] += rate
        rest *= 1 - rate
        matrix[hop], left[hop] = row, rest
    return (
        torch.tensor(matrix, dtype=torch.float32, device=device),
        torch.tensor(left, dtype=torch.float32, device=device),
    )
