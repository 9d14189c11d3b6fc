"""The files that a video model needs beside itself: decoder, text encoder, sound encoder.

Looked for in its own folder first, then in those of other installed models: several share them.
Each missing one is a line with its remedy. Knows nothing of how they work.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.errors import EngineError
from engine.models.checkpoint.folder import Contents, look, weights_files
from engine.models.checkpoint.tensor_set import TensorSet
from engine.models.wav2vec_files import find_wav2vec
from engine.models.weights import Model

DECODERS = {16: "Wan2.1_VAE.pth", 48: "Wan2.2_VAE.pth"}  # by latent channels


@dataclass(frozen=True, slots=True)
class Companions:
    """Where the parts of one model lie."""

    vae: Path
    text: Path | None  # folder in which the text encoder is looked for
    audio: Path | None
    clip: TensorSet | None  # picture encoder
    tiny: Path | None  # the small decoder's file; None: there is none for these latents


def lacking(model: Model, places: list[Path]) -> list[str]:
    """One line for each part that is nowhere."""
    config, where = model.config, places[0]
    lines = []
    if find_vae(config.latent_channels, places) is None:
        name = DECODERS.get(config.latent_channels, "its VAE")
        lines.append(f"the video decoder is missing: put {name} into {where}")
    if config.text_features and find_role("text_encoder", places) is None:
        name = "models_t5_umt5-xxl-enc-bf16.pth and google/umt5-xxl/"
        lines.append(f"the text encoder is missing: put {name} into {where}")
    if config.speech is not None and find_audio(places) is None:
        name = "wav2vec2-large-xlsr-53-english/"
        lines.append(f"the sound encoder is missing: put {name} into {where}")
    if config.image_tokens and find_role("clip", places) is None:
        name = "models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth"
        lines.append(f"the picture encoder is missing: put {name} into {where}")
    return lines


def companions(model: Model, places: list[Path]) -> Companions:
    """All parts of a model. Raises EngineError("missing_asset") with the first that is lacking."""
    missing = lacking(model, places)
    vae = find_vae(model.config.latent_channels, places)
    if missing or vae is None:
        what, _, remedy = (missing or ["the video decoder is missing"])[0].partition(": ")
        raise EngineError("missing_asset", f"{model.config.name}: {what}", remedy)
    text = find_role("text_encoder", places) if model.config.text_features else None
    audio = find_audio(places) if model.config.speech is not None else None
    clips = find_role("clip", places) if model.config.image_tokens else None
    clip = _contents(clips).of("clip")[0] if clips else None
    return Companions(vae, text, audio, clip, find_tiny(model.config.latent_channels, places))


def find_vae(channels: int, places: list[Path]) -> Path | None:
    """The file (or diffusers' folder) of a decoder for latents of that many channels."""
    for folder in places:
        for tensors in _contents(folder).of("vae"):
            if _latent_channels(tensors) == channels:
                path = tensors.path
                return path.parent if (path.parent / "config.json").is_file() else path
    return None


def find_tiny(channels: int, places: list[Path]) -> Path | None:
    """The file of a small decoder for latents of that many channels."""
    for folder in places:
        for tensors in _contents(folder).of("tiny_decoder"):
            if tensors.tensors["decoder.1.weight"].info.shape[1:2] == (channels,):
                return tensors.path
    return None


def find_role(role: str, places: list[Path]) -> Path | None:
    """The first place that holds a set of that role."""
    return next((folder for folder in places if _contents(folder).of(role)), None)


def find_audio(places: list[Path]) -> Path | None:
    for folder in places:
        if (found := find_wav2vec(folder)) is not None:
            return found
    return None


def _latent_channels(tensors: TensorSet) -> int:
    for name in ("conv2.weight", "post_quant_conv.weight"):
        if name in tensors.tensors:
            return tensors.tensors[name].info.shape[0]
    return 0


def _contents(folder: Path) -> Contents:
    try:
        told = ((path, path.stat()) for path in weights_files(folder))
        return _looked(folder, tuple((str(p), s.st_mtime_ns, s.st_size) for p, s in told))
    except (EngineError, OSError):  # a bad file there is told where that model is listed
        return Contents(folder)


@lru_cache(32)
def _looked(folder: Path, files: tuple[tuple[str, int, int], ...]) -> Contents:
    """Kept while the folder's files stay as they are."""
    return look(folder)
