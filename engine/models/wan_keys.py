"""Names and shapes of every tensor of a Wan checkpoint, worked out from a model's geometry.

Names are those of the original releases (github.com/Wan-Video/Wan2.2 at 42bf4cf, wan/modules).
`config_of` goes the other way: geometry from shapes. Knows nothing of files, of other layouts'
names or of what the tensors are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.errors import EngineError
from engine.models.dit_config import PRESETS, TIME_CHANNELS, DitConfig, Speech

Shape = tuple[int, ...]
Named = Iterator[tuple[str, Shape]]


@dataclass(frozen=True, slots=True)
class KeySpec:
    """What a checkpoint must hold under a name."""

    shape: Shape
    optional: bool = False


def wan_keys(config: DitConfig) -> dict[str, KeySpec]:
    """Official name -> shape of every tensor of a model of this geometry."""
    parts = [_embeddings(config), _head(config)]
    parts += [_block(f"blocks.{i}", config) for i in range(config.layers)]
    if config.image_tokens:
        parts.append(_image(config))
    if config.speech is not None:
        parts += [_audio_encoder(config, config.speech), _speech(config, config.speech)]
    return {name: KeySpec(shape) for part in parts for name, shape in part}


def _dense(name: str, out_width: int, in_width: int) -> Named:
    yield f"{name}.weight", (out_width, in_width)
    yield f"{name}.bias", (out_width,)


def _conv(name: str, out_width: int, in_width: int, *kernel: int) -> Named:
    yield f"{name}.weight", (out_width, in_width, *kernel)
    yield f"{name}.bias", (out_width,)


def _embeddings(config: DitConfig) -> Named:
    width, p = config.width, config.patch
    channels = config.latent_channels + config.joined_channels
    yield from _conv("patch_embedding", width, channels, 1, p, p)
    yield from _dense("text_embedding.0", width, config.text_features)
    yield from _dense("text_embedding.2", width, width)
    yield from _dense("time_embedding.0", width, TIME_CHANNELS)
    yield from _dense("time_embedding.2", width, width)
    yield from _dense("time_projection.1", 6 * width, width)


def _head(config: DitConfig) -> Named:
    yield "head.modulation", (1, 2, config.width)
    yield from _dense("head.head", config.token_channels, config.width)


def _attention(name: str, config: DitConfig) -> Named:
    width, inner = config.width, config.inner
    for part in "qkv":
        yield from _dense(f"{name}.{part}", inner, width)
    yield from _dense(f"{name}.o", width, inner)
    yield f"{name}.norm_q.weight", (inner,)
    yield f"{name}.norm_k.weight", (inner,)


def _block(name: str, config: DitConfig) -> Named:
    width = config.width
    yield f"{name}.modulation", (1, 6, width)
    yield f"{name}.norm3.weight", (width,)
    yield f"{name}.norm3.bias", (width,)
    yield from _attention(f"{name}.self_attn", config)
    yield from _attention(f"{name}.cross_attn", config)
    if config.image_tokens:
        yield from _dense(f"{name}.cross_attn.k_img", config.inner, width)
        yield from _dense(f"{name}.cross_attn.v_img", config.inner, width)
        yield f"{name}.cross_attn.norm_k_img.weight", (config.inner,)
    yield from _dense(f"{name}.ffn.0", config.hidden, width)
    yield from _dense(f"{name}.ffn.2", width, config.hidden)


def _image(config: DitConfig) -> Named:
    """A normed two-layer projection of CLIP's tokens."""
    features, width = config.image_features, config.width
    for part, size in (("0", features), ("4", width)):
        yield f"img_emb.proj.{part}.weight", (size,)
        yield f"img_emb.proj.{part}.bias", (size,)
    yield from _dense("img_emb.proj.1", features, features)
    yield from _dense("img_emb.proj.3", width, features)


