"""Where the face models lie on this machine, and their interpreters.

The three files are taken at set-up from a pinned package by `packaging/face_model.py`; nothing is
downloaded here. Knows nothing of what goes in and out of the models.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

import numpy as np
import platformdirs

from engine.errors import EngineError

DETECTOR = "face_detector.tflite"
MESH = "face_landmarks_detector.tflite"
SET_UP = "python packaging/face_model.py"


def default_folder() -> Path:
    """The user's own data folder; a command may name another (`AVATAR_MODELS`) and pass it on."""
    return platformdirs.user_data_path("avatar-studio", appauthor=False) / "models"


class Network:
    """One LiteRT model on one thread; calls from several threads take turns."""

    def __init__(self, path: Path) -> None:
        # LiteRT takes 0.1 s to import: only those who look for faces pay for it.
        from ai_edge_litert.interpreter import Interpreter

        self._interpreter = Interpreter(str(path), num_threads=1)
        self._interpreter.allocate_tensors()
        self._input = self._interpreter.get_input_details()[0]["index"]
        self._outputs = [detail["index"] for detail in self._interpreter.get_output_details()]
        self._lock = threading.Lock()

    def __call__(self, values: np.ndarray) -> list[np.ndarray]:
        """One input tensor, float32 and of the model's shape -> copies of all its outputs."""
        with self._lock:
            self._interpreter.set_tensor(self._input, values)
            self._interpreter.invoke()
            return [self._interpreter.get_tensor(index) for index in self._outputs]


def network(name: str, folder: Path | None = None) -> Network:
    """The model `name` of `folder`, loaded once a process.

    Raises EngineError("missing_asset") naming the set-up command when the file is not there.
    """
    path = (folder or default_folder()) / name
    if not path.is_file():
        raise EngineError("missing_asset", f"the face model {path} is missing", f"run {SET_UP}")
    return _load(path)


@lru_cache(maxsize=8)
def _load(path: Path) -> Network:
    try:
        return Network(path)
    except (ValueError, RuntimeError) as error:
        raise EngineError(
            "missing_asset", f"the face model {path} cannot be read ({error})", f"run {SET_UP}"
        ) from error
