"""The tiny decoder: streaming equals the whole clip as its authors define it; files load strictly.

No package holds this model, so the truth here is written from the published definition: a row of
modules over all frames at once, memory as a shift by one frame. What is not proven: that the
published files have these very names; they follow from that row's numbering.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.errors import EngineError
from engine.models.taehv import TinyConfig, TinyDecoder, tiny_shapes
from engine.models.taehv_files import load_taehv

CPU = torch.device("cpu")
GRID = (3, 2)
CONFIGS = {
    "2.1": TinyConfig(GRID, 16, (16, 8, 8, 8)),
    "2.2": TinyConfig(GRID, 48, (16, 8, 8, 8), patch=2),
}
both = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


class Remembering(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        convs = [nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU()]
        convs += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
        self.conv = nn.Sequential(*convs, nn.Conv2d(width, width, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        """x: all frames of the clip, in order."""
        before = torch.cat((torch.zeros_like(x[:1]), x[:-1]))
        return torch.relu(self.conv(torch.cat((x, before), 1)) + x)


class Grow(nn.Module):
    def __init__(self, width: int, times: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, times * width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([piece.view(-1, *x.shape[1:]) for piece in self.conv(x)])


class Clamp(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 3 * torch.tanh(x / 3)


class Whole(nn.Module):
    """The row of modules; frames grow along the first axis."""

    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        w = config.widths
        row: list[nn.Module] = [Clamp(), nn.Conv2d(config.latent_channels, w[0], 3, padding=1)]
        row.append(nn.ReLU())
        for level, doubles in enumerate(config.doubles_time):
            row += [Remembering(w[level]) for _ in range(3)]
            row += [nn.Upsample(scale_factor=2), Grow(w[level], 2 if doubles else 1)]
            row.append(nn.Conv2d(w[level], w[level + 1], 3, padding=1, bias=False))
        row += [nn.ReLU(), nn.Conv2d(w[-1], 3 * config.patch**2, 3, padding=1)]
        self.decoder = nn.Sequential(*row)
        self.shuffle = nn.PixelShuffle(config.patch)

    @torch.no_grad()
    def play(self, latents: Tensor) -> Tensor:
        """[T, C, H, W] -> [4T - 3, 3, h, w], clamped to 0..1."""
        return self.shuffle(self.decoder(latents)).clamp(0, 1)[3:]


def whole(config: TinyConfig) -> Whole:
    torch.manual_seed(3)
    made = Whole(config)
    for weight in made.parameters():
        weight.data *= 2.0 if weight.ndim > 1 else 1.0
    return made


def clip(config: TinyConfig, count: int = 6) -> Tensor:
    source = torch.Generator().manual_seed(9)
    return torch.randn(count, config.latent_channels, *GRID, generator=source)


def played(decoder: TinyDecoder, latents: Tensor) -> Tensor:
    return torch.cat([decoder.decode(latent).clone() for latent in latents])


@both
def test_parity_of_streaming_with_the_whole_clip(config: TinyConfig) -> None:
    made, latents = whole(config), clip(config)
    decoder = TinyDecoder(config, made.state_dict(), CPU, torch.float32)
    want = made.play(latents)
    got = []
    for i, latent in enumerate(latents):
        decoder.latent.copy_(latent)
        got.append(decoder.signal().clamp(0, 1)[0 if i else 3 :])
    torch.testing.assert_close(torch.cat(got), want, rtol=1e-5, atol=1e-5)
    assert want.std() > 0.05
    decoder.reset()
    shown = played(decoder, latents)
    assert shown.shape == (21, *config.picture, 4)
    bgr = (want * 255).round().permute(0, 2, 3, 1).flip(-1)
    assert (shown[..., :3] - bgr).abs().max() <= 1 and (shown[..., 3] == 255).all()


def test_reset_begins_a_new_clip_and_the_past_is_seen() -> None:
    config = CONFIGS["2.1"]
    decoder = TinyDecoder(config, whole(config).state_dict(), CPU, torch.float32)
    latents = clip(config)
    first = played(decoder, latents)
    decoder.reset()
    assert torch.equal(played(decoder, latents), first)
    decoder.reset()
    changed = latents.clone()
    changed[1] = 0
    other = played(decoder, changed)
    assert torch.equal(other[0], first[0]) and not torch.equal(other[9], first[9])


def test_shapes_are_those_of_the_whole_model() -> None:
    for config in (*CONFIGS.values(), TinyConfig((4, 4)), TinyConfig((4, 4), 48, patch=2)):
        with torch.device("meta"):
            state = Whole(config).state_dict()
        assert {k: tuple(v.shape) for k, v in state.items()} == tiny_shapes(config)


def saved(config: TinyConfig, folder: Path, change: dict[str, Tensor | None]) -> Path:
    state = whole(config).state_dict() | {"encoder.0.weight": torch.zeros(64, 3, 3, 3)}
    torch.save({k: v for k, v in (state | change).items() if v is not None}, folder / "taew.pth")
    return folder / "taew.pth"


@both
def test_a_file_loads_and_tells_its_size(config: TinyConfig, tmp_path: Path) -> None:
    decoder = load_taehv(saved(config, tmp_path, {}), GRID, CPU, torch.float32)
    assert decoder.config == config
    same = TinyDecoder(config, whole(config).state_dict(), CPU, torch.float32)
    assert torch.equal(played(decoder, clip(config)), played(same, clip(config)))


def test_a_first_level_that_doubles_time_keeps_its_newest_frame(tmp_path: Path) -> None:
    config = CONFIGS["2.1"]
    grown = whole(config).state_dict()["decoder.7.conv.weight"]
    path = saved(config, tmp_path, {"decoder.7.conv.weight": torch.cat((grown + 1, grown))})
    decoder = load_taehv(path, GRID, CPU, torch.float32)
    same = TinyDecoder(config, whole(config).state_dict(), CPU, torch.float32)
    assert torch.equal(played(decoder, clip(config)), played(same, clip(config)))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"decoder.4.conv.2.bias": None}, "missing (decoder.4.conv.2.bias)"),
        ({"decoder.4.conv.2.bias": torch.zeros(5)}, "[5] instead of [16]"),
        ({"decoder.13.conv.weight": torch.zeros(8, 8, 1, 1)}, "[8, 8, 1, 1] instead of"),
        ({"other": torch.zeros(5)}, "unexpected (other)"),
        ({"decoder.22.weight": None}, "no tiny video decoder: it lacks decoder.22.weight"),
    ],
)
def test_what_is_not_whole_is_refused(
    tmp_path: Path, change: dict[str, Tensor | None], told: str
) -> None:
    with pytest.raises(EngineError) as refusal:
        load_taehv(saved(CONFIGS["2.1"], tmp_path, change), GRID, CPU, torch.float32)
    assert told in str(refusal.value) and refusal.value.code == "bad_checkpoint"
