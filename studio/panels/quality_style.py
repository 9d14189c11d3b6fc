"""What the quality window adds to the theme's sheet: quiet selections, roomy rows, panels.

Knows nothing of what is in the window.
"""

from __future__ import annotations

from string import Template

from PySide6.QtWidgets import QFrame

from studio import theme
from studio.stylesheet import MARKS

STYLE = """
#quality { background: $window; }
QFrame[role="panel"] { background: $surface; border-radius: 10px; }
QListView::item { padding: 5px 6px; border-radius: 5px; }
QListView::item:hover { background: $hover; }
QListView::item:selected { background: $tint; color: $text; }
QListView::indicator { width: 14px; height: 14px; border-radius: 4px; background: $surface;
    border: 1px solid $outline; }
QListView::indicator:checked { background: $accent; border-color: $accent;
    image: url($marks/check.svg); }
QTableView { selection-background-color: $tint; selection-color: $text; }
QTableView::item { padding: 2px 10px 2px 6px; }
QTableView::item:selected { background: $tint; color: $text; }
QHeaderView::section { padding: 2px 10px 2px 9px; }
QHeaderView::up-arrow, QHeaderView::down-arrow { subcontrol-position: center left; width: 9px;
    height: 9px; }
QHeaderView::up-arrow { image: url($marks/chevron-up.svg); }
QHeaderView::down-arrow { image: url($marks/chevron-down.svg); }
"""


def sheet() -> str:
    """The sheet of the window with the theme's colours."""
    return Template(STYLE).substitute(theme.COLORS, marks=MARKS.as_posix())


def panel() -> QFrame:
    made = QFrame()
    made.setProperty("role", "panel")
    return made
