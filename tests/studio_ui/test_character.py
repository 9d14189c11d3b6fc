"""A character from picture to file: drop, paste, refusal, undo and redo, saving, the draft."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QSize, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.errors import EngineError
from engine.protocol.character import CharacterSpec, Framing
from engine.protocol.character_file import read_character, write_character
from engine.protocol.framing import automatic_framing
from studio import dialogs
from studio.app import StudioApp
from studio.character_files import CharacterFiles, title_of
from studio.edited_character import EditedCharacter, Source
from studio.picture_preview import preview
from studio.widgets.crop_view import CropView, box_of
from tests.studio_ui.stub_flow import FACE, StubFlow


def picture(color: str = "teal", size: tuple[int, int] = (300, 400), kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, kind)
    return buffer.getvalue()


@pytest.fixture
def edited(themed):
    made = EditedCharacter()
    made.open(CharacterSpec(name="Ada"), picture(), Source())
    return made


# --- undo and redo ---
def test_undo_and_redo_bring_back_every_field(edited):
    specs = [edited.spec]
    edited.rename("Grace")
    specs.append(edited.spec)
    edited.set_framing(Framing(center_x=0.4, center_y=0.5, zoom=1.3))
    specs.append(edited.spec)
    edited.set_intensity("head", 0.0)
    specs.append(edited.spec)
    edited.set_face(1)
    specs.append(edited.spec)
    for wanted in reversed(specs[:-1]):
        edited.undo_stack.undo()
        assert edited.spec == wanted
    assert not edited.unsaved and not edited.undo_stack.canUndo()
    for wanted in specs[1:]:
        edited.undo_stack.redo()
        assert edited.spec == wanted
    assert edited.spec.face == 1 and edited.spec.framing is None


def test_a_dragged_slider_is_one_step(edited):
    for value in range(100, 150):
        edited.set_intensity("mouth", value / 100)
    edited.set_intensity("gaze", 0.5)
    assert edited.undo_stack.count() == 2
    edited.undo_stack.undo()
    edited.undo_stack.undo()
    assert edited.spec.settings.mouth == 1.0 and not edited.unsaved


def test_back_to_where_it_was_is_no_change(edited):
    edited.set_intensity("mouth", 1.5)
    edited.set_intensity("mouth", 1.0)
    assert not edited.undo_stack.canUndo() and not edited.unsaved


def test_another_character_forgets_the_steps(edited):
    edited.rename("Grace")
    edited.open(CharacterSpec(name="Bo"), picture(), Source())
    assert not edited.undo_stack.canUndo() and not edited.unsaved


def test_sliders_reach_the_engine_and_undo_too(app):
    app.opening.open_bytes(picture(), "Ada")
    app.window.character.sliders["head"].slider.setValue(30)
    assert app.flow.called("set_character_settings")[-1][0].head == 0.3
    app.window.action("undo").trigger()
    assert app.flow.called("set_character_settings")[-1][0].head == 1.0
    assert app.window.character.sliders["head"].value == 1.0
    app.window.action("redo").trigger()
    assert app.window.character.sliders["head"].value == 0.3
    app.window.action("reset_motion").trigger()
    assert app.edited.spec.settings.head == 1.0


# --- how it comes in ---
def drop(app, mime):
    app.window.dropEvent(FakeDrop(mime))


class FakeDrop:
    """QDropEvent cannot be built with data of Python's own; the window asks it for this much."""

    def __init__(self, mime):
        self._mime = mime

    def mimeData(self):
        return self._mime

    def acceptProposedAction(self):
        pass


def test_dropped_picture_becomes_the_character(app, tmp_path):
    path = tmp_path / "my_old-friend.png"
    path.write_bytes(picture("olive"))
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    drop(app, mime)
    assert app.edited.spec.name == "My old friend" and app.edited.picture == path.read_bytes()
    assert app.flow.called("open_character")[-1][1] == path.read_bytes()
    assert app.window.windowTitle().startswith("My old friend")
    assert app.settings.text("character") == str(path)


def test_dropped_sound_becomes_the_voice(app, tmp_path):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "speech.mp3"))])
    drop(app, mime)
    assert app.flow.called("choose_file")[-1][0].name == "speech.mp3"
    assert app.window.voice.tabs.bar.currentIndex() == 1


def test_pasted_picture_is_lossless(app):
    image = QImage(QSize(64, 80), QImage.Format.Format_RGB32)
    image.fill(0xFF336699)
    QGuiApplication.clipboard().setImage(image)
    app.window.action("paste_picture").trigger()
    sent = Image.open(io.BytesIO(app.edited.picture)).convert("RGB")
    assert sent.size == (64, 80) and sent.getpixel((10, 10)) == (0x33, 0x66, 0x99)


