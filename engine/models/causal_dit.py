"""The causal video Transformer: one denoise forward of one chunk against a window cache.

Wan's block: modulated self-attention (qk-norm over all heads, 3-D rotary), cross-attention to
cached keys of text and audio, GELU feed-forward; the timestep is one a chunk. Reads as single-GPU
code: a rank's share of the heads and of the hidden width is in the shapes of its weights, its rows
of the stream between layers in `Rows`, and what crosses ranks in `engine.sharded_linear`.
Knows nothing of denoise schedules, epochs, graphs or how the window is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.errors import EngineError
from engine.fp8 import Activation, Linear, LinearOp, StaticScales
from engine.marks import NO_MARKS, Marks
from engine.models.cross_context import CrossContext, dense
from engine.models.dit_config import TIME_CHANNELS, DitConfig, Shard
from engine.models.dit_weights import DitWeights
from engine.models.s2v import NORM_EPS, SpeechInjection
from engine.parallel import OneRank, Ranks, Rows, rows_of
from engine.peer_linear import sharded_linear
from engine.ringcache import WindowCache
from engine.sharded_linear import ShardedLinear, WholeLinear
from kernels import ops, reference
from kernels.reference import FP8
from kernels.sdpa import sdpa

# sites of static activation scales within a block
QKV, PROJ, CROSS_Q, CROSS_O, FF1, FF2, SOUND_Q, SOUND_O, SITES = 0, 1, 2, 3, 4, 5, 6, 7, 8


@dataclass(frozen=True, slots=True)
class Way:
    """How the arithmetic is done; the defaults are the fastest, the rest is the "before"."""

    fp8: bool = True  # linear layers
    cache: str = "ring"  # "ring", "shift", "rerope"
    fused_quantise: bool = True  # norm, GELU and attention leave as fp8
    fused_elementwise: bool = True  # residual and gate within the next norm
    scale: str = "tensor"  # static, or "row": dynamic, one a token
    attention: str = "cudnn"  # "ring": ours in place; "ring8": ours with fp8 keys and values
    communication: str = "collective"  # between ranks; or "two_shot", "fused", "best"


class Buffers:
    """Every intermediate of a forward, allocated once at the largest row count."""

    def __init__(
        self, config: DitConfig, part: Shard, way: Way, ranks: Ranks, dtype: torch.dtype
    ) -> None:
        rows, device = rows_of(ranks, max(config.tokens, config.sink_tokens)), ranks.device
        quantised = FP8 if way.fp8 and way.fused_quantise else dtype

        def full(width: int, kind: torch.dtype = dtype, count: int = rows.padded) -> Tensor:
            # zeros as bytes: padding rows must be numbers, and fp8 has no fill everywhere
            size = count * width * kind.itemsize
            return torch.zeros(size, dtype=torch.uint8, device=device).view(kind).view(count, width)

        def own(width: int, kind: torch.dtype = dtype) -> Tensor:
            return full(width, kind, rows.share)

        # this rank's rows of the stream
        self.x, self.y = own(config.width), own(config.width)
        self.normed, self.out_norm = own(config.width, quantised), own(config.width)
        self.velocity = own(config.token_channels)
        self.norm_scale = own(1, torch.float32)
        # all rows, with room for the padding, of this rank's heads and hidden columns
        self.qkv = full(3 * part.width)
        self.q = full(part.width)
        self.q8 = full(part.width, FP8) if way.attention == "ring8" else self.q
        self.attended = full(part.width)
        self.inner = full(part.width, quantised)
        self.hidden = full(part.hidden)
        self.active = full(part.hidden, quantised)
        self.row_scale = full(1, torch.float32)
        # of cross-attention: this rank's rows of all heads, or all rows of its own heads
        crossed = own if part.cross_by_rows else full
        self.cross, self.cross_q = crossed(part.cross_width), crossed(part.cross_width)
        self.cross_inner = crossed(part.cross_width, quantised)
        self.whole = self.velocity if ranks.ranks == 1 else full(config.token_channels)


class CausalDit:
    """One rank of the model. `forward` writes `velocity` and stores keys in the cache."""

    def __init__(
        self, config: DitConfig, part: Shard, weights: DitWeights, cache: WindowCache, way: Way,
        device: torch.device, dtype: torch.dtype = torch.bfloat16, ranks: Ranks | None = None,
    ) -> None:  # fmt: skip
        """Without `ranks`, a part of several is computed alone: for measurements."""
        self.config, self.part, self.weights = config, part, weights
        self.cache, self.way, self.device = cache, way, device
        self._ranks = ranks or OneRank(device)
        self.buffers = Buffers(config, part, way, self._ranks, dtype)
        self.scales = StaticScales(config.layers, SITES, device)
        self.quantised = way.fp8 and way.fused_quantise
        # Static scales only after calibration: until then, and with scale "row", one a token.
        self.static = False
        self.mark: Marks = NO_MARKS
        self._linear = LinearOp(device)
        self._shared = sharded_linear(self._ranks, config, part, way.communication, dtype)
        self.communication = self._shared.way  # what it came to
        if part.cross_by_rows and self._ranks.ranks == 1:
            raise EngineError(
                "bad_config", f"rank {part.rank} of {part.ranks} is alone and would attend by rows",
                "cut cross-attention by heads to compute a part alone",
            )  # fmt: skip
        by_rows = part.cross_by_rows
        self._cross = WholeLinear(config.inner, device) if by_rows else self._shared
        self._choose_ops(way, device)
        self.context = CrossContext(config, part, weights, self._shared, device, dtype)
        self.sound: SpeechInjection | None = None
        if config.speech is not None and weights.speech is not None:
            self.sound = SpeechInjection(config, part, weights.speech, self._shared, device, dtype)
        self.modulation = torch.zeros(config.layers, 6, config.width, device=device)
        self.head_modulation = torch.zeros(2, config.width, device=device)

    def _choose_ops(self, way: Way, device: torch.device) -> None:
        fused = way.fused_quantise
        self._norm = ops.choose("residual_norm", device) if fused else reference.residual_norm
        self._gelu = ops.choose("gelu", device) if fused else reference.gelu
        self._quantise = ops.choose("quantise", device)
        self._rms = ops.choose("rms_norm", device) if fused else reference.rms_norm
        together = way.fused_elementwise
        self._gate = ops.choose("residual_gate", device) if together else reference.residual_gate
        self._attend = ops.choose("ring_attention", device)

    # -- conditioning, outside the forward ------------------------------------------------------

    def modulation_of(self, timestep: float) -> tuple[Tensor, Tensor]:
        """([layers, 6, width], [2, width]) fp32 of a timestep 0..1000; once a kind of step."""
        half = TIME_CHANNELS // 2  # float64, as upstream: a phase of 900 in fp32 is off by 5e-5
        steps = torch.arange(half, dtype=torch.float64) / half
        angle = timestep * torch.exp(-math.log(10_000.0) * steps)
        sinusoid = torch.cat((angle.cos(), angle.sin()))[None].float().to(self.device)
        weights = self.weights
        embedded = dense(F.silu(dense(sinusoid, weights.time_1)), weights.time_2)
        six = dense(F.silu(embedded), weights.time_out).view(6, -1)
        layers = torch.stack([block.modulation + six for block in weights.blocks])
        return layers, weights.head_modulation + embedded

    def set_step(self, modulation: tuple[Tensor, Tensor]) -> None:
        """The timestep of the next forward: a copy into the buffers that the forward reads."""
        self.modulation.copy_(modulation[0])
        self.head_modulation.copy_(modulation[1])

    def set_text(self, text: Tensor) -> None:
        """See `CrossContext.set_text`."""
        self.context.set_text(text)

    def set_audio(self, features: Tensor) -> None:
        """See `CrossContext.set_audio`."""
        self.context.set_audio(features)

    # -- the forward ----------------------------------------------------------------------------

    def forward(self, latent: Tensor) -> Tensor:
        """latent [M, input_channels] noisy -> velocity [M, token_channels], a view of a buffer."""
        rows = rows_of(self._ranks, latent.shape[0])
        x = self.buffers.x[: rows.share]
        self.mark("other")
        own = latent[rows.first : rows.first + rows.own]
        self._linear(Activation(own), self.weights.patch_in, x[: rows.own])
        if self.sound is not None:
            self.sound.add_noisy(x[: rows.own], rows.first)
        return self._through(x, rows, self.sound)

    def condition(self, tokens: Tensor) -> None:
        """Condition tokens [sink_tokens, width], embedded: their keys enter the cache; no sound."""
        rows = rows_of(self._ranks, tokens.shape[0])
        x = self.buffers.x[: rows.share]
        x[: rows.own].copy_(tokens[rows.first : rows.first + rows.own])
        self._through(x, rows, None)

    def _through(self, x: Tensor, rows: Rows, sound: SpeechInjection | None) -> Tensor:
        """All blocks and the head, of this rank's rows [share, width]."""
        buffers, weights, y = self.buffers, self.weights, self.buffers.y[: rows.share]
        x[rows.own :].zero_()
        pending: tuple[Tensor | None, Tensor | None] = (None, None)
        for layer in range(self.config.layers):
            pending = self._block(layer, x, y, pending, rows)
            if sound is not None and layer in sound.places:
                pending = self._hear(layer, sound, x, y, pending[1], rows)
        self.mark("elementwise")
        out, velocity = buffers.out_norm[: rows.share], buffers.velocity[: rows.share]
        shift, scale = self.head_modulation
        self._add_norm(x, *pending, shift, scale, out, None)
        self.mark("other")
        self._linear(Activation(out), weights.head, velocity)
        self._shared.whole(velocity, buffers.whole[: rows.padded], self.mark)
        self.mark("other")
        return buffers.whole[: rows.count]

    def _block(
        self, layer: int, x: Tensor, y: Tensor, pending: tuple[Tensor | None, Tensor | None],
        rows: Rows,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """One block; the residual not yet added (`pending`: y, gate) goes with the next norm."""
        weights, buffers, count = self.weights.blocks[layer], self.buffers, rows.count
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation[layer]
        normed = self._normed(x, *pending, shift1, scale1, layer, QKV, rows)
        qkv = buffers.qkv[:count]
        self._columns(normed, weights.qkv, qkv)
        self._rows(self._self_attention(layer, qkv), weights.o, y)
        affine = weights.cross_norm_shift, weights.cross_norm_scale
        normed = self._normed(x, y, gate1, *affine, layer, CROSS_Q, rows)
        self._cross_attention(layer, normed, y, rows)
        normed = self._normed(x, y, None, shift2, scale2, layer, FF1, rows)
        hidden = buffers.hidden[:count]
        self._columns(normed, weights.ff1, hidden)
        self.mark("elementwise")
        scale = self._scale(layer, FF2, count)
        active = buffers.active[:count]
        self._gelu(hidden, active, scale)
        self._rows(self._observed(active, scale, layer, FF2), weights.ff2, y)
        return y, gate2

    def _hear(
        self, layer: int, sound: SpeechInjection, x: Tensor, y: Tensor, gate: Tensor | None,
        rows: Rows,
    ) -> tuple[Tensor, None]:  # fmt: skip
        """Attention to the sound of each token's own latent frame; its norm is the sound's too."""
        self.mark("elementwise")
        place = sound.places[layer]
        weights = sound.weights.injectors[place]
        out, scale = self._norm_target(layer, SOUND_Q, rows)
        for own, shift, factor in sound.norms(place, rows):
            row_scale = scale[own] if scale is not None and scale.ndim == 2 else scale
            self._add_norm(x[own], y[own], gate, shift, factor, out[own], row_scale, NORM_EPS)
        query = self.buffers.attended[: rows.count]
        self._columns(self._observed(out, scale, layer, SOUND_Q, rows.own), weights.q, query)
        q = self._head_normed(query, weights.q_norm, self._shared, self.buffers.q)
        self.mark("attention")
        self._rows(self._leaving(sound.attend(place, q), layer, SOUND_O), weights.o, y)
        return y, None

    def _self_attention(self, layer: int, qkv: Tensor) -> Activation:
        weights, buffers, count = self.weights.blocks[layer], self.buffers, qkv.shape[0]
        q = buffers.q8[:count].view(count, self.part.heads, -1)
        sums = self._shared.norm_sums(qkv, 2, self.mark)
        self.mark("cache")
        self.cache.store(layer, qkv, weights.q_norm, weights.k_norm, q, sums)
        k, v = self.cache.window(layer)
        self.mark("attention")
        if self.way.attention == "cudnn":
            return self._leaving(sdpa(q, k, v), layer, PROJ)
        valid = self.cache.valid  # type: ignore[attr-defined]  # only the ring has one
        k, v = self.cache.k[layer], self.cache.v[layer]  # type: ignore[attr-defined]
        return self._attend_ours(q, k, v, valid, layer, self.way.attention == "ring8")

    def _cross_attention(self, layer: int, normed: Activation, y: Tensor, rows: Rows) -> None:
        """normed [share, width] -> y [share, width]. 528 keys: cuDNN 3 ms a step, our kernel 5."""
        weights, shared, buffers = self.weights.blocks[layer], self._cross, self.buffers
        count, own = rows.count, None
        if self.part.cross_by_rows:
            count, own = rows.share, rows.own
        query = buffers.cross[:count]
        shared.columns(self._ready(normed, weights.cross_q), weights.cross_q, query, self.mark)
        q = self._head_normed(query, weights.cross_q_norm, shared, buffers.cross_q)
        self.mark("attention")
        attended = self.context.attend(layer, q)
        leaving = self._leaving(attended, layer, CROSS_O, buffers.cross_inner, own)
        shared.rows(self._ready(leaving, weights.cross_o), weights.cross_o, y, self.mark)

    def _head_normed(
        self, query: Tensor, norm: Tensor, shared: ShardedLinear, out: Tensor
    ) -> Tensor:
        """RMSNorm over the heads of all ranks: [rows, W] -> [rows, heads, hd], in `out`."""
        sums = shared.norm_sums(query, 1, self.mark)
        self.mark("elementwise")
        out = out[: query.shape[0]]
        self._rms(query, norm, out, sums, self.config.inner)
        return out.view(query.shape[0], -1, self.config.head_dim)

    def _attend_ours(
        self, q: Tensor, k: Tensor, v: Tensor, valid: Tensor, layer: int, fp8: bool
    ) -> Activation:
        """Our kernel writes the quantised result itself, once the scales are static."""
        count = q.shape[0]
        if self.quantised and self.static:
            out, scale = self.buffers.inner[:count], self._scale(layer, PROJ, count)
            self._attend(q, k, v, valid, out, scale, fp8)
            return Activation(out, scale)
        out = self.buffers.attended[:count]
        self._attend(q, k, v, valid, out, None, fp8)
        return self._leaving(out, layer, PROJ)

    def _leaving(
        self, attended: Tensor, layer: int, site: int, out: Tensor | None = None,
        own: int | None = None,
    ) -> Activation:  # fmt: skip
        """Attention's result [rows, W], quantised for the projection that follows."""
        if not self.quantised:
            return Activation(attended)
        self.mark("elementwise")
        count = attended.shape[0]
        out = (self.buffers.inner if out is None else out)[:count]
        scale = self._scale(layer, site, count)
        self._quantise(attended, out, scale)
        return self._observed(out, scale, layer, site, own)

    def _normed(
        self, x: Tensor, y: Tensor | None, gate: Tensor | None, shift: Tensor, scale: Tensor,
        layer: int, site: int, rows: Rows,
    ) -> Activation:  # fmt: skip
        self.mark("elementwise")
        out, out_scale = self._norm_target(layer, site, rows)
        self._add_norm(x, y, gate, shift, scale, out, out_scale)
        return self._observed(out, out_scale, layer, site, rows.own)

    def _norm_target(self, layer: int, site: int, rows: Rows) -> tuple[Tensor, Tensor | None]:
        """Where a norm writes, and its scale when that is e4m3."""
        out = self.buffers.normed[: rows.share]
        if not self.quantised:
            return out, None
        static = self.scales.at(layer, site)
        return out, static if self.static else self.buffers.norm_scale[: rows.share]

    def _add_norm(
        self, x: Tensor, y: Tensor | None, gate: Tensor | None, shift: Tensor, scale: Tensor,
        out: Tensor, out_scale: Tensor | None, eps: float = 1e-6,
    ) -> None:  # fmt: skip
        if y is not None and not self.way.fused_elementwise:
            self._gate(x, y, gate)
            y = gate = None
        self._norm(x, y, gate, shift, scale, out, out_scale, eps)

    def _scale(self, layer: int, site: int, count: int) -> Tensor | None:
        if not self.quantised:
            return None
        return self.scales.at(layer, site) if self.static else self.buffers.row_scale[:count]

    def _observed(
        self, values: Tensor, scale: Tensor | None, layer: int, site: int, own: int | None = None
    ) -> Activation:
        """Calibration looks at the first `own` rows: the rest is padding."""
        if scale is not None and not self.static and not self.scales.frozen and own != 0:
            self.scales.observe(layer, site, scale[:own])
        return Activation(values, scale)

    def _columns(self, x: Activation, layer: Linear, out: Tensor) -> None:
        """A layer cut by outputs: rows of this rank -> all rows."""
        self._shared.columns(self._ready(x, layer), layer, out, self.mark)

    def _rows(self, x: Activation, layer: Linear, out: Tensor) -> None:
        """A layer cut by inputs: all rows -> rows of this rank, summed over ranks."""
        self._shared.rows(self._ready(x, layer), layer, out, self.mark)

    def _ready(self, x: Activation, layer: Linear) -> Activation:
        if layer.scale is None or x.scale is not None:
            return x
        self.mark("elementwise")
        return self._linear.quantised(x)

    def freeze_scales(self) -> None:
        """End calibration: from now on activations are quantised with what was seen."""
        self._ranks.max_(self.scales.values)
        self.scales.freeze()
        self.static = self.quantised and self.way.scale == "tensor"
