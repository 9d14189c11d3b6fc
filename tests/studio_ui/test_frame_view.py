"""The viewer paints the frame's very pixels, and what lies over them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage

from engine.clock import HEIGHT, WIDTH
from studio import theme
from studio.mailbox import Mailbox
from studio.widgets.frame_view import FADE_S, WINDOW, Banner, FrameView, Hud
from tests.studio_ui.stub_flow import frame

ROOT = Path(__file__).resolve().parents[2]


def pixels_of(image: QImage) -> np.ndarray:
    """[h, w, 4] BGRA of a grabbed widget."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    flat = np.frombuffer(image.constBits(), np.uint8)
    return flat.reshape(image.height(), image.bytesPerLine() // 4, 4)[:, : image.width()].copy()


def viewer(qtbot, width: int, height: int, shown=None):
    mailbox, reports = Mailbox(), []
    view = FrameView(mailbox, lambda f, ns, ms: reports.append((f, ms)))
    qtbot.addWidget(view)
    view.resize(width, height)
    if shown is not None:
        mailbox.put(shown)
    with qtbot.waitExposed(view):
        view.show()
    return view, mailbox, reports


@pytest.mark.parametrize("fit", [True, False])
def test_paints_every_pixel_when_one_is_one(themed, qtbot, fit):
    shown = frame(3)
    view, _, _ = viewer(qtbot, WIDTH + 16, HEIGHT + 16, shown)
    view.set_fit(fit)
    view.set_hud_visible(False)
    got = pixels_of(view.grab().toImage())[8:-8, 8:-8]
    inner = np.s_[16:-16, 16:-16, :3]  # the corners of the fitted picture are rounded
    assert np.array_equal(got[inner], shown.pixels[inner])


def test_before_the_first_frame_only_colours_show_and_then_they_fade(themed, qtbot, monkeypatch):
    view, mailbox, _ = viewer(qtbot, 400, 600)
    view.set_hud_visible(False)
    stripes = np.zeros((400, 300, 4), np.uint8)
    stripes[::8] = 255  # detail that a crop would show
    view.set_still(QImage(stripes.data, 300, 400, QImage.Format.Format_RGB32).copy())
    waiting = pixels_of(view.grab().toImage())[40:-40, 40:-40, :3]
    assert 0 < waiting.mean() < 40 and waiting.std() < 4
    now = [100.0]
    monkeypatch.setattr("studio.widgets.frame_view.time.monotonic", lambda: now[0])
    white = np.full((HEIGHT, WIDTH, 4), 255, np.uint8)
    mailbox.put(frame(1, white))
    first = pixels_of(view.grab().toImage())[300, 200, 1]
    now[0] += FADE_S / 2
    half = pixels_of(view.grab().toImage())[300, 200, 1]
    now[0] += FADE_S
    assert first < half < pixels_of(view.grab().toImage())[300, 200, 1] == 255


def test_fit_keeps_the_shape_and_the_colours(themed, qtbot):
    pixels = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    pixels[: HEIGHT // 2] = (10, 20, 230, 255)  # red above, in BGRA
    pixels[HEIGHT // 2 :] = (220, 30, 15, 255)  # blue below
    view, _, _ = viewer(qtbot, 500, 900, frame(1, pixels))
    view.set_hud_visible(False)
    rect = view.picture_rect()
    assert rect.width() / rect.height() == pytest.approx(WIDTH / HEIGHT, abs=0.002)
    image = view.grab().toImage()
    assert image.pixelColor(250, int(rect.top()) + 40).getRgb()[:3] == (230, 20, 10)
    assert image.pixelColor(250, int(rect.bottom()) - 40).getRgb()[:3] == (15, 30, 220)
    assert image.pixelColor(250, 2) == theme.color("stage")


@pytest.mark.parametrize("scale", ["1", "1.25", "1.5", "2"])
def test_one_to_one_is_one_device_pixel_at_every_scale(scale):
    code = (
        "from PySide6.QtWidgets import QApplication; app = QApplication([]);"
        "import numpy as np;"
        "from tests.studio_ui.test_frame_view import device_pixels;"
        "got, wanted = device_pixels();"
        "assert got.shape == wanted.shape, (got.shape, wanted.shape);"
        "assert np.array_equal(got, wanted), float((got != wanted).mean())"
    )
    environment = {**os.environ, "QT_SCALE_FACTOR": scale, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-1500:]


def device_pixels() -> tuple[np.ndarray, np.ndarray]:
    """What a 1:1 view shows and the picture's same part, in device pixels (no pytest here)."""
    mailbox = Mailbox()
    view = FrameView(mailbox)
    shown = frame(5)
    mailbox.put(shown)
    view.set_fit(False)
    view.set_hud_visible(False)
    view.resize(320, 420)
    got = pixels_of(view.grab().toImage())[:, :, :3]
    rect, scale = view.picture_rect(), view.devicePixelRatioF()
    left, top = round(-rect.left() * scale), round(-rect.top() * scale)
    height, width = got.shape[:2]
    assert width == round(320 * scale), (width, scale)
    return got, shown.pixels[top : top + height, left : left + width, :3]


def test_takes_the_frame_once_and_reports_each_paint(themed, qtbot):
    view, mailbox, reports = viewer(qtbot, 400, 600, frame(1))
    view.repaint()
    first = len(reports)
    assert first >= 1 and reports[-1][0].frame_index == 1
    assert mailbox.take() is None, "the view did not take the frame: no more wake-ups would come"
    mailbox.put(frame(2))
    view.wake()
    qtbot.waitUntil(lambda: reports[-1][0].frame_index == 2)


def test_a_hidden_window_still_empties_the_slot(themed, qtbot):
    view, mailbox, _ = viewer(qtbot, 400, 600, frame(1))
    view.hide()
    for index in range(2, 30):
        assert mailbox.put(frame(index)), "a wake-up was lost while hidden"
        view.wake()
    assert mailbox.take() is None and view.frame.frame_index == 29


def test_a_second_view_never_takes(themed, qtbot):
    mailbox = Mailbox()
    stage = FrameView(mailbox)
    qtbot.addWidget(stage)
    mailbox.put(frame(4))
    stage.resize(200, 320)
    stage.grab()
    assert stage.frame.frame_index == 4
    assert mailbox.take() is not None


def test_pixels_outlive_their_owner(themed, qtbot):
    shown = frame(7)
    wanted = shown.pixels[544, 352, :3].tolist()
    view, mailbox, _ = viewer(qtbot, WIDTH + 16, HEIGHT + 16, shown)
    view.repaint()
    del shown
    mailbox.clear()
    gc.collect()
    junk = [np.full((HEIGHT, WIDTH, 4), 99, np.uint8) for _ in range(4)]
    assert pixels_of(view.grab().toImage())[8 + 544, 8 + 352, :3].tolist() == wanted
    assert len(junk) == 4


def changed(before: QImage, after: QImage) -> np.ndarray:
    return (pixels_of(before) != pixels_of(after)).any(axis=2)


def test_hud_can_be_hidden(themed, qtbot):
    view, _, _ = viewer(qtbot, 500, 780, frame(1))
    view.set_hud(Hud(True, 24.0, 150.0))
    with_hud = view.grab().toImage()
    view.set_hud_visible(False)
    where = changed(with_hud, view.grab().toImage())
    assert where[:60, :300].mean() > 0.05 and not where[100:].any()


@pytest.mark.parametrize(
    ("banner", "synthetic"),
    [(Banner("Engine restarting", "danger", True, True), False), (None, True)],
)
def test_banners_lie_over_the_lower_edge(themed, qtbot, banner, synthetic):
    pixels = np.full((HEIGHT, WIDTH, 4), 200, np.uint8)
    plain, _, _ = viewer(qtbot, 500, 780, frame(1, pixels))
    view, _, _ = viewer(qtbot, 500, 780, frame(1, pixels, synthetic))
    view.set_banner(banner)
    where = changed(plain.grab().toImage(), view.grab().toImage())
    assert where[-80:-20, 40:-40].mean() > 0.5
    assert where[300:400, 200:300].all() == (banner is not None and banner.hold)


def test_clean_view_shows_the_face_alone(themed, qtbot):
    shown = frame(2, synthetic=False)
    view, _, _ = viewer(qtbot, WIDTH, HEIGHT, shown)
    view.clean = True
    view.set_hud(Hud(True, 3.0, 150.0))
    view.set_banner(Banner("something", "danger"))
    assert np.array_equal(pixels_of(view.grab().toImage())[..., :3], shown.pixels[..., :3])


def test_empty_stage_invites(themed, qtbot):
    view, _, _ = viewer(qtbot, 500, 780)
    image = view.grab().toImage()
    middle = {image.pixel(x, y) for x in range(100, 400) for y in range(380, 440)}
    assert len(middle) > 10, "no words on the empty stage"
    view.set_drop_text("Drop it here")
    assert changed(image, view.grab().toImage()).any()
    with qtbot.waitSignal(view.open_requested):
        qtbot.mouseClick(view, theme.Qt.MouseButton.LeftButton)


def test_scaling_changes_over_slowly_and_comes_back(themed, qtbot):
    view, _, _ = viewer(qtbot, 300, 400, frame(1))
    view.repaint()
    view._work_ms.clear()

    def feed(ms: float, count: int) -> None:
        for _ in range(count):
            view._choose_scaling(ms)

    feed(1.0, WINDOW - 1)
    feed(50.0, 1)
    assert view.smooth, "one slow paint is no reason"
    feed(20.0, WINDOW)
    assert not view.smooth
    feed(5.0, WINDOW)
    assert not view.smooth, "5 ms without smoothing may be 15 with it"
    feed(1.0, WINDOW)
    assert view.smooth


def test_tab_shows_where_the_keyboard_is(themed, qtbot):
    view, _, _ = viewer(qtbot, 500, 780, frame(1))
    view.clearFocus()
    view.set_hud_visible(False)
    before = view.grab().toImage()
    view.setFocus(theme.Qt.FocusReason.TabFocusReason)
    where = changed(before, view.grab().toImage())
    assert where[2, 100:400].all() and not where[100:600, 100:400].any()
