"""Wan2.2-S2V made causal, read plainly from its published definition: slow, no cache, no sharing.

Written from github.com/Wan-Video/Wan2.2 at 42bf4cf (wan/modules/s2v: model_s2v, motioner,
auxi_blocks, audio_utils, s2v_utils) and, for what each chunk sees, Alibaba-Quark/LiveAvatar at
9c2c38d. It takes tensors by their official names and shares no code with the engine: rotary phases
are complex numbers, all chunks go through each layer together, and every chunk's keys are rotated
anew for its own point of view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Clip:
    """What is made, and from what."""

    latent: Tensor  # [C, frames, H, W] noisy, all chunks
    picture: Tensor  # [C, 1, H, W]
    past: Tensor  # [C, 19, H, W]
    text: Tensor  # [n, text features]
    sound: Tensor  # [states, features, 4 * frames]: a feature a picture
    timesteps: list[float]  # of each chunk
    frames: int  # latent frames a chunk
    window: int  # chunks
    reach: int  # latent frames after which the past follows
    pose: Tensor | None = None  # [pose channels, frames, H, W]


class Reading:
    """`velocities(clip)` is one forward over everything."""

    def __init__(
        self, weights: Weights, heads: int, layers: int, places: tuple[int, ...],
        restarts: bool,
    ) -> None:  # fmt: skip
        self.w, self.heads, self.layers, self.places = weights, heads, layers, places
        self.restarts = restarts
        self.width = weights["head.modulation"].shape[-1]

    # -- small layers ---------------------------------------------------------------------------

    def linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def patches(self, name: str, x: Tensor, kernel: tuple[int, int, int]) -> Tensor:
        weight, bias = self.w[f"{name}.weight"], self.w[f"{name}.bias"]
        return F.conv3d(x[None], weight, bias, stride=kernel)[0].flatten(1).t()

    def rms(self, name: str, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w[f"{name}.weight"]

    def times(self, timestep: float) -> tuple[Tensor, Tensor]:
        """(embedding [width], six modulations [6, width])."""
        half = 128
        steps = np.power(10_000.0, -np.arange(half) / half) * timestep
        wave = torch.from_numpy(np.concatenate((np.cos(steps), np.sin(steps)))).float()
        hidden = F.silu(self.linear("time_embedding.0", wave))
        embedded = self.linear("time_embedding.2", hidden)
        return embedded, self.linear("time_projection.1", F.silu(embedded)).view(6, -1)

    # -- sound ----------------------------------------------------------------------------------

    def sound_tokens(self, clip: Clip) -> tuple[Tensor, Tensor]:
        """(local [frames, tokens + 1, width], whole [frames, width]) of the clip."""
        if not self.restarts:
            return self.encoded(clip.sound)
        parts = clip.sound.split(4 * clip.frames, -1)
        made = [self.encoded(part) for part in parts]
        return torch.cat([m[0] for m in made]), torch.cat([m[1] for m in made])

    def encoded(self, sound: Tensor) -> tuple[Tensor, Tensor]:
        """With 73 pictures (19 latent frames) of its first feature before it, as upstream."""
        sound = torch.cat((sound[..., :1].repeat(1, 1, 73), sound), -1)
        name = "casual_audio_encoder"
        mix = F.silu(self.w[f"{name}.weights"][0])
        mixed = (sound * mix).sum(0) / mix.sum()
        stem = f"{name}.encoder"
        local = self.causal(f"{stem}.conv1_local.conv", mixed[None], 1)
        first = self.w[f"{stem}.conv1_global.conv.weight"].shape[0]
        local = local.reshape(-1, first, local.shape[-1])
        local = self.rest(stem, local).transpose(0, 1)
        padding = self.w[f"{stem}.padding_tokens"][0].expand(local.shape[0], 1, -1)
        whole = self.rest(stem, self.causal(f"{stem}.conv1_global.conv", mixed[None], 1))[0]
        whole = self.linear(f"{stem}.final_linear", whole)
        return torch.cat((local, padding), 1)[19:], whole[19:]

    def causal(self, name: str, x: Tensor, stride: int) -> Tensor:
        padded = F.pad(x, (2, 0), mode="replicate")
        return F.conv1d(padded, self.w[f"{name}.weight"], self.w[f"{name}.bias"], stride)

    def rest(self, stem: str, x: Tensor) -> Tensor:
        x = self.lively(x)
        x = self.lively(self.causal(f"{stem}.conv2.conv", x.transpose(1, 2), 2))
        return self.lively(self.causal(f"{stem}.conv3.conv", x.transpose(1, 2), 2))

    @staticmethod
    def lively(x: Tensor) -> Tensor:
        """[n, C, t] -> [n, t, C]: a norm without weights, and SiLU."""
        return F.silu(F.layer_norm(x.transpose(1, 2), (x.shape[1],), eps=1e-6))

    # -- rotary ---------------------------------------------------------------------------------

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        """x [n, heads, hd] by places [n, 3]."""
        size = x.shape[-1]
        spatial = size // 6
        sizes = (size // 2 - 2 * spatial, spatial, spatial)
        angles = [
            places[:, axis : axis + 1].double()
            / torch.pow(10_000.0, torch.arange(count, dtype=torch.float64) / count)
            for axis, count in enumerate(sizes)
        ]
        turn = torch.polar(torch.ones(len(x), size // 2).double(), torch.cat(angles, 1))
        pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn[:, None]).flatten(-2).float()

    @staticmethod
    def block(begin: int, span: tuple[int, int, int], count: tuple[int, int, int]) -> Tensor:
        """Places of `count` tokens stretched over `span`, from latent frame `begin` on; negative
        beginnings count towards zero, as upstream's table of conjugates does.
        """
        if begin >= 0:
            time = np.linspace(begin, begin + span[0] - 1, count[0]).astype(int)
        else:
            time = -np.linspace(-begin, -begin - span[0] + 1, count[0]).astype(int)
        down = np.linspace(0, span[1] - 1, count[1]).astype(int)
        across = np.linspace(0, span[2] - 1, count[2]).astype(int)
        grid = np.meshgrid(time, down, across, indexing="ij")
        return torch.from_numpy(np.stack([axis.ravel() for axis in grid], 1))

    def condition_places(self, clip: Clip, start: int) -> Tensor:
        """Of all condition tokens as the chunk that begins at latent frame `start` sees them."""
        high, wide = clip.latent.shape[2:]
        down, across = high // 2, wide // 2
        picture = self.block(30 + start, (1, down, across), (1, down, across))
        packs = [
            self.block(-1, (1, down, across), (1, down, across)),
            self.block(-3, (2, down, across), (1, high // 4, wide // 4)),
            self.block(-19, (16, down, across), (4, high // 8, wide // 8)),
        ]
        past = torch.cat(packs)
        past[:, 0] += max(0, start - clip.reach)
        return torch.cat((picture, past))

    # -- the model ------------------------------------------------------------------------------

    def conditions(self, clip: Clip) -> Tensor:
        role = self.w["trainable_cond_mask.weight"]
        picture = self.patches("patch_embedding", clip.picture, (1, 2, 2)) + role[1]
        packs = [
            self.patches("frame_packer.proj", clip.past[:, 18:], (1, 2, 2)),
            self.patches("frame_packer.proj_2x", clip.past[:, 16:18], (2, 4, 4)),
            self.patches("frame_packer.proj_4x", clip.past[:, :16], (4, 8, 8)),
        ]
        return torch.cat((picture, torch.cat(packs) + role[2]))

    def noisy(self, clip: Clip) -> Tensor:
        x = self.patches("patch_embedding", clip.latent, (1, 2, 2))
        pose = clip.pose
        if pose is None:
            channels = self.w["cond_encoder.weight"].shape[1]
            pose = torch.zeros(channels, *clip.latent.shape[1:])
        x = x + self.patches("cond_encoder", pose, (1, 2, 2))
        return x + self.w["trainable_cond_mask.weight"][0]

    def velocities(self, clip: Clip) -> Tensor:
        """[C, frames, H, W] of every chunk."""
        condition = self.conditions(clip)
        x = torch.cat((condition, self.noisy(clip)))
        first, total = len(condition), clip.latent.shape[1]
        per_frame = (len(x) - first) // total
        chunk = clip.frames * per_frame
        times = [self.times(0.0), *(self.times(t) for t in clip.timesteps)]
        lengths = torch.tensor([first] + [chunk] * len(clip.timesteps))
        six = torch.stack([t[1] for t in times]).repeat_interleave(lengths, 0)
        text = self.linear("text_embedding.0", clip.text)
        text = self.linear("text_embedding.2", F.gelu(text, approximate="tanh"))
        sound = self.sound_tokens(clip)
        for layer in range(self.layers):
            x = self.layer(f"blocks.{layer}", x, six, text, clip, first)
            if layer in self.places:
                x = self.heard(self.places.index(layer), x, sound, first)
        return self.headed(x[first:], times[1:], chunk, clip)

    def layer(
        self, name: str, x: Tensor, six: Tensor, text: Tensor, clip: Clip, first: int
    ) -> Tensor:
        six = six + self.w[f"{name}.modulation"]
        shift1, scale1, gate1, shift2, scale2, gate2 = six.unbind(1)
        normed = F.layer_norm(x, (self.width,), eps=1e-6) * (1 + scale1) + shift1
        x = x + self.self_attention(f"{name}.self_attn", normed, clip, first) * gate1
        affine = self.w[f"{name}.norm3.weight"], self.w[f"{name}.norm3.bias"]
        normed = F.layer_norm(x, (self.width,), *affine, eps=1e-6)
        x = x + self.attention(f"{name}.cross_attn", normed, text)
        normed = F.layer_norm(x, (self.width,), eps=1e-6) * (1 + scale2) + shift2
        hidden = F.gelu(self.linear(f"{name}.ffn.0", normed), approximate="tanh")
        return x + self.linear(f"{name}.ffn.2", hidden) * gate2

    def heads_of(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1))

    @staticmethod
    def weighed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Softmax attention, written out: [n, heads, hd] -> [n, heads * hd]."""
        scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
        return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).flatten(1)

    def attention(self, name: str, x: Tensor, context: Tensor) -> Tensor:
        q = self.heads_of(self.rms(f"{name}.norm_q", self.linear(f"{name}.q", x)))
        k = self.heads_of(self.rms(f"{name}.norm_k", self.linear(f"{name}.k", context)))
        v = self.heads_of(self.linear(f"{name}.v", context))
        return self.linear(f"{name}.o", self.weighed(q, k, v))

    def self_attention(self, name: str, x: Tensor, clip: Clip, first: int) -> Tensor:
        q = self.heads_of(self.rms(f"{name}.norm_q", self.linear(f"{name}.q", x)))
        k = self.heads_of(self.rms(f"{name}.norm_k", self.linear(f"{name}.k", x)))
        v = self.heads_of(self.linear(f"{name}.v", x))
        own = self.condition_places(clip, 0)
        out = [self.weighed(self.turned(q[:first], own), self.turned(k[:first], own), v[:first])]
        high, wide = clip.latent.shape[2:]
        size = clip.frames, high // 2, wide // 2
        count = size[0] * size[1] * size[2]
        for i in range(len(clip.timesteps)):
            oldest = max(0, i - clip.window + 1)
            seen = [(0, first, self.condition_places(clip, i * clip.frames))]
            for j in range(oldest, i + 1):
                begin = first + j * count
                seen.append((begin, begin + count, self.block(j * clip.frames, size, size)))
            keys = torch.cat([self.turned(k[a:b], places) for a, b, places in seen])
            values = torch.cat([v[a:b] for a, b, _ in seen])
            a, b, places = seen[-1]
            out.append(self.weighed(self.turned(q[a:b], places), keys, values))
        return self.linear(f"{name}.o", torch.cat(out))

    def heard(self, place: int, x: Tensor, sound: tuple[Tensor, Tensor], first: int) -> Tensor:
        """Noisy tokens attend to the sound of their own latent frame."""
        local, whole = sound
        tokens = x[first:].unflatten(0, (len(local), -1))
        added = []
        for frame, context, summary in zip(tokens, local, whole, strict=True):
            name = f"audio_injector.injector_adain_layers.{place}.linear"
            shift, scale = self.linear(name, F.silu(summary)).chunk(2)
            normed = F.layer_norm(frame, (self.width,), eps=1e-5) * (1 + scale) + shift
            added.append(self.attention(f"audio_injector.injector.{place}", normed, context))
        return torch.cat((x[:first], x[first:] + torch.cat(added)))

    def headed(
        self, x: Tensor, times: list[tuple[Tensor, Tensor]], chunk: int, clip: Clip
    ) -> Tensor:
        made = []
        for part, (embedded, _) in zip(x.split(chunk), times, strict=True):
            shift, scale = self.w["head.modulation"][0] + embedded
            normed = F.layer_norm(part, (self.width,), eps=1e-6) * (1 + scale) + shift
            made.append(self.linear("head.head", normed))
        channels, frames, high, wide = clip.latent.shape
        out = torch.cat(made).view(frames, high // 2, wide // 2, 1, 2, 2, channels)
        out = torch.einsum("fhwpqrc->cfphqwr", out)
        return out.reshape(channels, frames, high, wide)