def test_empty_clipboard_is_one_line(app):
    QGuiApplication.clipboard().clear()
    app.window.action("paste_picture").trigger()
    assert "no picture" in app.window.toast.text.text() and app.window.toast.isVisible()


def test_refusal_says_why_and_keeps_the_old_one(app):
    app.opening.open_bytes(picture(), "Ada")
    app.flow.refusal = "no face found: the face must be at least 64 px wide"
    loads = len(app.flow.called("open_character"))
    app.opening.open_bytes(picture("red"), "Wall")
    assert app.edited.spec.name == "Ada"
    assert len(app.flow.called("open_character")) == loads
    note = app.window.character.note
    assert note.isVisibleTo(app.window) and "64 px" in note.text.text()
    assert not app.window.character.busy.isVisibleTo(app.window)


def test_a_refused_first_picture_leaves_a_starter_on_stage(themed, settings, tmp_path):
    bad = tmp_path / "wall.png"
    bad.write_bytes(picture())
    settings.set("character", str(bad))
    flow = StubFlow(settings)
    flow.refusal = "no face found"
    app = StudioApp(settings, flow, tmp_path / "draft.avatar")
    app.start()
    flow.state.update_engine(link="ready", detail="again")
    assert app.edited.source.starter and app.edited.spec.name == "Eileen"
    assert "No face found" in app.window.character.note.text.text()
    app.window.close()


def test_a_character_the_engine_refuses_gives_way_to_the_one_before(app, tmp_path):
    write_character(tmp_path / "good.avatar", CharacterSpec(name="Good"), picture())
    write_character(tmp_path / "bad.avatar", CharacterSpec(name="Bad"), picture("red"))
    app.opening.open_path(tmp_path / "good.avatar")
    app.flow.character_loaded.disconnect()  # the next one never gets there
    app.opening.open_path(tmp_path / "bad.avatar")
    app.flow.failed.emit(EngineError("face_unusable", "the face is turned away", "another picture"))
    assert app.edited.spec.name == "Good"
    assert app.files.recent() == [tmp_path / "good.avatar"]
    assert "turned away" in app.window.character.note.text.text()


@pytest.mark.parametrize("name", ["gone.png", "gone.avatar"])
def test_missing_file_is_one_line_in_place(app, tmp_path, name):
    app.opening.open_path(tmp_path / name)
    text = app.window.character.note.text.text()
    assert name in text and "\n" not in text and "Traceback" not in text


def test_damaged_character_is_one_line(app, tmp_path):
    path = tmp_path / "bad.avatar"
    path.write_bytes(b"PK\x03\x04 nonsense")
    app.opening.open_path(path)
    assert "bad.avatar" in app.window.character.note.text.text()


def test_picture_waits_for_the_engine(app):
    app.flow.state.update_engine(link="starting")
    app.opening.open_bytes(picture("navy"), "Later")
    assert app.window.character.busy.isVisibleTo(app.window)
    assert not any(call[0] == picture("navy") for call in app.flow.called("inspect_picture"))
    app.flow.state.update_engine(link="ready")
    assert app.edited.spec.name == "Later"


def test_looking_can_be_cancelled(app):
    app.flow.state.update_engine(link="starting")
    app.opening.open_bytes(picture("navy"), "Never")
    app.window.character.cancel.click()
    assert not app.window.character.busy.isVisibleTo(app.window)
    app.flow.state.update_engine(link="ready")
    assert app.edited.spec is None or app.edited.spec.name != "Never"


def test_several_faces_are_chosen_by_a_click(app):
    other = FACE.__class__(x=220, y=80, width=60, height=80, score=0.9, yaw_deg=0)
    app.flow.faces = [FACE, other]
    app.opening.open_bytes(picture(), "Two")
    crop = app.window.character.crop
    app.window.character.tabs.show_page(1)
    QApplication.processEvents()
    box = crop._to_screen(theme_rect(other))
    QTest.mouseClick(crop, Qt.MouseButton.LeftButton, pos=box.center().toPoint())
    assert app.edited.spec.face == 1


def theme_rect(face):
    from PySide6.QtCore import QRectF

    return QRectF(face.x, face.y, face.width, face.height)


# --- framing ---
def test_crop_is_the_engines_arithmetic(themed, qtbot):
    crop = CropView()
    qtbot.addWidget(crop)
    crop.resize(260, 300)
    image, size = preview(picture())
    crop.show_picture(image, size)
    crop.show_faces([FACE], 0)
    assert crop.framing == automatic_framing(300, 400, box_of(FACE))
    with qtbot.waitSignal(crop.changed) as caught:
        qtbot.keyClick(crop, Qt.Key.Key_Plus)
    assert caught.args[0].zoom == pytest.approx(1.06)
    before = crop.framing.center_x
    qtbot.keyClick(crop, Qt.Key.Key_Left)
    assert crop.framing.center_x == pytest.approx(before - 0.02)


