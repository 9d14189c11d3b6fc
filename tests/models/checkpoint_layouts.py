"""Tiny checkpoints of random numbers, written in every public layout."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.models.dit_config import PRESETS, DitConfig
from engine.models.wan_keys import wan_keys

State = dict[str, Tensor]
RANK = 4  # of a LoRA

# official -> diffusers, written here again so that the engine's own map is not tested by itself
TO_DIFFUSERS = [
    (r"^time_embedding\.0", "condition_embedder.time_embedder.linear_1"),
    (r"^time_embedding\.2", "condition_embedder.time_embedder.linear_2"),
    (r"^time_projection\.1", "condition_embedder.time_proj"),
    (r"^text_embedding\.0", "condition_embedder.text_embedder.linear_1"),
    (r"^text_embedding\.2", "condition_embedder.text_embedder.linear_2"),
    (r"^head\.modulation", "scale_shift_table"),
    (r"^head\.head", "proj_out"),
    (r"\.modulation$", ".scale_shift_table"),
    (r"\.norm3\.", ".norm2."),
    (r"\.ffn\.0\.", ".ffn.net.0.proj."),
    (r"\.ffn\.2\.", ".ffn.net.2."),
    (r"\.self_attn\.norm_", ".attn1.norm_"),
    (r"\.cross_attn\.norm_", ".attn2.norm_"),
    (r"\.self_attn\.o\.", ".attn1.to_out.0."),
    (r"\.cross_attn\.o\.", ".attn2.to_out.0."),
    (r"\.self_attn\.([qkv])\.", r".attn1.to_\1."),
    (r"\.cross_attn\.([qkv])\.", r".attn2.to_\1."),
]


def small(base: str, layers: int = 2) -> DitConfig:
    """A preset's structure at 256 channels."""
    return replace(PRESETS[base], width=256, heads=2, layers=layers, hidden=512, text_features=64)


def random_state(config: DitConfig, dtype: torch.dtype = torch.bfloat16, seed: int = 1) -> State:
    source = torch.Generator().manual_seed(seed)
    return {
        name: (0.05 * torch.randn(spec.shape, generator=source)).to(dtype)
        for name, spec in wan_keys(config).items()
    }


def diffusers_name(name: str) -> str:
    for pattern, target in TO_DIFFUSERS:
        name = re.sub(pattern, target, name)
    return name


def prefixed(state: State, prefix: str) -> State:
    return {prefix + name: value for name, value in state.items()}


def write_shards(folder: Path, state: State, count: int = 3) -> None:
    """As the originals come: numbered files and an index."""
    folder.mkdir(parents=True, exist_ok=True)
    names, index = list(state), {}
    for i in range(count):
        file = f"diffusion_pytorch_model-{i + 1:05d}-of-{count:05d}.safetensors"
        part = {n: state[n] for n in names[i::count]}
        save_file(part, folder / file)
        index |= dict.fromkeys(part, file)
    text = json.dumps({"metadata": {}, "weight_map": index})
    (folder / "diffusion_pytorch_model.safetensors.index.json").write_text(text)


def lora_of(state: State, prefix: str = "base_model.model.", middle: str = "") -> State:
    """Random A and B for every attention and feed-forward layer of the blocks."""
    source = torch.Generator().manual_seed(9)
    pairs: State = {}
    for name, value in state.items():
        if not re.search(r"^blocks\.\d+\.(self_attn|cross_attn|ffn)\..*weight$", name):
            continue
        if value.ndim != 2:
            continue
        module = prefix + name.removesuffix(".weight")
        out, into = value.shape
        pairs[f"{module}.lora_A{middle}.weight"] = torch.randn(RANK, into, generator=source) * 0.1
        pairs[f"{module}.lora_B{middle}.weight"] = torch.randn(out, RANK, generator=source) * 0.1
    return pairs


def original(folder: Path, state: State) -> Path:
    write_shards(folder, state)
    return folder


def original_single(folder: Path, state: State) -> Path:
    folder.mkdir(parents=True)
    save_file(state, folder / "diffusion_pytorch_model.safetensors")
    return folder


