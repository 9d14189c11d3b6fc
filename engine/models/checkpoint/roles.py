"""What a weights file is for, told from the names of its tensors alone.

Knows nothing of file names, folders or geometry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ROLES: dict[str, str] = {
    "transformer": "the video model itself",
    "lora": "a change to a video model",
    "vae": "video decoder and encoder",
    "tiny_decoder": "small video decoder",
    "text_encoder": "text encoder",
    "audio_encoder": "audio encoder",
    "clip": "picture encoder",
    "unknown": "nothing this engine knows",
}
LORA = re.compile(r"\.(lora_[AB]|lora_(down|up))(\.[^.]+)?\.weight$|\.lora_[AB](\.[^.]+)?$")
# role -> names that must all be there (wrappers stripped); first match wins
MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("text_encoder", ("token_embedding.weight", "blocks.0.attn.q.weight")),
    ("text_encoder", ("shared.weight", "encoder.block.0.layer.0.SelfAttention.q.weight")),
    ("vae", ("decoder.conv1.weight", "conv2.weight")),
    ("vae", ("decoder.conv_in.weight", "post_quant_conv.weight")),
    ("clip", ("visual.patch_embedding.weight",)),
    ("clip", ("vision_model.embeddings.patch_embedding.weight",)),
    ("transformer", ("blocks.0.self_attn.q.weight",)),
    ("transformer", ("patch_embedding.weight", "head.head.weight")),
    ("tiny_decoder", ("decoder.1.weight", "encoder.0.weight")),
)


def is_lora(name: str) -> bool:
    return LORA.search(name) is not None


def role_of(names: Iterable[str]) -> str:
    """A key of ROLES, from official names (see `engine.models.checkpoint.names`)."""
    known = set(names)
    for role, marks in MARKS:
        if known.issuperset(marks):
            return role
    if any(name.startswith("feature_extractor.conv_layers") for name in map(_inner, known)):
        return "audio_encoder"
    return "lora" if any(map(is_lora, known)) else "unknown"


def _inner(name: str) -> str:
    return name.removeprefix("wav2vec2.").removeprefix("hubert.")
