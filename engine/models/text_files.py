"""Opening umT5: the Wan family's own .pth or a folder as transformers writes it, with a tokenizer.

Sizes are read from shapes, so no config.json is needed; every tensor of the encoder must be there
in its shape (a decoder beside it is left out by name). Nothing is downloaded. Knows nothing of
prompts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.folder import look, only
from engine.models.checkpoint.mapping import Tensors
from engine.models.checkpoint.strict import require_exact
from engine.models.checkpoint.tensor_file import refused
from engine.models.checkpoint.tensor_set import TensorSet
from engine.models.wav2vec_files import transformers

TOKENIZERS = ("google/umt5-xxl", "tokenizer", "umt5-xxl", ".")
TOKENIZER_FILES = ("tokenizer.json", "spiece.model")
TOLD_BY = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
EMBEDDING = "encoder.embed_tokens.weight"
UNUSED = ("decoder.", "lm_head.")
# the .pth's names within a block -> transformers'
BLOCK = {
    "norm1": "layer.0.layer_norm",
    "attn": "layer.0.SelfAttention",
    "pos_embedding.embedding": "layer.0.SelfAttention.relative_attention_bias",
    "norm2": "layer.1.layer_norm",
    "ffn.gate.0": "layer.1.DenseReluDense.wi_0",
    "ffn.fc1": "layer.1.DenseReluDense.wi_1",
    "ffn.fc2": "layer.1.DenseReluDense.wo",
}
OUTER = {
    "token_embedding.weight": "shared.weight",
    "norm.weight": "encoder.final_layer_norm.weight",
}


@dataclass(frozen=True, slots=True)
class TextFiles:
    weights: TensorSet
    tokenizer: Path  # folder

    @property
    def paths(self) -> list[Path]:
        """All files that decide what a prompt becomes."""
        words = [self.tokenizer / name for name in TOKENIZER_FILES]
        return [f.path for f in self.weights.files] + [p for p in words if p.is_file()]


def find_text_encoder(folder: Path) -> TextFiles:
    """Of a model's folder. Raises EngineError("missing_asset") or ("bad_checkpoint")."""
    weights = only(look(folder).of("text_encoder"), "text encoder", folder)
    for below in (folder, weights.path.parent, weights.path.parent.parent):
        for name in TOKENIZERS:
            if any((below / name / file).is_file() for file in TOKENIZER_FILES):
                return TextFiles(weights, below / name)
    raise EngineError(
        "missing_asset", f"{folder} holds a text encoder and no tokenizer",
        "copy google/umt5-xxl/ (tokenizer.json, spiece.model, …) into it",
    )  # fmt: skip


def public_name(name: str) -> str:
    """transformers' name of a tensor in the .pth; other names as they are."""
    if name in OUTER:
        return OUTER[name]
    match = re.match(r"^blocks\.(\d+)\.(.+)\.weight$", name)
    if match is None:
        return name
    number, inner = match.groups()
    for prefix, target in BLOCK.items():
        if inner == prefix or inner.startswith(f"{prefix}."):
            return f"encoder.block.{number}.{target}{inner[len(prefix) :]}.weight"
    return name


def load_text_encoder(files: TextFiles, device: torch.device, dtype: torch.dtype) -> Any:
    """transformers' UMT5EncoderModel on `device`, from views of the files.

    Raises EngineError("bad_checkpoint"), or "missing_asset" where transformers is not installed.
    """
    library = transformers()
    tensors = Tensors(files.weights)
    names = {public_name(n): n for n in tensors if not n.startswith(UNUSED)}
    names.setdefault(EMBEDDING, names.get("shared.weight", EMBEDDING))
    names.setdefault("shared.weight", names[EMBEDDING])
    shapes = {ours: tensors.shapes[n] for ours, n in names.items() if n in tensors.shapes}
    with torch.device("meta"):
        model = library.UMT5EncoderModel(_config(library, files.weights.path, shapes))
    wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    require_exact(f"the text encoder in {files.weights.path.name}", shapes, wanted)
    with torch.device("meta"):  # nothing is drawn for what is replaced
        model.load_state_dict(_state(tensors, names), strict=True, assign=True)
    model.tie_weights()
    return model.to(device, dtype).eval()


def _state(tensors: Tensors, names: Mapping[str, str]) -> dict[str, Tensor]:
    state = {ours: tensors[name] for ours, name in names.items() if ours != EMBEDDING}
    return state | {EMBEDDING: state["shared.weight"]}


def _config(library: Any, path: Path, shapes: Mapping[str, tuple[int, ...]]) -> Any:
    """Geometry from shapes: layers, heads, widths; the rest is the same for every umT5."""
    block = "encoder.block.0.layer"
    needed = ("shared.weight", TOLD_BY, f"{block}.0.SelfAttention.q.weight",
              f"{block}.1.DenseReluDense.wi_0.weight")  # fmt: skip
    if lacking := [name for name in needed if len(shapes.get(name, ())) != 2]:
        raise refused(path, f"is no umT5 encoder: it lacks {lacking[0]}", "use umt5-xxl")
    (words, width), (buckets, heads), (inner, _), (ff, _) = (shapes[name] for name in needed)
    layers = 1 + max(int(m[1]) for n in shapes if (m := re.match(r"encoder\.block\.(\d+)\.", n)))
    return library.UMT5Config(
        vocab_size=words, d_model=width, d_kv=inner // heads, d_ff=ff, num_heads=heads,
        num_layers=layers, relative_attention_num_buckets=buckets,
        relative_attention_max_distance=128, feed_forward_proj="gated-gelu",
        is_encoder_decoder=False, use_cache=False,
    )  # fmt: skip
