"""The whole app: opened and closed a hundred times, stalled, crashed under, put together right."""

from __future__ import annotations

import gc
import inspect
import time

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from studio import error_dialog
from studio.app import StudioApp
from studio.character_files import CharacterFiles
from studio.commands import SAMPLE
from studio.conversation import Conversation
from studio.engine_life import EngineLife
from studio.link import EngineLink
from studio.session_flow import SessionFlow
from studio.settings import StudioSettings
from studio.timings import STAGES
from studio.widgets.frame_view import Banner
from tests.studio_ui.stub_engine import StubLife, StubLink, StubTalk
from tests.studio_ui.stub_flow import StubFlow, frame

CYCLES = 100
PIXELS = frame(0).pixels


def test_stub_has_the_real_face():
    """Whatever the studio asks of the stub, the real flow has; a renamed method fails here."""
    real = {name for name, _ in inspect.getmembers(SessionFlow)}
    own = {n for n in vars(StubFlow) if not n.startswith("_")} - {"called", "show"}
    assert own <= real, own - real
    for stub, whole in ((StubLink, EngineLink), (StubTalk, Conversation), (StubLife, EngineLife)):
        names = {n for n in vars(stub) if not n.startswith("_")} - {"sent", "asked", "answer"}
        assert names - {"progress", "staticMetaObject"} <= set(dir(whole)), stub


def test_calls_that_the_app_makes_exist_in_the_real_flow(app, monkeypatch, tmp_path):
    from studio import dialogs

    chosen = ("picture", "character", "audio", "save", "folder")
    for name in chosen:
        monkeypatch.setattr(dialogs, f"choose_{name}", lambda *_: None)
    monkeypatch.setattr("studio.output_files.QDesktopServices.openUrl", lambda url: True)
    for action_id, action in app.window.actions_by_id.items():
        if action_id not in ("quit", "whats_this", "stage") and action.isEnabled():
            action.trigger()
            QApplication.processEvents()
    for sheet in app.window.findChildren(QWidget):
        if sheet.isWindow():
            sheet.close()
    real = {name for name, _ in inspect.getmembers(SessionFlow)}
    called = {call[0] for call in app.flow.calls}
    assert len(called) >= 10 and called <= real, called - real


@pytest.mark.slow
def test_a_hundred_times_open_and_closed(themed, tmp_path, monkeypatch):
    few = CharacterFiles(StudioSettings(None)).library()[:1]
    monkeypatch.setattr(CharacterFiles, "library", lambda _: few)
    before = len(QApplication.topLevelWidgets())
    for cycle in range(CYCLES):
        settings = StudioSettings(tmp_path / "studio.json")
        app = StudioApp(settings, StubFlow(settings))
        app.start()
        app.flow.show(frame(1, PIXELS))
        QApplication.processEvents()
        app.window.close()
        assert ("shut_down",) in app.flow.calls, cycle
        app.window.deleteLater()
        del app
        QApplication.processEvents()
    gc.collect()
    QApplication.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
    assert len(QApplication.topLevelWidgets()) <= before + 5


def test_void_calls_keep_none_alive(themed):
    """Some versions of the binding drop a reference to None on every void call, then abort."""
    widget = QWidget()
    label = QLabel(widget)
    for index in range(50_000):
        widget.update()
        label.setText("a" if index % 2 else "b")
    assert label.text() == "a"


def test_fifty_thousand_view_updates(app):
    for _ in range(50_000):
        app.window.view.update()
    app.flow.show(frame(1, PIXELS))
    QApplication.processEvents()
    assert app.window.view.frame.frame_index == 1


def test_first_start_shows_a_starter(app):
    library = app.window.character.library
    deadline = time.monotonic() + 20
    while len(library.ids()) < len(app.files.library()) and time.monotonic() < deadline:
        QApplication.processEvents()
    if not app.files.library():
        pytest.skip("the starter characters are not made yet")
    assert len(library.ids()) == len(app.files.library()) >= 8
    assert app.edited.spec is not None and app.edited.source.starter
    assert app.flow.called("open_character")
    assert library.currentIndex().isValid()
    first = app.edited.spec.name
    app.window.action("next_character").trigger()
    assert app.edited.spec.name != first
    app.window.action("previous_character").trigger()
    assert app.edited.spec.name == first


