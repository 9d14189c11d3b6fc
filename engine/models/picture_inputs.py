"""What a video model is given of the reference picture: its latent, and for image-to-video more.

Image-to-video models (Wan2.1 I2V) read beside the noise a mask and the latents of a clip that is
the picture and then nothing, and attend to CLIP's tokens of the picture. They were trained on clips
of 81 frames, whose 20 latents after the picture differ among themselves; here every chunk gets the
last of them, since no clip of endless length was seen. Speech-to-video models see a past: as
LiveAvatar has it, the picture stood still for 73 frames, and the reference is the second latent of
that, not the first, which stands for one frame alone. Knows nothing of windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from torch import Tensor

from engine.errors import EngineError
from engine.models.checkpoint.tensor_set import TensorSet
from engine.models.clip_vision import encode_clip
from engine.models.dit_config import DitConfig
from engine.models.latents import to_tokens
from engine.models.vae_encoder import VaeEncoder
from engine.models.vae_files import LoadedVae

TRAINED = 81  # frames of "picture, then nothing"
STILL = 73  # frames of the past of a speech-to-video model: 19 latents
KNOWN = 4  # channels of the mask: one a picture of a latent frame


@dataclass(frozen=True, slots=True)
class PictureInputs:
    """`joined`: tokens beside the picture's and beside each chunk's; `image`: CLIP's tokens."""

    latent: Tensor  # [C, 1, H, W]
    joined: tuple[Tensor, Tensor] | None = None
    image: Tensor | None = None
    past: Tensor | None = None  # latents [C, n, H, W] before the clip, newest last


def picture_inputs(
    config: DitConfig, vae: LoadedVae, clip: TensorSet | None, picture: Tensor, device: torch.device
) -> PictureInputs:
    """picture [1, 3, h, w] RGB -1..1, any size. Encoders are gone when this returns.

    Raises EngineError("missing_asset") for an image-to-video model without CLIP's encoder.
    """
    encoder = VaeEncoder(vae.config, vae.encoder, device)
    shown = F.interpolate(picture.to(device), vae.config.picture, mode="area").transpose(0, 1)
    image = None
    if config.image_tokens:
        if clip is None:
            raise EngineError(
                "missing_asset", f"{config.name} needs a CLIP picture encoder",
                "put models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth into its folder",
            )  # fmt: skip
        image = encode_clip(clip, picture, device)
    if config.speech is not None:
        latents = encoder.encode(shown.expand(-1, STILL, -1, -1))
        return PictureInputs(latents[:, 1:2], None, image, latents)
    if not config.joined_channels:
        return PictureInputs(encoder.encode(shown), None, image)
    grey = shown.new_zeros(3, TRAINED - 1, *shown.shape[2:])
    latents = encoder.encode(torch.cat((shown, grey), 1))
    first, later = latents[:, :1], latents[:, -1:]
    joined = _masked(first, 1.0, config), _masked(later, 0.0, config).repeat(config.frames, 1)
    return PictureInputs(first, joined, image)


def _masked(latent: Tensor, known: float, config: DitConfig) -> Tensor:
    """Tokens of mask and latent of one frame."""
    mask = latent.new_full((KNOWN, *latent.shape[1:]), known)
    return to_tokens(torch.cat((mask, latent)), config)
