"""Which ruler this is: a hash of scoring code, model files and set; and the doors to it.

Results that carry different hashes are never compared. Knows nothing of runs.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from engine.errors import EngineError
from engine.portrait.face_model import DETECTOR, MESH, SET_UP, default_folder

PACKAGE = Path(__file__).resolve().parents[1]
CODE = (
    "qa/closures.py", "qa/expected.py", "qa/gauge.py", "qa/headline.py", "qa/limits.py",
    "qa/lse.py", "qa/lse_net.py", "qa/measured.py", "qa/mouth_scores.py", "qa/offset.py",
    "qa/picture_checks.py", "qa/real_speakers.json", "qa/ridge.py", "qa/score_clip.py",
    "qa/scores.py", "qa/sweep.py", "qa/tracker.py", "qa/video_file.py",
    "portrait/face_detector.py", "portrait/face_mesh.py", "portrait/face_mirror.py",
    "portrait/face_shape.py", "portrait/faces.py", "speech/features.py",
)  # fmt: skip
SHORT = 16  # hex digits that are shown and compared


@cache
def code_hash(models: Path | None = None) -> str:
    """Hex SHA-256 of the scoring code and of the two face models.

    Raises EngineError("missing_asset").
    """
    digest = hashlib.sha256()
    folder = models or default_folder()
    for path in [*(PACKAGE / name for name in CODE), folder / DETECTOR, folder / MESH]:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise EngineError("missing_asset", f"{path} cannot be read", f"run {SET_UP}") from error
        digest.update(path.name.encode() + hashlib.sha256(data).digest())
    return digest.hexdigest()


def scorer_hash(set_hash: str, models: Path | None = None, syncnet_sha256: str = "") -> str:
    """SHORT hex digits: this code, these models, this set (its hash holds its version)."""
    text = f"{code_hash(models)} {set_hash} {syncnet_sha256}"
    return hashlib.sha256(text.encode()).hexdigest()[:SHORT]
