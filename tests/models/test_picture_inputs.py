"""What image-to-video models get of the picture, against the published way of making it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.errors import EngineError
from engine.models import picture_inputs as module
from engine.models.dit_config import DitConfig, preset
from engine.models.latents import to_latent
from engine.models.picture_inputs import picture_inputs
from engine.models.vae_config import wan_2_1
from engine.models.vae_encoder import VaeEncoder
from engine.models.vae_files import LoadedVae
from engine.models.vae_weights import encoder_shapes, synthetic_vae_weights

CPU = torch.device("cpu")
GRID = (4, 6)


def vae() -> LoadedVae:
    config = wan_2_1(GRID, 16)
    weights = synthetic_vae_weights(config, CPU, torch.float32, shapes=encoder_shapes(config))
    return LoadedVae(config, {}, weights, "")


def model(**changes: int) -> DitConfig:
    config = preset("tiny")
    return replace(config, grid=(2, 3), patch=2, latent_channels=16, frames=3, **changes)


def picture() -> Tensor:
    source = torch.Generator().manual_seed(1)
    return 2 * torch.rand(1, 3, 32, 48, generator=source) - 1


def test_others_get_the_latent_alone() -> None:
    made = picture_inputs(model(), vae(), None, picture(), CPU)
    want = VaeEncoder(vae().config, vae().encoder, CPU).encode(picture().transpose(0, 1))
    assert torch.equal(made.latent, want) and made.joined is None and made.image is None


def test_mask_and_latents_are_those_of_picture_then_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The published way: 81 frames, the picture and zeros; the mask is 1 for what is known."""
    monkeypatch.setattr(module, "encode_clip", lambda *given: torch.ones(257, 8))
    config = model(joined_channels=20, image_tokens=257)
    made = picture_inputs(config, vae(), object(), picture(), CPU)  # type: ignore[arg-type]
    clip = torch.cat((picture().transpose(0, 1), torch.zeros(3, 80, 32, 48)), 1)
    want = VaeEncoder(vae().config, vae().encoder, CPU).encode(clip)
    assert want.shape[1] == 21 and made.joined is not None
    first, later = (to_latent(tokens, config) for tokens in made.joined)
    assert first.shape == (20, 1, *GRID) and later.shape == (20, 3, *GRID)
    assert (first[:4] == 1).all() and (later[:4] == 0).all()
    torch.testing.assert_close(first[4:], want[:, :1])
    torch.testing.assert_close(later[4:], want[:, -1:].expand(-1, 3, -1, -1))
    assert (want[:, 1] - want[:, -1]).abs().max() > 1e-3  # and is not its beginning
    assert made.image is not None and made.image.shape == (257, 8)


def test_without_clip_it_says_what_to_copy(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="models_clip"):
        picture_inputs(model(joined_channels=20, image_tokens=257), vae(), None, picture(), CPU)


def test_a_talking_model_gets_a_still_past_and_its_second_latent() -> None:
    """LiveAvatar's way: 73 frames of the picture are its past, the second latent its reference."""
    config = replace(model(), speech=preset("s2v-14b").speech)
    made = picture_inputs(config, vae(), None, picture(), CPU)
    encoder = VaeEncoder(vae().config, vae().encoder, CPU)
    five = encoder.encode(picture().transpose(0, 1).expand(-1, 5, -1, -1))
    assert made.past is not None and made.past.shape == (16, 19, *GRID)
    torch.testing.assert_close(made.latent, five[:, 1:2])
    assert not torch.allclose(made.latent, five[:, :1])
