"""Speech features of wav2vec2, streaming: every hidden state, one column a video frame.

A window of past features and a few of look-ahead slides over the sound; only the chunk's own are
kept. The convolutions of a window are those of the whole clip, to rounding. Above them the
positional convolution sees 64 features (1.28 s) each way and attention sees everything, so what
lies beyond the window is missed: with 64 features ahead random weights are off by 0.4 % of their
spread, with the 5 of the default by 26 % (tests/models/test_wav2vec_parity.py). For trained ones
the loss is not known here; more `ahead` buys accuracy with 20 ms of delay each.
Knows nothing of video models.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.models.audio_grid import FEATURE_RATE, HOP, lookahead, place, samples_for
from engine.models.audio_level import RunningLevel, RunningNorm
from engine.models.audio_resample import REACH, Downsampler

PAST = 5 * FEATURE_RATE  # features before the chunk that the window holds
AHEAD = 5  # features after it: 100 ms of delay


class AudioFeatures:
    """`features(pcm, frames)` of consecutive chunks; chunk 0 brings `lookahead_samples` more."""

    def __init__(
        self, model: Any, normalise: bool, fps: Fraction = Fraction(24), frames: int = 4,
        past: int = PAST, ahead: int = AHEAD,
    ) -> None:  # fmt: skip
        """`model` a transformers Wav2Vec2Model, `normalise` as its feature extractor says."""
        self.model, self.fps, self.frames, self.past, self.ahead = model, fps, frames, past, ahead
        self.lookahead_samples = lookahead(fps, frames, ahead, REACH)
        weight = next(model.parameters())
        self.device, self.dtype = weight.device, weight.dtype
        self._level = RunningLevel() if normalise else None
        self._norm = _running_norm(model)
        self._down = Downsampler()
        self.reset()

    @property
    def layers(self) -> int:
        return int(self.model.config.num_hidden_layers) + 1

    @property
    def width(self) -> int:
        return int(self.model.config.hidden_size)

    def reset(self) -> None:
        """The next chunk is the first."""
        self._down.reset()
        if self._level is not None:
            self._level.reset()
        if self._norm is not None:
            self._norm.reset()
        self._heard = np.zeros(0, np.float32)  # 16 kHz, from feature `_first` on
        self._first = 0
        self._frame = 0
        self._normed_to = 0  # steps of the first convolution that its norm has seen

    @torch.inference_mode()
    def features(self, pcm: np.ndarray) -> Tensor:
        """pcm [samples] float32 mono 48 kHz of one chunk -> [layers, frames, width] fp32."""
        new = self._down.push(pcm)
        if self._level is not None:
            self._level.hear(new)
        self._heard = np.concatenate((self._heard, new))
        places = [place(self._frame + i, self.fps) for i in range(self.frames)]
        self._frame += self.frames
        states = self._states(places[-1].last + self.ahead)
        first = torch.tensor([p.index - self._first for p in places], device=self.device)
        share = torch.tensor([float(p.share) for p in places], device=self.device)[:, None]
        after = torch.minimum(first + 1, torch.tensor(states.shape[1] - 1, device=self.device))
        result = torch.lerp(states[:, first], states[:, after], share)
        self._forget(places[-1].index + 1)
        return result

    def _states(self, last: int) -> Tensor:
        """Hidden states [layers, features, width] of the window that ends with feature `last`."""
        needed = samples_for(last - self._first)
        window = self._heard[:needed]
        assert len(window) == needed, "the chunk is short of its look-ahead"
        if self._norm is not None:
            self._count_fresh(len(window))
        if self._level is not None:
            window = self._level.normalised(window)
        heard = torch.from_numpy(np.ascontiguousarray(window)).to(self.device, self.dtype)
        told = self.model(heard[None], output_hidden_states=True)
        return torch.cat(told.hidden_states).float()

    def _count_fresh(self, samples: int) -> None:
        """Tell the norm how many steps of the first convolution (10 samples, every 5) are new."""
        assert self._norm is not None
        end = self._first * HOP // 5 + (samples - 10) // 5 + 1
        self._norm.fresh = end - self._normed_to
        self._normed_to = end

    def _forget(self, following: int) -> None:
        """Drop what the window of a chunk that begins at feature `following` does not hold."""
        first = max(self._first, following - self.past)
        self._heard = self._heard[HOP * (first - self._first) :]
        self._first = first


def _running_norm(model: Any) -> RunningNorm | None:
    """Replace the first convolution's norm over the clip by one over what was heard so far."""
    layer: Any = model.feature_extractor.conv_layers[0]
    norm = getattr(layer, "layer_norm", None)
    if isinstance(norm, RunningNorm):
        return norm
    if not isinstance(norm, nn.GroupNorm):
        return None
    layer.layer_norm = RunningNorm(norm)
    return layer.layer_norm
