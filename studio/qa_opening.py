"""Opens the lip-sync quality window when it is first asked for, and ends it with the studio.

Knows where runs are kept and which models are there; nothing of what the window shows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from studio.installed_models import InstalledModels
from studio.models_view import ModelsView
from studio.panels.quality import QualityWindow
from studio.settings import StudioSettings
from studio.state import StudioState

Show = Callable[[Path, Path], None]


def runs_folder(settings: StudioSettings) -> Path:
    """The folder of all runs: the setting, or `quality` in the person's data folder."""
    import platformdirs

    text = settings.text("quality_folder")
    return Path(text) if text else Path(platformdirs.user_data_dir("avatar-studio")) / "quality"


def looked_in(settings: StudioSettings) -> list[str]:
    """A person's own folders of models that are there: the command refuses one that is gone."""
    return [folder for folder in settings.strings("checkpoints") if Path(folder).exists()]


def runnable(view: ModelsView) -> list[str]:
    """Public models on this machine that are whole; runs are made here, wherever the engine is."""
    if not view.local:
        return []
    return [m.name for m in view.installed if not m.problem and not m.lacks]


class QualityOpening:
    """`show` makes the window once; `show_clip(character, audio)` is for a clip sent to the
    viewer."""

    def __init__(
        self, settings: StudioSettings, state: StudioState, show_clip: Show,
        installed: InstalledModels,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._installed = installed
        installed.changed.connect(lambda _: self._fill_models())
        self._state = state
        self._show_clip = show_clip
        self.window: QualityWindow | None = None

    def show(self) -> None:
        if self.window is None:
            self.window = QualityWindow(
                runs_folder(self._settings), checkpoints=lambda: looked_in(self._settings)
            )
            self.window.character_wanted.connect(self._show_clip)
        else:
            self.window.reload()  # runs of the command line since
        if not self._installed.view.models:
            self._installed.refresh()
        self._fill_models()
        self.window.show()
        self.window.raise_()
        self.window.activateWindow()

    def _fill_models(self) -> None:
        if self.window is not None:
            known = runnable(self._installed.view)
            names = dict.fromkeys([*self._state.engine.models, *known])
            self.window.setup.set_models(tuple(names))

    def shut_down(self) -> None:
        """Idempotent: a run is stopped and can be resumed."""
        if self.window is not None:
            self.window.shut_down()
            self.window.close()
            self.window.deleteLater()
            self.window = None
