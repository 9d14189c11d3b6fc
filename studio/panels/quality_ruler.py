"""Why believe this ruler? Planted faults, what the ruler found, and every check, as one page.

Shows a Ruler; knows nothing of how it was measured.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from engine.qa.report import Check, PlantedRow
from engine.qa.report_ruler import (
    REFERENCE,
    SPLITS,
    Ruler,
    Standing,
    circumstances,
    fault_words,
    found_words,
    headline,
    is_right,
    mean_headline,
    planted_words,
    short_of,
    splits,
    verdict_words,
)
from studio import theme
from studio.widgets.buttons import label, plain, restyle, rule

HEADINGS = ("What was planted", "Frames late", "Found", "Within 1", "Score", "Verdict")
RIGHT = (1, 2, 3)
IN_TABLE = " is worse"  # checks that say again what a row of the table says
ASKING = "Looking for the check of this ruler…"


class ScoreBar(QWidget):
    """A score of 0 to 1 as a number on a bar."""

    def __init__(self, value: float | None, tone: str) -> None:
        super().__init__()
        self._value, self._tone = value, tone
        self.setFixedSize(96, 20)
        self.setAccessibleName("no score" if value is None else f"score {value:.2f}")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.color("text"))
        text = "–" if self._value is None else f"{self._value:.2f}"
        painter.drawText(QRectF(0, 0, 30, self.height()), int(theme.ALIGN_LEFT), text)
        if self._value is None:
            return
        box = QRectF(36, self.height() / 2 - 2, self.width() - 36, 4)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("hover"))
        painter.drawRoundedRect(box, 2, 2)
        box.setWidth(max(min(self._value, 1.0), 0.0) * box.width())
        painter.setBrush(theme.color(self._tone))
        painter.drawRoundedRect(box, 2, 2)


class QualityRuler(QScrollArea):
    """`show_ruler`, or `say` while there is none; `other` is the button for another file."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.head = label("", "big")
        self.head.setWordWrap(True)
        self.words = label(ASKING, "soft")
        self.words.setWordWrap(True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.other = plain("Open another check…", "Show a validation.json of avatar-qa validate",
                           role="link")  # fmt: skip
        self.body = QWidget()
        self._body = QVBoxLayout(self.body)
        self._body.setContentsMargins(0, 6, 0, 0)
        self._body.setSpacing(6)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(6)
        column.addWidget(self.head)
        column.addWidget(self.words)
        row = QHBoxLayout()
        row.addWidget(self.other)
        row.addStretch(1)
        column.addLayout(row)
        column.addWidget(self.body)
        column.addStretch(1)
        self.setWidget(inside)
        self.say(ASKING)

    def say(self, text: str, tone: str = "") -> None:
        self._clear()
        self.head.hide()
        self.words.setText(text)
        restyle(self.words, tone)

    def show_ruler(self, ruler: Ruler) -> None:
        self.say(f"{ruler.said}.")
        validation = ruler.validation
        if validation is None:
            return
        ours = ruler.standing is not Standing.OTHER
        self.head.setText(headline(validation))
        restyle(self.head, "warning" if not ours else "live" if ruler.measures else "danger")
        self.head.show()
        about = circumstances(validation)
        self.words.setText(f"{ruler.said}. {about[:1].upper()}{about[1:]}.")
        bad = [check for check in short_of(validation.checks) if not check.passed]
        if bad:
            self._add_checks("Checks that fell short", bad)
        for split, rows in splits(validation):
            self._add_rows(split, rows)
        self._add_text(
            "Found: median of the offset, in frames. Within 1: clips whose offset is "
            "found to a frame. Every fault should be called worse.",
            "caption",
        )
        good = [check for check in validation.checks if check.passed]
        if good:
            title = f"{len(good)} checks passed, the verdicts above among them"
            self._add_checks(title, [c for c in good if not c.name.endswith(IN_TABLE)])
        for note in validation.notes:
            self._add_text(f"{note[:1].upper()}{note[1:]}.", "caption")

    def _add_text(self, text: str, role: str) -> None:
        made = label(text, role)
        made.setWordWrap(True)
        self._body.addWidget(made)

    def _add_rows(self, split: str, rows: list[PlantedRow]) -> None:
        clips = max(row.clips for row in rows)
        self._body.addSpacing(8)
        self._add_text(f"{clips} clips: {SPLITS.get(split, split)}", "section")
        table = QWidget()
        grid = QGridLayout(table)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(20)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(0, 1)
        for column, text in enumerate(HEADINGS):
            head = label(text, "caption")
            head.setAlignment(theme.ALIGN_RIGHT if column in RIGHT else theme.ALIGN_LEFT)
            grid.addWidget(head, 0, column)
        for at, row in enumerate(rows, 1):
            for column, cell in enumerate(_cells(row)):
                grid.addWidget(cell, at, column)
        self._body.addWidget(table)

    def _add_checks(self, title: str, checks: list[Check]) -> None:
        self._body.addSpacing(8)
        self._add_text(title, "section")
        for check in checks:
            made = label(f"{check.name}: {check.said}", "soft")
            made.setWordWrap(True)
            if not check.passed:
                restyle(made, "danger" if check.required else "warning")
            self._body.addWidget(made)
        self._body.addWidget(rule())

    def _clear(self) -> None:
        while self._body.count():
            widget = self._body.takeAt(0).widget()  # pyright: ignore[reportOptionalMemberAccess]
            if widget is not None:
                widget.hide()
                widget.deleteLater()


def _cells(row: PlantedRow) -> list[QWidget]:
    offset, within = found_words(row)
    tone = "" if row.fault == REFERENCE else "live" if is_right(row) else "warning"
    texts = (fault_words(row.fault), planted_words(row), offset, within)
    cells: list[QWidget] = []
    for column, text in enumerate(texts):
        cell = label(text, "number" if column else "")
        cell.setAlignment(theme.ALIGN_RIGHT if column in RIGHT else theme.ALIGN_LEFT)
        cells.append(cell)
    verdict = label(verdict_words(row))
    restyle(verdict, tone)
    return [*cells, ScoreBar(mean_headline(row), "accent"), verdict]
