"""CLIP's picture encoder as Wan2.1's image-to-video models use it: all blocks but the last.

A plain vision Transformer (ViT-H/14: 32 blocks, 1280 wide, 16 heads) that runs once a session, for
the reference picture, and is dropped. Loaded strictly from the .pth with both of CLIP's halves or
from a diffusers image_encoder folder. Knows nothing of video.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.models.checkpoint.mapping import Tensors
from engine.models.checkpoint.strict import Shapes, require_exact
from engine.models.checkpoint.tensor_file import refused
from engine.models.checkpoint.tensor_set import TensorSet

HEAD = 80  # channels a head
EPS = 1e-5
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
# what the models do not use: the words' half, the last norm and the projections
UNUSED = (
    "textual.", "log_scale", "visual.head", "visual.post_norm.", "vision_model.post_layernorm.",
    "visual_projection.", "vision_model.embeddings.position_ids",
)  # fmt: skip
# transformers' name -> the .pth's, without "vision_model." and "visual."
OUTER = {
    "embeddings.class_embedding": "cls_embedding",
    "embeddings.patch_embedding.weight": "patch_embedding.weight",
    "embeddings.position_embedding.weight": "pos_embedding",
    "pre_layrnorm.weight": "pre_norm.weight",
    "pre_layrnorm.bias": "pre_norm.bias",
}
INNER = {"layer_norm1": "norm1", "layer_norm2": "norm2", "mlp.fc1": "mlp.0", "mlp.fc2": "mlp.2",
         "self_attn.out_proj": "attn.proj"}  # fmt: skip


def encode_clip(
    files: TensorSet, pixels: Tensor, device: torch.device, dtype: torch.dtype = torch.float32
) -> Tensor:
    """pixels [1, 3, h, w] RGB -1..1 -> [257, 1280] fp32: the class token, then 16 x 16 patches.

    Raises EngineError("bad_checkpoint") for another encoder.
    """
    weights = _weights(files, device, dtype)
    side = round((weights["pos_embedding"].shape[-2] - 1) ** 0.5)
    size = side * weights["patch_embedding.weight"].shape[-1]
    with torch.inference_mode():
        return _forward(weights, _prepared(pixels.to(device), size).to(dtype)).float().clone()


def clip_shapes(width: int, layers: int, ff: int, patch: int, tokens: int) -> Shapes:
    """Every tensor that must be there, by the .pth's names without "visual."."""
    shapes: dict[str, tuple[int, ...]] = {
        "cls_embedding": (1, 1, width), "pos_embedding": (1, tokens, width),
        "patch_embedding.weight": (width, 3, patch, patch),
        "pre_norm.weight": (width,), "pre_norm.bias": (width,),
    }  # fmt: skip
    linear = {"attn.to_qkv": (3 * width, width), "attn.proj": (width, width),
              "mlp.0": (ff, width), "mlp.2": (width, ff)}  # fmt: skip
    for i in range(layers):
        for name, shape in linear.items():
            shapes[f"transformer.{i}.{name}.weight"] = shape
            shapes[f"transformer.{i}.{name}.bias"] = shape[:1]
        for norm in ("norm1", "norm2"):
            for leaf in ("weight", "bias"):
                shapes[f"transformer.{i}.{norm}.{leaf}"] = (width,)
    return shapes


def original_name(name: str) -> tuple[str, int]:
    """(the .pth's name without "visual.", which third of a fused tensor it is)."""
    bare = name.removeprefix("vision_model.").removeprefix("visual.")
    if bare in OUTER:
        return OUTER[bare], 0
    match = re.match(r"^encoder\.layers\.(\d+)\.(.+)\.(weight|bias)$", bare)
    if match is None:
        return bare, 0
    number, inner, leaf = match.groups()
    third = re.match(r"^self_attn\.([qkv])_proj$", inner)
    module = "attn.to_qkv" if third else INNER.get(inner, inner)
    return f"transformer.{number}.{module}.{leaf}", "qkv".index(third[1]) if third else 0


