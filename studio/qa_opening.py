"""Opens the lip-sync quality window when it is first asked for, and ends it with the studio.

Knows where runs are kept; nothing of what the window shows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from studio.panels.quality import QualityWindow
from studio.settings import StudioSettings
from studio.state import StudioState

Show = Callable[[Path, Path], None]


def runs_folder(settings: StudioSettings) -> Path:
    """The folder of all runs: the setting, or `quality` in the person's data folder."""
    import platformdirs

    text = settings.text("quality_folder")
    return Path(text) if text else Path(platformdirs.user_data_dir("avatar-studio")) / "quality"


class QualityOpening:
    """`show` makes the window once; `show_clip(character, audio)` is for a clip sent to the
    viewer."""

    def __init__(self, settings: StudioSettings, state: StudioState, show_clip: Show) -> None:
        self._settings = settings
        self._state = state
        self._show_clip = show_clip
        self.window: QualityWindow | None = None

    def show(self) -> None:
        if self.window is None:
            self.window = QualityWindow(runs_folder(self._settings))
            self.window.character_wanted.connect(self._show_clip)
        self.window.setup.set_models(self._state.engine.models)
        self.window.show()
        self.window.raise_()
        self.window.activateWindow()

    def shut_down(self) -> None:
        """Idempotent: a run is stopped and can be resumed."""
        if self.window is not None:
            self.window.shut_down()
            self.window.close()
            self.window.deleteLater()
            self.window = None
