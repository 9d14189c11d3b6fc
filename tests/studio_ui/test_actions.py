"""Every action is complete, every control has name and tooltip, every key leads somewhere."""

from __future__ import annotations

import pytest
from PySide6.QtCore import SIGNAL, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLineEdit,
    QListView,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QSlider,
    QTabBar,
    QWidget,
)

from studio import actions, help, icons
from studio.error_dialog import ErrorDialog
from studio.widgets.crop_view import CropView
from studio.widgets.frame_view import FrameView
from studio.widgets.level_meter import LevelMeter
from studio.widgets.waveform import Waveform

CONTROLS = (QAbstractButton, QComboBox, QLineEdit, QListView, QPlainTextEdit, QSlider, QTabBar,
            CropView, FrameView, Waveform)  # fmt: skip
SHOWN_ONLY = (LevelMeter, QProgressBar)


def own(widget: QWidget) -> bool:
    """Not one of Qt's inner parts (the clear button of a line edit, a combo's pop-up)."""
    inner = ("qt_", "Qt", "ScrollLeft", "ScrollRight")
    parents = [widget]
    while parents[-1].parentWidget() is not None:
        parents.append(parents[-1].parentWidget())
    private = any(isinstance(p, QComboBox) for p in parents[1:])
    tool_in_edit = isinstance(widget.parentWidget(), QLineEdit | QTabBar)
    return not (widget.objectName().startswith(inner) or private or tool_in_edit)


def controls(root: QWidget, kinds=CONTROLS) -> list[QWidget]:
    return [w for w in root.findChildren(QWidget) if isinstance(w, kinds) and own(w)]


@pytest.mark.parametrize("row", actions.TABLE, ids=lambda row: row.id)
def test_row_is_complete(row):
    assert row.text and row.tooltip and row.icon in icons.PATHS
    assert not QKeySequence(row.shortcut).isEmpty(), row.shortcut
    assert actions.keys(row.shortcut)


def test_ids_and_keys_are_unique():
    assert len({row.id for row in actions.TABLE}) == len(actions.TABLE)
    keys = [QKeySequence(row.shortcut).toString() for row in actions.TABLE]
    assert len(set(keys)) == len(keys), sorted(keys)


def test_every_action_does_something(app):
    idle = [
        row.id
        for row in actions.TABLE
        if app.window.action(row.id).receivers(SIGNAL("triggered(bool)")) < 1
    ]
    assert not idle, idle


def test_every_action_of_the_window_has_key_and_tooltip(app, tmp_path):
    app.commands.fill_recent()
    menus = [a for a in app.window.findChildren(QAction) if a.menu() is None]
    listed = [a for a in menus if not a.isSeparator() and a.text() and a.objectName()]
    assert len(listed) >= len(actions.TABLE)
    for action in listed:
        if action.objectName().startswith(("_q_", "qt_")):
            continue
        assert not action.shortcut().isEmpty(), action.text()
        assert action.toolTip() and action.whatsThis(), action.text()


def test_dynamic_menus_have_keys_too(app):
    taken = []
    menu = QMenu()
    app.window.fill_menu(menu, [("A & B", "tip", "Ctrl+Alt+1")], taken.append)
    (action,) = menu.actions()
    assert not action.shortcut().isEmpty() and action.toolTip() == "tip"
    action.trigger()
    assert taken == [0]
    app.window.fill_menu(menu, [], taken.append)
    assert not menu.isEnabled()


def test_every_control_has_name_and_tooltip(app):
    found = controls(app.window)
    assert len(found) > 50
    nameless = [repr(w) for w in controls(app.window, CONTROLS + SHOWN_ONLY)
                if not w.accessibleName()]  # fmt: skip
    assert not nameless, nameless
    mute = [repr(w) for w in found if not w.toolTip() and not isinstance(w, FrameView | QTabBar)]
    assert not mute, mute


@pytest.mark.parametrize("build", [
    help.shortcuts, help.about, lambda p: help.doctor([("Python", "ok", "3.11", "")], p),
    lambda p: ErrorDialog("ValueError: x", "trace", p),
])  # fmt: skip
def test_sheets_have_names_and_close_with_escape(app, build):
    sheet = build(app.window)
    sheet.open()
    assert all(w.accessibleName() and w.toolTip() for w in controls(sheet))
    QTest.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


def test_sheet_lists_every_action(app):
    from PySide6.QtWidgets import QLabel

    texts = {label.text() for label in help.shortcuts(app.window).findChildren(QLabel)}
    for row in actions.TABLE:
        assert row.text.rstrip("…") in texts and actions.keys(row.shortcut) in texts


def test_everything_is_reached_by_tab(app):
    """Walk the focus chain: every control that is shown and enabled is in it."""
    window = app.window
    window.action("panel_log").trigger()
    for page in range(3):
        window.character.tabs.show_page(page)
        window.voice.tabs.show_page(page % 2)
        QApplication.processEvents()
        chain, here = set(), window.view
        for _ in range(2_000):
            chain.add(here)
            here = here.nextInFocusChain()
        missing = [
            repr(w) for w in controls(window) if w.isVisible() and w.isEnabled() and w not in chain
        ]
        unreachable = [
            repr(w) for w in controls(window)
            if w.isVisible() and w.isEnabled() and not w.focusPolicy() & Qt.FocusPolicy.TabFocus
        ]  # fmt: skip
        assert not missing and not unreachable, (missing, unreachable)


def press(app, key):
    """As a person does: to whatever has the focus."""
    QTest.keyClick(QApplication.focusWidget() or app.window, key)
    QApplication.processEvents()


def test_space_goes_live_from_the_picture_and_presses_a_focused_button(app):
    app.window.activateWindow()
    app.window.view.setFocus()
    press(app, Qt.Key.Key_Space)
    assert app.flow.called("go_live") and app.flow.state.session.live
    press(app, Qt.Key.Key_Space)
    assert app.flow.called("stop") and not app.flow.state.session.live
    lives = len(app.flow.called("go_live"))
    app.window.bar.record.setFocus(Qt.FocusReason.TabFocusReason)
    press(app, Qt.Key.Key_Space)
    assert len(app.flow.called("go_live")) == lives, "Space was taken from the focused button"
    assert len(app.flow.called("start_recording")) == 1


def test_typing_a_name_does_not_trigger_keys(app):
    app.window.activateWindow()
    app.window.character.name.setFocus()
    app.window.character.name.selectAll()
    QTest.keyClicks(app.window.character.name, "Ada of Kent")
    assert app.window.character.name.text() == "Ada of Kent"
    assert not app.flow.called("go_live")
