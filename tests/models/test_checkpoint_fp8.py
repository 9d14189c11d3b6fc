"""FP8 per output channel at load, its cache on disk, progress and cancelling."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.errors import EngineError
from engine.fp8 import Activation, Linear, LinearOp, quantised_rows
from engine.models.checkpoint.fp8_cache import Fp8Cache
from engine.models.dit_config import shard
from engine.models.dit_weights import DitWeights
from engine.models.weights import Model, load_weights, open_model
from kernels.reference import FP8
from tests.models import checkpoint_layouts as layouts
from tests.models.test_checkpoint_layouts import same

CPU = torch.device("cpu")


@pytest.fixture
def model(tmp_path: Path) -> Model:
    state = layouts.random_state(layouts.small("wan-1.3b"))
    state["blocks.0.ffn.0.weight"][7] *= 1e-3  # a quiet channel, which one scale would flatten
    return open_model(layouts.original(tmp_path / "model", state))


def load(model: Model, cache: Path | None, rank: int = 0, ranks: int = 1) -> DitWeights:
    part = shard(model.config, rank, ranks)
    return load_weights(model, part, CPU, torch.float32, True, cache)


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "fp8").glob("*"))


def test_each_output_channel_has_its_scale(model: Model) -> None:
    plain = load_weights(model, shard(model.config), CPU, torch.float32)
    quantised = load(model, None).blocks[0].ff1
    assert quantised.weight.dtype == FP8 and quantised.scale is not None
    assert quantised.scale.shape == (1, 512)
    back = quantised.weight.float() * quantised.scale.T
    wanted = plain.blocks[0].ff1.weight
    error = (back - wanted).norm(dim=1) / wanted.norm(dim=1)
    assert error.max() < 0.04  # 3 bits of mantissa; the quiet channel no worse than others
    assert load(model, None).patch_in.weight.dtype == torch.float32


def test_a_layer_with_channel_scales_meets_a_static_activation() -> None:
    source = torch.Generator().manual_seed(3)
    weight = torch.randn(32, 64, generator=source) * torch.logspace(-3, 0, 32)[:, None]
    values, scale = quantised_rows(weight)
    layer = Linear(values, None, scale[None], scale[None])
    x = torch.randn(5, 64, generator=source)
    entering = Activation((x / 0.02).to(FP8), torch.full((1,), 0.02))
    out = torch.empty(5, 32)
    LinearOp(CPU)(entering, layer, out)
    wanted = x @ weight.T
    assert ((out - wanted).norm(dim=0) / wanted.norm(dim=0)).max() < 0.08


def test_the_second_load_reads_the_cache_and_gives_the_same(model: Model, tmp_path: Path) -> None:
    said: list[str] = []
    first = load(model, tmp_path)
    (file,) = kept(tmp_path)
    assert file.suffix == ".safetensors"
    second = load_weights(
        model, shard(model.config), CPU, torch.float32, True, tmp_path,
        lambda fraction, what: said.append(what),
    )  # fmt: skip
    assert "FP8 weights read from" in said[-1] and "MB)" in said[-1]
    same(first, second)


def test_values_do_come_from_the_cache(model: Model, tmp_path: Path) -> None:
    load(model, tmp_path)
    (file,) = kept(tmp_path)
    data = bytearray(file.read_bytes())
    data[-40_000:] = bytes(40_000)
    file.write_bytes(data)
    a, b = load(model, None), load(model, tmp_path)
    assert not torch.equal(a.cross_kv.weight.view(torch.uint8), b.cross_kv.weight.view(torch.uint8))


def test_each_rank_keeps_its_own_part(model: Model, tmp_path: Path) -> None:
    for rank in range(2):
        load(model, tmp_path, rank, 2)
    assert sorted(p.name.rsplit("-", 1)[1] for p in kept(tmp_path)) == [
        "0of2.safetensors", "1of2.safetensors",
    ]  # fmt: skip
    again = load(model, tmp_path, 1, 2)
    same(again, load(model, None, 1, 2))


def test_another_model_in_its_place_gets_another_cache(model: Model, tmp_path: Path) -> None:
    load(model, tmp_path)
    (old,) = kept(tmp_path)
    state = layouts.random_state(layouts.small("wan-1.3b"), seed=2)
    changed = open_model(layouts.original(model.checkpoint.path, state))
    fresh = load(changed, tmp_path)
    (new,) = kept(tmp_path)  # the old one is gone
    assert new != old
    same(fresh, load(changed, None))


def test_a_torn_cache_is_made_anew(model: Model, tmp_path: Path) -> None:
    whole = load(model, tmp_path)
    (file,) = kept(tmp_path)
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[: size // 2])
    same(load(model, tmp_path), whole)
    assert kept(tmp_path) == [file] and file.stat().st_size == size


def test_cancelling_leaves_nothing_behind(model: Model, tmp_path: Path) -> None:
    asked: list[float] = []

    def cancelled() -> bool:
        return len(asked) > 20

    with pytest.raises(EngineError) as caught:
        load_weights(
            model, shard(model.config), CPU, torch.float32, True, tmp_path,
            lambda fraction, what: asked.append(fraction), cancelled,
        )  # fmt: skip
    assert caught.value.code == "cancelled"
    assert len(asked) == 21 and kept(tmp_path) == []


def test_what_a_dead_process_left_is_removed(model: Model, tmp_path: Path) -> None:
    load(model, tmp_path)
    (file,) = kept(tmp_path)
    file.unlink()
    orphan = file.with_name(f".{file.name}.999999999.part")
    orphan.write_bytes(b"half")
    load(model, tmp_path)
    assert kept(tmp_path) == [file]


def test_a_cache_that_cannot_be_written_is_said_and_the_load_goes_on(
    model: Model, tmp_path: Path
) -> None:
    (tmp_path / "fp8").write_text("a file where the folder would be")
    said: list[str] = []
    loaded = load_weights(
        model, shard(model.config), CPU, torch.float32, True, tmp_path,
        lambda fraction, what: said.append(what),
    )  # fmt: skip
    assert said[-1].startswith("FP8 weights are not kept: ")
    same(loaded, load(model, None))


def test_a_full_disk_ends_the_cache_not_the_load(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    load(model, tmp_path)
    assert kept(tmp_path) == []


def test_progress_runs_from_nothing_to_all(model: Model) -> None:
    seen: list[tuple[float, str]] = []
    load_weights(
        model, shard(model.config), CPU, torch.float32,
        progress=lambda fraction, what: seen.append((fraction, what)),
    )  # fmt: skip
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] == 1
    assert 0.9 < fractions[-2] < 1
    assert seen[0][1].startswith("reading diffusion_pytorch_model-0000")


def test_more_tensors_than_announced_are_not_kept(tmp_path: Path) -> None:
    cache = Fp8Cache(tmp_path, "0" * 8, "1" * 16, "0of1", 1)
    for i in range(40):
        cache.put(f"name{i}", *quantised_rows(torch.randn(2, 3)))
    cache.finish()
    assert "not kept" in cache.line and list(tmp_path.iterdir()) == []
