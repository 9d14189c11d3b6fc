"""The comparison with the baseline: the verdict in words, then a row a score with its interval.

Shows a Comparison; knows nothing of how it was made.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from engine.qa.report import Comparison, Difference
from studio import theme
from studio.qa_words import HEADS, TONES, difference_words, name_of, plain_sentence, title_of
from studio.widgets.buttons import label, restyle

HEADINGS = ("Score", "B minus A", "95 % interval and margin", "Margin", "Verdict")
EMPTY = "Choose a baseline above to see whether this run is worse than it."
WORST = 5


class IntervalBar(QWidget):
    """The margin as a band around zero, the 95 % interval as a bar, the mean as a dot."""

    def __init__(self, d: Difference) -> None:
        super().__init__()
        self._d = d
        self.setMinimumSize(120, 22)
        self.setAccessibleName(f"{name_of(d.name)}: {d.low95:+.3f} to {d.high95:+.3f}")

    def paintEvent(self, event: QPaintEvent) -> None:
        d = self._d
        reach = 1.15 * max(d.margin * 1.5, abs(d.low95), abs(d.high95), 1e-6)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = self.height() / 2

        def x(value: float) -> float:
            return (value / reach + 1) / 2 * (self.width() - 8) + 4

        painter.fillRect(
            QRectF(x(-d.margin), 3, x(d.margin) - x(-d.margin), self.height() - 6),
            theme.color("live", 0.13),
        )
        painter.setPen(QPen(theme.color("outline"), 1))
        painter.drawLine(QPointF(x(0), 2), QPointF(x(0), self.height() - 2))
        tone = theme.color(TONES[d.verdict])
        painter.setPen(QPen(tone, 3, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(QPointF(x(d.low95), middle), QPointF(x(d.high95), middle))
        painter.setBrush(theme.color("text"))
        painter.setPen(QPen(tone, 2))
        painter.drawEllipse(QPointF(x(d.mean), middle), 4, 4)


class QualityComparison(QScrollArea):
    """`show_comparison`, or `say` while there is none; `clip_chosen(id)` for one to look at."""

    clip_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        body = QWidget()
        self.head = label("", "big")
        self.words = label(EMPTY, "soft")
        self.words.setWordWrap(True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.table = QWidget()
        self._grid = QGridLayout(self.table)
        self._grid.setContentsMargins(0, 8, 0, 8)
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(2, 1)
        self.note = label(
            "Clips in pairs, intervals by bootstrap over clips, the family tested together (Holm). "
            "+ is better for B. A difference counts when it leaves the green margin and the rerun "
            "band.", "caption",
        )  # fmt: skip
        self.note.setWordWrap(True)
        self.worst = QWidget()
        self._worst = QVBoxLayout(self.worst)
        self._worst.setContentsMargins(0, 8, 0, 0)
        self._worst.setSpacing(2)
        column = QVBoxLayout(body)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(6)
        for part in (self.head, self.words, self.table, self.note, self.worst):
            column.addWidget(part)
        column.addStretch(1)
        self.setWidget(body)
        self.say(EMPTY)

    def say(self, text: str, tone: str = "") -> None:
        self._clear()
        self.head.hide()
        self.words.setText(text)
        restyle(self.words, tone)
        for part in (self.table, self.note, self.worst):
            part.hide()

    def show_comparison(self, found: Comparison, a: str, b: str) -> None:
        self.say(plain_sentence(found.words))
        tone = TONES[found.verdict]
        self.head.setText(f"{HEADS[found.verdict]}: {b} against {a}")
        self.head.setWordWrap(True)
        restyle(self.head, tone)
        self.head.show()
        for column, text in enumerate(HEADINGS):
            head = label(text, "caption")
            head.setAlignment(theme.ALIGN_RIGHT if column in (1, 3) else theme.ALIGN_LEFT)
            self._grid.addWidget(head, 0, column)
        for row, d in enumerate(found.differences, 1):
            self._add_row(row, d)
        self._show_worst(found)
        self.table.show()
        self.note.show()

    def _add_row(self, row: int, d: Difference) -> None:
        mean, margin = label(f"{d.mean:+.3f}", "number"), label(f"± {d.margin:g}", "soft")
        text, tip = difference_words(d)
        verdict = label(text)
        verdict.setToolTip(tip)
        restyle(verdict, TONES[d.verdict])
        for cell in (mean, margin):
            cell.setAlignment(theme.ALIGN_RIGHT)
        name = label(title_of(d.name), "title" if row == 1 else "")
        name.setToolTip(f"{d.clips} clips; rerun band {d.band:.3f}; p of worse {d.p_worse:.4f}")
        for column, cell in enumerate((name, mean, IntervalBar(d), margin, verdict)):
            self._grid.addWidget(cell, row, column)

    def _show_worst(self, found: Comparison) -> None:
        clips = found.differences[0].worst[:WORST] if found.differences else []
        if clips:
            self._worst.addWidget(label("Clips that lost most: look at them", "section"))
        for clip in clips:
            button = QPushButton(clip)
            button.setProperty("role", "link")
            button.setToolTip("Play this clip against the baseline")
            button.setAccessibleName(f"Play {clip}")
            button.clicked.connect(lambda _=False, c=clip: self.clip_chosen.emit(c))
            self._worst.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        for line in found.failed[:WORST]:
            failed = QLabel(f"Not paired: {line}")
            failed.setWordWrap(True)
            self._worst.addWidget(failed)
        self.worst.setVisible(bool(clips or found.failed))

    def _clear(self) -> None:
        for layout in (self._grid, self._worst):
            while layout.count():
                widget = layout.takeAt(0).widget()  # pyright: ignore[reportOptionalMemberAccess]
                if widget is not None:
                    widget.hide()
                    widget.deleteLater()
