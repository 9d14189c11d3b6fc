"""The models page with the real engine process: a tiny checkpoint and the `tiny` geometry."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from studio import dialogs
from studio.app import StudioApp
from tests.models.test_checkpoint_render import complete_model

pytest.importorskip("transformers")
PATIENCE_MS = 120_000  # a cold engine on a machine that is busy with other tests; nothing is timed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def page(themed, settings, tmp_path, monkeypatch, qtbot):
    """A started studio whose engine looks into a folder with one whole model, the page open."""
    complete_model(tmp_path / "models")
    settings.set("checkpoints", [str(tmp_path / "models")])
    monkeypatch.setattr(dialogs, "ask_licence", lambda *_: True)
    made = StudioApp(settings)
    made.start()
    made.window.action("panel_models").trigger()
    qtbot.waitUntil(lambda: made.models.view.find("small") is not None, timeout=PATIENCE_MS)
    yield made
    made.window.close()
    made.window.deleteLater()
    QApplication.processEvents()


def test_measured_cancelled_loaded_and_unloaded(page, qtbot):
    models, detail = page.models, page.window.models.detail

    def idle():
        view = models.view
        return view.ready and view.work is None and not view.listing

    assert models.view.find("tiny").synthetic and models.view.find("small").non_commercial
    qtbot.waitUntil(lambda: page.flow.state.character.loaded and idle(), timeout=PATIENCE_MS)
    models.measure("tiny", seconds=1.0)
    qtbot.waitUntil(idle, timeout=PATIENCE_MS)
    assert models.view.told is None, models.view.told
    measured = models.view.measured["tiny"]
    assert measured.fps > 0 and measured.frames > 0 and measured.synthetic
    assert measured.beside == "portrait"

    seen = []
    models.changed.connect(lambda view: seen.append(view.work))
    models.measure("tiny", seconds=300.0)
    qtbot.waitUntil(lambda: any(w and w.what for w in seen), timeout=PATIENCE_MS)
    models.cancel()
    qtbot.waitUntil(idle, timeout=PATIENCE_MS)
    assert models.view.told.text == "Cancelled" and models.view.measured["tiny"] == measured

    page.window.models._choose("small")
    detail.load.click()
    qtbot.waitUntil(lambda: idle() and models.view.find("small").loaded, timeout=PATIENCE_MS)
    assert detail.load.text() == "Unload" and "Loaded in" in detail.note.text.text()
    detail.load.click()
    qtbot.waitUntil(lambda: idle() and not models.view.find("small").loaded, timeout=PATIENCE_MS)


def test_noise_on_stage_and_back(page, qtbot):
    models, state = page.models, page.flow.state
    qtbot.waitUntil(lambda: state.character.loaded, timeout=PATIENCE_MS)
    models.use("tiny", noise=True)
    qtbot.waitUntil(lambda: state.character.loaded and not models.view.work, timeout=PATIENCE_MS)
    assert state.session.model == "tiny" and models.view.told is None, models.view.told
    qtbot.waitUntil(lambda: state.session.synthetic, timeout=PATIENCE_MS)
    assert page.settings.text("model") == "portrait", "noise is for this run only"
    page.window.toast.action.click()
    qtbot.waitUntil(lambda: state.character.loaded and not models.view.work, timeout=PATIENCE_MS)
    assert state.session.model == "portrait" and not state.session.synthetic


def test_a_model_that_cannot_be_opened_leaves_the_old_one_on_stage(page, qtbot):
    models, state = page.models, page.flow.state
    qtbot.waitUntil(lambda: state.character.loaded, timeout=PATIENCE_MS)
    models.use("no-such-model")
    qtbot.waitUntil(lambda: models.view.told is not None, timeout=PATIENCE_MS)
    assert "no-such-model" in models.view.told.text
    qtbot.waitUntil(lambda: page.flow.talk.is_running, timeout=PATIENCE_MS)
    assert state.session.model == "portrait" and state.character.loaded
