"""`avatar-engine doctor`: what this machine has and lacks, one row a thing, with its remedy.

Looks without loading: no Qt, torch or CUDA is imported. Knows nothing of the studio's code.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import psutil
import zmq

from engine.folders import Folders

Row = tuple[str, str, str, str]  # (what, "ok" | "missing" | "warning", found, remedy)

PACKAGES = (
    "numpy", "opencv-python-headless", "pyzmq", "msgspec", "av", "safetensors", "ai-edge-litert",
    "pillow", "scipy", "soxr", "psutil", "platformdirs", "sounddevice",
    "PySide6-Essentials", "torch",
)  # fmt: skip
GIB = 1024**3
MIN_DISK_GIB = 2.0
MIN_MEMORY_GIB = 2.0
ROOT = Path(__file__).resolve().parents[1]


def examine(folders: Folders) -> list[Row]:
    """Every row; takes about a second (`ldd` and `nvidia-smi` are asked)."""
    return [
        _python(), *_packages(), _qt_libraries(), _port_audio(), _sound_devices(), *_gpus(),
        _triton(), *_assets(folders), _disk(folders.cache), _cores(), _memory(), _curve(),
        *_video(folders),
    ]  # fmt: skip


def print_table(rows: list[Row]) -> None:
    width = max(len(row[0]) for row in rows)
    signs = {"ok": "ok  ", "warning": "WARN", "missing": "MISS"}
    for what, status, found, remedy in rows:
        tail = f"  -> {remedy}" if remedy else ""
        print(f"{signs[status]}  {what:<{width}}  {found}{tail}")  # noqa: T201


def _python() -> Row:
    found = f"{platform.python_version()} ({sys.executable})"
    good = (3, 11) <= sys.version_info[:2] <= (3, 12)
    return ("Python", "ok" if good else "warning", found, "" if good else "use 3.11 or 3.12")


def _packages() -> list[Row]:
    rows: list[Row] = []
    for name in PACKAGES:
        try:
            rows.append((name, "ok", metadata.version(name), ""))
        except metadata.PackageNotFoundError:
            rows.append((name, "missing", "not installed", f"pip install {name}"))
    return rows


def _qt_libraries() -> Row:
    """Which libraries Qt's xcb plug-in lacks, by asking the dynamic loader's own tool."""
    spec = importlib.util.find_spec("PySide6")
    if spec is None or not spec.submodule_search_locations:
        return ("Qt libraries", "missing", "PySide6 is not installed", "pip install avatar-studio")
    if sys.platform != "linux":
        return ("Qt libraries", "ok", "come with the package", "")
    plugin = Path(spec.submodule_search_locations[0]) / "Qt/plugins/platforms/libqxcb.so"
    text = _output(["ldd", str(plugin)])
    absent = sorted({line.split()[0] for line in text.splitlines() if "not found" in line})
    if not text:
        return ("Qt libraries", "warning", "cannot be checked (no ldd)", "")
    if absent:
        remedy = "run packaging/run.sh as root once, or install them: " + " ".join(absent)
        return ("Qt libraries", "missing", f"{len(absent)} missing", remedy)
    return ("Qt libraries", "ok", "all that the xcb plug-in needs", "")


def _port_audio() -> Row:
    bundled = importlib.util.find_spec("_sounddevice_data") is not None
    name = ctypes.util.find_library("portaudio")
    if name or bundled:
        return ("PortAudio", "ok", name or "in the package", "")
    return (
        "PortAudio", "missing", "library not found",
        "install libportaudio2; until then only audio files work",
    )  # fmt: skip


def _sound_devices() -> Row:
    """In a process of its own: PortAudio prints to stderr and may crash over a broken ALSA."""
    code = (
        "import sounddevice as s; d = s.query_devices(); "
        "print(sum(x['max_input_channels'] > 0 for x in d), "
        "sum(x['max_output_channels'] > 0 for x in d))"
    )
    words = _output([sys.executable, "-c", code]).split()
    inputs, outputs = (int(words[-2]), int(words[-1])) if len(words) >= 2 else (0, 0)
    found = f"{inputs} inputs, {outputs} outputs"
    if inputs and outputs:
        return ("Sound devices", "ok", found, "")
    remedy = "connect a microphone and a speaker; until then use audio files"
    return ("Sound devices", "warning", found, remedy)


def _gpus() -> list[Row]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    lines = _output(query).strip().splitlines()
    if not lines or "failed" in lines[0].lower():
        note = "none: the portrait model runs on the processor"
        return [("GPU", "ok", note, "")]
    return [(f"GPU {i}", "ok", line.strip(), "") for i, line in enumerate(lines)]


def _triton() -> Row:
    try:
        return ("Triton", "ok", metadata.version("triton"), "")
    except metadata.PackageNotFoundError:
        found = "not installed: kernels run as plain torch"
        needed = bool(_output(["nvidia-smi", "-L"]).strip())
        return (
            ("Triton", "warning", found, "pip install avatar-studio[gpu]")
            if needed
            else ("Triton", "ok", f"{found} (no GPU here)", "")
        )


def _video(folders: Folders) -> list[Row]:
    """Not without torch, which its own row reports."""
    if importlib.util.find_spec("torch") is None:
        return []
    from engine.doctor_models import model_rows
    from engine.doctor_video import video_rows

    return [*video_rows(), *model_rows(folders)]


def _assets(folders: Folders) -> list[Row]:
    from engine.portrait.face_model import DETECTOR, MESH, SET_UP, default_folder

    folder = folders.models or default_folder()
    face = all((folder / name).is_file() for name in (DETECTOR, MESH))
    speech = sorted((ROOT / "assets" / "speech").glob("*.safetensors"))
    return [
        ("Face model", "ok", str(folder), "")
        if face
        else ("Face model", "missing", f"not in {folder}", f"run packaging/run.sh, or {SET_UP}"),
        ("Speech weights", "ok", ", ".join(f.name for f in speech), "")
        if speech
        else ("Speech weights", "missing", "none in assets/speech", "restore assets/ from git"),
    ]


def _disk(cache_dir: Path) -> Row:
    place = cache_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / GIB
    good = free >= MIN_DISK_GIB and os.access(place, os.W_OK)
    remedy = "" if good else f"free {MIN_DISK_GIB:.0f} GiB, or choose --cache-dir"
    return ("Disk", "ok" if good else "warning", f"{free:.1f} GiB free for {cache_dir}", remedy)


def _cores() -> Row:
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    good = count >= 2
    return ("Cores", "ok" if good else "warning", str(count), "" if good else "two are needed live")


def _memory() -> Row:
    free = psutil.virtual_memory().available / GIB
    good = free >= MIN_MEMORY_GIB
    remedy = "" if good else f"close programs: {MIN_MEMORY_GIB:.0f} GiB are needed"
    return ("Memory", "ok" if good else "warning", f"{free:.1f} GiB available", remedy)


def _curve() -> Row:
    found = f"libzmq {zmq.zmq_version()}"
    if zmq.has("curve"):
        return ("CURVE", "ok", found, "")
    return ("CURVE", "warning", f"{found} without CURVE", "only this machine can be served")


def _output(command: list[str]) -> str:
    """stdout of a command, empty when it does not exist or fails to answer in 10 s."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
