"""Schedules and solvers against the library's schedulers, and what they promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.errors import EngineError
from engine.models.dit_config import preset, scheduled
from engine.models.schedules import SCHEDULES, even
from engine.sampler import FewStepSampler
from engine.solvers import SOLVERS


def field(x: torch.Tensor, level: float) -> torch.Tensor:
    """A velocity that bends: no solver is exact on it."""
    return torch.sin(3 * x) * (0.3 + level) + 0.5 * x


def ours(solver: str, levels: tuple[float, ...], start: torch.Tensor) -> torch.Tensor:
    latent = torch.zeros_like(start)
    sampler = FewStepSampler(latent, levels, solver, False, seed=1)
    sampler._noisy.normal_ = lambda **_: sampler._noisy.copy_(start)  # type: ignore[method-assign]
    return sampler.run(lambda step: field(latent, levels[step])).clone()


def test_unipc_is_the_library_s() -> None:
    """As LongLive 2.0 runs it: order 2, 4 steps, shift 5."""
    diffusers = pytest.importorskip("diffusers")
    public = diffusers.UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=5.0, solver_order=2
    )
    levels = SCHEDULES["longlive-2"].levels
    public.set_timesteps(len(levels))
    public.sigmas = torch.tensor([*levels, 0.0])  # the same points, to compare the steps alone
    start = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))
    x = start.clone()
    for i, t in enumerate(public.timesteps):
        x = public.step(field(x, levels[i]), t, x, return_dict=False)[0]
    torch.testing.assert_close(ours("unipc", levels, start), x, rtol=1e-4, atol=1e-5)


def test_euler_is_the_library_s_and_its_levels_are_live_avatar_s() -> None:
    diffusers = pytest.importorskip("diffusers")
    public = diffusers.FlowMatchEulerDiscreteScheduler(num_train_timesteps=1000, shift=3)
    public.set_timesteps(4)
    levels = SCHEDULES["live-avatar"].levels
    np.testing.assert_allclose(levels, public.sigmas[:-1], rtol=1e-5)
    start = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))
    x = start.clone()
    for i, t in enumerate(public.timesteps):
        x = public.step(field(x, levels[i]), t, x, return_dict=False)[0]
    torch.testing.assert_close(ours("euler", levels, start), x, rtol=1e-4, atol=1e-5)


def test_warped_list_is_self_forcing_s() -> None:
    """[1000, 750, 500, 250] looked up in a thousand steps shifted by 5."""
    even_down = torch.linspace(1, 0, 1001)[:-1].double()
    table = 5 * even_down / (1 + 4 * even_down)
    picked = [table[1000 - t].item() for t in (1000, 750, 500, 250)]
    np.testing.assert_allclose(SCHEDULES["self-forcing"].levels, picked, rtol=1e-6)


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_every_schedule_can_be_run(name: str) -> None:
    schedule = SCHEDULES[name]
    assert schedule.levels[0] > 0.999 and list(schedule.levels) == sorted(schedule.levels)[::-1]
    assert schedule.solver in SOLVERS
    assert "@" in schedule.source or "branch" in schedule.source
    assert schedule.window_frames % schedule.frames == 0
    config = scheduled(preset("tiny"), name)
    assert config.noise_levels == schedule.levels and config.pixel_frames == 4 * schedule.frames
    latent = torch.zeros(3, 2)
    sampler = FewStepSampler(latent, schedule.levels, schedule.solver, schedule.clean_pass, 1)
    calls: list[int] = []
    sampler.run(lambda step: (calls.append(step), field(latent, 0.5))[1])
    assert calls == list(range(config.forwards))
    assert len(sampler.timesteps) == len(schedule.levels) + 1


def test_presets_are_the_public_geometries() -> None:
    """Parameters as published: 1.3B, 5B, 14B; S2V is the 14B with 2B of sound."""
    for name, least, most in (
        ("wan-1.3b", 1.2e9, 1.5e9), ("wan-5b", 4.5e9, 5.1e9), ("wan-14b", 13.5e9, 14.5e9)
    ):  # fmt: skip
        assert least < preset(name).parameters < most
    assert preset("s2v-14b").sink_tokens == 51 * 33 * 2 + 25 * 16 + 4 * 12 * 8
    assert preset("wan-14b").noise_levels == (1.0, 0.937, 0.833, 0.625)
    assert replace(preset("tiny")).noise_levels == even(4, 5.0)
    with pytest.raises(EngineError, match="self-forcing"):
        scheduled(preset("tiny"), "slow")
