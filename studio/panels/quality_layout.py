"""The quality window's parts and where they lie. Widgets only; `quality.py` connects them."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from studio import icons
from studio.panels.quality_comparison import QualityComparison
from studio.panels.quality_head import QualityHead
from studio.panels.quality_list import RunList
from studio.panels.quality_player import QualityPlayer
from studio.panels.quality_ruler import QualityRuler
from studio.panels.quality_setup import QualitySetup
from studio.panels.quality_style import panel, sheet
from studio.panels.quality_table import QualityTable
from studio.qa_set import ClipList
from studio.widgets.buttons import label, plain, rule
from studio.widgets.tabs import Tabs

FIRST_SIZE = QSize(1440, 900)
SIDE_PX, PICTURE_PX = 260, 420
CLIPS, COMPARISON, RULER = range(3)  # tabs


class QualityLayout(QWidget):
    """The parts by name."""

    def __init__(self, clips: ClipList, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setup = QualitySetup(clips)
        self.head = QualityHead()
        self.table = QualityTable()
        self.comparison = QualityComparison()
        self.ruler = QualityRuler()
        self.player = QualityPlayer(self)
        self.list = RunList()
        self.tabs = Tabs("Clips, comparison or ruler")
        self.open = plain("Open…", "Show a run that was made elsewhere, too", role="link")
        self.setWindowTitle("Lip-sync quality")
        self.setWindowIcon(icons.icon("sample", "accent"))
        self.setObjectName("quality")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setStyleSheet(sheet())
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 12, 12, 12)
        row.setSpacing(12)
        row.addWidget(self._build_left())
        row.addWidget(self._build_main(), 1)
        self.resize(FIRST_SIZE)

    def _build_left(self) -> QWidget:
        left = panel()
        left.setFixedWidth(SIDE_PX)
        column = QVBoxLayout(left)
        column.setContentsMargins(14, 12, 14, 14)
        column.setSpacing(8)
        column.addWidget(label("New run", "title"))
        column.addWidget(self.setup, 1)
        column.addWidget(rule())
        head = QHBoxLayout()
        head.addWidget(label("Runs", "title"), 1)
        head.addWidget(self.open)
        column.addLayout(head)
        column.addWidget(self.list)
        return left

    def _build_main(self) -> QWidget:
        middle = panel()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 14, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.head)
        self.tabs.bar.setExpanding(False)
        self.tabs.add("Clips", self.table, "Every clip of the run")
        self.tabs.add("Comparison", self.comparison, "This run against the baseline")
        self.tabs.add("The ruler", self.ruler, "Why believe these numbers? Planted and found")
        column.addWidget(self.tabs, 1)
        right = QWidget()
        pictures = QVBoxLayout(right)
        pictures.setContentsMargins(0, 0, 0, 0)
        pictures.addWidget(self.player.pictures)
        top = QSplitter(Qt.Orientation.Horizontal)
        top.addWidget(middle)
        top.addWidget(right)
        top.setSizes([FIRST_SIZE.width() - SIDE_PX - PICTURE_PX, PICTURE_PX])
        top.setChildrenCollapsible(False)
        top.setHandleWidth(12)
        main = QWidget()
        whole = QVBoxLayout(main)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(12)
        whole.addWidget(top, 1)
        whole.addWidget(self.player.strip)
        return main
