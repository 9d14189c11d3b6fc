"""Loading wav2vec2 from a folder of the user's: config.json and its weights, strictly, offline.

The weights may be those of the bare encoder or of a recogniser around it (`wav2vec2.` before each
name, and a head that is left out by name). transformers is imported when a model is built, not
before. Knows nothing of streaming.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.mapping import Tensors, open_tensors
from engine.models.checkpoint.strict import require_exact
from engine.models.checkpoint.tensor_set import TensorSet
from engine.models.checkpoint.torch_file import TorchFile

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
PREFIX = "wav2vec2."
# of recognisers and of pre-training, none of them used here
HEADS = ("lm_head.", "quantizer.", "project_hid.", "project_q.", "dropout_features.")
# older transformers wrote the two halves of the weight-normed convolution by these names
RENAMED = {
    "conv.weight_g": "conv.parametrizations.weight.original0",
    "conv.weight_v": "conv.parametrizations.weight.original1",
}
OPTIONAL = ("masked_spec_embed",)  # of training alone


def find_wav2vec(folder: Path) -> Path | None:
    """The folder itself or one directly below that holds a wav2vec2; None: there is none."""
    below = sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    for candidate in (folder, *below):
        if _told(candidate / "config.json").get("model_type") == "wav2vec2":
            return candidate
    return None


def load_wav2vec(folder: Path, device: torch.device, dtype: torch.dtype) -> tuple[Any, bool]:
    """(transformers' Wav2Vec2Model, whether waveforms are normalised), from a folder.

    Raises EngineError("missing_asset") without the folder, its files or transformers,
    "bad_checkpoint" for weights that are not exactly the model's.
    """
    told = _told(folder / "config.json")
    if told.get("model_type") != "wav2vec2":
        raise EngineError(
            "missing_asset", f"{folder} holds no wav2vec2 model", "copy config.json and its weights"
        )
    library = transformers()
    with torch.device("meta"):
        model = library.Wav2Vec2Model(library.Wav2Vec2Config.from_dict(told))
    state = read_state(folder, {k: tuple(v.shape) for k, v in model.state_dict().items()})
    model.load_state_dict(state | _absent(model, state), strict=True, assign=True)
    extractor = _told(folder / "preprocessor_config.json")
    return model.to(device, dtype).eval(), bool(extractor.get("do_normalize", True))


def read_state(folder: Path, wanted: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The encoder's tensors by transformers' names, views of the file, all of them or an error."""
    tensors = _open(folder)
    names = {_renamed(name): name for name in tensors if not name.startswith(HEADS)}
    shapes = {ours: tensors.shapes[name] for ours, name in names.items()}
    require_exact(f"the audio encoder in {folder.name}", shapes, wanted, OPTIONAL)
    return {ours: tensors[name] for ours, name in names.items()}


def _open(folder: Path) -> Tensors:
    for name in WEIGHTS:
        path = folder / name
        if path.is_file():
            is_bin = path.suffix == ".bin"  # torch's format under an older name
            return Tensors(TensorSet([TorchFile(path)])) if is_bin else open_tensors(path)
    raise EngineError(
        "missing_asset", f"{folder} holds none of {', '.join(WEIGHTS)}", "download one"
    )


def _renamed(name: str) -> str:
    bare = name.removeprefix(PREFIX)
    for old, new in RENAMED.items():
        if bare.endswith(old):
            return bare[: -len(old)] + new
    return bare


def _absent(model: Any, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Zeros for what training alone needs and the file may lack."""
    return {
        name: torch.zeros(value.shape)
        for name, value in model.state_dict().items() if name in OPTIONAL and name not in state
    }  # fmt: skip


def _told(path: Path) -> dict[str, Any]:
    """A JSON table; {} when there is none or it cannot be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def transformers() -> Any:
    """The library. Raises EngineError("missing_asset") where it is not installed."""
    try:
        import transformers as library
    except ImportError as error:
        raise EngineError(
            "missing_asset",
            "the package transformers is not installed",
            "install the extra: pip install avatar-studio[gpu]",
        ) from error
    return library