def _audio_encoder(config: DitConfig, speech: Speech) -> Named:
    """`casual` is upstream's spelling."""
    name, width = "casual_audio_encoder", config.width
    yield f"{name}.weights", (1, speech.states, 1, 1)
    quarter = width // 4
    yield from _conv(
        f"{name}.encoder.conv1_local.conv", quarter * speech.tokens, speech.features, 3
    )
    yield from _conv(f"{name}.encoder.conv1_global.conv", quarter, speech.features, 3)
    yield from _conv(f"{name}.encoder.conv2.conv", 2 * quarter, quarter, 3)
    yield from _conv(f"{name}.encoder.conv3.conv", width, 2 * quarter, 3)
    yield from _dense(f"{name}.encoder.final_linear", width, width)
    yield f"{name}.encoder.padding_tokens", (1, 1, 1, width)


def _speech(config: DitConfig, speech: Speech) -> Named:
    width, p = config.width, config.patch
    yield from _conv("cond_encoder", width, speech.pose_channels, 1, p, p)
    yield "trainable_cond_mask.weight", (3, width)
    for j in range(len(speech.layers)):
        yield from _attention(f"audio_injector.injector.{j}", config)
        yield from _dense(f"audio_injector.injector_adain_layers.{j}.linear", 2 * width, width)
    for part, by in (("proj", 1), ("proj_2x", 2), ("proj_4x", 4)):
        kernel = (by, by * p, by * p)
        yield from _conv(f"frame_packer.{part}", width, config.latent_channels, *kernel)


# -- geometry from shapes --------------------------------------------------------------------------

# (width, layers, has sound) -> the preset that carries what shapes do not tell
_KNOWN = {
    (1536, 30, False): "wan-1.3b",
    (3072, 30, False): "wan-5b",
    (5120, 40, False): "wan-14b",
    (5120, 40, True): "s2v-14b",
}


def config_of(shapes: dict[str, Shape], heads: int = 0) -> DitConfig:
    """Geometry of the tensors called by their official names. `heads`: from the checkpoint's
    config.json; 0 takes 128 wide heads, as all public ones have. What shapes do not tell (window,
    schedule) is a known preset's. Raises EngineError("bad_input").
    """
    missing = [n for n in ("patch_embedding.weight", "head.head.weight") if n not in shapes]
    if missing:
        raise EngineError(
            "bad_input", f"this is no Wan Transformer: it has no {missing[0]}",
            "give the folder that holds diffusion_pytorch_model*.safetensors or the .pt file",
        )  # fmt: skip
    width, channels, _, patch, _ = shapes["patch_embedding.weight"]
    latent = shapes["head.head.weight"][0] // patch**2
    layers = len({n.split(".")[1] for n in shapes if n.startswith("blocks.")})
    speech = "casual_audio_encoder.weights" in shapes
    base = PRESETS[_KNOWN.get((width, layers, speech), "s2v-14b" if speech else "wan-1.3b")]
    heads = heads or width // 128
    return replace(
        base, width=width, layers=layers, heads=heads, head_dim=width // heads, patch=patch,
        hidden=shapes["blocks.0.ffn.0.weight"][0], latent_channels=latent,
        joined_channels=channels - latent, text_features=shapes["text_embedding.0.weight"][1],
        image_tokens=257 if "img_emb.proj.1.weight" in shapes else 0,
        speech=_speech_of(shapes, base.speech) if speech else None,
    )  # fmt: skip


def _speech_of(shapes: dict[str, Shape], base: Speech | None) -> Speech:
    """Sound's counts; after which blocks it is injected is not in the shapes."""
    assert base is not None
    local = shapes["casual_audio_encoder.encoder.conv1_local.conv.weight"]
    whole = shapes["casual_audio_encoder.encoder.conv1_global.conv.weight"]
    found = {n.split(".")[2] for n in shapes if n.startswith("audio_injector.injector.")}
    if len(found) != len(base.layers):
        raise EngineError(
            "bad_input", f"sound enters after {len(found)} blocks; which ones is known for 12 only",
            "use the published Wan2.2-S2V-14B or a model derived from it",
        )  # fmt: skip
    return replace(
        base, tokens=local[0] // whole[0], features=local[1],
        states=shapes["casual_audio_encoder.weights"][1],
        pose_channels=shapes["cond_encoder.weight"][1],
    )  # fmt: skip
