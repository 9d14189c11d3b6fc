"""Offscreen Qt with the studio's theme, and an app whose engine is stubbed behind the flow."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtWidgets import QApplication

from studio import dialogs, theme
from studio.app import StudioApp
from studio.panels.quality import QualityWindow
from studio.settings import StudioSettings
from tests.studio_ui.stub_flow import StubFlow


@pytest.fixture(scope="session")
def themed(qapp):
    theme.apply(qapp)
    return qapp


@pytest.fixture
def show_quality(themed):
    """Shows quality windows, made with the same arguments; each is ended after the test."""
    made: list[QualityWindow] = []

    def show(*given, **named) -> QualityWindow:
        made.append(QualityWindow(*given, **named))
        made[-1].show()
        QApplication.processEvents()
        return made[-1]

    yield show
    for window in made:
        window.shut_down()
        window.close()
        window.deleteLater()
    QApplication.processEvents()


@pytest.fixture
def settings(tmp_path):
    made = StudioSettings(tmp_path / "studio.json")
    made.set("record_folder", str(tmp_path / "videos"))
    made.set("snapshot_folder", str(tmp_path / "pictures"))
    return made


@pytest.fixture
def app(themed, settings, tmp_path, monkeypatch):
    """A started studio with an engine that is ready and answers at once."""
    monkeypatch.setattr(dialogs, "ask_unsaved", lambda *_: "discard")
    made = StudioApp(settings, StubFlow(settings), tmp_path / "draft.avatar")
    made.start()
    QApplication.processEvents()
    yield made
    made.window.close()
    made.window.deleteLater()
    QApplication.processEvents()
