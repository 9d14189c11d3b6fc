"""What the models panel's buttons do, with the questions that come before them.

Between panel, engine's models and dialogs; knows no layout and no wire.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QWidget

from studio import dialogs, model_words
from studio.installed_models import InstalledModels
from studio.output_files import show_folder
from studio.panels.models import ModelsPanel
from studio.widgets.toast import Toast


class ModelPage:
    """Connects panel and models in its constructor; `app.py` connects the actions."""

    def __init__(
        self, panel: ModelsPanel, models: InstalledModels, toast: Toast, parent: QWidget
    ) -> None:
        self._models, self._toast, self._parent = models, toast, parent
        self._accepted: set[tuple[str, str]] = set()  # (name, licence) said yes to in this run
        detail = panel.detail
        models.changed.connect(panel.show_view)
        models.staged.connect(self._staged)
        panel.looked.connect(models.watch)
        panel.folder_wanted.connect(self.open_folder)
        panel.forget_wanted.connect(self.forget_folder)
        detail.use_wanted.connect(self.use)
        detail.load_wanted.connect(self.load)
        detail.unload_wanted.connect(models.unload)
        detail.measure_wanted.connect(self.measure)
        detail.folder_wanted.connect(self.open_folder)
        detail.cancel_wanted.connect(models.cancel)
        panel.show_view(models.view)

    def use(self, name: str) -> None:
        model = self._models.view.find(name)
        if model is None or not self._licence_accepted(name):
            return
        if model.synthetic and not dialogs.ask_noise(self._parent, name):
            return
        self._models.use(name, model.synthetic)

    def load(self, name: str) -> None:
        if self._licence_accepted(name):
            self._models.load(name)

    def measure(self, name: str) -> None:
        if self._licence_accepted(name):
            self._models.measure(name)

    def add_folder(self) -> None:
        """Our own engine looks there too, after a restart; another's folders are its operator's."""
        if not self._models.view.local:
            text = "This engine runs elsewhere: start it with --checkpoints FOLDER to add one"
            self._toast.say(text, "info")
            return
        folder = dialogs.choose_folder(self._parent, "Look for models in (restarts the engine)")
        if folder is None:
            return
        before = list(self._models.view.added)
        if str(folder) in before:
            self._toast.say(f"{folder.name} is looked into already", "info")
            return
        self._models.look_in([*before, str(folder)])
        text = f"The engine restarts to look in {folder.name} too"
        self._toast.say(text, "info", "Undo", lambda: self._models.look_in(before))

    def forget_folder(self, folder: str) -> None:
        before = list(self._models.view.added)
        self._models.look_in([other for other in before if other != folder])
        text = f"The engine restarts without {Path(folder).name}"
        self._toast.say(text, "info", "Undo", lambda: self._models.look_in(before))

    def open_folder(self, path: str) -> None:
        place = Path(path)
        show_folder(place.parent if place.is_file() else place)

    def _licence_accepted(self, name: str) -> bool:
        """Said before anything of it is read; asked once a run for each licence."""
        model = self._models.view.find(name)
        if model is None or not model.non_commercial or (name, model.licence) in self._accepted:
            return model is not None
        if not dialogs.ask_licence(self._parent, name, model.licence):
            return False
        self._accepted.add((name, model.licence))
        return True

    def _staged(self, name: str, before: str) -> None:
        model = self._models.view.find(name)
        shown = model_words.title(model) if model else name
        self._toast.say(
            f"{shown} is on stage", "done", f"Back to {before}", lambda: self.use(before)
        )
