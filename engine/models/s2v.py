"""Sound injected into the Transformer, and condition tokens, as Wan2.2-S2V does both.

After some blocks every token attends to the few sound tokens of its own latent frame, under a norm
whose shift and scale come from the sound of that frame. The picture and the packed past enter as
tokens of timestep zero, once a session; their keys are the window's sink. Read from the definition
(github.com/Wan-Video/Wan2.2 at 42bf4cf, wan/modules/s2v); what a causal stream makes of it follows
github.com/Alibaba-Quark/LiveAvatar at 9c2c38d: condition tokens see only each other.
Knows nothing of signals, of the window or of denoising.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.fp8 import Linear
from engine.models.cross_context import KeyMaker, dense
from engine.models.dit_config import DitConfig, Shard
from engine.models.dit_weights import DitWeights
from engine.models.s2v_weights import SpeechWeights
from engine.parallel import Rows
from engine.sharded_linear import ShardedLinear

NORM_EPS = 1e-5  # of the norms that sound modulates; all others have 1e-6
NOISY, PICTURE, PAST = 0, 1, 2  # rows of the learnt role of a token


class SpeechInjection:
    """One chunk's sound as keys, values and norms of every injection, at fixed addresses."""

    def __init__(
        self, config: DitConfig, part: Shard, weights: SpeechWeights, shared: ShardedLinear,
        device: torch.device, dtype: torch.dtype,
    ) -> None:  # fmt: skip
        assert config.speech is not None
        self.weights, self._frames, self._dtype = weights, config.frames, dtype
        self.places = {layer: j for j, layer in enumerate(config.speech.layers)}
        self._per_frame = config.tokens // config.frames
        self._make = KeyMaker(config, part, shared, device)
        places, count = len(self.places), config.speech.context_tokens
        shape = (places, config.frames, count, part.heads, config.head_dim)
        self._k = torch.zeros(shape, dtype=dtype, device=device)
        self._v = torch.zeros_like(self._k)
        self._norms = torch.zeros(places, config.frames, 2, config.width, device=device)
        # what every noisy token gets: its role, and a pose's embedding or, without one, its bias
        self._noisy = torch.zeros(config.tokens, config.width, dtype=dtype, device=device)
        self.set_pose(None)

    def set_pose(self, latent: Tensor | None) -> None:
        """Tokens [M, pose_channels * p * p] of a pose's latent for the next chunk, or none."""
        pose = self.weights.pose_in
        bias = 0 if pose.bias is None else pose.bias.float()
        steered = bias if latent is None else dense(latent, pose)
        self._noisy.copy_((steered + self.weights.roles[NOISY]).expand_as(self._noisy))

    def add_noisy(self, x: Tensor, first: int) -> None:
        """Onto rows [n, width] of the stream that begin at token `first` of the chunk."""
        x.add_(self._noisy[first : first + x.shape[0]])

    def hear(self, local: Tensor, whole: Tensor) -> None:
        """One chunk: tokens [frames, tokens + 1, width] and one summary a frame [frames, width]."""
        flat = local.flatten(0, 1)
        k, v = self._make(flat, self.weights.kv, self.weights.k_norm, self._dtype)
        self._k.copy_(k.reshape(self._k.shape))
        self._v.copy_(v.reshape(self._v.shape))
        moved = F.silu(whole.float())
        for place, injector in enumerate(self.weights.injectors):
            self._norms[place].copy_(dense(moved, injector.adain).unflatten(-1, (2, -1)))

    def norms(self, place: int, rows: Rows) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """(rows of this rank's stretch, shift, scale [width]) of each latent frame in it."""
        for frame in range(self._frames):
            start = max(frame * self._per_frame - rows.first, 0)
            stop = min((frame + 1) * self._per_frame - rows.first, rows.own)
            if start < stop:
                shift, scale = self._norms[place, frame]
                yield slice(start, stop), shift, scale

    def attend(self, place: int, q: Tensor) -> Tensor:
        """q [M, own heads, hd], all frames -> [M, own width]; each frame sees its own sound."""
        query = q.unflatten(0, (self._frames, -1)).transpose(1, 2)
        keys, values = (t[place].transpose(1, 2) for t in (self._k, self._v))
        out = F.scaled_dot_product_attention(query, keys, values)
        return out.transpose(1, 2).reshape(q.shape[0], -1)


def condition_tokens(
    config: DitConfig, weights: DitWeights, picture: Tensor, past: Tensor
) -> Tensor:
    """[sink_tokens, width] fp32 of the picture's latent tokens [h * w, token_channels] and of past
    latent frames [C, n, H, W], newest last: nearest first, then twice and four times as coarse.
    """
    speech, extra = config.speech, weights.speech
    assert speech is not None and extra is not None
    near = [dense(picture, weights.patch_in) + extra.roles[PICTURE]]
    missing = speech.past_frames - past.shape[1]  # frames before the beginning are zeros
    past = F.pad(past.float(), (0, 0, 0, 0, max(0, missing), 0))[:, -speech.past_frames :]
    end = past.shape[1]
    for frames, by, layer in zip(speech.packs, (1, 2, 4), extra.packs, strict=True):
        tokens = _packed(past[:, end - frames : end], layer, by, config)
        near.append(tokens + extra.roles[PAST])
        end -= frames
    return torch.cat(near)


def _packed(latent: Tensor, layer: Linear, by: int, config: DitConfig) -> Tensor:
    """Frames [C, n, H, W] -> tokens that cover by x (p by) x (p by) latent pixels each."""
    kernel = by, by * config.patch, by * config.patch
    weight = layer.weight.float().view(config.width, -1, *kernel)
    bias = None if layer.bias is None else layer.bias.float()
    return F.conv3d(latent[None], weight, bias, stride=kernel)[0].flatten(1).t()
