"""The geometry of a Wan-family model from the shapes of its tensors, and the words for it.

Knows nothing of files. Head width is 128 in every public model; a folder's config.json may say
otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

BLOCK = re.compile(r"^blocks\.(\d+)\.")
HEAD_DIM = 128
# (width, feed-forward, layers) -> what its publisher calls it
KNOWN: dict[tuple[int, int, int], str] = {
    (1536, 8960, 30): "Wan2.1 1.3B",
    (3072, 14336, 30): "Wan2.2 TI2V-5B",
    (5120, 13824, 40): "Wan 14B",
}
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Of the whole model. Counts are channels unless they say otherwise."""

    width: int
    hidden: int
    heads: int
    layers: int
    in_channels: int
    out_channels: int
    patch: tuple[int, int, int]  # frames, rows, columns a token
    text_width: int
    time_channels: int
    picture: bool = False  # reads a picture's CLIP features (Wan2.1 image-to-video)
    speech: bool = False  # audio injection (Wan2.2-S2V)

    @property
    def name(self) -> str:
        known = KNOWN.get((self.width, self.hidden, self.layers))
        if known is None:
            return f"{self.width}-wide Wan" + (" S2V" if self.speech else "")
        if known == "Wan 14B" and self.speech:
            return "Wan2.2 S2V-14B"
        if known == "Wan 14B" and self.in_channels == 36:
            return "Wan2.1 I2V-14B" if self.picture else "Wan2.2 I2V-14B"
        return "Wan2.1 14B" if known == "Wan 14B" else known

    @property
    def line(self) -> str:
        return f"{self.name} geometry, {self.layers} layers"


def geometry_of(shapes: Shapes, said: dict[str, Any] | None = None) -> Geometry:
    """From official names and shapes; `said` is the folder's config.json.

    Raises ValueError with the reason when the shapes are no Wan model's.
    """
    try:
        width, in_channels, *patch = shapes["patch_embedding.weight"]
        hidden = shapes["blocks.0.ffn.0.weight"][0]
        out = shapes["head.head.weight"][0]
        text = shapes["text_embedding.0.weight"][1]
        time = shapes["time_embedding.0.weight"][1]
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"it lacks {error}, which every Wan model has") from error
    if len(patch) != 3 or not out or out % (patch[0] * patch[1] * patch[2] or 1):
        raise ValueError(f"patches of {patch} do not fit a head of {out} channels")
    heads = _heads(width, said)
    numbers = {int(m[1]) for name in shapes if (m := BLOCK.match(name))}
    layers = max(numbers) + 1
    if len(numbers) != layers:
        gone = sorted(set(range(layers)) - numbers)[:5]
        raise ValueError(f"blocks {', '.join(map(str, gone))} of {layers} are missing")
    size = (patch[0], patch[1], patch[2])
    channels = out // (patch[0] * patch[1] * patch[2])
    return Geometry(
        width, hidden, heads, layers, in_channels, channels, size, text, time,
        "img_emb.proj.1.weight" in shapes,
        any(name.startswith("casual_audio_encoder.") for name in shapes),
    )  # fmt: skip


def _heads(width: int, said: dict[str, Any] | None) -> int:
    """config.json's count, else width / 128."""
    stated = (said or {}).get("num_heads", (said or {}).get("num_attention_heads"))
    if type(stated) is int and stated > 0 and width % stated == 0:
        return stated
    if width % HEAD_DIM:
        raise ValueError(f"{width} channels are no multiple of {HEAD_DIM}, the width of a head")
    return width // HEAD_DIM