def test_framing_reloads_once_after_the_last_move(app, qtbot):
    app.opening.open_bytes(picture(), "Ada")
    loads = len(app.flow.called("open_character"))
    for _ in range(10):
        app.window.character.crop.zoom_by(1.05)
    qtbot.waitUntil(lambda: len(app.flow.called("open_character")) > loads, timeout=3000)
    qtbot.wait(50)
    assert len(app.flow.called("open_character")) == loads + 1
    assert app.flow.called("open_character")[-1][0].framing.zoom > 1.3


@pytest.mark.parametrize("orientation", range(1, 9))
def test_preview_is_upright(orientation):
    image = Image.new("RGB", (40, 20), "red")
    exif = image.getexif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    shown, size = preview(buffer.getvalue())
    wanted = (40, 20) if orientation < 5 else (20, 40)
    assert (shown.width(), shown.height()) == wanted == (size.width(), size.height())


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(20), bytes(5000)])
def test_what_cannot_be_read_is_no_picture(data):
    image, size = preview(data)
    assert image.isNull() and size.isEmpty()


# --- files ---
def test_save_and_open_again(app, tmp_path, monkeypatch):
    app.opening.open_bytes(picture(), "Ada")
    app.edited.set_intensity("blink", 0.5)
    monkeypatch.setattr(dialogs, "choose_save", lambda *_: tmp_path / "ada.avatar")
    app.window.action("save_character").trigger()
    spec, data = read_character(tmp_path / "ada.avatar")
    assert spec == app.edited.spec and data == picture() and not app.edited.unsaved
    assert app.files.recent() == [tmp_path / "ada.avatar"]
    app.edited.set_intensity("blink", 0.7)
    app.window.action("save_character").trigger()
    assert read_character(tmp_path / "ada.avatar")[0].settings.blink == 0.7


def test_save_into_nowhere_is_one_line(app, tmp_path, monkeypatch):
    app.opening.open_bytes(picture(), "Ada")
    monkeypatch.setattr(dialogs, "choose_save", lambda *_: tmp_path / "no" / "ada.avatar")
    assert app.commands.save_character() is False
    assert "ada.avatar" in app.window.character.note.text.text() + app.window.toast.text.text()


@pytest.mark.parametrize(("answer", "goes"), [("cancel", False), ("discard", True)])
def test_unsaved_changes_are_asked_about(app, monkeypatch, answer, goes):
    app.opening.open_bytes(picture(), "Ada")
    app.edited.rename("Grace")
    monkeypatch.setattr(dialogs, "ask_unsaved", lambda *_: answer)
    app.opening.open_bytes(picture("red"), "Bo")
    assert (app.edited.spec.name == "Bo") is goes
    monkeypatch.setattr(dialogs, "ask_unsaved", lambda *_: "discard")


def test_recent_files_are_newest_first_and_few(settings, tmp_path):
    files = CharacterFiles(settings, starters=tmp_path / "starters")
    paths = [tmp_path / f"{i}.avatar" for i in range(12)]
    for path in paths:
        files.remember(path)
    files.remember(paths[8])
    assert files.recent()[:2] == [paths[8], paths[11]] and len(files.recent()) == 9
    files.remember(tmp_path / "starters" / "x.avatar")
    assert files.recent()[0] == paths[8], "starters are in the library, not in recent files"


def test_draft_brings_unsaved_changes_back(themed, settings, tmp_path):
    draft = tmp_path / "draft.avatar"
    write_character(draft, CharacterSpec(name="Lost and found"), picture())
    app = StudioApp(settings, StubFlow(settings), draft)
    app.start()
    assert app.edited.spec.name == "Lost and found" and app.edited.unsaved
    app.commands.may_replace = lambda: True
    app.window.close()
    assert not draft.exists()


def test_last_character_is_gone(themed, settings, tmp_path):
    settings.set("character", str(tmp_path / "moved.avatar"))
    app = StudioApp(settings, StubFlow(settings))
    app.start()
    assert "moved.avatar is gone" in app.window.character.note.text.text()
    app.leave()


@pytest.mark.parametrize(("stem", "title"), [
    ("photo_of-ada", "Photo of ada"), ("IMG", "IMG"), ("-", "Untitled"),
    ("x" * 300, "X" + "x" * 119),
])  # fmt: skip
def test_titles(tmp_path, stem, title):
    assert title_of(tmp_path / f"{stem}.png") == title
