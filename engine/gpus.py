"""How many GPUs a session may use: "N+M", N to denoise and M (0 or 1) to decode.

Refuses in one line what cannot run. Without a CUDA GPU the ranks share the CPU, which is for tests
and says so. Knows nothing of processes; imports no torch.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import EngineError

MOST = 16  # one host; the largest there is has 16


@dataclass(frozen=True, slots=True)
class Gpus:
    """`denoise` tensor-parallel ranks, one GPU each; `decode` 1 gives the decoder its own."""

    denoise: int = 1
    decode: int = 0

    def __str__(self) -> str:
        return f"{self.denoise}+{self.decode}"

    @property
    def total(self) -> int:
        return self.denoise + self.decode

    def where(self, device_type: str) -> list[str]:
        """The device of each rank, in the order of ranks; the decode rank is the last."""
        on_gpus = device_type == "cuda"
        return [f"cuda:{i}" if on_gpus else "cpu" for i in range(self.total)]

    def sentence(self, device_type: str) -> str:
        """For a log line and the studio's status."""
        if self.total == 1:
            return ""
        ranks = f"{self.denoise} denoise rank{'s' if self.denoise > 1 else ''}"
        decode = " + 1 decode rank" if self.decode else ", decoding on a stream of rank 0"
        place = "" if device_type == "cuda" else ", which share the CPU"
        return f"{ranks}{decode}{place}"


def parse(text: str) -> Gpus:
    """Raises EngineError("bad_config") for anything but N+M with N >= 1 and M 0 or 1."""
    match = re.fullmatch(r"(\d{1,3})\+(\d{1,3})", text.strip())
    if match is None:
        raise EngineError(
            "bad_config", f"gpus {text!r} is not N+M",
            "N GPUs denoise and M (0 or 1) decodes: use 1+0, 1+1, 2+1 or 3+1",
        )  # fmt: skip
    gpus = Gpus(int(match[1]), int(match[2]))
    if gpus.decode > 1:
        raise EngineError(
            "bad_config", f"gpus {gpus} asks for {gpus.decode} decode ranks, the limit is 1",
            f"one decodes faster than any number denoise: use {gpus.total - 1}+1",
        )  # fmt: skip
    if not 1 <= gpus.denoise <= MOST:
        raise EngineError(
            "bad_config", f"gpus {gpus} asks for {gpus.denoise} denoise ranks",
            f"use 1 to {MOST}",
        )  # fmt: skip
    return gpus


def check_model(gpus: Gpus, model: str) -> None:
    """Raises EngineError when the model cannot be cut into that many ranks."""
    from engine.models.dit_config import PRESETS, preset, shard

    if gpus.total == 1:
        return
    if model not in PRESETS:
        raise EngineError(
            "bad_config", f"model {model!r} cannot be spread over GPUs ({gpus})",
            f"leave --gpus out, or use one of {', '.join(PRESETS)}",
        )  # fmt: skip
    shard(preset(model), gpus.denoise - 1, gpus.denoise)


def check_machine(gpus: Gpus, present: int) -> None:
    """Raises EngineError("bad_config") when some GPUs are here, but too few. None: CPU ranks."""
    if 0 < present < gpus.total:
        smaller = Gpus(present - 1, 1) if present > 1 else Gpus()
        raise EngineError(
            "bad_config", f"gpus {gpus} needs {gpus.total} GPUs, this machine has {present}",
            f"use --gpus {smaller}, or make more of them visible to CUDA",
        )  # fmt: skip


def present(environment: Mapping[str, str]) -> int:
    """CUDA GPUs that a process of this environment sees, without starting CUDA."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = sum(line.startswith("GPU ") for line in done.stdout.splitlines())
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    named = [word.strip() for word in visible.split(",")]
    return min(found, sum(word not in ("", "-1") for word in named))
