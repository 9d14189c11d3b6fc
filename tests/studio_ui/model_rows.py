"""Models as an engine would list them, for the tests of the models page."""

from __future__ import annotations

from typing import Any

from engine.protocol import messages as pm

GIB = 2**30
FREE = 76 * GIB
NC = "CC BY-NC-SA 4.0 (README.md): not for commercial use"

PORTRAIT = pm.ModelInfo(name="portrait", layout="animated portrait, for any processor")
TINY = pm.ModelInfo(
    name="tiny", layout="random weights, 0.0B: noise and no face", needs_bytes=GIB,
    fit="needs 1.0 GiB on one GPU, 76.0 GiB are free", synthetic=True,
)  # fmt: skip
HUGE = pm.ModelInfo(
    name="avatar-57b", layout="random weights, 57.0B: noise and no face", needs_bytes=112 * GIB,
    fit="needs 112.0 GiB of memory, 76.0 GiB are free", fits=False, synthetic=True,
)  # fmt: skip
FORCING = pm.ModelInfo(
    name="forcing", path="/m/forcing", layout="Self-Forcing generator_ema, 2.8 GB", licence=NC,
    non_commercial=True, size_bytes=2_800_000_000, needs_bytes=9 * GIB,
    fit="needs 9.0 GiB on one GPU, 76.0 GiB are free",
)  # fmt: skip
WAN = pm.ModelInfo(
    name="wan", path="/m/wan", layout="Wan original", licence="Apache 2.0 (LICENSE)",
    size_bytes=5_000_000, needs_bytes=GIB, fit="needs 1.0 GiB on one GPU, 76.0 GiB are free",
    notes=["not distilled for few steps"],
)  # fmt: skip
SPEECH = pm.ModelInfo(
    name="s2v", path="/m/s2v", layout="Wan S2V", licence="Apache 2.0 (LICENSE)", needs_bytes=GIB,
    lacks=["the sound encoder is missing: put wav2vec2/ into /m/s2v"],
)  # fmt: skip
TORN = pm.ModelInfo(name="torn", path="/m/torn", problem="torn.pt: 30 tensors are missing: get it")
ALL = (TINY, PORTRAIT, HUGE, FORCING, WAN, SPEECH, TORN)


def listing(*models: pm.ModelInfo, device: str = "NVIDIA H200") -> pm.ModelList:
    return pm.ModelList(
        models=list(models), folders=["/m"], device=device, free_bytes=FREE, home="/home/u/models"
    )  # fmt: skip


def loaded(name: str) -> pm.ModelLoaded:
    return pm.ModelLoaded(model=name, layout="", licence="", bytes=1_600_000_000, load_ms=3210.0)


def benched(**changes: Any) -> pm.ModelBenched:
    values: dict[str, Any] = {
        "model": "forcing", "device": "NVIDIA H200", "fps": 21.46, "first_chunk_ms": 1240.0,
        "stage_ms": {"denoise": 310.0, "decode": 402.0}, "frames": 216, "seconds": 10.0,
        "peak_bytes": 11 * GIB, "synthetic": False,
    }  # fmt: skip
    return pm.ModelBenched(**{**values, **changes})
