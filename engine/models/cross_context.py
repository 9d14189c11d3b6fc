"""What cross-attention reads: keys and values of text, sound and picture, for every layer.

Worked out once a session (text, picture) or once a chunk (sound), for all layers in one GEMM, into
buffers of fixed addresses. A picture's tokens have keys of their own and their result is added
(Wan2.1 I2V). Knows nothing of what encoded them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.fp8 import Activation, Linear, LinearOp
from engine.models.dit_config import DitConfig, Shard
from engine.models.dit_weights import DitWeights, ImageWeights
from engine.sharded_linear import ShardedLinear
from kernels.sdpa import sdpa


def dense(x: Tensor, layer: Linear) -> Tensor:
    """A small full-precision layer (embeddings), fp32 in and out."""
    bias = None if layer.bias is None else layer.bias.float()
    return F.linear(x.float(), layer.weight.float(), bias)


class KeyMaker:
    """Tokens [n, width] -> normed keys and values [J, n, own heads, hd] of J attentions at once."""

    def __init__(
        self, config: DitConfig, part: Shard, shared: ShardedLinear, device: torch.device
    ) -> None:
        self._part, self._head_dim, self._shared = part, config.head_dim, shared
        self._linear = LinearOp(device)

    def __call__(
        self, tokens: Tensor, kv: Linear, k_norm: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """`kv` [J * 2 * own width, width], `k_norm` [J, own width]; keys fp32, values `dtype`."""
        count, (places, width) = tokens.shape[0], k_norm.shape
        out = torch.empty(count, places * 2 * width, dtype=dtype, device=tokens.device)
        self._linear(Activation(tokens.to(dtype)), kv, out)
        k, v = out.view(count, places, 2, width).unbind(2)
        squares = k.float().square().sum(-1, keepdim=True)
        full_width = self._shared.sum_squares(squares)
        k = k.float() * torch.rsqrt(squares / full_width + 1e-6) * k_norm
        shape = count, places, self._part.heads, self._head_dim
        return k.view(shape).transpose(0, 1), v.reshape(shape).transpose(0, 1)


class CrossContext:
    """Keys and values of all layers; `attend` is the cross-attention of one."""

    def __init__(
        self, config: DitConfig, part: Shard, weights: DitWeights, shared: ShardedLinear,
        device: torch.device, dtype: torch.dtype,
    ) -> None:  # fmt: skip
        self._config, self._weights, self._dtype = config, weights, dtype
        self._make, self._part, self._shared = KeyMaker(config, part, shared, device), part, shared
        shape = (config.layers, config.context_tokens, part.cross_heads, config.head_dim)
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros_like(self.k)
        self.image_k = self.image_v = None
        if config.image_tokens:
            shape = (config.layers, config.image_tokens, part.cross_heads, config.head_dim)
            self.image_k = torch.zeros(shape, dtype=dtype, device=device)
            self.image_v = torch.zeros_like(self.image_k)

    def set_text(self, text: Tensor) -> None:
        """[text_tokens, text_features or width], zeros after the prompt, as trained."""
        embedded = dense(text, self._weights.text_in)
        if self._weights.text_out is not None:
            embedded = dense(F.gelu(embedded, approximate="tanh"), self._weights.text_out)
        self._write(embedded, 0)

    def set_audio(self, features: Tensor) -> None:
        """[audio_tokens, audio_features] of one chunk, of models whose sound lies beside the text;
        nothing for others.
        """
        if self._weights.audio_in is not None and self._config.audio_tokens:
            self._write(dense(features, self._weights.audio_in), self._config.text_tokens)

    def set_image(self, tokens: Tensor) -> None:
        """[image_tokens, image_features] of CLIP's last layer but one."""
        weights = self._weights.image
        assert weights is not None and self.image_k is not None and self.image_v is not None
        k, v = self._keys(_image_tokens(tokens, weights), weights.kv, weights.k_norm)
        self.image_k.copy_(k)
        self.image_v.copy_(v)

    def _write(self, tokens: Tensor, start: int) -> None:
        weights = self._weights
        k, v = self._keys(tokens, weights.cross_kv, weights.cross_k_norm)
        rows = slice(start, start + tokens.shape[0])
        self.k[:, rows].copy_(k)
        self.v[:, rows].copy_(v)

    def _keys(self, tokens: Tensor, kv: Linear, k_norm: Tensor) -> tuple[Tensor, Tensor]:
        """Made by heads; where attention goes by rows, every rank needs those of all."""
        k, v = self._make(tokens, kv, k_norm, self._dtype)
        if not self._part.cross_by_rows:
            return k, v
        heads = self._config.heads
        return self._shared.all_heads(k.to(self._dtype), heads), self._shared.all_heads(v, heads)

    def attend(self, layer: int, q: Tensor) -> Tensor:
        """q [rows, cross heads, hd], normed -> [rows, cross width]."""
        result = sdpa(q, self.k[layer], self.v[layer])
        if self.image_k is not None and self.image_v is not None:
            result = result + sdpa(q, self.image_k[layer], self.image_v[layer])
        return result


def _image_tokens(tokens: Tensor, weights: ImageWeights) -> Tensor:
    """Norm, two layers with an exact GELU between, norm: [n, features] -> [n, width]."""

    def norm(x: Tensor, affine: tuple[Tensor, Tensor]) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], *affine)

    hidden = F.gelu(dense(norm(tokens.float(), weights.norm_in), weights.hidden))
    return norm(dense(hidden, weights.out), weights.norm_out)
