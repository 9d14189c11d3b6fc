"""Files that are cut short, forged or hostile; memory and pages; keys of caches."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.file_key import file_key
from engine.models.checkpoint.mapping import open_tensors
from engine.models.checkpoint.names import from_diffusers, unwrapped
from engine.models.checkpoint.roles import role_of
from engine.models.checkpoint.tensor_set import open_file
from engine.models.weights import open_model
from tests.models import checkpoint_layouts as layouts

ROOT = Path(__file__).resolve().parents[2]


def refusal(path: Path) -> str:
    with pytest.raises(EngineError) as caught:
        open_file(path)
    assert caught.value.code == "bad_checkpoint" and "\n" not in str(caught.value)
    assert path.name in caught.value.message
    return caught.value.message


def some() -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(5)
    return {
        "a": torch.randn(30, 7, generator=source),
        "b": torch.randn(5, generator=source).bfloat16(),
        "odd": torch.randint(0, 9, (3,), generator=source, dtype=torch.uint8),
        "c": torch.randn(4, 3, generator=source).to(torch.float8_e4m3fn),
        "none": torch.zeros(0, 4),
        "one": torch.tensor(2.5),
    }


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth"])
def test_tensors_come_back_as_they_were(suffix: str, tmp_path: Path) -> None:
    path, wanted = tmp_path / f"x{suffix}", some()
    save_file(wanted, path) if suffix == ".safetensors" else torch.save(wanted, path)
    found = open_tensors(path)
    assert dict(found.shapes) == {name: tuple(value.shape) for name, value in wanted.items()}
    for name, value in wanted.items():
        got = found[name]
        assert got.dtype == value.dtype
        assert torch.equal(got.view(torch.uint8) if got.ndim else got,
                           value.view(torch.uint8) if got.ndim else value)  # fmt: skip


def test_writing_into_a_view_leaves_the_file_alone(tmp_path: Path) -> None:
    for path in (tmp_path / "x.safetensors", tmp_path / "x.pt"):
        save_file(some(), path) if path.suffix == ".safetensors" else torch.save(some(), path)
        before = path.read_bytes()
        open_tensors(path)["a"].zero_()
        assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_a_file_cut_anywhere_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    save_file(some(), path) if suffix == ".safetensors" else torch.save(some(), path)
    whole = path.read_bytes()
    for length in (0, 1, 7, 8, 40, len(whole) // 2, len(whole) - 60, len(whole) - 1):
        path.write_bytes(whole[:length])
        refusal(path)


def header(path: Path, table: object, data: bytes = b"") -> Path:
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize(
    "table",
    [
        b"[1, 2]", b"{", b"[" * 5000, b"\xff\xfe",
        {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, -4]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}},
        {"a": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [1 << 61], "data_offsets": [0, 1 << 63]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
         "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}},
        {"a": 3}, {"a": None},
    ],
)  # fmt: skip
def test_a_forged_header_is_refused(table: object, tmp_path: Path) -> None:
    refusal(header(tmp_path / "x.safetensors", table, b"\0" * 8))


def test_a_header_of_absurd_length_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
    refusal(path)


class Hostile:
    """Unpickled carelessly, this makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mknod, (self.path,))


def test_a_hostile_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    path = tmp_path / "model.pt"
    torch.save({"generator": {"a": torch.zeros(1)}, "extra": Hostile(str(trace))}, path)
    assert "never run" in refusal(path)
    with pytest.raises(EngineError, match="never run"):
        open_model(tmp_path)
    assert not trace.exists()
    torch.load(path, weights_only=False)  # the trap does work
    assert trace.exists()


def test_an_archive_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"not a pickle")
    refusal(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\0" * 100_000)
    assert "compressed" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", b"hello")
    assert "no index" in refusal(path)
    torch.save([torch.zeros(1)], path)
    assert "holds a list" in refusal(path)
    torch.save({"step": 3, "optimizer": {"lr": 0.1}}, path)
    assert "none a dict of tensors" in refusal(path)


def test_a_broken_file_beside_a_good_model_is_not_left_out_in_silence(tmp_path: Path) -> None:
    path = layouts.causvid(tmp_path / "model", layouts.random_state(layouts.small("wan-1.3b")))
    (path / "lora.safetensors").write_bytes(b"half a downl")
    with pytest.raises(EngineError, match=r"lora\.safetensors: is not a safetensors file"):
        open_model(path)


def test_names_lose_what_wrappers_added() -> None:
    name = "generator.model._fsdp_wrapped_module.blocks.3._checkpoint_wrapped_module.ffn.0.weight"
    assert unwrapped(name) == "blocks.3.ffn.0.weight"
    assert unwrapped("model.diffusion_model.head.head.bias") == "head.head.bias"
    assert from_diffusers("blocks.7.attn2.add_k_proj.weight") == "blocks.7.cross_attn.k_img.weight"
    assert from_diffusers("blocks.7.norm2.bias") == "blocks.7.norm3.bias"
    assert from_diffusers("something.else") == "something.else"


def test_roles_are_told_from_names() -> None:
    assert role_of(["token_embedding.weight", "blocks.0.attn.q.weight"]) == "text_encoder"
    assert role_of(["decoder.conv1.weight", "conv2.weight"]) == "vae"
    assert role_of(["decoder.conv_in.weight", "post_quant_conv.weight"]) == "vae"
    assert role_of(["wav2vec2.feature_extractor.conv_layers.0.conv.weight"]) == "audio_encoder"
    assert role_of(["blocks.0.self_attn.q.lora_A.default.weight"]) == "lora"
    assert role_of(["visual.patch_embedding.weight", "patch_embedding.weight"]) == "clip"
    assert role_of(["weight"]) == "unknown"


def test_a_key_follows_contents_time_and_size(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(3 << 20))
    os.utime(path, ns=(1, 10**18))
    first = file_key(path)
    assert file_key(path) == first
    os.utime(path, ns=(1, 10**18 + 1))
    assert file_key(path) != first
    changed = bytearray(3 << 20)
    changed[2 << 20 : (2 << 20) + 200_000] = b"\1" * 200_000  # beyond the head, old time kept
    path.write_bytes(changed)
    os.utime(path, ns=(1, 10**18))
    assert file_key(path) != first


MEMORY = """
import sys
from pathlib import Path
import psutil, torch
torch.set_num_threads(1)
from engine.models.checkpoint.source import WeightSource
from engine.models.checkpoint.tensor_set import open_set
def resident():
    return psutil.Process().memory_info().rss
source = WeightSource(open_set(Path(sys.argv[1])), None, torch.device("cpu"), torch.bfloat16)
source.tensor("t0"); base = resident(); peak = 0
for i in range(int(sys.argv[2])):
    part = source.tensor(f"t{i}")
    peak = max(peak, resident()); del part
print(peak - base)
"""


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_reading_keeps_one_tensor_resident(suffix: str, tmp_path: Path) -> None:
    """64 tensors of 2 MB, read one after the other as to a device: far less than the file."""
    count = 64
    state = {f"t{i}": torch.full((1024, 512), float(i)) for i in range(count)}
    path = tmp_path / f"x{suffix}"
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    command = [sys.executable, "-c", MEMORY, str(path), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 0.15 * path.stat().st_size