def test_play_a_sample_speaks_when_it_is_read(app):
    app.window.action("play_sample").trigger()
    assert app.flow.called("choose_file") == [(SAMPLE,)]
    assert app.flow.state.session.live and SAMPLE.is_file()
    assert app.window.bar.live.text().strip() == "Stop"
    app.window.action("go_live").trigger()
    assert not app.flow.state.session.live
    assert app.window.bar.live.text().strip() == "Play"


def test_live_button_follows_the_flow_not_the_click(app, monkeypatch):
    app.flow.go_live = lambda: None  # something is missing: nothing happens
    app.window.action("go_live").trigger()
    assert not app.window.action("go_live").isChecked()
    assert app.window.bar.live.text().strip() == "Go live"


def test_gui_stall_breaks_nothing(app):
    """The GUI thread is away while frames, levels and timings go on: one frame, one state."""
    now = time.monotonic_ns()
    for index in range(240):
        app.flow.mailbox.put(frame(index, PIXELS))
        for stage in STAGES:
            app.flow.timings.add(stage, 1.0, now)
    app.flow.frame_waiting.emit()
    app.flow.state.level_changed.emit(-20.0, -10.0, True)
    QApplication.processEvents()
    assert app.window.view.frame.frame_index == 239
    assert app.flow.mailbox.overwritten == 239
    app.flow.show(frame(240, PIXELS))
    QApplication.processEvents()
    assert app.window.view.frame.frame_index == 240


def test_engine_crash_holds_the_picture_and_says_so(app):
    app.flow.show(frame(7, PIXELS))
    QApplication.processEvents()
    app.flow.state.update_engine(link="recovering", detail="worker died: signal 9")
    banner = app.window.view.banner
    assert isinstance(banner, Banner) and "signal 9" in banner.text and banner.hold
    assert app.window.view.frame.frame_index == 7
    assert app.window.engine_status.dot.tone == "danger"
    app.flow.state.update_engine(link="ready", detail="", restarts=1)
    assert app.window.view.banner is None
    assert "restarted 1×" in app.window.engine_status.text.text()


def test_devices_come_and_go_by_name(app):
    box = app.window.voice.microphones
    app.flow.state.update_voice(microphone="Desk")
    assert box.currentText() == "Desk"
    app.flow.state.update_voice(microphones=("Headset",), device_lost="microphone: Desk is gone")
    assert box.currentText() == "Desk (missing)" and app.window.voice.note.isVisibleTo(app.window)
    app.flow.state.update_voice(microphones=("Desk", "Headset"), device_lost="")
    assert box.currentText() == "Desk" and not app.window.voice.note.isVisibleTo(app.window)
    app.flow.state.update_voice(microphones=(), speakers=(), microphone="")
    assert not box.isEnabled() and "No microphone" in app.window.voice.note.text.text()


def test_recording_is_shown_and_told(app):
    app.flow.state.update_recording(state="recording", path="/x/Ada.mp4", seconds=61.0)
    assert app.window.bar.recording.text() == "1:01" and app.window.action("record").isChecked()
    app.flow.state.update_recording(state="off")
    assert "Ada.mp4" in app.window.toast.text.text()
    assert not app.window.action("pause_recording").isEnabled()


def test_stage_window_shows_the_same_picture_and_closes_with_escape(app):
    app.window.action("stage").trigger()
    stage = app.commands.stage
    app.flow.show(frame(5, PIXELS))
    QApplication.processEvents()
    stage.view.grab()
    assert stage.view.frame.frame_index == 5 and stage.view.clean
    QTest.keyClick(stage, Qt.Key.Key_Escape)
    assert app.commands.stage is None and not app.window.action("stage").isChecked()


