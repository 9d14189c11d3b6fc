"""The Qt style sheet of the dark theme, one template with colour names filled in.

Knows nothing of colours' values (`theme.COLORS`) nor of any window.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

MARKS = Path(__file__).resolve().parents[1] / "assets" / "icons"

_BASE = """
* { outline: none; }
QWidget { color: $text; font-size: 13px; }
QMainWindow, QDialog { background: $window; }
QMainWindow::separator { background: $window; width: 6px; height: 6px; }
QMainWindow::separator:hover { background: $line; }
QToolTip { background: $raised; color: $text; border: 1px solid $line; padding: 5px 8px; }
QLabel { background: transparent; }
QLabel[role="heading"] { font-size: 20px; font-weight: 600; }
QLabel[role="title"] { font-size: 13px; font-weight: 600; }
QLabel[role="section"] { font-size: 11px; font-weight: 600; color: $faint; }
QLabel[role="soft"] { color: $soft; }
QLabel[role="caption"] { font-size: 11px; color: $faint; }
QLabel[role="number"] { color: $text; }
QLabel[role="big"] { font-size: 20px; font-weight: 600; }
QLabel[tone="danger"] { color: $danger; }
QLabel[tone="warning"] { color: $warning; }
QLabel[tone="live"] { color: $live; }
QLabel:disabled { color: $disabled; }
QMenuBar { background: $window; padding: 3px 6px; spacing: 2px; }
QMenuBar::item { padding: 5px 10px; border-radius: 5px; background: transparent; color: $soft; }
QMenuBar::item:selected { background: $raised; color: $text; }
QMenu { background: $surface; border: 1px solid $line; border-radius: 8px; padding: 6px; }
QMenu::item { padding: 6px 28px 6px 10px; border-radius: 5px; margin: 1px 0; }
QMenu::icon { padding-left: 8px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $disabled; }
QMenu::separator { height: 1px; background: $line; margin: 5px 4px; }
QStatusBar { background: $window; color: $soft; border-top: 1px solid $line; }
QStatusBar::item { border: none; }
QStatusBar QLabel { font-size: 12px; color: $soft; padding: 0 4px; }
QScrollArea, QScrollArea > QWidget > QWidget { background: transparent; border: none; }
QFrame[role="rule"] { background: $line; border: none; max-height: 1px; min-height: 1px; }
"""

_BUTTONS = """
QPushButton, QToolButton {
    background: $raised; border: 1px solid transparent; border-radius: 6px;
    padding: 5px 11px; min-height: 20px; color: $text;
}
QToolButton { padding: 5px; }
QPushButton:hover, QToolButton:hover { background: $hover; }
QPushButton:pressed, QToolButton:pressed { background: $pressed; }
QPushButton:focus, QToolButton:focus { border: 1px solid $accent; }
QPushButton:disabled, QToolButton:disabled { color: $disabled; background: $surface; }
QToolButton:checked, QPushButton:checked { background: $tint; color: $accent; }
QToolButton[role="bare"], QPushButton[role="bare"] { background: transparent; }
QToolButton[role="bare"]:hover, QPushButton[role="bare"]:hover { background: $hover; }
QToolButton[role="bare"]:checked { background: $tint; }
QToolButton::menu-indicator { image: none; }
QPushButton[role="primary"] {
    background: $accent; color: $on_accent; font-weight: 600;
}
QPushButton[role="primary"]:hover { background: $accent_hover; }
QPushButton[role="primary"]:pressed { background: $accent_pressed; }
QPushButton[role="primary"]:focus { border: 2px solid $text; }
QPushButton[role="primary"]:disabled { background: $raised; color: $disabled; }
QPushButton[role="live"] {
    background: $accent; color: $on_accent; font-size: 14px; font-weight: 600;
    border-radius: 19px; padding: 0 22px; min-height: 36px; border: 1px solid $accent;
}
QPushButton[role="live"]:hover { background: $accent_hover; }
QPushButton[role="live"]:pressed { background: $accent_pressed; }
QPushButton[role="live"]:checked { background: $danger_fill; color: $on_danger;
    border-color: $danger_fill; }
QPushButton[role="live"]:focus { border: 2px solid $text; padding: 0 21px; min-height: 34px; }
QPushButton[role="live"]:disabled { background: $raised; color: $disabled;
    border-color: $raised; }
