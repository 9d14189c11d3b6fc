"""What is painted over the picture: pills, banners, rounded corners, the empty stage.

Pure painting into a given painter: no widget over the video, so no second composition per frame.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen

from studio import icons, theme

PILL_HEIGHT = 26.0
BANNER_HEIGHT = 38.0
CORNER = 10.0


def round_corners(painter: QPainter, rect: QRectF, background: QColor) -> None:
    """Cover the corners with the background: 50x cheaper than clipping a raster picture."""
    path = QPainterPath()
    path.setFillRule(Qt.FillRule.OddEvenFill)
    path.addRect(rect.adjusted(-1, -1, 1, 1))
    path.addRoundedRect(rect, CORNER, CORNER)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillPath(path, background)


def pill(
    painter: QPainter, top_left: QPointF, parts: list[tuple[str, str]], dot: str = ""
) -> QRectF:
    """A dark pill with (text, colour) parts and a dot of colour `dot`; returns its rectangle."""
    font = theme.font(12, QFont.Weight.Medium)
    metrics = QFontMetricsF(font)
    widths = [metrics.horizontalAdvance(text) for text, _ in parts]
    lead = 14.0 if dot else 0.0
    width = 22.0 + lead + sum(widths) + 12.0 * (len(parts) - 1)
    rect = QRectF(top_left, QSizeF(width, PILL_HEIGHT))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("stage", 0.78))
    painter.drawRoundedRect(rect, PILL_HEIGHT / 2, PILL_HEIGHT / 2)
    x = rect.left() + 11.0
    if dot:
        painter.setBrush(theme.color(dot))
        painter.drawEllipse(QPointF(x + 4, rect.center().y()), 4.0, 4.0)
    x += lead
    painter.setFont(font)
    for (text, tone), text_width in zip(parts, widths, strict=True):
        painter.setPen(theme.color(tone))
        painter.drawText(QRectF(x, rect.top(), text_width + 2, PILL_HEIGHT), theme.ALIGN_LEFT, text)
        x += text_width + 12.0
    return rect


def banner(painter: QPainter, area: QRectF, text: str, tone: str, busy: bool = False) -> QRectF:
    """A band with an icon and one line of text along the bottom of `area`."""
    rect = QRectF(area.left() + 12, area.bottom() - BANNER_HEIGHT - 12, area.width() - 24, 0)
    font = theme.font(13, QFont.Weight.Medium)
    inner = rect.adjusted(42, 0, -12, 0)
    bounds = QFontMetricsF(font).boundingRect(
        QRectF(0, 0, max(inner.width(), 40.0), 400), Qt.TextFlag.TextWordWrap, text
    )
    height = max(BANNER_HEIGHT, bounds.height() + 18)
    rect = QRectF(rect.left(), area.bottom() - 12 - height, rect.width(), height)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("stage", 0.88))
    painter.drawRoundedRect(rect, 8, 8)
    mark = QRectF(rect.left() + 13, rect.center().y() - 9, 18, 18)
    icons.paint(painter, mark, "resync" if busy else "warning", tone)
    painter.setFont(font)
    painter.setPen(theme.color("text"))
    box = QRectF(rect.left() + 42, rect.top(), rect.width() - 54, rect.height())
    painter.drawText(box, int(theme.ALIGN_LEFT) | int(Qt.TextFlag.TextWordWrap), text)
    return rect


def empty_stage(painter: QPainter, frame: QRectF, hot: bool, title: str, lines: list[str]) -> None:
    """The portrait-shaped place where a picture will be; `hot` while one is dragged over it."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(theme.color("accent" if hot else "outline"), 1.5, Qt.PenStyle.DashLine)
    pen.setDashPattern([5, 5])
    painter.setPen(pen)
    painter.setBrush(theme.color("tint" if hot else "window", 0.6 if hot else 0.5))
    painter.drawRoundedRect(frame.adjusted(1, 1, -1, -1), CORNER + 4, CORNER + 4)
    center = frame.center()
    size = min(56.0, frame.width() / 5)
    mark = QRectF(center.x() - size / 2, center.y() - size - 16, size, size)
    icons.paint(painter, mark, "picture", "accent" if hot else "soft")
    flags = int(Qt.AlignmentFlag.AlignHCenter) | int(Qt.TextFlag.TextWordWrap)
    painter.setFont(theme.font(theme.HEADING, QFont.Weight.DemiBold))
    painter.setPen(theme.color("text"))
    text = QRectF(frame.left() + 20, center.y(), frame.width() - 40, 60)
    used = painter.boundingRect(text, flags, title)
    painter.drawText(text, flags, title)
    painter.setFont(theme.font(theme.BODY))
    painter.setPen(theme.color("soft"))
    below = QRectF(text.left(), used.bottom() + 10, text.width(), 120)
    painter.drawText(below, flags, "\n".join(lines))


def focus_ring(painter: QPainter, area: QRectF) -> None:
    """Where the keyboard is, when it came by Tab."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(theme.color("accent"), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(area.adjusted(2, 2, -2, -2), CORNER, CORNER)


def drop_hint(painter: QPainter, area: QRectF, text: str) -> None:
    """Over the picture while a file is dragged: what will happen when it is let go."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(area, theme.color("stage", 0.66))
    painter.setPen(QPen(theme.color("accent"), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(area.adjusted(8, 8, -8, -8), CORNER, CORNER)
    painter.setFont(theme.font(theme.HEADING, QFont.Weight.DemiBold))
    painter.setPen(theme.color("text"))
    painter.drawText(area, int(Qt.AlignmentFlag.AlignCenter), text)