def self_forcing(folder: Path, state: State) -> Path:
    folder.mkdir(parents=True)
    other = {name: torch.zeros_like(value) for name, value in prefixed(state, "model.").items()}
    both = {"generator": other, "generator_ema": prefixed(state, "model.")}
    torch.save(both, folder / "self_forcing_dmd.pt")
    return folder


def causvid(folder: Path, state: State) -> Path:
    folder.mkdir(parents=True)
    torch.save({"generator": prefixed(state, "model."), "step": 3000}, folder / "model.pt")
    return folder


def longlive(folder: Path, state: State) -> Path:
    """Base with FSDP's wrapper in its names, and a LoRA of its own."""
    folder.mkdir(parents=True)
    wrapped = prefixed(state, "model._fsdp_wrapped_module.")
    torch.save({"generator": wrapped}, folder / "longlive_base.pt")
    torch.save({"generator_lora": lora_of(state)}, folder / "lora.pt")
    return folder


def live_avatar(folder: Path, state: State) -> Path:
    write_shards(folder, state, 4)
    save_file(lora_of(state, middle=".default"), folder / "liveavatar.safetensors")
    return folder


def krea(folder: Path, state: State) -> Path:
    folder.mkdir(parents=True)
    save_file(prefixed(state, "model."), folder / "krea-realtime-video-14b.safetensors")
    return folder


def diffusers(folder: Path, state: State) -> Path:
    write_shards(folder / "transformer", {diffusers_name(n): v for n, v in state.items()})
    config = {"_class_name": "WanTransformer3DModel", "num_attention_heads": 2}
    (folder / "transformer" / "config.json").write_text(json.dumps(config))
    (folder / "model_index.json").write_text('{"_class_name": "WanPipeline"}')
    return folder


Writer = Callable[[Path, State], Path]
# layout -> (writer, preset, what the line says, schedule)
LAYOUTS: dict[str, tuple[Writer, str, str, str]] = {
    "wan2.1 1.3B": (original_single, "wan-1.3b", "Wan original, ", "self-forcing"),
    "wan2.1 14B": (original, "wan-14b", "Wan original, ", "self-forcing"),
    "wan2.2 5B": (original, "wan-5b", "Wan original, ", "longlive-2"),
    "wan2.2 S2V": (original, "s2v-14b", "Wan original, 256-wide Wan S2V", "live-avatar"),
    "self-forcing": (self_forcing, "wan-1.3b", "Self-Forcing generator_ema, ", "self-forcing"),
    "causvid": (causvid, "wan-1.3b", "CausVid or LongLive generator, ", "causvid"),
    "longlive 1": (longlive, "wan-1.3b", "LongLive generator and LoRA, ", "longlive"),
    "longlive 2": (longlive, "wan-5b", "LongLive generator and LoRA, ", "longlive-2"),
    "liveavatar": (live_avatar, "s2v-14b", "LiveAvatar (base and LoRA), ", "live-avatar"),
    "krea": (krea, "wan-14b", "single file with prefixed names (Krea), ", "self-forcing"),
    "diffusers": (diffusers, "wan-1.3b", "diffusers transformer, ", "self-forcing"),
}  # fmt: skip


def merged(state: State, lora: State, scale: float = 1.0) -> State:
    """The base with a LoRA added, in fp32, worked out the plain way."""
    result = dict(state)
    for name in state:
        module = "base_model.model." + name.removesuffix(".weight")
        for middle in ("", ".default"):
            down = lora.get(f"{module}.lora_A{middle}.weight")
            if down is not None:
                up = lora[f"{module}.lora_B{middle}.weight"]
                result[name] = state[name].float() + scale * (up @ down)
    return result


class Dictionary:
    """A weight source over tensors in memory: what a load is held against."""

    def __init__(self, state: State) -> None:
        self.state = state

    def tensor(self, name, cut=None, dtype=None):  # type: ignore[no-untyped-def]
        from engine.models.synthetic_source import cut_tensor

        return cut_tensor(self.state[name].float(), cut)

    def linear(self, names, cut=None, bias=True, quantise=True):  # type: ignore[no-untyped-def]
        from engine.fp8 import Linear

        rows = cut if cut is not None and cut.axis == 0 else None
        weight = torch.cat([self.tensor(f"{n}.weight", cut) for n in names])
        added = torch.cat([self.tensor(f"{n}.bias", rows) for n in names]) if bias else None
        return Linear(weight, added)