QPushButton[role="round"], QToolButton[role="round"] {
    border-radius: 19px; min-height: 28px; min-width: 28px; padding: 4px; background: $raised;
}
QToolButton[role="round"]:hover { background: $hover; }
QToolButton[role="round"]:checked { background: $tint; }
QToolButton[role="round"][tone="danger"]:checked { background: #43242a; }
QPushButton[role="pill"] { border-radius: 19px; min-height: 36px; padding: 0 16px; }
QPushButton[role="link"] { background: transparent; color: $accent; padding: 2px 4px;
    min-height: 16px; font-size: 12px; }
QPushButton[role="link"]:hover { color: $accent_hover; }
QPushButton[role="link"]:disabled { color: $disabled; }
"""

_FIELDS = """
QLineEdit, QComboBox, QSpinBox, QPlainTextEdit, QListView, QTableView, QTreeView {
    background: $raised; border: 1px solid transparent; border-radius: 6px; color: $text;
    selection-background-color: $accent; selection-color: $on_accent;
}
QLineEdit, QComboBox, QSpinBox { padding: 5px 9px; min-height: 20px; }
QLineEdit:hover, QComboBox:hover { background: $hover; }
QLineEdit:focus, QComboBox:focus, QSpinBox:focus, QPlainTextEdit:focus, QTableView:focus,
QListView:focus { border: 1px solid $accent; }
QLineEdit:disabled, QComboBox:disabled { color: $disabled; background: $surface; }
QComboBox::drop-down { border: none; width: 24px; }
QComboBox::down-arrow { image: url($marks/chevron-down.svg); width: 12px; height: 12px; }
QComboBox QAbstractItemView { background: $surface; border: 1px solid $line; padding: 4px;
    selection-background-color: $hover; selection-color: $text; outline: none; }
QComboBox QAbstractItemView::item { min-height: 26px; padding: 2px 8px; border-radius: 5px; }
QCheckBox { spacing: 8px; }
QCheckBox::indicator { width: 16px; height: 16px; border-radius: 4px; background: $raised;
    border: 1px solid $outline; }
QCheckBox::indicator:hover { border-color: $soft; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent;
    image: url($marks/check.svg); }
QCheckBox:focus { color: $accent_hover; }
QCheckBox::indicator:focus { border: 2px solid $text; }
QSlider { min-height: 22px; background: transparent; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: $hover; }
QSlider::sub-page:horizontal { height: 4px; border-radius: 2px; background: $accent; }
QSlider::handle:horizontal { width: 14px; height: 14px; margin: -5px 0; border-radius: 7px;
    background: $text; border: none; }
QSlider::handle:horizontal:hover { background: #ffffff; }
QSlider:focus { border: 1px solid $accent; border-radius: 6px; }
QSlider::sub-page:horizontal:disabled { background: $disabled; }
QSlider::handle:horizontal:disabled { background: $disabled; }
QProgressBar { background: $hover; border: none; border-radius: 2px; max-height: 4px;
    min-height: 4px; color: transparent; }
QProgressBar::chunk { background: $accent; border-radius: 2px; }
QTableView { background: transparent; gridline-color: transparent; border-radius: 0; }
QTableView::item { padding: 2px 4px; border: none; }
QHeaderView { background: transparent; }
QHeaderView::section { background: transparent; border: none; color: $faint; font-size: 11px;
    font-weight: 500; padding: 2px 4px; }
QPlainTextEdit { background: $stage; padding: 6px; }
QScrollBar { background: transparent; margin: 0; }
QScrollBar:vertical { width: 10px; }
QScrollBar:horizontal { height: 10px; }
QScrollBar::handle { background: #383d48; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 28px; }
QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::handle:hover { background: $outline; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: none; }
"""

_DOCKS = """
QDockWidget { font-size: 13px; }
QWidget[role="panel"] { background: $surface; border-radius: 10px; }
QWidget[role="dock-title"] { background: transparent; }
QTabBar { background: transparent; qproperty-drawBase: 0; }
QTabBar::tab { background: transparent; color: $soft; padding: 6px 12px; margin: 2px;
    border-radius: 6px; border: 1px solid transparent; font-weight: 500; }
QTabBar::tab:selected { background: $raised; color: $text; }
QTabBar::tab:hover:!selected { color: $text; }
QTabBar::tab:focus { border: 1px solid $accent; }
QFrame[role="card"] { background: $window; border-radius: 8px; }
QFrame[role="note"] { background: #2b2417; border-radius: 6px; }
QFrame[role="note"][tone="danger"] { background: #331d21; }
QFrame[role="note"][tone="info"] { background: $tint; }
QFrame[role="toast"] { background: $raised; border: 1px solid $outline; border-radius: 8px; }
QWidget[role="bar"] { background: $window; }
QLabel[role="key"] { background: $raised; border: 1px solid $line; border-bottom: 2px solid $line;
    border-radius: 5px; padding: 2px 8px; font-size: 12px; font-weight: 500; }
"""


def sheet(colors: dict[str, str]) -> str:
    """The whole style sheet with `colors` (name -> #rrggbb) filled in."""
    template = Template(_BASE + _BUTTONS + _FIELDS + _DOCKS)
    return template.substitute(colors, marks=MARKS.as_posix())
