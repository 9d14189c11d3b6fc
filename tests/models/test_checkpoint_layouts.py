"""Every public layout, written tiny, is recognised, loaded whole and cut; anything else refused."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import EngineError
from engine.fp8 import Linear
from engine.models.dit_config import shard
from engine.models.wan_weights import build_weights
from engine.models.weights import load_weights, open_model
from tests.models import checkpoint_layouts as layouts
from tests.models.checkpoint_layouts import LAYOUTS, Dictionary, State

CPU = torch.device("cpu")


def flat(value: object, name: str = "") -> dict[str, Tensor]:
    """Every tensor within records, lists and tuples, by its path."""
    if isinstance(value, Tensor):
        return {name: value}
    if isinstance(value, list | tuple):
        pairs = [(f"{name}.{i}", item) for i, item in enumerate(value)]
    elif dataclasses.is_dataclass(value):
        pairs = [(f"{name}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    else:
        pairs = []
    return {key: tensor for path, item in pairs for key, tensor in flat(item, path).items()}


def same(found: object, wanted: object, tolerance: float = 0.0) -> None:
    a, b = flat(found), flat(wanted)
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=tolerance, rtol=tolerance, msg=name)


def written(layout: str, folder: Path) -> tuple[Path, State]:
    """(folder, the tensors that a load has to give)."""
    writer, preset, _, _ = LAYOUTS[layout]
    state = layouts.random_state(layouts.small(preset))
    path = writer(folder, state)
    has_lora = writer in (layouts.longlive, layouts.live_avatar)
    return path, layouts.merged(state, layouts.lora_of(state)) if has_lora else state


def refusal(path: Path, **options: object) -> EngineError:
    with pytest.raises(EngineError) as caught:
        open_model(path, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_loads_what_was_written(layout: str, tmp_path: Path) -> None:
    path, state = written(layout, tmp_path / "model")
    model = open_model(path)
    _, _, line, schedule = LAYOUTS[layout]
    assert model.line.startswith(line) and "2 layers, bf16, " in model.line
    assert model.schedule == schedule
    part = shard(model.config)
    loaded = load_weights(model, part, CPU, torch.float32)
    # a LoRA's product is summed in another order than here
    tolerance = 1e-5 if "LoRA" in model.line else 0.0
    same(loaded, build_weights(model.config, part, Dictionary(state)), tolerance)


@pytest.mark.parametrize("layout", ["liveavatar", "longlive 1"])
@pytest.mark.parametrize("ranks", [2])
def test_ranks_read_their_part_and_the_parts_are_the_whole(
    layout: str, ranks: int, tmp_path: Path
) -> None:
    path, state = written(layout, tmp_path / "model")
    model = open_model(path)
    for rank in range(ranks):
        part = shard(model.config, rank, ranks)
        loaded = load_weights(model, part, CPU, torch.float32)
        same(loaded, build_weights(model.config, part, Dictionary(state)), 1e-5)
        assert loaded.blocks[0].ff1.weight.shape == (part.hidden, 256)


def test_heads_that_do_not_divide_are_padded_with_zeros(tmp_path: Path) -> None:
    """5 heads on 3 ranks: two each, the last has one and one of zeros."""
    config = dataclasses.replace(layouts.small("wan-1.3b"), width=640, heads=5)
    state = layouts.random_state(config)
    path = layouts.original(tmp_path / "model", state)
    model = open_model(path)
    last = load_weights(model, shard(model.config, 2, 3), CPU, torch.float32)
    q, k, v = last.blocks[0].qkv.weight.view(3, 256, 640)
    assert torch.equal(k[:128], state["blocks.0.self_attn.k.weight"][512:].float())
    assert not q[128:].any() and not k[128:].any() and not v[128:].any()
    same(last, build_weights(model.config, shard(model.config, 2, 3), Dictionary(state)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_key_less_or_one_shape_changed_is_refused(layout: str, tmp_path: Path) -> None:
    writer, preset, _, _ = LAYOUTS[layout]
    whole = layouts.random_state(layouts.small(preset))
    gone = "blocks.1.cross_attn.norm_q.weight"
    path = writer(tmp_path / "less", {n: v for n, v in whole.items() if n != gone})
    error = refusal(path)
    assert error.code == "bad_checkpoint" and f"1 tensors are missing ({gone})" in error.message
    bent = "blocks.1.self_attn.norm_k.weight"
    path = writer(tmp_path / "bent", whole | {bent: torch.zeros(128, dtype=torch.bfloat16)})
    assert f"misshapen ({bent} [128] instead of [256])" in refusal(path).message


def test_whichever_key_is_missing_it_is_a_refusal(tmp_path: Path) -> None:
    """Also those that the geometry is read from; the first of twelve injectors stands for all, and
    the large matrices, which would only make this slow, are left alone.
    """
    whole = layouts.random_state(layouts.small("s2v-14b", layers=1))
    path = tmp_path / "model.safetensors"
    tried = [n for n in whole if not re.search(r"inject\w+\.([1-9]|1[01])\.", n)]
    assert len(tried) > 60
    light = {n: v for n, v in whole.items() if v.numel() < 1 << 18}
    heavy = {n: v for n, v in whole.items() if n not in light}
    save_file(heavy, tmp_path / "model-00002-of-00002.safetensors")
    path = tmp_path / "model-00001-of-00002.safetensors"
    for gone in tried:
        if gone in heavy:
            continue
        save_file({n: v for n, v in light.items() if n != gone}, path)
        assert refusal(path).code in ("bad_checkpoint", "bad_input"), gone


def test_first_five_of_each_fault_are_named(tmp_path: Path) -> None:
    whole = layouts.random_state(layouts.small("wan-1.3b"))
    extra = {f"extra.{i}": torch.zeros(2) for i in range(7)}
    less = {n: v for n, v in whole.items() if not n.startswith("blocks.1.ffn")}
    path = layouts.original_single(tmp_path / "model", less | extra)
    message = refusal(path).message
    assert "4 tensors are missing (blocks.1.ffn.0.bias, blocks.1.ffn.0.weight, " in message
    assert "7 tensors are unexpected (extra.0, extra.1, extra.2, extra.3, extra.4 and 2 more)" in (
        message
    )


def test_a_missing_shard_and_an_index_that_lies_are_refused(tmp_path: Path) -> None:
    state = layouts.random_state(layouts.small("wan-1.3b"))
    path = layouts.original(tmp_path / "model", state)
    shards = sorted(path.glob("*.safetensors"))
    shards[1].rename(tmp_path / "elsewhere")
    assert "1 of 3 shards are missing: diffusion_pytorch_model-00002" in refusal(path).message
    save_file({"other": torch.zeros(1)}, shards[1])
    assert "lacks tensors that diffusion_pytorch_model.safetensors.index.json lists" in (
        refusal(path).message
    )


def test_two_models_in_a_folder_ask_for_the_file(tmp_path: Path) -> None:
    state = layouts.random_state(layouts.small("wan-1.3b"))
    path = layouts.self_forcing(tmp_path / "model", state)
    save_file(state, path / "wan.safetensors")
    error = refusal(path)
    assert "2 times a video model: self_forcing_dmd.pt, wan.safetensors" in error.message
    assert "Wan original" in open_model(path / "wan.safetensors").line


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    assert refusal(tmp_path).code == "missing_asset"
    assert refusal(tmp_path / "nowhere").code == "missing_asset"
    save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors")
    assert "holds no video model" in refusal(tmp_path).message


# -- changes (LoRA) --------------------------------------------------------------------------------


def test_alpha_is_taken_from_where_it_is_stated(tmp_path: Path) -> None:
    state = layouts.random_state(layouts.small("wan-1.3b"))
    base = layouts.original_single(tmp_path / "base", state)
    pairs = layouts.lora_of(state)
    lora = tmp_path / "change" / "lora.safetensors"
    lora.parent.mkdir()
    save_file(pairs, lora)
    assert "1.00 times (alpha not stated)" in open_model(base, lora).line
    (lora.parent / "adapter_config.json").write_text('{"lora_alpha": 2, "r": 4}')
    model = open_model(base, lora)
    assert model.line.endswith("LoRA of rank 4 on 20 layers, 0.50 times")
    loaded = load_weights(model, shard(model.config), CPU, torch.float32)
    wanted = Dictionary(layouts.merged(state, pairs, 0.5))
    same(loaded, build_weights(model.config, shard(model.config), wanted), 1e-5)


def test_a_lora_of_another_model_is_refused(tmp_path: Path) -> None:
    state = layouts.random_state(layouts.small("wan-1.3b"))
    base = layouts.original_single(tmp_path / "base", state)
    more = layouts.random_state(layouts.small("wan-1.3b", layers=3))
    save_file(layouts.lora_of(more), tmp_path / "deep.safetensors")
    assert "changes layers that the model lacks: blocks.2." in (
        refusal(base, lora=tmp_path / "deep.safetensors").message
    )
    pairs = layouts.lora_of(state)
    name = next(iter(pairs))
    save_file(pairs | {name: torch.zeros(4, 255)}, tmp_path / "wide.safetensors")
    assert "does not fit the model's" in refusal(base, lora=tmp_path / "wide.safetensors").message
    del pairs[name]
    save_file(pairs, tmp_path / "half.safetensors")
    assert "has one half only of" in refusal(base, lora=tmp_path / "half.safetensors").message
    assert "is the video model itself" in (
        refusal(base, lora=base / "diffusion_pytorch_model.safetensors").message
    )


def test_a_model_saved_with_its_lora_inside_is_merged(tmp_path: Path) -> None:
    """PEFT's own state: `base_layer` beside `lora_A.default` in every changed layer."""
    state = layouts.random_state(layouts.small("wan-1.3b"))
    pairs = layouts.lora_of(state, middle=".default")
    changed = {name.split(".lora_")[0] for name in pairs}
    inside = {}
    for name, value in state.items():
        module = "base_model.model." + name.rpartition(".")[0]
        tail = "base_layer." if module in changed else ""
        inside[f"{module}.{tail}{name.rpartition('.')[2]}"] = value
    path = tmp_path / "both.safetensors"
    save_file(inside | pairs, path)
    model = open_model(path)
    loaded = load_weights(model, shard(model.config), CPU, torch.float32)
    wanted = Dictionary(layouts.merged(state, layouts.lora_of(state)))
    same(loaded, build_weights(model.config, shard(model.config), wanted), 1e-5)


# -- conversion ------------------------------------------------------------------------------------


def test_values_arrive_in_the_runs_precision(tmp_path: Path) -> None:
    state = layouts.random_state(layouts.small("wan-1.3b"), torch.float32)
    model = open_model(layouts.original_single(tmp_path / "model", state))
    loaded = load_weights(model, shard(model.config), CPU, torch.bfloat16)
    assert loaded.blocks[0].qkv.weight.dtype == torch.bfloat16
    assert loaded.blocks[0].q_norm.dtype == torch.float32
    linear: Linear = loaded.patch_in
    assert torch.equal(linear.weight, state["patch_embedding.weight"].bfloat16().flatten(1))
