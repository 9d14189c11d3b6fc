"""SessionFlow's face without engine, sockets and devices; it records calls and answers well.

`tests/studio_ui/test_app.py` holds it to the real one's names and signals.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from engine.clock import HEIGHT, WIDTH, frame_pts
from engine.protocol import messages as pm
from engine.protocol.character import Framing
from engine.protocol.frame import Frame
from studio.mailbox import Mailbox
from studio.state import StudioState
from studio.timings import Timings
from tests.studio_ui.stub_engine import StubLife, StubLink, StubTalk

FACE = pm.FaceFound(x=80, y=60, width=120, height=150, score=0.98, yaw_deg=2.0)


def frame(index: int = 1, pixels: np.ndarray | None = None, synthetic: bool = False) -> Frame:
    """A Frame of random pixels (worst case for scaling), alpha opaque."""
    if pixels is None:
        pixels = np.random.default_rng(index).integers(0, 255, (HEIGHT, WIDTH, 4), np.uint8)
        pixels[..., 3] = 255
    return Frame(1, 0, index, frame_pts(index), 0, time.monotonic_ns(), pixels, synthetic)


class StubFlow(QObject):
    frame_waiting = Signal()
    picture_inspected = Signal(object)
    character_loaded = Signal(object)
    doctor_reported = Signal(object)
    log_line = Signal(object)
    failed = Signal(object)

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.state = StudioState()
        self.timings = Timings()
        self.mailbox = Mailbox()
        self.link = StubLink()
        self.talk = StubTalk()
        self.engine = StubLife()
        self.calls: list[tuple[Any, ...]] = []
        self.faces = [FACE]
        self.refusal = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments: self.calls.append((name, *arguments))

    def called(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]

    def start(self, endpoint: str | None = None) -> None:
        self.calls.append(("start",))
        self.state.update_engine(
            link="ready", version="1", models=("portrait",), features=("models",)
        )
        self.state.update_session(state="READY")
        self.state.update_voice(kind="microphone", microphones=("Desk", "Headset"))

    def inspect_picture(self, picture: bytes) -> None:
        self.calls.append(("inspect_picture", picture))
        faces = [] if self.refusal else self.faces
        self.picture_inspected.emit(
            pm.PictureInspected(
                width=300, height=400, faces=faces, warnings=[], refusal=self.refusal
            )
        )

    def open_character(self, spec: Any, picture: bytes) -> None:
        self.calls.append(("open_character", spec, picture))
        self.state.update_character(spec=spec, picture=picture, loaded=True, busy=False)
        self.character_loaded.emit(
            pm.CharacterLoaded(
                session=1,
                name=spec.name,
                face=self.faces[min(spec.face, len(self.faces) - 1)],
                warnings=[],
                automatic=Framing(),
                ingest_ms=1.0,
                cached=False,
            )
        )

    def set_model(self, model: str, noise: bool = False) -> None:
        self.calls.append(("set_model", model, noise))
        self.state.update_session(model=model)

    def go_live(self) -> None:
        self.calls.append(("go_live",))
        self.state.update_session(state="RUNNING", live=True)

    def stop(self) -> None:
        self.calls.append(("stop",))
        self.state.update_session(state="READY", live=False)

    def choose_file(self, path: Any) -> None:
        self.calls.append(("choose_file", path))
        self.state.update_voice(kind="file", file=str(path), duration_samples=48_000)

    def voice_overview(self, columns: int) -> tuple[np.ndarray, np.ndarray]:
        wave = np.linspace(0, 1, columns, dtype=np.float32)
        return -wave, wave

    def show(self, made: Frame) -> None:
        """A frame is due."""
        if self.mailbox.put(made):
            self.frame_waiting.emit()
