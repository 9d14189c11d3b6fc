"""From the names in a file to the official Wan names: wrappers stripped, diffusers' map undone.

Knows nothing of shapes, and not which names a model should have.
"""

from __future__ import annotations

import re

# Left behind anywhere in a name by training wrappers.
INNER = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.", "base_layer.")
# Put in front of every name, possibly several of them.
OUTER = (
    "base_model.model.", "model.diffusion_model.", "diffusion_model.", "generator.", "module.",
    "transformer.", "model.",
)  # fmt: skip

# diffusers' WanTransformer3DModel -> official, on dotted prefixes; the norm before cross-attention
# is the second there and the third here.
DIFFUSERS: tuple[tuple[str, str], ...] = (
    (r"^condition_embedder\.time_embedder\.linear_1\.", "time_embedding.0."),
    (r"^condition_embedder\.time_embedder\.linear_2\.", "time_embedding.2."),
    (r"^condition_embedder\.time_proj\.", "time_projection.1."),
    (r"^condition_embedder\.text_embedder\.linear_1\.", "text_embedding.0."),
    (r"^condition_embedder\.text_embedder\.linear_2\.", "text_embedding.2."),
    (r"^condition_embedder\.image_embedder\.norm1\.", "img_emb.proj.0."),
    (r"^condition_embedder\.image_embedder\.ff\.net\.0\.proj\.", "img_emb.proj.1."),
    (r"^condition_embedder\.image_embedder\.ff\.net\.2\.", "img_emb.proj.3."),
    (r"^condition_embedder\.image_embedder\.norm2\.", "img_emb.proj.4."),
    (r"^condition_embedder\.image_embedder\.pos_embed$", "img_emb.emb_pos"),
    (r"^scale_shift_table$", "head.modulation"),
    (r"^proj_out\.", "head.head."),
    (r"^(blocks\.\d+)\.scale_shift_table$", r"\1.modulation"),
    (r"^(blocks\.\d+)\.norm2\.", r"\1.norm3."),
    (r"^(blocks\.\d+)\.ffn\.net\.0\.proj\.", r"\1.ffn.0."),
    (r"^(blocks\.\d+)\.ffn\.net\.2\.", r"\1.ffn.2."),
    (r"^(blocks\.\d+)\.attn1\.to_out\.0\.", r"\1.self_attn.o."),
    (r"^(blocks\.\d+)\.attn2\.to_out\.0\.", r"\1.cross_attn.o."),
    (r"^(blocks\.\d+)\.attn1\.to_([qkv])\.", r"\1.self_attn.\2."),
    (r"^(blocks\.\d+)\.attn2\.to_([qkv])\.", r"\1.cross_attn.\2."),
    (r"^(blocks\.\d+)\.attn1\.norm_([qk])\.", r"\1.self_attn.norm_\2."),
    (r"^(blocks\.\d+)\.attn2\.norm_([qk])\.", r"\1.cross_attn.norm_\2."),
    (r"^(blocks\.\d+)\.attn2\.add_([kv])_proj\.", r"\1.cross_attn.\2_img."),
    (r"^(blocks\.\d+)\.attn2\.norm_added_k\.", r"\1.cross_attn.norm_k_img."),
)
_RULES = [(re.compile(pattern), target) for pattern, target in DIFFUSERS]


def unwrapped(name: str) -> str:
    """`generator.model._fsdp_wrapped_module.blocks.0.x` -> `blocks.0.x`."""
    for part in INNER:
        name = name.replace(part, "")
    stripped = True
    while stripped:
        stripped = False
        for prefix in OUTER:
            if name.startswith(prefix):
                name, stripped = name[len(prefix) :], True
    return name


def is_diffusers(name: str) -> bool:
    """True of names that only diffusers' layout has."""
    return name.startswith("condition_embedder.") or ".attn1.to_" in name or ".attn2.to_" in name


def from_diffusers(name: str) -> str:
    """The official name of an unwrapped diffusers one; unknown names stay as they are."""
    for pattern, target in _RULES:
        name, count = pattern.subn(target, name)
        if count:
            return name
    return name
