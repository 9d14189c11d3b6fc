"""Weights of what Wan2.2-S2V adds to the Transformer: records only.

Knows nothing of where they come from or how they are used (see s2v.py and audio_tokens.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from engine.fp8 import Linear

Layer = tuple[Tensor, Tensor]  # weight, bias; fp32


@dataclass(frozen=True, slots=True)
class InjectorWeights:
    """One injection of sound: q, o of its cross-attention, and the norm that sound modulates."""

    q: Linear
    o: Linear
    q_norm: Tensor  # [rank width] fp32
    adain: Linear  # width -> shift, scale: 2 * width


@dataclass(frozen=True, slots=True)
class AudioEncoderWeights:
    """From the hidden states of the sound encoder to tokens; convolutions over video frames."""

    states: Tensor  # [states], mixed after SiLU
    local: Layer  # [tokens * width / 4, features, 3]
    whole: Layer  # [width / 4, features, 3]
    second: Layer  # [width / 2, width / 4, 3]
    third: Layer  # [width, width / 2, 3]
    final: Layer  # [width, width]
    padding: Tensor  # [width]


@dataclass(frozen=True, slots=True)
class SpeechWeights:
    """All of one rank. `kv` is one GEMM for all injectors: [J * 2 * rank width, width]."""

    injectors: list[InjectorWeights]
    kv: Linear
    k_norm: Tensor  # [J, rank width]
    roles: Tensor  # [3, width]: added to noisy tokens, the picture's, the past's
    pose_in: Linear  # latent of a pose -> width; without one its bias remains
    packs: list[Linear]  # past frames at 1, 1/2, 1/4 the size: flattened convolutions
    encoder: AudioEncoderWeights
