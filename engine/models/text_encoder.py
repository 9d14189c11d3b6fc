"""A prompt -> what the video model is conditioned on, once a session, kept on disk.

The encoder (11 GB for umT5-XXL in bf16) is built, used for one prompt and dropped; the next session
with the same prompt and files reads the result. Knows nothing of video.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import html
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import EngineError
from engine.models.base import Progress
from engine.models.checkpoint.file_key import joint_key
from engine.models.checkpoint.mapping import open_tensors
from engine.models.text_files import TextFiles, load_text_encoder
from engine.models.wav2vec_files import transformers

TOKENS = 512  # what the models were trained with; a longer prompt is cut
VERSION = 1  # of what is kept on disk


def encode_text(
    prompt: str, files: TextFiles, cache: Path | None, device: torch.device, dtype: torch.dtype,
    progress: Progress = lambda fraction, what: None,
) -> Tensor:  # fmt: skip
    """[512, width] on the CPU in `dtype`: the prompt's tokens, zeros after them.

    Raises EngineError("bad_checkpoint" or "missing_asset").
    """
    cleaned = clean(prompt)
    kept = _place(cleaned, files, cache, dtype)
    found = _read(kept)
    if found is None:
        progress(0.0, "reading the text encoder")
        found = _encoded(cleaned, files, device, dtype)
        _keep(kept, found)
    progress(1.0, "prompt read")
    result = torch.zeros(TOKENS, found.shape[1], dtype=dtype)
    result[: len(found)] = found
    return result


def clean(prompt: str) -> str:
    """As the models' authors clean it: entities resolved twice, white space to single blanks.

    Their repair of wrongly decoded text (ftfy) is not done.
    """
    return re.sub(r"\s+", " ", html.unescape(html.unescape(prompt))).strip()


def _encoded(prompt: str, files: TextFiles, device: torch.device, dtype: torch.dtype) -> Tensor:
    """[tokens, width] on the CPU; nothing of the encoder is left on return.

    Run on the prompt's own tokens: with padding masked away the public way gives the same.
    """
    numbers = _tokens(prompt, files.tokenizer)
    model = load_text_encoder(files, device, dtype)
    with torch.inference_mode():
        result = model(input_ids=numbers.to(device)).last_hidden_state[0].cpu()
    result = result.clone()  # not an inference tensor
    del model
    gc.collect()  # modules refer to each other: without this the weights wait for a later round
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return result


def _tokens(prompt: str, folder: Path) -> Tensor:
    """[1, at most 512] token numbers, the end mark included."""
    library = transformers()
    try:
        tokenizer: Any = library.AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, ImportError) as error:
        raise EngineError(
            "bad_checkpoint", f"the tokenizer in {folder} cannot be read", "copy it again"
        ) from error
    told = tokenizer(prompt, truncation=True, max_length=TOKENS, return_tensors="pt")
    return told["input_ids"]


def _place(prompt: str, files: TextFiles, cache: Path | None, dtype: torch.dtype) -> Path | None:
    if cache is None:
        return None
    digest = hashlib.sha256(prompt.encode()).hexdigest()[:32]
    return cache / "text" / f"{digest}-{joint_key(files.paths, VERSION, dtype)}.safetensors"


def _read(kept: Path | None) -> Tensor | None:
    """What an earlier session kept; None when there is none or it is damaged."""
    if kept is None or not kept.is_file():
        return None
    with contextlib.suppress(EngineError, OSError, KeyError):
        found = open_tensors(kept)["text"]
        if found.ndim == 2 and len(found) <= TOKENS and bool(found.isfinite().all()):
            return found
    return None


def _keep(kept: Path | None, found: Tensor) -> None:
    """Whole or not at all; a full disk costs the next session its time, not this one."""
    if kept is None:
        return
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=kept.parent, suffix=".part")
        os.close(descriptor)
        try:
            save_file({"text": found.contiguous()}, name)
            Path(name).replace(kept)
        finally:
            Path(name).unlink(missing_ok=True)
