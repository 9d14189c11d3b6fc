"""From a sound encoder's features, one a picture, to the sound tokens of each latent frame.

Wan2.2-S2V's causal encoder (github.com/Wan-Video/Wan2.2 at 42bf4cf, wan/modules/s2v): hidden states
mixed by learnt weights, three causal convolutions over pictures, the last two at half the rate, so
that four pictures become one latent frame. A latent frame hears its own four pictures and the five
before. Knows nothing of audio signals or of what listens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.models.dit_config import Speech
from engine.models.s2v_weights import AudioEncoderWeights, Layer

PAST_PICTURES = 5  # 2 + 2 + 4 of the three convolutions, less the 3 pictures that stride past
EPS = 1e-6


class AudioTokens:
    """`tokens(features)` of consecutive chunks; keeps the few pictures that reach into the next."""

    def __init__(self, speech: Speech, weights: AudioEncoderWeights) -> None:
        self._speech, self._weights = speech, weights
        # one buffer for life: what a chunk allocates and keeps is growth of the session
        self._past = weights.states.new_zeros(PAST_PICTURES, speech.features, dtype=torch.float32)
        self._first = True

    def reset(self) -> None:
        """The next chunk is a clip's first: before it, its first picture was heard for ever."""
        self._first = True

    def tokens(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """features [states, 4 * frames, features] -> (tokens [frames, tokens + 1, width], one
        summary a frame [frames, width]), fp32. With `sound_restarts` every chunk is a first.
        """
        mix = F.silu(self._weights.states.float())
        mixed = torch.einsum("s,spf->pf", mix / mix.sum(), features.float())
        first = self._first or self._speech.sound_restarts
        past = mixed[:1].expand(PAST_PICTURES, -1) if first else self._past
        heard = torch.cat((past, mixed))
        self._past.copy_(heard[-PAST_PICTURES:])
        self._first = False
        return self._local(heard), self._whole(heard)

    def _local(self, heard: Tensor) -> Tensor:
        """Each token is a group of the first convolution's channels, encoded alone."""
        grouped = _conv(heard.t()[None], self._weights.local, 1)
        grouped = grouped.view(self._speech.tokens, -1, grouped.shape[-1])
        tokens = self._rest(grouped).transpose(0, 1)
        padding = self._weights.padding.expand(tokens.shape[0], 1, -1)
        return torch.cat((tokens, padding), 1)

    def _whole(self, heard: Tensor) -> Tensor:
        summary = self._rest(_conv(heard.t()[None], self._weights.whole, 1))[0]
        return F.linear(summary, *self._weights.final)

    def _rest(self, x: Tensor) -> Tensor:
        """[n, width / 4, pictures] -> [n, frames, width]."""
        x = _norm_silu(x).transpose(1, 2)
        x = _norm_silu(_conv(x, self._weights.second, 2)).transpose(1, 2)
        return _norm_silu(_conv(x, self._weights.third, 2))


def _conv(x: Tensor, layer: Layer, stride: int) -> Tensor:
    """Over what is there: the pictures before are part of `x`."""
    return F.conv1d(x, *layer, stride=stride)


def _norm_silu(x: Tensor) -> Tensor:
    """[n, C, t] -> [n, t, C]; the norm has no weights."""
    x = x.transpose(1, 2)
    return F.silu(F.layer_norm(x, x.shape[-1:], eps=EPS))
