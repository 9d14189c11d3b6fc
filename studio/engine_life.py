"""EngineLife: the engine as the studio has it: its own child process, or one at an address.

Starts or connects, notices that it came or went, and says so in the state. Knows nothing of
sessions or characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from engine.errors import EngineError
from engine.protocol.messages import Welcome
from studio.engine_keys import EngineKeys
from studio.engine_process import EngineProcess, ReadyLine
from studio.gui_calls import GuiCalls
from studio.link import EngineLink
from studio.state import StudioState


class EngineLife(QObject):
    """`open` once, `close` once. GUI thread."""

    came = Signal(object)  # Welcome
    left = Signal(str)  # why; it is on its way back
    refused = Signal(object)  # EngineError: it will not come back by itself

    def __init__(
        self, link: EngineLink, state: StudioState, calls: GuiCalls,
        command: Sequence[str] | None, on_line: Callable[[str], None], parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._link = link
        self._state = state
        self._calls = calls
        self._command = command
        self._on_line = on_line
        self._folders: list[str] = []
        self.process: EngineProcess | None = None
        link.connected.connect(self._connected)
        link.lost.connect(self._lost)
        link.refused.connect(self._refused)

    def open(self, endpoint: str, token: str, keys: EngineKeys | None) -> None:
        """Use the engine at `endpoint`; with "" start one of our own."""
        if endpoint:
            self._state.update_engine(link="connecting", endpoint=endpoint, local=False)
            self._link.open(endpoint, token, keys)
            return
        self._state.update_engine(link="starting", detail="starting the engine", local=True)
        self.process = EngineProcess(
            lambda ready: self._calls.post("ready", lambda: self._ready(ready)),
            lambda why: self._calls.post("restart", lambda: self._died(why)),
            lambda error: self._calls.post("gave up", lambda: self._refused(error)),
            self._on_line, self._command,
        )  # fmt: skip
        self.process.arguments = _look_in(self._folders)
        self.process.start()

    def look_in(self, folders: list[str]) -> None:
        """Where our own engine looks for models besides its usual place; a running one restarts."""
        if folders == self._folders:
            return
        self._folders = list(folders)
        if self.process is not None:
            self.process.arguments = _look_in(folders)
            self.process.restart()

    def restart(self) -> None:
        """End the child engine; it comes back by itself."""
        if self.process is not None:
            self.process.restart()

    def close(self) -> None:
        self._link.close()
        if self.process is not None:
            self.process.stop()

    def _ready(self, ready: ReadyLine) -> None:
        self._state.update_engine(link="connecting", detail="connecting", endpoint=ready.control)
        self._link.open(ready.control, ready.token)

    def _died(self, why: str) -> None:
        self._link.close()
        self._state.update_engine(restarts=self._state.engine.restarts + 1)
        self._lost(why)

    def _connected(self, welcome: Welcome) -> None:
        self._state.update_engine(
            link="ready", detail="", version=welcome.engine_version,
            models=tuple(welcome.models), features=tuple(welcome.features),
        )  # fmt: skip
        self.came.emit(welcome)

    def _lost(self, why: str) -> None:
        ours = self.process is not None
        self._state.update_engine(link="recovering" if ours else "lost", detail=why)
        self.left.emit(why)

    def _refused(self, error: EngineError) -> None:
        self._state.update_engine(link="failed", detail=str(error))
        self.refused.emit(error)


def _look_in(folders: list[str]) -> list[str]:
    return [word for folder in folders for word in ("--checkpoints", folder)]
