"""The picture encoder against transformers' CLIPVisionModel, from both layouts of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.folder import look
from engine.models.clip_vision import MEAN, STD, clip_shapes, encode_clip

transformers = pytest.importorskip("transformers")
CPU = torch.device("cpu")
WIDTH, LAYERS, FF, PATCH, SIZE = 160, 3, 96, 14, 56


def library(width: int = WIDTH, layers: int = LAYERS, heads: int = 2, size: int = SIZE) -> Any:
    torch.manual_seed(2)
    made = transformers.CLIPVisionModelWithProjection(
        transformers.CLIPVisionConfig(
            hidden_size=width, intermediate_size=FF, num_hidden_layers=layers,
            num_attention_heads=heads, image_size=size, patch_size=PATCH, hidden_act="gelu",
        )
    ).eval()  # fmt: skip
    for weight in made.parameters():
        weight.data += 0.05 * torch.randn_like(weight)
    return made


def published(made: Any) -> dict[str, Tensor]:
    """transformers' state by the names of published image_encoder folders."""
    state = made.state_dict()
    return {k if k.startswith(("vision_model.", "visual_")) else f"vision_model.{k}": v
            for k, v in state.items()}  # fmt: skip


def original(made: Any, layers: int = LAYERS) -> dict[str, Tensor]:
    """The .pth, by the module tree of its authors: fused thirds, the words' half beside it."""
    theirs = {k.removeprefix("vision_model."): v for k, v in published(made).items()}
    state = {
        "cls_embedding": theirs["embeddings.class_embedding"].view(1, 1, -1),
        "pos_embedding": theirs["embeddings.position_embedding.weight"][None],
        "patch_embedding.weight": theirs["embeddings.patch_embedding.weight"],
        "head": torch.zeros(WIDTH, 8),
    }
    for leaf in ("weight", "bias"):
        state[f"pre_norm.{leaf}"] = theirs[f"pre_layrnorm.{leaf}"]
        state[f"post_norm.{leaf}"] = torch.zeros(WIDTH)
        for i in range(layers):
            here, there = f"transformer.{i}", f"encoder.layers.{i}"
            thirds = [theirs[f"{there}.self_attn.{n}_proj.{leaf}"] for n in "qkv"]
            state[f"{here}.attn.to_qkv.{leaf}"] = torch.cat(thirds)
            state[f"{here}.attn.proj.{leaf}"] = theirs[f"{there}.self_attn.out_proj.{leaf}"]
            state[f"{here}.mlp.0.{leaf}"] = theirs[f"{there}.mlp.fc1.{leaf}"]
            state[f"{here}.mlp.2.{leaf}"] = theirs[f"{there}.mlp.fc2.{leaf}"]
            state[f"{here}.norm1.{leaf}"] = theirs[f"{there}.layer_norm1.{leaf}"]
            state[f"{here}.norm2.{leaf}"] = theirs[f"{there}.layer_norm2.{leaf}"]
    visual = {f"visual.{k}": v.clone() for k, v in state.items()}
    return visual | {"textual.head.0.weight": torch.zeros(3, 3), "log_scale": torch.ones(())}


def picture() -> Tensor:
    source = torch.Generator().manual_seed(1)
    return 2 * torch.rand(1, 3, 70, 40, generator=source) - 1


def truth(made: Any) -> Tensor:
    square = torch.nn.functional.interpolate(
        picture(), (SIZE, SIZE), mode="bicubic", align_corners=False
    )
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    with torch.no_grad():
        told = made(pixel_values=((square + 1) / 2 - mean) / std, output_hidden_states=True)
    return told.hidden_states[-2][0]


@pytest.mark.parametrize("layout", ["original", "diffusers"])
def test_parity_with_the_library(layout: str, tmp_path: Path) -> None:
    made = library()
    if layout == "original":
        torch.save(original(made), tmp_path / "models_clip.pth")
    else:
        save_file({k: v for k, v in published(made).items() if "ids" not in k},
                  tmp_path / "model.safetensors")  # fmt: skip
    (files,) = look(tmp_path).of("clip")
    got = encode_clip(files, picture(), CPU)
    assert got.shape == (1 + (SIZE // PATCH) ** 2, WIDTH)
    torch.testing.assert_close(got, truth(made), rtol=1e-4, atol=1e-5)
    assert got.std() > 0.3


def test_parity_of_full_size_shapes() -> None:
    """ViT-H/14, without the norm and projection that are not used."""
    with torch.device("meta"):
        made = transformers.CLIPVisionModel(
            transformers.CLIPVisionConfig(
                hidden_size=1280, intermediate_size=5120, num_hidden_layers=32,
                num_attention_heads=16, image_size=224, patch_size=14, hidden_act="gelu",
            )
        )  # fmt: skip
    count = sum(w.numel() for name, w in made.named_parameters() if "post_layernorm" not in name)
    shapes = clip_shapes(1280, 32, 5120, 14, 257)
    assert sum(torch.Size(shape).numel() for shape in shapes.values()) == count


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"visual.transformer.1.mlp.2.bias": None}, "missing (transformer.1.mlp.2.bias)"),
        ({"visual.transformer.2.norm1.bias": torch.zeros(7)}, "[7] instead of [160]"),
        ({"visual.more": torch.zeros(7)}, "unexpected (more)"),
    ],
)
def test_what_is_not_whole_is_refused(
    tmp_path: Path, change: dict[str, Tensor | None], told: str
) -> None:
    state = original(library()) | change
    torch.save({k: v for k, v in state.items() if v is not None}, tmp_path / "clip.pth")
    (files,) = look(tmp_path).of("clip")
    with pytest.raises(EngineError) as refusal:
        encode_clip(files, picture(), CPU)
    assert told in str(refusal.value) and refusal.value.code == "bad_checkpoint"
