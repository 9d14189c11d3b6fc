"""The few denoise steps that each public distillation was trained with, as data.

`levels` are noise levels in (0, 1]: a release's timestep over 1000, or its even steps shifted
towards noise. Sources are repositories at the commit read. Knows nothing of models or tensors.
"""

from __future__ import annotations

from dataclasses import dataclass


def shifted(level: float, shift: float) -> float:
    """Wan's flow shift of a noise level towards noise."""
    return shift * level / (1 + (shift - 1) * level)


def even(steps: int, shift: float) -> tuple[float, ...]:
    """1 and evenly down, then shifted: Self-Forcing's "warped" list."""
    return tuple(shifted(1 - i / steps, shift) for i in range(steps))


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a release makes one chunk, and the window it was trained to see."""

    levels: tuple[float, ...]
    solver: str  # "renoise": clean estimate, new noise; "euler": straight on; "unipc": 2nd order
    clean_pass: bool  # a forward on the finished chunk stores its keys
    frames: int  # latent frames a chunk
    window_frames: int  # latent frames of keys, the open chunk's included, sink not
    source: str


# FlowMatchEulerDiscreteScheduler(shift=3): even from 1 to its last level, which is 1/1000 shifted,
# and shifted once more
_LAST = shifted(0.001, 3)
_EULER_3 = tuple(shifted(1 + i * (_LAST - 1) / 3, 3) for i in range(4))
# FlowUniPCMultistepScheduler: even from 0.999, shifted by 5
_UNIPC_5 = tuple(shifted(0.999 * (1 - i / 4), 5) for i in range(4))

SCHEDULES: dict[str, Schedule] = {
    # [1000, 750, 500, 250] warped with shift 5; cache of 32,760 rows at 1,560 a latent frame
    "self-forcing": Schedule(
        even(4, 5), "renoise", True, 3, 21,
        "guandeh17/Self-Forcing@33593df configs/self_forcing_dmd.yaml, causal_inference.py",
    ),
    # [1000, 757, 522] as they are; the trailing 0 is not run
    "causvid": Schedule(
        (1.0, 0.757, 0.522), "renoise", True, 3, 21,
        "tianweiy/CausVid@ca21150 configs/wan_causal_dmd.yaml, causal_inference.py",
    ),
    "causvid-warp": Schedule(
        even(4, 8), "renoise", True, 3, 21,
        "tianweiy/CausVid@ca21150 configs/wan_causal_dmd_warp_4step_cfg2.yaml",
    ),
    # local_attn_size 12 counts the sink of 3, which is its first chunk
    "longlive": Schedule(
        even(4, 5), "renoise", True, 3, 9,
        "NVlabs/LongLive branch v1.0 configs/longlive_inference.yaml",
    ),
    # local_attn_size 32 counts the sink of 8
    "longlive-2": Schedule(
        _UNIPC_5, "unipc", True, 8, 24,
        "NVlabs/LongLive@7860ad9 configs/inference.yaml, pipeline/causal_diffusion_inference.py",
    ),
    # [1000, 937, 833, 625]; kv_cache_num_frames 3 and the open block. It re-runs the window through
    # the model before each block, which we do not: our keys are those of the clean pass
    "krea": Schedule(
        (1.0, 0.937, 0.833, 0.625), "renoise", True, 3, 6,
        "krea-ai/realtime-video@acf4b7b configs/self_forcing_server_14b.yaml, release_server.py",
    ),
    # --infer_frames 48 makes a cache of 12 latent frames. A cache for each step there (each step
    # sees keys of its own noise level); one cache here, of the last step's keys
    "live-avatar": Schedule(
        _EULER_3, "euler", False, 3, 12,
        "Alibaba-Quark/LiveAvatar@9c2c38d infinite_inference_multi_gpu.sh, causal_s2v_pipeline.py",
    ),
}  # fmt: skip
