"""StudioState: what the UI shows, as five frozen views with a setter and a signal each.

No widgets, no sockets, no decisions: whoever learns something calls `update_...`, and whoever shows
it listens. A signal is emitted only when the view really changed. GUI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from PySide6.QtCore import QObject, Signal

from engine.protocol.character import CharacterSpec
from engine.protocol.messages import Counters, EngineState, FaceFound, State

LinkState = Literal["starting", "connecting", "ready", "lost", "recovering", "failed"]
VoiceKind = Literal["none", "microphone", "file"]
RecordingState = Literal["off", "recording", "paused"]


@dataclass(frozen=True, slots=True)
class EngineView:
    """The engine process and the link to it; `detail` is one line a person can act on."""

    link: LinkState = "starting"
    detail: str = ""
    endpoint: str = ""
    local: bool = True
    version: str = ""
    models: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    restarts: int = 0
    worker: str = ""  # of the last EngineState
    health: EngineState | None = None


@dataclass(frozen=True, slots=True)
class SessionView:
    """The session as the engine last told it; `late` while frames come later than they are due."""

    model: str = "portrait"
    state: State = "NOT_READY"
    epoch: int = 0
    live: bool = False  # audio is being sent and the picture follows it
    late: bool = False
    stalled: bool = False  # audio flows and no frame came for 1 s
    synthetic: bool = False
    kernel_path: str = ""
    ranks: str = ""  # on how many GPUs, in words
    age_s: float = 0.0
    counters: Counters = field(default_factory=Counters)
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class CharacterView:
    """The character on stage; `busy` while it is being loaded (`progress` 0..1 and `what`)."""

    spec: CharacterSpec | None = None
    picture: bytes = b""
    loaded: bool = False
    busy: bool = False
    progress: float = 0.0
    what: str = ""
    face: FaceFound | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VoiceView:
    """The voice: its source, devices by name, and the file's length in samples at 48 kHz."""

    kind: VoiceKind = "none"
    microphones: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    microphone: str = ""  # "" is the default device
    speaker: str = ""
    device_lost: str = ""  # name of the device that is gone, "" when all is well
    muted: bool = False
    monitor: bool = False
    gate_db: float = -60.0  # the gate opens above this level; -100 is off
    file: str = ""
    duration_samples: int = 0
    playing: bool = False


@dataclass(frozen=True, slots=True)
class RecordingView:
    state: RecordingState = "off"
    path: str = ""
    seconds: float = 0.0
    repeated_frames: int = 0


class StudioState(QObject):
    """The five views, level and position; connect to the signal, read the attribute."""

    engine_changed = Signal(object)  # EngineView
    session_changed = Signal(object)  # SessionView
    character_changed = Signal(object)  # CharacterView
    voice_changed = Signal(object)  # VoiceView
    recording_changed = Signal(object)  # RecordingView
    level_changed = Signal(float, float, bool)  # rms dBFS, peak dBFS, gate open; about 20 Hz
    position_changed = Signal(int)  # file position heard, in samples; about 20 Hz

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.engine = EngineView()
        self.session = SessionView()
        self.character = CharacterView()
        self.voice = VoiceView()
        self.recording = RecordingView()

    def update_engine(self, **changes: Any) -> None:
        self._update("engine", changes)

    def update_session(self, **changes: Any) -> None:
        self._update("session", changes)

    def update_character(self, **changes: Any) -> None:
        self._update("character", changes)

    def update_voice(self, **changes: Any) -> None:
        self._update("voice", changes)

    def update_recording(self, **changes: Any) -> None:
        self._update("recording", changes)

    def _update(self, view: str, changes: dict[str, Any]) -> None:
        old = getattr(self, view)
        new = replace(old, **changes)
        if new != old:
            setattr(self, view, new)
            getattr(self, f"{view}_changed").emit(new)
