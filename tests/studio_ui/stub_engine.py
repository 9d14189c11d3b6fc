"""The flow's link, conversation and engine process as the models page uses them, without sockets.

Requests are kept and answered by the test; `tests/studio_ui/test_app.py` holds the names to the
real ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

from engine.errors import EngineError
from engine.protocol import messages as pm


class StubLink(QObject):
    telemetry = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[pm.Request] = []
        self._waiting: dict[int, tuple[Any, Any]] = {}

    def request(
        self, body: pm.Request, on_reply: Callable[..., None] | None = None,
        on_failure: Callable[..., None] | None = None, deadline_s: float = 2.0,
    ) -> int:  # fmt: skip
        self.sent.append(body)
        self._waiting[len(self.sent)] = (on_reply, on_failure)
        return len(self.sent)

    def asked(self, kind: type) -> list[Any]:
        return [body for body in self.sent if isinstance(body, kind)]

    def answer(self, kind: type, answer: Any) -> None:
        """The newest waiting request of that kind gets a reply, or fails with an EngineError."""
        numbers = [n for n in self._waiting if isinstance(self.sent[n - 1], kind)]
        on_reply, on_failure = self._waiting.pop(numbers[-1])
        (on_failure if isinstance(answer, EngineError) else on_reply)(answer)

    def progress(self, kind: type, fraction: float, what: str) -> None:
        number = max(n for n in self._waiting if isinstance(self.sent[n - 1], kind))
        self.telemetry.emit(pm.ProgressReport(request=number, fraction=fraction, what=what))


class StubTalk(QObject):
    failed = Signal(object)
    loading = 0


class StubLife:
    def __init__(self) -> None:
        self.folders: list[str] = []

    def look_in(self, folders: list[str]) -> None:
        self.folders = list(folders)
