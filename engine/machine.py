"""What a benchmark report says of the machine it ran on. Knows nothing of models."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from datetime import UTC, datetime
from typing import Any

import torch


def say(line: str) -> None:
    """One line for a person, on stderr: stdout belongs to --json."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def describe(device: torch.device) -> dict[str, Any]:
    """Device, versions and date."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("triton", "nvidia-cudnn-cu13", "nvidia-cublas"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if torch.version.cuda:
        versions["cuda"] = torch.version.cuda
    return {
        "device": name or platform.machine(),
        "versions": versions,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