def test_docks_survive_floating_and_hiding(app):
    app.flow.show(frame(1, PIXELS))
    for index in range(20):
        for made in app.window.docks.values():
            made.setFloating(index % 2 == 0)
        app.window.action("only_face").trigger()
        app.flow.show(frame(index + 2, PIXELS))
        QApplication.processEvents()
        assert app.window.view.frame.frame_index == index + 2
    app.window.action("reset_window").trigger()
    assert not app.window.docks["character"].isHidden()
    assert app.window.docks["log"].isHidden()


def test_window_comes_back_as_it_was(themed, settings):
    first = StudioApp(settings, StubFlow(settings))
    first.start()
    first.window.resize(QSize(1200, 700))
    first.window.action("panel_log").trigger()
    first.window.action("one_to_one").trigger()
    first.window.close()
    second = StudioApp(settings, StubFlow(settings))
    second.start()
    assert not second.window.docks["log"].isHidden() and not second.window.view.fit
    second.window.close()
    assert second.window.restore_layout("nonsense") is False


def test_fault_dialog_copies_a_report(app):
    seen = []
    hook = error_dialog.hook(app.window, seen.append)
    try:
        raise ValueError("a value of 7 where 3 is the limit")
    except ValueError as error:
        hook(type(error), error, error.__traceback__)
        hook(type(error), error, error.__traceback__)
    dialogs = app.window.findChildren(error_dialog.ErrorDialog)
    assert len(dialogs) == 1, "one dialog at a time"
    assert "Traceback" in seen[0] and "PySide6" in seen[0]
    shown = " ".join(label.text() for label in dialogs[0].findChildren(QLabel))
    assert "7 where 3" in shown and "Traceback" not in shown
    assert dialogs[0].report.isHidden()
    dialogs[0].accept()


def test_told_to_go_it_asks_nothing_and_keeps_the_draft(themed, settings, tmp_path, monkeypatch):
    monkeypatch.setattr("studio.dialogs.ask_unsaved", lambda *_: pytest.fail("it asked"))
    monkeypatch.setattr("studio.dialogs.ask_stop_recording", lambda *_: pytest.fail("it asked"))
    draft = tmp_path / "draft.avatar"
    app = StudioApp(settings, StubFlow(settings), draft)
    app.start()
    if app.edited.spec is None:
        pytest.skip("no starter characters")
    app.edited.rename("Half done")
    app.flow.state.update_recording(state="recording", path="/x.mp4")
    app.leave()
    assert app.window.close(), "quitting closes the windows: nothing may be asked then either"
    assert ("shut_down",) in app.flow.calls and draft.is_file()
    again = StudioApp(settings, StubFlow(settings), draft)
    again.start()
    assert again.edited.spec.name == "Half done" and again.edited.unsaved
    again.leave()


def test_voice_tabs_choose_the_source_by_keyboard_too(app, tmp_path):
    file = tmp_path / "talk.wav"
    file.touch()
    app.settings.set("audio_file", str(file))
    QTest.keyClick(app.window.voice.tabs.bar, Qt.Key.Key_Right)
    assert app.flow.called("choose_file") == [(file,)]
    QTest.keyClick(app.window.voice.tabs.bar, Qt.Key.Key_Left)
    assert len(app.flow.called("choose_microphone")) == 1


def test_looking_at_the_other_voice_page_is_not_undone_by_a_device_change(app):
    app.window.voice.tabs.bar.setCurrentIndex(1)
    app.flow.state.update_voice(microphones=("Desk",))
    assert app.window.voice.tabs.bar.currentIndex() == 1


def test_without_a_microphone_it_offers_a_sample(app):
    app.flow.state.update_voice(microphones=())
    app.window.action("go_live").trigger()
    assert not app.flow.called("go_live") and "no microphone" in app.window.toast.text.text()
    app.window.toast.action.click()
    assert app.flow.called("choose_file") == [(SAMPLE,)] and app.flow.state.session.live


def test_undo_says_what_it_undoes(app):
    if app.edited.spec is None:
        pytest.skip("no starter characters")
    app.edited.set_intensity("head", 0.2)
    assert app.window.action("undo").text() == "Undo head"
    app.window.action("undo").trigger()
    assert app.window.action("undo").text() == "Undo"
    assert app.window.action("redo").text() == "Redo head"