def _weights(files: TensorSet, device: torch.device, dtype: torch.dtype) -> dict[str, Tensor]:
    tensors = Tensors(files)
    parts: dict[str, dict[int, str]] = {}
    for name in tensors:
        if not name.startswith(UNUSED):
            ours, third = original_name(name)
            parts.setdefault(ours, {})[third] = name
    shapes = {ours: _joined_shape(ours, names, tensors.shapes) for ours, names in parts.items()}
    require_exact(f"the picture encoder in {files.path.name}", shapes, _wanted(files.path, shapes))
    used = _used(shapes)
    return {
        ours: _joined(names, tensors).to(device, dtype).view(shapes[ours])
        for ours, names in parts.items() if ours in used
    }  # fmt: skip


def _joined_shape(ours: str, names: Mapping[int, str], shapes: Shapes) -> tuple[int, ...]:
    """Of the thirds together; transformers keeps both embeddings without leading ones."""
    first = tuple(shapes[names[min(names)]])
    if ours in ("cls_embedding", "pos_embedding"):
        return (1,) * (3 - len(first)) + first
    if len(names) > 1:
        return (sum(shapes[name][0] for name in names.values()), *first[1:])
    return first


def _joined(names: Mapping[int, str], tensors: Mapping[str, Tensor]) -> Tensor:
    parts = [tensors[names[third]] for third in sorted(names)]
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _wanted(path: Path, shapes: Shapes) -> Shapes:
    needed = ("patch_embedding.weight", "pos_embedding", "transformer.0.mlp.0.weight")
    if lacking := [name for name in needed if name not in shapes]:
        raise refused(path, f"is no CLIP picture encoder: it lacks {lacking[0]}", "use ViT-H/14")
    patch, positions, ff = (shapes[name] for name in needed)
    return clip_shapes(patch[0], _layers(shapes), ff[0], patch[-1], positions[-2])


def _layers(shapes: Shapes) -> int:
    return 1 + max(int(m[1]) for n in shapes if (m := re.match(r"transformer\.(\d+)\.", n)))


def _used(shapes: Shapes) -> set[str]:
    last = f"transformer.{_layers(shapes) - 1}."
    return {name for name in shapes if not name.startswith(last)}


def _prepared(pixels: Tensor, size: int) -> Tensor:
    """Squeezed to a square without a crop, bicubic, as the models' authors do it."""
    square = F.interpolate(pixels.float(), (size, size), mode="bicubic", align_corners=False)
    mean, std = (torch.tensor(v, device=pixels.device).view(1, 3, 1, 1) for v in (MEAN, STD))
    return (square / 2 + 0.5 - mean) / std


def _forward(weights: dict[str, Tensor], picture: Tensor) -> Tensor:
    """[tokens, width], after the last block but one."""
    kernel = weights["patch_embedding.weight"]
    x = F.conv2d(picture, kernel, stride=kernel.shape[-1])[0].flatten(1).t()
    x = torch.cat((weights["cls_embedding"][0], x)) + weights["pos_embedding"][0]
    x = _norm(weights, "pre_norm", x)
    for i in range(_layers({name: () for name in weights})):
        block = f"transformer.{i}"
        x = x + _attended(weights, f"{block}.attn", _norm(weights, f"{block}.norm1", x))
        hidden = F.gelu(_linear(weights, f"{block}.mlp.0", _norm(weights, f"{block}.norm2", x)))
        x = x + _linear(weights, f"{block}.mlp.2", hidden)
    return x


def _attended(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    qkv = _linear(weights, f"{name}.to_qkv", x).view(len(x), 3, -1, HEAD)
    q, k, v = qkv.permute(1, 2, 0, 3).unbind(0)
    mixed = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    return _linear(weights, f"{name}.proj", mixed.transpose(0, 1).flatten(1))


def _norm(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return F.layer_norm(x, x.shape[-1:], scale, shift, EPS)


def _linear(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
