"""Video models in the quality window: listed, found by the child, driven by the voice alone."""

from __future__ import annotations

import msgspec
import pytest

from engine.protocol.messages import ModelInfo
from studio.models_view import ModelsView
from studio.qa_opening import looked_in, runnable
from tests.studio_ui.quality_runs import make_run

WAN = ModelInfo(name="Wan2.1-T2V-1.3B", path="/models/wan")


@pytest.fixture
def window(show_quality, tmp_path):
    make_run(tmp_path / "runs" / "Half", {"a": 0.8, "b": None}, film=False)
    return show_quality(tmp_path / "runs", checkpoints=lambda: ["/models", "/more"])


def test_the_child_looks_where_the_engine_looks(window, monkeypatch):
    asked: list[list[str]] = []
    monkeypatch.setattr(window.run_process, "start", lambda arguments: asked.append(arguments))
    window.setup.set_models(("portrait", WAN.name))
    window.setup.model.setCurrentIndex(1)
    window.setup.start.click()
    window.resume_run()
    for arguments in asked:
        assert arguments[-5:] == ["--checkpoints", "/models", "--checkpoints", "/more", "--json"]
    assert len(asked) == 2
    assert asked[0][asked[0].index("--model") + 1] == WAN.name


def test_only_portrait_is_driven_by_something_else(window):
    setup = window.setup
    setup.set_models(("portrait", WAN.name))
    setup.drive.setCurrentIndex(setup.drive.findData("phones"))
    setup.model.setCurrentIndex(1)
    assert setup.drive.currentData() == "audio" and not setup.drive.isEnabled()
    setup.model.setCurrentIndex(0)
    assert setup.drive.isEnabled()


def test_models_that_can_run_here():
    bad = msgspec.structs.replace(WAN, name="broken", problem="a tensor is missing")
    poor = msgspec.structs.replace(WAN, name="poor", lacks=["a text encoder"])
    view = ModelsView(models=(ModelInfo(name="portrait"), WAN, bad, poor))
    assert runnable(view) == [WAN.name]
    assert runnable(ModelsView(models=view.models, local=False)) == []


def test_the_studio_lists_them_and_passes_its_folders_on(app, tmp_path):
    there = tmp_path / "models"
    there.mkdir()
    app.settings.set("checkpoints", [str(there), str(tmp_path / "gone")])
    assert looked_in(app.settings) == [str(there)]
    app.window.action("quality").trigger()
    window = app.quality.window
    assert window is not None and list(window._checkpoints()) == [str(there)]
    app.models._show(models=(WAN,))
    box = window.setup.model
    assert WAN.name in [box.itemText(i) for i in range(box.count())]
